-- postgres: same
-- Sequences are drawn from in the order of the result, and not for rows beyond a limit.
create table t (id int primary key, v int);
----
(CREATE TABLE)

create sequence q;
----
(CREATE SEQUENCE)

create sequence r;
----
(CREATE SEQUENCE)

insert into t select g, (g * 7) % 10 from generate_series(0, 9) as g;
----
(INSERT 0 10)

select nextval('q'), v, id from t order by v;
----
nextval | v | id
1 | 0 | 0
2 | 1 | 3
3 | 2 | 6
4 | 3 | 9
5 | 4 | 2
6 | 5 | 5
7 | 6 | 8
8 | 7 | 1
9 | 8 | 4
10 | 9 | 7
(SELECT 10)

select v, nextval('q') from t order by v desc limit 3;
----
v | nextval
9 | 11
8 | 12
7 | 13
(SELECT 3)

select nextval('q');
----
nextval
14
(SELECT 1)

select nextval('q') as n, v from t order by n limit 2;
----
n | v
15 | 0
16 | 7
(SELECT 2)

select nextval('q') > 24, v + 1 as w, id from t where id < 3 order by w desc;
----
?column? | w | id
t | 8 | 1
t | 5 | 2
t | 1 | 0
(SELECT 3)

select id, (select count(nextval('r')) from t as x where x.v < t.v) from t order by v desc limit 2;
----
id | count
7 | 9
4 | 8
(SELECT 2)

select last_value from r;
----
last_value
17
(SELECT 1)

select id, 10 / (v - 7) from t order by id limit 1;
----
id | ?column?
0 | -1
(SELECT 1)

select id, 10 / (v - 7), nextval('q') > 0 from t where v <> 7 order by v limit 2;
----
id | ?column? | ?column?
0 | -1 | t
3 | -1 | t
(SELECT 2)

select id, v as x, v as y from t order by x desc, y limit (select 2) offset (select 1);
----
id | x | y
4 | 8 | 8
1 | 7 | 7
(SELECT 2)

select id from t order by v + 0 limit 2;
----
id
0
3
(SELECT 2)

