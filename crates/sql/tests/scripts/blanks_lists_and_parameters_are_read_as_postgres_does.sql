-- postgres: same
-- Blanks at the end of char(n), lists that begin with a subquery, ISNULL, parameters without a type.
create table wide (c char(5), v varchar(5)); create table narrow (c char(3)); insert into wide values ('ab', 'ab'), ('a', 'a'), (null, 'b'); insert into narrow values ('ab'), ('b');
----
(CREATE TABLE)
(CREATE TABLE)
(INSERT 0 3)
(INSERT 0 2)

select v from wide where c is not distinct from 'ab';
----
v
ab
(SELECT 1)

select v, c is distinct from v as differs, c is distinct from 'a'::char(2) as is_not_a from wide order by v;
----
v | differs | is_not_a
a | f | f
ab | f | t
b | t | t
(SELECT 3)

select count(*) from (select c from wide union select 'ab') u;
----
count
3
(SELECT 1)

select count(*) from (select c from wide union select c from narrow) u;
----
count
4
(SELECT 1)

select length(c) from (select c from wide intersect select c from narrow) u;
----
length
2
(SELECT 1)

select length(c) from (select c from wide except select c from narrow) u order by 1;
----
length
1
∅
(SELECT 2)

select count(*) from (select c from wide union all select c from narrow) u;
----
count
5
(SELECT 1)

select id from (values (1), (2), (3)) t (id) where id in ((select 1), 2) order by id;
----
id
1
2
(SELECT 2)

select 1 not in ((select 2), (select 3)) as neither, 2 in ((with w as (select 2) select * from w), 5) as one;
----
neither | one
t | t
(SELECT 1)

create table r (id int, ref int, abs text); insert into r values (1, null, 'x'), (2, 5, null);
----
(CREATE TABLE)
(INSERT 0 2)

select ref isnull, abs notnull, id from r where ref isnull or abs isnull order by id;
----
?column? | ?column? | id
t | t | 1
f | f | 2
(SELECT 2)

prepare if_missing as insert into r (id, ref) select $1, $2 where not exists (select 1 from r where id = $1);
----
(PREPARE)

execute if_missing (3, 7);
----
(INSERT 0 1)

execute if_missing (3, 8);
----
(INSERT 0 0)

prepare branches as select ref from r where id = 3 union select $1 union all select $2;
----
(PREPARE)

execute branches (7, 9);
----
ref
7
9
(SELECT 2)

select * from r order by id;
----
id | ref | abs
1 | ∅ | x
2 | 5 | ∅
3 | 7 | ∅
(SELECT 3)

