-- postgres: same
create table people (id int primary key, credit int, town text);
----
(CREATE TABLE)

create table orders (id int primary key, person int, total int, town text);
----
(CREATE TABLE)

insert into people select g, case when g % 9 = 0 then null else g % 120 end, case when g % 7 = 0 then null else 'town ' || g % 5 end from generate_series(1, 600) as g;
----
(INSERT 0 600)

insert into orders select g, case when g % 13 = 0 then null else (g * 7) % 700 end, case when g % 17 = 0 then null else g % 100 end, case when g % 29 = 0 then null else 'town ' || g % 3 end from generate_series(1, 4000) as g;
----
(INSERT 0 4000)

analyze people;
----
(ANALYZE)

analyze orders;
----
(ANALYZE)

select count(*), sum(id), min(id), max(id) from people as p where p.credit >= all (select total from orders as o where o.person = p.id);
----
count | sum | min | max
515 | 154715 | 1 | 600
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where p.credit > all (select total from orders as o where o.person = p.id and o.total is not null);
----
count | sum | min | max
565 | 166965 | 1 | 600
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where p.credit < any (select total from orders as o where o.person = p.id);
----
count | sum | min | max
22 | 9100 | 133 | 553
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where not p.credit >= all (select total from orders as o where o.person = p.id);
----
count | sum | min | max
22 | 9100 | 133 | 553
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where not p.credit < any (select total from orders as o where o.person = p.id);
----
count | sum | min | max
515 | 154715 | 1 | 600
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where p.credit not in (select total from orders as o where o.person = p.id);
----
count | sum | min | max
515 | 154715 | 1 | 600
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where p.credit <> all (select total from orders as o where o.person = p.id and o.town = p.town);
----
count | sum | min | max
600 | 180300 | 1 | 600
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where p.credit in (select total from orders as o where o.person = p.id);
----
count | sum | min | max
4 | 1400 | 140 | 560
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where not p.credit = all (select total + 1 from orders as o where o.person = p.id);
----
count | sum | min | max
76 | 22750 | 7 | 595
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where p.town <= all (select town from orders as o where o.person = p.id and o.id % 2 = 0);
----
count | sum | min | max
558 | 167658 | 1 | 600
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where (p.id, p.credit) not in (select person, total from orders as o where o.town = p.town);
----
count | sum | min | max
291 | 87591 | 3 | 599
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where p.credit > all (select total from orders as o where o.id > p.id);
----
count | sum | min | max
0 | ∅ | ∅ | ∅
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where p.credit < any (select max(total) from orders as o where o.person = p.id);
----
count | sum | min | max
22 | 9100 | 133 | 553
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where p.credit <= all (select total from orders as o where o.person = p.id order by total limit 2);
----
count | sum | min | max
541 | 165215 | 1 | 600
(SELECT 1)

select count(*), sum(id), min(id), max(id) from people as p where p.credit > all (select total from orders as o where o.person is null);
----
count | sum | min | max
0 | ∅ | ∅ | ∅
(SELECT 1)

