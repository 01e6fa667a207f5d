-- postgres: same
create table people (id int primary key, town text, active bool, limit_id int);
----
(CREATE TABLE)

create table orders (id int primary key, person int, status text, total int);
----
(CREATE TABLE)

insert into people select g, case when g % 7 = 0 then null else 'town ' || g % 5 end, case g % 3 when 0 then null when 1 then true else false end, case when g % 11 = 0 then null else g % 50 end from generate_series(1, 600) as g;
----
(INSERT 0 600)

insert into orders select g, case when g % 13 = 0 then null else (g * 7) % 700 end, case when g % 4 = 0 then null else 'state ' || g % 4 end, g % 100 from generate_series(1, 4000) as g;
----
(INSERT 0 4000)

analyze people;
----
(ANALYZE)

analyze orders;
----
(ANALYZE)

select count(*) from people as p where p.active or exists (select 1 from orders as o where o.person = p.id and o.status = 'state 1');
----
count
214
(SELECT 1)

select count(*) from people as p where p.active or not exists (select 1 from orders as o where o.person = p.id and o.status = 'state 1');
----
count
586
(SELECT 1)

select case when exists (select 1 from orders as o where o.person = p.id and o.total > 95) then 'big' else 'small' end as k, count(*) from people as p group by 1 order by 1;
----
k | count
small | 600
(SELECT 1)

select count(*) from (select exists (select from orders as o where o.person = p.id and o.total = 5) as e from people as p) as x where e;
----
count
1
(SELECT 1)

select count(*), count(*) filter (where e), count(*) filter (where e is null) from (select exists (select 1 from orders as o where o.person = p.limit_id and o.status = 'state 2') as e from people as p) as x;
----
count | count | count
600 | 22 | 0
(SELECT 1)

select count(*) from people as p where (p.active and exists (select 1 from orders as o where o.person = p.id and o.total < 10)) or (not p.active and not exists (select 1 from orders as o where o.person = p.id and o.total < 50));
----
count
187
(SELECT 1)

select p.id from people as p where p.id = 77 or exists (select 1 from orders as o where o.person = p.id and o.total = p.limit_id) order by 1 limit 8;
----
id
77
175
(SELECT 2)

select count(*) from people as p where p.id = 77 or exists (select 1 from orders as o where o.person = p.id and o.total = p.limit_id);
----
count
2
(SELECT 1)

select count(*) from people as p where p.active or exists (select 1 from orders as o where o.person = p.id and o.total > p.limit_id);
----
count
236
(SELECT 1)

select count(*) from people as p where p.active or exists (select 1 from orders as o where o.person = p.id and 100 / o.total > 20 and o.total <> 0);
----
count
202
(SELECT 1)

select count(*) from people as p where p.town is null or exists (select 1 from orders as o join people as q on q.id = o.total where o.person = p.id and q.active);
----
count
85
(SELECT 1)

select count(*) from people as p where p.active or exists (select 1 from orders as o where o.person = p.id limit 0);
----
count
200
(SELECT 1)

select count(*) from people as p where p.active or exists (select o.person from orders as o where o.person = p.id group by o.person having count(*) > 6);
----
count
256
(SELECT 1)

select town, bool_or(exists (select 1 from orders as o where o.person = p.id and o.total = 3)) from people as p group by town order by town nulls first;
----
town | bool_or
∅ | t
town 0 | f
town 1 | f
town 2 | f
town 3 | f
town 4 | f
(SELECT 6)

select p.id, l.n from people as p left join lateral (select count(*) as n, max(o.total) as m from orders as o where o.person = p.id having count(*) > 5) as l on true where p.id < 30 order by 1;
----
id | n
1 | ∅
2 | ∅
3 | ∅
4 | ∅
5 | ∅
6 | ∅
7 | 37
8 | ∅
9 | ∅
10 | ∅
11 | ∅
12 | ∅
13 | ∅
14 | 37
15 | ∅
16 | ∅
17 | ∅
18 | ∅
19 | ∅
20 | ∅
21 | 37
22 | ∅
23 | ∅
24 | ∅
25 | ∅
26 | ∅
27 | ∅
28 | 37
29 | ∅
(SELECT 29)

select count(*), count(l.n), sum(l.n), max(l.m) from people as p left join lateral (select count(*) as n, max(o.total) as m from orders as o where o.person = p.id having count(*) > 5) as l on true;
----
count | count | sum | max
600 | 85 | 3139 | 85
(SELECT 1)

select count(*), count(l.n), sum(l.n) from people as p left join lateral (select count(*) as n from orders as o where o.person = p.id) as l on l.n > 6 and p.active;
----
count | count | sum
600 | 29 | 1071
(SELECT 1)

select count(*), count(l.n), sum(l.n) from people as p join lateral (select count(*) as n from orders as o where o.person = p.id having min(o.total) < 20) as l on l.n > 4;
----
count | count | sum
19 | 19 | 702
(SELECT 1)

select x.person, x.n, p.town from (select person, count(*) as n from orders group by person) as x join people as p on p.id = x.person where p.id between 5 and 8 order by 1;
----
person | n | town
7 | 37 | ∅
(SELECT 1)

select p.id, x.n from people as p left join (select person, count(*) as n from orders group by person) as x on x.person = p.id where p.id > 594 order by 1;
----
id | n
595 | 37
596 | ∅
597 | ∅
598 | ∅
599 | ∅
600 | ∅
(SELECT 6)

select p.id, x.n from people as p join (select distinct person, 1 as n from orders) as x on x.person = p.id where p.id <= 3 order by 1;
----
id | n
(SELECT 0)

update people as p set limit_id = x.s from (select person, sum(total) as s from orders group by 1) as x where x.person = p.id and p.id between 300 and 303 returning p.id, p.limit_id;
----
id | limit_id
301 | 1591
(UPDATE 1)

update people as p set limit_id = -1 where p.active or exists (select 1 from orders as o where o.person = p.id and o.total > 95);
----
(UPDATE 200)

select count(*) from people where limit_id = -1;
----
count
200
(SELECT 1)

select id, active, exists (select 1 from orders as o where o.person = p.id and o.total < 2) as few from people as p where id between 10 and 16 order by id for update;
----
id | active | few
10 | t | f
11 | f | f
12 | ∅ | f
13 | t | f
14 | f | f
15 | ∅ | f
16 | t | f
(SELECT 7)

update people as p set town = case when exists (select 1 from orders as o where o.person = p.id and o.total = 7) then 'seven' else 'other' end where p.active;
----
(UPDATE 200)

select town, count(*) from people where active group by 1 order by 1;
----
town | count
other | 199
seven | 1
(SELECT 2)

with d as (delete from people as p where p.limit_id = 7 or not exists (select 1 from orders as o where o.person = p.id and o.status is not null) returning (select count(*) from orders as o where o.person = p.id) as n, p.id < 40 as low) select count(*), sum(n), count(*) filter (where low) from d;
----
count | sum | count
537 | 813 | 35
(SELECT 1)

select count(*), sum(id) from people;
----
count | sum
63 | 18760
(SELECT 1)

