-- postgres: same
create table t (k int primary key); insert into t select * from generate_series(1, 5);
----
(CREATE TABLE)
(INSERT 0 5)

begin; declare early cursor for select k from t order by k; savepoint s; declare late cursor for select k from t order by k desc;
----
(BEGIN)
(DECLARE CURSOR)
(SAVEPOINT)
(DECLARE CURSOR)

fetch 2 from early;
----
k
1
2
(FETCH 2)

fetch 2 from late;
----
k
5
4
(FETCH 2)

rollback to s; fetch 1 from early;
----
(ROLLBACK)
k
3
(FETCH 1)

fetch 1 from late;
----
ERROR 34000: cursor "late" does not exist

rollback to s; declare late cursor for select -k from t order by k; fetch 1 from late;
----
(ROLLBACK)
(DECLARE CURSOR)
?column?
-1
(FETCH 1)

release s;
----
(RELEASE)

fetch 1 from late; commit;
----
?column?
-2
(FETCH 1)
(COMMIT)

fetch 1 from early;
----
ERROR 34000: cursor "early" does not exist

