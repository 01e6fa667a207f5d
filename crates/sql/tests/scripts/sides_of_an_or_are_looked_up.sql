-- postgres: same
create table places (a int, b int, c int, primary key (a, b));
----
(CREATE TABLE)

insert into places select x, y, x * y from generate_series(1, 5) as x, generate_series(1, 8) as y;
----
(INSERT 0 40)

-- a condition that only one side's place answers is tested of the others' rows
select * from places where a = 2 and ((a = 1 and b = 5) or b = 6) order by a, b;
----
a | b | c
2 | 6 | 12
(SELECT 1)

select * from places where b = 6 and ((a = 1 and b = 5) or a = 3 or (a = 4 and c = 24)) order by a, b;
----
a | b | c
3 | 6 | 18
4 | 6 | 24
(SELECT 2)

select * from places where a = 2 and (b = 1 or (b = 2 and c = 4) or (b = 3 and c = 5)) order by a, b;
----
a | b | c
2 | 1 | 2
2 | 2 | 4
(SELECT 2)

-- ranges that overlap give each row once, in the order of the index
select a, b from places where (a = 2 and b > 5) or (a = 2 and b between 3 and 7) or a >= 5 and b > 6 order by a, b;
----
a | b
2 | 3
2 | 4
2 | 5
2 | 6
2 | 7
2 | 8
5 | 7
5 | 8
(SELECT 8)

select a, b from places where (a, b) > (4, 6) order by a desc, b desc;
----
a | b
5 | 8
5 | 7
5 | 6
5 | 5
5 | 4
5 | 3
5 | 2
5 | 1
4 | 8
4 | 7
(SELECT 10)

select count(*) from places where (a = 1 and b <= 4) or (a = 1 and b >= 3) or a < 2;
----
count
8
(SELECT 1)

-- lists and ranges
select a, b from places where a in (1, 3) and (b in (2, 4) or b > 7) order by a, b;
----
a | b
1 | 2
1 | 4
1 | 8
3 | 2
3 | 4
3 | 8
(SELECT 6)

select a, b from places where a in (1, 3, 3) and b = 2 or a between 2 and 4 and b = 8 or a = null order by a, b;
----
a | b
1 | 2
2 | 8
3 | 2
3 | 8
4 | 8
(SELECT 5)

select a, b from places where (a = 1 or a > 4) and (b < 2 or b = 8) order by a, b;
----
a | b
1 | 1
1 | 8
5 | 1
5 | 8
(SELECT 4)

-- over two indexes
create table several (id int primary key, x int, y int, t text);
----
(CREATE TABLE)

create index on several (x);
----
(CREATE INDEX)

create index on several (y, x);
----
(CREATE INDEX)

create index on several (t);
----
(CREATE INDEX)

insert into several select n, n % 50, n / 3, 'w' || (n % 20) from generate_series(1, 600) as n;
----
(INSERT 0 600)

insert into several values (1001, null, 7, null), (1002, 7, null, null), (1003, null, null, 'w3');
----
(INSERT 0 3)

select id from several where x = 7 and y < 50 or y = 7 order by id;
----
id
7
21
22
23
57
107
1001
(SELECT 7)

select count(*), sum(id) from several where x = 7 or y = 7 or id in (7, 8, 9) or t = 'w3';
----
count | sum
49 | 15240
(SELECT 1)

select count(*), sum(id) from several where (x = 7 or y = 7) and (t = 'w7' or id < 100);
----
count | sum
10 | 1665
(SELECT 1)

select id from several where (x = 7 or y = 7) and t is null order by id desc;
----
id
1002
1001
(SELECT 2)

select id from several where x = 7 or y = 7 order by id limit 4;
----
id
7
21
22
23
(SELECT 4)

select id, (select count(*) from several i where i.x = o.x or i.y = o.id) from several o where o.id < 4 or o.x = 49 and o.id < 100 order by id;
----
id | count
1 | 15
2 | 15
3 | 15
49 | 14
99 | 14
(SELECT 5)

select s.id, o.id from several s join several o on s.id = o.x or s.id = o.y where s.id in (3, 30) and o.id < 40 order by 1, 2;
----
id | id
3 | 3
3 | 9
3 | 10
3 | 11
30 | 30
(SELECT 5)

update several set t = 'changed' where (x = 3 or y = 3) and id < 60 returning id, x, y;
----
id | x | y
3 | 3 | 1
9 | 9 | 3
10 | 10 | 3
11 | 11 | 3
53 | 3 | 17
(UPDATE 5)

delete from several where x = 4 or y = 4 or t = 'changed';
----
(DELETE 20)

select count(*), sum(id), sum(x) from several;
----
count | sum | sum
583 | 179833 | 14584
(SELECT 1)

select id from several where x = 5 or y = 5 order by id for update;
----
id
5
15
16
17
55
105
155
205
255
305
355
405
455
505
555
(SELECT 15)

