-- postgres: same
-- ON DELETE and ON UPDATE SET DEFAULT, where the default is the key that goes.
create table fp (id int primary key);
----
(CREATE TABLE)

create table fc (id int primary key, q int default 1 references fp (id) on delete set default on update set default);
----
(CREATE TABLE)

insert into fp values (1), (2), (3);
----
(INSERT 0 3)

insert into fc values (10, 1), (20, 2), (30, 3);
----
(INSERT 0 3)

delete from fp where id = 1;
----
ERROR 23503: update or delete on table "fp" violates foreign key constraint "fc_q_fkey" on table "fc"
DETAIL: Key (id)=(1) is still referenced from table "fc".

update fp set id = 70 where id = 1;
----
ERROR 23503: update or delete on table "fp" violates foreign key constraint "fc_q_fkey" on table "fc"
DETAIL: Key (id)=(1) is still referenced from table "fc".

delete from fp where id = 2;
----
(DELETE 1)

update fp set id = 4 where id = 3;
----
(UPDATE 1)

select * from fc order by id;
----
id | q
10 | 1
20 | 1
30 | 1
(SELECT 3)

create table ft (id int primary key, up int default 1 references ft (id) on delete set default);
----
(CREATE TABLE)

insert into ft values (1, null), (2, 1);
----
(INSERT 0 2)

delete from ft where id = 1;
----
ERROR 23503: update or delete on table "ft" violates foreign key constraint "ft_up_fkey" on table "ft"
DETAIL: Key (id)=(1) is still referenced from table "ft".

delete from ft;
----
(DELETE 2)

