-- postgres: same
-- notices: shown
-- What statements say besides their answers has PostgreSQL's codes and words.
create role m_a;
----
(CREATE ROLE)

create role m_b;
----
(CREATE ROLE)

grant m_a to m_b;
----
(GRANT ROLE)

grant m_a to m_b;
----
NOTICE 00000: role "m_b" is already a member of role "m_a"
(GRANT ROLE)

revoke m_a from m_b;
----
(REVOKE ROLE)

revoke m_a from m_b;
----
WARNING 01000: role "m_b" is not a member of role "m_a"
(REVOKE ROLE)

grant m_b to m_a;
----
(GRANT ROLE)

grant m_a to m_b;
----
ERROR 0LP01: role "m_a" is a member of role "m_b"

grant m_a to m_a;
----
ERROR 0LP01: role "m_a" is a member of role "m_a"

revoke m_b from m_a;
----
(REVOKE ROLE)

create role m_c password '';
----
NOTICE 00000: empty string is not a valid password, clearing password
(CREATE ROLE)

drop role m_c, m_b, m_a;
----
(DROP ROLE)

drop role if exists m_a;
----
NOTICE 00000: role "m_a" does not exist, skipping
(DROP ROLE)

drop table if exists nothing;
----
NOTICE 00000: table "nothing" does not exist, skipping
(DROP TABLE)

drop view if exists nothing;
----
NOTICE 00000: view "nothing" does not exist, skipping
(DROP VIEW)

drop sequence if exists nothing;
----
NOTICE 00000: sequence "nothing" does not exist, skipping
(DROP SEQUENCE)

drop index if exists nothing;
----
NOTICE 00000: index "nothing" does not exist, skipping
(DROP INDEX)

drop schema if exists nothing;
----
NOTICE 00000: schema "nothing" does not exist, skipping
(DROP SCHEMA)

drop table if exists nothing.nothing;
----
NOTICE 00000: schema "nothing" does not exist, skipping
(DROP TABLE)

alter table if exists nothing add column a int;
----
NOTICE 00000: relation "nothing" does not exist, skipping
(ALTER TABLE)

alter table if exists nothing rename to something;
----
NOTICE 00000: relation "nothing" does not exist, skipping
(ALTER TABLE)

alter sequence if exists nothing restart;
----
NOTICE 00000: relation "nothing" does not exist, skipping
(ALTER SEQUENCE)

create table t (a int primary key, b int);
----
(CREATE TABLE)

create table if not exists t (a int);
----
NOTICE 42P07: relation "t" already exists, skipping
(CREATE TABLE)

create index i on t (b);
----
(CREATE INDEX)

create index if not exists i on t (b);
----
NOTICE 42P07: relation "i" already exists, skipping
(CREATE INDEX)

create schema s;
----
(CREATE SCHEMA)

create schema if not exists s;
----
NOTICE 42P06: schema "s" already exists, skipping
(CREATE SCHEMA)

create sequence q;
----
(CREATE SEQUENCE)

create sequence if not exists q;
----
NOTICE 42P07: relation "q" already exists, skipping
(CREATE SEQUENCE)

alter table t add column if not exists b int;
----
NOTICE 42701: column "b" of relation "t" already exists, skipping
(ALTER TABLE)

alter table t drop column if exists z;
----
NOTICE 00000: column "z" of relation "t" does not exist, skipping
(ALTER TABLE)

alter table t drop constraint if exists z;
----
NOTICE 00000: constraint "z" of relation "t" does not exist, skipping
(ALTER TABLE)

create view v as select a from t;
----
(CREATE VIEW)

drop table t cascade;
----
NOTICE 00000: drop cascades to view v
(DROP TABLE)

create table a_name_of_more_than_sixty_three_bytes_is_cut_where_it_is_read_and_said (a int);
----
NOTICE 42622: identifier "a_name_of_more_than_sixty_three_bytes_is_cut_where_it_is_read_and_said" will be truncated to "a_name_of_more_than_sixty_three_bytes_is_cut_where_it_is_read_a"
(CREATE TABLE)

