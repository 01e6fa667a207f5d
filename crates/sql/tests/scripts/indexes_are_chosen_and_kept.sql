create table i (id int primary key, a int, b text, c int not null default 0);
----
(CREATE TABLE)

create index i_a on i (a) include (c);
----
(CREATE INDEX)

create index i_b on i (b desc);
----
(CREATE INDEX)

insert into i values (1, 1, 'x', 1), (2, 2, 'y', 2), (3, 2, 'xx', 3), (4, null, 'z', 4), (5, 9, null, 5);
----
(INSERT 0 5)

explain select * from i where id = 1;
----
QUERY PLAN
Point Lookup using i_pkey on i
  Index Cond: (id = 1)
Regions: us-east1
(EXPLAIN)

explain select * from i where id in (1, 2) and b = 'x';
----
QUERY PLAN
Point Lookup using i_pkey on i
  Index Cond: (id IN (1, 2))
  Filter: (b = 'x')
Regions: us-east1
(EXPLAIN)

explain select c from i where a = 2;
----
QUERY PLAN
Index Only Scan using i_a on i
  Index Cond: (a = 2)
Regions: us-east1
(EXPLAIN)

explain select b from i where a = 2;
----
QUERY PLAN
Index Scan using i_a on i
  Index Cond: (a = 2)
Regions: us-east1
(EXPLAIN)

explain select * from i order by id desc limit 2;
----
QUERY PLAN
Limit
  ->  Seq Scan Backward on i
Regions: us-east1
(EXPLAIN)

explain select id from i where a > 1 and a <= 5 order by a;
----
QUERY PLAN
Index Only Scan using i_a on i
  Index Cond: (a > 1) AND (a <= 5)
Regions: us-east1
(EXPLAIN)

explain select id from i where b like 'x%';
----
QUERY PLAN
Index Only Scan using i_b on i
  Index Cond: (b ~~ 'x%')
  Filter: (b ~~ 'x%')
Regions: us-east1
(EXPLAIN)

explain select * from i where c + 1 = 3 order by b;
----
QUERY PLAN
Sort in batches
  Sort Key: i.b
  ->  Seq Scan on i
        Filter: ((c + 1) = 3)
Regions: us-east1
(EXPLAIN)

explain select x.id from i as x join i as y on y.id = x.a where x.id = 3;
----
QUERY PLAN
Lookup Join
  ->  Point Lookup using i_pkey on i x
        Index Cond: (id = 3)
  ->  Point Lookup using i_pkey on i y
        Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

explain select a, count(*) from i group by a;
----
QUERY PLAN
Group in batches
  Group Key: i.a
  ->  Seq Scan on i
Regions: us-east1
(EXPLAIN)

explain update i set b = 'q' where a = 2;
----
QUERY PLAN
Update on i
  ->  Index Scan using i_a on i
        Index Cond: (a = 2)
        Locks rows
Regions: us-east1
(EXPLAIN)

explain delete from i;
----
QUERY PLAN
Delete on i
  ->  Seq Scan on i
        Locks rows
Regions: us-east1
(EXPLAIN)

select c, a from i where a = 2 order by c;
----
c | a
2 | 2
3 | 2
(SELECT 2)

select id from i where a > 1 order by a desc;
----
id
5
3
2
(SELECT 3)

select id from i where a is null;
----
id
4
(SELECT 1)

select id, b from i where b like 'x%' order by b;
----
id | b
1 | x
3 | xx
(SELECT 2)

select id from i where b < 'y' order by b;
----
id
1
3
(SELECT 2)

select id from i where b >= 'xx' order by b desc;
----
id
4
2
3
(SELECT 3)

update i set a = 7 where id = 3;
----
(UPDATE 1)

select id from i where a = 7;
----
id
3
(SELECT 1)

select id from i where a = 2;
----
id
2
(SELECT 1)

insert into i values (6, 8, 'xx', 3);
----
(INSERT 0 1)

insert into i values (6, 1, 'xx', 3);
----
ERROR 23505: duplicate key value violates unique constraint "i_pkey"
DETAIL: Key (id)=(6) already exists.

