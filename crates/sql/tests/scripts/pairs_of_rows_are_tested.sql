-- postgres: same
create table a (id int primary key, k int, t text);
----
(CREATE TABLE)

create table b (id int primary key, k int, t text);
----
(CREATE TABLE)

insert into a select i, nullif(i % 3, 2), 't' || i % 4 from generate_series(1, 12) i;
----
(INSERT 0 12)

insert into b select i, nullif(i % 4, 3), 't' || i % 3 from generate_series(1, 12) i;
----
(INSERT 0 12)

select count(*), sum(a.id), sum(b.id) from a join b on a.k = b.k and a.id < b.id;
----
count | sum | sum
11 | 47 | 93
(SELECT 1)

select count(*), sum(a.id), sum(b.id) from a join b on a.id < b.id and a.t > b.t;
----
count | sum | sum
35 | 149 | 304
(SELECT 1)

select count(*), sum(a.id), sum(b.id) from a left join b on a.k = b.k and a.t = b.t;
----
count | sum | sum
12 | 78 | 39
(SELECT 1)

select count(*), sum(a.id), sum(b.id), count(b.id) from a left join b on a.id > b.id + 9;
----
count | sum | sum | count
13 | 90 | 4 | 3
(SELECT 1)

select count(*), sum(a.id), sum(b.id) from a full join b on a.k = b.k and a.t = b.t;
----
count | sum | sum
18 | 78 | 78
(SELECT 1)

select count(*) from a where exists (select 1 from b where b.k = a.k and b.id > a.id);
----
count
6
(SELECT 1)

select count(*) from a where exists (select 1 from b where b.id = a.k or b.t > a.t);
----
count
8
(SELECT 1)

select count(*) from a where not exists (select 1 from b where b.k = a.k or b.id = a.id + 1);
----
count
0
(SELECT 1)

select count(*) from a where not exists (select 1 from b where abs(b.id - a.id) > 10);
----
count
10
(SELECT 1)

select count(*), sum(b.id) from a join b on a.k = b.k and a.id = (select max(c.id) from a c where c.k = b.k);
----
count | sum
6 | 39
(SELECT 1)

select count(*), sum(b.id) from a join b on b.id between a.id and a.id + (select count(*) from b c where c.k = a.k);
----
count | sum
32 | 227
(SELECT 1)

select a.id, b.id from a join b on a.k = b.k and 12 / (b.id - a.id) > 3 where a.id <> b.id order by 1, 2;
----
id | id
3 | 4
4 | 5
6 | 8
7 | 9
9 | 12
(SELECT 5)

select a.id from a join b on a.k = b.k and 1 / (b.id - a.id) > 3;
----
ERROR 22012: division by zero

select a.id from a join b on a.id < b.id and 1 / (b.id - 12) > 3;
----
ERROR 22012: division by zero

select count(*) from a join b on (a.t || b.t) like 't1t%' and a.id <> b.id;
----
count
33
(SELECT 1)

select a.id, b.id from a join b on a.id + b.id = 3 and (a.k, a.t) is distinct from (b.k, b.t) order by 1, 2;
----
id | id
1 | 2
2 | 1
(SELECT 2)

