create table t (id int primary key, a int, c int not visible, d int not visible, unique index t_a (a) not visible);
----
(CREATE TABLE)

create table u (a int, b int);
----
(CREATE TABLE)

create index t_b on t (c);
----
(CREATE INDEX)

drop index t@t_b;
----
(DROP INDEX)

select index_name from [show indexes from t] group by index_name order by 1;
----
index_name
t_a
t_pkey
(SELECT 2)

select column_name, is_hidden from [show columns from t] as c where is_hidden order by column_name;
----
column_name | is_hidden
c | t
d | t
(SELECT 2)

with j as (show jobs) select count(*) > 0 as some, count(*) filter (where status <> 'succeeded') as others from j;
----
some | others
t | 0
(SELECT 1)

select x.description from [show jobs] x where x.description like 'CREATE INDEX%' or x.description like 'create index%';
----
description
create index t_b on t (c)
(SELECT 1)

select r.database_name, r.regions from [show regions from all databases] r where r.database_name = 'movr' order by 1;
----
database_name | regions
(SELECT 0)

select a.table_name, b.locality from [show tables] a, [show locality from table t] b where a.table_name = b.table_name;
----
table_name | locality
t | ∅
(SELECT 1)

select count(*) from [show ranges] join [show transactions] on true;
----
count
0
(SELECT 1)

select setting from [show all] where name = 'application_name';
----
setting
''
(SELECT 1)

create view jobs_of_all as select job_id, status from [show jobs];
----
(CREATE VIEW)

select count(*) > 0 as some from jobs_of_all where status = 'succeeded';
----
some
t
(SELECT 1)

explain (costs off) select * from [show tables] where table_name = 't';
----
QUERY PLAN
Filter
  Filter: (SHOW.table_name = 't')
  ->  Show
(EXPLAIN)

prepare columns_of_t as select column_name from [show columns from t] where column_name = $1;
----
(PREPARE)

execute columns_of_t ('a');
----
column_name
a
(SELECT 1)

copy (select column_name from [show columns from u] order by 1) to stdout;
----
(COPY 3)

select * from [show columns from nothing];
----
ERROR 42P01: relation "nothing" does not exist

select * from [show nothing at all];
----
ERROR 0A000: [show nothing at all] is not supported
POSITION: 15

select * from [show time zone];
----
ERROR 0A000: [show time zone] is not supported
POSITION: 15

select * from [select 1];
----
ERROR 42601: syntax error at or near "["
POSITION: 15

select array[[1, 2], [3, 4]] as numbers;
----
numbers
{{1,2},{3,4}}
(SELECT 1)

