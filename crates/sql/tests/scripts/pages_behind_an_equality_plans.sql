create table t (id int primary key, s text, c int);
----

create index t_sc on t (s, c);
----

insert into t select g, 's' || g % 3, g / 4 from generate_series(1, 1200) as g;
----

create table u (id int primary key, t int);
----

create index u_t on u (t);
----

insert into u select g, g * 2 from generate_series(1, 600) as g;
----

analyze t;
----

analyze u;
----

explain select id, c from t where s = 's1' and (c, id) < (150, 601) order by c desc, id desc limit 5;
----

explain select id, c from t where s = 's1' and (c, id) > (150, 601) order by c, id limit 5;
----

explain select id, c from t where s = 's1' and (c < 150 or c is null);
----

explain select * from t where not exists (select 1 from u where u.t = t.id) and t.id < 900;
----

