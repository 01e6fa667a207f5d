-- postgres: same
-- Of values that are equal and look different, the last is the smallest and the largest.
select min(x), max(x) from (values (1.0), (1.00), (1.000)) v(x);
----
min | max
1.000 | 1.000
(SELECT 1)

select min(x), max(x) from (values (interval '30 days'), (interval '1 mon')) v(x);
----
min | max
1 mon | 1 mon
(SELECT 1)

select g, min(x), max(x) from (values (1, 2.0), (2, 1.50), (1, 2.00), (2, 1.5)) v(g, x) group by g order by g;
----
g | min | max
1 | 2.00 | 2.00
2 | 1.5 | 1.5
(SELECT 2)

select i, min(x) over (order by i), max(x) over (order by i) from (values (1, 1.0), (2, 1.00), (3, 0.5)) v(i, x);
----
i | min | max
1 | 1.0 | 1.0
2 | 1.00 | 1.00
3 | 0.5 | 1.00
(SELECT 3)

select sum(x), avg(x) from (values ('-0'::float8)) v(x);
----
sum | avg
-0 | 0
(SELECT 1)

select sum(x) from (values ('-0'::float8), ('-0'::float8)) v(x);
----
sum
-0
(SELECT 1)

select avg(x) from (values (1e300::float8), (-1e300::float8)) v(x);
----
ERROR 22003: value out of range: overflow

select var_pop(x) from (values (1e300::float8), (0::float8)) v(x);
----
ERROR 22003: value out of range: overflow

select stddev(x) from (values ('Infinity'::float8), (0::float8)) v(x);
----
stddev
NaN
(SELECT 1)

select avg(x), var_samp(x) from (values ('Infinity'::float8), (1::float8)) v(x);
----
avg | var_samp
Infinity | NaN
(SELECT 1)

select avg(x), avg(x::float4), stddev_pop(x) from (values (1.5::float8), (2.25::float8), (null)) v(x);
----
avg | avg | stddev_pop
1.875 | 1.875 | 0.375
(SELECT 1)

select array_agg(array[]::int[]);
----
ERROR 2202E: cannot accumulate empty arrays

select array_agg(x) from (values (array[1]), (null)) v(x);
----
ERROR 22004: cannot accumulate null arrays

select array_agg(x) from (values (array[1, 2]), (array[3, 4])) v(x);
----
array_agg
{{1,2},{3,4}}
(SELECT 1)

