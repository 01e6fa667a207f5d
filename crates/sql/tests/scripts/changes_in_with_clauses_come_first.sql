-- postgres: same
create table a (id int primary key, v int);
----
(CREATE TABLE)

create table b (id int primary key, v int);
----
(CREATE TABLE)

insert into a values (1, 10), (2, 20), (3, 30);
----
(INSERT 0 3)

with moved as (delete from a where v > 10 returning *) insert into b select * from moved;
----
(INSERT 0 2)

select * from a;
----
id | v
1 | 10
(SELECT 1)

select * from b order by id;
----
id | v
2 | 20
3 | 30
(SELECT 2)

with added as (insert into a values (4, 40) returning id) select id + 1 as next from added;
----
next
5
(SELECT 1)

with ignored as (update b set v = 0 where id = 2) select 1 as one;
----
one
1
(SELECT 1)

select * from b order by id;
----
id | v
2 | 0
3 | 30
(SELECT 2)

create table c (k char(5) primary key, n numeric);
----
(CREATE TABLE)

insert into c values ('ab', 1.10), ('cd', 2);
----
(INSERT 0 2)

select k || '!' as k, n from c where k = 'ab';
----
k | n
ab! | 1.10
(SELECT 1)

select n from c where n = 1.1;
----
n
1.10
(SELECT 1)

