-- What is elsewhere is dear: a row there is worth many here.
CREATE DATABASE d PRIMARY REGION "us-east1" REGIONS "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 d
CREATE TABLE users (city TEXT NOT NULL, id INT8 NOT NULL, name TEXT, crdb_region crdb_internal_region NOT NULL AS (CASE WHEN city IN ('new york', 'boston') THEN 'us-east1' WHEN city IN ('paris', 'rome') THEN 'europe-west1' ELSE 'asia-northeast1' END) STORED, PRIMARY KEY (city, id)) LOCALITY REGIONAL BY ROW AS crdb_region;
----
(CREATE TABLE)

CREATE TABLE rides (city TEXT NOT NULL, id INT8 NOT NULL, rider INT8, price INT8, crdb_region crdb_internal_region NOT NULL AS (CASE WHEN city IN ('new york', 'boston') THEN 'us-east1' WHEN city IN ('paris', 'rome') THEN 'europe-west1' ELSE 'asia-northeast1' END) STORED, PRIMARY KEY (city, id), INDEX (city, rider)) LOCALITY REGIONAL BY ROW AS crdb_region;
----
(CREATE TABLE)

CREATE TABLE codes (code INT8 PRIMARY KEY, discount INT8) LOCALITY GLOBAL;
----
(CREATE TABLE)

CREATE TABLE offices (id INT8 PRIMARY KEY, city TEXT) LOCALITY REGIONAL BY TABLE IN "europe-west1";
----
(CREATE TABLE)

INSERT INTO users SELECT (ARRAY['new york', 'boston', 'paris', 'rome', 'tokyo'])[i % 5 + 1], i, 'n' || i FROM generate_series(1, 500) i;
----
(INSERT 0 500)

INSERT INTO rides SELECT (ARRAY['new york', 'boston', 'paris', 'rome', 'tokyo'])[i % 5 + 1], i, i % 500 + 1, i % 20 FROM generate_series(1, 5000) i;
----
(INSERT 0 5000)

INSERT INTO codes SELECT i, i FROM generate_series(1, 20) i;
----
(INSERT 0 20)

INSERT INTO offices SELECT i, 'c' || i FROM generate_series(1, 2000) i;
----
(INSERT 0 2000)

ANALYZE;
----
(ANALYZE)

SELECT relname, reltuples FROM pg_class WHERE relname IN ('users', 'rides', 'codes', 'offices') ORDER BY 1;
----
relname | reltuples
codes | 20
offices | 2000
rides | 5000
users | 500
(SELECT 4)

EXPLAIN SELECT u.name, r.price FROM rides r, users u WHERE u.city = 'new york' AND r.city = u.city AND r.rider = u.id AND u.id = 100;
----
QUERY PLAN
Hash Join  (rows=1)
  Hash Cond: (r.city = u.city) AND (r.rider = u.id)
  ->  Index Scan using rides_city_rider_idx on rides r  (rows=2)
        Index Cond: (city = 'new york') AND (rider = 100)
        Regions: us-east1 (round trips between regions: 0)
  ->  Point Lookup using users_pkey on users u  (rows=1)
        Index Cond: (city = 'new york') AND (id = 100)
        Regions: us-east1 (round trips between regions: 0)
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

EXPLAIN SELECT u.name, c.discount FROM rides r, codes c, users u WHERE r.city = 'boston' AND r.id = 1 AND u.city = r.city AND u.id = r.rider AND c.code = r.price;
----
QUERY PLAN
Lookup Join  (rows=1)
  ->  Lookup Join  (rows=1)
        ->  Point Lookup using rides_pkey on rides r  (rows=1)
              Index Cond: (city = 'boston') AND (id = 1)
              Regions: us-east1 (round trips between regions: 0)
        ->  Point Lookup using users_pkey on users u  (rows=1)
              Index Cond: (city = 'boston') AND (id = outer #2)
              Filter: (city = outer #1)
              Regions: us-east1 (round trips between regions: 0)
  ->  Point Lookup using codes_pkey on codes c  (rows=1)
        Index Cond: (code = outer #1)
        Regions: us-east1 (GLOBAL, read here) (round trips between regions: 0)
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

EXPLAIN SELECT count(*) FROM users u JOIN rides r ON r.rider = u.id AND r.city = u.city;
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=5000)
        Hash Cond: (r.rider = u.id) AND (r.city = u.city)
        ->  Seq Scan on rides r  (rows=5000)
              Regions: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
        ->  Seq Scan on users u  (rows=500)
              Regions: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

-- A batch of keys is one round trip, a range for each row is one each.
EXPLAIN SELECT o.city FROM codes c JOIN offices o ON o.id = c.code;
----
QUERY PLAN
Lookup Join  (rows=20)
  ->  Seq Scan on codes c  (rows=20)
        Regions: us-east1 (GLOBAL, read here) (round trips between regions: 0)
  ->  Point Lookup using offices_pkey on offices o  (rows=1)
        Index Cond: (id = outer #1)
        Regions: europe-west1 (round trips between regions: 1)
Regions: europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

EXPLAIN SELECT o.city, r.id FROM offices o JOIN rides r ON r.id = o.id WHERE r.city = 'new york' AND r.rider < 20;
----
QUERY PLAN
Lookup Join  (rows=16)
  ->  Index Only Scan using rides_city_rider_idx on rides r  (rows=40)
        Index Cond: (city = 'new york') AND (rider < 20)
        Regions: us-east1 (round trips between regions: 0)
  ->  Point Lookup using offices_pkey on offices o  (rows=1)
        Index Cond: (id = outer #1)
        Regions: europe-west1 (round trips between regions: 1)
Regions: europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

