create table eu (id int primary key, city int not null, name text);
----
(CREATE TABLE)

create table eo (id int primary key, usr int not null, city int not null, day date not null);
----
(CREATE TABLE)

create table ei (ord int, line int, city int not null, qty int not null, primary key (ord, line));
----
(CREATE TABLE)

create table ec (id int primary key, zone int not null);
----
(CREATE TABLE)

insert into eu select g, g % 20, 'u' || g from generate_series(1, 300) g;
----
(INSERT 0 300)

insert into eo select g, 1 + g % 300, g % 20, date '1999-12-20' + g % 30 from generate_series(1, 3000) g;
----
(INSERT 0 3000)

insert into ei select 1 + (g - 1) / 4, 1 + (g - 1) % 4, g % 20, g % 7 from generate_series(1, 12000) g;
----
(INSERT 0 12000)

insert into ec select g, g % 4 from generate_series(0, 19) g;
----
(INSERT 0 20)

analyze;
----
(ANALYZE)

explain select count(*) from eu, eo, ec where eu.city = eo.city and eo.city = ec.id and ec.zone = 1 and eu.id < 40;
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=1500)
        Hash Cond: (eo.city = eu.city)
        ->  Seq Scan on eo  (rows=3000)
        ->  Lookup Join  (rows=10)
              ->  Index Scan using eu_pkey on eu  (rows=40)
                    Index Cond: (id < 40)
              ->  Point Lookup using ec_pkey on ec  (rows=1)
                    Index Cond: (id = outer #1)
                    Filter: (zone = 1)
Regions: us-east1
(EXPLAIN)

explain select count(*), sum(qty) from eu, eo, ei, ec where eu.city = ec.id and eo.usr = eu.id and ei.ord = eo.id and ei.city = ec.id and eo.city = ec.id and ec.zone = 2;
----
QUERY PLAN
Aggregate
  ->  Lookup Join  (rows=8)
        ->  Lookup Join  (rows=38)
              ->  Hash Join  (rows=150)
                    Hash Cond: (eo.usr = eu.id) AND (eo.city = eu.city)
                    ->  Seq Scan on eo  (rows=3000)
                    ->  Seq Scan on eu  (rows=300)
              ->  Point Lookup using ec_pkey on ec  (rows=1)
                    Index Cond: (id = outer #1)
                    Filter: (zone = 2)
        ->  Index Scan using ei_pkey on ei  (rows=1)
              Index Cond: (ord = outer #1)
              Filter: (city = outer #2)
Regions: us-east1
(EXPLAIN)

explain select count(*) from ec a, ec b, ec c where a.id = b.id and b.id = c.id and c.id = a.id and a.zone = 3;
----
QUERY PLAN
Aggregate
  ->  Lookup Join  (rows=5)
        ->  Lookup Join  (rows=5)
              ->  Seq Scan on ec a  (rows=5)
                    Filter: (zone = 3)
              ->  Point Lookup using ec_pkey on ec b  (rows=1)
                    Index Cond: (id = outer #1)
        ->  Point Lookup using ec_pkey on ec c  (rows=1)
              Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from eu join eo on eo.usr = eu.id join ei on ei.ord = eo.id where eo.id in (select ord from ei group by ord having sum(qty) > 16);
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=4000)
        Hash Cond: (ei.ord = eo.id)
        ->  Seq Scan on ei  (rows=12000)
        ->  Hash Semi Join  (rows=1000)
              Hash Cond: (eo.id = ei.ord)
              ->  Hash Join  (rows=3000)
                    Hash Cond: (eo.usr = eu.id)
                    ->  Seq Scan on eo  (rows=3000)
                    ->  Seq Scan on eu  (rows=300)
              ->  Filter
                    Filter: (sum() > 16)
                    ->  Group in batches
                          Group Key: ei.ord
                          ->  Seq Scan on ei  (rows=12000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from eo join ei on ei.ord = eo.id where not exists (select 1 from ec where ec.id = eo.city and ec.zone = 1);
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=9000)
        Hash Cond: (ei.ord = eo.id)
        ->  Seq Scan on ei  (rows=12000)
        ->  Hash Anti Join  (rows=2250)
              Hash Cond: (eo.city = ec.id)
              ->  Seq Scan on eo  (rows=3000)
              ->  Seq Scan on ec  (rows=5)
                    Filter: (zone = 1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from eo join ei on ei.ord = eo.id and ei.line = 1 where eo.id < 20 and exists (select 1 from eu where eu.id = eo.usr and eu.city = ei.city);
----
QUERY PLAN
Aggregate
  ->  Lookup Semi Join  (rows=1)
        ->  Lookup Join  (rows=20)
              ->  Index Scan using eo_pkey on eo  (rows=20)
                    Index Cond: (id < 20)
              ->  Point Lookup using ei_pkey on ei  (rows=1)
                    Index Cond: (ord = outer #1) AND (line = 1)
        ->  Point Lookup using eu_pkey on eu  (rows=1)
              Index Cond: (id = outer #1)
              Filter: (outer #2 = city)
Regions: us-east1
(EXPLAIN)

explain select count(*) from ei a join ei b on a.ord = b.ord and a.line = b.line;
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=12000)
        Hash Cond: (a.ord = b.ord) AND (a.line = b.line)
        ->  Seq Scan on ei a  (rows=12000)
        ->  Seq Scan on ei b  (rows=12000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from eo where day < timestamp '2000-01-01';
----
QUERY PLAN
Aggregate in batches
  ->  Seq Scan on eo  (rows=1300)
        Filter: (day < '2000-01-01')
Regions: us-east1
(EXPLAIN)

explain select count(*) from eo where day < timestamp '2000-01-01 12:00';
----
QUERY PLAN
Aggregate in batches
  ->  Seq Scan on eo  (rows=1300)
        Filter: (day <= '2000-01-01')
Regions: us-east1
(EXPLAIN)

explain select count(*) from eo where day >= date '1999-12-25' and day < date '1999-12-25' + interval '1 week';
----
QUERY PLAN
Aggregate in batches
  ->  Seq Scan on eo  (rows=800)
        Filter: (day >= '1999-12-25') AND (day < '2000-01-01')
Regions: us-east1
(EXPLAIN)

explain select id, name, count(*) from (select eu.id, eu.name, eo.id as o from eu join eo on eo.usr = eu.id) s group by id, name order by id limit 2;
----
QUERY PLAN
Limit
  ->  Group in order
        Group Key: eu.id, eu.name
        ->  Nested Loop Join  (rows=3000)
              ->  Seq Scan on eu  (rows=300)
              ->  Seq Scan on eo  (rows=10)
                    Filter: (usr = outer #1)
Regions: us-east1
(EXPLAIN)

explain select eu.id, eu.name, count(*) from eu join eo on eo.usr = eu.id group by eu.id having max(eu.city) < 3 order by eu.name limit 3;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: eu.name
        ->  Filter
              Filter: (max() < 3)
              ->  Group
                    Group Key: eu.id, eu.name
                    ->  Hash Join  (rows=3000)
                          Hash Cond: (eo.usr = eu.id)
                          ->  Seq Scan on eo  (rows=3000)
                          ->  Seq Scan on eu  (rows=300)
Regions: us-east1
(EXPLAIN)

explain select distinct on (eu.city) eu.city, eu.id from eu join eo on eo.usr = eu.id group by eu.id order by eu.city, eu.id desc limit 3;
----
QUERY PLAN
Limit
  ->  Unique
        ->  Sort
              Sort Key: eu.city, eu.id DESC
              ->  Group
                    Group Key: eu.id, eu.city
                    ->  Hash Join  (rows=3000)
                          Hash Cond: (eo.usr = eu.id)
                          ->  Seq Scan on eo  (rows=3000)
                          ->  Seq Scan on eu  (rows=300)
Regions: us-east1
(EXPLAIN)

