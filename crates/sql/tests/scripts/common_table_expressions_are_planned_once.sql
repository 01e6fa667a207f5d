-- PostgreSQL computes each of them once.
create table b (k int primary key); insert into b values (1), (2), (3);
----
(CREATE TABLE)
(INSERT 0 3)

with c0 as (select k from b), c1 as (select x.k from c0 x join c0 y on x.k = y.k), c2 as (select x.k from c1 x join c1 y on x.k = y.k), c3 as (select x.k from c2 x join c2 y on x.k = y.k), c4 as (select x.k from c3 x join c3 y on x.k = y.k), c5 as (select x.k from c4 x join c4 y on x.k = y.k), c6 as (select x.k from c5 x join c5 y on x.k = y.k), c7 as (select x.k from c6 x join c6 y on x.k = y.k), c8 as (select x.k from c7 x join c7 y on x.k = y.k), c9 as (select x.k from c8 x join c8 y on x.k = y.k), c10 as (select x.k from c9 x join c9 y on x.k = y.k), c11 as (select x.k from c10 x join c10 y on x.k = y.k), c12 as (select x.k from c11 x join c11 y on x.k = y.k), c13 as (select x.k from c12 x join c12 y on x.k = y.k), c14 as (select x.k from c13 x join c13 y on x.k = y.k), c15 as (select x.k from c14 x join c14 y on x.k = y.k), c16 as (select x.k from c15 x join c15 y on x.k = y.k), c17 as (select x.k from c16 x join c16 y on x.k = y.k), c18 as (select x.k from c17 x join c17 y on x.k = y.k), c19 as (select x.k from c18 x join c18 y on x.k = y.k), c20 as (select x.k from c19 x join c19 y on x.k = y.k), c21 as (select x.k from c20 x join c20 y on x.k = y.k), c22 as (select x.k from c21 x join c21 y on x.k = y.k), c23 as (select x.k from c22 x join c22 y on x.k = y.k), c24 as (select x.k from c23 x join c23 y on x.k = y.k), c25 as (select x.k from c24 x join c24 y on x.k = y.k), c26 as (select x.k from c25 x join c25 y on x.k = y.k), c27 as (select x.k from c26 x join c26 y on x.k = y.k), c28 as (select x.k from c27 x join c27 y on x.k = y.k), c29 as (select x.k from c28 x join c28 y on x.k = y.k) select count(*) from c29;
----
count
3
(SELECT 1)

