-- postgres: same
create table orders (id int primary key, customer int, partner int, total int);
----
(CREATE TABLE)

insert into orders select g, g % 199, g % 177, g % 100 from generate_series(1, 5000) as g;
----
(INSERT 0 5000)

create table customers (id int primary key, city text);
----
(CREATE TABLE)

insert into customers select g, 'c' || g % 40 from generate_series(1, 200) as g;
----
(INSERT 0 200)

create index on orders (customer);
----
(CREATE INDEX)

create index on orders (partner);
----
(CREATE INDEX)

analyze;
----
(ANALYZE)

with c as materialized (select customer, total from orders where total < 10) select count(*) from customers as o where o.id = 7 or exists (select from c where c.customer = o.id and c.total > 8);
----
count
51
(SELECT 1)

with c as materialized (select customer, total from orders where total < 10) select o.id, (select count(*) from c where c.customer = o.id), (select sum(total) from c where c.customer = o.id) from customers as o where o.id < 5 or o.id > 198 order by o.id;
----
id | count | sum
1 | 2 | 1
2 | 3 | 3
3 | 4 | 6
4 | 5 | 10
199 | 0 | ∅
200 | 0 | ∅
(SELECT 6)

with c as (select customer, random() as r from orders where total < 10) select count(*) from customers as o where o.id = 7 or exists (select from c where c.customer = o.id and c.r < 2);
----
count
67
(SELECT 1)

with c as (select customer, random() as r from orders where total < 10) update customers as o set city = 'x' where o.id = 7 or exists (select from c where c.customer = o.id and c.r < 2);
----
(UPDATE 67)

select count(*) from customers where city = 'x';
----
count
67
(SELECT 1)

select c.id, count(*), sum(o.id) from customers as c join orders as o on o.customer = c.id or o.partner = c.id where c.id < 4 group by c.id order by c.id;
----
id | count | sum
1 | 54 | 136591
2 | 54 | 136645
3 | 54 | 136699
(SELECT 3)

select c.id, count(*), sum(o.id) from orders as o join customers as c on o.customer = c.id or o.partner = c.id where c.id between 176 and 178 group by c.id order by c.id;
----
id | count | sum
176 | 52 | 135758
177 | 25 | 64125
178 | 25 | 64150
(SELECT 3)

with recursive r (n) as (select 1 union all select n + 1 from (with x as materialized (select n from r) select * from x) as y where n < 5) select * from r order by n;
----
n
1
2
3
4
5
(SELECT 5)

select id, sum(total) over (order by id), count(*) over (partition by customer % 3 order by id), rank() over (order by total desc, id) from orders where id < 6 order by id;
----
id | sum | count | rank
1 | 1 | 1 | 5
2 | 3 | 1 | 4
3 | 6 | 1 | 3
4 | 10 | 2 | 2
5 | 15 | 2 | 1
(SELECT 5)

