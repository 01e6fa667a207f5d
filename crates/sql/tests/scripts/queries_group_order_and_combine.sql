-- postgres: same
create table o (id int primary key, customer text, amount numeric(10,2), day date, qty int);
----
(CREATE TABLE)

insert into o values (1, 'ann', 10.50, '2024-01-01', 1), (2, 'bob', 20.00, '2024-01-02', 2), (3, 'ann', 5.25, '2024-01-02', 3), (4, null, 1, null, null);
----
(INSERT 0 4)

select customer, count(*), sum(amount), min(day), max(qty) from o group by customer order by customer;
----
customer | count | sum | min | max
ann | 2 | 15.75 | 2024-01-01 | 3
bob | 1 | 20.00 | 2024-01-02 | 2
∅ | 1 | 1.00 | ∅ | ∅
(SELECT 3)

select customer, sum(qty) from o group by 1 having sum(qty) > 2 order by 1;
----
customer | sum
ann | 4
(SELECT 1)

select count(*), count(customer), count(distinct customer), sum(qty), avg(qty) from o;
----
count | count | count | sum | avg
4 | 3 | 2 | 6 | 2.0000000000000000
(SELECT 1)

select sum(qty), count(*) from o where false;
----
sum | count
∅ | 0
(SELECT 1)

select customer from o where false group by customer;
----
customer
(SELECT 0)

select qty % 2 as odd, count(*) from o group by odd order by odd nulls first;
----
odd | count
∅ | 1
0 | 1
1 | 2
(SELECT 3)

select count(*) filter (where qty > 1), array_agg(id order by id desc), string_agg(customer, ',' order by id) from o;
----
count | array_agg | string_agg
2 | {4,3,2,1} | ann,bob,ann
(SELECT 1)

select distinct customer from o order by 1;
----
customer
ann
bob
∅
(SELECT 3)

select distinct on (customer) customer, id from o order by customer, id desc;
----
customer | id
ann | 3
bob | 2
∅ | 4
(SELECT 3)

select customer, amount from o order by amount desc nulls last limit 2;
----
customer | amount
bob | 20.00
ann | 10.50
(SELECT 2)

select id from o order by customer desc, id;
----
id
4
2
1
3
(SELECT 4)

select id from o order by customer nulls first, id;
----
id
4
1
3
2
(SELECT 4)

select id as x from o order by -id limit 1;
----
x
4
(SELECT 1)

select id from o order by 5;
----
ERROR 42P10: ORDER BY position 5 is not in select list
POSITION: 27

select distinct customer from o order by id;
----
ERROR 42P10: for SELECT DISTINCT, ORDER BY expressions must appear in select list

select id from o limit -1;
----
ERROR 2201W: LIMIT must not be negative

select 1 union select 2 union select 1 order by 1;
----
?column?
1
2
(SELECT 2)

select 1 union all select 1;
----
?column?
1
1
(SELECT 2)

select 1 intersect select 1;
----
?column?
1
(SELECT 1)

select id from o except select 2 order by id;
----
id
1
3
4
(SELECT 3)

select 1, 2 union select 1;
----
ERROR 42601: each UNION query must have the same number of columns

select 1 union select 'a';
----
ERROR 22P02: invalid input syntax for type integer: "a"

values (1, 'a'), (2, null) order by 1 desc;
----
column1 | column2
2 | ∅
1 | a
(SELECT 2)

select * from (values (1, 'a'), (2, 'b')) as v (n, t) where n > 1;
----
n | t
2 | b
(SELECT 1)

with t as (select id, qty from o where qty is not null), u as (select sum(qty) as s from t) select t.id, u.s from t, u order by 1;
----
id | s
1 | 6
2 | 6
3 | 6
(SELECT 3)

with recursive n (i) as (select 1 union all select i + 1 from n where i < 5) select sum(i), count(*) from n;
----
sum | count
15 | 5
(SELECT 1)

with recursive n as (select 1 as i union select (i * 2) % 7 from n) select i from n order by i;
----
i
1
2
4
(SELECT 3)

select customer, sum(amount) over (partition by customer order by id) as running, row_number() over (order by id) as n, rank() over (order by customer) from o order by id;
----
customer | running | n | rank
ann | 10.50 | 1 | 1
bob | 20.00 | 2 | 3
ann | 15.75 | 3 | 1
∅ | 1.00 | 4 | 4
(SELECT 4)

select id, lag(id) over (order by id), lead(id, 2, 0) over (order by id), first_value(id) over w, last_value(id) over w from o window w as (partition by customer order by id) order by id;
----
id | lag | lead | first_value | last_value
1 | ∅ | 3 | 1 | 1
2 | 1 | 4 | 2 | 2
3 | 2 | 0 | 1 | 3
4 | 3 | 0 | 4 | 4
(SELECT 4)

