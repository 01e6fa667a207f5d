create table tasks (id int primary key, state text);
----
(CREATE TABLE)

create index on tasks (state, id);
----
(CREATE INDEX)

insert into tasks select g, case when g % 3 = 0 then 'new' else 'done' end from generate_series(1, 3000) as g;
----
(INSERT 0 3000)

analyze tasks;
----
(ANALYZE)

explain with c as (select id from tasks where state = 'new' order by id limit 3 for update skip locked) update tasks as t set state = 'taken' from c where c.id = t.id returning t.id;
----
QUERY PLAN
Update on tasks
  ->  LockRows
        Locks rows of: t
        ->  Lookup Join
              ->  CTE c
                    ->  Limit
                          ->  LockRows
                                Locks rows of: tasks
                                ->  Index Only Scan using tasks_state_id_idx on tasks  (rows=1000)
                                      Index Cond: (state = 'new')
              ->  Point Lookup using tasks_pkey on tasks t  (rows=1)
                    Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

explain with c as (select id from tasks where state = 'new' order by id limit 3 for update skip locked) update tasks as t set state = 'taken' where t.id in (select id from c) returning t.id;
----
QUERY PLAN
Update on tasks
  ->  Point Lookup using tasks_pkey on tasks t  (rows=10)
        Index Cond: (id = ANY ((SubPlan)))
        Locks rows
        SubPlan
              ->  CTE c
                    ->  Limit
                          ->  LockRows
                                Locks rows of: tasks
                                ->  Index Only Scan using tasks_state_id_idx on tasks  (rows=1000)
                                      Index Cond: (state = 'new')
Regions: us-east1
(EXPLAIN)

explain with c as (select id from tasks where state = 'new' order by id limit 3 for update skip locked) delete from tasks as t using c where c.id = t.id returning t.id;
----
QUERY PLAN
Delete on tasks
  ->  LockRows
        Locks rows of: t
        ->  Lookup Join
              ->  CTE c
                    ->  Limit
                          ->  LockRows
                                Locks rows of: tasks
                                ->  Index Only Scan using tasks_state_id_idx on tasks  (rows=1000)
                                      Index Cond: (state = 'new')
              ->  Point Lookup using tasks_pkey on tasks t  (rows=1)
                    Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

