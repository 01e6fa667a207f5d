-- postgres: same
create table oa (id int primary key, k int);
----
(CREATE TABLE)

create table ob (id int primary key, k int);
----
(CREATE TABLE)

insert into oa select i, i % 10 from generate_series(1, 100) i;
----
(INSERT 0 100)

insert into oa values (200, null);
----
(INSERT 0 1)

insert into ob select i, i % 7 from generate_series(1, 100) i;
----
(INSERT 0 100)

insert into ob values (200, 1), (201, null);
----
(INSERT 0 2)

select count(*) as n from oa, ob where (oa.id = ob.id and oa.k < 5) or (oa.id = ob.id and ob.k > 3);
----
n
72
(SELECT 1)

select count(*) as n from oa, ob where (oa.id = ob.id and oa.k < 5) or oa.id = ob.id;
----
n
101
(SELECT 1)

select count(*) as n from oa, ob where not ((oa.id = ob.id and oa.k < 5) or (oa.id = ob.id and ob.k > 3));
----
n
10229
(SELECT 1)

select count(*) as n from oa left join ob on (oa.id = ob.id and oa.k < 5) or (oa.id = ob.id and ob.k > 3);
----
n
101
(SELECT 1)

select count(*) as n from oa where (k = 3 and id > 50) or (k = 3 and id < 10) or (id < 20 and k = 3);
----
n
7
(SELECT 1)

select id, (k = 1 and id > 3) or (k = 1 and id < 3) as x from oa where id in (1, 2, 11, 200) order by 1;
----
id | x
1 | t
2 | f
11 | t
200 | ∅
(SELECT 4)

select count(*) as n from oa where true and k = 3 or false;
----
n
10
(SELECT 1)

select count(*) as n from oa where k = 3 and null;
----
n
0
(SELECT 1)

select id from oa where id < 4 and (false or id > 1 or null) order by 1;
----
id
2
3
(SELECT 2)

select (null and false) is null as a, (null or true) is null as b, (null or false) is null as c, (null and true) is null as d;
----
a | b | c | d
f | f | t | t
(SELECT 1)

prepare oa_f as select count(*) as n from oa where ($1::int is null or k = $1) and ($2::int is null or id < $2);
----
(PREPARE)

execute oa_f(3, 50);
----
n
5
(SELECT 1)

execute oa_f(null, 50);
----
n
49
(SELECT 1)

execute oa_f(3, null);
----
n
10
(SELECT 1)

execute oa_f(null, null);
----
n
101
(SELECT 1)

select count(*) as n from oa, ob where oa.id = ob.id and ((oa.k = 3 and ob.k = 2) or (oa.k = 4 and ob.k = 1) or (oa.k = 5 and ob.id < 50 and ob.k = 6));
----
n
3
(SELECT 1)

select count(*) as n from oa, ob where (oa.k = 3 and ob.k = 2) or oa.k = 4;
----
n
1170
(SELECT 1)

select count(*) as n from oa join ob on oa.id = ob.id and ((oa.k is null and ob.k is not null) or (oa.k = 1 and ob.k = 1));
----
n
3
(SELECT 1)

