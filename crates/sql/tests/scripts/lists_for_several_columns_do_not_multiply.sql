-- postgres: same
create table lm (a int, b int, c int, primary key (a, b));
----
(CREATE TABLE)

insert into lm select i / 100, i % 100, i from generate_series(0, 9999) i;
----
(INSERT 0 10000)

select count(*) as n, sum(c) as c from lm where a in (select generate_series(0, 399)) and b in (select generate_series(0, 399));
----
n | c
10000 | 49995000
(SELECT 1)

prepare lm_q as select count(*) as n, sum(c) as c from lm where a = any ($1::int[]) and b = any ($2::int[]);
----
(PREPARE)

execute lm_q('{1,2,3}', '{4,5,6}');
----
n | c
9 | 1845
(SELECT 1)

execute lm_q('{1,2,3}', '{}');
----
n | c
0 | ∅
(SELECT 1)

execute lm_q('{1,2,NULL}', '{4,1000}');
----
n | c
2 | 308
(SELECT 1)

select count(*) as n, sum(c) as c from lm where a in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33) and b in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33);
----
n | c
1089 | 1869813
(SELECT 1)

select count(*) as n from lm where a in (1, 2, 3) and b in (4, 5) and c > 205;
----
n
2
(SELECT 1)

update lm set c = -1 where a = any ('{1,2}') and b = any ('{3,4}');
----
(UPDATE 4)

select count(*) as n from lm where c = -1;
----
n
4
(SELECT 1)

