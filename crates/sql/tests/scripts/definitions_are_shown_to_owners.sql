-- postgres: same
create role da;
----

create role db;
----

create schema ds;
----

grant usage on schema ds to da;
----

create table ds.p (k int primary key);
----

create table ds.t (a int primary key, b int check (b <> 42), p int references ds.p);
----

create view ds.v as select a from ds.t where b <> 43;
----

grant select on ds.t, ds.v to da;
----

alter table ds.p owner to db;
----

set role da;
----

select table_name, view_definition from information_schema.views where table_schema = 'ds';
----

select constraint_name from information_schema.check_constraints where constraint_schema = 'ds';
----

select constraint_name from information_schema.table_constraints where table_schema = 'ds';
----

select constraint_name from information_schema.referential_constraints where constraint_schema = 'ds';
----

select constraint_name, column_name from information_schema.key_column_usage where table_schema = 'ds' order by 1;
----

select constraint_name from information_schema.constraint_column_usage where table_schema = 'ds';
----

reset role;
----

revoke usage on schema ds from da;
----

grant insert on ds.t to da;
----

set role da;
----

select table_schema, table_name from information_schema.tables where table_schema = 'ds' order by 2;
----

select constraint_name from information_schema.table_constraints where table_schema = 'ds' and constraint_type <> 'CHECK' order by 1;
----

select constraint_name from information_schema.referential_constraints where constraint_schema = 'ds';
----

set role db;
----

select table_name, column_name, constraint_name from information_schema.constraint_column_usage where table_schema = 'ds' order by 3;
----

reset role;
----

select table_name, view_definition is null from information_schema.views where table_schema = 'ds';
----

select constraint_name from information_schema.check_constraints where constraint_schema = 'ds' and check_clause like '%42%';
----

