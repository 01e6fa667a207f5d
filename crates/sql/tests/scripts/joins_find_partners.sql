-- postgres: same
create table a (id int primary key, x int, name text);
----
(CREATE TABLE)

create table b (id int primary key, a_id int, y int);
----
(CREATE TABLE)

create index b_a on b (a_id);
----
(CREATE INDEX)

insert into a values (1, 10, 'one'), (2, 20, 'two'), (3, null, 'three');
----
(INSERT 0 3)

insert into b values (1, 1, 100), (2, 1, 200), (3, 2, 300), (4, null, 400), (5, 9, 500);
----
(INSERT 0 5)

select a.name, b.y from a join b on b.a_id = a.id order by b.id;
----
name | y
one | 100
one | 200
two | 300
(SELECT 3)

select a.name, b.y from a, b where a.id = b.a_id and b.y > 100 order by 2;
----
name | y
one | 200
two | 300
(SELECT 2)

select a.name, b.y from a left join b on b.a_id = a.id order by a.id, b.id;
----
name | y
one | 100
one | 200
two | 300
three | ∅
(SELECT 4)

select a.name, b.y from a left join b on b.a_id = a.id and b.y > 100 order by a.id, b.id;
----
name | y
one | 200
two | 300
three | ∅
(SELECT 3)

select a.name, b.y from a left join b on b.a_id = a.id where b.y is null;
----
name | y
three | ∅
(SELECT 1)

select a.name, b.y from a right join b on b.a_id = a.id order by b.id;
----
name | y
one | 100
one | 200
two | 300
∅ | 400
∅ | 500
(SELECT 5)

select a.name, b.y from a full join b on b.a_id = a.id order by a.id, b.id;
----
name | y
one | 100
one | 200
two | 300
three | ∅
∅ | 400
∅ | 500
(SELECT 6)

select count(*) from a cross join b;
----
count
15
(SELECT 1)

select * from a natural join (select id, y from b) as c order by id;
----
id | x | name | y
1 | 10 | one | 100
2 | 20 | two | 200
3 | ∅ | three | 300
(SELECT 3)

select * from a join (select id, y from b) as c using (id) order by id;
----
id | x | name | y
1 | 10 | one | 100
2 | 20 | two | 200
3 | ∅ | three | 300
(SELECT 3)

select id from a full join (select id + 2 as id from b) as c using (id) order by id;
----
id
1
2
3
4
5
6
7
(SELECT 7)

select x.id, y.id from a as x join a as y on x.id < y.id order by 1, 2;
----
id | id
1 | 2
1 | 3
2 | 3
(SELECT 3)

select a.id, l.y from a, lateral (select y from b where b.a_id = a.id order by y desc limit 1) as l order by 1;
----
id | y
1 | 200
2 | 300
(SELECT 2)

select a.id, g from a, generate_series(1, a.id) as g order by 1, 2;
----
id | g
1 | 1
2 | 1
2 | 2
3 | 1
3 | 2
3 | 3
(SELECT 6)

select a.id, b.id from a left join b on a.x < b.y and b.id > 3 order by 1, 2;
----
id | id
1 | 4
1 | 5
2 | 4
2 | 5
3 | ∅
(SELECT 5)

select id from a join b on a.id = b.id;
----
ERROR 42702: column reference "id" is ambiguous
POSITION: 8

select * from a join a on true;
----
ERROR 42712: table name "a" specified more than once

select * from a join b using (name);
----
ERROR 42703: column "name" specified in USING clause does not exist in right table

select a.id from a where exists (select from b where b.a_id = a.id) order by 1;
----
id
1
2
(SELECT 2)

select a.id from a where not exists (select 1 from b where b.a_id = a.id) order by 1;
----
id
3
(SELECT 1)

select a.id from a where id in (select a_id from b) order by 1;
----
id
1
2
(SELECT 2)

select a.id from a where id not in (select a_id from b) order by 1;
----
id
(SELECT 0)

select a.id from a where id not in (select a_id from b where a_id is not null) order by 1;
----
id
3
(SELECT 1)

select a.id, (select max(y) from b where b.a_id = a.id) as m from a order by 1;
----
id | m
1 | 200
2 | 300
3 | ∅
(SELECT 3)

select a.id from a where (a.id, 100) in (select a_id, y from b);
----
id
1
(SELECT 1)

select a.id from a where id = any (select a_id from b) order by 1;
----
id
1
2
(SELECT 2)

select a.id from a where id > all (select a_id from b where a_id < 3) order by 1;
----
id
3
(SELECT 1)

select (select y from b);
----
ERROR 21000: more than one row returned by a subquery used as an expression

select array(select y from b where a_id = 1 order by y desc);
----
array
{200,100}
(SELECT 1)

update a set x = b.y from b where b.a_id = a.id and b.id = 3 returning a.id, a.x, b.y;
----
id | x | y
2 | 300 | 300
(UPDATE 1)

delete from b using a where b.a_id = a.id and a.name = 'one' returning b.id;
----
id
1
2
(DELETE 2)

select b.id from b order by 1;
----
id
3
4
5
(SELECT 3)