delete from i where a = 7;
----
(DELETE 1)

select id from i where a = 7;
----
id
(SELECT 0)

insert into i values (7, 8, 'xx', 3);
----
(INSERT 0 1)

select * from i order by id desc limit 2;
----
id | a | b | c
7 | 8 | xx | 3
6 | 8 | xx | 3
(SELECT 2)

select id from i order by b desc nulls last;
----
id
4
2
6
7
1
5
(SELECT 6)

create table ch (k char(5) primary key);
----
(CREATE TABLE)

explain select * from ch where k = 'ab';
----
QUERY PLAN
Point Lookup using ch_pkey on ch
  Index Cond: (k = 'ab')
Regions: us-east1
(EXPLAIN)

explain select * from i where id = 1::bigint;
----
QUERY PLAN
Point Lookup using i_pkey on i
  Index Cond: (id = 1)
Regions: us-east1
(EXPLAIN)

explain select * from i as x left join i as y on x.c + 1 = y.c where x.b = 'q';
----
QUERY PLAN
Hash Left Join
  Hash Cond: ((x.c + 1) = y.c)
  ->  Index Scan using i_b on i x
        Index Cond: (b = 'q')
  ->  Seq Scan on i y
Regions: us-east1
(EXPLAIN)

explain select b, count(*) from i group by b having count(*) > 1 order by count(*) desc;
----
QUERY PLAN
Sort
  Sort Key: count() DESC
  ->  Filter
        Filter: (count() > 1)
        ->  Group in batches
              Group Key: i.b
              ->  Seq Scan on i
Regions: us-east1
(EXPLAIN)

explain with x as (select * from i where a = 2) select id from x where id > 3;
----
QUERY PLAN
Index Only Scan using i_a on i
  Index Cond: (a = 2)
  Filter: (id > 3)
Regions: us-east1
(EXPLAIN)

explain select * from i where id = (select max(a) from i);
----
QUERY PLAN
Point Lookup using i_pkey on i
  Index Cond: (id = (SubPlan))
  SubPlan
        ->  Aggregate
              ->  Limit
                    ->  Index Only Scan Backward using i_a on i
                          Index Cond: (a IS NOT NULL)
Regions: us-east1
(EXPLAIN)

-- an OR is looked up side by side: in one index as places, in two as two scans
create table two (id int primary key, x int, y int, z int);
----
(CREATE TABLE)

create index two_x on two (x);
----
(CREATE INDEX)

create index two_y on two (y);
----
(CREATE INDEX)

explain select * from two where x = 1 or y between 2 and 3;
----
QUERY PLAN
Union All
  ->  Index Scan using two_x on two
        Index Cond: (x = 1)
  ->  Index Scan using two_y on two
        Index Cond: (y >= 2) AND (y <= 3)
        Filter: (NOT ((x = 1) IS TRUE))
Regions: us-east1
(EXPLAIN)

explain select * from two where id = 1 or id between 5 and 9 and z = 4 or id > 100;
----
QUERY PLAN
Index Scan using two_pkey on two
  Index Cond: ((id = 1) OR (id >= 5) AND (id <= 9) OR (id > 100))
  Filter: ((id = 1) OR (((id >= 5) AND (id <= 9)) AND (z = 4)) OR (id > 100))
Regions: us-east1
(EXPLAIN)

explain select * from two where x = 1 or z = 2;
----
QUERY PLAN
Seq Scan on two
  Filter: ((x = 1) OR (z = 2))
Regions: us-east1
(EXPLAIN)

explain delete from two where x in (1, 2) or y = 2 and z > 3;
----
QUERY PLAN
Delete on two
  ->  Union All
        ->  Index Scan using two_x on two
              Index Cond: (x IN (1, 2))
              Locks rows
        ->  Index Scan using two_y on two
              Index Cond: (y = 2)
              Filter: (z > 3) AND (NOT ((x IN (1, 2)) IS TRUE))
              Locks rows
Regions: us-east1
(EXPLAIN)

