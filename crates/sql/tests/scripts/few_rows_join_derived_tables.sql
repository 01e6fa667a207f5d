-- postgres: same
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

insert into orders values (-1, null, null, 1), (-2, null, 7, 2);
----
(INSERT 0 2)

analyze;
----
(ANALYZE)

select c.id, o.n, o.m from customers as c left join (select customer, count(*) as n, max(total) as m from orders group by customer) as o on o.customer = c.id where c.city in ('c7', 'c399') order by c.id;
----
id | n | m
7 | 11 | 99
399 | 10 | 99
407 | 10 | 99
799 | 10 | 99
807 | 10 | 99
1199 | 10 | 99
1207 | 10 | 99
1599 | 10 | 99
1607 | 10 | 99
1999 | ∅ | ∅
(SELECT 10)

select c.id, o.n from customers as c join (select customer, count(*) as n from orders group by customer having count(*) > 10) as o on o.customer = c.id where c.city in ('c7', 'c399') order by c.id;
----
id | n
7 | 11
(SELECT 1)

select v.k, o.n from (values (1), (2), (1999), (null)) as v (k) left join (select customer, count(*) as n from orders group by customer) as o on o.customer = v.k order by v.k;
----
k | n
1 | 11
2 | 11
1999 | ∅
∅ | ∅
(SELECT 4)

select v.k, o.n from (values (1), (2), (1999)) as v (k) left join (select customer, count(*) as n from orders group by customer) as o on o.customer = v.k and v.k > 1 order by v.k;
----
k | n
1 | ∅
2 | 11
1999 | ∅
(SELECT 3)

select c.id, count(o.id), sum(o.id) from customers as c left join orders as o on o.customer = c.id or o.partner = c.id where c.city = 'c7' group by c.id order by c.id;
----
id | count | sum
7 | 23 | 227379
407 | 21 | 215784
807 | 20 | 203830
1207 | 20 | 211830
1607 | 20 | 219830
(SELECT 5)

select c.id, o.n from customers as c left join (select distinct on (customer) customer, total as n from orders order by customer, total desc) as o on o.customer = c.id where c.city = 'c7' order by c.id;
----
id | n
7 | 99
407 | 99
807 | 99
1207 | 99
1607 | 99
(SELECT 5)

select c.id, o.customer, o.n from customers as c left join (select customer, count(*) as n from orders group by customer) as o on o.customer = c.id and o.n > 10 where c.city = 'c7' order by c.id;
----
id | customer | n
7 | 7 | 11
407 | ∅ | ∅
807 | ∅ | ∅
1207 | ∅ | ∅
1607 | ∅ | ∅
(SELECT 5)

select c.id, o.n, p.n from customers as c left join (select customer, count(*) as n from orders group by customer) as o on o.customer = c.id left join (select partner, count(*) as n from orders group by partner) as p on p.partner = c.id where c.city = 'c7' order by c.id;
----
id | n | n
7 | 11 | 13
407 | 10 | 12
807 | 10 | 11
1207 | 10 | 11
1607 | 10 | 11
(SELECT 5)

select c.id, (select sum(x.n) from customers as d join (select customer, count(*) as n from orders group by customer) as x on x.customer = d.id where d.city = c.city) from customers as c where c.id < 4 order by c.id;
----
id | sum
1 | 51
2 | 51
3 | 51
(SELECT 3)

select c.id, o.s from customers as c left join (select customer as k, count(*) as s from orders group by customer union all select partner, sum(total) from orders group by partner) as o on o.k = c.id where c.city = 'c7' order by c.id, o.s;
----
id | s
7 | 11
7 | 568
407 | 10
407 | 566
807 | 10
807 | 512
1207 | 10
1207 | 512
1607 | 10
1607 | 512
(SELECT 10)

