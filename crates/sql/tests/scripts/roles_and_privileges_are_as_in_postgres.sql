-- postgres: same
grant usage on schema public to public;
----
(GRANT)

create role pa login password 'secret';
----
(CREATE ROLE)

create user pb;
----
(CREATE ROLE)

create role pgroup nologin;
----
(CREATE ROLE)

create role pgroup;
----
ERROR 42710: role "pgroup" already exists

create role pg_mine;
----
ERROR 42939: role name "pg_mine" is reserved
DETAIL: Role names starting with "pg_" are reserved.

create role pa2 superuser nosuperuser;
----
ERROR 42601: conflicting or redundant options

grant pgroup to pb;
----
(GRANT ROLE)

grant pgroup to pb;
----
(GRANT ROLE)

grant pb to pgroup;
----
ERROR 0LP01: role "pb" is a member of role "pgroup"

grant pgroup to nobody_there;
----
ERROR 42704: role "nobody_there" does not exist

select rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolconnlimit from pg_roles where rolname in ('pa', 'pb', 'pgroup') order by 1;
----
rolname | rolsuper | rolinherit | rolcreaterole | rolcreatedb | rolcanlogin | rolconnlimit
pa | f | t | f | f | t | -1
pb | f | t | f | f | t | -1
pgroup | f | t | f | f | f | -1
(SELECT 3)

select r.rolname, m.rolname, admin_option from pg_auth_members a join pg_roles r on r.oid = a.roleid join pg_roles m on m.oid = a.member where r.rolname = 'pgroup';
----
rolname | rolname | admin_option
pgroup | pb | f
(SELECT 1)

select left(rolpassword, 14) from pg_authid where rolname in ('pa', 'pb') order by rolname;
----
left
SCRAM-SHA-256$
∅
(SELECT 2)

create table t (id int primary key, v int);
----
(CREATE TABLE)

create sequence s;
----
(CREATE SEQUENCE)

insert into t values (1, 10), (2, 20);
----
(INSERT 0 2)

set role pa;
----
(SET)

select current_user, session_user = current_user as is_session_user;
----
current_user | is_session_user
pa | f
(SELECT 1)

select * from t;
----
ERROR 42501: permission denied for table t

insert into t values (3, 30);
----
ERROR 42501: permission denied for table t

update t set v = 1;
----
ERROR 42501: permission denied for table t

delete from t;
----
ERROR 42501: permission denied for table t

truncate t;
----
ERROR 42501: permission denied for table t

drop table t;
----
ERROR 42501: must be owner of table t

alter table t add column w int;
----
ERROR 42501: must be owner of table t

create index on t (v);
----
ERROR 42501: must be owner of table t

comment on table t is 'x';
----
ERROR 42501: must be owner of table t

create table u (id int);
----
ERROR 42501: permission denied for schema public

create schema mine;
----
ERROR 42501: permission denied for database postgres

create role pc;
----
ERROR 42501: permission denied to create role

create database pdb;
----
ERROR 42501: permission denied to create database

select nextval('s');
----
ERROR 42501: permission denied for sequence s

select rolname from pg_authid;
----
ERROR 42501: permission denied for table pg_authid

explain select * from t;
----
ERROR 42501: permission denied for table t

reset role;
----
(RESET)

grant select on t to pgroup;
----
(GRANT)

grant usage on t to pa;
----
ERROR 0LP01: invalid privilege type USAGE for table

grant usage on schema public to pgroup;
----
(GRANT)

grant select on nothing_there to pa;
----
ERROR 42P01: relation "nothing_there" does not exist

grant frobnicate on t to pa;
----
ERROR 42601: unrecognized privilege type "frobnicate"

set role pb;
----
(SET)

select * from t order by id;
----
id | v
1 | 10
2 | 20
(SELECT 2)

update t set v = 1 where id = 1;
----
ERROR 42501: permission denied for table t

update t set v = 1;
----
ERROR 42501: permission denied for table t

select * from t for update;
----
ERROR 42501: permission denied for table t

grant select on t to pa;
----
(GRANT)

reset role;
----
(RESET)

grant update on t to pa;
----
(GRANT)

set role pa;
----
(SET)

update t set v = 11;
----
(UPDATE 2)

update t set v = 11 where id = 1;
----
ERROR 42501: permission denied for table t

update t set v = v + 1;
----
ERROR 42501: permission denied for table t

reset role;
----
(RESET)

grant select on t to pa with grant option;
----
(GRANT)

set role pa;
----
(SET)

select v from t order by id;
----
v
11
11
(SELECT 2)

grant select on t to pb;
----
(GRANT)

reset role;
----
(RESET)

revoke select on t from pa;
----
ERROR 2BP01: dependent privileges exist
HINT: Use CASCADE to revoke them too.

select grantee, grantor = session_user as is_mine, privilege_type, is_grantable from information_schema.role_table_grants where table_name = 't' and grantee in ('pa', 'pb', 'pgroup') order by 1, 2, 3;
----
grantee | is_mine | privilege_type | is_grantable
pa | t | SELECT | YES
pa | t | UPDATE | NO
pb | f | SELECT | NO
pgroup | t | SELECT | NO
(SELECT 4)

