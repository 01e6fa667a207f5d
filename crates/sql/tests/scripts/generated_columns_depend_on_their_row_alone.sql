create database place primary region "us-east1" regions "europe-west1";
----
(CREATE DATABASE)

-- session: us-east1 place
-- PostgreSQL: 42P17. Two sessions would look for a row in different places.
create table t (id int primary key, r crdb_internal_region as (gateway_region()::crdb_internal_region) stored) locality regional by row as r;
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

create table t (id int primary key, x timestamptz generated always as (now()) stored);
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

create table t (id int primary key, x float8 generated always as (id * random()) stored);
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

create table t (id int primary key, at timestamptz, x int generated always as (extract(hour from at)::int) stored);
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

create table t (id int primary key, at timestamptz, x date generated always as (at::date) stored);
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

create table t (id int primary key, d date, x text generated always as (d::text) stored);
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

create table t (id int primary key, d date[], x text generated always as (d::text) stored);
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

create table t (id int primary key, x text generated always as (current_user::text) stored);
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

create table t (id int primary key, x text generated always as (current_setting('timezone')) stored);
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

create table t (id int primary key, x text generated always as ('n' || id) stored);
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

create table t (id int primary key, x boolean generated always as (id = any (array[extract(hour from '2026-01-01 00:00'::timestamptz)])) stored);
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

-- Literals that another session reads otherwise.
create table t (id int primary key, at timestamptz, x boolean generated always as (at < '2026-01-01 00:00') stored);
----
ERROR 42P17: generation expression is not immutable
HINT: Write dates and times in ISO 8601, and timestamptz with its time zone.

create table t (id int primary key, d date, x boolean generated always as (d < '1/2/2026') stored);
----
ERROR 42P17: generation expression is not immutable
HINT: Write dates and times in ISO 8601, and timestamptz with its time zone.

create table t (id int primary key, d date, x boolean generated always as (d < 'today') stored);
----
ERROR 42P17: generation expression is not immutable
HINT: Write dates and times in ISO 8601, and timestamptz with its time zone.

-- What depends on the row alone is taken.
create table t (id int primary key, d date, at timestamptz,
    a boolean generated always as (d < '2026-01-02') stored,
    b boolean generated always as (at < '2026-01-02 00:00+00') stored,
    c int generated always as (extract(year from d)::int) stored,
    e timestamp generated always as (d + interval '1 day') stored,
    f text generated always as ('n' || id::text) stored,
    g timestamp generated always as (at at time zone 'UTC') stored,
    r crdb_internal_region not null as (case when id % 2 = 0 then 'us-east1' else 'europe-west1' end) stored)
    locality regional by row as r;
----
(CREATE TABLE)

insert into t values (1, '2026-01-01', '2026-01-01 12:00+00'), (2, '2026-01-03', '2026-01-03 12:00+00');
----
(INSERT 0 2)

select * from t order by id;
----
id | d | at | a | b | c | e | f | g | r
1 | 2026-01-01 | 2026-01-01 12:00:00+00 | t | t | 2026 | 2026-01-02 00:00:00 | n1 | 2026-01-01 12:00:00 | europe-west1
2 | 2026-01-03 | 2026-01-03 12:00:00+00 | f | f | 2026 | 2026-01-04 00:00:00 | n2 | 2026-01-03 12:00:00 | us-east1
(SELECT 2)

-- Columns that come later, and types that change beneath them.
alter table t add column h timestamptz generated always as (now()) stored;
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

alter table t add column h crdb_internal_region as (case when id = 1 then gateway_region() else 'us-east1' end) stored;
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

create table u (id int primary key, at timestamp, x int generated always as (extract(hour from at)::int) stored);
----
(CREATE TABLE)

alter table u alter column at type timestamptz;
----
ERROR 0A000: changing a column from type timestamp without time zone to type timestamp with time zone is not supported yet
DETAIL: Every stored row would have to be written again.
HINT: Add a column of the new type, fill it with UPDATE, drop the old column and rename the new one.

-- Two types of time meet by the time zone.
create table v (id int primary key, tz timestamptz, ts timestamp, x boolean generated always as (tz is distinct from ts) stored);
----
ERROR 42P17: generation expression is not immutable
HINT: It must not depend on the session, the time or other tables.

set timezone = 'Asia/Tokyo';
----
(SET)

select '2026-01-01 00:00+00'::timestamptz is distinct from '2026-01-01 00:00'::timestamp, '2026-01-01 00:00+00'::timestamptz is distinct from '2026-01-01 09:00'::timestamp,
    '2026-01-01'::date is not distinct from '2026-01-01 00:00'::timestamp;
----
?column? | ?column? | ?column?
t | f | t
(SELECT 1)

create table w (id int primary key, r regclass generated always as ('v'::regclass) stored);
----
ERROR 0A000: cannot name a database object in column generation expression

create table w (id int primary key, check ('v'::regclass is not null));
----
ERROR 0A000: cannot name a database object in check constraint

