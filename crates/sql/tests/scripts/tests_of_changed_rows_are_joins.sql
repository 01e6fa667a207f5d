-- Rows to change, or to lock, are found as those to read are: by a join, where a subquery tests them.
create table blog (id int primary key, author int); create index on blog (author); create table comm (id int primary key, blog_id int, v int default 0); create index on comm (blog_id); insert into blog select g, g % 500 from generate_series(1, 5000) g; insert into comm select g, g % 5000 + 1 from generate_series(1, 20000) g;
----
(CREATE TABLE)
(CREATE INDEX)
(CREATE TABLE)
(CREATE INDEX)
(INSERT 0 5000)
(INSERT 0 20000)

analyze;
----
(ANALYZE)

explain delete from comm where blog_id in (select id from blog where author = 48);
----
QUERY PLAN
Delete on comm
  ->  LockRows
        Locks rows of: comm
        ->  Lookup Join  (rows=40)
              ->  Unique
                    ->  Index Only Scan using blog_author_idx on blog  (rows=10)
                          Index Cond: (author = 48)
              ->  Index Scan using comm_blog_id_idx on comm  (rows=4)
                    Index Cond: (blog_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain delete from comm where exists (select 1 from blog where blog.id = comm.blog_id and author = 51);
----
QUERY PLAN
Delete on comm
  ->  LockRows
        Locks rows of: comm
        ->  Lookup Join  (rows=40)
              ->  Unique
                    ->  Index Only Scan using blog_author_idx on blog  (rows=10)
                          Index Cond: (author = 51)
              ->  Index Scan using comm_blog_id_idx on comm  (rows=4)
                    Index Cond: (blog_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain update comm set v = v + 1 where blog_id in (select id from blog where author = 50);
----
QUERY PLAN
Update on comm
  ->  LockRows
        Locks rows of: comm
        ->  Lookup Join  (rows=40)
              ->  Unique
                    ->  Index Only Scan using blog_author_idx on blog  (rows=10)
                          Index Cond: (author = 50)
              ->  Index Scan using comm_blog_id_idx on comm  (rows=4)
                    Index Cond: (blog_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select id from comm where blog_id in (select id from blog where author = 50) for update;
----
QUERY PLAN
LockRows
  Locks rows of: comm
  ->  Lookup Join  (rows=40)
        ->  Unique
              ->  Index Only Scan using blog_author_idx on blog  (rows=10)
                    Index Cond: (author = 50)
        ->  Index Only Scan using comm_blog_id_idx on comm  (rows=4)
              Index Cond: (blog_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select c.id from comm c left join blog b on b.id = c.blog_id where b.author::text like '4%';
----
QUERY PLAN
Lookup Join  (rows=2000)
  ->  Seq Scan on blog b  (rows=500)
        Filter: ((author)::text ~~ '4%')
  ->  Index Only Scan using comm_blog_id_idx on comm c  (rows=4)
        Index Cond: (blog_id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from comm c full join blog b on b.id = c.blog_id where b.author = 7 and c.v = 0;
----
QUERY PLAN
Aggregate
  ->  Lookup Join  (rows=40)
        ->  Index Only Scan using blog_author_idx on blog b  (rows=10)
              Index Cond: (author = 7)
        ->  Index Scan using comm_blog_id_idx on comm c  (rows=4)
              Index Cond: (blog_id = outer #1)
              Filter: (v = 0)
Regions: us-east1
(EXPLAIN)

delete from comm where blog_id in (select id from blog where author = 48);
----
(DELETE 40)

delete from comm where exists (select 1 from blog where blog.id = comm.blog_id and author = 51);
----
(DELETE 40)

update comm set v = v + 1 where blog_id in (select id from blog where author = 50) returning id, blog_id, v;
----
id | blog_id | v
49 | 50 | 1
5049 | 50 | 1
10049 | 50 | 1
15049 | 50 | 1
549 | 550 | 1
5549 | 550 | 1
10549 | 550 | 1
15549 | 550 | 1
1049 | 1050 | 1
6049 | 1050 | 1
11049 | 1050 | 1
16049 | 1050 | 1
1549 | 1550 | 1
6549 | 1550 | 1
11549 | 1550 | 1
16549 | 1550 | 1
2049 | 2050 | 1
7049 | 2050 | 1
12049 | 2050 | 1
17049 | 2050 | 1
2549 | 2550 | 1
7549 | 2550 | 1
12549 | 2550 | 1
17549 | 2550 | 1
3049 | 3050 | 1
8049 | 3050 | 1
13049 | 3050 | 1
18049 | 3050 | 1
3549 | 3550 | 1
8549 | 3550 | 1
13549 | 3550 | 1
18549 | 3550 | 1
4049 | 4050 | 1
9049 | 4050 | 1
14049 | 4050 | 1
19049 | 4050 | 1
4549 | 4550 | 1
9549 | 4550 | 1
14549 | 4550 | 1
19549 | 4550 | 1
(UPDATE 40)

begin;
----
(BEGIN)

select id from comm where blog_id in (select id from blog where author = 50) order by id limit 3 for update;
----
id
49
549
1049
(SELECT 3)

rollback;
----
(ROLLBACK)

delete from comm where not exists (select 1 from blog where blog.id = comm.blog_id and author < 490);
----
(DELETE 400)

update comm set v = b.author from blog b where b.id = comm.blog_id and b.author = 9;
----
(UPDATE 40)

select count(*), sum(v), min(id), max(id) from comm;
----
count | sum | min | max
19520 | 400 | 1 | 20000
(SELECT 1)

explain select sum((select max(v) from comm where comm.blog_id = blog.id)) from blog where id < 30;
----
QUERY PLAN
Aggregate
  ->  Index Scan using blog_pkey on blog  (rows=30)
        Index Cond: (id < 30)
  SubPlan
        ->  Aggregate
              ->  Index Scan using comm_blog_id_idx on comm  (rows=4)
                    Index Cond: (blog_id = outer #1)
Regions: us-east1
(EXPLAIN)

select sum((select max(id) from comm where comm.blog_id = blog.id)), count(*) filter (where exists (select 1 from comm where comm.blog_id = blog.id)) from blog where id < 300;
----
sum | count
4504454 | 297
(SELECT 1)

