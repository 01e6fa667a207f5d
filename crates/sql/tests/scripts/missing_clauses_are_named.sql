create table people (id int primary key, name text);
----
(CREATE TABLE)

with recursive t (n) as (select 1 union all select n + 1 from t where n < 3) search depth first by n set o select * from t;
----
ERROR 0A000: SEARCH is not supported
POSITION: 78

with recursive t (n) as (select 1 union all select n + 1 from t where n < 3) cycle n set c using p select * from t;
----
ERROR 0A000: CYCLE is not supported
POSITION: 78

create table more (like people including all);
----
ERROR 0A000: LIKE … INCLUDING is not supported
POSITION: 32

create table more (a int unique nulls not distinct);
----
ERROR 0A000: NULLS [NOT] DISTINCT is not supported
POSITION: 33

create table more (a int) using heap;
----
ERROR 0A000: USING is not supported
POSITION: 27

create table more (a text compression lz4);
----
ERROR 0A000: COMPRESSION is not supported
POSITION: 27

create table more of people;
----
ERROR 0A000: CREATE TABLE … OF is not supported
POSITION: 19

create table more as execute p;
----
ERROR 0A000: CREATE TABLE … AS EXECUTE is not supported
POSITION: 22

alter table people alter column name set statistics 100;
----
ERROR 0A000: SET STATISTICS is not supported
POSITION: 38

alter table people alter name set storage plain;
----
ERROR 0A000: SET STORAGE is not supported
POSITION: 31

alter table people cluster on people_pkey;
----
ERROR 0A000: ALTER TABLE … CLUSTER ON is not supported
POSITION: 20

alter table people set without cluster;
----
ERROR 0A000: ALTER TABLE … SET WITHOUT CLUSTER is not supported
POSITION: 24

alter table people attach partition more default;
----
ERROR 0A000: partitioning is not supported
POSITION: 20

create index on people (name) tablespace fast;
----
ERROR 0A000: TABLESPACE is not supported
POSITION: 31

create index on only people (name);
----
ERROR 0A000: CREATE INDEX … ON ONLY is not supported
POSITION: 22

create recursive view v (a) as select 1;
----
ERROR 0A000: CREATE RECURSIVE VIEW is not supported
POSITION: 8

create schema s create table x (a int);
----
ERROR 0A000: CREATE SCHEMA with its elements is not supported
POSITION: 17

set constraints all deferred;
----
ERROR 0A000: SET CONSTRAINTS is not supported
POSITION: 17

select inet '10.0.0.1';
----
ERROR 0A000: type "inet" is not supported

select '10.0.0.1'::inet;
----
ERROR 0A000: type "inet" is not supported

select money '1.20';
----
ERROR 0A000: type "money" is not supported

create table more (a tsvector);
----
ERROR 0A000: type "tsvector" is not supported

select xmlelement(name a);
----
ERROR 0A000: XML is not supported
POSITION: 24

select * from rows from (generate_series(1, 2), generate_series(1, 3)) x;
----
ERROR 0A000: ROWS FROM is not supported
POSITION: 20

select search from people;
----
ERROR 42703: column "search" does not exist
POSITION: 8

select * from people search depth;
----
ERROR 42601: syntax error at or near "depth"
POSITION: 29

create table cycle (a nosuch);
----
ERROR 42704: type "nosuch" does not exist

begin;
----
(BEGIN)

drop index concurrently people_pkey;
----
ERROR 25001: DROP INDEX CONCURRENTLY cannot run inside a transaction block

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

create index concurrently on people (name);
----
ERROR 25001: CREATE INDEX CONCURRENTLY cannot run inside a transaction block

rollback;
----
(ROLLBACK)

drop aggregate a (int);
----
ERROR 0A000: DROP AGGREGATE is not supported
POSITION: 6

create operator === (leftarg = int);
----
ERROR 0A000: CREATE OPERATOR is not supported
POSITION: 19

alter table people reset (fillfactor);
----
ERROR 0A000: RESET of storage parameters is not supported
POSITION: 20

delete from people where current of c;
----
ERROR 0A000: WHERE CURRENT OF is not supported
POSITION: 34

insert into people values (1) on conflict (id) where name > 'a' do nothing;
----
ERROR 0A000: ON CONFLICT … WHERE is not supported
POSITION: 48

create view v as select * from people with check option;
----
ERROR 0A000: WITH CHECK OPTION is not supported
POSITION: 39

insert into people values (1) where id > 1;
----
ERROR 42601: syntax error at or near "where"
POSITION: 31

