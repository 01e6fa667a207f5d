create table sp (id int primary key, a int, b int);
----
(CREATE TABLE)

create index sp_a on sp (a);
----
(CREATE INDEX)

insert into sp select i, i / 10, i % 100 from generate_series(1, 5000) i;
----
(INSERT 0 5000)

analyze sp;
----
(ANALYZE)

explain select * from sp order by a, b limit 5;
----
QUERY PLAN
Limit
  ->  Incremental Sort
        Sort Key: sp.a, sp.b
        Presorted Key: sp.a
        ->  Index Scan using sp_a on sp  (rows=5000)
Regions: us-east1
(EXPLAIN)

explain select * from sp order by a desc, b limit 5;
----
QUERY PLAN
Limit
  ->  Incremental Sort
        Sort Key: sp.a DESC, sp.b
        Presorted Key: sp.a DESC
        ->  Index Scan Backward using sp_a on sp  (rows=5000)
Regions: us-east1
(EXPLAIN)

-- Nothing is left unread.
explain select * from sp order by a, b;
----
QUERY PLAN
Sort in batches
  Sort Key: sp.a, sp.b
  ->  Seq Scan on sp  (rows=5000)
Regions: us-east1
(EXPLAIN)

explain select * from sp where id between 1 and 20 order by a, b limit 5;
----
QUERY PLAN
Limit
  ->  Sort in batches
        Sort Key: sp.a, sp.b
        ->  Index Scan using sp_pkey on sp  (rows=20)
              Index Cond: (id >= 1) AND (id <= 20)
Regions: us-east1
(EXPLAIN)

explain select * from sp order by b, a limit 5;
----
QUERY PLAN
Limit
  ->  Sort in batches
        Sort Key: sp.b, sp.a
        ->  Seq Scan on sp  (rows=5000)
Regions: us-east1
(EXPLAIN)

explain select a from sp union all select b from sp order by a limit 5;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: #1
        ->  Union All
              ->  Limit
                    ->  Index Only Scan using sp_a on sp  (rows=5000)
              ->  Limit
                    ->  Sort in batches
                          Sort Key: sp.b
                          ->  Seq Scan on sp  (rows=5000)
Regions: us-east1
(EXPLAIN)

