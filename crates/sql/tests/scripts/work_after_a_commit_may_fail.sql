create table t (id int primary key, v int);
----
(CREATE TABLE)

insert into t values (1, 1), (2, 1);
----
(INSERT 0 2)

begin;
----
(BEGIN)

insert into t values (3, 3);
----
(INSERT 0 1)

create unique index t_v on t (v);
----
(CREATE INDEX)

commit;
----
ERROR XXA00: transaction committed but schema change aborted with error: (23505): could not create unique index "t_v"
DETAIL: Key (v)=(1) is duplicated.
HINT: What the transaction did to rows is committed. Changes of the schema that need no further work are, too; look at SHOW JOBS.

select count(*) from t;
----
count
3
(SELECT 1)

insert into t values (4, 1);
----
(INSERT 0 1)

begin;
----
(BEGIN)

create table d (a int primary key, b int);
----
(CREATE TABLE)

insert into d values (1, 1), (2, 1);
----
(INSERT 0 2)

create unique index d_b on d (b);
----
(CREATE INDEX)

commit;
----
ERROR XXA00: transaction committed but schema change aborted with error: (23505): could not create unique index "d_b"
DETAIL: Key (b)=(1) is duplicated.
HINT: What the transaction did to rows is committed. Changes of the schema that need no further work are, too; look at SHOW JOBS.

select count(*) from d;
----
count
2
(SELECT 1)

