create table lj (id int primary key, k int, note text);
----

create table rj (id int primary key, k int, v int, w text);
----

insert into lj select g, nullif(g % 40, 7), 'n' || g from generate_series(1, 60) g;
----

insert into rj select g, nullif(g % 55, 3), g % 11, 'w' || g % 4 from generate_series(1, 4000) g;
----

analyze;
----

explain select count(*), count(rj.id), sum(rj.v), count(distinct lj.id) from lj left join rj on rj.k = lj.k;
----

explain select count(*), count(rj.id), sum(rj.v) from lj left join rj on rj.k = lj.k and lj.id > 50 and rj.v < lj.id - 45;
----

explain select lj.id, lj.k, rj.id from lj left join rj on rj.k = lj.k and rj.v > 99 where lj.id < 4 order by 1;
----

explain select count(*), sum(x.v) from lj left join rj on rj.k = lj.k left join rj x on x.k = lj.k + 1;
----

explain select count(*) from lj left join rj on rj.k = lj.k left join lj m on m.id = rj.v;
----
