-- postgres: same
create table b (k int primary key); insert into b values (1), (2), (3);
----
(CREATE TABLE)
(INSERT 0 3)

with c0 as (select k from b), c1 as (select x.k from c0 x join c0 y on x.k = y.k), c2 as (select x.k from c1 x join c1 y on x.k = y.k), c3 as (select x.k from c2 x join c2 y on x.k = y.k), c4 as (select x.k from c3 x join c3 y on x.k = y.k), c5 as (select x.k from c4 x join c4 y on x.k = y.k), c6 as (select x.k from c5 x join c5 y on x.k = y.k), c7 as (select x.k from c6 x join c6 y on x.k = y.k), c8 as (select x.k from c7 x join c7 y on x.k = y.k) select count(*) from c8;
----
count
3
(SELECT 1)

with c0 as (select k from b where k < 3), c1 as (select k + 1 as k from c0), c2 as (select k + 1 as k from c1), c3 as (select k + 1 as k from c2), c4 as (select k + 1 as k from c3), c5 as (select k + 1 as k from c4), c6 as (select k + 1 as k from c5), c7 as (select k + 1 as k from c6), c8 as (select k + 1 as k from c7), c9 as (select k + 1 as k from c8) select (select max(k) from c9) a, (select min(k) from c8) b;
----
a | b
11 | 9
(SELECT 1)

