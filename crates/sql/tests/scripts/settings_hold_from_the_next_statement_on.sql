-- postgres: same
create schema a; create schema b; create table a.t (v text); create table b.t (v text); insert into a.t values ('a'); insert into b.t values ('b');
----
(CREATE SCHEMA)
(CREATE SCHEMA)
(CREATE TABLE)
(CREATE TABLE)
(INSERT 0 1)
(INSERT 0 1)

set search_path = a; select v from t;
----
(SET)
v
a
(SELECT 1)

set search_path = b; select v from t;
----
(SET)
v
b
(SELECT 1)

select v from t;
----
v
b
(SELECT 1)

set search_path = a; insert into t values ('meant for a'); set search_path = b; insert into t values ('meant for b');
----
(SET)
(INSERT 0 1)
(SET)
(INSERT 0 1)

select 'a', v from a.t union all select 'b', v from b.t order by 1, 2;
----
?column? | v
a | a
a | meant for a
b | b
b | meant for b
(SELECT 4)

begin; set local search_path = a; select v from t order by v; commit;
----
(BEGIN)
(SET)
v
a
meant for a
(SELECT 2)
(COMMIT)

select v from t order by v;
----
v
b
meant for b
(SELECT 2)

select set_config('search_path', 'a', false); insert into t values ('by set_config');
----
set_config
a
(SELECT 1)
(INSERT 0 1)

set search_path = b; delete from t where v <> 'b'; select count(*) from t;
----
(SET)
(DELETE 1)
count
1
(SELECT 1)

-- What is set beside a statement that fails is undone.
set search_path = a; select 1 / 0;
----
ERROR 22012: division by zero

show search_path;
----
search_path
b
(SHOW)

set local search_path = a; select v from t order by v;
----
(SET)
v
a
by set_config
meant for a
(SELECT 3)

show search_path;
----
search_path
b
(SHOW)

-- A prepared statement follows the search path.
prepare p as select count(*) from t;
----
(PREPARE)

execute p;
----
count
1
(SELECT 1)

set search_path = a; execute p;
----
(SET)
count
3
(SELECT 1)

set time zone 'Asia/Tokyo'; select timestamptz '2020-01-01 00:00:00+00';
----
(SET)
timestamptz
2020-01-01 09:00:00+09
(SELECT 1)

set time zone 'UTC'; select timestamptz '2020-01-01 00:00:00+00';
----
(SET)
timestamptz
2020-01-01 00:00:00+00
(SELECT 1)

deallocate p;
----
(DEALLOCATE)

reset search_path;
----
(RESET)

drop table a.t; drop table b.t; drop schema a; drop schema b;
----
(DROP TABLE)
(DROP TABLE)
(DROP SCHEMA)
(DROP SCHEMA)

