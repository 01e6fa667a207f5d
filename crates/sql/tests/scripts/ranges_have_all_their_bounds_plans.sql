create table t (id int primary key, a int, b int, s text);
----
(CREATE TABLE)

create index t_ab on t (a, b);
----
(CREATE INDEX)

create index t_s on t (s);
----
(CREATE INDEX)

insert into t select g, case when g % 11 > 0 then g % 100 end, g % 7, 's' || g % 50 from generate_series(1, 2000) as g;
----
(INSERT 0 2000)

create table u (id int primary key, c int);
----
(CREATE TABLE)

insert into u select g * 2, g from generate_series(1, 800) as g;
----
(INSERT 0 800)

analyze t;
----
(ANALYZE)

analyze u;
----
(ANALYZE)

explain select count(*) from t where a >= 10 and a > 95;
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using t_ab on t  (rows=72)
        Index Cond: (a >= 10) AND (a > 95)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where a > 95 and a >= 10;
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using t_ab on t  (rows=72)
        Index Cond: (a > 95) AND (a >= 10)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where a >= 10 and a > 10 and a <= 12 and a < 12;
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using t_ab on t  (rows=18)
        Index Cond: (a >= 10) AND (a > 10) AND (a <= 12) AND (a < 12)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where a > 10 and a >= 10;
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using t_ab on t  (rows=1618)
        Index Cond: (a > 10) AND (a >= 10)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where a >= 10 and (a, b) > (97, 3);
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using t_ab on t  (rows=44)
        Index Cond: ((a > 97) AND (a >= 10) OR (a = 97) AND (b > 3))
        Filter: (a >= 10)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where a between 10 and 90 and (a, b) < (11, 3);
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using t_ab on t  (rows=26)
        Index Cond: ((a >= 10) AND (a < 11) AND (a <= 90) OR (a = 11) AND (b < 3))
        Filter: (a >= 10) AND (a <= 90)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where a between 10 and 50 and a between 49 and 99;
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using t_ab on t  (rows=36)
        Index Cond: (a >= 10) AND (a >= 49) AND (a <= 50) AND (a <= 99)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where a > 5 and a > null;
----
QUERY PLAN
Aggregate
  ->  Values Scan
(EXPLAIN)

explain select count(*) from t where not (a > 3 or b = 1);
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using t_ab on t  (rows=64)
        Index Cond: (a <= 3)
        Filter: (b <> 1)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where not (a < 98 and b < 5);
----
QUERY PLAN
Aggregate in batches
  ->  Seq Scan on t  (rows=1111)
        Filter: ((a >= 98) OR (b >= 5))
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where a not between 2 and 98;
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using t_ab on t  (rows=56)
        Index Cond: ((a < 2) OR (a > 98))
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where not (id >= 4 and id <= 1998);
----
QUERY PLAN
Aggregate in batches
  ->  Index Scan using t_pkey on t  (rows=4)
        Index Cond: ((id < 4) OR (id > 1998))
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where case when true then id = 5 else false end;
----
QUERY PLAN
Aggregate
  ->  Point Lookup using t_pkey on t  (rows=1)
        Index Cond: (id = 5)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where case when false then id = 5 when null then id = 6 else id = 7 end;
----
QUERY PLAN
Aggregate
  ->  Point Lookup using t_pkey on t  (rows=1)
        Index Cond: (id = 7)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where s is not distinct from 's7' and a > 90;
----
QUERY PLAN
Aggregate
  ->  Index Scan using t_s on t  (rows=40)
        Index Cond: (s = 's7')
        Filter: (a > 90)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where s is not distinct from null;
----
QUERY PLAN
Aggregate in batches
  ->  Seq Scan on t  (rows=1400)
        Filter: (NOT (s IS DISTINCT FROM NULL))
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where a is not distinct from 5 and b is not distinct from 3;
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using t_ab on t  (rows=3)
        Index Cond: (a = 5) AND (b = 3)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t where id > 5 and id > 1990 and id < 3000 and id < 1995;
----
QUERY PLAN
Aggregate in batches
  ->  Index Scan using t_pkey on t  (rows=4)
        Index Cond: (id > 5) AND (id > 1990) AND (id < 3000) AND (id < 1995)
Regions: us-east1
(EXPLAIN)

explain select count(*), sum(id), sum(c) from t full join u using (id) where id = 10;
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: (COALESCE(t.id, u.id) = 10)
        ->  Hash Full Join  (rows=1)
              Hash Cond: (t.id = u.id)
              ->  Point Lookup using t_pkey on t  (rows=1)
                    Index Cond: (id = 10)
              ->  Point Lookup using u_pkey on u  (rows=1)
                    Index Cond: (id = 10)
Regions: us-east1
(EXPLAIN)

explain select count(*), sum(id), sum(c), sum(a) from t full join u using (id) where id > 1590;
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: (COALESCE(t.id, u.id) > 1590)
        ->  Hash Full Join  (rows=409)
              Hash Cond: (t.id = u.id)
              ->  Index Scan using t_pkey on t  (rows=409)
                    Index Cond: (id > 1590)
              ->  Index Scan using u_pkey on u  (rows=4)
                    Index Cond: (id > 1590)
Regions: us-east1
(EXPLAIN)

explain select count(*) from t full join u using (id) where id < 4 and c is null;
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: (u.c IS NULL) AND (COALESCE(t.id, u.id) < 4)
        ->  Hash Full Join  (rows=3)
              Hash Cond: (t.id = u.id)
              ->  Index Scan using t_pkey on t  (rows=3)
                    Index Cond: (id < 4)
              ->  Index Scan using u_pkey on u  (rows=1)
                    Index Cond: (id < 4)
Regions: us-east1
(EXPLAIN)

explain select id, a, c from t full join u using (id) where id between 1597 and 1602 order by id;
----
QUERY PLAN
Sort
  Sort Key: column 3
  ->  Filter
        Filter: (COALESCE(t.id, u.id) >= 1597) AND (COALESCE(t.id, u.id) <= 1602)
        ->  Hash Full Join  (rows=6)
              Hash Cond: (t.id = u.id)
              ->  Index Scan using t_pkey on t  (rows=6)
                    Index Cond: (id >= 1597) AND (id <= 1602)
              ->  Index Scan using u_pkey on u  (rows=1)
                    Index Cond: (id >= 1597) AND (id <= 1602)
Regions: us-east1
(EXPLAIN)

explain select count(*) from u full join t on t.id = u.id where coalesce(t.id, u.id) = 12;
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: (COALESCE(t.id, u.id) = 12)
        ->  Hash Full Join  (rows=1)
              Hash Cond: (u.id = t.id)
              ->  Point Lookup using u_pkey on u  (rows=1)
                    Index Cond: (id = 12)
              ->  Point Lookup using t_pkey on t  (rows=1)
                    Index Cond: (id = 12)
Regions: us-east1
(EXPLAIN)

explain select count(*) from u full join t on t.id = u.id where coalesce(u.c, t.id) = 12;
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: (COALESCE(u.c, t.id) = 12)
        ->  Hash Full Join  (rows=800)
              Hash Cond: (u.id = t.id)
              ->  Seq Scan on u  (rows=800)
              ->  Seq Scan on t  (rows=2000)
Regions: us-east1
(EXPLAIN)

