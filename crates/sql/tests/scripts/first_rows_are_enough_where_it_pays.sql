create table wu (id int primary key, name text, country int);
----
(CREATE TABLE)

create table wo (id int primary key, user_id int, status text, total numeric, created timestamp);
----
(CREATE TABLE)

create table wi (id int primary key, order_id int, product_id int, qty int);
----
(CREATE TABLE)

create table wp (id int primary key, cat int);
----
(CREATE TABLE)

insert into wu select g, 'u' || g, g % 20 from generate_series(1, 500) g;
----
(INSERT 0 500)

insert into wo select g, case when g % 50 > 0 then g % 500 + 1 end, 's' || g % 4, g % 7, '2026-01-01'::timestamp + (g / 3) * interval '6 minutes' from generate_series(1, 10000) g;
----
(INSERT 0 10000)

insert into wi select g, g % 10000 + 1, g % 200, g % 7 from generate_series(1, 20000) g;
----
(INSERT 0 20000)

insert into wp select g, g % 12 from generate_series(0, 199) g;
----
(INSERT 0 200)

create index wo_user on wo (user_id);
----
(CREATE INDEX)

create index wo_created on wo (created);
----
(CREATE INDEX)

create index wi_order on wi (order_id);
----
(CREATE INDEX)

analyze wu;
----
(ANALYZE)

analyze wo;
----
(ANALYZE)

analyze wi;
----
(ANALYZE)

analyze wp;
----
(ANALYZE)

