-- The tables of TPC-C as go-tpc makes them, with few rows, and its statements.
CREATE TABLE warehouse (w_id INT NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_tax DECIMAL(4, 4), w_ytd DECIMAL(12, 2), PRIMARY KEY (w_id));
----
(CREATE TABLE)

CREATE TABLE district (d_id INT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10), d_tax DECIMAL(4, 4), d_ytd DECIMAL(12, 2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id));
----
(CREATE TABLE)

CREATE TABLE customer (c_id INT NOT NULL, c_d_id INT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16), c_middle CHAR(2), c_last VARCHAR(16), c_credit CHAR(2), c_discount DECIMAL(4, 4), c_balance DECIMAL(12, 2), PRIMARY KEY (c_w_id, c_d_id, c_id));
----
(CREATE TABLE)

CREATE INDEX idx_customer ON customer (c_w_id, c_d_id, c_last, c_first);
----
(CREATE INDEX)

CREATE TABLE new_order (no_o_id INT NOT NULL, no_d_id INT NOT NULL, no_w_id INT NOT NULL, PRIMARY KEY (no_w_id, no_d_id, no_o_id));
----
(CREATE TABLE)

CREATE TABLE orders (o_id INT NOT NULL, o_d_id INT NOT NULL, o_w_id INT NOT NULL, o_c_id INT, o_carrier_id INT, o_ol_cnt INT, PRIMARY KEY (o_w_id, o_d_id, o_id));
----
(CREATE TABLE)

CREATE INDEX idx_order ON orders (o_w_id, o_d_id, o_c_id, o_id);
----
(CREATE INDEX)

CREATE TABLE order_line (ol_o_id INT NOT NULL, ol_d_id INT NOT NULL, ol_w_id INT NOT NULL, ol_number INT NOT NULL, ol_i_id INT NOT NULL, ol_amount DECIMAL(6, 2), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number));
----
(CREATE TABLE)

CREATE TABLE stock (s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity INT, s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id));
----
(CREATE TABLE)

CREATE TABLE item (i_id INT NOT NULL, i_name VARCHAR(24), i_price DECIMAL(5, 2), i_data VARCHAR(50), PRIMARY KEY (i_id));
----
(CREATE TABLE)

INSERT INTO warehouse SELECT w, 'w' || w, 'street', 0.1, 0 FROM generate_series(1, 2) w;
----
(INSERT 0 2)

INSERT INTO district SELECT d, w, 'd' || d, 0.1, 0, 101 FROM generate_series(1, 2) w, generate_series(1, 10) d;
----
(INSERT 0 20)

INSERT INTO customer SELECT c, d, w, 'f' || c, 'OE', 'l' || c % 20, CASE WHEN c % 10 = 0 THEN 'BC' ELSE 'GC' END, 0.1, 0 FROM generate_series(1, 2) w, generate_series(1, 10) d, generate_series(1, 100) c;
----
(INSERT 0 2000)

INSERT INTO orders SELECT o, d, w, o * 37 % 100 + 1, CASE WHEN o < 71 THEN o % 10 END, 5 FROM generate_series(1, 2) w, generate_series(1, 10) d, generate_series(1, 100) o;
----
(INSERT 0 2000)

INSERT INTO new_order SELECT o_id, o_d_id, o_w_id FROM orders WHERE o_id > 70;
----
(INSERT 0 600)

INSERT INTO order_line SELECT o_id, o_d_id, o_w_id, l, (o_id * 7 + l * 13) % 1000 + 1, 1 FROM orders, generate_series(1, 5) l;
----
(INSERT 0 10000)

INSERT INTO item SELECT i, 'i' || i, 1, 'data' FROM generate_series(1, 1000) i;
----
(INSERT 0 1000)

INSERT INTO stock SELECT i, w, i % 91 + 10, 'data' FROM generate_series(1, 2) w, generate_series(1, 1000) i;
----
(INSERT 0 2000)

ANALYZE;
----
(ANALYZE)