create table "A_Name_Of_More_Than_Sixty_Three_Bytes_Is_Cut_Where_It_Is_Read_And_Said" (a int);
----
NOTICE 42622: identifier "A_Name_Of_More_Than_Sixty_Three_Bytes_Is_Cut_Where_It_Is_Read_And_Said" will be truncated to "A_Name_Of_More_Than_Sixty_Three_Bytes_Is_Cut_Where_It_Is_Read_A"
(CREATE TABLE)

select 1 as a_name_of_more_than_sixty_three_bytes_is_cut_where_it_is_read_and_said;
----
NOTICE 42622: identifier "a_name_of_more_than_sixty_three_bytes_is_cut_where_it_is_read_and_said" will be truncated to "a_name_of_more_than_sixty_three_bytes_is_cut_where_it_is_read_a"
a_name_of_more_than_sixty_three_bytes_is_cut_where_it_is_read_a
1
(SELECT 1)

drop table a_name_of_more_than_sixty_three_bytes_is_cut_where_it_is_read_and_said;
----
NOTICE 42622: identifier "a_name_of_more_than_sixty_three_bytes_is_cut_where_it_is_read_and_said" will be truncated to "a_name_of_more_than_sixty_three_bytes_is_cut_where_it_is_read_a"
(DROP TABLE)

drop table "A_Name_Of_More_Than_Sixty_Three_Bytes_Is_Cut_Where_It_Is_Read_And_Said";
----
NOTICE 42622: identifier "A_Name_Of_More_Than_Sixty_Three_Bytes_Is_Cut_Where_It_Is_Read_And_Said" will be truncated to "A_Name_Of_More_Than_Sixty_Three_Bytes_Is_Cut_Where_It_Is_Read_A"
(DROP TABLE)

drop schema s cascade;
----
(DROP SCHEMA)

create schema s;
----
(CREATE SCHEMA)

create table s.t (a int primary key);
----
(CREATE TABLE)

create table s.u (a int references s.t);
----
(CREATE TABLE)

truncate s.t cascade;
----
NOTICE 00000: truncate cascades to table "u"
(TRUNCATE TABLE)

drop table s.t cascade;
----
NOTICE 00000: drop cascades to constraint u_a_fkey on table s.u
(DROP TABLE)

drop schema s cascade;
----
NOTICE 00000: drop cascades to table s.u
(DROP SCHEMA)

drop sequence q;
----
(DROP SEQUENCE)

begin;
----
(BEGIN)

begin;
----
WARNING 25001: there is already a transaction in progress
(BEGIN)

rollback;
----
(ROLLBACK)

commit;
----
WARNING 25P01: there is no transaction in progress
(COMMIT)

rollback;
----
WARNING 25P01: there is no transaction in progress
(ROLLBACK)

set local search_path = s;
----
WARNING 25P01: SET LOCAL can only be used in transaction blocks
(SET)

select "";
----
ERROR 42601: zero-length delimited identifier at or near """"
POSITION: 8

create role "";
----
ERROR 42601: zero-length delimited identifier at or near """"
POSITION: 13

select 'x' as "", 1;
----
ERROR 42601: zero-length delimited identifier at or near """"
POSITION: 15

create table "" (a int);
----
ERROR 42601: zero-length delimited identifier at or near """"
POSITION: 14

