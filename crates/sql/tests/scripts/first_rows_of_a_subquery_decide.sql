-- postgres: same
create table o (id int primary key, x int);
----
(CREATE TABLE)

create table q (id int primary key, y int, z int);
----
(CREATE TABLE)

insert into o select g, g % 37 from generate_series(1, 120) as g;
----
(INSERT 0 120)

insert into q select g, g % 41, g % 13 from generate_series(1, 300) as g;
----
(INSERT 0 300)

insert into q values (1000, null, 7), (1001, 5, null);
----
(INSERT 0 2)

select count(*), sum(id) from o where x not in (select y from q where q.id < o.id);
----
count | sum
37 | 703
(SELECT 1)

select count(*), sum(id) from o where x not in (select y from q where q.id < o.id or q.id = 1000);
----
count | sum
0 | ∅
(SELECT 1)

select count(*), sum(id) from o where x in (select y from q where q.id > o.id);
----
count | sum
120 | 7260
(SELECT 1)

select count(*), sum(id) from o where x = all (select y from q where q.z <> o.id);
----
count | sum
0 | ∅
(SELECT 1)

select count(*), sum(id) from o where x <= all (select y from q where q.id > o.id);
----
count | sum
0 | ∅
(SELECT 1)

select count(*), sum(id) from o where x > any (select y from q where q.id > 2 * o.id);
----
count | sum
117 | 7038
(SELECT 1)

select id, x < all (select y from q where q.id > o.id and y is not null) as a, x <> any (select y from q where q.z > o.x) as b from o where id < 8 order by id;
----
id | a | b
1 | f | t
2 | f | t
3 | f | t
4 | f | t
5 | f | t
6 | f | t
7 | f | t
(SELECT 7)

select count(*) from o where (x, id) not in (select y, z from q where q.id <> o.id and q.id < 300);
----
count
120
(SELECT 1)

select count(*) from o where case when x > 3 then x not in (select y from q where q.id < o.id) else false end;
----
count
33
(SELECT 1)

