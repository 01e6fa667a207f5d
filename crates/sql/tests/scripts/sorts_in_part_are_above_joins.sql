create table su (id int primary key, created int, name text);
----

create table so (id int primary key, u int, v int);
----

insert into su select g, g * 7919 % 100003, 'n' || g from generate_series(1, 3000) g;
----

insert into so select g, g % 3000 + 1, g % 17 from generate_series(1, 9000) g;
----

create index su_created on su (created);
----

create index so_u on so (u);
----

analyze su;
----

analyze so;
----

explain select su.id, so.id from su join so on so.u = su.id order by su.created limit 10;
----

explain select su.id, so.id from su join so on so.u = su.id order by su.created, so.id limit 10;
----

explain select su.id, so.v from su left join so on so.u = su.id order by su.created desc, so.v, so.id limit 10;
----

select su.id, so.id from su join so on so.u = su.id order by su.created, so.id limit 5;
----

select su.id, so.v, so.id from su left join so on so.u = su.id order by su.created desc, so.v, so.id limit 5 offset 3;
----

drop table su;
----

drop table so;
----
