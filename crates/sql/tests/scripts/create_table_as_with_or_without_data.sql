-- postgres: same
create table a (id int primary key, t text);
----
(CREATE TABLE)

insert into a select i, 't' || i from generate_series(1, 5) i;
----
(INSERT 0 5)

create table b as select id, t from a with data;
----
(SELECT 5)

create table c as select id, t from a with no data;
----
(CREATE TABLE AS)

select count(*) from b;
----
count
5
(SELECT 1)

select count(*) from c;
----
count
0
(SELECT 1)

insert into c values (1, 'x');
----
(INSERT 0 1)

create table if not exists c as select 1 with no data;
----
(CREATE TABLE AS)

select * from c;
----
id | t
1 | x
(SELECT 1)

