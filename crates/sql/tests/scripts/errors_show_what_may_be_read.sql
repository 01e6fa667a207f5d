-- postgres: same
create role ea;
----
(CREATE ROLE)

create schema es;
----
(CREATE SCHEMA)

grant usage on schema es to ea;
----
(GRANT)

create table es.par (a int, b text, primary key (a, b));
----
(CREATE TABLE)

create table es.t (id int primary key, tag int not null check (tag < 50), secret text, unique (secret, tag));
----
(CREATE TABLE)

create table es.chi (id int primary key, a int, b text, foreign key (a, b) references es.par);
----
(CREATE TABLE)

insert into es.par values (1, 'HIDDEN');
----
(INSERT 0 1)

insert into es.t values (1, 5, 'HUSH'), (2, 7, 'HUSH');
----
(INSERT 0 2)

insert into es.chi values (1, 1, 'HIDDEN');
----
(INSERT 0 1)

grant update, delete on all tables in schema es to ea;
----
(GRANT)

update es.t set tag = 7 where id = 1;
----
ERROR 23505: duplicate key value violates unique constraint "t_secret_tag_key"
DETAIL: Key (secret, tag)=(HUSH, 7) already exists.

set role ea;
----
(SET)

update es.t set tag = 7;
----
ERROR 23505: duplicate key value violates unique constraint "t_secret_tag_key"

update es.chi set a = 99;
----
ERROR 23503: insert or update on table "chi" violates foreign key constraint "chi_a_b_fkey"
DETAIL: Key is not present in table "par".

delete from es.par;
----
ERROR 23503: update or delete on table "par" violates foreign key constraint "chi_a_b_fkey" on table "chi"
DETAIL: Key is still referenced from table "chi".

reset role;
----
(RESET)

drop schema es cascade;
----
(DROP SCHEMA)

drop role ea;
----
(DROP ROLE)