revoke select on t from pa cascade;
----
(REVOKE)

select grantee, grantor = session_user as is_mine, privilege_type, is_grantable from information_schema.role_table_grants where table_name = 't' and grantee in ('pa', 'pb', 'pgroup') order by 1, 2, 3;
----
grantee | is_mine | privilege_type | is_grantable
pa | t | UPDATE | NO
pgroup | t | SELECT | NO
(SELECT 2)

select has_table_privilege('pa', 't', 'select'), has_table_privilege('pb', 't', 'select'), has_table_privilege('pa', 't', 'update'), has_table_privilege('t', 'delete');
----
has_table_privilege | has_table_privilege | has_table_privilege | has_table_privilege
f | t | t | t
(SELECT 1)

select has_table_privilege('pa', 't', 'nonsense');
----
ERROR 22023: unrecognized privilege type: "nonsense"

select has_table_privilege('nobody_there', 't', 'select');
----
ERROR 42704: role "nobody_there" does not exist

select has_schema_privilege('pa', 'public', 'usage'), has_schema_privilege('pa', 'public', 'create');
----
has_schema_privilege | has_schema_privilege
t | f
(SELECT 1)

select has_sequence_privilege('pa', 's', 'usage'), pg_has_role('pb', 'pgroup', 'usage'), pg_has_role('pa', 'pgroup', 'member');
----
has_sequence_privilege | pg_has_role | pg_has_role
f | t | f
(SELECT 1)

create view w as select v from t where id = 1;
----
(CREATE VIEW)

grant select on w to pa;
----
(GRANT)

set role pa;
----
(SET)

select * from w;
----
v
11
(SELECT 1)

select * from t;
----
ERROR 42501: permission denied for table t

reset role;
----
(RESET)

alter view w owner to pb;
----
(ALTER VIEW)

grant create on schema public to pb;
----
(GRANT)

set role pa;
----
(SET)

select * from w;
----
v
11
(SELECT 1)

reset role;
----
(RESET)

revoke select on t from pgroup;
----
(REVOKE)

set role pa;
----
(SET)

select * from w;
----
ERROR 42501: permission denied for table t

reset role;
----
(RESET)

grant usage on sequence s to pa;
----
(GRANT)

set role pa;
----
(SET)

select nextval('s');
----
nextval
1
(SELECT 1)

select setval('s', 10);
----
ERROR 42501: permission denied for sequence s

reset role;
----
(RESET)

grant create, usage on schema public to pa;
----
(GRANT)

set role pa;
----
(SET)

create sequence owned_seq;
----
(CREATE SEQUENCE)

create table owned (id int primary key default nextval('owned_seq'), v int);
----
(CREATE TABLE)

insert into owned (v) values (1) returning id;
----
id
1
(INSERT 0 1)

create table child (id int primary key, parent int references t);
----
ERROR 42501: permission denied for table t

alter table owned owner to pb;
----
ERROR 42501: must be member of role "pb"

reset role;
----
(RESET)

grant insert on owned to pb;
----
(GRANT)

set role pb;
----
(SET)

insert into owned (v) values (1);
----
ERROR 42501: permission denied for sequence owned_seq

reset role;
----
(RESET)

grant references on t to pa;
----
(GRANT)

set role pa;
----
(SET)

create table child (id int primary key, parent int references t);
----
(CREATE TABLE)

insert into child values (1, 1);
----
(INSERT 0 1)

insert into child values (2, 99);
----
ERROR 23503: insert or update on table "child" violates foreign key constraint "child_parent_fkey"
DETAIL: Key (parent)=(99) is not present in table "t".

set role pb;
----
(SET)

set role nobody_there;
----
ERROR 22023: role "nobody_there" does not exist

set role none;
----
(SET)

drop role pa;
----
ERROR 2BP01: role "pa" cannot be dropped because some objects depend on it
DETAIL: privileges for schema public
privileges for table t
privileges for sequence s
privileges for view w
owner of sequence owned_seq
owner of table owned
owner of table child

drop role nobody_there;
----
ERROR 42704: role "nobody_there" does not exist

drop role if exists nobody_there;
----
(DROP ROLE)

drop role current_user;
----
ERROR 22023: cannot use special role specifier in DROP ROLE

alter role pa rename to px;
----
(ALTER ROLE)

alter role px createdb;
----
(ALTER ROLE)

select rolcreatedb from pg_roles where rolname = 'px';
----
rolcreatedb
t
(SELECT 1)

reassign owned by px to pb;
----
(REASSIGN OWNED)

drop owned by px;
----
(DROP OWNED)

drop role px;
----
(DROP ROLE)

drop owned by pb;
----
(DROP OWNED)

drop role pb;
----
(DROP ROLE)

drop owned by pgroup;
----
(DROP OWNED)

drop role pgroup;
----
(DROP ROLE)

drop table t;
----
(DROP TABLE)