set role "";
----
ERROR 42601: zero-length delimited identifier at or near """"
POSITION: 10

reset role;
----
(RESET)

set session authorization m_nobody;
----
ERROR 22023: role "m_nobody" does not exist

set role m_nobody;
----
ERROR 22023: role "m_nobody" does not exist

set session authorization default;
----
(SET)

create role m_a;
----
(CREATE ROLE)

create role m_b;
----
(CREATE ROLE)

grant usage on schema public to public;
----
(GRANT)

create table t (a int);
----
(CREATE TABLE)

revoke select on t from m_a;
----
(REVOKE)

set role m_a;
----
(SET)

grant select on t to m_b;
----
ERROR 42501: permission denied for table t

grant all on t to m_b;
----
ERROR 42501: permission denied for table t

reset role;
----
(RESET)

grant select on t to m_a with grant option;
----
(GRANT)

set role m_a;
----
(SET)

grant all on t to m_b;
----
(GRANT)

grant insert on t to m_b;
----
WARNING 01007: no privileges were granted for "t"
(GRANT)

revoke all on t from m_b;
----
(REVOKE)

analyze t;
----
WARNING 01000: skipping "t" --- only table or database owner can analyze it
(ANALYZE)

vacuum t;
----
WARNING 01000: skipping "t" --- only table or database owner can vacuum it
(VACUUM)

vacuum analyze t;
----
WARNING 01000: skipping "t" --- only table or database owner can vacuum it
(VACUUM)

set session authorization m_b;
----
(SET)

drop database postgres;
----
ERROR 42501: must be owner of database postgres

drop database nothing;
----
ERROR 3D000: database "nothing" does not exist

alter system set work_mem = '1MB';
----
ERROR 42501: permission denied to set parameter "work_mem"

alter system reset all;
----
ERROR 42501: permission denied to perform ALTER SYSTEM RESET ALL

create role m_c replication;
----
ERROR 42501: must be superuser to create replication users

create role m_c bypassrls;
----
ERROR 42501: must be superuser to create bypassrls users

alter role m_a replication;
----
ERROR 42501: must be superuser to alter replication roles or change replication attribute

alter role m_a bypassrls;
----
ERROR 42501: must be superuser to change bypassrls attribute

reset role;
----
(RESET)

reset session authorization;
----
(RESET)

set session authorization m_a;
----
(SET)

set session authorization m_b;
----
(SET)

set role m_b;
----
(SET)

reset session authorization;
----
(RESET)

drop table t;
----
(DROP TABLE)

alter role m_a replication bypassrls;
----
(ALTER ROLE)

select rolreplication, rolbypassrls from pg_roles where rolname = 'm_a';
----
rolreplication | rolbypassrls
t | t
(SELECT 1)

drop role m_a, m_b;
----
(DROP ROLE)

create sequence q;
----
(CREATE SEQUENCE)

select * from q;
----
last_value | log_cnt | is_called
1 | 0 | f
(SELECT 1)

select last_value, is_called from q;
----
last_value | is_called
1 | f
(SELECT 1)

select nextval('q');
----
nextval
1
(SELECT 1)

select last_value, is_called from q;
----
last_value | is_called
1 | t
(SELECT 1)

select setval('q', 7, false);
----
setval
7
(SELECT 1)

select last_value, is_called from q;
----
last_value | is_called
7 | f
(SELECT 1)

select q.last_value from q where is_called;
----
last_value
(SELECT 0)

select last_value from q for update;
----
ERROR 42809: cannot lock rows in sequence "q"

select nextval('q'), nextval('q');
----
nextval | nextval
7 | 8
(SELECT 1)

select q.last_value, q.is_called from q;
----
last_value | is_called
8 | t
(SELECT 1)

alter sequence q restart with 3;
----
(ALTER SEQUENCE)

select last_value, is_called from q;
----
last_value | is_called
3 | f
(SELECT 1)

drop sequence q;
----
(DROP SEQUENCE)

create role m_a;
----
(CREATE ROLE)

begin;
----
(BEGIN)

set session authorization m_a;
----
(SET)

declare c cursor for select rolpassword from pg_authid;
----
ERROR 42501: permission denied for table pg_authid

rollback;
----
(ROLLBACK)

drop role m_a;
----
(DROP ROLE)

create role m_s superuser;
----
(CREATE ROLE)

set session authorization m_s;
----
(SET)

show is_superuser;
----
is_superuser
on
(SHOW)

alter role m_s nosuperuser;
----
(ALTER ROLE)

show is_superuser;
----
is_superuser
on
(SHOW)

select count(*) > 0 as some from pg_authid;
----
ERROR 42501: permission denied for table pg_authid

alter role m_s superuser;
----
ERROR 42501: must be superuser to alter superuser roles or change superuser attribute

set session authorization m_s;
----
(SET)

show is_superuser;
----
is_superuser
off
(SHOW)

reset session authorization;
----
(RESET)

show is_superuser;
----
is_superuser
on
(SHOW)

drop role m_s;
----
(DROP ROLE)

