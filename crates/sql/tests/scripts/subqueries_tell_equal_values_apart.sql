-- postgres: same
-- Values that are equal and written in different ways are different arguments of a subquery.
create table amounts (id int primary key, n numeric, f float8, v interval, j jsonb, a numeric[]);
----
(CREATE TABLE)

insert into amounts values
  (1, 1.5, 0, '1 day', '1.5', '{1.5}'),
  (2, 1.50, '-0', '24:00', '1.50', '{1.50}'),
  (3, 1.500, 0, '-1 month 31 days', '1.500', '[2:2]={1.5}');
----
(INSERT 0 3)

create table one (id int primary key);
----
(CREATE TABLE)

insert into one values (1);
----
(INSERT 0 1)

select id, (select amounts.n::text from one where one.id = 1) from amounts order by id;
----
id | n
1 | 1.5
2 | 1.50
3 | 1.500
(SELECT 3)

select id, (select amounts.f::text from one where one.id = 1) from amounts order by id;
----
id | f
1 | 0
2 | -0
3 | 0
(SELECT 3)

select id, (select amounts.v::text from one where one.id = 1) from amounts order by id;
----
id | v
1 | 1 day
2 | 24:00:00
3 | -1 mons +31 days
(SELECT 3)

select id, (select amounts.j::text from one where one.id = 1) from amounts order by id;
----
id | j
1 | 1.5
2 | 1.50
3 | 1.500
(SELECT 3)

select id, (select amounts.a::text from one where one.id = 1) from amounts order by id;
----
id | a
1 | {1.5}
2 | {1.50}
3 | [2:2]={1.5}
(SELECT 3)

select id, (select row(amounts.n, amounts.v)::text from one where one.id = 1) from amounts order by id;
----
id | row
1 | (1.5,"1 day")
2 | (1.50,24:00:00)
3 | (1.500,"-1 mons +31 days")
(SELECT 3)

select id from amounts where 31 in (select extract(day from amounts.v) from one limit 1);
----
id
3
(SELECT 1)

select id, array(select amounts.n::text from one) from amounts order by id;
----
id | array
1 | {1.5}
2 | {1.50}
3 | {1.500}
(SELECT 3)

select id, exists (select 1 from one where amounts.n::text = '1.50') from amounts order by id;
----
id | exists
1 | f
2 | t
3 | f
(SELECT 3)

select id, (with t as (select amounts.n::text as x from one) select max(a.x || b.x) from t a, t b) from amounts order by id;
----
id | max
1 | 1.51.5
2 | 1.501.50
3 | 1.5001.500
(SELECT 3)

select id, x from amounts, lateral (select amounts.n::text as x from one) s order by id;
----
id | x
1 | 1.5
2 | 1.50
3 | 1.500
(SELECT 3)

-- Changed to an equal value, a key is written anew; what refers to it follows.
create table parents (n numeric primary key);
----
(CREATE TABLE)

create table children (id int primary key, n numeric references parents on update cascade);
----
(CREATE TABLE)

insert into parents values (1.5);
----
(INSERT 0 1)

insert into children values (1, 1.5);
----
(INSERT 0 1)

update parents set n = 1.50;
----
(UPDATE 1)

select * from children;
----
id | n
1 | 1.50
(SELECT 1)

create table strict (id int primary key, n numeric references parents on update restrict);
----
(CREATE TABLE)

insert into strict values (1, 1.5);
----
(INSERT 0 1)

update parents set n = 1.500;
----
ERROR 23503: update or delete on table "parents" violates foreign key constraint "strict_n_fkey" on table "strict"
DETAIL: Key (n)=(1.50) is still referenced from table "strict".

drop table strict;
----
(DROP TABLE)

create table lenient (id int primary key, n numeric references parents);
----
(CREATE TABLE)

insert into lenient values (1, 1.5);
----
(INSERT 0 1)

update parents set n = 1.500;
----
(UPDATE 1)

select * from parents;
----
n
1.500
(SELECT 1)

select * from lenient;
----
id | n
1 | 1.5
(SELECT 1)

update amounts set a = '{1.50}', j = '1.5', v = '24:00' where id = 1;
----
(UPDATE 1)

select a, j, v from amounts where id = 1;
----
a | j | v
{1.50} | 1.5 | 24:00:00
(SELECT 1)

