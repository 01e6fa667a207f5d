-- Conditions reach the tables below window functions, DISTINCT ON and UNION.
create table e (id int primary key, uid int, index (uid));
----
(CREATE TABLE)

create table f (id int primary key);
----
(CREATE TABLE)

explain select * from (select id, uid, row_number() over (partition by uid order by id desc) as n from e) as x where uid = 1 and n <= 2;
----
QUERY PLAN
Filter
  Filter: (#3 <= 2)
  ->  WindowAgg in order
        Run Condition: at most 2
        ->  Index Only Scan Backward using e_uid_idx on e
              Index Cond: (uid = 1)
Regions: us-east1
(EXPLAIN)

explain select * from (select distinct on (uid) uid, id from e order by uid, id desc) as x where uid = 1;
----
QUERY PLAN
Unique
  ->  Index Only Scan Backward using e_uid_idx on e
        Index Cond: (uid = 1)
Regions: us-east1
(EXPLAIN)

explain select * from (select id, 'e' as t from e union all select id, 'f' from f) as x where id = 3;
----
QUERY PLAN
Union All
  ->  Point Lookup using e_pkey on e
        Index Cond: (id = 3)
  ->  Point Lookup using f_pkey on f
        Index Cond: (id = 3)
Regions: us-east1
(EXPLAIN)

