create table people (id int primary key, name text, email text unique, town_id int, boss int);
----
(CREATE TABLE)

create table towns (id int primary key, name text, region int, code int);
----
(CREATE TABLE)

create unique index towns_code on towns (region, code);
----
(CREATE INDEX)

insert into towns select g, 'town ' || g, g % 4, g from generate_series(1, 20) as g;
----
(INSERT 0 20)

insert into people select g, 'p' || g, case when g % 5 > 0 then 'e' || g end, case when g % 7 > 0 then g % 25 end, nullif(g % 10, 3) from generate_series(1, 200) as g;
----
(INSERT 0 200)

explain select count(*), sum(p.id) from people as p left join towns as t on t.id = p.town_id;
----
QUERY PLAN
Aggregate in batches
  ->  Seq Scan on people p
Regions: us-east1
(EXPLAIN)

explain select p.id, p.name from people as p left join towns as t on p.town_id = t.id left join people as b on b.id = p.boss where p.id < 4 order by p.id;
----
QUERY PLAN
Index Scan using people_pkey on people p
  Index Cond: (id < 4)
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p left join towns as t on t.id = p.town_id + 1 and t.name > 'town 2';
----
QUERY PLAN
Aggregate in batches
  ->  Seq Scan on people p
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p left join towns as t on t.region = p.boss and t.code = p.town_id;
----
QUERY PLAN
Aggregate in batches
  ->  Seq Scan on people p
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p left join towns as t on t.region = 2 and t.code = p.town_id;
----
QUERY PLAN
Aggregate in batches
  ->  Seq Scan on people p
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p left join people as q on q.email = p.name;
----
QUERY PLAN
Aggregate in batches
  ->  Seq Scan on people p
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p left join towns as t on t.region = p.boss;
----
QUERY PLAN
Aggregate
  ->  Hash Left Join
        Hash Cond: (p.boss = t.region)
        ->  Seq Scan on people p
        ->  Seq Scan on towns t
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p left join towns as t on t.name = p.name;
----
QUERY PLAN
Aggregate
  ->  Hash Left Join
        Hash Cond: (p.name = t.name)
        ->  Seq Scan on people p
        ->  Seq Scan on towns t
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p left join towns as t on t.code = p.town_id and t.region > 1;
----
QUERY PLAN
Aggregate
  ->  Hash Left Join
        Hash Cond: (p.town_id = t.code)
        ->  Seq Scan on people p
        ->  Index Only Scan using towns_code on towns t
              Index Cond: (region > 1)
Regions: us-east1
(EXPLAIN)

explain select count(t.id) from people as p left join towns as t on t.id = p.town_id;
----
QUERY PLAN
Aggregate
  ->  Hash Left Join
        Hash Cond: (p.town_id = t.id)
        ->  Seq Scan on people p
        ->  Seq Scan on towns t
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p left join towns as t on t.id = p.town_id where t.id is null;
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join
        Hash Cond: (p.town_id = t.id)
        ->  Seq Scan on people p
        ->  Seq Scan on towns t
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p join towns as t on t.id = p.town_id;
----
QUERY PLAN
Aggregate
  ->  Hash Join
        Hash Cond: (p.town_id = t.id)
        ->  Seq Scan on people p
        ->  Seq Scan on towns t
Regions: us-east1
(EXPLAIN)

explain select count(*) from people as p full join towns as t on t.id = p.town_id;
----
QUERY PLAN
Aggregate
  ->  Hash Full Join
        Hash Cond: (p.town_id = t.id)
        ->  Seq Scan on people p
        ->  Seq Scan on towns t
Regions: us-east1
(EXPLAIN)

explain select count(*) from towns as t right join people as p on t.id = p.town_id;
----
QUERY PLAN
Aggregate in batches
  ->  Seq Scan on people p
Regions: us-east1
(EXPLAIN)

explain select p.id from people as p left join towns as t on t.id = p.town_id order by t.name nulls first, p.id limit 3;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: t.name NULLS FIRST, p.id
        ->  Hash Left Join
              Hash Cond: (p.town_id = t.id)
              ->  Seq Scan on people p
              ->  Seq Scan on towns t
Regions: us-east1
(EXPLAIN)

explain select count(*) from (select p.id, t.name from people as p left join towns as t on t.id = p.town_id) as x;
----
QUERY PLAN
Aggregate in batches
  ->  Seq Scan on people p
Regions: us-east1
(EXPLAIN)

explain select p.id from people as p left join towns as t on t.id = p.town_id and random() < 2 where p.id = 5;
----
QUERY PLAN
Lookup Left Join
  ->  Point Lookup using people_pkey on people p
        Index Cond: (id = 5)
  ->  Point Lookup using towns_pkey on towns t
        Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

