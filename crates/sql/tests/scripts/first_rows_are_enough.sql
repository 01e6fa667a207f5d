-- postgres: same

create table wu (id int primary key, name text, country int);
----
(CREATE TABLE)

create table wo (id int primary key, user_id int, status text, total numeric, created timestamp);
----
(CREATE TABLE)

create table wi (id int primary key, order_id int, product_id int, qty int);
----
(CREATE TABLE)

create table wp (id int primary key, cat int);
----
(CREATE TABLE)

insert into wu select g, 'u' || g, g % 20 from generate_series(1, 500) g;
----
(INSERT 0 500)

insert into wo select g, case when g % 50 > 0 then g % 500 + 1 end, 's' || g % 4, g % 7, '2026-01-01'::timestamp + (g / 3) * interval '6 minutes' from generate_series(1, 10000) g;
----
(INSERT 0 10000)

insert into wi select g, g % 10000 + 1, g % 200, g % 7 from generate_series(1, 20000) g;
----
(INSERT 0 20000)

insert into wp select g, g % 12 from generate_series(0, 199) g;
----
(INSERT 0 200)

create index wo_user on wo (user_id);
----
(CREATE INDEX)

create index wo_created on wo (created);
----
(CREATE INDEX)

create index wi_order on wi (order_id);
----
(CREATE INDEX)

analyze wu;
----
(ANALYZE)

analyze wo;
----
(ANALYZE)

analyze wi;
----
(ANALYZE)

analyze wp;
----
(ANALYZE)

select * from (select id, status, row_number() over (order by id) rn from wo) x where rn <= 3;
----
id | status | rn
1 | s1 | 1
2 | s2 | 2
3 | s3 | 3
(SELECT 3)

select id, sum(total) over (order by id) from wo order by id limit 4;
----
id | sum
1 | 1
2 | 3
3 | 6
4 | 10
(SELECT 4)

select id, row_number() over (order by created, id) n, rank() over (order by created, id) r, lag(total) over (order by created, id) l, first_value(id) over (order by created, id) f from wo order by created, id limit 4;
----
id | n | r | l | f
1 | 1 | 1 | ∅ | 1
2 | 2 | 2 | 1 | 1
3 | 3 | 3 | 2 | 1
4 | 4 | 4 | 3 | 1
(SELECT 4)

select id, created, rank() over (order by created), dense_rank() over (order by created), count(*) over (order by created), last_value(total) over (order by created) from wo where id < 40 order by created limit 5;
----
id | created | rank | dense_rank | count | last_value
1 | 2026-01-01 00:00:00 | 1 | 1 | 2 | 2
2 | 2026-01-01 00:00:00 | 1 | 1 | 2 | 2
3 | 2026-01-01 00:06:00 | 3 | 2 | 5 | 5
4 | 2026-01-01 00:06:00 | 3 | 2 | 5 | 5
5 | 2026-01-01 00:06:00 | 3 | 2 | 5 | 5
(SELECT 5)

select * from (select id, rank() over (order by created desc) r, sum(total) over (order by created desc) from wo) x where r < 4 order by id;
----
id | r | sum
9996 | 3 | 10
9997 | 3 | 10
9998 | 3 | 10
9999 | 1 | 7
10000 | 1 | 7
(SELECT 5)

select * from (select id, dense_rank() over (order by created) r, count(*) over (order by created rows unbounded preceding) from wo) x where r = 2 order by id;
----
id | r | count
3 | 2 | 3
4 | 2 | 4
5 | 2 | 5
(SELECT 3)

select * from (select id, user_id, row_number() over (partition by user_id order by created desc, id) rn from wo where id < 2000) x where rn <= 2 order by user_id, rn limit 5;
----
id | user_id | rn
1501 | 2 | 1
1001 | 2 | 2
1502 | 3 | 1
1002 | 3 | 2
1503 | 4 | 1
(SELECT 5)

select * from (select id, user_id, row_number() over (partition by user_id order by id) rn from wo) x where rn <= 2 order by user_id, id limit 5;
----
id | user_id | rn
1 | 2 | 1
501 | 2 | 2
2 | 3 | 1
502 | 3 | 2
3 | 4 | 1
(SELECT 5)

select count(*), sum(id) from (select id, user_id, rank() over (partition by user_id order by total) r from wo) x where r <= 1;
----
count | sum
1428 | 7142142
(SELECT 1)

select count(*), sum(id) from (select id, user_id, row_number() over (partition by user_id order by total desc, id) r from wo) x where 3 > r;
----
count | sum
982 | 3430950
(SELECT 1)

select count(*) from (select row_number() over () rn from wo) x where rn <= 0;
----
count
0
(SELECT 1)

select count(*) from (select row_number() over () rn from wo) x where rn <= null::int;
----
count
0
(SELECT 1)

select id, count(*) over () from wo order by id limit 2;
----
id | count
1 | 10000
2 | 10000
(SELECT 2)

select id, lag(id, 2, -1) over (order by id), lead(id) over (order by id) from wo order by id limit 3;
----
id | lag | lead
1 | -1 | 2
2 | -1 | 3
3 | 1 | 4
(SELECT 3)

select id, first_value(id) over (order by id rows between unbounded preceding and 1 preceding) from wo order by id limit 2;
----
id | first_value
1 | ∅
2 | 1
(SELECT 2)

select distinct on (user_id) user_id, id from wo order by user_id, id desc limit 3;
----
user_id | id
2 | 9501
3 | 9502
4 | 9503
(SELECT 3)

select distinct o.id, o.created from wo o join wi i on i.order_id = o.id order by o.id limit 3;
----
id | created
1 | 2026-01-01 00:00:00
2 | 2026-01-01 00:00:00
3 | 2026-01-01 00:06:00
(SELECT 3)

select distinct o.* from wo o left join wi i on i.order_id = o.id where o.status = 's1' order by o.created desc, o.id limit 3;
----
id | user_id | status | total | created
9997 | 498 | s1 | 1 | 2026-01-14 21:12:00
9993 | 494 | s1 | 4 | 2026-01-14 21:06:00
9989 | 490 | s1 | 0 | 2026-01-14 20:54:00
(SELECT 3)

select distinct user_id from wo order by user_id desc limit 3;
----
user_id
∅
500
499
(SELECT 3)

select o.id from wo o join wu u on u.id = o.user_id where u.country = 7 order by o.created desc, o.id limit 3;
----
id
9986
9966
9946
(SELECT 3)

select o.id from wo o where o.id in (select order_id from wi where product_id in (select id from wp where cat = 3)) order by o.created desc, o.id limit 3;
----
id
9996
9984
9972
(SELECT 3)

select o.id from wo o where o.id in (select order_id from wi where product_id in (select id from wp where cat = 3) and qty > 100) order by o.created desc, o.id limit 3;
----
id
(SELECT 0)

select count(*) from (select o.id from wo o where not exists (select 1 from wi where wi.order_id = o.id) limit 10) x;
----
count
0
(SELECT 1)

select o.id from wo o join wu u on u.id = o.user_id where u.name = 'u77' order by o.created, o.id limit 2;
----
id
76
576
(SELECT 2)

