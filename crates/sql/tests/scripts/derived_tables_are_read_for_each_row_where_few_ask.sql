create table customers (id int primary key, city text);
----
(CREATE TABLE)

create table orders (id int primary key, customer int, partner int, total int);
----
(CREATE TABLE)

create index on orders (customer);
----
(CREATE INDEX)

create index on orders (partner);
----
(CREATE INDEX)

create index on customers (city);
----
(CREATE INDEX)

insert into customers select g, 'c' || g % 400 from generate_series(1, 2000) as g;
----
(INSERT 0 2000)

insert into orders select g, g % 1999, g % 1777, g % 100 from generate_series(1, 20000) as g;
----
(INSERT 0 20000)

analyze;
----
(ANALYZE)

explain select c.id, o.n from customers as c left join (select customer, count(*) as n from orders group by customer) as o on o.customer = c.id where c.city = 'c7';
----
QUERY PLAN
Nested Loop Left Join  (rows=5)
  ->  Index Only Scan using customers_city_idx on customers c  (rows=5)
        Index Cond: (city = 'c7')
  ->  Group
        Group Key: orders.customer
        ->  Index Only Scan using orders_customer_idx on orders  (rows=10)
              Index Cond: (customer = outer #1)
Regions: us-east1
(EXPLAIN)

explain select c.id, o.n from customers as c join (select customer, count(*) as n from orders group by customer) as o on o.customer = c.id where c.city = 'c7';
----
QUERY PLAN
Nested Loop Join  (rows=5)
  ->  Index Only Scan using customers_city_idx on customers c  (rows=5)
        Index Cond: (city = 'c7')
  ->  Group
        Group Key: orders.customer
        ->  Index Only Scan using orders_customer_idx on orders  (rows=10)
              Index Cond: (customer = outer #1)
Regions: us-east1
(EXPLAIN)

explain select v.k, o.n from (values (1), (2), (1999)) as v (k) left join (select customer, count(*) as n from orders group by customer) as o on o.customer = v.k;
----
QUERY PLAN
Nested Loop Left Join
  ->  Values Scan
  ->  Group
        Group Key: orders.customer
        ->  Index Only Scan using orders_customer_idx on orders  (rows=10)
              Index Cond: (customer = outer #1)
Regions: us-east1
(EXPLAIN)

explain select c.id, o.id from customers as c left join orders as o on o.customer = c.id or o.partner = c.id where c.city = 'c7';
----
QUERY PLAN
Nested Loop Left Join  (rows=85)
  ->  Index Only Scan using customers_city_idx on customers c  (rows=5)
        Index Cond: (city = 'c7')
  ->  Union All
        ->  Index Scan using orders_customer_idx on orders o  (rows=10)
              Index Cond: (customer = outer #1)
        ->  Index Scan using orders_partner_idx on orders o  (rows=7)
              Index Cond: (partner = outer #1)
              Filter: (NOT ((customer = outer #1) IS TRUE))
Regions: us-east1
(EXPLAIN)

explain select c.id, o.n from customers as c left join (select customer, count(*) as n from orders group by customer) as o on o.customer = c.id;
----
QUERY PLAN
Hash Left Join  (rows=2000)
  Hash Cond: (c.id = orders.customer)
  ->  Seq Scan on customers c  (rows=2000)
  ->  Group in batches
        Group Key: orders.customer
        ->  Seq Scan on orders  (rows=20000)
Regions: us-east1
(EXPLAIN)

explain select c.id, o.n from customers as c left join (select distinct on (customer) customer, total as n from orders order by customer, total desc) as o on o.customer = c.id where c.city = 'c7';
----
QUERY PLAN
Nested Loop Left Join  (rows=5)
  ->  Index Only Scan using customers_city_idx on customers c  (rows=5)
        Index Cond: (city = 'c7')
  ->  Unique
        ->  Sort
              Sort Key: orders.customer, orders.total DESC
              ->  Index Scan using orders_customer_idx on orders  (rows=10)
                    Index Cond: (customer = outer #1)
Regions: us-east1
(EXPLAIN)

