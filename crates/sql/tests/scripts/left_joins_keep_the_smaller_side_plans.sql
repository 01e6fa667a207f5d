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

explain select count(*), count(rj.id), sum(rj.v), count(distinct lj.id) from lj left join rj on rj.k = lj.k;
----
QUERY PLAN
Aggregate
  ->  Hash Right Join  (rows=4444)
        Hash Cond: (rj.k = lj.k)
        ->  Seq Scan on rj  (rows=4000)
        ->  Seq Scan on lj  (rows=60)
Regions: us-east1
(EXPLAIN)

explain select count(*), count(rj.id), sum(rj.v) from lj left join rj on rj.k = lj.k and lj.id > 50 and rj.v < lj.id - 45;
----
QUERY PLAN
Aggregate
  ->  Hash Right Join  (rows=136)
        Hash Cond: (rj.k = lj.k)
        ->  Seq Scan on rj  (rows=4000)
        ->  Seq Scan on lj  (rows=60)
Regions: us-east1
(EXPLAIN)

explain select lj.id, lj.k, rj.id from lj left join rj on rj.k = lj.k and rj.v > 99 where lj.id < 4 order by 1;
----
QUERY PLAN
Hash Left Join  (rows=3)
  Hash Cond: (lj.k = rj.k)
  ->  Index Scan using lj_pkey on lj  (rows=3)
        Index Cond: (id < 4)
  ->  Seq Scan on rj  (rows=4)
        Filter: (v > 99)
Regions: us-east1
(EXPLAIN)

explain select count(*), sum(x.v) from lj left join rj on rj.k = lj.k left join rj x on x.k = lj.k + 1;
----
QUERY PLAN
Aggregate
  ->  Hash Left Join  (rows=323210)
        Hash Cond: ((lj.k + 1) = x.k)
        ->  Hash Right Join  (rows=4444)
              Hash Cond: (rj.k = lj.k)
              ->  Seq Scan on rj  (rows=4000)
              ->  Seq Scan on lj  (rows=60)
        ->  Seq Scan on rj x  (rows=4000)
Regions: us-east1
(EXPLAIN)

explain select count(*) from lj left join rj on rj.k = lj.k left join lj m on m.id = rj.v;
----
QUERY PLAN
Aggregate
  ->  Hash Right Join  (rows=4444)
        Hash Cond: (rj.k = lj.k)
        ->  Seq Scan on rj  (rows=4000)
        ->  Seq Scan on lj  (rows=60)
Regions: us-east1
(EXPLAIN)

