-- postgres: same
create schema local;
----
(CREATE SCHEMA)

create table local.t (id int primary key, v text);
----
(CREATE TABLE)

insert into local.t values (1, 'a');
----
(INSERT 0 1)

insert into local.t (id, v) select 2, 'b' returning id;
----
id
2
(INSERT 0 1)

update local.t set v = 'c' where id = 2;
----
(UPDATE 1)

create table local (id int);
----
(CREATE TABLE)

insert into local values (7);
----
(INSERT 0 1)

select count(*) from local.t, local;
----
count
2
(SELECT 1)

