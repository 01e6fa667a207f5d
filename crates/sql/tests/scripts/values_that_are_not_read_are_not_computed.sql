-- postgres: same
create table sales (id int primary key, shop int, amount int);
----
(CREATE TABLE)

insert into sales select i, i % 3, i from generate_series(1, 9) i;
----
(INSERT 0 9)

select count(*) from (select shop, sum(amount) as total, sum(1 / (amount - amount)) as never from sales group by shop) q;
----
count
3
(SELECT 1)

select shop, total from (select shop, sum(amount) as total, max(1 / (amount - amount)) as never from sales group by shop) q order by shop;
----
shop | total
0 | 18
1 | 12
2 | 15
(SELECT 3)

select count(*) from (select id, sum(1 / (amount - amount)) over (partition by shop) as never from sales) q;
----
count
9
(SELECT 1)

select id, place from (select id, rank() over (order by amount desc) as place, sum(1 / (amount - amount)) over (partition by shop) as never from sales) q where place <= 3 order by id;
----
id | place
7 | 3
8 | 2
9 | 1
(SELECT 3)

select count(*) from (select sum(amount) as total from sales) q;
----
count
1
(SELECT 1)

select count(*) from (select sum(amount) as total from sales where id > 100) q;
----
count
1
(SELECT 1)

select max(never) from (select max(1 / (amount - amount)) as never from sales group by shop) q;
----
ERROR 22012: division by zero

select count(*) from (select distinct shop, count(*) over (partition by shop) from sales) q;
----
count
3
(SELECT 1)

create sequence drawn;
----
(CREATE SEQUENCE)

select count(*) from (select id, sum(nextval('drawn')) over (order by id) as numbered from sales) q;
----
count
9
(SELECT 1)

select last_value from drawn;
----
last_value
9
(SELECT 1)

select count(*) from (select shop, max(nextval('drawn')) as numbered from sales group by shop) q;
----
count
3
(SELECT 1)

select last_value from drawn;
----
last_value
18
(SELECT 1)

