-- postgres: same
-- A condition on what all windows are partitioned by, on the columns of DISTINCT ON, or on a UNION,
-- decides which rows are read.
create table e (id int primary key, uid int, kind text, v int);
----
(CREATE TABLE)

create table f (id int primary key, uid int);
----
(CREATE TABLE)

insert into e select i, i % 4, case when i % 2 = 0 then 'even' else 'odd' end, i * 10 from generate_series(1, 12) as g(i);
----
(INSERT 0 12)

insert into f select i, i % 3 from generate_series(1, 6) as g(i);
----
(INSERT 0 6)

select * from (select id, uid, row_number() over (partition by uid order by id desc) as n from e) as x where uid = 1 and n <= 2 order by id;
----
id | uid | n
5 | 1 | 2
9 | 1 | 1
(SELECT 2)

select * from (select id, uid, kind, sum(v) over (partition by uid) as s, count(*) over (partition by kind, uid) as c, rank() over (order by id) as r from e) as x where uid = 1 and kind = 'odd' order by id;
----
id | uid | kind | s | c | r
1 | 1 | odd | 150 | 3 | 1
5 | 1 | odd | 150 | 3 | 5
9 | 1 | odd | 150 | 3 | 9
(SELECT 3)

select * from (select distinct on (uid) uid, id, kind from e order by uid, id desc) as x where uid > 1 and kind = 'even';
----
uid | id | kind
2 | 10 | even
(SELECT 1)

select * from (select id, uid from e union all select uid, id from f) as x where id = 2 order by uid;
----
id | uid
2 | 2
2 | 2
2 | 5
(SELECT 3)

select * from (select uid, count(*) over () as n from e union select uid, 0 from f) as x where uid = 2 and n >= 0 order by n;
----
uid | n
2 | 0
2 | 12
(SELECT 2)

select * from (select uid from e intersect select id from f) as x where uid <> 2 order by uid;
----
uid
1
3
(SELECT 2)

select * from (select uid from e except select id from f where id > 2) as x where uid < 3 order by uid;
----
uid
0
1
2
(SELECT 3)

