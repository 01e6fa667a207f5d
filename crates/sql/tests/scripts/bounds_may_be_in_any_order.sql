-- postgres: same
select 2 between symmetric 3 and 1, 2 between symmetric 1 and 3, 4 between symmetric 3 and 1, 2 between asymmetric 3 and 1;
----
?column? | ?column? | ?column? | ?column?
t | t | f | f
(SELECT 1)

select 2 not between symmetric 3 and 1, 4 not between symmetric 3 and 1;
----
?column? | ?column?
f | t
(SELECT 1)

select 2 between symmetric null and 1, 2 between symmetric null and 3, null between symmetric 1 and 2;
----
?column? | ?column? | ?column?
∅ | ∅ | ∅
(SELECT 1)

select x from generate_series(1, 6) x where x between symmetric 2 + 2 and 3 and x <> 3;
----
x
4
(SELECT 1)

create table t (id int primary key, low int, high int, check (id between symmetric low and high));
----
(CREATE TABLE)

insert into t values (2, 3, 1), (5, 4, 6);
----
(INSERT 0 2)

insert into t values (7, 3, 1);
----
ERROR 23514: new row for relation "t" violates check constraint "t_check"
DETAIL: Failing row contains (7, 3, 1).

select id from t where id between symmetric 9 and 3;
----
id
5
(SELECT 1)

