-- postgres: same
grant all on schema public to public;
----

create role pseq_a login;
----

create role pseq_b login;
----

create schema pseq_s;
----

create table pseq_t (a serial, b int);
----

set session authorization pseq_b;
----

create sequence pseq_q owned by pseq_t.b;
----

create sequence pseq_q;
----

alter sequence pseq_q owned by pseq_t.b;
----

reset session authorization;
----

alter sequence pseq_q owned by pseq_t.b;
----

alter sequence pseq_q owner to current_user;
----

alter sequence pseq_q owned by pseq_t.b;
----

alter sequence pseq_q owner to pseq_a;
----

alter sequence pseq_q set schema pseq_s;
----

alter table pseq_t_a_seq owner to pseq_a;
----

create sequence pseq_s.q2 owned by public.pseq_t.b;
----

alter table pseq_t owner to pseq_a;
----

select relname, relowner::regrole from pg_class where relname in ('pseq_t', 'pseq_q', 'pseq_t_a_seq') order by 1;
----

alter sequence pseq_q owned by none;
----

alter sequence pseq_q owner to pseq_b;
----

select current_role, current_user;
----

set role to 'pseq_a';
----

show role;
----

select current_role;
----

set role to 'none';
----

set local role pseq_a;
----

select set_config('role', 'pseq_b', false), current_setting('role');
----

select current_user;
----

reset role;
----

alter role all nologin;
----

set session authorization pseq_a;
----

create view pseq_v as select 1 as x;
----

set session authorization pseq_b;
----

insert into pseq_v values (1);
----

update pseq_v set x = 2;
----

delete from pseq_v;
----

reset session authorization;
----

drop view pseq_v;
----

drop table pseq_t;
----

drop schema pseq_s;
----

drop sequence pseq_q;
----

drop role pseq_a;
----

drop role pseq_b;
----
