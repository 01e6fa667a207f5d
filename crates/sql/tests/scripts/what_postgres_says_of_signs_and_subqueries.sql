-- postgres: same
-- Signs, powers, NULLIF, subqueries that give nothing but what comes from outside, and conflicts at two keys.
create table z1 (id int primary key, a int);
----
(CREATE TABLE)

create table z2 (id int primary key, z int references z1 on delete cascade);
----
(CREATE TABLE)

insert into z1 values (1, 1), (2, 2), (3, null);
----
(INSERT 0 3)

insert into z2 values (1, 1), (2, 2);
----
(INSERT 0 2)

select count(*) from z1 where a>-1 and a<>-2 and a>=-3;
----
count
2
(SELECT 1)

select 2<>-1, 2>=-1, 1>+1, 5>-+-1;
----
?column? | ?column? | ?column? | ?column?
t | t | f | t
(SELECT 1)

select '[1,2,3]'::jsonb->-1, '[1,2,3]'::jsonb->>-1;
----
?column? | ?column?
3 | 3
(SELECT 1)

select -2 ^ 2, -(2) ^ 2, -2 ^ 2 ^ 2, 10 - 2 ^ 2, -(2 ^ 2);
----
?column? | ?column? | ?column? | ?column? | ?column?
4 | 4 | 16 | 6 | -4
(SELECT 1)

select nullif(3, 2.5) / 2, nullif(7, 7), nullif(5, null), 5 / nullif(null, 2);
----
?column? | nullif | nullif | ?column?
1.5000000000000000 | ∅ | 5 | ∅
(SELECT 1)

select pg_typeof(nullif(7, 1.5)), pg_typeof(nullif(null, 2)), pg_typeof(nullif('a', 'b'));
----
pg_typeof | pg_typeof | pg_typeof
numeric | integer | text
(SELECT 1)

select (select o.a from z2 limit 1) from z1 o order by o.id;
----
a
1
2
∅
(SELECT 3)

select o.id from z1 o where o.a in (select o.a from z2) order by o.id;
----
id
1
2
(SELECT 2)

select o.id from z1 o where o.a not in (select o.a from z2) order by o.id;
----
id
(SELECT 0)

select array(select o.a from z2 order by z2.id) from z1 o order by o.id;
----
array
{1,1}
{2,2}
{NULL,NULL}
(SELECT 3)

select o.id, x.* from z1 o cross join lateral (select o.a from z2 limit 1) x order by 1;
----
id | a
1 | 1
2 | 2
3 | ∅
(SELECT 3)

update z1 set a = 10 where a in (select z1.a from z1 z) and id = 2;
----
(UPDATE 1)

delete from z1 where id in (select z1.id from generate_series(1, 2)) and id = 2;
----
(DELETE 1)

select * from z1 order by id;
----
id | a
1 | 1
3 | ∅
(SELECT 2)

select * from z2 order by id;
----
id | z
1 | 1
(SELECT 1)

create table oc (id int primary key, a int unique, b text);
----
(CREATE TABLE)

insert into oc values (1, 1, 'x'), (2, 2, 'y');
----
(INSERT 0 2)

insert into oc values (1, 1, 'n') on conflict (a) do nothing;
----
(INSERT 0 0)

insert into oc values (1, 2, 'n') on conflict (a) do nothing;
----
(INSERT 0 0)

insert into oc values (1, 1, 'n') on conflict (a) do update set b = 'u';
----
(INSERT 0 1)

insert into oc values (5, 5, 'n'), (5, 5, 'm') on conflict (a) do nothing;
----
(INSERT 0 1)

insert into oc values (1, 9, 'n') on conflict (a) do nothing;
----
ERROR 23505: duplicate key value violates unique constraint "oc_pkey"
DETAIL: Key (id)=(1) already exists.

select * from oc order by id;
----
id | a | b
1 | 1 | u
2 | 2 | y
5 | 5 | n
(SELECT 3)

select count(*) from oc group by 1;
----
ERROR 42803: aggregate functions are not allowed in GROUP BY
POSITION: 8

select id, row_number() over () as n from oc group by 1, 2;
----
ERROR 42P20: window functions are not allowed in GROUP BY
POSITION: 12

select a + max(b)::int as s from oc group by s;
----
ERROR 42803: aggregate functions are not allowed in GROUP BY
POSITION: 12

table oc union all table oc order by id limit 2;
----
id | a | b
1 | 1 | u
1 | 1 | u
(SELECT 2)

select count(*) from (table oc) as x;
----
count
3
(SELECT 1)

select 1 where (3) not in (select id from (table oc) y);
----
?column?
1
(SELECT 1)

