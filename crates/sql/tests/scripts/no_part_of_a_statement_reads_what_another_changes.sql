-- What a part of the statement changes, no other part may read, wherever it does: but WITH queries
-- that only read, which come before.
create table p1 (id int primary key, a int);
----
(CREATE TABLE)

create table p2 (id int primary key, p int references p1 on delete cascade);
----
(CREATE TABLE)

insert into p1 values (1, 1), (2, 2);
----
(INSERT 0 2)

with x as (insert into p1 values (3, 3) returning id) select id, (select count(*) from p1) from x;
----
ERROR 0A000: a statement cannot yet read table "p1", which its WITH clause changes
HINT: Use RETURNING, a WITH query that only reads the table, or two statements.

with x as (insert into p1 values (4, 3) returning id) select id from x where not exists (select 1 from p1 where p1.id = x.id);
----
ERROR 0A000: a statement cannot yet read table "p1", which its WITH clause changes
HINT: Use RETURNING, a WITH query that only reads the table, or two statements.

with x as (delete from p1 where id = 1 returning id) select p2.id from p2 join x on x.id = p2.p;
----
ERROR 0A000: a statement cannot yet read table "p2", which its WITH clause changes
HINT: Use RETURNING, a WITH query that only reads the table, or two statements.

with x as (update p1 set a = a + 1 returning id) update p2 set p = null where p in (select a from p1) returning *;
----
ERROR 0A000: a statement cannot yet read table "p1", which its WITH clause changes
HINT: Use RETURNING, a WITH query that only reads the table, or two statements.

with x as (insert into p1 values (9, 9) returning id) insert into p2 select 9, (select max(id) from p1) from x;
----
ERROR 0A000: a statement cannot yet read table "p1", which its WITH clause changes
HINT: Use RETURNING, a WITH query that only reads the table, or two statements.

with x as (insert into p1 values (11, (select count(*) from p1)) returning *), y as (insert into p1 values (12, (select count(*) from p1)) returning *)
select * from x union all select * from y;
----
ERROR 0A000: a statement cannot yet read table "p1", which its WITH clause changes
HINT: Use RETURNING, a WITH query that only reads the table, or two statements.

insert into p1 values (13, 0) returning id, (select count(*) from p1);
----
id | count
13 | 2
(INSERT 0 1)

insert into p1 values (13, 0) returning id, (select count(*) from p2);
----
ERROR 23505: duplicate key value violates unique constraint "p1_pkey"
DETAIL: Key (id)=(13) already exists.

create table p3 (id int primary key, before int, after int);
----
(CREATE TABLE)

with old as (select id, a from p1 where id < 3), new as (update p1 set a = a + 10 where id < 3 returning id, a)
insert into p3 select id, old.a, new.a from old join new using (id) returning *;
----
id | before | after
1 | 1 | 11
2 | 2 | 12
(INSERT 0 2)

with todo as (select * from p1 where a >= 12), gone as (delete from p1 where a >= 12 returning id) select todo.* from todo;
----
id | a
2 | 12
(SELECT 1)

with y as (select count(*) as c from p1), x as (insert into p1 values (7, 7) returning id) select * from x, y, y as z;
----
id | c | c
7 | 2 | 2
(SELECT 1)

with x as (insert into p1 values (8, 8) returning id), n as (select max(id) from p1) select * from n;
----
max
13
(SELECT 1)

with y as (select max(id) as m from p1), x as (insert into p1 select m + 1, 0 from y returning id) select * from x, y;
----
id | m
14 | 13
(SELECT 1)

with x as (insert into p1 values (20, 0) returning id), n as (select count(*) from p1, x) select * from n;
----
ERROR 0A000: a statement cannot yet read table "p1", which its WITH clause changes
HINT: Use RETURNING, a WITH query that only reads the table, or two statements.

with x as (insert into p1 values (20, 0) returning id) select * from (with n as (select max(id) from p1) select * from n) as s;
----
ERROR 0A000: a statement cannot yet read table "p1", which its WITH clause changes
HINT: Use RETURNING, a WITH query that only reads the table, or two statements.

with x as (insert into p1 values (20, 0) returning id), n as materialized (select count(*) from p1), twice as (select count from n) select * from twice, n;
----
count | count
5 | 5
(SELECT 1)

select count(*) from p1;
----
count
6
(SELECT 1)

-- What a part returns, any part may read.
with up as (update p1 set a = 9 where id = 77 returning *) insert into p1 select 77, 1 where not exists (select 1 from up);
----
(INSERT 0 1)

with up as (update p1 set a = 9 where id = 77 returning *) insert into p1 select 77, 1 where not exists (select 1 from up);
----
(INSERT 0 0)

with r as (delete from p1 where id > 13 returning *) select (select count(*) from r);
----
count
3
(SELECT 1)

with del as (delete from p1 where id = 13 returning a) delete from p3 where id in (select a from del);
----
(DELETE 0)

select * from p1 order by id;
----
id | a
1 | 11
7 | 7
8 | 8
(SELECT 3)

