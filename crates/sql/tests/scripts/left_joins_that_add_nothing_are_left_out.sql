-- postgres: same
create table people (id int primary key, name text, email text unique, town_id int, boss int);
----
(CREATE TABLE)

create table towns (id int primary key, name text, region int, code int);
----
(CREATE TABLE)

create unique index towns_code on towns (region, code);
----
(CREATE INDEX)

insert into towns select g, 'town ' || g, g % 4, g from generate_series(1, 20) as g;
----
(INSERT 0 20)

insert into people select g, 'p' || g, case when g % 5 > 0 then 'e' || g end, case when g % 7 > 0 then g % 25 end, nullif(g % 10, 3) from generate_series(1, 200) as g;
----
(INSERT 0 200)

select count(*), sum(p.id) from people as p left join towns as t on t.id = p.town_id;
----
count | sum
200 | 20100
(SELECT 1)

select p.id, p.name from people as p left join towns as t on p.town_id = t.id left join people as b on b.id = p.boss where p.id < 4 order by p.id;
----
id | name
1 | p1
2 | p2
3 | p3
(SELECT 3)

select count(*) from people as p left join towns as t on t.id = p.town_id + 1 and t.name > 'town 2';
----
count
200
(SELECT 1)

select count(*) from people as p left join towns as t on t.region = p.boss and t.code = p.town_id;
----
count
200
(SELECT 1)

select count(*) from people as p left join towns as t on t.region = 2 and t.code = p.town_id;
----
count
200
(SELECT 1)

select count(*) from people as p left join people as q on q.email = p.name;
----
count
200
(SELECT 1)

select count(*) from people as p left join towns as t on t.region = p.boss;
----
count
440
(SELECT 1)

select count(*) from people as p left join towns as t on t.name = p.name;
----
count
200
(SELECT 1)

select count(*) from people as p left join towns as t on t.code = p.town_id and t.region > 1;
----
count
200
(SELECT 1)

select count(t.id) from people as p left join towns as t on t.id = p.town_id;
----
count
138
(SELECT 1)

select count(*) from people as p left join towns as t on t.id = p.town_id where t.id is null;
----
count
62
(SELECT 1)

select count(*) from people as p join towns as t on t.id = p.town_id;
----
count
138
(SELECT 1)

select count(*) from people as p full join towns as t on t.id = p.town_id;
----
count
200
(SELECT 1)

select count(*) from towns as t right join people as p on t.id = p.town_id;
----
count
200
(SELECT 1)

select p.id from people as p left join towns as t on t.id = p.town_id order by t.name nulls first, p.id limit 3;
----
id
7
14
21
(SELECT 3)

select count(*) from (select p.id, t.name from people as p left join towns as t on t.id = p.town_id) as x;
----
count
200
(SELECT 1)

select p.id from people as p left join towns as t on t.id = p.town_id and random() < 2 where p.id = 5;
----
id
5
(SELECT 1)