select id, sum(qty) over (order by id rows between 1 preceding and current row) from o order by id;
----
id | sum
1 | 1
2 | 3
3 | 5
4 | 3
(SELECT 4)

select case when qty > 1 then 'many' when qty = 1 then 'one' else 'none' end, coalesce(customer, '?'), nullif(qty, 1), greatest(qty, 2), least(id, 2) from o order by id;
----
case | coalesce | nullif | greatest | least
one | ann | ∅ | 2 | 1
many | bob | 2 | 2 | 2
many | ann | 3 | 3 | 2
none | ? | ∅ | 2 | 2
(SELECT 4)

select id from o where customer like 'a%' order by id;
----
id
1
3
(SELECT 2)

select id from o where customer ilike 'B_B';
----
id
2
(SELECT 1)

select id from o where customer not like '%n' order by id;
----
id
2
(SELECT 1)

select id from o where amount between 5 and 11 order by id;
----
id
1
3
(SELECT 2)

select id from o where qty in (1, 3, null) order by id;
----
id
1
3
(SELECT 2)

select id from o where qty not in (1, null);
----
id
(SELECT 0)

select id from o where qty is distinct from 1 order by id;
----
id
2
3
4
(SELECT 3)

select id from o where (qty, id) > (1, 1) order by id;
----
id
2
3
(SELECT 2)

select (array[1, 2, 3])[2], (array['a', 'b', 'c'])[2:3], array[[1, 2], [3, 4]], 2 = any (array[1, 2]), 5 <> all ('{1,2}'::int[]);
----
array | array | array | ?column? | ?column?
2 | {b,c} | {{1,2},{3,4}} | t | t
(SELECT 1)

select 1 = any (array[2, null]);
----
?column?
∅
(SELECT 1)

select id from o where id = any ('{1,3}') order by id;
----
id
1
3
(SELECT 2)

select row(1, 'a'), (1, 2) = (1, 2), (1, null) is null;
----
row | ?column? | ?column?
(1,a) | t | f
(SELECT 1)

select 1 / 0;
----
ERROR 22012: division by zero

select 1 where 1 / 0 = 1;
----
ERROR 22012: division by zero

select case when true then 1 else 1 / 0 end;
----
case
1
(SELECT 1)

select null and false, null or true, not null::bool, true is not false;
----
?column? | ?column? | ?column? | ?column?
f | t | ∅ | t
(SELECT 1)

select unnest(array[1, 2]) as u, generate_series(1, 3) as g;
----
u | g
1 | 1
2 | 2
∅ | 3
(SELECT 3)

select * from generate_series(1, 10, 4) with ordinality as g (v, n);
----
v | n
1 | 1
5 | 2
9 | 3
(SELECT 3)

select 'a' || 1, '1'::int + 1, cast('2024-02-29' as date) + 1, interval '1 day' * 2, 1.5::int, 2.5::int;
----
?column? | ?column? | ?column? | ?column? | int4 | int4
a1 | 2 | 2024-03-01 | 2 days | 2 | 3
(SELECT 1)

select extract(year from date '2024-05-06'), substring('hello' from 2 for 3), position('l' in 'hello'), trim(both 'x' from 'xax');
----
extract | substring | position | btrim
2024 | ell | 3 | a
(SELECT 1)

select o.* from o where o.id = 1;
----
id | customer | amount | day | qty
1 | ann | 10.50 | 2024-01-01 | 1
(SELECT 1)

select o from o where id = 4;
----
o
(4,,1.00,,)
(SELECT 1)

select "ID" from o;
----
ERROR 42703: column "ID" does not exist
POSITION: 8

select customer, id from o group by customer;
----
ERROR 42803: column "o.id" must appear in the GROUP BY clause or be used in an aggregate function
POSITION: 18

select id from o where count(*) > 1;
----
ERROR 42803: aggregate functions are not allowed in WHERE
POSITION: 24

select sum(sum(id)) from o;
----
ERROR 42803: aggregate function calls cannot be nested
POSITION: 12

select nosuch(1);
----
ERROR 42883: function nosuch(integer) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

select 1 + 'a';
----
ERROR 22P02: invalid input syntax for type integer: "a"
POSITION: 12

select 'a' + 'b';
----
ERROR 42725: operator is not unique: unknown + unknown
HINT: Could not choose a best candidate operator. You might need to add explicit type casts.
POSITION: 12

select true + 1;
----
ERROR 42883: operator does not exist: boolean + integer
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
POSITION: 13

select id from o where id = 'x';
----
ERROR 22P02: invalid input syntax for type integer: "x"
POSITION: 29

select id, null from o union select null, 'x' order by 1 nulls first limit 2;
----
id | ?column?
∅ | x
1 | ∅
(SELECT 2)

select $1;
----
ERROR 42P02: there is no parameter $1

