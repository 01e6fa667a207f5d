create table l (id int primary key, v int);
----
(CREATE TABLE)

create table m (id int primary key, w int);
----
(CREATE TABLE)

explain select * from l join m on l.id = m.id for update of m;
----
QUERY PLAN
LockRows
  Locks rows of: m
  ->  Hash Join
        Hash Cond: (l.id = m.id)
        ->  Seq Scan on l
        ->  Seq Scan on m
Regions: us-east1
(EXPLAIN)

explain select * from l join m on l.id = m.id for update of l, m nowait;
----
QUERY PLAN
LockRows
  Locks rows of: l, m
  ->  Hash Join
        Hash Cond: (l.id = m.id)
        ->  Seq Scan on l
        ->  Seq Scan on m
Regions: us-east1
(EXPLAIN)

explain select * from (select * from l) as d join m on d.id = m.id for share of d;
----
QUERY PLAN
LockRows
  Locks rows of: l
  ->  Hash Join
        Hash Cond: (l.id = m.id)
        ->  Seq Scan on l
        ->  Seq Scan on m
Regions: us-east1
(EXPLAIN)

explain select * from l as x join m as y on x.id = y.id for share of x for update of y skip locked;
----
QUERY PLAN
LockRows
  Locks rows of: x, y
  ->  Hash Join
        Hash Cond: (x.id = y.id)
        ->  Seq Scan on l x
        ->  Seq Scan on m y
Regions: us-east1
(EXPLAIN)

