create table la (id int primary key, k int);
----
(CREATE TABLE)

create table lb (id int primary key, aid int, v int);
----
(CREATE TABLE)

insert into la select g, g % 100 from generate_series(1, 2000) g;
----
(INSERT 0 2000)

insert into lb select g, g % 1500, g % 13 from generate_series(1, 6000) g;
----
(INSERT 0 6000)

create index lb_aid on lb (aid);
----
(CREATE INDEX)

analyze la;
----
(ANALYZE)

analyze lb;
----
(ANALYZE)

explain select la.id, z.c from la cross join lateral (select count(*) c from lb where lb.aid = la.id) z;
----
QUERY PLAN
Hash Left Join  (rows=2000)
  Hash Cond: (la.id = lb.aid)
  ->  Seq Scan on la  (rows=2000)
  ->  Group in batches
        Group Key: lb.aid
        ->  Seq Scan on lb  (rows=6000)
Regions: us-east1
(EXPLAIN)

explain select la.id, z.s from la left join lateral (select sum(v) s from lb where lb.aid = la.id) z on true where la.k < 50;
----
QUERY PLAN
Hash Right Join  (rows=1020)
  Hash Cond: (lb.aid = la.id)
  ->  Group in batches
        Group Key: lb.aid
        ->  Seq Scan on lb  (rows=6000)
  ->  Seq Scan on la  (rows=1020)
        Filter: (k < 50)
Regions: us-east1
(EXPLAIN)

explain select la.id, z.c from la cross join lateral (select count(*) c from lb where lb.aid = la.id) z where z.c > 3;
----
QUERY PLAN
Filter
  Filter: (COALESCE(count(), 0) > 3)
  ->  Hash Left Join  (rows=2000)
        Hash Cond: (la.id = lb.aid)
        ->  Seq Scan on la  (rows=2000)
        ->  Group in batches
              Group Key: lb.aid
              ->  Seq Scan on lb  (rows=6000)
Regions: us-east1
(EXPLAIN)

-- For a few rows it looks them up.
explain select la.id, z.c from la cross join lateral (select count(*) c from lb where lb.aid = la.id) z where la.id < 5;
----
QUERY PLAN
Nested Loop Join  (rows=4)
  ->  Index Scan using la_pkey on la  (rows=4)
        Index Cond: (id < 5)
  ->  Aggregate
        ->  Index Only Scan using lb_aid on lb  (rows=4)
              Index Cond: (aid = outer #1)
Regions: us-east1
(EXPLAIN)

explain select la.id, z.c from la cross join lateral (select count(*) c from lb where lb.aid = la.id) z limit 5;
----
QUERY PLAN
Limit
  ->  Nested Loop Join  (rows=2000)
        ->  Seq Scan on la  (rows=2000)
        ->  Aggregate
              ->  Index Only Scan using lb_aid on lb  (rows=3)
                    Index Cond: (aid = outer #1)
Regions: us-east1
(EXPLAIN)

drop table la;
----
(DROP TABLE)

drop table lb;
----
(DROP TABLE)

