-- postgres: same
-- Aggregates of the rows that belong to each row, by LATERAL: one row for each, also where there is
-- nothing to aggregate.
create table a (id int primary key, k int, name text);
----
(CREATE TABLE)

create table b (id int primary key, aid int, v int, n numeric(10, 2), t text);
----
(CREATE TABLE)

insert into a select g, case when g % 9 = 0 then null else g % 7 end, 'n' || g from generate_series(1, 60) g;
----
(INSERT 0 60)

insert into b select g, case when g % 11 = 0 then null else g % 50 end, g % 13, g / 4.0, 't' || g % 3
  from generate_series(1, 900) g;
----
(INSERT 0 900)

analyze a;
----
(ANALYZE)

analyze b;
----
(ANALYZE)

select a.id, z.c, z.s, z.m from a cross join lateral (select count(*) c, sum(v) s, max(n) m from b where b.aid = a.id) z
  where a.id > 44 order by a.id;
----
id | c | s | m
45 | 17 | 100 | 223.75
46 | 17 | 100 | 224.00
47 | 16 | 85 | 224.25
48 | 16 | 93 | 224.50
49 | 16 | 88 | 224.75
50 | 0 | ∅ | ∅
51 | 0 | ∅ | ∅
52 | 0 | ∅ | ∅
53 | 0 | ∅ | ∅
54 | 0 | ∅ | ∅
55 | 0 | ∅ | ∅
56 | 0 | ∅ | ∅
57 | 0 | ∅ | ∅
58 | 0 | ∅ | ∅
59 | 0 | ∅ | ∅
60 | 0 | ∅ | ∅
(SELECT 16)

select a.id, z.c from a, lateral (select count(*) c from b where b.aid = a.id) z where z.c > 16 or z.c = 0 order by a.id;
----
id | c
1 | 17
2 | 17
6 | 17
7 | 17
12 | 17
13 | 17
17 | 17
18 | 17
23 | 17
24 | 17
28 | 17
29 | 17
34 | 17
35 | 17
39 | 17
40 | 17
45 | 17
46 | 17
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
(SELECT 29)

select a.id, z.c from a left join lateral (select count(*) c from b where b.aid = a.id) z on true
  where a.id > 47 order by a.id;
----
id | c
48 | 16
49 | 16
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
(SELECT 13)

select a.id, z.c, z.s from a left join lateral (select count(*) c, avg(v) s from b where b.aid = a.id) z on z.c > 0
  where a.id > 47 order by a.id;
----
id | c | s
48 | 16 | 5.8125000000000000
49 | 16 | 5.5000000000000000
50 | ∅ | ∅
51 | ∅ | ∅
52 | ∅ | ∅
53 | ∅ | ∅
54 | ∅ | ∅
55 | ∅ | ∅
56 | ∅ | ∅
57 | ∅ | ∅
58 | ∅ | ∅
59 | ∅ | ∅
60 | ∅ | ∅
(SELECT 13)

select a.id, z.c from a cross join lateral (select count(*) c from b where b.aid = a.id having count(*) > 17) z order by a.id;
----
id | c
(SELECT 0)

select a.id, z.c from a left join lateral (select sum(v) c from b where b.aid = a.id having count(*) > 17) z on true
  where a.id between 25 and 35 order by a.id;
----
id | c
25 | ∅
26 | ∅
27 | ∅
28 | ∅
29 | ∅
30 | ∅
31 | ∅
32 | ∅
33 | ∅
34 | ∅
35 | ∅
(SELECT 11)

select a.id, z.x, w.y from a cross join lateral (select count(*) + a.k x from b where b.aid = a.id and b.v < 5) z
  cross join lateral (select coalesce(sum(b.v), -1) + z.x y from b where b.aid = a.k) w order by a.id limit 12;
----
id | x | y
1 | 7 | 113
2 | 8 | 114
3 | 10 | 106
4 | 11 | 102
5 | 11 | 110
6 | 14 | 103
7 | 6 | 115
8 | 8 | 114
9 | ∅ | ∅
10 | 10 | 106
11 | 9 | 100
12 | 11 | 110
(SELECT 12)

select count(*), sum(z.c) from a cross join lateral (select count(*) c from b where b.aid = a.k and b.t = 't1') z;
----
count | sum
60 | 277
(SELECT 1)

select count(*), sum(z.c), sum(a2.id) from a cross join lateral (select count(v) c from b where b.aid = a.k) z
  join a a2 on a2.id = z.c;
----
count | sum | sum
54 | 895 | 895
(SELECT 1)

select a.id, z.n from a cross join lateral (select min(t) n from b where b.aid = a.id and b.v = a.k) z
  where z.n is null order by a.id limit 9;
----
id | n
9 | ∅
18 | ∅
27 | ∅
36 | ∅
45 | ∅
50 | ∅
51 | ∅
52 | ∅
53 | ∅
(SELECT 9)

select sum(s) from (select z.s from a cross join lateral (select sum(n) s from b where b.aid = a.id) z
  order by z.s desc nulls last limit 3) q;
----
sum
5994.25
(SELECT 1)

select a.id, z.c from a cross join lateral (select count(*) c from (select distinct v from b where b.aid = a.id) d) z
  where a.id > 45 order by a.id;
----
id | c
46 | 12
47 | 12
48 | 13
49 | 12
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
(SELECT 15)

select a.id, z.r from a cross join lateral (select count(*) filter (where b.v > a.k) r from b where b.aid = a.id) z
  where a.id > 45 order by a.id;
----
id | r
46 | 10
47 | 8
48 | 7
49 | 15
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
(SELECT 15)

delete from b where aid in (select a.id from a cross join lateral (select count(*) c from b x where x.aid = a.id) z where z.c > 17);
----
(DELETE 0)

select count(*) from b;
----
count
900
(SELECT 1)

drop table a;
----
(DROP TABLE)

drop table b;
----
(DROP TABLE)

