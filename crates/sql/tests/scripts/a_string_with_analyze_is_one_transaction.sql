-- postgres: same
create table t (k int primary key);
----
(CREATE TABLE)

insert into t values (1); analyze t; select 1 / 0;
----
ERROR 22012: division by zero

select count(*) from t;
----
count
0
(SELECT 1)

insert into t values (1); analyze t; insert into t values (2);
----
(INSERT 0 1)
(ANALYZE)
(INSERT 0 1)

select count(*) from t;
----
count
2
(SELECT 1)

begin; insert into t values (3); analyze; rollback;
----
(BEGIN)
(INSERT 0 1)
(ANALYZE)
(ROLLBACK)

select count(*) from t;
----
count
2
(SELECT 1)

