-- A select list is above the sort as far as it may be.
create table t (id int primary key, v int);
----
(CREATE TABLE)

explain select id from t order by v + 0 limit (select 2);
----
QUERY PLAN
Limit
  ->  Sort in batches
        Sort Key: (t.v + 0)
        ->  Seq Scan on t
        SubPlan
              ->  Result
  SubPlan
        ->  Result
Regions: us-east1
(EXPLAIN)

explain select (select 1), id from t order by v limit 2;
----
QUERY PLAN
Limit
  ->  Sort in batches
        Sort Key: t.v
        ->  Seq Scan on t
        SubPlan
              ->  Result
Regions: us-east1
(EXPLAIN)

explain select v as x, id from t order by x;
----
QUERY PLAN
Sort in batches
  Sort Key: t.v
  ->  Seq Scan on t
Regions: us-east1
(EXPLAIN)

explain select v + 1, id from t order by v limit 2;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: t.v
        ->  Seq Scan on t
Regions: us-east1
(EXPLAIN)

explain select id from t order by v nulls first, id desc nulls last limit 2;
----
QUERY PLAN
Limit
  ->  Sort in batches
        Sort Key: t.v NULLS FIRST, t.id DESC NULLS LAST
        ->  Seq Scan on t
Regions: us-east1
(EXPLAIN)

set max_parallel_workers_per_gather = 0;
----
(SET)

