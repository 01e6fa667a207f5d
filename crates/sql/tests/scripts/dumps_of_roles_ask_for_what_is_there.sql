-- What pg_dumpall --roles-only of PostgreSQL 15 asks, and what it writes.
create role dump_a login connection limit 3 valid until '2040-01-02 03:04:05+00' password 'SCRAM-SHA-256$4096:MTIzNDU2Nzg5MDEyMzQ1Ng==$4Kb0LSmTdqo1E3q/5LtmOJXOAYZ8qKKkYTXPzNqFSNk=:jzGbzmCWEiULx06mJ1j6aIoRQZ0xMrvYx2UHjGEfJ+0=';
----
(CREATE ROLE)

create role dump_b createdb createrole noinherit replication bypassrls;
----
(CREATE ROLE)

create role "Dump C" superuser login;
----
(CREATE ROLE)

grant dump_b to dump_a with admin option;
----
(GRANT ROLE)

comment on role dump_b is 'it''s a group';
----
(COMMENT)

SELECT pg_catalog.set_config('search_path', '', false);
----
set_config
''
(SELECT 1)

SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolconnlimit, rolpassword, rolvaliduntil, rolreplication, rolbypassrls, pg_catalog.shobj_description(oid, 'pg_authid') as rolcomment, rolname = current_user AS is_current_user FROM pg_authid WHERE rolname !~ '^pg_' ORDER BY 1;
----
rolname | rolsuper | rolinherit | rolcreaterole | rolcreatedb | rolcanlogin | rolconnlimit | rolpassword | rolvaliduntil | rolreplication | rolbypassrls | rolcomment | is_current_user
Dump C | t | t | f | f | t | -1 | ∅ | ∅ | f | f | ∅ | f
dump_a | f | t | f | f | t | 3 | SCRAM-SHA-256$4096:MTIzNDU2Nzg5MDEyMzQ1Ng==$4Kb0LSmTdqo1E3q/5LtmOJXOAYZ8qKKkYTXPzNqFSNk=:jzGbzmCWEiULx06mJ1j6aIoRQZ0xMrvYx2UHjGEfJ+0= | 2040-01-02 03:04:05+00 | f | f | ∅ | f
dump_b | f | f | t | t | f | -1 | ∅ | ∅ | t | t | it's a group | f
root | t | t | t | t | t | -1 | ∅ | ∅ | t | t | ∅ | t
(SELECT 4)

SELECT provider, label FROM pg_catalog.pg_shseclabel WHERE classoid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND objoid = '10';
----
provider | label
(SELECT 0)

SELECT unnest(setconfig) FROM pg_db_role_setting WHERE setdatabase = 0 AND setrole = (SELECT oid FROM pg_authid WHERE rolname = 'root');
----
unnest
(SELECT 0)

SELECT ur.rolname AS role, um.rolname AS member, a.admin_option, ug.rolname AS grantor FROM pg_auth_members a LEFT JOIN pg_authid ur on ur.oid = a.roleid LEFT JOIN pg_authid um on um.oid = a.member LEFT JOIN pg_authid ug on ug.oid = a.grantor WHERE NOT (ur.rolname ~ '^pg_' AND um.rolname ~ '^pg_')ORDER BY 1,2,3;
----
role | member | admin_option | grantor
dump_b | dump_a | t | root
(SELECT 1)

SELECT parname, pg_catalog.pg_get_userbyid(10) AS parowner, paracl, pg_catalog.acldefault('p', 10) AS acldefault FROM pg_catalog.pg_parameter_acl ORDER BY 1;
----
parname | parowner | paracl | acldefault
(SELECT 0)

SET default_transaction_read_only = off;
----
(SET)

SET client_encoding = 'UTF8';
----
(SET)

SET standard_conforming_strings = on;
----
(SET)

CREATE ROLE root;
----
ERROR 42710: role "root" already exists

ALTER ROLE root WITH SUPERUSER INHERIT CREATEROLE CREATEDB LOGIN REPLICATION BYPASSRLS;
----
(ALTER ROLE)

CREATE ROLE dump_d;
----
(CREATE ROLE)

ALTER ROLE dump_d WITH NOSUPERUSER NOINHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 3 PASSWORD 'SCRAM-SHA-256$4096:MTIzNDU2Nzg5MDEyMzQ1Ng==$4Kb0LSmTdqo1E3q/5LtmOJXOAYZ8qKKkYTXPzNqFSNk=:jzGbzmCWEiULx06mJ1j6aIoRQZ0xMrvYx2UHjGEfJ+0=' VALID UNTIL '2040-01-02 03:04:05+00';
----
(ALTER ROLE)

GRANT dump_b TO dump_d WITH ADMIN OPTION GRANTED BY root;
----
(GRANT ROLE)

COMMENT ON ROLE dump_d IS 'it''s another';
----
(COMMENT)

