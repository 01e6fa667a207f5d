-- postgres: same
create table ua (id int primary key, k int);
----
(CREATE TABLE)

create table ub (id int primary key, k int);
----
(CREATE TABLE)

insert into ua select i, i % 10 from generate_series(1, 300) i;
----
(INSERT 0 300)

insert into ub select i, i % 7 from generate_series(101, 500) i;
----
(INSERT 0 400)

select id from (select id from ua union all select id from ub) u order by id limit 3;
----
id
1
2
3
(SELECT 3)

select id from ua union all select id from ub order by id desc limit 4;
----
id
500
499
498
497
(SELECT 4)

select id from ua union all select id from ub order by id limit 6 offset 98;
----
id
99
100
101
101
102
102
(SELECT 6)

select id, k from ua union all select id, k from ub union all select 0, null order by k nulls first, id limit 3;
----
id | k
0 | ∅
10 | 0
20 | 0
(SELECT 3)

select count(*) as n from (select id from ua union all select id from ub limit 350) u;
----
n
350
(SELECT 1)

select count(*) as n from (select id from ua union all select id from ub limit 350 offset 650) u;
----
n
50
(SELECT 1)

select count(*) as n from (select id from ua union all select id from ub limit 0) u;
----
n
0
(SELECT 1)

select id + k as s from (select id, k from ua where k > 5 union all select k, id from ub where k < 2) u order by s, 1 limit 3;
----
s
12
14
16
(SELECT 3)

select x, count(*) as n from (select k as x from ua union all select k from ub order by 1 limit 200) u group by x order by x;
----
x | n
0 | 87
1 | 87
2 | 26
(SELECT 3)

select id from ua union select id from ub order by id limit 2 offset 100;
----
id
101
102
(SELECT 2)

select id::bigint as id from ua union all select id from ub order by 1 desc limit 1;
----
id
500
(SELECT 1)

prepare ua_first (bigint) as select id from ua union all select id from ub order by id limit $1;
----
(PREPARE)

execute ua_first(2);
----
id
1
2
(SELECT 2)

execute ua_first(0);
----
id
(SELECT 0)

prepare ua_all (bigint) as select count(*) as n from (select id from ua union all select id from ub limit $1) u;
----
(PREPARE)

execute ua_all(null);
----
n
700
(SELECT 1)

execute ua_all(450);
----
n
450
(SELECT 1)

select id from ua union all select id from ub order by id limit -1;
----
ERROR 2201W: LIMIT must not be negative

with c as (select id from ua where k = 3) select id from c union all select id from c order by id limit 3;
----
id
3
3
13
(SELECT 3)

