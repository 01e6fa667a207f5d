-- postgres: same
with recursive r(n) as (select 1 union all select max(n)+1 from r where n<5) select * from r;
----
ERROR 42P19: aggregate functions are not allowed in a recursive query's recursive term

with recursive r(n) as (select 1 union all select n+1 from r group by n having n<5) select * from r;
----
n
1
2
3
4
5
(SELECT 5)

with recursive r(n) as (select 1 union all select s.k from generate_series(1,3) s(k) left join r on r.n=s.k where s.k > 5) select * from r;
----
ERROR 42P19: recursive reference to query "r" must not appear within an outer join

with recursive r(n) as (select 1 union all select s.k from r full join generate_series(1,3) s(k) on r.n=s.k where s.k > 5) select * from r;
----
ERROR 42P19: recursive reference to query "r" must not appear within an outer join

with recursive r(n) as (select 1 union all select r.n+1 from r left join generate_series(1,3) s(k) on r.n=s.k where n<5) select * from r;
----
n
1
2
3
4
5
(SELECT 5)

with recursive r(n) as (select 1 union all select n+1 from r where n < 5 and n in (select n from r)) select * from r;
----
ERROR 42P19: recursive reference to query "r" must not appear within a subquery

with recursive r(n) as (select 1 union all select n+1 from (select n from r) x where n<5) select * from r;
----
n
1
2
3
4
5
(SELECT 5)

with recursive r(n) as (select 1 union all (select a.n+1 from r a, r b where a.n<5)) select * from r;
----
ERROR 42P19: recursive reference to query "r" must not appear more than once

with recursive r(n) as (select 1 union all select n+1 from r where n<5 except select 3) select * from r;
----
ERROR 42P19: recursive query "r" does not have the form non-recursive-term UNION [ALL] recursive-term

with recursive r(n) as (select 1 union all select distinct n+1 from r where n<5) select * from r;
----
n
1
2
3
4
5
(SELECT 5)

with recursive r(n) as (select 1 union all select k from (select 2 union select 3 except select n from r) x(k) where k > 5) select * from r;
----
ERROR 42P19: recursive reference to query "r" must not appear within EXCEPT

select length((10::numeric^131071)::text);
----
length
131089
(SELECT 1)

select length((10::numeric^131072)::text);
----
ERROR 22003: value overflows numeric format

select (1e-400::numeric)::float8 = 0;
----
ERROR 22003: "0.0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001" is out of range for type double precision

select (1e-320::numeric)::float8;
----
float8
1e-320
(SELECT 1)

select 1 = any(array_fill(2, array[50000])), 2 = any(array_fill(2, array[50000])), 3 <> all(array_fill(2, array[50000]));
----
?column? | ?column? | ?column?
f | t | t
(SELECT 1)

select length(repeat('ab', 300000)), length(lpad('x', 200000)), factorial(20), length(factorial(2000)::text);
----
length | length | factorial | length
600000 | 200000 | 2432902008176640000 | 5736
(SELECT 1)

