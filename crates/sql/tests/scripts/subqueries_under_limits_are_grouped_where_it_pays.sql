create table lu (id int primary key, name text, score int);
----
(CREATE TABLE)

create table lo (id int primary key, u int not null, amount int);
----
(CREATE TABLE)

insert into lu select i, 'u' || i, i % 17 from generate_series(1, 1000) i;
----
(INSERT 0 1000)

insert into lo select i, i % 900 + 1, i % 50 from generate_series(1, 5000) i;
----
(INSERT 0 5000)

analyze lu;
----
(ANALYZE)

analyze lo;
----
(ANALYZE)

-- All are computed to know which are the first.
explain select id, (select count(*) from lo where lo.u = lu.id) as n from lu order by n desc, id limit 3;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: COALESCE(count(), 0) DESC, lu.id
        ->  Hash Left Join  (rows=1000)
              Hash Cond: (lu.id = lo.u)
              ->  Seq Scan on lu  (rows=1000)
              ->  Group in batches
                    Group Key: lo.u
                    ->  Seq Scan on lo  (rows=5000)
Regions: us-east1
(EXPLAIN)

select id, (select count(*) from lo where lo.u = lu.id) as n from lu order by n desc, id limit 3;
----
id | n
2 | 6
3 | 6
4 | 6
(SELECT 3)

explain select id from lu where (select sum(amount) from lo where lo.u = lu.id) > 140 order by name limit 3;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: lu.name
        ->  Hash Join  (rows=300)
              Hash Cond: (lu.id = lo.u)
              ->  Seq Scan on lu  (rows=1000)
              ->  Filter
                    Filter: (sum() > 140)
                    ->  Group in batches
                          Group Key: lo.u
                          ->  Seq Scan on lo  (rows=5000)
Regions: us-east1
(EXPLAIN)

select id from lu where (select sum(amount) from lo where lo.u = lu.id) > 140 order by name limit 3;
----
id
100
125
126
(SELECT 3)

-- Ten rows look for their own, which have no index: all are grouped.
explain select id, (select count(*) from lo where lo.u = lu.id) as n from lu limit 10;
----
QUERY PLAN
Limit
  ->  Hash Left Join  (rows=1000)
        Hash Cond: (lu.id = lo.u)
        ->  Seq Scan on lu  (rows=1000)
        ->  Group in batches
              Group Key: lo.u
              ->  Seq Scan on lo  (rows=5000)
Regions: us-east1
(EXPLAIN)

-- Two rows do not.
explain select id, (select count(*) from lo where lo.u = lu.id) as n from lu order by id limit 2;
----
QUERY PLAN
Limit
  ->  Seq Scan on lu  (rows=1000)
        SubPlan
              ->  Aggregate in batches
                    ->  Seq Scan on lo  (rows=5)
                          Filter: (u = outer #1)
Regions: us-east1
(EXPLAIN)

-- No sort needs it: it is computed for the rows that are left.
explain select id, (select count(*) from lo where lo.u = lu.id) as n from lu order by score limit 2;
----
QUERY PLAN
Limit
  ->  Sort in batches
        Sort Key: lu.score
        ->  Seq Scan on lu  (rows=1000)
        SubPlan
              ->  Aggregate in batches
                    ->  Seq Scan on lo  (rows=5)
                          Filter: (u = outer #1)
Regions: us-east1
(EXPLAIN)

create index lo_u on lo (u);
----
(CREATE INDEX)

analyze lo;
----
(ANALYZE)

-- An index has each row's.
explain select id, (select count(*) from lo where lo.u = lu.id) as n from lu order by id limit 10;
----
QUERY PLAN
Limit
  ->  Seq Scan on lu  (rows=1000)
        SubPlan
              ->  Aggregate
                    ->  Index Only Scan using lo_u on lo  (rows=5)
                          Index Cond: (u = outer #1)
Regions: us-east1
(EXPLAIN)

explain select id, (select count(*) from lo where lo.u = lu.id) as n from lu order by id limit 900;
----
QUERY PLAN
Limit
  ->  Hash Left Join  (rows=1000)
        Hash Cond: (lu.id = lo.u)
        ->  Seq Scan on lu  (rows=1000)
        ->  Group in batches
              Group Key: lo.u
              ->  Seq Scan on lo  (rows=5000)
Regions: us-east1
(EXPLAIN)

explain select id from (select id, score, (select count(*) from lo where lo.u = lu.id) as n from lu) s where n > 4 order by score, id limit 5;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: lu.score, lu.id
        ->  Filter
              Filter: (COALESCE(count(), 0) > 4)
              ->  Hash Left Join  (rows=1000)
                    Hash Cond: (lu.id = lo.u)
                    ->  Seq Scan on lu  (rows=1000)
                    ->  Group in batches
                          Group Key: lo.u
                          ->  Seq Scan on lo  (rows=5000)
Regions: us-east1
(EXPLAIN)

select id from (select id, score, (select count(*) from lo where lo.u = lu.id) as n from lu) s where n > 4 order by score, id limit 5;
----
id
17
34
51
68
85
(SELECT 5)

