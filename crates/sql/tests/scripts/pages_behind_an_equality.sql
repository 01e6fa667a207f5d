-- postgres: same
create table t (id int primary key, s text, c int);
----

create index t_sc on t (s, c);
----

insert into t select g, 's' || g % 3, g / 4 from generate_series(1, 1200) as g;
----

insert into t values (2000, null, 5), (2001, 's1', null), (2002, 's1', 150);
----

select id, c from t where s = 's1' and (c, id) < (150, 601) order by c desc, id desc limit 5;
----

select id, c from t where s = 's1' and (c, id) > (150, 601) order by c, id limit 5;
----

select id, c from t where s = 's1' and (c, id) <= (150, 601) order by c desc, id desc limit 3;
----

select id, c from t where s = 's1' and (c < 150 or c = 150 and id > 600) order by c desc, id limit 4;
----

select count(*) from t where s = 's1' and (c < 150 or c < 100);
----

select count(*) from t where s = 's1' and (c < 150 or c is null);
----

select count(*) from t where s = 's1' and (c <= 150 or c = 150 and id < 0);
----

select count(*) from t where s = 's1' and (c >= 299 or c = 150);
----

select count(*) from t where s = 's1' and (s, c, id) > ('s1', 298, 3);
----

prepare page(text, int, int) as select id, c from t where s = $1 and (c, id) < ($2, $3) order by c desc, id desc limit 3;
----

execute page('s1', 150, 601);
----

execute page('s1', null, 601);
----

execute page('s2', 150, null);
----

