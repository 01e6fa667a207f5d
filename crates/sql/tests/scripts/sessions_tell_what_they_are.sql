select version();
----
version
PostgreSQL 15.0 (Meridian 0.1.0)
(SELECT 1)

show server_version;
----
server_version
15.0 (Meridian 0.1.0)
(SHOW)

select current_setting('server_version') as setting, 'PostgreSQL ' || current_setting('server_version') = version() as agrees;
----
setting | agrees
15.0 (Meridian 0.1.0) | t
(SELECT 1)

set search_path = public;
----
(SET)

select current_catalog, current_schema, current_schema() as called;
----
current_catalog | current_schema | called
postgres | public | public
(SELECT 1)

select current_schema as s, current_catalog as c, current_user as u where current_schema = 'public';
----
s | c | u
public | postgres | root
(SELECT 1)

create table current (current_schema_name text default current_schema, id int primary key);
----
(CREATE TABLE)

insert into current (id) values (1) returning current_schema_name;
----
current_schema_name
public
(INSERT 0 1)

select current_schema from current;
----
current_schema
public
(SELECT 1)

select "current_schema" from current;
----
ERROR 42703: column "current_schema" does not exist
POSITION: 8

select current.current_schema from current;
----
ERROR 42703: column current.current_schema does not exist
POSITION: 8

