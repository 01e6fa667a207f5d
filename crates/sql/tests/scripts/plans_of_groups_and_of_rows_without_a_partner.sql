create table p (id int primary key, k int);
----
(CREATE TABLE)

create table c (id int primary key, pid int not null, v int, f float8);
----
(CREATE TABLE)

create index c_pid on c (pid);
----
(CREATE INDEX)

insert into p select i, i % 7 from generate_series(1, 2000) i;
----
(INSERT 0 2000)

insert into c select i, i % 2000 + 1, i % 9, 0 from generate_series(1, 10000) i;
----
(INSERT 0 10000)

analyze p;
----
(ANALYZE)

analyze c;
----
(ANALYZE)

explain select p.id, (select count(*) from c where c.pid = p.id) from p;
----
QUERY PLAN
Hash Left Join  (rows=2000)
  Hash Cond: (p.id = c.pid)
  ->  Seq Scan on p  (rows=2000)
  ->  Group in batches
        Group Key: c.pid
        ->  Seq Scan on c  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select p.id, (select count(*) from c where c.pid = p.id) from p limit 3;
----
QUERY PLAN
Limit
  ->  Seq Scan on p  (rows=2000)
        SubPlan
              ->  Aggregate
                    ->  Index Only Scan using c_pid on c  (rows=5)
                          Index Cond: (pid = outer #1)
Regions: us-east1
(EXPLAIN)

explain select p.id, (select count(*) from c where c.pid = p.id) from p where p.id < 4;
----
QUERY PLAN
Index Scan using p_pkey on p  (rows=3)
  Index Cond: (id < 4)
  SubPlan
        ->  Aggregate
              ->  Index Only Scan using c_pid on c  (rows=5)
                    Index Cond: (pid = outer #1)
Regions: us-east1
(EXPLAIN)

explain select p.id, (select count(*) from c where c.pid = p.id) n from p order by n desc limit 3;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: COALESCE(count(), 0) DESC
        ->  Hash Left Join  (rows=2000)
              Hash Cond: (p.id = c.pid)
              ->  Seq Scan on p  (rows=2000)
              ->  Group in batches
                    Group Key: c.pid
                    ->  Seq Scan on c  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from p where (select count(*) from c where c.pid = p.id) > 3;
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: (COALESCE(count(), 0) > 3)
        ->  Hash Left Join  (rows=2000)
              Hash Cond: (p.id = c.pid)
              ->  Seq Scan on p  (rows=2000)
              ->  Group in batches
                    Group Key: c.pid
                    ->  Seq Scan on c  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from p where p.k = 0 or (select count(*) from c where c.pid = p.id) > 3;
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: ((p.k = 0) OR (COALESCE(count(), 0) > 3))
        ->  Hash Left Join  (rows=2000)
              Hash Cond: (p.id = c.pid)
              ->  Seq Scan on p  (rows=2000)
              ->  Group in batches
                    Group Key: c.pid
                    ->  Seq Scan on c  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select p.id, case when p.k = 0 then (select count(*) from c where c.pid = p.id) end from p;
----
QUERY PLAN
Seq Scan on p  (rows=2000)
  SubPlan
        ->  Aggregate
              ->  Index Only Scan using c_pid on c  (rows=5)
                    Index Cond: (pid = outer #1)
Regions: us-east1
(EXPLAIN)

explain select p.id, (select sum(f) from c where c.pid = p.id) from p;
----
QUERY PLAN
Seq Scan on p  (rows=2000)
  SubPlan
        ->  Aggregate
              ->  Index Scan using c_pid on c  (rows=5)
                    Index Cond: (pid = outer #1)
Regions: us-east1
(EXPLAIN)

explain select p.id, (select count(*) from (select distinct v from c where c.pid = p.id) s) from p;
----
QUERY PLAN
Seq Scan on p  (rows=2000)
  SubPlan
        ->  Aggregate
              ->  Unique
                    ->  Index Scan using c_pid on c  (rows=5)
                          Index Cond: (pid = outer #1)
Regions: us-east1
(EXPLAIN)

explain select p.id, (select count(*) from c where c.pid = 8 / p.k) from p;
----
QUERY PLAN
Seq Scan on p  (rows=2000)
  SubPlan
        ->  Aggregate
              ->  Index Only Scan using c_pid on c  (rows=5)
                    Index Cond: (pid = (8 / outer #1))
Regions: us-east1
(EXPLAIN)

explain select exists (select 1 from p where (select count(*) from c where c.pid = p.id) > 3);
----
QUERY PLAN
Result
  SubPlan
        ->  Seq Scan on p  (rows=667)
              Filter: ((SubPlan) > 3)
              SubPlan
                    ->  Aggregate
                          ->  Index Only Scan using c_pid on c  (rows=5)
                                Index Cond: (pid = outer #1)
Regions: us-east1
(EXPLAIN)

explain select (select count(*) from p q where q.k = p.k and (select count(*) from c where c.pid = q.id) > 3) from p where id < 3;
----
QUERY PLAN
Index Scan using p_pkey on p  (rows=2)
  Index Cond: (id < 3)
  SubPlan
        ->  Aggregate
              ->  Seq Scan on p q  (rows=95)
                    Filter: (k = outer #1) AND ((SubPlan) > 3)
                    SubPlan
                          ->  Aggregate
                                ->  Index Only Scan using c_pid on c  (rows=5)
                                      Index Cond: (pid = outer #1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from p left join c on c.pid = p.id where c.id is null;
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join  (rows=1)
        Hash Cond: (p.id = c.pid)
        ->  Seq Scan on p  (rows=2000)
        ->  Seq Scan on c  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from p left join c on c.pid = p.id where c.v is null;
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: (c.v IS NULL)
        ->  Hash Right Join  (rows=10000)
              Hash Cond: (c.pid = p.id)
              ->  Seq Scan on c  (rows=10000)
              ->  Seq Scan on p  (rows=2000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from p left join c on c.pid = p.id where c.pid is null;
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join  (rows=1)
        Hash Cond: (p.id = c.pid)
        ->  Seq Scan on p  (rows=2000)
        ->  Seq Scan on c  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from p where not exists (select 1 from c where c.pid = p.id);
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join  (rows=1)
        Hash Cond: (p.id = c.pid)
        ->  Seq Scan on p  (rows=2000)
        ->  Seq Scan on c  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from p where exists (select 1 from c where c.pid = p.id);
----
QUERY PLAN
Aggregate
  ->  Hash Semi Join  (rows=2000)
        Hash Cond: (p.id = c.pid)
        ->  Seq Scan on p  (rows=2000)
        ->  Seq Scan on c  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from p where p.id < 20 and not exists (select 1 from c where c.pid = p.id);
----
QUERY PLAN
Aggregate
  ->  Lookup Anti Join  (rows=1)
        ->  Index Scan using p_pkey on p  (rows=20)
              Index Cond: (id < 20)
        ->  Index Only Scan using c_pid on c  (rows=5)
              Index Cond: (pid = outer #1)
Regions: us-east1
(EXPLAIN)

