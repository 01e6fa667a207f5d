-- postgres: same

create table t (a int, b int);
----
(CREATE TABLE)

insert into t values (1, 2147483647), (2, 3), (null, null);
----
(INSERT 0 3)

select * from t where a / 0 = null;
----
a | b
(SELECT 0)

select * from t where b * b <= null;
----
a | b
(SELECT 0)

select * from t where not a / 0 <> null;
----
a | b
(SELECT 0)

select a, a / 0 > null as g, null < b * b as l from t order by a;
----
a | g | l
1 | ∅ | ∅
2 | ∅ | ∅
∅ | ∅ | ∅
(SELECT 3)

select * from t where a / 0 = null or a = 2;
----
a | b
2 | 3
(SELECT 1)

select * from t where a / 0 is distinct from null;
----
ERROR 22012: division by zero

select count(*) from t where null = null;
----
count
0
(SELECT 1)

select a from t group by a having sum(b) / 0 = null;
----
a
(SELECT 0)

drop table t;
----
(DROP TABLE)

