create table su (id int primary key, created int, name text);
----
(CREATE TABLE)

create table so (id int primary key, u int, v int);
----
(CREATE TABLE)

insert into su select g, g * 7919 % 100003, 'n' || g from generate_series(1, 3000) g;
----
(INSERT 0 3000)

insert into so select g, g % 3000 + 1, g % 17 from generate_series(1, 9000) g;
----
(INSERT 0 9000)

create index su_created on su (created);
----
(CREATE INDEX)

create index so_u on so (u);
----
(CREATE INDEX)

analyze su;
----
(ANALYZE)

analyze so;
----
(ANALYZE)

explain select su.id, so.id from su join so on so.u = su.id order by su.created limit 10;
----
QUERY PLAN
Limit
  ->  Lookup Join  (rows=9000)
        ->  Index Only Scan using su_created on su  (rows=3000)
        ->  Index Only Scan using so_u on so  (rows=3)
              Index Cond: (u = outer #1)
Regions: us-east1
(EXPLAIN)

explain select su.id, so.id from su join so on so.u = su.id order by su.created, so.id limit 10;
----
QUERY PLAN
Limit
  ->  Incremental Sort
        Sort Key: su.created, so.id
        Presorted Key: su.created
        ->  Lookup Join  (rows=9000)
              ->  Index Only Scan using su_created on su  (rows=3000)
              ->  Index Only Scan using so_u on so  (rows=3)
                    Index Cond: (u = outer #1)
Regions: us-east1
(EXPLAIN)

explain select su.id, so.v from su left join so on so.u = su.id order by su.created desc, so.v, so.id limit 10;
----
QUERY PLAN
Limit
  ->  Incremental Sort
        Sort Key: su.created DESC, so.v, so.id
        Presorted Key: su.created DESC
        ->  Lookup Left Join  (rows=9000)
              ->  Index Only Scan Backward using su_created on su  (rows=3000)
              ->  Index Scan using so_u on so  (rows=3)
                    Index Cond: (u = outer #1)
Regions: us-east1
(EXPLAIN)

select su.id, so.id from su join so on so.u = su.id order by su.created, so.id limit 5;
----
id | id
2412 | 2411
2412 | 5411
2412 | 8411
1427 | 1426
1427 | 4426
(SELECT 5)

select su.id, so.v, so.id from su left join so on so.u = su.id order by su.created desc, so.v, so.id limit 5 offset 3;
----
id | v | id
1970 | 5 | 4969
1970 | 13 | 7969
1970 | 14 | 1969
2955 | 4 | 5954
2955 | 12 | 8954
(SELECT 5)

drop table su;
----
(DROP TABLE)

drop table so;
----
(DROP TABLE)

