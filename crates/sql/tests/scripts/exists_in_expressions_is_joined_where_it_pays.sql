create table people (id int primary key, town text, active bool, limit_id int);
----
(CREATE TABLE)

create table orders (id int primary key, person int, status text, total int);
----
(CREATE TABLE)

insert into people select g, case when g % 7 = 0 then null else 'town ' || g % 5 end, case g % 3 when 0 then null when 1 then true else false end, case when g % 11 = 0 then null else g % 50 end from generate_series(1, 600) as g;
----
(INSERT 0 600)

insert into orders select g, case when g % 13 = 0 then null else (g * 7) % 700 end, case when g % 4 = 0 then null else 'state ' || g % 4 end, g % 100 from generate_series(1, 4000) as g;
----
(INSERT 0 4000)

analyze people;
----
(ANALYZE)

analyze orders;
----
(ANALYZE)

explain select count(*) from people as p where p.active or exists (select 1 from orders as o where o.person = p.id and o.status = 'state 1');
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: (p.active OR (NOT (o.person IS NULL)))
        ->  Hash Left Join  (rows=600)
              Hash Cond: (p.id = o.person)
              ->  Seq Scan on people p  (rows=600)
              ->  Unique
                    ->  Seq Scan on orders o  (rows=1000)
                          Filter: (status = 'state 1')
Regions: us-east1
(EXPLAIN)

explain select case when exists (select 1 from orders as o where o.person = p.id and o.total > 95) then 'big' else 'small' end as k, count(*) from people as p group by 1 order by 1;
----
QUERY PLAN
Sort
  Sort Key: key
  ->  Group
        Group Key: CASE
        ->  Hash Left Join  (rows=600)
              Hash Cond: (p.id = o.person)
              ->  Seq Scan on people p  (rows=600)
              ->  Unique
                    ->  Seq Scan on orders o  (rows=200)
                          Filter: (total > 95)
Regions: us-east1
(EXPLAIN)

explain select count(*), count(*) filter (where e), count(*) filter (where e is null) from (select exists (select 1 from orders as o where o.person = p.limit_id and o.status = 'state 2') as e from people as p) as x;
----
QUERY PLAN
Aggregate
  ->  Hash Left Join  (rows=600)
        Hash Cond: (p.limit_id = o.person)
        ->  Seq Scan on people p  (rows=600)
        ->  Unique
              ->  Seq Scan on orders o  (rows=1000)
                    Filter: (status = 'state 2')
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where (p.active and exists (select 1 from orders as o where o.person = p.id and o.total < 10)) or (not p.active and not exists (select 1 from orders as o where o.person = p.id and o.total < 50));
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: ((p.active AND (NOT (o.person IS NULL))) OR ((NOT p.active) AND (NOT (NOT (o.person IS NULL)))))
        ->  Hash Left Join  (rows=600)
              Hash Cond: (p.id = o.person)
              ->  Hash Left Join  (rows=600)
                    Hash Cond: (p.id = o.person)
                    ->  Seq Scan on people p  (rows=600)
                    ->  Unique
                          ->  Seq Scan on orders o  (rows=440)
                                Filter: (total < 10)
              ->  Unique
                    ->  Seq Scan on orders o  (rows=2040)
                          Filter: (total < 50)
Regions: us-east1
(EXPLAIN)

explain select p.id from people as p where p.id = 77 or exists (select 1 from orders as o where o.person = p.id and o.total = p.limit_id) order by 1 limit 8;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: p.id
        ->  Filter
              Filter: ((p.id = 77) OR (NOT (o.person IS NULL)))
              ->  Hash Right Join  (rows=600)
                    Hash Cond: (o.person = p.id) AND (o.total = p.limit_id)
                    ->  Unique
                          ->  Seq Scan on orders o  (rows=4000)
                    ->  Seq Scan on people p  (rows=600)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.id = 77 or exists (select 1 from orders as o where o.person = p.id and o.total = p.limit_id);
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: ((p.id = 77) OR (NOT (o.person IS NULL)))
        ->  Hash Right Join  (rows=600)
              Hash Cond: (o.person = p.id) AND (o.total = p.limit_id)
              ->  Unique
                    ->  Seq Scan on orders o  (rows=4000)
              ->  Seq Scan on people p  (rows=600)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.active or exists (select 1 from orders as o where o.person = p.id and o.total > p.limit_id);
