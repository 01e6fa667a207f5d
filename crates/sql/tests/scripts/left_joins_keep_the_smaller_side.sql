-- postgres: same
create table lj (id int primary key, k int, note text);
----
(CREATE TABLE)

create table rj (id int primary key, k int, v int, w text);
----
(CREATE TABLE)

insert into lj select g, nullif(g % 40, 7), 'n' || g from generate_series(1, 60) g;
----
(INSERT 0 60)

insert into rj select g, nullif(g % 55, 3), g % 11, 'w' || g % 4 from generate_series(1, 4000) g;
----
(INSERT 0 4000)

analyze;
----
(ANALYZE)

select count(*), count(rj.id), sum(rj.v), count(distinct lj.id) from lj left join rj on rj.k = lj.k;
----
count | count | sum | count
4091 | 4087 | 19418 | 60
(SELECT 1)

select count(*), count(rj.id), sum(rj.v) from lj left join rj on rj.k = lj.k and rj.v > 8;
----
count | count | sum
708 | 657 | 6205
(SELECT 1)

select count(*), count(rj.id), sum(rj.v) from lj left join rj on rj.k = lj.k and lj.id > 50 and rj.v < lj.id - 45;
----
count | count | sum
780 | 730 | 3285
(SELECT 1)

select lj.id, count(rj.id) from lj left join rj on rj.k = lj.k and rj.w = 'w1' group by lj.id order by 2, 1 limit 6;
----
id | count
3 | 0
7 | 0
43 | 0
47 | 0
2 | 18
4 | 18
(SELECT 6)

select lj.id, lj.k, rj.id from lj left join rj on rj.k = lj.k and rj.v > 99 where lj.id < 4 order by 1;
----
id | k | id
1 | 1 | ∅
2 | 2 | ∅
3 | 3 | ∅
(SELECT 3)

select lj.id, rj.v from rj right join lj on rj.k = lj.k and rj.id < 100 and rj.v = 5 order by 1, 2 limit 8;
----
id | v
1 | ∅
2 | ∅
3 | ∅
4 | ∅
5 | 5
5 | 5
6 | ∅
7 | ∅
(SELECT 8)

select count(*) from lj left join rj on rj.k = lj.k where rj.id is null;
----
count
4
(SELECT 1)

select count(*), sum(x.v) from lj left join rj on rj.k = lj.k left join rj x on x.k = lj.k + 1;
----
count | sum
287987 | 1449999
(SELECT 1)

select count(*), count(b.id) from (select * from lj where id % 2 = 0) a left join rj b on b.k = a.k and b.v = a.id % 11;
----
count | count
1398 | 1387
(SELECT 1)

select count(*) from lj left join rj on rj.k = lj.k left join lj m on m.id = rj.v;
----
count
4091
(SELECT 1)

