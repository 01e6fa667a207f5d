create table t (id int primary key, a int, b int, s text);
----

create index t_ab on t (a, b);
----

create index t_s on t (s);
----

insert into t select g, case when g % 11 > 0 then g % 100 end, g % 7, 's' || g % 50 from generate_series(1, 2000) as g;
----

create table u (id int primary key, c int);
----

insert into u select g * 2, g from generate_series(1, 800) as g;
----

analyze t;
----

analyze u;
----

explain select count(*) from t where a >= 10 and a > 95;
----

explain select count(*) from t where a > 95 and a >= 10;
----

explain select count(*) from t where a >= 10 and a > 10 and a <= 12 and a < 12;
----

explain select count(*) from t where a > 10 and a >= 10;
----

explain select count(*) from t where a >= 10 and (a, b) > (97, 3);
----

explain select count(*) from t where a between 10 and 90 and (a, b) < (11, 3);
----

explain select count(*) from t where a between 10 and 50 and a between 49 and 99;
----

explain select count(*) from t where a > 5 and a > null;
----

explain select count(*) from t where not (a > 3 or b = 1);
----

explain select count(*) from t where not (a < 98 and b < 5);
----

explain select count(*) from t where a not between 2 and 98;
----

explain select count(*) from t where not (id >= 4 and id <= 1998);
----

explain select count(*) from t where case when true then id = 5 else false end;
----

explain select count(*) from t where case when false then id = 5 when null then id = 6 else id = 7 end;
----

explain select count(*) from t where s is not distinct from 's7' and a > 90;
----

explain select count(*) from t where s is not distinct from null;
----

explain select count(*) from t where a is not distinct from 5 and b is not distinct from 3;
----

explain select count(*) from t where id > 5 and id > 1990 and id < 3000 and id < 1995;
----

explain select count(*), sum(id), sum(c) from t full join u using (id) where id = 10;
----

explain select count(*), sum(id), sum(c), sum(a) from t full join u using (id) where id > 1590;
----

explain select count(*) from t full join u using (id) where id < 4 and c is null;
----

explain select id, a, c from t full join u using (id) where id between 1597 and 1602 order by id;
----

explain select count(*) from u full join t on t.id = u.id where coalesce(t.id, u.id) = 12;
----

explain select count(*) from u full join t on t.id = u.id where coalesce(u.c, t.id) = 12;
----

