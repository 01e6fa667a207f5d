-- postgres: same
create table p (id int primary key, k int, t text);
----
(CREATE TABLE)

create table c (id int primary key, pid int, v int, w numeric);
----
(CREATE TABLE)

create table e (a int, b int, n int);
----
(CREATE TABLE)

insert into p select i, nullif(i % 7, 3), 't' || i % 5 from generate_series(1, 60) i;
----
(INSERT 0 60)

insert into c select i, nullif(i % 40, 11), i % 9, i / 4.0 from generate_series(1, 300) i;
----
(INSERT 0 300)

insert into e select i % 5, i % 3, i from generate_series(1, 50) i;
----
(INSERT 0 50)

analyze p;
----
(ANALYZE)

analyze c;
----
(ANALYZE)

analyze e;
----
(ANALYZE)

select count(*), sum((select count(*) from c where c.pid = p.id)) from p;
----
count | sum
60 | 285
(SELECT 1)

select sum((select max(v) from c where pid = p.id)), sum((select sum(w) from c where pid = p.id and v < 5)) from p;
----
sum | sum
297 | 5967.25000000000000000000
(SELECT 1)

select id, (select count(*) from c where c.pid = p.id) n, (select min(v) from c where c.pid = p.id) m from p where id in (11, 39, 40, 41) order by id;
----
id | n | m
11 | 0 | ∅
39 | 7 | 0
40 | 0 | ∅
41 | 0 | ∅
(SELECT 4)

select id, (select count(*) from c where c.pid = p.id) n from p order by n desc, id limit 3;
----
id | n
1 | 8
2 | 8
3 | 8
(SELECT 3)

select id, (select count(*) from c where c.pid = p.id) n from p order by id desc limit 3;
----
id | n
60 | 0
59 | 0
58 | 0
(SELECT 3)

select id, (select count(*) + p.k from c where c.pid = p.id) n from p where id > 38 and id < 44 order by id;
----
id | n
39 | 11
40 | 5
41 | 6
42 | 0
43 | 1
(SELECT 5)

select id, (select coalesce(sum(v), -1) from c where c.pid = p.id and c.v > 100) n from p where id < 3 order by id;
----
id | n
1 | -1
2 | -1
(SELECT 2)

select count(*) from p where (select count(*) from c where c.pid = p.id) > 7;
----
count
19
(SELECT 1)

select count(*) from p where (select count(*) from c where c.pid = p.id) = 0;
----
count
22
(SELECT 1)

select count(*) from p where k = (select max(v) from c where c.pid = p.id);
----
count
0
(SELECT 1)

select count(*) from p where k <= (select min(v) from c where c.pid = p.id and c.id > 40) or id = 60;
----
count
8
(SELECT 1)

select id, case when id < 3 then (select sum(v) from c where c.pid = p.id) end from p where id < 5 order by id;
----
id | case
1 | 30
2 | 29
3 | ∅
4 | ∅
(SELECT 4)

select p.id, q.n from p, lateral (select count(*) n from c where c.pid = p.id) q where p.id in (1, 40, 41) order by 1;
----
id | n
1 | 8
40 | 0
41 | 0
(SELECT 3)

select t, sum((select count(*) from c where c.pid = p.id)) from p group by t order by t;
----
t | sum
t0 | 53
t1 | 52
t2 | 60
t3 | 60
t4 | 60
(SELECT 5)

select (select count(*) from e where e.a = p.k and e.b = p.id % 3), count(*) from p group by 1 order by 1;
----
count | count
0 | 25
3 | 23
4 | 12
(SELECT 3)

select (select count(distinct n) from e where e.a = p.k and e.b = p.id), id from p where id < 5 order by id;
----
count | id
4 | 1
4 | 2
0 | 3
0 | 4
(SELECT 4)

select (select count(*) from c where c.pid = p.id and c.v > p.k), id from p where id < 5 order by id;
----
count | id
6 | 1
5 | 2
0 | 3
4 | 4
(SELECT 4)

select (select count(*) from c where c.pid < p.id), id from p where id < 5 order by id;
----
count | id
7 | 1
15 | 2
23 | 3
31 | 4
(SELECT 4)

