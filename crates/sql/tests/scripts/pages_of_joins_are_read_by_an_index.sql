create table pu (id int primary key, name text, country int, created timestamp);
----
(CREATE TABLE)

create table pc (id int primary key, name text);
----
(CREATE TABLE)

create table po (id int primary key, user_id int, status text, created timestamp);
----
(CREATE TABLE)

create table pi (id int primary key, order_id int, qty int);
----
(CREATE TABLE)

insert into pu select g, 'u' || g, g % 20, '2026-01-01'::timestamp + g * interval '1 hour' from generate_series(1, 1000) g;
----
(INSERT 0 1000)

insert into pc select g, 'c' || g from generate_series(0, 19) g;
----
(INSERT 0 20)

insert into po select g, g % 1000 + 1, 's' || g % 4, '2026-01-01'::timestamp + g * interval '6 minutes' from generate_series(1, 10000) g;
----
(INSERT 0 10000)

insert into pi select g, g % 10000 + 1, g % 7 from generate_series(1, 20000) g;
----
(INSERT 0 20000)

create index po_user on po (user_id);
----
(CREATE INDEX)

create index po_created on po (created);
----
(CREATE INDEX)

create index po_status on po (status, created);
----
(CREATE INDEX)

create index pi_order on pi (order_id);
----
(CREATE INDEX)

analyze pu;
----
(ANALYZE)

analyze pc;
----
(ANALYZE)

analyze po;
----
(ANALYZE)

analyze pi;
----
(ANALYZE)

