create table pst_t (id int primary key, v text);
----
(CREATE TABLE)

insert into pst_t select g, 'secret' || g % 3 from generate_series(1, 300) g;
----
(INSERT 0 300)

analyze pst_t;
----
(ANALYZE)

create role pst_a login;
----
(CREATE ROLE)

set session authorization pst_a;
----
(SET)

select count(*) from pg_stats where tablename = 'pst_t';
----
count
0
(SELECT 1)

reset session authorization;
----
(RESET)

grant select on pst_t to pst_a;
----
(GRANT)

set session authorization pst_a;
----
(SET)

select attname, most_common_vals from pg_stats where tablename = 'pst_t' order by 1;
----
attname | most_common_vals
id | ∅
v | {secret0,secret1,secret2}
(SELECT 2)

