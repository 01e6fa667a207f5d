create table gi (id int primary key, a int, b int, c text);
----
(CREATE TABLE)

insert into gi select g, g % 500, g % 3, 'c' || g % 5 from generate_series(1, 4000) g;
----
(INSERT 0 4000)

create index gi_ab on gi (a, b);
----
(CREATE INDEX)

analyze gi;
----
(ANALYZE)

explain select a, count(*) from gi group by a order by a limit 4;
----
QUERY PLAN
Limit
  ->  Group in order
        Group Key: gi.a
        ->  Index Only Scan using gi_ab on gi  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select a, count(*) from gi group by a order by a desc limit 4;
----
QUERY PLAN
Limit
  ->  Group in order
        Group Key: gi.a
        ->  Index Only Scan Backward using gi_ab on gi  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select a, count(*) from gi group by a limit 4;
----
QUERY PLAN
Limit
  ->  Group in order
        Group Key: gi.a
        ->  Index Only Scan using gi_ab on gi  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select a, b, sum(b) from gi group by b, a order by a limit 4;
----
QUERY PLAN
Limit
  ->  Group in order
        Group Key: gi.b, gi.a
        ->  Index Only Scan using gi_ab on gi  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select a, count(*) from gi group by a order by a, count(*) limit 4;
----
QUERY PLAN
Limit
  ->  Incremental Sort
        Sort Key: gi.a, count()
        Presorted Key: gi.a
        ->  Group in order
              Group Key: gi.a
              ->  Index Only Scan using gi_ab on gi  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select id, max(a) from gi group by id order by id limit 2;
----
QUERY PLAN
Limit
  ->  Group in order
        Group Key: gi.id
        ->  Seq Scan on gi  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select a, count(*) from gi group by a order by a limit 400;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: gi.a
        ->  Group in batches
              Group Key: gi.a
              ->  Seq Scan on gi  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select a, count(*) from gi group by a having count(*) > 7 order by a limit 4;
----
QUERY PLAN
Limit
  ->  Filter
        Filter: (count() > 7)
        ->  Group in order
              Group Key: gi.a
              ->  Index Only Scan using gi_ab on gi  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select c, count(*) from gi group by c order by c limit 1;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: gi.c
        ->  Group in batches
              Group Key: gi.c
              ->  Seq Scan on gi  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select a, c, count(*) from gi group by a, c order by a limit 1;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: gi.a
        ->  Group in batches
              Group Key: gi.a, gi.c
              ->  Seq Scan on gi  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select gi.a, count(*) from gi join gi h on h.id = gi.b group by gi.a order by gi.a limit 3;
----
QUERY PLAN
Limit
  ->  Group in order
        Group Key: gi.a
        ->  Lookup Join  (rows=4000)
              ->  Index Only Scan using gi_ab on gi  (rows=4000)
              ->  Point Lookup using gi_pkey on gi h  (rows=1)
                    Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select gi.id, gi.c, count(*) from gi join gi h on h.a = gi.id group by gi.id order by gi.id limit 3;
----
QUERY PLAN
Limit
  ->  Group in order
        Group Key: gi.id, gi.c
        ->  Lookup Join  (rows=4000)
              ->  Seq Scan on gi  (rows=4000)
              ->  Index Only Scan using gi_ab on gi h  (rows=1)
                    Index Cond: (a = outer #1)
Regions: us-east1
(EXPLAIN)

explain with t as (select id, c from gi) select x.id, y.c, count(*) from t x join t y on x.id = y.id % 7 group by x.id, y.c order by x.id limit 3;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: 
        ->  Group
              Group Key: #1, #4
              ->  Hash Join
                    Hash Cond: (#1 = (#1 % 7))
                    ->  CTE t
                          ->  Seq Scan on gi  (rows=4000)
                    ->  CTE t
Regions: us-east1
(EXPLAIN)

drop table gi;
----
(DROP TABLE)

