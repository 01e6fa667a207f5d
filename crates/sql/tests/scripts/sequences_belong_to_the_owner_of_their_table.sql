-- postgres: same
grant all on schema public to public;
----
(GRANT)

create role pseq_a login;
----
(CREATE ROLE)

create role pseq_b login;
----
(CREATE ROLE)

create schema pseq_s;
----
(CREATE SCHEMA)

create table pseq_t (a serial, b int);
----
(CREATE TABLE)

set session authorization pseq_b;
----
(SET)

create sequence pseq_q owned by pseq_t.b;
----
ERROR 55000: sequence must have same owner as table it is linked to

create sequence pseq_q;
----
(CREATE SEQUENCE)

alter sequence pseq_q owned by pseq_t.b;
----
ERROR 55000: sequence must have same owner as table it is linked to

reset session authorization;
----
(RESET)

alter sequence pseq_q owned by pseq_t.b;
----
ERROR 55000: sequence must have same owner as table it is linked to

alter sequence pseq_q owner to current_user;
----
(ALTER SEQUENCE)

alter sequence pseq_q owned by pseq_t.b;
----
(ALTER SEQUENCE)

alter sequence pseq_q owner to pseq_a;
----
ERROR 0A000: cannot change owner of sequence "pseq_q"
DETAIL: Sequence "pseq_q" is linked to table "pseq_t".

alter sequence pseq_q set schema pseq_s;
----
ERROR 0A000: cannot move an owned sequence into another schema
DETAIL: Sequence "pseq_q" is linked to table "pseq_t".

alter table pseq_t_a_seq owner to pseq_a;
----
ERROR 0A000: cannot change owner of sequence "pseq_t_a_seq"
DETAIL: Sequence "pseq_t_a_seq" is linked to table "pseq_t".

create sequence pseq_s.q2 owned by public.pseq_t.b;
----
ERROR 55000: sequence must be in same schema as table it is linked to

alter table pseq_t owner to pseq_a;
----
(ALTER TABLE)

select relname, pg_get_userbyid(relowner) as owner from pg_class where relname in ('pseq_t', 'pseq_q', 'pseq_t_a_seq') order by 1;
----
relname | owner
pseq_q | pseq_a
pseq_t | pseq_a
pseq_t_a_seq | pseq_a
(SELECT 3)

alter sequence pseq_q owned by none;
----
(ALTER SEQUENCE)

alter sequence pseq_q owner to pseq_b;
----
(ALTER SEQUENCE)

select current_role = current_user as same;
----
same
t
(SELECT 1)

set role to 'pseq_a';
----
(SET)

show role;
----
role
pseq_a
(SHOW)

select current_role;
----
current_role
pseq_a
(SELECT 1)

set role to 'none';
----
(SET)

set local role pseq_a;
----
(SET)

select set_config('role', 'pseq_b', false), current_setting('role');
----
set_config | current_setting
pseq_b | pseq_b
(SELECT 1)

select current_user;
----
current_user
pseq_b
(SELECT 1)

reset role;
----
(RESET)

alter role all nologin;
----
ERROR 42601: syntax error at or near "nologin"
POSITION: 16

set session authorization pseq_a;
----
(SET)

create view pseq_v as select b as x from pseq_t;
----
(CREATE VIEW)

set session authorization pseq_b;
----
(SET)

insert into pseq_v values (1);
----
ERROR 42501: permission denied for view pseq_v

update pseq_v set x = 2;
----
ERROR 42501: permission denied for view pseq_v

delete from pseq_v;
----
ERROR 42501: permission denied for view pseq_v

reset session authorization;
----
(RESET)

drop view pseq_v;
----
(DROP VIEW)

drop table pseq_t;
----
(DROP TABLE)

drop schema pseq_s;
----
(DROP SCHEMA)

drop sequence pseq_q;
----
(DROP SEQUENCE)

drop role pseq_a;
----
(DROP ROLE)

drop role pseq_b;
----
(DROP ROLE)

