-- Without statistics, every table counts as one of 1,000 rows; EXPLAIN shows no estimates.
CREATE TABLE users (id INT8 PRIMARY KEY, country TEXT NOT NULL, score INT8, INDEX (score));
----
(CREATE TABLE)

CREATE TABLE items (id INT8 PRIMARY KEY, category INT8 NOT NULL, price INT8 NOT NULL);
----
(CREATE TABLE)

CREATE TABLE categories (id INT8 PRIMARY KEY, name TEXT NOT NULL);
----
(CREATE TABLE)

CREATE TABLE orders (id INT8 PRIMARY KEY, user_id INT8 NOT NULL, item INT8 NOT NULL, state TEXT, note TEXT, INDEX (user_id), INDEX (state));
----
(CREATE TABLE)

INSERT INTO users SELECT i, CASE WHEN i % 10 = 0 THEN 'de' ELSE 'us' END, i % 500 FROM generate_series(1, 2000) i;
----
(INSERT 0 2000)

INSERT INTO categories SELECT i, 'c' || i FROM generate_series(1, 20) i;
----
(INSERT 0 20)

INSERT INTO items SELECT i, i % 20 + 1, i % 97 FROM generate_series(1, 1000) i;
----
(INSERT 0 1000)

INSERT INTO orders SELECT i, i * 7919 % 2000 + 1, i % 1000 + 1, CASE WHEN i % 400 = 0 THEN 'open' WHEN i % 50 > 0 THEN 'done' END, 'n' || i FROM generate_series(1, 20000) i;
----
(INSERT 0 20000)

