create table jobs (shard int, id int, state text, primary key (shard, id));
----
(CREATE TABLE)

create index on jobs (state, shard, id);
----
(CREATE INDEX)

insert into jobs select g % 7, g, case when g % 3 = 0 then 'new' else 'done' end from generate_series(1, 3000) as g;
----
(INSERT 0 3000)

analyze jobs;
----
(ANALYZE)

explain update jobs as j set state = 'taken' where (shard, id) in (select shard, id from jobs where state = 'new' order by shard, id limit 3 for update skip locked);
----
QUERY PLAN
Update on jobs
  ->  LockRows
        Locks rows of: j
        ->  Lookup Join
              ->  Unique
                    ->  CTE any_subquery
                          ->  Limit
                                ->  LockRows
                                      Locks rows of: jobs
                                      ->  Index Only Scan using jobs_state_shard_id_idx on jobs  (rows=1000)
                                            Index Cond: (state = 'new')
              ->  Point Lookup using jobs_pkey on jobs j  (rows=1)
                    Index Cond: (shard = outer #1) AND (id = outer #2)
Regions: us-east1
(EXPLAIN)

update jobs as j set state = 'taken' where (shard, id) in (select shard, id from jobs where state = 'new' order by shard, id limit 3 for update skip locked);
----
(UPDATE 3)

select shard, id from jobs where state = 'taken' order by shard, id;
----
shard | id
0 | 21
0 | 42
0 | 63
(SELECT 3)

explain delete from jobs where (shard, id) in (select shard, id from jobs where state = 'new' order by shard, id limit 2 for update skip locked);
----
QUERY PLAN
Delete on jobs
  ->  LockRows
        Locks rows of: jobs
        ->  Lookup Join
              ->  Unique
                    ->  CTE any_subquery
                          ->  Limit
                                ->  LockRows
                                      Locks rows of: jobs
                                      ->  Index Only Scan using jobs_state_shard_id_idx on jobs  (rows=1000)
                                            Index Cond: (state = 'new')
              ->  Point Lookup using jobs_pkey on jobs  (rows=1)
                    Index Cond: (shard = outer #1) AND (id = outer #2)
Regions: us-east1
(EXPLAIN)

delete from jobs where (shard, id) in (select shard, id from jobs where state = 'new' order by shard, id limit 2 for update skip locked) returning shard, id;
----
shard | id
0 | 84
0 | 105
(DELETE 2)

explain with c as (select shard, id from jobs where state = 'new' order by shard, id limit 2 for update) select count(*) from jobs as j where exists (select from c where c.id = j.id);
----
QUERY PLAN
Aggregate
  ->  Hash Semi Join
        Hash Cond: (j.id = #2)
        ->  Seq Scan on jobs j  (rows=3000)
        ->  CTE c
              ->  Limit
                    ->  Index Scan using jobs_state_shard_id_idx on jobs  (rows=1000)
                          Index Cond: (state = 'new')
                          Locks rows
Regions: us-east1
(EXPLAIN)

with c as (select shard, id from jobs where state = 'new' order by shard, id limit 2 for update) select count(*) from jobs as j where exists (select from c where c.id = j.id);
----
count
2
(SELECT 1)

with c as (select random() as r, g from generate_series(1, 5) as g) select count(*) from jobs as j where exists (select from c where c.g = j.id and c.r < 2);
----
count
5
(SELECT 1)

