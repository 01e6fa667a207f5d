create table lk (id int primary key, v int, k int, index (k, v));
----
(CREATE TABLE)

create table jobs (id int primary key, state text, priority int);
----
(CREATE TABLE)

-- The scan locks rows where it gives them as they are wanted.
explain select * from lk where v = 1 for update;
----
QUERY PLAN
Seq Scan on lk
  Filter: (v = 1)
  Locks rows
Regions: us-east1
(EXPLAIN)

explain select * from lk where v = 1 order by k for update skip locked;
----
QUERY PLAN
Index Scan using lk_k_v_idx on lk
  Filter: (v = 1)
  Locks rows
Regions: us-east1
(EXPLAIN)

explain select * from lk where k = 1 order by v desc limit 2 for update;
----
QUERY PLAN
Limit
  ->  Index Scan Backward using lk_k_v_idx on lk
        Index Cond: (k = 1)
        Locks rows
Regions: us-east1
(EXPLAIN)

explain select * from lk where v = 3 order by id limit 1 for update nowait;
----
QUERY PLAN
Limit
  ->  Seq Scan on lk
        Filter: (v = 3)
        Locks rows
Regions: us-east1
(EXPLAIN)

explain select * from lk where id = 3 limit 1 for update skip locked;
----
QUERY PLAN
Limit
  ->  Point Lookup using lk_pkey on lk
        Index Cond: (id = 3)
        Locks rows
Regions: us-east1
(EXPLAIN)

-- Who skips rows takes no more of them than the limit.
explain select * from jobs where state = 'new' order by priority desc, id limit 1 for update skip locked;
----
QUERY PLAN
Limit
  ->  LockRows
        Locks rows of: jobs
        ->  Sort in batches
              Sort Key: jobs.priority DESC, jobs.id
              ->  Seq Scan on jobs
                    Filter: (state = 'new')
Regions: us-east1
(EXPLAIN)

explain select * from jobs where state = 'new' order by id limit 1 for update skip locked;
----
QUERY PLAN
Limit
  ->  LockRows
        Locks rows of: jobs
        ->  Seq Scan on jobs
              Filter: (state = 'new')
Regions: us-east1
(EXPLAIN)

-- So does who sorts, and who reads an OR by its sides.
explain select * from lk where v = 3 order by v + k desc limit 2 for update;
----
QUERY PLAN
Limit
  ->  LockRows
        Locks rows of: lk
        ->  Sort
              Sort Key: column 4 DESC
              ->  Seq Scan on lk
                    Filter: (v = 3)
Regions: us-east1
(EXPLAIN)

explain select * from lk where id = 3 or k = 3 limit 2 for update;
----
QUERY PLAN
Limit
  ->  LockRows
        Locks rows of: lk
        ->  Union All
              ->  Point Lookup using lk_pkey on lk
                    Index Cond: (id = 3)
              ->  Index Only Scan using lk_k_v_idx on lk
                    Index Cond: (k = 3)
                    Filter: (NOT ((id = 3) IS TRUE))
Regions: us-east1
(EXPLAIN)

-- Of joined tables those rows are locked that are in the result.
explain select lk.id from lk join jobs on jobs.priority = lk.v for update of jobs for share of lk;
----
QUERY PLAN
LockRows
  Locks rows of: lk, jobs
  ->  Hash Join
        Hash Cond: (lk.v = jobs.priority)
        ->  Seq Scan on lk
        ->  Seq Scan on jobs
Regions: us-east1
(EXPLAIN)

explain select lk.id from lk, jobs where jobs.id = lk.v and lk.k = 1 order by lk.v limit 3 for no key update;
----
QUERY PLAN
Limit
  ->  LockRows
        Locks rows of: lk, jobs
        ->  Lookup Join
              ->  Index Only Scan using lk_k_v_idx on lk
                    Index Cond: (k = 1)
              ->  Point Lookup using jobs_pkey on jobs
                    Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

