create database place primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 place
create table t (id int primary key, a int unique, b text);
----
(CREATE TABLE)

create index t_b on t (b);
----
(CREATE INDEX)

insert into t values (1, 10, 'x'), (2, 20, 'y'), (3, 30, 'z');
----
(INSERT 0 3)

alter table t set locality regional by row;
----
(ALTER TABLE)

show locality from table t;
----
table_name | locality
t | REGIONAL BY ROW
(SHOW 1)

select id, crdb_region from t order by id;
----
id | crdb_region
1 | us-east1
2 | us-east1
3 | us-east1
(SELECT 3)

-- session: europe-west1 place
insert into t values (4, 40, 'e');
----
(INSERT 0 1)

insert into t values (5, 20, 'f');
----
ERROR 23505: duplicate key value violates unique constraint "t_a_key"
DETAIL: Key (a)=(20) already exists.

update t set crdb_region = 'asia-northeast1' where id = 2;
----
(UPDATE 1)

select id, a, b, crdb_region from t order by id;
----
id | a | b | crdb_region
1 | 10 | x | us-east1
2 | 20 | y | asia-northeast1
3 | 30 | z | us-east1
4 | 40 | e | europe-west1
(SELECT 4)

select id from t where b = 'y';
----
id
2
(SELECT 1)

alter table t set locality global;
----
(ALTER TABLE)

select id, a, b, crdb_region from t order by id;
----
id | a | b | crdb_region
1 | 10 | x | us-east1
2 | 20 | y | asia-northeast1
3 | 30 | z | us-east1
4 | 40 | e | europe-west1
(SELECT 4)

insert into t values (5, 40, 'f');
----
ERROR 23505: duplicate key value violates unique constraint "t_a_key"
DETAIL: Key (a)=(40) already exists.

show create table t;
----
table_name | create_statement
t | CREATE TABLE public.t (
    id integer NOT NULL,
    a integer,
    b text,
    crdb_region crdb_internal_region NOT VISIBLE NOT NULL DEFAULT default_to_database_primary_region(gateway_region())::crdb_internal_region,
    CONSTRAINT t_pkey PRIMARY KEY (id),
    CONSTRAINT t_a_key UNIQUE (a)
) LOCALITY GLOBAL;
CREATE INDEX t_b ON public.t USING btree (b);
(SHOW 1)

alter table t set locality regional by table in "asia-northeast1";
----
(ALTER TABLE)

select count(*), sum(a) from t;
----
count | sum
4 | 100
(SELECT 1)

alter table t set locality regional by table in primary region;
----
(ALTER TABLE)

alter table t set locality regional by table in "us-east1";
----
(ALTER TABLE)

select id from t where a = 40;
----
id
4
(SELECT 1)

alter table t add column home crdb_internal_region;
----
(ALTER TABLE)

alter table t set locality regional by row as home;
----
ERROR 42P16: column "home" in REGIONAL BY ROW AS must be NOT NULL
HINT: ALTER TABLE … ALTER COLUMN … SET NOT NULL.

update t set home = case id when 1 then 'europe-west1' else 'us-east1' end;
----
(UPDATE 4)

alter table t alter column home set not null;
----
(ALTER TABLE)

alter table t set locality regional by row as home;
----
(ALTER TABLE)

select id, home, crdb_region from t order by id;
----
id | home | crdb_region
1 | europe-west1 | us-east1
2 | us-east1 | asia-northeast1
3 | us-east1 | us-east1
4 | us-east1 | europe-west1
(SELECT 4)

select id from t where home = 'europe-west1';
----
id
1
(SELECT 1)

alter table t set locality regional by row;
----
(ALTER TABLE)

select id from t where crdb_region = 'asia-northeast1';
----
id
2
(SELECT 1)

alter table t drop column home;
----
(ALTER TABLE)

insert into t values (6, 10, 'dup');
----
ERROR 23505: duplicate key value violates unique constraint "t_a_key"
DETAIL: Key (a)=(10) already exists.

begin;
----
(BEGIN)

create table u (id int primary key);
----
(CREATE TABLE)

alter table u set locality regional by row;
----
(ALTER TABLE)

insert into u values (1);
----
(INSERT 0 1)

commit;
----
(COMMIT)

select id, crdb_region from u;
----
id | crdb_region
1 | europe-west1
(SELECT 1)

alter table t set locality regional by row as nope;
----
ERROR 42703: column "nope" in REGIONAL BY ROW AS does not exist

alter table nope set locality global;
----
ERROR 42P01: relation "nope" does not exist

alter table if exists nope set locality global;
----
(ALTER TABLE)