EXPLAIN SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse WHERE w_id = 1 AND c_w_id = w_id AND c_d_id = 2 AND c_id = 3;
----
QUERY PLAN
Hash Join  (rows=1)
  Hash Cond: (warehouse.w_id = customer.c_w_id)
  ->  Point Lookup using warehouse_pkey on warehouse  (rows=1)
        Index Cond: (w_id = 1)
  ->  Point Lookup using customer_pkey on customer  (rows=1)
        Index Cond: (c_w_id = 1) AND (c_d_id = 2) AND (c_id = 3)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT d_next_o_id, d_tax FROM district WHERE d_id = 2 AND d_w_id = 1 FOR UPDATE;
----
QUERY PLAN
Point Lookup using district_pkey on district  (rows=1)
  Index Cond: (d_w_id = 1) AND (d_id = 2)
  Locks rows
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT i_price, i_name, i_data, i_id FROM item WHERE i_id IN (3, 17, 90, 251, 700);
----
QUERY PLAN
Point Lookup using item_pkey on item  (rows=5)
  Index Cond: (i_id IN (3, 17, 90, 251, 700))
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT s_i_id, s_quantity, s_data FROM stock WHERE (s_w_id, s_i_id) IN ((1, 3), (1, 17), (1, 90), (1, 251), (1, 700)) FOR UPDATE;
----
QUERY PLAN
Point Lookup using stock_pkey on stock  (rows=5)
  Index Cond: (s_w_id = 1) AND (s_i_id IN (3, 17, 90, 251, 700))
  Locks rows
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT c_id FROM customer WHERE c_w_id = 1 AND c_d_id = 2 AND c_last = 'l7' ORDER BY c_first;
----
QUERY PLAN
Index Only Scan using idx_customer on customer  (rows=5)
  Index Cond: (c_w_id = 1) AND (c_d_id = 2) AND (c_last = 'l7')
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT count(c_id) FROM customer WHERE c_w_id = 1 AND c_d_id = 2 AND c_last = 'l7';
----
QUERY PLAN
Aggregate
  ->  Index Only Scan using idx_customer on customer  (rows=5)
        Index Cond: (c_w_id = 1) AND (c_d_id = 2) AND (c_last = 'l7')
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT o_id, o_carrier_id FROM orders WHERE o_w_id = 1 AND o_d_id = 2 AND o_c_id = 3 ORDER BY o_id DESC LIMIT 1;
----
QUERY PLAN
Limit
  ->  Index Scan Backward using idx_order on orders  (rows=1)
        Index Cond: (o_w_id = 1) AND (o_d_id = 2) AND (o_c_id = 3)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT ol_i_id, ol_amount FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id = 100;
----
QUERY PLAN
Index Scan using order_line_pkey on order_line  (rows=5)
  Index Cond: (ol_w_id = 1) AND (ol_d_id = 2) AND (ol_o_id = 100)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT no_o_id FROM new_order WHERE no_w_id = 1 AND no_d_id = 2 ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE;
----
QUERY PLAN
Limit
  ->  Index Scan using new_order_pkey on new_order  (rows=30)
        Index Cond: (no_w_id = 1) AND (no_d_id = 2)
        Locks rows
Regions: us-east1
(EXPLAIN)

EXPLAIN DELETE FROM new_order WHERE (no_w_id, no_d_id, no_o_id) IN ((1, 1, 71), (1, 2, 71), (1, 3, 71));
----
QUERY PLAN
Delete on new_order
  ->  Point Lookup using new_order_pkey on new_order  (rows=3)
        Index Cond: (no_w_id = 1) AND (no_d_id IN (1, 2, 3)) AND (no_o_id = 71)
        Locks rows
Regions: us-east1
(EXPLAIN)

