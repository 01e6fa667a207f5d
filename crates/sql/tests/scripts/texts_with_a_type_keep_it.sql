-- postgres: same
create table lt (id int primary key, n int, c char(10), m name);
----
(CREATE TABLE)

insert into lt select i, i, 'c' || i, 'n' || i from generate_series(1, 3) i;
----
(INSERT 0 3)

insert into lt (id, n) select 9, '5'::text;
----
ERROR 42804: column "n" is of type integer but expression is of type text
HINT: You will need to rewrite or cast the expression.

insert into lt (id, n) select 9, '5';
----
(INSERT 0 1)

select '5'::text as a union all select 1;
----
ERROR 42804: UNION types text and integer cannot be matched

select 'zz'::text || '!' as x union all select c || '!' from lt where id = 1 order by 1;
----
x
c1!
zz!
(SELECT 2)

create view lv as select 'zz'::text as x union all select c from lt;
----
(CREATE VIEW)

select pg_typeof(x) as t from lv limit 1;
----
t
text
(SELECT 1)

select 'z' as x union all select c from lt where id = 1 order by 1;
----
x
c1        
z
(SELECT 2)

select null as x union all select 1 order by 1;
----
x
1
∅
(SELECT 2)

prepare lt_a as select $1::text as x union all select c from lt where n <= $2 order by 1;
----
(PREPARE)

execute lt_a('zz', 3);
----
x
c1
c2
c3
zz
(SELECT 4)

prepare lt_b as select $1::text as x union all select m from lt where n <= $2 order by 1;
----
(PREPARE)

execute lt_b(repeat('q', 70), 2);
----
x
n1
n2
qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq
(SELECT 3)

