-- postgres: same
create table o (w int, d int, id int, v text, primary key (w, d, id));
----
(CREATE TABLE)

insert into o select w, d, id, 'v' || w || d || id from generate_series(1, 3) w, generate_series(1, 3) d, generate_series(1, 4) id;
----
(INSERT 0 36)

select w, d, id from o where (w, d, id) in ((1, 2, 3), (3, 1, 4), (1, 2, 3), (9, 9, 9), (null, 1, 1)) order by 1, 2, 3;
----
w | d | id
1 | 2 | 3
3 | 1 | 4
(SELECT 2)

select w, d, id from o where w = 2 and (d, id) in ((1, 1), (3, 2)) order by 1, 2, 3;
----
w | d | id
2 | 1 | 1
2 | 3 | 2
(SELECT 2)

select w, d, id from o where (w = 1 and d = 3) or (w = 2 and d = 1 and id > 3) order by 1, 2, 3;
----
w | d | id
1 | 3 | 1
1 | 3 | 2
1 | 3 | 3
1 | 3 | 4
2 | 1 | 4
(SELECT 5)

select w, d, id from o where (w = 1 and d = 3 and id = 1) or (w = 2 and d = 1) or v = 'v333' order by 1, 2, 3;
----
w | d | id
1 | 3 | 1
2 | 1 | 1
2 | 1 | 2
2 | 1 | 3
2 | 1 | 4
3 | 3 | 3
(SELECT 6)

update o set v = 'x' where (w, d, id) in ((1, 1, 1), (2, 2, 2)) returning w, d, id;
----
w | d | id
1 | 1 | 1
2 | 2 | 2
(UPDATE 2)

delete from o where (w, d) in ((1, 1), (3, 3)) and id in (1, 2);
----
(DELETE 4)

select count(*), min(id), max(id), max(w) from o;
----
count | min | max | max
32 | 1 | 4 | 3
(SELECT 1)

create index on o (v);
----
(CREATE INDEX)

select min(v), max(v), min(w) from o where w = 2;
----
min | max | min
v211 | x | 2
(SELECT 1)

select min(v), max(v) from o;
----
min | max
v113 | x
(SELECT 1)

select min(id), max(v) from o where w > 7;
----
min | max
∅ | ∅
(SELECT 1)

create table n (a int primary key, b int);
----
(CREATE TABLE)

create index on n (b);
----
(CREATE INDEX)

insert into n values (1, null), (2, null), (3, 30), (4, 40), (5, null);
----
(INSERT 0 5)

select min(b), max(b) from n;
----
min | max
30 | 40
(SELECT 1)

select max(b) from n where a < 3;
----
max
∅
(SELECT 1)

select count(*) from n where b is not null;
----
count
2
(SELECT 1)

select a from n where b is not null and b < 40;
----
a
3
(SELECT 1)

select a, b from n order by b desc, a limit 2;
----
a | b
1 | ∅
2 | ∅
(SELECT 2)

select a, b from n order by b, a desc limit 2 offset 1;
----
a | b
4 | 40
5 | ∅
(SELECT 2)

select n.a, o.w, o.d from n, o where o.w = n.a and n.a = 2 and o.d = o.w and o.id = 1;
----
a | w | d
2 | 2 | 2
(SELECT 1)

select n.a, o.id from n left join o on o.w = n.a and o.d = 1 and o.id = n.a where n.a in (2, 5) order by 1;
----
a | id
2 | 2
5 | ∅
(SELECT 2)

select sum(a) over (order by a), count(b) over (order by a rows between unbounded preceding and current row),
  max(b) over (), sum(a) over (order by a rows between 1 preceding and 1 following) from n order by a;
----
sum | count | max | sum
1 | 0 | 40 | 3
3 | 0 | 40 | 6
6 | 1 | 40 | 9
10 | 2 | 40 | 12
15 | 2 | 40 | 9
(SELECT 5)

