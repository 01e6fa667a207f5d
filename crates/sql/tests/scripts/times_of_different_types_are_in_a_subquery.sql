-- postgres: same
create table dt_d (id int primary key, d date);
----
(CREATE TABLE)

create table dt_t (id int primary key, ts timestamp, tz timestamptz);
----
(CREATE TABLE)

insert into dt_d values (1, '2024-01-01'), (2, '2024-01-02'), (3, null), (4, 'infinity'), (5, '-infinity'), (6, '300000-01-01'), (7, '294276-12-31');
----
(INSERT 0 7)

insert into dt_t values (1, '2024-01-01', '2024-01-01 00:00+00'), (2, '2024-01-02 00:00:01', '2024-01-02 00:00:01+00'), (3, 'infinity', 'infinity'), (4, '-infinity', '-infinity'), (5, '294276-12-31 23:59:59.999999', '294276-12-31 12:00+00');
----
(INSERT 0 5)

set timezone = 'UTC';
----
(SET)

select id from dt_d where d in (select ts from dt_t) order by id;
----
id
1
4
5
(SELECT 3)

select id from dt_d where d in (select tz from dt_t) order by id;
----
id
1
4
5
(SELECT 3)

select id from dt_t where ts in (select d from dt_d) order by id;
----
id
1
3
4
(SELECT 3)

select id from dt_t where tz in (select d from dt_d where d is not null) order by id;
----
id
1
3
4
(SELECT 3)

select id from dt_t where tz in (select ts from dt_t) order by id;
----
id
1
2
3
4
(SELECT 4)

select id from dt_t where ts in (select tz from dt_t) order by id;
----
id
1
2
3
4
(SELECT 4)

select id from dt_d where d not in (select ts from dt_t) order by id;
----
id
2
6
7
(SELECT 3)

select id from dt_t where ts not in (select d from dt_d) order by id;
----
id
(SELECT 0)

select id from dt_t where ts not in (select d from dt_d where d is not null) order by id;
----
id
2
5
(SELECT 2)

select id, d in (select ts from dt_t) as of_ts, d in (select ts from dt_t union all select null) as or_null from dt_d order by id;
----
id | of_ts | or_null
1 | t | t
2 | f | ∅
3 | ∅ | ∅
4 | t | t
5 | t | t
6 | f | ∅
7 | f | ∅
(SELECT 7)

select id, ts in (select d from dt_d) as among, ts in (select d from dt_d where id > 5) as late from dt_t order by id;
----
id | among | late
1 | t | f
2 | ∅ | f
3 | t | f
4 | t | f
5 | ∅ | f
(SELECT 5)

select id from dt_d x where (d, id) in (select ts, id from dt_t) order by id;
----
id
1
(SELECT 1)

select id from dt_d where d = any (select ts from dt_t where id < 3) order by id;
----
id
1
(SELECT 1)

select id from dt_d where d <> all (select ts from dt_t) order by id;
----
id
2
6
7
(SELECT 3)

select id from dt_d where d < all (select ts from dt_t where id = 2) order by id;
----
id
1
2
5
(SELECT 3)

select date '2024-01-01' in (select ts from dt_t), timestamp '2024-01-02' in (select d from dt_d), null::date in (select ts from dt_t);
----
?column? | ?column? | ?column?
t | t | ∅
(SELECT 1)

set timezone = 'America/New_York';
----
(SET)

select id from dt_d where d in (select tz from dt_t) order by id;
----
id
4
5
(SELECT 2)

select id from dt_t where tz in (select d from dt_d where d < '2025-01-01') order by id;
----
id
4
(SELECT 1)

set timezone = 'UTC';
----
(SET)

drop table dt_d, dt_t;
----
(DROP TABLE)

