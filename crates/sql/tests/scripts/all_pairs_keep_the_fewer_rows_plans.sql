create table many (id int primary key, t text);
----
(CREATE TABLE)

create table few (id int primary key);
----
(CREATE TABLE)

insert into many select g, 'text ' || g from generate_series(1, 20000) as g;
----
(INSERT 0 20000)

insert into few select g from generate_series(1, 3) as g;
----
(INSERT 0 3)

analyze many;
----
(ANALYZE)

analyze few;
----
(ANALYZE)

explain select count(*) from few, many;
----
QUERY PLAN
Aggregate
  ->  Nested Loop Join  (rows=60000)
        ->  Seq Scan on many  (rows=20000)
        ->  Seq Scan on few  (rows=3)
Regions: us-east1
(EXPLAIN)

explain select * from generate_series(1, 2) as g, many;
----
QUERY PLAN
Nested Loop Join
  ->  Seq Scan on many  (rows=20000)
  ->  Function Scan on generate_series
Regions: us-east1
(EXPLAIN)

explain select many.id, few.id from many cross join few;
----
QUERY PLAN
Nested Loop Join  (rows=60000)
  ->  Seq Scan on many  (rows=20000)
  ->  Seq Scan on few  (rows=3)
Regions: us-east1
(EXPLAIN)

select count(*), sum(many.id), sum(few.id) from few, many;
----
count | sum | sum
60000 | 600030000 | 120000
(SELECT 1)

explain select * from few, many order by few.id limit 5;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: few.id
        ->  Nested Loop Join  (rows=60000)
              ->  Seq Scan on many  (rows=20000)
              ->  Seq Scan on few  (rows=3)
Regions: us-east1
(EXPLAIN)

explain select * from few cross join lateral (select * from many where many.id > few.id) as m;
----
QUERY PLAN
Nested Loop Join  (rows=10000)
  ->  Seq Scan on few  (rows=3)
  ->  Index Scan using many_pkey on many  (rows=3333)
        Index Cond: (id > outer #1)
Regions: us-east1
(EXPLAIN)

