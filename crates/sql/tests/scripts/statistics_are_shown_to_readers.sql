create table pst_t (id int primary key, v text);
----

insert into pst_t select g, 'secret' || g % 3 from generate_series(1, 300) g;
----

analyze pst_t;
----

create role pst_a login;
----

set session authorization pst_a;
----

select count(*) from pg_stats where tablename = 'pst_t';
----

reset session authorization;
----

grant select on pst_t to pst_a;
----

set session authorization pst_a;
----

select attname, most_common_vals from pg_stats where tablename = 'pst_t' order by 1;
----
