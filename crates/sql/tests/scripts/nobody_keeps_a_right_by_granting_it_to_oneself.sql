-- postgres: same
create role ga;
----
(CREATE ROLE)

create role gb;
----
(CREATE ROLE)

create schema gs;
----
(CREATE SCHEMA)

grant usage on schema gs to ga, gb;
----
(GRANT)

create table gs.t (a int);
----
(CREATE TABLE)

grant select on gs.t to ga with grant option;
----
(GRANT)

set role ga;
----
(SET)

grant select on gs.t to ga with grant option;
----
ERROR 0LP01: grant options cannot be granted back to your own grantor

grant select on gs.t to gb;
----
(GRANT)

reset role;
----
(RESET)

revoke select on gs.t from ga cascade;
----
(REVOKE)

set role ga;
----
(SET)

select * from gs.t;
----
ERROR 42501: permission denied for table t

set role gb;
----
(SET)

select * from gs.t;
----
ERROR 42501: permission denied for table t

reset role;
----
(RESET)

drop schema gs cascade;
----
(DROP SCHEMA)

drop role ga, gb;
----
(DROP ROLE)