EXPLAIN SELECT count(*) FROM orders WHERE state = 'done';
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using orders_state_idx on orders
        Index Cond: (state = 'done')
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT o.id, i.price, c.name FROM categories c, items i, orders o WHERE o.user_id = 17 AND i.id = o.item AND c.id = i.category;
----
QUERY PLAN
Lookup Join
  ->  Lookup Join
        ->  Index Scan using orders_user_id_idx on orders o
              Index Cond: (user_id = 17)
        ->  Point Lookup using items_pkey on items i
              Index Cond: (id = outer #1)
  ->  Point Lookup using categories_pkey on categories c
        Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT * FROM users u JOIN orders o ON o.user_id = u.id;
----
QUERY PLAN
Hash Join
  Hash Cond: (u.id = o.user_id)
  ->  Seq Scan on users u
  ->  Seq Scan on orders o
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT count(*) FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.state = 'open');
----
QUERY PLAN
Aggregate
  ->  Seq Scan on users u
        Filter: (SubPlan)
        SubPlan
              ->  Index Scan using orders_user_id_idx on orders o
                    Index Cond: (user_id = outer #1)
                    Filter: (state = 'open')
Regions: us-east1
(EXPLAIN)

ANALYZE;
----
(ANALYZE)

SELECT relname, reltuples FROM pg_class WHERE relname IN ('users', 'orders') ORDER BY 1;
----
relname | reltuples
orders | 20000
users | 2000
(SELECT 2)

SELECT attname, null_frac, avg_width, n_distinct, most_common_vals, most_common_freqs, array_length(histogram_bounds, 1) AS bounds FROM pg_stats WHERE tablename = 'orders' ORDER BY 1;
----
attname | null_frac | avg_width | n_distinct | most_common_vals | most_common_freqs | bounds
id | 0 | 8 | -1 | ∅ | ∅ | 101
item | 0 | 8 | 1000 | ∅ | ∅ | 101
note | 0 | 5 | -1 | ∅ | ∅ | 101
state | 0.0175 | 4 | 2 | {done,open} | {0.98,0.0025} | ∅
user_id | 0 | 8 | 2000 | ∅ | ∅ | 101
(SELECT 5)

SELECT most_common_vals FROM pg_stats WHERE tablename = 'users' AND attname = 'country';
----
most_common_vals
{us,de}
(SELECT 1)

-- A value that most rows have is not looked up in an index; one that few have is.
EXPLAIN SELECT count(*) FROM orders WHERE state = 'done';
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using orders_state_idx on orders  (rows=19600)
        Index Cond: (state = 'done')
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT note FROM orders WHERE state = 'done';
----
QUERY PLAN
Seq Scan on orders  (rows=19600)
  Filter: (state = 'done')
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT note FROM orders WHERE state = 'open';
----
QUERY PLAN
Index Scan using orders_state_idx on orders  (rows=50)
  Index Cond: (state = 'open')
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT note FROM orders WHERE state IS NULL;
----
QUERY PLAN
Index Scan using orders_state_idx on orders  (rows=350)
  Index Cond: (state IS NULL)
Regions: us-east1
(EXPLAIN)

-- Ranges by the histogram.
EXPLAIN SELECT country FROM users WHERE score > 495;
----
QUERY PLAN
Index Scan using users_score_idx on users  (rows=12)
  Index Cond: (score > 495)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT country FROM users WHERE score > 20;
----
QUERY PLAN
Seq Scan on users  (rows=1916)
  Filter: (score > 20)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT country FROM users WHERE score BETWEEN 10 AND 12;
----
QUERY PLAN
Index Scan using users_score_idx on users  (rows=12)
  Index Cond: (score >= 10) AND (score <= 12)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT country FROM users WHERE score IN (1, 2, 3);
----
QUERY PLAN
Index Scan using users_score_idx on users  (rows=12)
  Index Cond: (score IN (1, 2, 3))
Regions: us-east1
(EXPLAIN)

-- The first rows of an order.
EXPLAIN SELECT country FROM users ORDER BY score LIMIT 10;
----
QUERY PLAN
Limit
  ->  Index Scan using users_score_idx on users  (rows=2000)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT country FROM users ORDER BY score;
----
QUERY PLAN
Sort in batches
  Sort Key: users.score
  ->  Seq Scan on users  (rows=2000)
Regions: us-east1
(EXPLAIN)

-- Few orders, whose items and categories are looked up: whatever the order in which they are named.
EXPLAIN SELECT o.id, i.price, c.name FROM categories c, items i, orders o WHERE o.user_id = 17 AND i.id = o.item AND c.id = i.category;
----
QUERY PLAN
Lookup Join  (rows=10)
  ->  Lookup Join  (rows=10)
        ->  Index Scan using orders_user_id_idx on orders o  (rows=10)
              Index Cond: (user_id = 17)
        ->  Point Lookup using items_pkey on items i  (rows=1)
              Index Cond: (id = outer #1)
  ->  Point Lookup using categories_pkey on categories c  (rows=1)
        Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

-- Many: the smaller side is the one that is kept.
EXPLAIN SELECT * FROM users u JOIN orders o ON o.user_id = u.id;
----
QUERY PLAN
Hash Join  (rows=20000)
  Hash Cond: (o.user_id = u.id)
  ->  Seq Scan on orders o  (rows=20000)
  ->  Seq Scan on users u  (rows=2000)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT * FROM orders o JOIN users u ON o.user_id = u.id;
----
QUERY PLAN
Hash Join  (rows=20000)
  Hash Cond: (o.user_id = u.id)
  ->  Seq Scan on orders o  (rows=20000)
  ->  Seq Scan on users u  (rows=2000)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT c.name, sum(i.price) FROM orders o, items i, categories c WHERE i.id = o.item AND c.id = i.category GROUP BY c.name;
----
QUERY PLAN
Group
  Group Key: c.name
  ->  Hash Join  (rows=20000)
        Hash Cond: (o.item = i.id)
        ->  Seq Scan on orders o  (rows=20000)
        ->  Hash Join  (rows=1000)
              Hash Cond: (i.category = c.id)
              ->  Seq Scan on items i  (rows=1000)
              ->  Seq Scan on categories c  (rows=20)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT c.name, sum(i.price) FROM orders o, items i, categories c WHERE i.id = o.item AND c.id = i.category AND o.state = 'open' GROUP BY c.name;
----
QUERY PLAN
Group
  Group Key: c.name
  ->  Lookup Join  (rows=50)
        ->  Lookup Join  (rows=50)
              ->  Index Scan using orders_state_idx on orders o  (rows=50)
                    Index Cond: (state = 'open')
              ->  Point Lookup using items_pkey on items i  (rows=1)
                    Index Cond: (id = outer #1)
        ->  Point Lookup using categories_pkey on categories c  (rows=1)
              Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

-- Tests of rows.
EXPLAIN SELECT count(*) FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.state = 'done');
----
QUERY PLAN
Aggregate
  ->  Hash Semi Join  (rows=2000)
        Hash Cond: (u.id = o.user_id)
        ->  Seq Scan on users u  (rows=2000)
        ->  Seq Scan on orders o  (rows=19600)
              Filter: (state = 'done')
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT count(*) FROM users u WHERE u.id < 5 AND EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.state = 'done');
----
QUERY PLAN
Aggregate
  ->  Lookup Semi Join  (rows=4)
        ->  Index Scan using users_pkey on users u  (rows=4)
              Index Cond: (id < 5)
        ->  Index Scan using orders_user_id_idx on orders o  (rows=10)
              Index Cond: (user_id = outer #1)
              Filter: (state = 'done')
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT count(*) FROM users u WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id);
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join  (rows=1)
        Hash Cond: (u.id = o.user_id)
        ->  Seq Scan on users u  (rows=2000)
        ->  Seq Scan on orders o  (rows=20000)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT count(*) FROM orders o WHERE o.user_id IN (SELECT id FROM users WHERE score = 7);
----
QUERY PLAN
Aggregate
  ->  Lookup Join  (rows=40)
        ->  Unique
              ->  Index Only Scan using users_score_idx on users  (rows=4)
                    Index Cond: (score = 7)
        ->  Index Only Scan using orders_user_id_idx on orders o  (rows=10)
              Index Cond: (user_id = outer #1)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT count(*) FROM users WHERE id IN (SELECT user_id FROM orders WHERE state = 'open');
----
QUERY PLAN
Aggregate
  ->  Lookup Join  (rows=50)
        ->  Unique
              ->  Index Scan using orders_state_idx on orders  (rows=50)
                    Index Cond: (state = 'open')
        ->  Point Lookup using users_pkey on users  (rows=1)
              Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT * FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.score = 3;
----
QUERY PLAN
Lookup Left Join  (rows=40)
  ->  Index Scan using users_score_idx on users u  (rows=4)
        Index Cond: (score = 3)
  ->  Index Scan using orders_user_id_idx on orders o  (rows=10)
        Index Cond: (user_id = outer #1)
Regions: us-east1
(EXPLAIN)

-- The first rows of a join: the others are not joined.
EXPLAIN SELECT o.id, u.country FROM orders o JOIN users u ON u.id = o.user_id ORDER BY o.id LIMIT 5;
----
QUERY PLAN
Limit
  ->  Lookup Join  (rows=20000)
        ->  Seq Scan on orders o  (rows=20000)
        ->  Point Lookup using users_pkey on users u  (rows=1)
              Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT o.id, u.country FROM orders o JOIN users u ON u.id = o.user_id LIMIT 5;
----
QUERY PLAN
Limit
  ->  Lookup Join  (rows=20000)
        ->  Seq Scan on orders o  (rows=20000)
        ->  Point Lookup using users_pkey on users u  (rows=1)
              Index Cond: (id = outer #1)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.state = 'done') ORDER BY id LIMIT 5;
----
QUERY PLAN
Limit
  ->  Lookup Semi Join  (rows=2000)
        ->  Seq Scan on users u  (rows=2000)
        ->  Index Scan using orders_user_id_idx on orders o  (rows=10)
              Index Cond: (user_id = outer #1)
              Filter: (state = 'done')
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT o.id, u.country FROM orders o JOIN users u ON u.id = o.user_id ORDER BY u.country || o.note LIMIT 5;
----
QUERY PLAN
Limit
  ->  Sort
        Sort Key: (u.country || o.note)
        ->  Hash Join  (rows=20000)
              Hash Cond: (o.user_id = u.id)
              ->  Seq Scan on orders o  (rows=20000)
              ->  Seq Scan on users u  (rows=2000)
Regions: us-east1
(EXPLAIN)

-- What is answered is the same.
SELECT count(*), sum(u.score) FROM users u JOIN orders o ON o.user_id = u.id;
----
count | sum
20000 | 4990000
(SELECT 1)

SELECT count(*) FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.state = 'open');
----
count
5
(SELECT 1)

SELECT count(*) FROM users u WHERE u.id < 5 AND EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.state = 'done');
----
count
3
(SELECT 1)

SELECT count(*) FROM users u WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id);
----
count
0
(SELECT 1)

SELECT count(*) FROM orders o WHERE o.user_id IN (SELECT id FROM users WHERE score = 7);
----
count
40
(SELECT 1)

SELECT c.name, sum(i.price) FROM orders o, items i, categories c WHERE i.id = o.item AND c.id = i.category AND o.state = 'open' GROUP BY c.name ORDER BY 1;
----
name | sum
c2 | 650
(SELECT 1)

BEGIN;
----
(BEGIN)

CREATE TABLE fresh (a INT8 PRIMARY KEY);
----
(CREATE TABLE)

ANALYZE fresh;
----
ERROR 0A000: ANALYZE in a transaction block with schema changes is not supported
HINT: Run it when the block has committed.

ROLLBACK;
----
(ROLLBACK)

TRUNCATE orders;
----
(TRUNCATE TABLE)

SELECT reltuples FROM pg_class WHERE relname = 'orders';
----
reltuples
-1
(SELECT 1)

