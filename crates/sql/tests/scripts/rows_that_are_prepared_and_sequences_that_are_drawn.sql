-- postgres: same
create sequence q start 10 increment 5;
----
(CREATE SEQUENCE)

select nextval('q'), nextval('q');
----
nextval | nextval
10 | 15
(SELECT 1)

select currval('q'), lastval();
----
currval | lastval
15 | 15
(SELECT 1)

select setval('q', 100), nextval('q');
----
setval | nextval
100 | 105
(SELECT 1)

select setval('q', 100, false);
----
setval
100
(SELECT 1)

select nextval('q');
----
nextval
100
(SELECT 1)

select nextval('nosuch');
----
ERROR 42P01: relation "nosuch" does not exist
POSITION: 16

create table p (id int primary key default nextval('q'), v text);
----
(CREATE TABLE)

insert into p (v) values ('a'), ('b') returning id;
----
id
105
110
(INSERT 0 2)

prepare get (int) as select v from p where id = $1;
----
(PREPARE)

execute get (105);
----
v
a
(SELECT 1)

prepare add as insert into p values ($1, $2);
----
(PREPARE)

execute add (1, 'one');
----
(INSERT 0 1)

execute add (1, 'one');
----
ERROR 23505: duplicate key value violates unique constraint "p_pkey"
DETAIL: Key (id)=(1) already exists.

select * from p where id = 1;
----
id | v
1 | one
(SELECT 1)

prepare bad as select $1 + nosuch from p;
----
ERROR 42703: column "nosuch" does not exist
POSITION: 28

create view w as select id, upper(v) as u from p where id > 100;
----
(CREATE VIEW)

select * from w order by id;
----
id | u
105 | A
110 | B
(SELECT 2)

select u from w where id = 110;
----
u
B
(SELECT 1)

