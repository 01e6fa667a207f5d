-- postgres: same
create table ok (id int primary key, k int, t text);
----
(CREATE TABLE)

create index ok_k on ok (k);
----
(CREATE INDEX)

insert into ok select i, i % 50, 't' || i from generate_series(1, 3000) i;
----
(INSERT 0 3000)

select id, t from ok order by id limit 2 offset 2900;
----
id | t
2901 | t2901
2902 | t2902
(SELECT 2)

select id, t from ok order by id desc limit 2 offset 2500;
----
id | t
500 | t500
499 | t499
(SELECT 2)

select id from ok order by id limit 5 offset 2998;
----
id
2999
3000
(SELECT 2)

select id from ok order by id limit 5 offset 3000;
----
id
(SELECT 0)

select id from ok order by id offset 2997;
----
id
2998
2999
3000
(SELECT 3)

select id from ok where k > 40 order by id limit 2 offset 500;
----
id
2796
2797
(SELECT 2)

select id from ok where t like '%9' and k < 20 order by id limit 2 offset 100;
----
id
2509
2519
(SELECT 2)

select id from ok where k = (select 7) order by id limit 2 offset 57;
----
id
2857
2907
(SELECT 2)

select id from ok where id > all (select 100) order by id limit 2 offset 57;
----
id
158
159
(SELECT 2)

select k, count(*) as n from (select k from ok order by k limit 1000 offset 1230) s group by k order by k limit 2;
----
k | n
20 | 30
21 | 60
(SELECT 2)

select k, id from ok order by k, id limit 2 offset 1230;
----
k | id
20 | 1520
20 | 1570
(SELECT 2)

select id + 1 as n, upper(t) as u from ok order by id limit 2 offset 1500;
----
n | u
1502 | T1501
1503 | T1502
(SELECT 2)

select count(*) as n from (select 1 from ok limit 100 offset 2950) s;
----
n
50
(SELECT 1)

select id from (select id from ok order by id limit 500 offset 2000) s order by id limit 2 offset 498;
----
id
2499
2500
(SELECT 2)

select id from ok where id in (3, 5, 7, 9) order by id limit 2 offset 1;
----
id
5
7
(SELECT 2)

begin;
----
(BEGIN)

insert into ok values (0, 1, 'new'), (5000, 1, 'new');
----
(INSERT 0 2)

delete from ok where id between 10 and 20;
----
(DELETE 11)

select id from ok order by id limit 3 offset 9;
----
id
9
21
22
(SELECT 3)

select id from ok order by id limit 3 offset 2989;
----
id
3000
5000
(SELECT 2)

rollback;
----
(ROLLBACK)

create sequence ok_s;
----
(CREATE SEQUENCE)

select id, nextval('ok_s') > 0 as drawn from ok order by id limit 1 offset 10;
----
id | drawn
11 | t
(SELECT 1)

prepare ok_page (bigint, bigint) as select id from ok where k < 25 order by id limit $1 offset $2;
----
(PREPARE)

execute ok_page(2, 1000);
----
id
2001
2002
(SELECT 2)

execute ok_page(2, null);
----
id
1
2
(SELECT 2)

execute ok_page(null, 1498);
----
id
2974
3000
(SELECT 2)

execute ok_page(2, -1);
----
ERROR 2201X: OFFSET must not be negative

select id from ok order by id limit 2 offset 2000 for update;
----
id
2001
2002
(SELECT 2)

begin;
----
(BEGIN)

declare ok_c cursor for select id from ok order by id offset 1000;
----
(DECLARE CURSOR)

fetch 2 from ok_c;
----
id
1001
1002
(FETCH 2)

move 500 in ok_c;
----
(MOVE 500)

fetch 1 from ok_c;
----
id
1503
(FETCH 1)

commit;
----
(COMMIT)