explain select * from (select id, status, row_number() over (order by id) rn from wo) x where rn <= 3;
----
QUERY PLAN
Filter
  Filter: (#3 <= 3)
  ->  WindowAgg in order
        Run Condition: at most 3
        ->  Seq Scan on wo  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select id, sum(total) over (order by id) from wo order by id limit 4;
----
QUERY PLAN
Limit
  ->  WindowAgg in order
        ->  Seq Scan on wo  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select id, row_number() over (order by created, id) n, rank() over (order by created, id) r, lag(total) over (order by created, id) l, first_value(id) over (order by created, id) f from wo order by created, id limit 4;
----
QUERY PLAN
Limit
  ->  WindowAgg in order
        ->  Index Scan using wo_created on wo  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select * from (select id, rank() over (order by created desc) r, sum(total) over (order by created desc) from wo) x where r < 4 order by id;
----
QUERY PLAN
Sort
  Sort Key: column 1
  ->  Filter
        Filter: (#4 < 4)
        ->  WindowAgg in order
              Run Condition: at most 4
              ->  Index Scan Backward using wo_created on wo  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select * from (select id, user_id, row_number() over (partition by user_id order by id) rn from wo) x where rn <= 2 order by user_id, id limit 5;
----
QUERY PLAN
Limit
  ->  Filter
        Filter: (#3 <= 2)
        ->  WindowAgg in order
              Run Condition: at most 2
              ->  Index Only Scan using wo_user on wo  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select count(*), sum(id) from (select id, user_id, rank() over (partition by user_id order by total) r from wo) x where r <= 1;
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: (#4 <= 1)
        ->  WindowAgg
              Run Condition: at most 1
              ->  Seq Scan on wo  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from (select row_number() over () rn from wo) x where rn <= 0;
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: (#1 <= 0)
        ->  WindowAgg in order
              Run Condition: at most 0
              ->  Seq Scan on wo  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select id, count(*) over () from wo order by id limit 2;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: #1
        ->  WindowAgg
              ->  Seq Scan on wo  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select user_id, id, count(*) over (partition by user_id) from wo where user_id is not null order by user_id limit 3;
----
QUERY PLAN
Limit
  ->  WindowAgg in order
        ->  Index Only Scan using wo_user on wo  (rows=9800)
              Index Cond: (user_id IS NOT NULL)
Regions: us-east1
(EXPLAIN)

explain select id, lag(id, 2, -1) over (order by id), lead(id) over (order by id) from wo order by id limit 3;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: #1
        ->  WindowAgg
              ->  WindowAgg in order
                    ->  Seq Scan on wo  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select distinct on (user_id) user_id, id from wo order by user_id, id desc limit 3;
----
QUERY PLAN
Limit
  ->  Unique
        ->  Incremental Sort
              Sort Key: wo.user_id, wo.id DESC
              Presorted Key: wo.user_id
              ->  Index Only Scan using wo_user on wo  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select distinct o.id, o.created from wo o join wi i on i.order_id = o.id order by o.id limit 3;
----
QUERY PLAN
Limit
  ->  Unique
        ->  Lookup Join  (rows=20000)
              ->  Seq Scan on wo o  (rows=10000)
              ->  Index Only Scan using wi_order on wi i  (rows=2)
                    Index Cond: (order_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select distinct o.* from wo o left join wi i on i.order_id = o.id where o.status = 's1' order by o.created desc, o.id limit 3;
----
QUERY PLAN
Limit
  ->  Incremental Sort
        Sort Key: o.created DESC, o.id
        Presorted Key: o.created DESC
        ->  Unique
              ->  Lookup Left Join  (rows=5000)
                    ->  Index Scan Backward using wo_created on wo o  (rows=2500)
                          Filter: (status = 's1')
                    ->  Index Only Scan using wi_order on wi i  (rows=2)
                          Index Cond: (order_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select distinct user_id from wo order by user_id desc limit 3;
----
QUERY PLAN
Limit
  ->  Unique
        ->  Index Only Scan Backward using wo_user on wo  (rows=10000)
Regions: us-east1
(EXPLAIN)

explain select o.id from wo o join wu u on u.id = o.user_id where u.country = 7 order by o.created desc, o.id limit 3;
----
QUERY PLAN
Limit
  ->  Incremental Sort
        Sort Key: o.created DESC, o.id
        Presorted Key: o.created DESC
        ->  Lookup Join  (rows=500)
              ->  Index Scan Backward using wo_created on wo o  (rows=10000)
              ->  Point Lookup using wu_pkey on wu u  (rows=1)
                    Index Cond: (id = outer #1)
                    Filter: (country = 7)
Regions: us-east1
(EXPLAIN)

explain select o.id from wo o where o.id in (select order_id from wi where product_id in (select id from wp where cat = 3)) order by o.created desc, o.id limit 3;
----
QUERY PLAN
Limit
  ->  Incremental Sort
        Sort Key: o.created DESC, o.id
        Presorted Key: o.created DESC
        ->  Nested Loop Semi Join  (rows=1700)
              ->  Index Only Scan Backward using wo_created on wo o  (rows=10000)
              ->  Lookup Semi Join  (rows=1)
                    ->  Index Scan using wi_order on wi  (rows=2)
                          Index Cond: (order_id = outer #1)
                    ->  Point Lookup using wp_pkey on wp  (rows=1)
                          Index Cond: (id = outer #1)
                          Filter: (cat = 3)
Regions: us-east1
(EXPLAIN)

explain select o.id from wo o where o.id in (select order_id from wi where product_id in (select id from wp where cat = 3) and qty > 100) order by o.created desc, o.id limit 3;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: o.created DESC, o.id
        ->  Lookup Join  (rows=2)
              ->  Unique
                    ->  Lookup Semi Join  (rows=2)
                          ->  Seq Scan on wi  (rows=20)
                                Filter: (qty > 100)
                          ->  Point Lookup using wp_pkey on wp  (rows=1)
                                Index Cond: (id = outer #1)
                                Filter: (cat = 3)
              ->  Point Lookup using wo_pkey on wo o  (rows=1)
                    Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from (select o.id from wo o where not exists (select 1 from wi where wi.order_id = o.id) limit 10) x;
----
QUERY PLAN
Aggregate
  ->  Limit
        ->  Hash Anti Join  (rows=1)
              Hash Cond: (o.id = wi.order_id)
              ->  Seq Scan on wo o  (rows=10000)
              ->  Seq Scan on wi  (rows=20000)
Regions: us-east1
(EXPLAIN)

explain select o.id from wo o join wu u on u.id = o.user_id where u.name = 'u77' order by o.created, o.id limit 2;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: o.created, o.id
        ->  Lookup Join  (rows=20)
              ->  Seq Scan on wu u  (rows=1)
                    Filter: (name = 'u77')
              ->  Index Scan using wo_user on wo o  (rows=20)
                    Index Cond: (user_id = outer #1)
Regions: us-east1
(EXPLAIN)

