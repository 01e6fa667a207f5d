create table t (id int primary key, a int);
----
(CREATE TABLE)

insert into t select g, g % 10 from generate_series(1, 100) as g;
----
(INSERT 0 100)

analyze t;
----
(ANALYZE)

explain select * from t;
----
QUERY PLAN
Seq Scan on t  (rows=100)
Regions: us-east1
(EXPLAIN)

explain (costs off) select * from t where a = 3;
----
QUERY PLAN
Seq Scan on t
  Filter: (a = 3)
Regions: us-east1
(EXPLAIN)

explain (analyze, timing off, summary off) select * from t where a = 3;
----
QUERY PLAN
Seq Scan on t  (rows=10)  (actual rows=10 loops=1)
  Filter: (a = 3)
Regions: us-east1
Round Trips Between Regions: 0, to commit 0
(EXPLAIN)

explain (analyze off, costs false) select * from t;
----
QUERY PLAN
Seq Scan on t
Regions: us-east1
(EXPLAIN)

explain (timing) select 1;
----
ERROR 22023: EXPLAIN option TIMING requires ANALYZE

explain (timing off) select 1;
----
QUERY PLAN
Result
(EXPLAIN)

explain (nonsense) select 1;
----
ERROR 42601: unrecognized EXPLAIN option "nonsense"

explain (format json) select 1;
----
ERROR 0A000: EXPLAIN is only written as text

