create table many (id int primary key, t text);
----

create table few (id int primary key);
----

insert into many select g, 'text ' || g from generate_series(1, 20000) as g;
----

insert into few select g from generate_series(1, 3) as g;
----

analyze many;
----

analyze few;
----

explain select count(*) from few, many;
----

explain select * from generate_series(1, 2) as g, many;
----

explain select many.id, few.id from many cross join few;
----

select count(*), sum(many.id), sum(few.id) from few, many;
----

explain select * from few, many order by few.id limit 5;
----

explain select * from few cross join lateral (select * from many where many.id > few.id) as m;
----

