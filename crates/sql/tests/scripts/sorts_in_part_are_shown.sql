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

create table sk (id int primary key, a int, b int);
----
(CREATE TABLE)

create index sk_a on sk (a);
----
(CREATE INDEX)

insert into sk select i, case when i % 10 = 0 then i else 0 end, i % 100 from generate_series(1, 5000) i;
----
(INSERT 0 5000)

analyze sk;
----
(ANALYZE)

-- Most rows have the first value.
explain select * from sk order by a, b limit 5;
----
QUERY PLAN
Limit
  ->  Sort in batches
        Sort Key: sk.a, sk.b
        ->  Seq Scan on sk  (rows=5000)
Regions: us-east1
(EXPLAIN)

-- A condition that the index does not answer may be met late.
explain select * from sp where b = 3 order by a, id desc limit 1;
----
QUERY PLAN
Limit
  ->  Incremental Sort
        Sort Key: sp.a, sp.id DESC
        Presorted Key: sp.a
        ->  Index Scan using sp_a on sp  (rows=50)
              Filter: (b = 3)
Regions: us-east1
(EXPLAIN)

