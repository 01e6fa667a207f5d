create table ua (id int primary key, t int, s text);
----

create table ub (id int primary key, t int, s text);
----

insert into ua select g, g * 7 % 1000, 'a' || g from generate_series(1, 2000) g;
----

insert into ub select g, g * 11 % 1000, 'b' || g from generate_series(1, 2000) g;
----

create index ua_t on ua (t);
----

create index ub_t on ub (t);
----

analyze ua;
----

analyze ub;
----

create view uv as select id, t from ua union all select id, t from ub;
----

explain select id, t from ua union all select id, t from ub order by t limit 5;
----

explain select * from (select id, t from ua union all select id, t from ub) u order by t limit 5;
----

explain select id from uv order by t desc limit 5 offset 2;
----

explain select id + 1, t from uv limit 3;
----

select * from (select id, t from ua union all select id, t from ub) u order by t, id limit 5;
----

select id from uv order by t desc, id limit 5 offset 2;
----

select id * 2 as twice from uv order by twice desc, 1 limit 3;
----

drop view uv;
----

drop table ua;
----

drop table ub;
----
