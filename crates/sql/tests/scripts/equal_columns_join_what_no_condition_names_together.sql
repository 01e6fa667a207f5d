-- postgres: same
create table eu (id int primary key, city int not null, name text);
----
(CREATE TABLE)

create table eo (id int primary key, usr int not null, city int not null, day date not null);
----
(CREATE TABLE)

create table ei (ord int, line int, city int not null, qty int not null, primary key (ord, line));
----
(CREATE TABLE)

create table ec (id int primary key, zone int not null);
----
(CREATE TABLE)

insert into eu select g, g % 20, 'u' || g from generate_series(1, 300) g;
----
(INSERT 0 300)

insert into eo select g, 1 + g % 300, g % 20, date '1999-12-20' + g % 30 from generate_series(1, 3000) g;
----
(INSERT 0 3000)

insert into ei select 1 + (g - 1) / 4, 1 + (g - 1) % 4, g % 20, g % 7 from generate_series(1, 12000) g;
----
(INSERT 0 12000)

insert into ec select g, g % 4 from generate_series(0, 19) g;
----
(INSERT 0 20)

analyze;
----
(ANALYZE)

select count(*) from eu, eo, ec where eu.city = eo.city and eo.city = ec.id and ec.zone = 1 and eu.id < 40;
----
count
1500
(SELECT 1)

select count(*), sum(qty) from eu, eo, ei, ec where eu.city = ec.id and eo.usr = eu.id and ei.ord = eo.id and ei.city = ec.id and eo.city = ec.id and ec.zone = 2;
----
count | sum
0 | ∅
(SELECT 1)

select count(*) from eu, eo where eu.city = eo.city and eu.id = eo.city and eu.city = 3;
----
count
150
(SELECT 1)

select count(*) from ec a, ec b, ec c where a.id = b.id and b.id = c.id and c.id = a.id and a.zone = 3;
----
count
5
(SELECT 1)

select count(*) from eu join eo on eo.usr = eu.id join ei on ei.ord = eo.id where eo.id in (select ord from ei group by ord having sum(qty) > 16);
----
count
1712
(SELECT 1)

select count(*) from eo join ei on ei.ord = eo.id where not exists (select 1 from ec where ec.id = eo.city and ec.zone = 1);
----
count
9000
(SELECT 1)

select count(*) from eo join ei on ei.ord = eo.id and ei.line = 1 where eo.id < 20 and exists (select 1 from eu where eu.id = eo.usr and eu.city = ei.city);
----
count
1
(SELECT 1)

select count(*) from ei a join ei b on a.ord = b.ord and a.line = b.line;
----
count
12000
(SELECT 1)

select count(*) from eo where day < timestamp '2000-01-01';
----
count
1200
(SELECT 1)

select count(*) from eo where day <= timestamp '2000-01-01';
----
count
1300
(SELECT 1)

select count(*) from eo where day < timestamp '2000-01-01 12:00';
----
count
1300
(SELECT 1)

select count(*) from eo where day >= timestamp '2000-01-01 12:00';
----
count
1700
(SELECT 1)

select count(*) from eo where day > timestamp '1999-12-31 23:59:59.999999';
----
count
1800
(SELECT 1)

select count(*) from eo where day = timestamp '2000-01-01';
----
count
100
(SELECT 1)

select count(*) from eo where day = timestamp '2000-01-01 00:00:01';
----
count
0
(SELECT 1)

select count(*) from eo where day <> timestamp '2000-01-01';
----
count
2900
(SELECT 1)

select count(*) from eo where timestamp '1999-12-31 00:00:00.5' <= day;
----
count
1800
(SELECT 1)

select count(*) from eo where day < timestamp 'infinity' and day > timestamp '-infinity';
----
count
3000
(SELECT 1)

select count(*) from eo where day >= date '1999-12-25' and day < date '1999-12-25' + interval '1 week';
----
count
700
(SELECT 1)

select day::text from eo where day < timestamp '1999-12-20 00:00:01' order by id limit 1;
----
day
1999-12-20
(SELECT 1)

select d::text from (values (date 'infinity'), (date '-infinity'), (date '1969-12-31')) v (d) where d > timestamp '1969-12-30 18:00' order by d;
----
d
1969-12-31
infinity
(SELECT 2)

select id, name, count(*) from (select eu.id, eu.name, eo.id as o from eu join eo on eo.usr = eu.id) s group by id, name order by id limit 2;
----
id | name | count
1 | u1 | 10
2 | u2 | 10
(SELECT 2)

select eu.id, eu.name, count(*) from eu join eo on eo.usr = eu.id group by eu.id having max(eu.city) < 3 order by eu.name limit 3;
----
id | name | count
1 | u1 | 10
100 | u100 | 10
101 | u101 | 10
(SELECT 3)

select eu.id, sum(eo.city), rank() over (order by eu.city, eu.id) from eu join eo on eo.usr = eu.id group by eu.id order by 3 limit 3;
----
id | sum | rank
20 | 190 | 1
40 | 190 | 2
60 | 190 | 3
(SELECT 3)

select distinct on (eu.city) eu.city, eu.id from eu join eo on eo.usr = eu.id group by eu.id order by eu.city, eu.id desc limit 3;
----
city | id
0 | 300
1 | 281
2 | 282
(SELECT 3)

select eu.id, (select max(ec.zone) from ec where ec.id = eu.city) from eu join eo on eo.usr = eu.id group by eu.id order by 1 limit 3;
----
id | max
1 | 1
2 | 2
3 | 3
(SELECT 3)

