-- postgres: same
create table t (id int primary key, a int, b int, s text);
----
(CREATE TABLE)

create index t_ab on t (a, b);
----
(CREATE INDEX)

create index t_s on t (s);
----
(CREATE INDEX)

insert into t select g, case when g % 11 > 0 then g % 100 end, g % 7, 's' || g % 50 from generate_series(1, 2000) as g;
----
(INSERT 0 2000)

create table u (id int primary key, c int);
----
(CREATE TABLE)

insert into u select g * 2, g from generate_series(1, 800) as g;
----
(INSERT 0 800)

analyze t;
----
(ANALYZE)

analyze u;
----
(ANALYZE)

select count(*), sum(id), min(id), max(id) from t where a >= 10 and a > 95;
----
count | sum | min | max
72 | 77420 | 96 | 1999
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where a > 95 and a >= 10;
----
count | sum | min | max
72 | 77420 | 96 | 1999
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where a >= 10 and a > 10 and a <= 12 and a < 12;
----
count | sum | min | max
18 | 18098 | 111 | 1911
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where a > 10 and a >= 10;
----
count | sum | min | max
1618 | 1626826 | 12 | 1999
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where a >= 10 and (a, b) > (97, 3);
----
count | sum | min | max
43 | 45525 | 97 | 1999
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where a between 10 and 90 and (a, b) < (11, 3);
----
count | sum | min | max
26 | 26168 | 10 | 1911
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where a between 10 and 50 and a between 49 and 99;
----
count | sum | min | max
36 | 35382 | 49 | 1950
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where a > 5 and a > null;
----
count | sum | min | max
0 | ∅ | ∅ | ∅
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where not (a > 3 or b = 1);
----
count | sum | min | max
65 | 63196 | 2 | 2000
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where not (a < 98 and b < 5);
----
count | sum | min | max
597 | 600376 | 5 | 2000
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where a not between 2 and 98;
----
count | sum | min | max
56 | 57601 | 1 | 2000
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where not (id >= 4 and id <= 1998);
----
count | sum | min | max
5 | 4005 | 1 | 2000
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where case when true then id = 5 else false end;
----
count | sum | min | max
1 | 5 | 5 | 5
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where case when false then id = 5 when null then id = 6 else id = 7 end;
----
count | sum | min | max
1 | 7 | 7 | 7
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where s is not distinct from 's7' and a > 90;
----
count | sum | min | max
0 | ∅ | ∅ | ∅
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where s is not distinct from null;
----
count | sum | min | max
0 | ∅ | ∅ | ∅
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where a is not distinct from 5 and b is not distinct from 3;
----
count | sum | min | max
1 | 1305 | 1305 | 1305
(SELECT 1)

select count(*), sum(id), min(id), max(id) from t where id > 5 and id > 1990 and id < 3000 and id < 1995;
----
count | sum | min | max
4 | 7970 | 1991 | 1994
(SELECT 1)

select count(*), sum(id), sum(c) from t full join u using (id) where id = 10;
----
count | sum | sum
1 | 10 | 5
(SELECT 1)

select count(*), sum(id), sum(c), sum(a) from t full join u using (id) where id > 1590;
----
count | sum | sum | sum
410 | 736155 | 3990 | 18814
(SELECT 1)

select count(*) from t full join u using (id) where id < 4 and c is null;
----
count
2
(SELECT 1)

select id, a, c from t full join u using (id) where id between 1597 and 1602 order by id;
----
id | a | c
1597 | 97 | ∅
1598 | 98 | 799
1599 | 99 | ∅
1600 | 0 | 800
1601 | 1 | ∅
1602 | 2 | ∅
(SELECT 6)

select count(*) from u full join t on t.id = u.id where coalesce(t.id, u.id) = 12;
----
count
1
(SELECT 1)

select count(*) from u full join t on t.id = u.id where coalesce(u.c, t.id) = 12;
----
count
1
(SELECT 1)

prepare bounds_one as select count(*), min(id), max(id) from t where a >= $1 and a > $2 and a <= $3;
----
(PREPARE)

execute bounds_one (10, 95, 200);
----
count | min | max
72 | 96 | 1999
(SELECT 1)

execute bounds_one (95, 10, 97);
----
count | min | max
54 | 95 | 1997
(SELECT 1)

execute bounds_one (95, 95, 95);
----
count | min | max
0 | ∅ | ∅
(SELECT 1)

execute bounds_one (null, 10, 97);
----
count | min | max
0 | ∅ | ∅
(SELECT 1)

prepare bounds_two as select id from t where a >= $1 and (a, b) > ($2, $3) order by a, b, id limit 3;
----
(PREPARE)

execute bounds_two (5, 97, 3);
----
id
697
397
1097
(SELECT 3)

execute bounds_two (97, 5, 3);
----
id
497
1197
1897
(SELECT 3)

deallocate bounds_one;
----
(DEALLOCATE)

deallocate bounds_two;
----
(DEALLOCATE)

