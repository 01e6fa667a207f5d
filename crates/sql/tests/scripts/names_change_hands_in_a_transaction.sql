-- postgres: same
create table orders (k int primary key); create table orders_new (k int primary key); insert into orders values (1), (2); insert into orders_new values (3);
----
(CREATE TABLE)
(CREATE TABLE)
(INSERT 0 2)
(INSERT 0 1)

begin; alter table orders rename to tmp; alter table orders_new rename to orders; alter table tmp rename to orders_new; commit;
----
(BEGIN)
(ALTER TABLE)
(ALTER TABLE)
(ALTER TABLE)
(COMMIT)

select k from orders order by k;
----
k
3
(SELECT 1)

select k from orders_new order by k;
----
k
1
2
(SELECT 2)

create table orders (k int);
----
ERROR 42P07: relation "orders" already exists

-- Three in a circle, and one that goes.
create table third (k int primary key); insert into third values (4);
----
(CREATE TABLE)
(INSERT 0 1)

begin; alter table orders rename to a; alter table orders_new rename to b; alter table third rename to c; alter table a rename to orders_new; alter table b rename to third; alter table c rename to orders; commit;
----
(BEGIN)
(ALTER TABLE)
(ALTER TABLE)
(ALTER TABLE)
(ALTER TABLE)
(ALTER TABLE)
(ALTER TABLE)
(COMMIT)

select (select array_agg(k order by k) from orders) o, (select array_agg(k order by k) from orders_new) n, (select array_agg(k order by k) from third) t;
----
o | n | t
{4} | {3} | {1,2}
(SELECT 1)

begin; drop table orders; alter table third rename to orders; create table third (k int); commit;
----
(BEGIN)
(DROP TABLE)
(ALTER TABLE)
(CREATE TABLE)
(COMMIT)

select (select array_agg(k order by k) from orders) o, (select count(*) from third) t;
----
o | t
{1,2} | 0
(SELECT 1)

-- Schemas too.
create schema hand_a; create schema hand_b; create table hand_a.t (v text); create table hand_b.t (v text); insert into hand_a.t values ('was a'); insert into hand_b.t values ('was b');
----
(CREATE SCHEMA)
(CREATE SCHEMA)
(CREATE TABLE)
(CREATE TABLE)
(INSERT 0 1)
(INSERT 0 1)

begin; alter schema hand_a rename to hand_c; alter schema hand_b rename to hand_a; alter schema hand_c rename to hand_b; commit;
----
(BEGIN)
(ALTER SCHEMA)
(ALTER SCHEMA)
(ALTER SCHEMA)
(COMMIT)

select (select v from hand_a.t) a, (select v from hand_b.t) b;
----
a | b
was b | was a
(SELECT 1)

-- A table that is made anew beside its old rows, which change once more.
create table t (k int primary key); insert into t values (1), (2);
----
(CREATE TABLE)
(INSERT 0 2)

begin; alter table t rename to t_old; create table t (k int primary key, v text default 'new'); insert into t (k) select k from t_old; alter table t_old add column gone bool default true; create index on t_old (gone); commit;
----
(BEGIN)
(ALTER TABLE)
(CREATE TABLE)
(INSERT 0 2)
(ALTER TABLE)
(CREATE INDEX)
(COMMIT)

select * from t order by k;
----
k | v
1 | new
2 | new
(SELECT 2)

select * from t_old order by k;
----
k | gone
1 | t
2 | t
(SELECT 2)

