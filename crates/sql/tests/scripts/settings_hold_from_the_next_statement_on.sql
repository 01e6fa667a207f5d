-- postgres: same
create schema a; create schema b; create table a.t (v text); create table b.t (v text); insert into a.t values ('a'); insert into b.t values ('b');
----

set search_path = a; select v from t;
----

set search_path = b; select v from t;
----

select v from t;
----

set search_path = a; insert into t values ('meant for a'); set search_path = b; insert into t values ('meant for b');
----

select 'a', v from a.t union all select 'b', v from b.t order by 1, 2;
----

begin; set local search_path = a; select v from t order by v; commit;
----

select v from t order by v;
----

select set_config('search_path', 'a', false); select v from t order by v;
----

set search_path = b; delete from t where v <> 'b'; select count(*) from t;
----

-- What is set beside a statement that fails is undone.
set search_path = a; select 1 / 0;
----

show search_path;
----

set local search_path = a; select v from t order by v;
----

show search_path;
----

-- A prepared statement follows the search path.
prepare p as select count(*) from t;
----

execute p;
----

set search_path = a; execute p;
----

set time zone 'Asia/Tokyo'; select timestamptz '2020-01-01 00:00:00+00';
----

set time zone 'UTC'; select timestamptz '2020-01-01 00:00:00+00';
----

set datestyle = 'SQL, DMY'; select date '2020-02-01';
----

reset datestyle; select date '2020-02-01';
----

