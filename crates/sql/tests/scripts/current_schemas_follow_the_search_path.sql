-- postgres: same
select current_schema, current_schemas(true), current_schemas(false);
----
current_schema | current_schemas | current_schemas
public | {pg_catalog,public} | {public}
(SELECT 1)

set search_path = nope, public;
----
(SET)

select current_schema, current_schemas(true), current_schemas(false);
----
current_schema | current_schemas | current_schemas
public | {pg_catalog,public} | {public}
(SELECT 1)

set search_path = nope;
----
(SET)

select current_schema, current_schemas(true), current_schemas(false);
----
current_schema | current_schemas | current_schemas
∅ | {pg_catalog} | {}
(SELECT 1)

create schema nope;
----
(CREATE SCHEMA)

select current_schema(), current_schemas(false);
----
current_schema | current_schemas
nope | {nope}
(SELECT 1)

drop schema nope;
----
(DROP SCHEMA)

reset search_path;
----
(RESET)