----
QUERY PLAN
Aggregate
  ->  Seq Scan on people p  (rows=400)
        Filter: (active OR (SubPlan))
        SubPlan
              ->  Seq Scan on orders o  (rows=2)
                    Filter: (person = outer #1) AND (total > outer #2)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.active or exists (select 1 from orders as o where o.person = p.id and 100 / o.total > 20 and o.total <> 0);
----
QUERY PLAN
Aggregate
  ->  Seq Scan on people p  (rows=400)
        Filter: (active OR (SubPlan))
        SubPlan
              ->  Seq Scan on orders o  (rows=2)
                    Filter: (person = outer #1) AND (total <> 0) AND ((100 / total) > 20)
Regions: us-east1
(EXPLAIN)

explain select count(*), count(l.n), sum(l.n), max(l.m) from people as p left join lateral (select count(*) as n, max(o.total) as m from orders as o where o.person = p.id having count(*) > 5) as l on true;
----
QUERY PLAN
Aggregate
  ->  Hash Left Join  (rows=600)
        Hash Cond: (p.id = o.person)
        ->  Seq Scan on people p  (rows=600)
        ->  Group in batches
              Group Key: o.person
              ->  Seq Scan on orders o  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select count(*), count(l.n), sum(l.n) from people as p left join lateral (select count(*) as n from orders as o where o.person = p.id) as l on l.n > 6 and p.active;
----
QUERY PLAN
Aggregate
  ->  Hash Left Join  (rows=600)
        Hash Cond: (p.id = o.person)
        ->  Seq Scan on people p  (rows=600)
        ->  Group in batches
              Group Key: o.person
              ->  Seq Scan on orders o  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select x.person, x.n, p.town from (select person, count(*) as n from orders group by person) as x join people as p on p.id = x.person where p.id between 5 and 8 order by 1;
----
QUERY PLAN
Sort
  Sort Key: orders.person
  ->  Hash Join  (rows=2)
        Hash Cond: (orders.person = p.id)
        ->  Group in batches
              Group Key: orders.person
              ->  Seq Scan on orders  (rows=37)
                    Filter: (person >= 5) AND (person <= 8)
        ->  Index Scan using people_pkey on people p  (rows=4)
              Index Cond: (id >= 5) AND (id <= 8)
Regions: us-east1
(EXPLAIN)

explain select p.id, x.n from people as p left join (select person, count(*) as n from orders group by person) as x on x.person = p.id where p.id > 594 order by 1;
----
QUERY PLAN
Sort
  Sort Key: p.id
  ->  Hash Right Join  (rows=5)
        Hash Cond: (orders.person = p.id)
        ->  Group in batches
              Group Key: orders.person
              ->  Seq Scan on orders  (rows=554)
                    Filter: (person > 594)
        ->  Index Scan using people_pkey on people p  (rows=5)
              Index Cond: (id > 594)
Regions: us-east1
(EXPLAIN)

explain update people as p set limit_id = x.s from (select person, sum(total) as s from orders group by 1) as x where x.person = p.id and p.id between 300 and 303 returning p.id, p.limit_id;
----
QUERY PLAN
Update on people
  ->  LockRows
        Locks rows of: p
        ->  Hash Join  (rows=1)
              Hash Cond: (orders.person = p.id)
              ->  Group in batches
                    Group Key: orders.person
                    ->  Seq Scan on orders  (rows=37)
                          Filter: (person >= 300) AND (person <= 303)
              ->  Index Scan using people_pkey on people p  (rows=4)
                    Index Cond: (id >= 300) AND (id <= 303)
Regions: us-east1
(EXPLAIN)

explain update people as p set limit_id = -1 where p.active or exists (select 1 from orders as o where o.person = p.id and o.total > 95);
----
QUERY PLAN
Update on people
  ->  LockRows
        Locks rows of: p
        ->  Filter
              Filter: (p.active OR (NOT (o.person IS NULL)))
              ->  Hash Left Join  (rows=600)
                    Hash Cond: (p.id = o.person)
                    ->  Seq Scan on people p  (rows=600)
                    ->  Unique
                          ->  Seq Scan on orders o  (rows=200)
                                Filter: (total > 95)
Regions: us-east1
(EXPLAIN)

explain select p.id from people as p where p.active or exists (select 1 from orders as o where o.person = p.id and o.total > 95) for update;
----
QUERY PLAN
LockRows
  Locks rows of: p
  ->  Filter
        Filter: (p.active OR (NOT (o.person IS NULL)))
        ->  Hash Left Join  (rows=600)
              Hash Cond: (p.id = o.person)
              ->  Seq Scan on people p  (rows=600)
              ->  Unique
                    ->  Seq Scan on orders o  (rows=200)
                          Filter: (total > 95)
Regions: us-east1
(EXPLAIN)

explain delete from people as p where p.limit_id = 7 or not exists (select 1 from orders as o where o.person = p.id and o.status is not null);
----
QUERY PLAN
Delete on people
  ->  LockRows
        Locks rows of: p
        ->  Filter
              Filter: ((p.limit_id = 7) OR (NOT (NOT (o.person IS NULL))))
              ->  Hash Left Join  (rows=600)
                    Hash Cond: (p.id = o.person)
                    ->  Seq Scan on people p  (rows=600)
                    ->  Unique
                          ->  Seq Scan on orders o  (rows=3000)
                                Filter: (NOT (status IS NULL))
Regions: us-east1
(EXPLAIN)

explain select p.id from people as p where p.active or exists (select 1 from orders as o where o.person = p.id and o.total > 95) for update skip locked;
----
QUERY PLAN
Seq Scan on people p  (rows=400)
  Filter: (active OR (SubPlan))
  Locks rows
  SubPlan
        ->  Seq Scan on orders o  (rows=1)
              Filter: (person = outer #1) AND (total > 95)
Regions: us-east1
(EXPLAIN)

