create database named primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 named
create table by_default (id int primary key, r crdb_internal_region not null default 'asia-northeast1') locality regional by row as r;
----
(CREATE TABLE)

alter database named drop region "asia-northeast1";
----
ERROR 2BP01: could not remove enum value "asia-northeast1" as it is being used by an expression of table "by_default"
HINT: Change the expressions that name the region before dropping it.

alter table by_default alter column r set default 'us-east1';
----
(ALTER TABLE)

create table by_check (id int primary key, r crdb_internal_region check (r <> 'asia-northeast1'));
----
(CREATE TABLE)

alter database named drop region "asia-northeast1";
----
ERROR 2BP01: could not remove enum value "asia-northeast1" as it is being used by an expression of table "by_check"
HINT: Change the expressions that name the region before dropping it.

drop table by_check;
----
(DROP TABLE)

create table computed (id int primary key, r crdb_internal_region not null as (case when id < 10 then 'us-east1' else 'asia-northeast1' end) stored) locality regional by row as r;
----
(CREATE TABLE)

alter database named drop region "asia-northeast1";
----
ERROR 2BP01: could not remove enum value "asia-northeast1" as it is being used by an expression of table "computed"
HINT: Change the expressions that name the region before dropping it.

drop table computed;
----
(DROP TABLE)

create view far as select id from by_default where r = 'asia-northeast1';
----
(CREATE VIEW)

alter database named drop region "asia-northeast1";
----
ERROR 2BP01: could not remove enum value "asia-northeast1" as it is being used by view "far"
HINT: Change the expressions that name the region before dropping it.

drop view far;
----
(DROP VIEW)

alter database named drop region "asia-northeast1";
----
(ALTER DATABASE)

select * from by_default;
----
id | r
(SELECT 0)

-- A name with another database in it is not this database's.
create table x (id int primary key);
----
(CREATE TABLE)

drop table other.public.x;
----
ERROR 0A000: cross-database references are not implemented: "other.public.x"

drop table if exists other.public.x;
----
ERROR 0A000: cross-database references are not implemented: "other.public.x"

truncate other.public.x;
----
ERROR 0A000: cross-database references are not implemented: "other.public.x"

alter table other.public.x add column y int;
----
ERROR 0A000: cross-database references are not implemented: "other.public.x"

alter table other.public.x rename to z;
----
ERROR 0A000: cross-database references are not implemented: "other.public.x"

alter table other.public.x set locality global;
----
ERROR 0A000: cross-database references are not implemented: "other.public.x"

drop index other.public.x_pkey;
----
ERROR 0A000: cross-database references are not implemented: "other.public.x_pkey"

drop view other.public.x;
----
ERROR 0A000: cross-database references are not implemented: "other.public.x"

drop sequence other.public.x;
----
ERROR 0A000: cross-database references are not implemented: "other.public.x"

create table y (id int references other.public.x);
----
ERROR 0A000: cross-database references are not implemented: "other.public.x"

create view v as select * from other.public.x;
----
ERROR 0A000: cross-database references are not implemented: "other.public.x"

comment on table other.public.x is 'x';
----
ERROR 0A000: cross-database references are not implemented: "other.public.x"

alter table named.public.x add column y int;
----
(ALTER TABLE)

select * from named.public.x;
----
id | y
(SELECT 0)

show survival goal from database;
----
database | survival_goal
named | zone
(SHOW 1)

