create table people (id int primary key, credit int, town text);
----
(CREATE TABLE)

create table orders (id int primary key, person int, total int, town text);
----
(CREATE TABLE)

insert into people select g, case when g % 9 = 0 then null else g % 120 end, case when g % 7 = 0 then null else 'town ' || g % 5 end from generate_series(1, 600) as g;
----
(INSERT 0 600)

insert into orders select g, case when g % 13 = 0 then null else (g * 7) % 700 end, case when g % 17 = 0 then null else g % 100 end, case when g % 29 = 0 then null else 'town ' || g % 3 end from generate_series(1, 4000) as g;
----
(INSERT 0 4000)

analyze people;
----
(ANALYZE)

analyze orders;
----
(ANALYZE)

explain select count(*) from people as p where p.credit >= all (select total from orders as o where o.person = p.id);
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join  (rows=500)
        Hash Cond: (p.id = o.person)
        ->  Seq Scan on people p  (rows=600)
        ->  Seq Scan on orders o  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.credit > all (select total from orders as o where o.person = p.id and o.total is not null);
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join  (rows=500)
        Hash Cond: (p.id = o.person)
        ->  Seq Scan on people p  (rows=600)
        ->  Seq Scan on orders o  (rows=3765)
              Filter: (NOT (total IS NULL))
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.credit < any (select total from orders as o where o.person = p.id);
----
QUERY PLAN
Aggregate
  ->  Hash Semi Join  (rows=100)
        Hash Cond: (p.id = o.person)
        ->  Seq Scan on people p  (rows=600)
        ->  Seq Scan on orders o  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where not p.credit >= all (select total from orders as o where o.person = p.id);
----
QUERY PLAN
Aggregate
  ->  Hash Semi Join  (rows=100)
        Hash Cond: (p.id = o.person)
        ->  Seq Scan on people p  (rows=600)
        ->  Seq Scan on orders o  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where not p.credit < any (select total from orders as o where o.person = p.id);
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join  (rows=500)
        Hash Cond: (p.id = o.person)
        ->  Seq Scan on people p  (rows=600)
        ->  Seq Scan on orders o  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.credit not in (select total from orders as o where o.person = p.id);
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join  (rows=500)
        Hash Cond: (p.id = o.person)
        ->  Seq Scan on people p  (rows=600)
        ->  Seq Scan on orders o  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.credit <> all (select total from orders as o where o.person = p.id and o.town = p.town);
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join  (rows=500)
        Hash Cond: (p.id = o.person) AND (p.town = o.town)
        ->  Seq Scan on people p  (rows=600)
        ->  Seq Scan on orders o  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.credit in (select total from orders as o where o.person = p.id);
----
QUERY PLAN
Aggregate
  ->  Hash Semi Join  (rows=100)
        Hash Cond: (p.credit = o.total) AND (p.id = o.person)
        ->  Seq Scan on people p  (rows=600)
        ->  Seq Scan on orders o  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where not p.credit = all (select total + 1 from orders as o where o.person = p.id);
----
QUERY PLAN
Aggregate
  ->  Hash Semi Join  (rows=100)
        Hash Cond: (p.id = o.person)
        ->  Seq Scan on people p  (rows=600)
        ->  Seq Scan on orders o  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.town <= all (select town from orders as o where o.person = p.id and o.id % 2 = 0);
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join  (rows=560)
        Hash Cond: (p.id = o.person)
        ->  Seq Scan on people p  (rows=600)
        ->  Seq Scan on orders o  (rows=40)
              Filter: ((id % 2) = 0)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where (p.id, p.credit) not in (select person, total from orders as o where o.town = p.town);
----
QUERY PLAN
Aggregate
  ->  Seq Scan on people p  (rows=300)
        Filter: (NOT (SubPlan))
        SubPlan
              ->  Seq Scan on orders o  (rows=800)
                    Filter: (town = outer #1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.credit > all (select total from orders as o where o.id > p.id);
----
QUERY PLAN
Aggregate
  ->  Seq Scan on people p  (rows=300)
        Filter: (SubPlan)
        SubPlan
              ->  Index Scan using orders_pkey on orders o  (rows=667)
                    Index Cond: (id > outer #1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.credit < any (select max(total) from orders as o where o.person = p.id);
----
QUERY PLAN
Aggregate
  ->  Seq Scan on people p  (rows=300)
        Filter: (SubPlan)
        SubPlan
              ->  Aggregate in batches
                    ->  Seq Scan on orders o  (rows=7)
                          Filter: (person = outer #1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.credit <= all (select total from orders as o where o.person = p.id order by total limit 2);
----
QUERY PLAN
Aggregate
  ->  Seq Scan on people p  (rows=300)
        Filter: (SubPlan)
        SubPlan
              ->  Limit
                    ->  Sort in batches
                          Sort Key: o.total
                          ->  Seq Scan on orders o  (rows=7)
                                Filter: (person = outer #1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p where p.credit > all (select total from orders as o where o.person is null);
----
QUERY PLAN
Aggregate
  ->  Seq Scan on people p  (rows=300)
        Filter: (SubPlan)
        SubPlan
              ->  Seq Scan on orders o  (rows=307)
                    Filter: (person IS NULL)
Regions: us-east1
(EXPLAIN)

