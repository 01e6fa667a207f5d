create database movr primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 movr
create table rows (id int8 primary key, a int8 not null escrow check (a between 0 and 10)) locality regional by row;
----
(CREATE TABLE)

create table one (id int8 primary key, a int8 not null escrow check (a between 0 and 10));
----
(CREATE TABLE)

create table everywhere (id int8 primary key, a int8 not null escrow check (a between 0 and 10)) locality global;
----
(CREATE TABLE)

insert into rows (id, a) values (1, 3);
----
(INSERT 0 1)

insert into one values (1, 3);
----
(INSERT 0 1)

insert into everywhere values (1, 3);
----
(INSERT 0 1)

-- session: europe-west1 movr
update rows set a = a + 1 where id = 1;
----
(UPDATE 1)

update one set a = a + 1 where id = 1;
----
(UPDATE 1)

update everywhere set a = a + 1 where id = 1;
----
(UPDATE 1)

update rows set a = a + 1 where id = 1 and crdb_region = 'asia-northeast1';
----
(UPDATE 0)

update rows set a = a + 1 where id = 1 and crdb_region = 'us-east1';
----
(UPDATE 1)

update rows set crdb_region = 'europe-west1' where id = 1;
----
(UPDATE 1)

update rows set a = a + 6 where id = 1;
----
ERROR 23514: new row for relation "rows" violates check constraint "rows_a_check"
DETAIL: "a" stays from 0 to 10; it can go down by 5 and up by 5.

select *, crdb_region from rows;
----
id | a | crdb_region
1 | 5 | europe-west1
(SELECT 1)

update one set a = 9 where id = 1;
----
(UPDATE 1)

select o.a, e.a from one o join everywhere e on o.id = e.id;
----
a | a
9 | 4
(SELECT 1)

explain update rows set a = a + 1 where id = 1;
----
QUERY PLAN
Update on rows (escrow delta, local)
  Index Cond: (id = 1)
(EXPLAIN)

explain select a from one where id = 1;
----
QUERY PLAN
Escrow Numbers (a)
  ->  Point Lookup using one_pkey on one
        Index Cond: (id = 1)
        Regions: us-east1 (round trips between regions: 1)
Regions: us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

delete from everywhere where id = 1;
----
(DELETE 1)

update everywhere set a = a + 1 where id = 1;
----
(UPDATE 0)

alter table rows set locality regional by table;
----
(ALTER TABLE)

alter table one set locality global;
----
(ALTER TABLE)

drop table one;
----
(DROP TABLE)

