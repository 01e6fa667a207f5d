-- postgres: same
create table ca (id int primary key, c char(8), v varchar(8), t text);
----
(CREATE TABLE)

create table cb (id int primary key, c char(5), d char(8));
----
(CREATE TABLE)

create index on ca (c);
----
(CREATE INDEX)

insert into ca select i, 'k' || i % 20, 'k' || i % 20, 'k' || i % 20 from generate_series(1, 60) i;
----
(INSERT 0 60)

insert into ca values (61, '', '', ''), (62, null, null, null), (63, 'a b', 'a b ', 'a b  ');
----
(INSERT 0 3)

insert into cb select i, 'k' || i, 'k' || i from generate_series(1, 25) i;
----
(INSERT 0 25)

insert into cb values (26, '', ' '), (27, null, null), (28, 'a b', 'a b');
----
(INSERT 0 3)

select count(*) as n from ca join cb on ca.c = cb.c;
----
n
59
(SELECT 1)

select count(*) as n from ca join cb using (c);
----
n
59
(SELECT 1)

select count(*) as n from ca join cb on cb.c = ca.v;
----
n
59
(SELECT 1)

select count(*) as n from ca join cb on cb.c = ca.t;
----
n
58
(SELECT 1)

select count(*) as n from ca left join cb on ca.c = cb.c where cb.id is null;
----
n
4
(SELECT 1)

select count(*) as n from ca where exists (select 1 from cb where cb.c = ca.c);
----
n
59
(SELECT 1)

select count(*) as n from ca where not exists (select 1 from cb where cb.c = ca.c);
----
n
4
(SELECT 1)

select count(*) as n from ca where c in (select c from cb);
----
n
59
(SELECT 1)

select count(*) as n from ca where c in (select c from cb where c is not null);
----
n
59
(SELECT 1)

select count(*) as n from ca where c not in (select c from cb where c is not null);
----
n
3
(SELECT 1)

select count(*) as n from ca where c in ('k1', 'k2 ', 'a b   ');
----
n
7
(SELECT 1)

select count(*) as n from ca where c = any ('{k1,"k2  "}'::char(8)[]);
----
n
6
(SELECT 1)

select count(*) as n from ca where c = any ('{k1,"k2  "}'::bpchar[]);
----
n
6
(SELECT 1)

select count(*) as n from ca where c = any ('{k1,"k2  "}'::text[]);
----
n
3
(SELECT 1)

select count(*) as n from ca where c = 'k3  ';
----
n
3
(SELECT 1)

select count(*) as n from ca where c = 'k3  '::text;
----
n
0
(SELECT 1)

select count(*) as n from ca where c = 'k3'::text;
----
n
3
(SELECT 1)

select count(*) as n from ca where c = 'k3  '::char(10);
----
n
3
(SELECT 1)

select count(*) as n from ca where v = 'k3  '::char(10);
----
n
3
(SELECT 1)

select count(*) as n from ca where c = '' or c = 'k3';
----
n
4
(SELECT 1)

select count(*) as n from ca where c > 'k3' and c <= 'k5 ';
----
n
6
(SELECT 1)

select count(*) as n from ca where c <> 'k3  ';
----
n
59
(SELECT 1)

select count(*) as n from ca where c is null;
----
n
1
(SELECT 1)

select 'a'::char(3) = 'a '::char(2) as a, 'a'::char(3) < 'a b'::char(3) as b, 'a '::char(2) = 'a '::text as c, 'a '::char(2) is distinct from 'a'::char(5) as d;
----
a | b | c | d
t | t | f | f
(SELECT 1)

prepare ca_p as select count(*) as n from ca where c = $1;
----
(PREPARE)

execute ca_p('k3  ');
----
n
3
(SELECT 1)

prepare ca_a as select count(*) as n from ca where c = any ($1);
----
(PREPARE)

execute ca_a('{k1,"k2  "}');
----
n
6
(SELECT 1)

update ca set t = 'x' where c = 'k4';
----
(UPDATE 3)

delete from ca where c in ('k5', 'k6  ');
----
(DELETE 6)

select count(*) as n from ca;
----
n
57
(SELECT 1)

select c, count(*) as n from ca where c < 'k11' group by c order by c;
----
c | n
         | 1
a b      | 1
k0       | 3
k1       | 3
k10      | 3
(SELECT 5)

select max(c) as a, min(c) as b, count(distinct c) as c from ca;
----
a | b | c
k9       |          | 20
(SELECT 1)

select ca.c from ca join cb on (ca.c, ca.id) = (cb.c, cb.id) order by ca.id limit 3;
----
c
k1      
k2      
k3      
(SELECT 3)

create table cc (c char(3));
----
(CREATE TABLE)

create table cd (c char(5));
----
(CREATE TABLE)

insert into cc values ('a'), ('b'), ('b');
----
(INSERT 0 3)

insert into cd values ('a'), ('c'), ('b');
----
(INSERT 0 3)

select count(*) as n from (select c from cc intersect all select c from cd) x;
----
n
2
(SELECT 1)

select count(*) as n from (select c from cc except all select c from cd) x;
----
n
1
(SELECT 1)

select count(*) as n from (select c from cc union all select c from cd) x;
----
n
6
(SELECT 1)

