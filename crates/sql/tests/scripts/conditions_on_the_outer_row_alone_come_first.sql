-- What EXISTS and IN say of the outer row alone is tested before a partner is looked for.
create table o (id int primary key, c int, k int);
----
(CREATE TABLE)

create table i (id int primary key, k int, v int);
----
(CREATE TABLE)

insert into o select g, g % 50, g % 40 from generate_series(1, 2000) g;
----
(INSERT 0 2000)

insert into i select g, g % 40, g from generate_series(1, 8000) g;
----
(INSERT 0 8000)

create index i_k on i (k);
----
(CREATE INDEX)

analyze;
----
(ANALYZE)

explain select count(*) from o where exists (select 1 from i where i.k = o.k and o.c = 3);
----
QUERY PLAN
Aggregate
  ->  Lookup Semi Join  (rows=40)
        ->  Seq Scan on o  (rows=40)
              Filter: (c = 3)
        ->  Index Only Scan using i_k on i  (rows=200)
              Index Cond: (k = outer #1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from o where exists (select 1 from i where i.k = o.k and (o.c = 3 or o.c is null));
----
QUERY PLAN
Aggregate
  ->  Lookup Semi Join  (rows=40)
        ->  Seq Scan on o  (rows=40)
              Filter: ((c = 3) OR (c IS NULL))
        ->  Index Only Scan using i_k on i  (rows=200)
              Index Cond: (k = outer #1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from o where o.k in (select i.k from i where o.c in (3, 4) and i.v > 7);
----
QUERY PLAN
Aggregate
  ->  Lookup Semi Join  (rows=80)
        ->  Seq Scan on o  (rows=80)
              Filter: (c IN (3, 4))
        ->  Index Scan using i_k on i  (rows=200)
              Index Cond: (k = outer #1)
              Filter: (v > 7)
Regions: us-east1
(EXPLAIN)

select count(*) from o where exists (select 1 from i where i.k = o.k and (o.c = 3 or o.c is null));
----
count
40
(SELECT 1)

select count(*) from o where o.k in (select i.k from i where o.c in (3, 4) and i.v > 7);
----
count
80
(SELECT 1)

select count(*) from o where not exists (select 1 from i where i.k = o.k and o.c = 3);
----
count
1960
(SELECT 1)

select count(*) from o where exists (select 1 from i where i.k = o.k and o.c = 3 and o.id > 1000 + i.v);
----
count
19
(SELECT 1)

-- An ordered walk finds nothing for outer rows without a partner, of which there are many here.
create index i_v_k on i (v, k);
----
(CREATE INDEX)

explain select (select i.id from i where i.k = o.id order by i.v limit 1) from o;
----
QUERY PLAN
Seq Scan on o  (rows=2000)
  SubPlan
        ->  Limit
              ->  Sort
                    Sort Key: i.v
                    ->  Index Scan using i_k on i  (rows=4)
                          Index Cond: (k = outer #1)
Regions: us-east1
(EXPLAIN)

explain select (select i.id from i where i.k = o.c order by i.v limit 1) from o;
----
QUERY PLAN
Seq Scan on o  (rows=2000)
  SubPlan
        ->  Limit
              ->  Sort
                    Sort Key: i.v
                    ->  Index Scan using i_k on i  (rows=160)
                          Index Cond: (k = outer #1)
Regions: us-east1
(EXPLAIN)

select count(*), sum(x) from (select (select i.id from i where i.k = o.id order by i.v desc limit 1) x from o) q;
----
count | sum
2000 | 311220
(SELECT 1)

drop table o;
----
(DROP TABLE)

drop table i;
----
(DROP TABLE)

