-- A block's indexes are built when it is committed. What rests on them comes and goes with them.
create table t (id int primary key, k int); insert into t values (1, 1), (2, 2);
----
(CREATE TABLE)
(INSERT 0 2)

begin; create unique index tu on t (k); create table c (p int references t (k)); commit;
----
(BEGIN)
(CREATE INDEX)
(CREATE TABLE)
(COMMIT)

insert into c values (1);
----
(INSERT 0 1)

insert into c values (9);
----
ERROR 23503: insert or update on table "c" violates foreign key constraint "c_p_fkey"
DETAIL: Key (p)=(9) is not present in table "t".

insert into t values (3, 1) on conflict (k) do nothing;
----
(INSERT 0 0)

drop table c; drop index tu; insert into t values (3, 1);
----
(DROP TABLE)
(DROP INDEX)
(INSERT 0 1)

begin; create unique index tu on t (k); create table c (p int references t (k)); commit;
----
ERROR XXA00: transaction committed but schema change aborted with error: (23505): could not create unique index "tu"
DETAIL: Key (k)=(1) is duplicated.
HINT: What the transaction did to rows is committed. Changes of the schema that need no further work are, too; look at SHOW JOBS.

insert into c values (9); delete from t where id = 3; delete from t where id = 1;
----
(INSERT 0 1)
(DELETE 1)
(DELETE 1)

select conname from pg_constraint where conrelid = 'c'::regclass and contype = 'f';
----
conname
(SELECT 0)

begin; create unique index tu on t (k);
----
(BEGIN)
(CREATE INDEX)

insert into t values (3, 2) on conflict (k) do nothing;
----
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification

rollback;
----
(ROLLBACK)

