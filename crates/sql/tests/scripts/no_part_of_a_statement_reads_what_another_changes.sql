-- What a part of the statement changes, no other part may read, wherever it does.
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
HINT: Use RETURNING, or two statements.

with x as (insert into p1 values (4, 3) returning id) select id from x where not exists (select 1 from p1 where p1.id = x.id);
----
ERROR 0A000: a statement cannot yet read table "p1", which its WITH clause changes
HINT: Use RETURNING, or two statements.

with x as (delete from p1 where id = 1 returning id) select p2.id from p2 join x on x.id = p2.p;
----
ERROR 0A000: a statement cannot yet read table "p2", which its WITH clause changes
HINT: Use RETURNING, or two statements.

with x as (update p1 set a = a + 1 returning id) update p2 set p = null where p in (select a from p1) returning *;
----
ERROR 0A000: a statement cannot yet read table "p1", which its WITH clause changes
HINT: Use RETURNING, or two statements.

with x as (insert into p1 values (9, 9) returning id) insert into p2 select 9, (select max(id) from p1) from x;
----
ERROR 0A000: a statement cannot yet read table "p1", which its WITH clause changes
HINT: Use RETURNING, or two statements.

with x as (insert into p1 values (11, (select count(*) from p1)) returning *), y as (insert into p1 values (12, (select count(*) from p1)) returning *)
select * from x union all select * from y;
----
ERROR 0A000: a statement cannot yet read table "p1", which its WITH clause changes
HINT: Use RETURNING, or two statements.

insert into p1 values (13, 0) returning id, (select count(*) from p1);
----
id | count
13 | 2
(INSERT 0 1)

insert into p1 values (13, 0) returning id, (select count(*) from p2);
----
ERROR 23505: duplicate key value violates unique constraint "p1_pkey"
DETAIL: Key (id)=(13) already exists.

