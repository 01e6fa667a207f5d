-- postgres: same
begin;
----
(BEGIN)

create sequence s;
----
(CREATE SEQUENCE)

select nextval('s'), nextval('s');
----
nextval | nextval
1 | 2
(SELECT 1)

rollback;
----
(ROLLBACK)

create table t (a int primary key, b text);
----
(CREATE TABLE)

select * from t;
----
a | b
(SELECT 0)

create sequence u;
----
(CREATE SEQUENCE)

select nextval('u');
----
nextval
1
(SELECT 1)

begin;
----
(BEGIN)

create sequence v;
----
(CREATE SEQUENCE)

select nextval('v'), nextval('v');
----
nextval | nextval
1 | 2
(SELECT 1)

create table w (id serial primary key, n int);
----
(CREATE TABLE)

insert into w (n) values (7), (8);
----
(INSERT 0 2)

commit;
----
(COMMIT)

select nextval('v');
----
nextval
3
(SELECT 1)

insert into w (n) values (9) returning id;
----
id
3
(INSERT 0 1)

begin;
----
(BEGIN)

create table k (a int primary key);
----
(CREATE TABLE)

insert into k values (1);
----
(INSERT 0 1)

savepoint x;
----
(SAVEPOINT)

insert into k values (2);
----
(INSERT 0 1)

rollback to x;
----
(ROLLBACK)

insert into k values (3), (3);
----
ERROR 23505: duplicate key value violates unique constraint "k_pkey"
DETAIL: Key (a)=(3) already exists.

rollback to x;
----
(ROLLBACK)

insert into k values (4);
----
(INSERT 0 1)

commit;
----
(COMMIT)

select * from k order by a;
----
a
1
4
(SELECT 2)

begin;
----
(BEGIN)

alter table k add column b int;
----
(ALTER TABLE)

declare c cursor for select a, b from k order by a;
----
(DECLARE CURSOR)

fetch 1 from c;
----
a | b
1 | ∅
(FETCH 1)

fetch 1 from c;
----
a | b
4 | ∅
(FETCH 1)

commit;
----
(COMMIT)

