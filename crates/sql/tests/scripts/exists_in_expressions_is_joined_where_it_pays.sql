create table people (id int primary key, town text, active bool, limit_id int);
----

create table orders (id int primary key, person int, status text, total int);
----

insert into people select g, case when g % 7 = 0 then null else 'town ' || g % 5 end, case g % 3 when 0 then null when 1 then true else false end, case when g % 11 = 0 then null else g % 50 end from generate_series(1, 600) as g;
----

insert into orders select g, case when g % 13 = 0 then null else (g * 7) % 700 end, case when g % 4 = 0 then null else 'state ' || g % 4 end, g % 100 from generate_series(1, 4000) as g;
----

analyze people;
----

analyze orders;
----

explain select count(*) from people as p where p.active or exists (select 1 from orders as o where o.person = p.id and o.status = 'state 1');
----

explain select case when exists (select 1 from orders as o where o.person = p.id and o.total > 95) then 'big' else 'small' end as k, count(*) from people as p group by 1 order by 1;
----

explain select count(*), count(*) filter (where e), count(*) filter (where e is null) from (select exists (select 1 from orders as o where o.person = p.limit_id and o.status = 'state 2') as e from people as p) as x;
----

explain select count(*) from people as p where (p.active and exists (select 1 from orders as o where o.person = p.id and o.total < 10)) or (not p.active and not exists (select 1 from orders as o where o.person = p.id and o.total < 50));
----

explain select p.id from people as p where p.id = 77 or exists (select 1 from orders as o where o.person = p.id and o.total = p.limit_id) order by 1 limit 8;
----

explain select count(*) from people as p where p.id = 77 or exists (select 1 from orders as o where o.person = p.id and o.total = p.limit_id);
----

explain select count(*) from people as p where p.active or exists (select 1 from orders as o where o.person = p.id and o.total > p.limit_id);
----

explain select count(*) from people as p where p.active or exists (select 1 from orders as o where o.person = p.id and 100 / o.total > 20 and o.total <> 0);
----

explain select count(*), count(l.n), sum(l.n), max(l.m) from people as p left join lateral (select count(*) as n, max(o.total) as m from orders as o where o.person = p.id having count(*) > 5) as l on true;
----

explain select count(*), count(l.n), sum(l.n) from people as p left join lateral (select count(*) as n from orders as o where o.person = p.id) as l on l.n > 6 and p.active;
----

explain select x.person, x.n, p.town from (select person, count(*) as n from orders group by person) as x join people as p on p.id = x.person where p.id between 5 and 8 order by 1;
----

explain select p.id, x.n from people as p left join (select person, count(*) as n from orders group by person) as x on x.person = p.id where p.id > 594 order by 1;
----

explain update people as p set limit_id = x.s from (select person, sum(total) as s from orders group by 1) as x where x.person = p.id and p.id between 300 and 303 returning p.id, p.limit_id;
----

