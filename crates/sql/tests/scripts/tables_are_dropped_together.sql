-- postgres: same
create table parents (id int primary key);
----
(CREATE TABLE)

create table children (id int primary key, parent int references parents, other int references children);
----
(CREATE TABLE)

create table grandchildren (id int primary key, child int references children, parent int references parents);
----
(CREATE TABLE)

create table strangers (id int primary key, child int references children);
----
(CREATE TABLE)

drop table parents, children, grandchildren, strangers;
----
(DROP TABLE)

select count(*) from pg_tables where tablename in ('parents', 'children', 'grandchildren', 'strangers');
----
count
0
(SELECT 1)

create table a (id int primary key);
----
(CREATE TABLE)

create table b (id int primary key, a int references a);
----
(CREATE TABLE)

alter table a add column b int references b;
----
(ALTER TABLE)

drop table a;
----
ERROR 2BP01: cannot drop table a because other objects depend on it
DETAIL: constraint b_a_fkey on table b depends on table a
HINT: Use DROP ... CASCADE to drop the dependent objects too.

drop table a, b;
----
(DROP TABLE)

drop table if exists a, b, no_such;
----
(DROP TABLE)

create table a (id int primary key);
----
(CREATE TABLE)

drop table a, no_such;
----
ERROR 42P01: table "no_such" does not exist

select count(*) from a;
----
count
0
(SELECT 1)

