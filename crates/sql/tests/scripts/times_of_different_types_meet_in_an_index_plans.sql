create table logs (id int primary key, d date, t timestamp, z timestamptz, prio int);
----
(CREATE TABLE)

create index on logs (d);
----
(CREATE INDEX)

create index on logs (t);
----
(CREATE INDEX)

create index on logs (z);
----
(CREATE INDEX)

insert into logs select g, date '2024-01-01' + g / 10, timestamp '2024-01-01 00:00' + g * interval '2 hours', timestamptz '2024-01-01 00:00+00' + g * interval '3 hours', g % 5 from generate_series(0, 4999) as g;
----
(INSERT 0 5000)

analyze logs;
----
(ANALYZE)

explain select count(*) from logs where t > date '2025-02-01';
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using logs_t_idx on logs  (rows=234)
        Index Cond: (t > '2025-02-01 00:00:00')
Regions: us-east1
(EXPLAIN)

explain select count(*) from logs where t between date '2024-02-01' and date '2024-02-03';
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using logs_t_idx on logs  (rows=25)
        Index Cond: (t >= '2024-02-01 00:00:00') AND (t <= '2024-02-03 00:00:00')
Regions: us-east1
(EXPLAIN)

explain select count(*) from logs where t > now() - interval '1 day';
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using logs_t_idx on logs  (rows=250)
        Index Cond: (t >= (((now() - …))::timestamp without time zone + …))
        Filter: (t > (now() - …))
Regions: us-east1
(EXPLAIN)

explain select count(*) from logs where z < date '2024-02-01';
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using logs_z_idx on logs  (rows=833)
        Index Cond: (z < ('2024-02-01')::timestamp with time zone)
Regions: us-east1
(EXPLAIN)

explain select count(*) from logs where d > now() - interval '1 day';
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using logs_d_idx on logs  (rows=250)
        Index Cond: (d >= (((now() - …))::date + -2))
        Filter: (d > (now() - …))
Regions: us-east1
(EXPLAIN)

explain select count(*) from logs where not (t <> timestamp '2024-02-01');
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using logs_t_idx on logs  (rows=1)
        Index Cond: (t = '2024-02-01 00:00:00')
Regions: us-east1
(EXPLAIN)

explain select count(*) from (select * from logs where prio <> 0) as x where 100 / prio > 20;
----
QUERY PLAN
Aggregate
  ->  Seq Scan on logs  (rows=1333)
        Filter: (prio <> 0) AND ((100 / prio) > 20)
Regions: us-east1
(EXPLAIN)

explain select count(*) from logs as a left join logs as b on b.id = a.id where b.id = 3 and b.d is not null or b.id = 4;
----
QUERY PLAN
Aggregate
  ->  Lookup Join  (rows=2)
        ->  Point Lookup using logs_pkey on logs b  (rows=2)
              Index Cond: ((id) IN ((3), (4)))
              Filter: (((id = 3) AND (NOT (d IS NULL))) OR (id = 4))
        ->  Point Lookup using logs_pkey on logs a  (rows=1)
              Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

