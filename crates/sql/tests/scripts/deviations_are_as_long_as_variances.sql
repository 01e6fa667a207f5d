-- postgres: same
select stddev(v), stddev_pop(v), variance(v) from (values (1), (2), (32767), (-32768), (7)) as x (v);
----
stddev | stddev_pop | variance
23170.12165915 | 20723.98683072 | 536854537.70000000
(SELECT 1)

select stddev(v), var_pop(v) from (values (1.5), (2.25), (1e20)) as x (v);
----
stddev | var_pop
57735026918962576449.8323 | 2222222222222222222138888888888888888889.7639
(SELECT 1)

select stddev(v), variance(v) from (values (0.00001), (0.00002)) as x (v);
----
stddev | variance
0.0000070710678118654752440084 | 0.0000000000500000000000000000
(SELECT 1)

select stddev(v) from (values (9223372036854775807), (-9223372036854775808)) as x (v);
----
stddev
13043817825332782212
(SELECT 1)

select stddev(v), stddev_pop(v) from (values ('NaN'::numeric), (1)) as x (v);
----
stddev | stddev_pop
NaN | NaN
(SELECT 1)

