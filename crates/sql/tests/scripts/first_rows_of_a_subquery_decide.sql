-- postgres: same
create table o (id int primary key, x int);
----

create table q (id int primary key, y int, z int);
----

insert into o select g, g % 37 from generate_series(1, 120) as g;
----

insert into q select g, g % 41, g % 13 from generate_series(1, 300) as g;
----

insert into q values (1000, null, 7), (1001, 5, null);
----

select count(*), sum(id) from o where x not in (select y from q where q.id < o.id);
----

select count(*), sum(id) from o where x not in (select y from q where q.id < o.id or q.id = 1000);
----

select count(*), sum(id) from o where x in (select y from q where q.id > o.id);
----

select count(*), sum(id) from o where x = all (select y from q where q.z <> o.id);
----

select count(*), sum(id) from o where x <= all (select y from q where q.id > o.id);
----

select count(*), sum(id) from o where x > any (select y from q where q.id > 2 * o.id);
----

select id, x < all (select y from q where q.id > o.id and y is not null) as a, x <> any (select y from q where q.z > o.x) as b from o where id < 8 order by id;
----

select count(*) from o where (x, id) not in (select y, z from q where q.id <> o.id and q.id < 300);
----

select count(*) from o where case when x > 3 then x not in (select y from q where q.id < o.id) else false end;
----

