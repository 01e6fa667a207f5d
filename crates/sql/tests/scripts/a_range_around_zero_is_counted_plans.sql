create table rz_l (id int primary key, v int);
----
(CREATE TABLE)

create table rz_r (id int primary key, z int);
----
(CREATE TABLE)

insert into rz_l select g, g from generate_series(-10000, 9999) g;
----
(INSERT 0 20000)

insert into rz_r select g, g from generate_series(1, 20000) g;
----
(INSERT 0 20000)

analyze rz_l, rz_r;
----
(ANALYZE)

explain select count(*) from rz_l join rz_r on rz_r.z = rz_l.id where rz_l.id between 30 and 348;
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=319)
        Hash Cond: (rz_r.z = rz_l.id)
        ->  Seq Scan on rz_r  (rows=20000)
        ->  Index Scan using rz_l_pkey on rz_l  (rows=319)
              Index Cond: (id >= 30) AND (id <= 348)
Regions: us-east1
(EXPLAIN)

explain select count(*) from rz_l join rz_r on rz_r.z = rz_l.id where rz_l.id between -300 and 300;
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=601)
        Hash Cond: (rz_r.z = rz_l.id)
        ->  Seq Scan on rz_r  (rows=20000)
        ->  Index Scan using rz_l_pkey on rz_l  (rows=601)
              Index Cond: (id >= -300) AND (id <= 300)
Regions: us-east1
(EXPLAIN)

explain select count(*) from rz_l join rz_r on rz_r.id = rz_l.id where rz_l.id between 4 and 652 and rz_r.id between 82 and 181;
----
QUERY PLAN
Aggregate
  ->  Lookup Join  (rows=100)
        ->  Index Scan using rz_r_pkey on rz_r  (rows=100)
              Index Cond: (id >= 82) AND (id <= 181)
        ->  Point Lookup using rz_l_pkey on rz_l  (rows=1)
              Index Cond: (id = outer #1)
              Filter: (id >= 4) AND (id <= 652)
Regions: us-east1
(EXPLAIN)

explain select count(*) from rz_l join rz_r on rz_r.z = rz_l.v where rz_l.v = 17;
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=1)
        Hash Cond: (rz_l.v = rz_r.z)
        ->  Seq Scan on rz_l  (rows=1)
              Filter: (v = 17)
        ->  Seq Scan on rz_r  (rows=1)
              Filter: (z = 17)
Regions: us-east1
(EXPLAIN)

explain select count(*) from rz_l join rz_r on rz_r.z = rz_l.v where rz_l.id = 17;
----
QUERY PLAN
Aggregate
  ->  Nested Loop Join  (rows=1)
        ->  Point Lookup using rz_l_pkey on rz_l  (rows=1)
              Index Cond: (id = 17)
        ->  Seq Scan on rz_r  (rows=1)
              Filter: (z = outer #1)
Regions: us-east1
(EXPLAIN)

drop table rz_l, rz_r;
----
(DROP TABLE)

