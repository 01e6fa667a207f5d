create schema live;
----
(CREATE SCHEMA)

create table live.customers (id int primary key, name text);
----
(CREATE TABLE)

create table live.alone (id int primary key);
----
(CREATE TABLE)

create view public.names as select id, name from live.customers;
----
(CREATE VIEW)

alter schema live rename to old;
----
ERROR 0A000: renaming a schema whose relations views use is not supported yet
DETAIL: View "names" uses "live.customers".

drop view public.names;
----
(DROP VIEW)

alter schema live rename to old;
----
(ALTER SCHEMA)

select * from old.customers;
----
id | name
(SELECT 0)

