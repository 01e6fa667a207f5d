-- postgres: same
create table so (id int primary key, a int, b int, c text);
----
(CREATE TABLE)

create index so_a on so (a);
----
(CREATE INDEX)

insert into so select i, case when i % 11 = 0 then null else i / 20 end, (i * 7919) % 1000, 'c' || i % 13 from generate_series(1, 2000) i;
----
(INSERT 0 2000)

analyze so;
----
(ANALYZE)

select id, a, b from so order by a, b limit 5;
----
id | a | b
12 | 0 | 28
10 | 0 | 190
9 | 0 | 271
8 | 0 | 352
7 | 0 | 433
(SELECT 5)

select id, a, b from so order by a desc nulls last, b desc limit 5;
----
id | a | b
2000 | 100 | 0
1988 | 99 | 972
1989 | 99 | 891
1990 | 99 | 810
1992 | 99 | 648
(SELECT 5)

select id, a, b from so order by a desc, b, id limit 5;
----
id | a | b
1716 | ∅ | 4
1111 | ∅ | 9
506 | ∅ | 14
1617 | ∅ | 23
1012 | ∅ | 28
(SELECT 5)

select id, a, b from so order by a nulls first, b, id limit 3 offset 180;
----
id | a | b
605 | ∅ | 995
12 | 0 | 28
10 | 0 | 190
(SELECT 3)

select id, a, b from so where b > 500 order by a, c, id limit 30 offset 6;
----
id | a | b
16 | 0 | 704
4 | 0 | 676
17 | 0 | 623
5 | 0 | 595
18 | 0 | 542
6 | 0 | 514
26 | 1 | 894
39 | 1 | 841
27 | 1 | 813
25 | 1 | 975
38 | 1 | 922
28 | 1 | 732
29 | 1 | 651
30 | 1 | 570
52 | 2 | 788
40 | 2 | 760
53 | 2 | 707
50 | 2 | 950
51 | 2 | 869
41 | 2 | 679
54 | 2 | 626
42 | 2 | 598
43 | 2 | 517
65 | 3 | 735
78 | 3 | 682
79 | 3 | 601
62 | 3 | 978
75 | 3 | 925
63 | 3 | 897
76 | 3 | 844
(SELECT 30)

select id, a, b from so order by a, b limit 0;
----
id | a | b
(SELECT 0)

select count(*) as n, sum(id) as ids from (select id from so order by a, b, id limit 1999) s;
----
n | ids
1999 | 2000395
(SELECT 1)

select count(*) as n, sum(id) as ids from (select id from so order by a, b, id limit 5000) s;
----
n | ids
2000 | 2001000
(SELECT 1)

select count(*) as n, sum(id) as ids from (select id from so order by a, b, id limit all offset 100) s;
----
n | ids
1900 | 1995441
(SELECT 1)

select id, a, b from so where a in (3, 90, 4) order by a, b, id limit 22 offset 2;
----
id | a | b
73 | 3 | 87
60 | 3 | 140
72 | 3 | 168
71 | 3 | 249
70 | 3 | 330
69 | 3 | 411
68 | 3 | 492
67 | 3 | 573
79 | 3 | 601
78 | 3 | 682
65 | 3 | 735
64 | 3 | 816
76 | 3 | 844
63 | 3 | 897
75 | 3 | 925
62 | 3 | 978
86 | 4 | 34
98 | 4 | 62
85 | 4 | 115
97 | 4 | 143
84 | 4 | 196
96 | 4 | 224
(SELECT 22)

select x.id, y.id from so x join so y on y.a = x.a and y.b = x.b + 1 order by x.a, x.b, x.id, y.id limit 4;
----
id | id
(SELECT 0)

select a, b, (select count(*) from so t where t.a = so.a) as n from so where a > 95 order by a, b, n limit 4;
----
a | b | n
96 | 22 | 18
96 | 103 | 18
96 | 156 | 18
96 | 237 | 18
(SELECT 4)

prepare so_first (int, int) as select id, a, b from so order by a, b, id limit $1 offset $2;
----
(PREPARE)

execute so_first(3, 1000);
----
id | a | b
1110 | 55 | 90
1109 | 55 | 171
1108 | 55 | 252
(SELECT 3)

execute so_first(2, 1998);
----
id | a | b
1210 | ∅ | 990
605 | ∅ | 995
(SELECT 2)

execute so_first(null, 1998);
----
id | a | b
1210 | ∅ | 990
605 | ∅ | 995
(SELECT 2)

select distinct on (a) a, b, id from so order by a, b, id limit 3;
----
a | b | id
0 | 28 | 12
1 | 3 | 37
2 | 31 | 49
(SELECT 3)

