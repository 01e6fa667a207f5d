-- postgres: same
create table t (id int primary key, v int);
----
(CREATE TABLE)

begin;
----
(BEGIN)

insert into t values (1, 1);
----
(INSERT 0 1)

savepoint a;
----
(SAVEPOINT)

insert into t values (2, 2);
----
(INSERT 0 1)

savepoint a;
----
(SAVEPOINT)

insert into t values (1, 0);
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(1) already exists.

select 1;
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

savepoint b;
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

rollback to savepoint nosuch;
----
ERROR 3B001: savepoint "nosuch" does not exist

rollback to savepoint a;
----
(ROLLBACK)

select count(*) from t;
----
count
2
(SELECT 1)

release savepoint a;
----
(RELEASE)

rollback to a;
----
(ROLLBACK)

select count(*) from t;
----
count
1
(SELECT 1)

commit;
----
(COMMIT)

select * from t;
----
id | v
1 | 1
(SELECT 1)

begin; insert into t values (5, 5); select 1/0;
----
ERROR 22012: division by zero

commit;
----
(ROLLBACK)

insert into t values (6, 6); select 1/0; insert into t values (7, 7);
----
ERROR 22012: division by zero

select count(*) from t;
----
count
1
(SELECT 1)

begin read only;
----
(BEGIN)

insert into t values (8, 8);
----
ERROR 25006: cannot execute INSERT in a read-only transaction

rollback;
----
(ROLLBACK)

start transaction isolation level serializable, read write;
----
(START TRANSACTION)

update t set v = 2;
----
(UPDATE 1)

commit and chain;
----
(COMMIT)

delete from t;
----
(DELETE 1)

rollback and chain;
----
(ROLLBACK)

select v from t;
----
v
2
(SELECT 1)

end;
----
(COMMIT)

savepoint s;
----
ERROR 25P01: SAVEPOINT can only be used in transaction blocks

commit and chain;
----
ERROR 25P01: COMMIT AND CHAIN can only be used in transaction blocks

begin; declare c cursor for select g from generate_series(1, 5) as s(g);
----
(BEGIN)
(DECLARE CURSOR)

fetch 2 from c;
----
g
1
2
(FETCH 2)

fetch next from c;
----
g
3
(FETCH 1)

fetch all from c;
----
g
4
5
(FETCH 2)

close c;
----
(CLOSE CURSOR)

fetch 1 from c;
----
ERROR 34000: cursor "c" does not exist

abort;
----
(ROLLBACK)

begin; vacuum;
----
ERROR 25001: VACUUM cannot run inside a transaction block

rollback;
----
(ROLLBACK)

