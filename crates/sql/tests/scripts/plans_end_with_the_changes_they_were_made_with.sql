-- postgres: same
create table t (k int primary key, v int); create unique index tu on t (v); insert into t values (1, 1);
----
(CREATE TABLE)
(CREATE INDEX)
(INSERT 0 1)

-- A unique index that is dropped and comes back is kept by statements that ran without it.
prepare add as insert into t values ($1, $2);
----
(PREPARE)

begin; drop index tu; execute add (2, 1); rollback;
----
(BEGIN)
(DROP INDEX)
(INSERT 0 1)
(ROLLBACK)

execute add (3, 1);
----
ERROR 23505: duplicate key value violates unique constraint "tu"
DETAIL: Key (v)=(1) already exists.

execute add (4, 4); select * from t order by k;
----
(INSERT 0 1)
k | v
1 | 1
4 | 4
(SELECT 2)

-- A table made in the place of another one, and both changes undone.
prepare read as select v from t order by k;
----
(PREPARE)

begin; savepoint s; drop table t; create table t (k int primary key, v int); execute add (9, 9); execute read; rollback to s;
----
(BEGIN)
(SAVEPOINT)
(DROP TABLE)
(CREATE TABLE)
(INSERT 0 1)
v
9
(SELECT 1)
(ROLLBACK)

execute read; execute add (5, 5); commit;
----
v
1
4
(SELECT 2)
(INSERT 0 1)
(COMMIT)

execute read;
----
v
1
4
5
(SELECT 3)

-- Columns and constraints of a block that failed.
begin; alter table t add column w int default 7;
----
(BEGIN)
(ALTER TABLE)

prepare wide as select k, w from t order by k limit 1; execute wide;
----
(PREPARE)
k | w
1 | 7
(SELECT 1)

select 1 / 0;
----
ERROR 22012: division by zero

rollback; alter table t add column w text default 'other';
----
(ROLLBACK)
(ALTER TABLE)

execute wide;
----
ERROR 0A000: cached plan must not change result type

alter table t drop column w;
----
(ALTER TABLE)

begin; alter table t add constraint positive check (k > 0); execute add (6, 6); rollback; execute add (-1, -1);
----
(BEGIN)
(ALTER TABLE)
(INSERT 0 1)
(ROLLBACK)
(INSERT 0 1)

-- Prepared and run in the block, of a table that nobody else ever sees.
begin; create table z (k int); prepare into_z as insert into z values (1); execute into_z; rollback;
----
(BEGIN)
(CREATE TABLE)
(PREPARE)
(INSERT 0 1)
(ROLLBACK)

create table z (k int default 5, other int); execute into_z; select * from z;
----
(CREATE TABLE)
(INSERT 0 1)
k | other
1 | ∅
(SELECT 1)

drop table z;
----
(DROP TABLE)

create table z (a text default 'a', k int); prepare one as insert into z (k) values (1); execute one; select * from z;
----
(CREATE TABLE)
(PREPARE)
(INSERT 0 1)
a | k
a | 1
(SELECT 1)

-- What the block commits stays.
begin; drop index tu; execute add (7, 1); commit; execute add (8, 1); select k, v from t where v = 1 order by k;
----
(BEGIN)
(DROP INDEX)
(INSERT 0 1)
(COMMIT)
(INSERT 0 1)
k | v
1 | 1
7 | 1
8 | 1
(SELECT 3)

deallocate add; deallocate read; deallocate wide; deallocate into_z; deallocate one;
----
(DEALLOCATE)
(DEALLOCATE)
(DEALLOCATE)
(DEALLOCATE)
(DEALLOCATE)

