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

analyze days;
----
(ANALYZE)

analyze moments;
----
(ANALYZE)

analyze instants;
----
(ANALYZE)

explain select count(*), min(m.id), max(m.id) from days join moments as m on d = t;
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=92)
        Hash Cond: (CASE = m.t)
        ->  Seq Scan on days  (rows=306)
        ->  Seq Scan on moments m  (rows=305)
Regions: us-east1
(EXPLAIN)

explain select count(*), min(i.id), max(i.id) from days join instants as i on d = z;
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=92)
        Hash Cond: (CASE = i.z)
        ->  Seq Scan on days  (rows=306)
        ->  Seq Scan on instants i  (rows=304)
Regions: us-east1
(EXPLAIN)

explain select count(*), max(i.id) from moments join instants as i on t = z;
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=91)
        Hash Cond: ((moments.t)::timestamp with time zone = i.z)
        ->  Seq Scan on moments  (rows=305)
        ->  Seq Scan on instants i  (rows=304)
Regions: us-east1
(EXPLAIN)

explain select count(*), max(i.id) from moments join instants as i on z = t;
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=91)
        Hash Cond: ((moments.t)::timestamp with time zone = i.z)
        ->  Seq Scan on moments  (rows=305)
        ->  Seq Scan on instants i  (rows=304)
Regions: us-east1
(EXPLAIN)

explain select count(*), count(m.id) from days left join moments as m on d = t;
----
QUERY PLAN
Aggregate
  ->  Hash Left Join  (rows=306)
        Hash Cond: (CASE = m.t)
        ->  Seq Scan on days  (rows=306)
        ->  Seq Scan on moments m  (rows=305)
Regions: us-east1
(EXPLAIN)

explain select count(*), count(m.id) from moments as m full join days on t = d;
----
QUERY PLAN
Aggregate
  ->  Hash Full Join  (rows=305)
        Hash Cond: (m.t = CASE)
        ->  Seq Scan on moments m  (rows=305)
        ->  Seq Scan on days  (rows=306)
Regions: us-east1
(EXPLAIN)

explain select count(*) from days where exists (select 1 from moments where t = d);
----
QUERY PLAN
Aggregate
  ->  Hash Semi Join  (rows=153)
        Hash Cond: (CASE = moments.t)
        ->  Seq Scan on days  (rows=306)
        ->  Seq Scan on moments  (rows=305)
Regions: us-east1
(EXPLAIN)

explain select count(*) from moments where not exists (select 1 from days where t = d);
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join  (rows=153)
        Hash Cond: (moments.t = CASE)
        ->  Seq Scan on moments  (rows=305)
        ->  Seq Scan on days  (rows=306)
Regions: us-east1
(EXPLAIN)

explain select count(*) from days where d in (select t from moments);
----
QUERY PLAN
Aggregate
  ->  Hash Semi Join  (rows=153)
        Hash Cond: (CASE = moments.t)
        ->  Seq Scan on days  (rows=306)
        ->  Seq Scan on moments  (rows=305)
Regions: us-east1
(EXPLAIN)

