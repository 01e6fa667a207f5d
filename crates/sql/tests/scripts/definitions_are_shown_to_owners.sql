-- postgres: same
create role da;
----
(CREATE ROLE)

create role db;
----
(CREATE ROLE)

create schema ds;
----
(CREATE SCHEMA)

grant usage on schema ds to da;
----
(GRANT)

create table ds.p (k int primary key);
----
(CREATE TABLE)

create table ds.t (a int primary key, b int check (b <> 42), p int references ds.p);
----
(CREATE TABLE)

create view ds.v as select a from ds.t where b <> 43;
----
(CREATE VIEW)

grant select on ds.t, ds.v to da;
----
(GRANT)

alter table ds.p owner to db;
----
(ALTER TABLE)

set role da;
----
(SET)

select table_name, view_definition from information_schema.views where table_schema = 'ds';
----
table_name | view_definition
v | ∅
(SELECT 1)

select constraint_name from information_schema.check_constraints where constraint_schema = 'ds';
----
constraint_name
(SELECT 0)

select constraint_name from information_schema.table_constraints where table_schema = 'ds';
----
constraint_name
(SELECT 0)

select constraint_name from information_schema.referential_constraints where constraint_schema = 'ds';
----
constraint_name
(SELECT 0)

select constraint_name, column_name from information_schema.key_column_usage where table_schema = 'ds' order by 1;
----
constraint_name | column_name
t_p_fkey | p
t_pkey | a
(SELECT 2)

select constraint_name from information_schema.constraint_column_usage where table_schema = 'ds';
----
constraint_name
(SELECT 0)

reset role;
----
(RESET)

revoke usage on schema ds from da;
----
(REVOKE)

grant insert on ds.t to da;
----
(GRANT)

set role da;
----
(SET)

select table_schema, table_name from information_schema.tables where table_schema = 'ds' order by 2;
----
table_schema | table_name
ds | t
ds | v
(SELECT 2)

select constraint_name from information_schema.table_constraints where table_schema = 'ds' and constraint_type <> 'CHECK' order by 1;
----
constraint_name
t_p_fkey
t_pkey
(SELECT 2)

select constraint_name from information_schema.referential_constraints where constraint_schema = 'ds';
----
constraint_name
t_p_fkey
(SELECT 1)

set role db;
----
(SET)

select table_name, column_name, constraint_name from information_schema.constraint_column_usage where table_schema = 'ds' order by 3;
----
table_name | column_name | constraint_name
p | k | p_pkey
p | k | t_p_fkey
(SELECT 2)

reset role;
----
(RESET)

select table_name, view_definition is null from information_schema.views where table_schema = 'ds';
----
table_name | ?column?
v | f
(SELECT 1)

select constraint_name from information_schema.check_constraints where constraint_schema = 'ds' and check_clause like '%42%';
----
constraint_name
t_b_check
(SELECT 1)

