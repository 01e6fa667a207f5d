-- Values of char(n) that are equal have different keys if their lengths differ.
create table ch (x char(5) primary key);
----
(CREATE TABLE)

create table c3 (x char(3) references ch);
----
ERROR 0A000: foreign keys between char(n) and a string type of another length are not supported
DETAIL: Columns "x" and "x" are of types character(3) and character(5).
HINT: Give both columns one type.

create table cv (x varchar(5) references ch);
----
ERROR 0A000: foreign keys between char(n) and a string type of another length are not supported
DETAIL: Columns "x" and "x" are of types character varying(5) and character(5).
HINT: Give both columns one type.

create table c5 (x char(5) references ch);
----
(CREATE TABLE)

insert into ch values ('a');
----
(INSERT 0 1)

insert into c5 values ('a ');
----
(INSERT 0 1)

delete from ch;
----
ERROR 23503: update or delete on table "ch" violates foreign key constraint "c5_x_fkey" on table "c5"
DETAIL: Key (x)=(a    ) is still referenced from table "c5".

