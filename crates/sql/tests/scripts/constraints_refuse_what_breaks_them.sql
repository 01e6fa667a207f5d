-- postgres: same
create table parent (id int primary key, code text unique, n int not null default 0 check (n >= 0));
----
(CREATE TABLE)

create table child (id int primary key, parent_id int references parent (id), code text references parent (code) on delete set null on update cascade);
----
(CREATE TABLE)

insert into parent values (1, 'a', 1), (2, 'b', 2), (3, null, 3), (4, null, 4);
----
(INSERT 0 4)

insert into parent values (1, 'c', 1);
----
ERROR 23505: duplicate key value violates unique constraint "parent_pkey"
DETAIL: Key (id)=(1) already exists.

insert into parent values (9, 'a', 1);
----
ERROR 23505: duplicate key value violates unique constraint "parent_code_key"
DETAIL: Key (code)=(a) already exists.

insert into parent values (9, 'z', -1);
----
ERROR 23514: new row for relation "parent" violates check constraint "parent_n_check"
DETAIL: Failing row contains (9, z, -1).

insert into parent values (9, 'z', null);
----
ERROR 23502: null value in column "n" of relation "parent" violates not-null constraint
DETAIL: Failing row contains (9, z, null).

update parent set n = -n where id = 2;
----
ERROR 23514: new row for relation "parent" violates check constraint "parent_n_check"
DETAIL: Failing row contains (2, b, -2).

update parent set n = null where id = 2;
----
ERROR 23502: null value in column "n" of relation "parent" violates not-null constraint
DETAIL: Failing row contains (2, b, null).

update parent set code = 'a' where id = 2;
----
ERROR 23505: duplicate key value violates unique constraint "parent_code_key"
DETAIL: Key (code)=(a) already exists.

insert into child values (1, 1, 'a'), (2, 2, null), (3, null, 'b');
----
(INSERT 0 3)

insert into child values (4, 99, null);
----
ERROR 23503: insert or update on table "child" violates foreign key constraint "child_parent_id_fkey"
DETAIL: Key (parent_id)=(99) is not present in table "parent".

insert into child values (4, null, 'nosuch');
----
ERROR 23503: insert or update on table "child" violates foreign key constraint "child_code_fkey"
DETAIL: Key (code)=(nosuch) is not present in table "parent".

update child set parent_id = 77 where id = 1;
----
ERROR 23503: insert or update on table "child" violates foreign key constraint "child_parent_id_fkey"
DETAIL: Key (parent_id)=(77) is not present in table "parent".

delete from parent where id = 1;
----
ERROR 23503: update or delete on table "parent" violates foreign key constraint "child_parent_id_fkey" on table "child"
DETAIL: Key (id)=(1) is still referenced from table "child".

update parent set id = 100 where id = 2;
----
ERROR 23503: update or delete on table "parent" violates foreign key constraint "child_parent_id_fkey" on table "child"
DETAIL: Key (id)=(2) is still referenced from table "child".

update parent set id = 30 where id = 3;
----
(UPDATE 1)

update parent set code = 'bb' where id = 2;
----
(UPDATE 1)

select * from child order by id;
----
id | parent_id | code
1 | 1 | a
2 | 2 | ∅
3 | ∅ | bb
(SELECT 3)

delete from child where id <> 3;
----
(DELETE 2)

delete from parent where id = 2;
----
(DELETE 1)

select * from child order by id;
----
id | parent_id | code
3 | ∅ | ∅
(SELECT 1)

create table node (id int primary key, up int references node (id) on delete cascade);
----
(CREATE TABLE)

insert into node values (2, 1), (1, null), (3, 2), (4, 3), (5, null);
----
(INSERT 0 5)

insert into node values (6, 7);
----
ERROR 23503: insert or update on table "node" violates foreign key constraint "node_up_fkey"
DETAIL: Key (up)=(7) is not present in table "node".

delete from node where id = 1;
----
(DELETE 1)

select * from node order by id;
----
id | up
5 | ∅
(SELECT 1)

create table pair (a int, b int, c text, primary key (a, b), unique (b, c));
----
(CREATE TABLE)

insert into pair values (1, 1, 'x'), (1, 2, 'x'), (2, 1, null), (3, 1, null);
----
(INSERT 0 4)

insert into pair values (4, 1, 'x');
----
ERROR 23505: duplicate key value violates unique constraint "pair_b_c_key"
DETAIL: Key (b, c)=(1, x) already exists.

insert into pair values (1, 2, 'y');
----
ERROR 23505: duplicate key value violates unique constraint "pair_pkey"
DETAIL: Key (a, b)=(1, 2) already exists.

update pair set a = 1, b = 2 where a = 3;
----
ERROR 23505: duplicate key value violates unique constraint "pair_pkey"
DETAIL: Key (a, b)=(1, 2) already exists.

create table g (id int generated always as identity primary key, w int, h int, area int generated always as (w * h) stored);
----
(CREATE TABLE)

insert into g (w, h) values (2, 3), (4, 5) returning *;
----
id | w | h | area
1 | 2 | 3 | 6
2 | 4 | 5 | 20
(INSERT 0 2)

insert into g (id, w, h) values (7, 1, 1);
----
ERROR 428C9: cannot insert a non-DEFAULT value into column "id"
DETAIL: Column "id" is an identity column defined as GENERATED ALWAYS.
HINT: Use OVERRIDING SYSTEM VALUE to override.

insert into g (id, w, h) overriding system value values (7, 1, 1) returning *;
----
id | w | h | area
7 | 1 | 1 | 1
(INSERT 0 1)

insert into g (area) values (1);
----
ERROR 428C9: cannot insert a non-DEFAULT value into column "area"
DETAIL: Column "area" is a generated column.

update g set w = 10 where id = 1 returning area;
----
area
30
(UPDATE 1)

update g set area = 10 where id = 1;
----
ERROR 428C9: column "area" can only be updated to DEFAULT
DETAIL: Column "area" is a generated column.

create table s (id serial primary key, v text);
----
(CREATE TABLE)

insert into s (v) values ('a'), ('b') returning id;
----
id
1
2
(INSERT 0 2)

insert into s values (default, 'c') returning *;
----
id | v
3 | c
(INSERT 0 1)

