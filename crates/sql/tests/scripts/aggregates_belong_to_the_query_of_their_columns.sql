-- postgres: same
-- An aggregate belongs to the innermost query that has a column of its arguments (PostgreSQL manual, 4.2.7).
create table t (a int primary key, b int);
----
(CREATE TABLE)

insert into t values (1, 1), (2, 2), (3, 7);
----
(INSERT 0 3)

create table u (a int primary key, c int);
----
(CREATE TABLE)

insert into u values (1, 5), (2, null);
----
(INSERT 0 2)

select (select sum(b)) from t;
----
sum
10
(SELECT 1)

select (select count(b)) as n from t;
----
n
3
(SELECT 1)

select (select sum(t.b) from u limit 1) from t;
----
sum
10
(SELECT 1)

select (select sum(t.b + u.a) from u) from t order by 1;
----
sum
5
7
17
(SELECT 3)

select (select sum(c) from u) from t;
----
sum
5
5
5
(SELECT 3)

select (select count(*) from u) from t;
----
count
2
2
2
(SELECT 3)

select a, (select max(t.b) from u limit 1) from t group by a order by a;
----
a | max
1 | 1
2 | 2
3 | 7
(SELECT 3)

select a % 2 as odd, (select sum(t.b) || '/' || count(*) from u) from t group by a % 2 order by 1;
----
odd | ?column?
0 | 2/2
1 | 8/2
(SELECT 2)

select (select sum(t.b) filter (where t.a > 1)), (select string_agg(t.b::text, ',' order by t.a desc)) from t;
----
sum | string_agg
9 | 7,2,1
(SELECT 1)

select sum(b), (select sum(b)) from t;
----
sum | sum
10 | 10
(SELECT 1)

select (select (select sum(t.b))) from t;
----
sum
10
(SELECT 1)

select count(*) from t having exists (select 1 from u where u.c < sum(t.b));
----
count
3
(SELECT 1)

select a from t group by a having (select max(t.b)) > 1 order by a;
----
a
2
3
(SELECT 2)

select a from t group by a order by (select max(-t.b));
----
a
3
2
1
(SELECT 3)

select a, (select sum(t.b)) from t;
----
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function
POSITION: 8

select (select b + sum(b)) from t;
----
ERROR 42803: subquery uses ungrouped column "t.b" from outer query

select a from t where (select sum(t.b)) > 1;
----
ERROR 42803: aggregate functions are not allowed in WHERE
POSITION: 31

select a from t where exists (select 1 from u group by u.a having sum(t.b) > 1);
----
ERROR 42803: aggregate functions are not allowed in WHERE
POSITION: 67

select sum((select sum(t.b))) from t;
----
ERROR 42803: aggregate function calls cannot be nested
POSITION: 20

select t.a from t join u on (select sum(t.b)) > 1;
----
ERROR 42803: aggregate functions are not allowed in JOIN conditions
POSITION: 37

update t set b = (select sum(t.b));
----
ERROR 42803: aggregate functions are not allowed in UPDATE
POSITION: 26

