create schema live;
----

create table live.customers (id int primary key, name text);
----

create table live.alone (id int primary key);
----

create view public.names as select id, name from live.customers;
----

alter schema live rename to old;
----

drop view public.names;
----

alter schema live rename to old;
----

select * from old.customers;
----

