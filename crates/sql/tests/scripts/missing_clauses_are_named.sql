create table people (id int primary key, name text);
----

with recursive t (n) as (select 1 union all select n + 1 from t where n < 3) search depth first by n set o select * from t;
----

with recursive t (n) as (select 1 union all select n + 1 from t where n < 3) cycle n set c using p select * from t;
----

create table more (like people including all);
----

create table more (a int unique nulls not distinct);
----

create table more (a int) using heap;
----

create table more (a text compression lz4);
----

create table more of people;
----

create table more as execute p;
----

alter table people alter column name set statistics 100;
----

alter table people alter name set storage plain;
----

alter table people cluster on people_pkey;
----

alter table people set without cluster;
----

alter table people attach partition more default;
----

create index on people (name) tablespace fast;
----

create index on only people (name);
----

create recursive view v (a) as select 1;
----

create schema s create table x (a int);
----

set constraints all deferred;
----

select inet '10.0.0.1';
----

select '10.0.0.1'::inet;
----

select money '1.20';
----

create table more (a tsvector);
----

select xmlelement(name a);
----

select * from rows from (generate_series(1, 2), generate_series(1, 3)) x;
----

select search from people;
----

select * from people search depth;
----

create table cycle (a nosuch);
----

begin;
----

drop index concurrently people_pkey;
----

rollback;
----

begin;
----

create index concurrently on people (name);
----

rollback;
----

