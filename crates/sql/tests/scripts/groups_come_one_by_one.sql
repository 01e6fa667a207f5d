-- postgres: same

create table gi (id int primary key, a int, b int, c text, f float8, n numeric);
----
(CREATE TABLE)

insert into gi select g, nullif(g % 200, 7), g % 3, 'c' || g % 5, g, g / 2.0 from generate_series(1, 4000) g;
----
(INSERT 0 4000)

insert into gi values (5001, 3, null, null, 'nan', 'nan'), (5002, null, null, 'x', '-0', 1.00), (5003, 3, null, null, '0', 1.0);
----
(INSERT 0 3)

create index gi_ab on gi (a, b);
----
(CREATE INDEX)

create index gi_n on gi (n);
----
(CREATE INDEX)

create index gi_f on gi (f);
----
(CREATE INDEX)

analyze gi;
----
(ANALYZE)

select a, count(*), sum(id), min(c), max(b) from gi group by a order by a limit 4;
----
a | count | sum | min | max
0 | 20 | 42000 | c0 | 2
1 | 20 | 38020 | c1 | 2
2 | 20 | 38040 | c2 | 2
3 | 22 | 48064 | c3 | 2
(SELECT 4)

select a, count(*), count(distinct c), string_agg(c, ',' order by id desc) from gi where id < 1500 group by a order by a desc limit 3;
----
a | count | count | string_agg
∅ | 8 | 1 | c2,c2,c2,c2,c2,c2,c2,c2
199 | 7 | 1 | c4,c4,c4,c4,c4,c4,c4
198 | 7 | 1 | c3,c3,c3,c3,c3,c3,c3
(SELECT 3)

select a, b, count(*) from gi group by a, b order by a, b limit 5;
----
a | b | count
0 | 0 | 6
0 | 1 | 7
0 | 2 | 7
1 | 0 | 7
1 | 1 | 7
(SELECT 5)

select a, b, count(*) from gi group by b, a order by a desc, b desc limit 4 offset 2;
----
a | b | count
∅ | 1 | 7
∅ | 0 | 7
199 | 2 | 6
199 | 1 | 7
(SELECT 4)

select b, a, count(*) filter (where id % 2 = 0) from gi where a = 3 group by b, a order by b limit 3;
----
b | a | count
0 | 3 | 0
1 | 3 | 0
2 | 3 | 0
(SELECT 3)

select a, count(*) from gi group by a order by a, count(*) desc limit 2;
----
a | count
0 | 20
1 | 20
(SELECT 2)

select a, count(*) as n from gi group by a having count(*) > 20 order by a limit 3;
----
a | n
3 | 22
∅ | 21
(SELECT 2)

select n, count(*) from gi group by n order by n limit 3;
----
n | count
0.50000000000000000000 | 1
1.00000000000000000000 | 3
1.5000000000000000 | 1
(SELECT 3)

select n, count(*) from gi group by n order by n desc limit 2;
----
n | count
NaN | 1
2000.0000000000000000 | 1
(SELECT 2)

select f, count(*) from gi group by f order by f limit 2;
----
f | count
-0 | 2
1 | 1
(SELECT 2)

select f, count(*) from gi group by f order by f desc limit 2;
----
f | count
NaN | 1
4000 | 1
(SELECT 2)

select id, sum(a) from gi group by id order by id limit 2;
----
id | sum
1 | 1
2 | 2
(SELECT 2)

select x.a, y.k from (values (3), (4)) x(a), lateral (select a, count(*) as k from gi where gi.a >= x.a group by a order by a limit 1) y order by 1;
----
a | k
3 | 22
4 | 20
(SELECT 2)

select count(*) from (select a from gi group by a order by a limit 300) s;
----
count
200
(SELECT 1)

select a from gi group by a order by a limit 0;
----
a
(SELECT 0)

select gi.id, gi.c, count(*), max(h.id) from gi join gi h on h.a = gi.id group by gi.id order by gi.id limit 3;
----
id | c | count | max
1 | c1 | 20 | 3801
2 | c2 | 20 | 3802
3 | c3 | 22 | 5003
(SELECT 3)

select gi.id, gi.n, count(h.id) from gi left join gi h on h.a = gi.id group by gi.id order by gi.id desc limit 3;
----
id | n | count
5003 | 1.0 | 0
5002 | 1.00 | 0
5001 | NaN | 0
(SELECT 3)

select gi.c, gi.id, h.c, count(*) from gi join gi h on h.a = gi.id group by gi.id, h.c order by gi.id, h.c limit 4;
----
c | id | c | count
c1 | 1 | c1 | 20
c2 | 2 | c2 | 20
c3 | 3 | c3 | 20
c3 | 3 | ∅ | 2
(SELECT 4)

with t as (select id, c from gi) select x.id, y.c, count(*) from t x join t y on x.id = y.id % 7 group by x.id, y.c order by x.id, y.c limit 3;
----
id | c | count
1 | c0 | 114
1 | c1 | 115
1 | c2 | 114
(SELECT 3)

drop table gi;
----
(DROP TABLE)

