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

create table many (id int primary key, s text);
----
(CREATE TABLE)

create sequence m;
----
(CREATE SEQUENCE)

insert into many select g, 's' || g % 3 from generate_series(0, 699) as g;
----
(INSERT 0 700)

select 1 / (id - 650) from many limit 3 offset 600;
----
?column?
0
0
0
(SELECT 3)

begin;
----
(BEGIN)

declare c cursor for select id, 1 / (id - 50) from many order by id;
----
(DECLARE CURSOR)

fetch 2 from c;
----
id | ?column?
0 | 0
1 | 0
(FETCH 2)

move 40 from c;
----
(MOVE 40)

fetch 2 from c;
----
id | ?column?
42 | 0
43 | 0
(FETCH 2)

rollback;
----
(ROLLBACK)

select id, nextval('m') from many order by id desc limit 3 offset 600;
----
id | nextval
99 | 601
98 | 602
97 | 603
(SELECT 3)

select last_value from m;
----
last_value
603
(SELECT 1)

select id from many order by null;
----
ERROR 42601: non-integer constant in ORDER BY
POSITION: 30

select id from many limit -1 offset -1;
----
ERROR 2201X: OFFSET must not be negative

select null::timestamp + interval '1 day' * (1 / (id - 5)) from many where id = 5;
----
?column?
∅
(SELECT 1)

alter table many add column ts timestamp;
----
(ALTER TABLE)

select ts + interval '1 day' * (1 / (id - 5)) from many where id = 5;
----
ERROR 22012: division by zero

