-- Who asks whether there is a partner reads on until one meets all conditions: where few do, one pass over the table is less.
CREATE TABLE products (id INT8 PRIMARY KEY, name TEXT NOT NULL);
----
(CREATE TABLE)

CREATE TABLE items (id INT8 PRIMARY KEY, product_id INT8 NOT NULL, price INT8 NOT NULL, INDEX (product_id));
----
(CREATE TABLE)

INSERT INTO products SELECT i, 'p' || i FROM generate_series(1, 500) i;
----
(INSERT 0 500)

INSERT INTO items SELECT i, i * 613 % 500 + 1, i * 7919 % 10007 FROM generate_series(1, 20000) i;
----
(INSERT 0 20000)

ANALYZE;
----
(ANALYZE)

EXPLAIN SELECT count(*) FROM products p WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.product_id = p.id AND i.price > 9900);
----
QUERY PLAN
Aggregate
  ->  Hash Anti Join  (rows=288)
        Hash Cond: (p.id = i.product_id)
        ->  Seq Scan on products p  (rows=500)
        ->  Seq Scan on items i  (rows=212)
              Filter: (price > 9900)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT count(*) FROM products p WHERE EXISTS (SELECT 1 FROM items i WHERE i.product_id = p.id AND i.price > 9900);
----
QUERY PLAN
Aggregate
  ->  Hash Semi Join  (rows=212)
        Hash Cond: (p.id = i.product_id)
        ->  Seq Scan on products p  (rows=500)
        ->  Seq Scan on items i  (rows=212)
              Filter: (price > 9900)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT count(*) FROM products p WHERE EXISTS (SELECT 1 FROM items i WHERE i.product_id = p.id AND i.price > 100);
----
QUERY PLAN
Aggregate
  ->  Lookup Semi Join  (rows=500)
        ->  Seq Scan on products p  (rows=500)
        ->  Index Scan using items_product_id_idx on items i  (rows=40)
              Index Cond: (product_id = outer #1)
              Filter: (price > 100)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT count(*) FROM products p WHERE p.id < 5 AND EXISTS (SELECT 1 FROM items i WHERE i.product_id = p.id AND i.price > 9900);
----
QUERY PLAN
Aggregate
  ->  Lookup Semi Join  (rows=2)
        ->  Index Scan using products_pkey on products p  (rows=5)
              Index Cond: (id < 5)
        ->  Index Scan using items_product_id_idx on items i  (rows=1)
              Index Cond: (product_id = outer #1)
              Filter: (price > 9900)
Regions: us-east1
(EXPLAIN)

SELECT count(*) FROM products p WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.product_id = p.id AND i.price > 9900);
----
count
288
(SELECT 1)

