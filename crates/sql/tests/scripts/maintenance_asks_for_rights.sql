-- postgres: same
create role ma;
----
(CREATE ROLE)

create role mb;
----
(CREATE ROLE)

create schema ms;
----
(CREATE SCHEMA)

grant usage on schema ms to ma, mb;
----
(GRANT)

create table ms.t (a int primary key);
----
(CREATE TABLE)

alter table ms.t owner to ma;
----
(ALTER TABLE)

set role mb;
----
(SET)

checkpoint;
----
ERROR 42501: must be superuser or have privileges of pg_checkpoint to do CHECKPOINT

reindex table ms.t;
----
ERROR 42501: must be owner of table t

reindex index ms.t_pkey;
----
ERROR 42501: must be owner of index t_pkey

cluster ms.t using t_pkey;
----
ERROR 42501: must be owner of table t

reindex schema ms;
----
ERROR 42501: must be owner of schema ms

reindex database postgres_of_another;
----
ERROR 0A000: can only reindex the currently open database

reindex table ms.nothing;
----
ERROR 42P01: relation "ms.nothing" does not exist

reset role;
----
(RESET)

begin;
----
(BEGIN)

reindex schema ms;
----
ERROR 25001: REINDEX SCHEMA cannot run inside a transaction block

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter system set work_mem = '1MB';
----
ERROR 25001: ALTER SYSTEM cannot run inside a transaction block

rollback;
----
(ROLLBACK)

drop schema ms cascade;
----
(DROP SCHEMA)

drop role ma, mb;
----
(DROP ROLE)

