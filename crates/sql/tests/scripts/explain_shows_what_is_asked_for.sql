create table t (id int primary key, a int);
----

insert into t select g, g % 10 from generate_series(1, 100) as g;
----

analyze t;
----

explain select * from t;
----

explain (costs off) select * from t where a = 3;
----

explain (analyze, timing off, summary off) select * from t where a = 3;
----

explain (analyze off, costs false) select * from t;
----

explain (timing) select 1;
----

explain (timing off) select 1;
----

explain (nonsense) select 1;
----

explain (format json) select 1;
----

