-- postgres: same
create table orders (id int primary key, customer int, partner int, total int);
----

insert into orders select g, g % 199, g % 177, g % 100 from generate_series(1, 5000) as g;
----

create table customers (id int primary key, city text);
----

insert into customers select g, 'c' || g % 40 from generate_series(1, 200) as g;
----

create index on orders (customer);
----

create index on orders (partner);
----

analyze;
----

with c as materialized (select customer, total from orders where total < 10) select count(*) from customers as o where o.id = 7 or exists (select from c where c.customer = o.id and c.total > 8);
----

with c as materialized (select customer, total from orders where total < 10) select o.id, (select count(*) from c where c.customer = o.id), (select sum(total) from c where c.customer = o.id) from customers as o where o.id < 5 or o.id > 198 order by o.id;
----

with c as (select customer, random() as r from orders where total < 10) select count(*) from customers as o where o.id = 7 or exists (select from c where c.customer = o.id and c.r < 2);
----

with c as (select customer, random() as r from orders where total < 10) update customers as o set city = 'x' where o.id = 7 or exists (select from c where c.customer = o.id and c.r < 2);
----

select count(*) from customers where city = 'x';
----

select c.id, count(*), sum(o.id) from customers as c join orders as o on o.customer = c.id or o.partner = c.id where c.id < 4 group by c.id order by c.id;
----

select c.id, count(*), sum(o.id) from orders as o join customers as c on o.customer = c.id or o.partner = c.id where c.id between 176 and 178 group by c.id order by c.id;
----

with recursive r (n) as (select 1 union all select n + 1 from (with x as materialized (select n from r) select * from x) as y where n < 5) select * from r order by n;
----

select id, sum(total) over (order by id), count(*) over (partition by customer % 3 order by id), rank() over (order by total desc, id) from orders where id < 6 order by id;
----