explain select * from (select * from po order by created desc limit 20) o left join pi on pi.order_id = o.id order by o.created desc, pi.id;
----
QUERY PLAN
Sort
  Sort Key: po.created DESC, pi.id
  ->  Lookup Left Join  (rows=40)
        ->  Limit
              ->  Index Scan Backward using po_created on po  (rows=10000)
        ->  Index Scan using pi_order on pi  (rows=2)
              Index Cond: (order_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from po left join pu on pu.id = po.user_id left join pc on pc.id = pu.country where pc.name = 'c7';
----
QUERY PLAN
Aggregate
  ->  Lookup Join  (rows=500)
        ->  Hash Join  (rows=50)
              Hash Cond: (pu.country = pc.id)
              ->  Seq Scan on pu  (rows=1000)
              ->  Seq Scan on pc  (rows=1)
                    Filter: (name = 'c7')
        ->  Index Only Scan using po_user on po  (rows=10)
              Index Cond: (user_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select o.id from pi left join po o on o.id = pi.order_id left join pu on pu.id = o.user_id where pu.name = 'u77' order by o.id limit 5;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: o.id
        ->  Lookup Join  (rows=20)
              ->  Lookup Join  (rows=10)
                    ->  Seq Scan on pu  (rows=1)
                          Filter: (name = 'u77')
                    ->  Index Only Scan using po_user on po o  (rows=10)
                          Index Cond: (user_id = outer #1)
              ->  Index Only Scan using pi_order on pi  (rows=2)
                    Index Cond: (order_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select o.id, sum(pi.qty) from po o join pi on pi.order_id = o.id group by o.id having sum(pi.qty) > 8 order by o.id limit 10;
----
QUERY PLAN
Limit
  ->  Filter
        Filter: (sum() > 8)
        ->  Group in order
              Group Key: o.id
              ->  Lookup Join  (rows=20000)
                    ->  Seq Scan on po o  (rows=10000)
                    ->  Index Scan using pi_order on pi  (rows=2)
                          Index Cond: (order_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select o.id, pu.id, pu.name, sum(pi.qty) from po o join pu on pu.id = o.user_id join pi on pi.order_id = o.id group by o.id, pu.id order by o.id desc limit 10;
----
QUERY PLAN
Limit
  ->  Group in order
        Group Key: o.id, pu.id, pu.name
        ->  Lookup Join  (rows=20000)
              ->  Lookup Join  (rows=10000)
                    ->  Seq Scan Backward on po o  (rows=10000)
                    ->  Point Lookup using pu_pkey on pu  (rows=1)
                          Index Cond: (id = outer #1)
              ->  Index Scan using pi_order on pi  (rows=2)
                    Index Cond: (order_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select pu.id, pu.name, count(o.id) from pu left join po o on o.user_id = pu.id group by pu.id having count(o.id) > 3 order by pu.id limit 20 offset 40;
----
QUERY PLAN
Limit
  ->  Filter
        Filter: (count() > 3)
        ->  Group in order
              Group Key: pu.id, pu.name
              ->  Lookup Left Join  (rows=10000)
                    ->  Seq Scan on pu  (rows=1000)
                    ->  Index Only Scan using po_user on po o  (rows=10)
                          Index Cond: (user_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from pu join po o on o.created between pu.created and pu.created + interval '1 minute' where pu.id < 50;
----
QUERY PLAN
Aggregate
  ->  Lookup Join  (rows=2500)
        ->  Index Scan using pu_pkey on pu  (rows=50)
              Index Cond: (id < 50)
        ->  Index Only Scan using po_created on po o  (rows=50)
              Index Cond: (created >= outer #1) AND (created <= (outer #1 + …))
Regions: us-east1
(EXPLAIN)

explain select max(id) from po where status = 's3';
----
QUERY PLAN
Aggregate
  ->  Limit
        ->  Index Scan Backward using po_pkey on po  (rows=2500)
              Index Cond: (id IS NOT NULL)
              Filter: (status = 's3')
Regions: us-east1
(EXPLAIN)

select o.id, o.created, pi.id from (select * from po order by created desc limit 3) o left join pi on pi.order_id = o.id order by o.created desc, pi.id;
----
id | created | id
10000 | 2026-02-11 16:00:00 | 9999
10000 | 2026-02-11 16:00:00 | 19999
9999 | 2026-02-11 15:54:00 | 9998
9999 | 2026-02-11 15:54:00 | 19998
9998 | 2026-02-11 15:48:00 | 9997
9998 | 2026-02-11 15:48:00 | 19997
(SELECT 6)

select count(*) from po left join pu on pu.id = po.user_id left join pc on pc.id = pu.country where pc.name = 'c7';
----
count
500
(SELECT 1)

select o.id from pi left join po o on o.id = pi.order_id left join pu on pu.id = o.user_id where pu.name = 'u77' order by o.id limit 5;
----
id
76
76
1076
1076
2076
(SELECT 5)

select o.id, sum(pi.qty) from po o join pi on pi.order_id = o.id group by o.id having sum(pi.qty) > 8 order by o.id limit 3;
----
id | sum
7 | 9
14 | 9
21 | 9
(SELECT 3)

select o.id, pu.id, pu.name, sum(pi.qty) from po o join pu on pu.id = o.user_id join pi on pi.order_id = o.id group by o.id, pu.id order by o.id desc limit 3;
----
id | id | name | sum
10000 | 1 | u1 | 3
9999 | 1000 | u1000 | 8
9998 | 999 | u999 | 6
(SELECT 3)

select pu.id, pu.name, count(o.id) from pu left join po o on o.user_id = pu.id group by pu.id having count(o.id) > 3 order by pu.id limit 2 offset 40;
----
id | name | count
41 | u41 | 10
42 | u42 | 10
(SELECT 2)

select count(*) from pu join po o on o.created between pu.created and pu.created + interval '1 minute' where pu.id < 50;
----
count
49
(SELECT 1)

select max(id), min(id) from po where status = 's3';
----
max | min
9999 | 3
(SELECT 1)

select count(*) from po left join pu on pu.id = po.user_id left join pc on pc.id = pu.country where pc.name = 'c7' or pu.id is null;
----
count
500
(SELECT 1)

drop table pi;
----
(DROP TABLE)

drop table po;
----
(DROP TABLE)

drop table pu;
----
(DROP TABLE)

drop table pc;
----
(DROP TABLE)

