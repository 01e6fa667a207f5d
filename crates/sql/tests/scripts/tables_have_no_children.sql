-- postgres: same
create table o (id int primary key, v int);
----
(CREATE TABLE)

insert into o values (1, 10), (2, 1), (3, null);
----
(INSERT 0 3)

select id from only o order by id;
----
id
1
2
3
(SELECT 3)

select o.id, p.id from only o join only (o) as p on o.id = p.v order by 1;
----
id | id
1 | 2
(SELECT 1)

select p.id from o, only o as p where o.v = p.id + 9;
----
id
1
(SELECT 1)

select id from only (public.o) where v = 10;
----
id
1
(SELECT 1)

update only o set v = 21 where id = 2 returning id, v;
----
id | v
2 | 21
(UPDATE 1)

delete from only o where id = 3 returning id;
----
id
3
(DELETE 1)

select count(*) from only nope;
----
ERROR 42P01: relation "nope" does not exist
POSITION: 27

select id from o order by id fetch first 1 rows only;
----
id
1
(SELECT 1)

begin read only;
----
(BEGIN)

select id from only o where id in (select id from only o) order by id;
----
id
1
2
(SELECT 2)

commit;
----
(COMMIT)

