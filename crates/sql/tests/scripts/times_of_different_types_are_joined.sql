-- postgres: same
set time zone 'UTC';
----
(SET)

create table days (id int primary key, d date);
----
(CREATE TABLE)

create table moments (id int primary key, t timestamp);
----
(CREATE TABLE)

create table instants (id int primary key, z timestamptz);
----
(CREATE TABLE)

insert into days select g, date '2024-01-01' + g % 90 from generate_series(1, 300) as g;
----
(INSERT 0 300)

insert into days values (1001, 'infinity'), (1002, '-infinity'), (1003, null), (1004, '300000-01-01'), (1005, '294276-12-31'), (1006, '4714-11-24 BC');
----
(INSERT 0 6)

insert into moments select g, timestamp '2024-01-01' + g * interval '6 hours' from generate_series(1, 300) as g;
----
(INSERT 0 300)

insert into moments values (1001, 'infinity'), (1002, '-infinity'), (1003, null), (1005, '294276-12-31'), (1006, '4714-11-24 BC');
----
(INSERT 0 5)

insert into instants select g, timestamptz '2024-01-01 00:00+00' + g * interval '3 hours' from generate_series(1, 300) as g;
----
(INSERT 0 300)

insert into instants values (1001, 'infinity'), (1002, '-infinity'), (1003, null), (1005, '294276-12-31 00:00+00');
----
(INSERT 0 4)

select count(*), min(m.id), max(m.id) from days join moments as m on d = t;
----
count | min | max
259 | 4 | 1006
(SELECT 1)

select count(*), min(i.id), max(i.id) from days join instants as i on d = z;
----
count | min | max
144 | 8 | 1005
(SELECT 1)

select count(*), max(i.id) from moments join instants as i on t = z;
----
count | max
153 | 1005
(SELECT 1)

select count(*), max(i.id) from moments join instants as i on z = t;
----
count | max
153 | 1005
(SELECT 1)

select count(*), count(m.id) from days left join moments as m on d = t;
----
count | count
306 | 259
(SELECT 1)

select count(*), count(m.id) from moments as m full join days on t = d;
----
count | count
532 | 485
(SELECT 1)

select count(*) from days where exists (select 1 from moments where t = d);
----
count
259
(SELECT 1)

select count(*) from moments where not exists (select 1 from days where t = d);
----
count
226
(SELECT 1)

select count(*) from days where d in (select t from moments);
----
count
259
(SELECT 1)

select count(*) from moments where t not in (select d from days where d is not null);
----
count
225
(SELECT 1)

select d.id, m.id from days as d join moments as m on d.d = m.t where d.id > 1000 order by 1, 2;
----
id | id
1001 | 1001
1002 | 1002
1005 | 1005
1006 | 1006
(SELECT 4)

select count(*) from days as d, moments as m where not (d.d = m.t) and d.id > 1000;
----
count
1516
(SELECT 1)

set time zone 'America/New_York';
----
(SET)

select count(*), max(i.id) from moments join instants as i on t = z;
----
count | max
2 | 1002
(SELECT 1)

select count(*), max(i.id) from days join instants as i on d = z where d < '2025-01-01' or d = 'infinity';
----
count | max
2 | 1002
(SELECT 1)

