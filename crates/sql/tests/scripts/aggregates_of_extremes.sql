-- postgres: same
-- Of values that are equal and look different, the last is the smallest and the largest.
select min(x), max(x) from (values (1.0), (1.00), (1.000)) v(x);
----

select min(x), max(x) from (values (interval '30 days'), (interval '1 mon')) v(x);
----

select g, min(x), max(x) from (values (1, 2.0), (2, 1.50), (1, 2.00), (2, 1.5)) v(g, x) group by g order by g;
----

select i, min(x) over (order by i), max(x) over (order by i) from (values (1, 1.0), (2, 1.00), (3, 0.5)) v(i, x);
----

select sum(x), avg(x) from (values ('-0'::float8)) v(x);
----

select sum(x) from (values ('-0'::float8), ('-0'::float8)) v(x);
----

select avg(x) from (values (1e300::float8), (-1e300::float8)) v(x);
----

select var_pop(x) from (values (1e300::float8), (0::float8)) v(x);
----

select stddev(x) from (values ('Infinity'::float8), (0::float8)) v(x);
----

select avg(x), var_samp(x) from (values ('Infinity'::float8), (1::float8)) v(x);
----

select avg(x), avg(x::float4), stddev_pop(x) from (values (1.5::float8), (2.25::float8), (null)) v(x);
----

select array_agg(array[]::int[]);
----

select array_agg(x) from (values (array[1]), (null)) v(x);
----

select array_agg(x) from (values (array[1, 2]), (array[3, 4])) v(x);
----
