-- postgres: same
create table t (a int primary key, b int);
----
(CREATE TABLE)

insert into t values (1, 1), (2, 2);
----
(INSERT 0 2)

select a from t union select a from t for update;
----
ERROR 0A000: FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT

select a from t intersect select a from t for share;
----
ERROR 0A000: FOR SHARE is not allowed with UNION/INTERSECT/EXCEPT

(select a from t) union all (select a from t) for no key update;
----
ERROR 0A000: FOR NO KEY UPDATE is not allowed with UNION/INTERSECT/EXCEPT

(select a from t for update) union all select a from t;
----
ERROR 0A000: FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT

values (1) for update;
----
ERROR 0A000: FOR UPDATE cannot be applied to VALUES

(select a from t order by a) for update;
----
a
1
2
(SELECT 2)

((select a from t where a = 1) for share);
----
a
1
(SELECT 1)

table t for update;
----
a | b
1 | 1
2 | 2
(SELECT 2)

(select a from t) for update of u;
----
ERROR 42P01: relation "u" in FOR UPDATE clause not found in FROM clause
POSITION: 33

table t for update of u;
----
ERROR 42P01: relation "u" in FOR UPDATE clause not found in FROM clause
POSITION: 23

select a from (select a from t union select 3) s order by a;
----
a
1
2
3
(SELECT 3)