select (select count(*) from c where c.pid = p.id group by v order by 1 limit 1), id from p where id < 5 order by id;
----
count | id
1 | 1
1 | 2
1 | 3
1 | 4
(SELECT 4)

select (select count(*) from c where c.pid = p.id having count(*) > 100), id from p where id < 3 order by id;
----
count | id
∅ | 1
∅ | 2
(SELECT 2)

select (select sum(1 / (v - 8)) from c where c.pid = p.id and c.v < 8), id from p where id < 3 order by id;
----
sum | id
-1 | 1
0 | 2
(SELECT 2)

select (select count(*) from c, e where c.pid = p.id and e.n = c.v), id from p where id < 4 order by id;
----
count | id
7 | 1
7 | 2
7 | 3
(SELECT 3)

select (select count(*) from c where c.pid = p.id and c.v in (select n from e)), id from p where id < 4 order by id;
----
count | id
7 | 1
7 | 2
7 | 3
(SELECT 3)

select (select avg(v) from c where c.pid = p.id and c.v is not null) is null, count(*) from p group by 1 order by 1;
----
?column? | count
f | 38
t | 22
(SELECT 2)

update p set k = (select count(*) from c where c.pid = p.id) where id > 37 returning id, k;
----
id | k
38 | 7
39 | 7
40 | 0
41 | 0
42 | 0
43 | 0
44 | 0
45 | 0
46 | 0
47 | 0
48 | 0
49 | 0
50 | 0
51 | 0
52 | 0
53 | 0
54 | 0
55 | 0
56 | 0
57 | 0
58 | 0
59 | 0
60 | 0
(UPDATE 23)

delete from p where (select count(*) from c where c.pid = p.id) = 0 returning id;
----
id
11
40
41
42
43
44
45
46
47
48
49
50
51
52
53
54
55
56
57
58
59
60
(DELETE 22)

select id, (select count(*) from c where c.pid = p.id) from p where id > 36 order by id for update;
----
id | count
37 | 7
38 | 7
39 | 7
(SELECT 3)

with q as (select id, (select max(v) from c where c.pid = p.id) m from p) select count(*), sum(m) from q x join q y using (id, m);
----
count | sum
38 | 297
(SELECT 1)

create table hp (id int primary key, k int);
----
(CREATE TABLE)

create table hc (id int primary key, pid int, v int, f float8);
----
(CREATE TABLE)

insert into hp select i, i - 1 from generate_series(1, 20) i;
----
(INSERT 0 20)

insert into hc select i, i % 20 + 1, i % 2, 1e308 from generate_series(1, 100) i;
----
(INSERT 0 100)

analyze hp;
----
(ANALYZE)

analyze hc;
----
(ANALYZE)

select sum((select count(*) from (select distinct v from hc where hc.pid = hp.id) s)) from hp;
----
sum
20
(SELECT 1)

select count(*) from hp where (select sum(v) from (select distinct v from hc where hc.pid = hp.id) s) > 1;
----
count
0
(SELECT 1)

select id, case when k <> 0 then (select count(*) from hc where hc.pid = 8 / k) end from hp where id < 6 order by id;
----
id | case
1 | ∅
2 | 5
3 | 5
4 | 5
5 | 5
(SELECT 5)

select count(*) from hp where k = 0 or (select count(*) from hc where hc.pid = 8 / k) > 0;
----
count
9
(SELECT 1)

select id, (select sum(f) from hc where hc.pid = hp.id and hc.id < 21) from hp where id < 3 order by id;
----
id | sum
1 | 1e+308
2 | 1e+308
(SELECT 2)

select count((select avg(v) from hc where hc.pid = hp.id)), sum((select max(v) from hc where hc.pid = hp.k)) from hp;
----
count | sum
20 | 9
(SELECT 1)

select count(*) from hp p where exists (select 1 from hp q where q.k = p.id and (select count(*) from hc where hc.pid = q.id) = 5);
----
count
19
(SELECT 1)

select count(*) from hp p where (select count(*) from hp q where q.k > p.id and (select count(*) from hc where hc.pid = q.id) = 5) > 10;
----
count
8
(SELECT 1)

