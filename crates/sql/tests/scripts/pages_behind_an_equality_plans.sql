create table t (id int primary key, s text, c int);
----
(CREATE TABLE)

create index t_sc on t (s, c);
----
(CREATE INDEX)

insert into t select g, 's' || g % 3, g / 4 from generate_series(1, 1200) as g;
----
(INSERT 0 1200)

analyze t;
----
(ANALYZE)

explain select id, c from t where s = 's1' and (c, id) < (150, 601) order by c desc, id desc limit 5;
----
QUERY PLAN
Limit
  ->  Index Only Scan Backward using t_sc on t  (rows=134)
        Index Cond: (s = 's1') AND (c <= 150)
        Filter: ((c < 150) OR ((c = 150) AND (id < 601)))
Regions: us-east1
(EXPLAIN)

explain select id, c from t where s = 's1' and (c, id) > (150, 601) order by c, id limit 5;
----
QUERY PLAN
Limit
  ->  Index Only Scan using t_sc on t  (rows=134)
        Index Cond: (s = 's1') AND (c >= 150)
        Filter: ((c > 150) OR ((c = 150) AND (id > 601)))
Regions: us-east1
(EXPLAIN)

explain select id, c from t where s = 's1' and (c < 150 or c is null);
----
QUERY PLAN
Union All
  ->  Index Only Scan using t_sc on t  (rows=200)
        Index Cond: (s = 's1') AND (c < 150)
  ->  Index Only Scan using t_sc on t  (rows=1)
        Index Cond: (s = 's1') AND (c IS NULL)
        Filter: (NOT ((c < 150) IS TRUE))
Regions: us-east1
(EXPLAIN)