EXPLAIN UPDATE orders SET o_carrier_id = 7 WHERE (o_w_id, o_d_id, o_id) IN ((1, 1, 71), (1, 2, 71), (1, 3, 71));
----
QUERY PLAN
Update on orders
  ->  Point Lookup using orders_pkey on orders  (rows=3)
        Index Cond: (o_w_id = 1) AND (o_d_id IN (1, 2, 3)) AND (o_id = 71)
        Locks rows
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT ol_d_id, sum(ol_amount) FROM order_line WHERE (ol_w_id, ol_d_id, ol_o_id) IN ((1, 1, 71), (1, 2, 71), (1, 3, 71)) GROUP BY ol_d_id;
----
QUERY PLAN
Group in batches
  Group Key: order_line.ol_d_id
  ->  Index Scan using order_line_pkey on order_line  (rows=14)
        Index Cond: (ol_w_id = 1) AND (ol_d_id IN (1, 2, 3)) AND (ol_o_id = 71)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id < 101 AND ol_o_id >= 81 AND s_w_id = 1 AND s_i_id = ol_i_id AND s_quantity < 15;
----
QUERY PLAN
Aggregate
  ->  Lookup Join  (rows=6)
        ->  Index Scan using order_line_pkey on order_line  (rows=100)
              Index Cond: (ol_w_id = 1) AND (ol_d_id = 2) AND (ol_o_id >= 81) AND (ol_o_id < 101)
        ->  Point Lookup using stock_pkey on stock  (rows=1)
              Index Cond: (s_w_id = 1) AND (s_i_id = outer #1)
              Filter: (s_quantity < 15)
Regions: us-east1
(EXPLAIN)

-- Its checks.
EXPLAIN SELECT count(*) FROM (SELECT max(d_next_o_id) - 1, max(o_id) FROM district, orders WHERE d_w_id = o_w_id AND d_id = o_d_id GROUP BY d_w_id, d_id) AS t;
----
QUERY PLAN
Aggregate
  ->  Group
        Group Key: district.d_w_id, district.d_id
        ->  Lookup Join  (rows=2000)
              ->  Seq Scan on district  (rows=20)
              ->  Index Scan using orders_pkey on orders  (rows=100)
                    Index Cond: (o_w_id = outer #2) AND (o_d_id = outer #1)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT count(*) FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS c FROM orders GROUP BY o_w_id, o_d_id) a JOIN (SELECT ol_w_id, ol_d_id, count(*) AS c FROM order_line GROUP BY ol_w_id, ol_d_id) b ON o_w_id = ol_w_id AND o_d_id = ol_d_id WHERE a.c <> b.c;
----
QUERY PLAN
Aggregate
  ->  Hash Join  (rows=18)
        Hash Cond: (orders.o_w_id = order_line.ol_w_id) AND (orders.o_d_id = order_line.ol_d_id)
        ->  Group in batches
              Group Key: orders.o_w_id, orders.o_d_id
              ->  Seq Scan on orders  (rows=2000)
        ->  Group in batches
              Group Key: order_line.ol_w_id, order_line.ol_d_id
              ->  Seq Scan on order_line  (rows=10000)
Regions: us-east1
(EXPLAIN)

EXPLAIN SELECT count(*) FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id WHERE o_w_id = 1 AND (o_carrier_id IS NULL AND no_o_id IS NULL OR o_carrier_id IS NOT NULL AND no_o_id IS NOT NULL);
----
QUERY PLAN
Aggregate
  ->  Filter
        Filter: (((orders.o_carrier_id IS NULL) AND (new_order.no_o_id IS NULL)) OR ((NOT (orders.o_carrier_id IS NULL)) AND (NOT (new_order.no_o_id IS NULL))))
        ->  Hash Left Join  (rows=1000)
              Hash Cond: (orders.o_w_id = new_order.no_w_id) AND (orders.o_d_id = new_order.no_d_id) AND (orders.o_id = new_order.no_o_id)
              ->  Index Scan using orders_pkey on orders  (rows=1000)
                    Index Cond: (o_w_id = 1)
              ->  Index Scan using new_order_pkey on new_order  (rows=300)
                    Index Cond: (no_w_id = 1)
Regions: us-east1
(EXPLAIN)

