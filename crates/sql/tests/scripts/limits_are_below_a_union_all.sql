create table ua (id int primary key, t int, s text);
----
(CREATE TABLE)

create table ub (id int primary key, t int, s text);
----
(CREATE TABLE)

insert into ua select g, g * 7 % 1000, 'a' || g from generate_series(1, 2000) g;
----
(INSERT 0 2000)

insert into ub select g, g * 11 % 1000, 'b' || g from generate_series(1, 2000) g;
----
(INSERT 0 2000)

create index ua_t on ua (t);
----
(CREATE INDEX)

create index ub_t on ub (t);
----
(CREATE INDEX)

analyze ua;
----
(ANALYZE)

analyze ub;
----
(ANALYZE)

create view uv as select id, t from ua union all select id, t from ub;
----
(CREATE VIEW)

explain select id, t from ua union all select id, t from ub order by t limit 5;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: #2
        ->  Union All
              ->  Limit
                    ->  Index Only Scan using ua_t on ua  (rows=2000)
              ->  Limit
                    ->  Index Only Scan using ub_t on ub  (rows=2000)
Regions: us-east1
(EXPLAIN)

explain select * from (select id, t from ua union all select id, t from ub) u order by t limit 5;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: #2
        ->  Union All
              ->  Limit
                    ->  Index Only Scan using ua_t on ua  (rows=2000)
              ->  Limit
                    ->  Index Only Scan using ub_t on ub  (rows=2000)
Regions: us-east1
(EXPLAIN)

explain select id from uv order by t desc limit 5 offset 2;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: #2 DESC
        ->  Union All
              ->  Limit
                    ->  Index Only Scan Backward using ua_t on ua  (rows=2000)
              ->  Limit
                    ->  Index Only Scan Backward using ub_t on ub  (rows=2000)
Regions: us-east1
(EXPLAIN)

explain select id + 1, t from uv limit 3;
----
QUERY PLAN
Limit
  ->  Union All
        ->  Limit
              ->  Seq Scan on ua  (rows=2000)
        ->  Limit
              ->  Seq Scan on ub  (rows=2000)
Regions: us-east1
(EXPLAIN)

select * from (select id, t from ua union all select id, t from ub) u order by t, id limit 5;
----
id | t
1000 | 0
1000 | 0
2000 | 0
2000 | 0
91 | 1
(SELECT 5)

select id from uv order by t desc, id limit 5 offset 2;
----
id
1857
1909
714
818
1714
(SELECT 5)

select id * 2 as twice from uv order by twice desc, 1 limit 3;
----
twice
4000
4000
3998
(SELECT 3)

drop view uv;
----
(DROP VIEW)

drop table ua;
----
(DROP TABLE)

drop table ub;
----
(DROP TABLE)

