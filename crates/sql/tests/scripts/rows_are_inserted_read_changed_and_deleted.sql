-- postgres: same
create table t (id int primary key, a int, b text default 'x');
----
(CREATE TABLE)

insert into t values (1, 10, 'one'), (2, 20, 'two');
----
(INSERT 0 2)

insert into t (id, a) values (3, 30);
----
(INSERT 0 1)

select * from t where id = 2;
----
id | a | b
2 | 20 | two
(SELECT 1)

select * from t order by id;
----
id | a | b
1 | 10 | one
2 | 20 | two
3 | 30 | x
(SELECT 3)

select a, b, a + id as sum from t where id in (3, 1) order by id desc;
----
a | b | sum
30 | x | 33
10 | one | 11
(SELECT 2)

update t set a = a + 1 where id = 1;
----
(UPDATE 1)

update t set a = a * 2, b = b || '!' where a > 20 returning id, a, b;
----
id | a | b
3 | 60 | x!
(UPDATE 1)

select id, a from t where id between 1 and 2 order by id;
----
id | a
1 | 11
2 | 20
(SELECT 2)

delete from t where id = 3 returning *;
----
id | a | b
3 | 60 | x!
(DELETE 1)

select count(*) from t;
----
count
2
(SELECT 1)

delete from t;
----
(DELETE 2)

select * from t;
----
id | a | b
(SELECT 0)

insert into t values (1);
----
(INSERT 0 1)

select * from t where a is null;
----
id | a | b
1 | ∅ | x
(SELECT 1)

insert into t values (5, default, default), (6, 1, null) returning id, b;
----
id | b
5 | x
6 | ∅
(INSERT 0 2)

select id from t where id > 1 order by id desc limit 1;
----
id
6
(SELECT 1)

select id from t order by id offset 1;
----
id
5
6
(SELECT 2)

update t set id = id + 100 where id = 1;
----
(UPDATE 1)

select * from t order by 1;
----
id | a | b
5 | ∅ | x
6 | 1 | ∅
101 | ∅ | x
(SELECT 3)

insert into t values (5, 1, 'dup');
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(5) already exists.

insert into t values (5, 1, 'dup') on conflict do nothing;
----
(INSERT 0 0)

insert into t values (5, 1, 'dup') on conflict (id) do update set b = excluded.b || t.id, a = t.a;
----
(INSERT 0 1)

insert into t values (5, 7, 'again'), (7, 7, 'new') on conflict (id) do update set a = excluded.a where t.a is null returning *;
----
id | a | b
5 | 7 | dup5
7 | 7 | new
(INSERT 0 2)

select * from t order by id;
----
id | a | b
5 | 7 | dup5
6 | 1 | ∅
7 | 7 | new
101 | ∅ | x
(SELECT 4)

insert into t values ('abc');
----
ERROR 22P02: invalid input syntax for type integer: "abc"
POSITION: 23

insert into t values (1, 2, 'x', 4);
----
ERROR 42601: INSERT has more expressions than target columns
POSITION: 34

insert into t (id, nosuch) values (1, 2);
----
ERROR 42703: column "nosuch" of relation "t" does not exist
POSITION: 20

select nosuch from t;
----
ERROR 42703: column "nosuch" does not exist
POSITION: 8

select t.nosuch from t;
----
ERROR 42703: column t.nosuch does not exist
POSITION: 8

select x.id from t;
----
ERROR 42P01: missing FROM-clause entry for table "x"
POSITION: 8

select * from nosuch;
----
ERROR 42P01: relation "nosuch" does not exist
POSITION: 15

select id, count(*) from t;
----
ERROR 42803: column "t.id" must appear in the GROUP BY clause or be used in an aggregate function
POSITION: 8

select id from t where a;
----
ERROR 42804: argument of WHERE must be type boolean, not type integer
POSITION: 24

select a + b from t;
----
ERROR 42883: operator does not exist: integer + text
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
POSITION: 10

