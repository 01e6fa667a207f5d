-- postgres: same
create table t (id int primary key, v int);
----
(CREATE TABLE)

insert into t values (1, 1), (2, 2);
----
(INSERT 0 2)

begin;
----
(BEGIN)

insert into t values (3, 3);
----
(INSERT 0 1)

create table log (what text primary key, n int);
----
(CREATE TABLE)

insert into log select 'rows', count(*) from t;
----
(INSERT 0 1)

alter table t add column w int;
----
(ALTER TABLE)

update t set w = v * 10 where id > 1;
----
(UPDATE 2)

commit;
----
(COMMIT)

select * from t order by id;
----
id | v | w
1 | 1 | ∅
2 | 2 | 20
3 | 3 | 30
(SELECT 3)

select * from log;
----
what | n
rows | 3
(SELECT 1)

begin;
----
(BEGIN)

create table other (id int primary key references t);
----
(CREATE TABLE)

insert into other values (1);
----
(INSERT 0 1)

delete from t where id = 1;
----
ERROR 23503: update or delete on table "t" violates foreign key constraint "other_id_fkey" on table "other"
DETAIL: Key (id)=(1) is still referenced from table "other".

rollback;
----
(ROLLBACK)

select * from other;
----
ERROR 42P01: relation "other" does not exist
POSITION: 15

select count(*) from t;
----
count
3
(SELECT 1)

begin;
----
(BEGIN)

create table first (id int primary key);
----
(CREATE TABLE)

insert into first values (1), (2);
----
(INSERT 0 2)

create table second (id int primary key references first);
----
(CREATE TABLE)

insert into second values (2);
----
(INSERT 0 1)

create index on first (id);
----
(CREATE INDEX)

update t set v = 0 where id in (select id from second);
----
(UPDATE 1)

commit;
----
(COMMIT)

select f.id, s.id, t.v from first f left join second s on s.id = f.id join t on t.id = f.id order by 1;
----
id | id | v
1 | ∅ | 1
2 | 2 | 0
(SELECT 2)

begin;
----
(BEGIN)

update t set v = v + 1;
----
(UPDATE 3)

savepoint a;
----
(SAVEPOINT)

alter table t add column x int default 5;
----
(ALTER TABLE)

update t set x = 6 where id = 1;
----
(UPDATE 1)

insert into log values ('x', 1);
----
(INSERT 0 1)

select id, v, x from t order by id;
----
id | v | x
1 | 2 | 6
2 | 1 | 5
3 | 4 | 5
(SELECT 3)

rollback to a;
----
(ROLLBACK)

select * from t order by id;
----
id | v | w
1 | 2 | ∅
2 | 1 | 20
3 | 4 | 30
(SELECT 3)

insert into log values ('after', 2);
----
(INSERT 0 1)

create unique index log_n on log (n);
----
(CREATE INDEX)

commit;
----
(COMMIT)

select * from log order by what;
----
what | n
after | 2
rows | 3
(SELECT 2)

insert into log values ('twice', 2);
----
ERROR 23505: duplicate key value violates unique constraint "log_n"
DETAIL: Key (n)=(2) already exists.

begin;
----
(BEGIN)

delete from log where n = 2;
----
(DELETE 1)

drop table log;
----
(DROP TABLE)

insert into t values (9, 9);
----
(INSERT 0 1)

commit;
----
(COMMIT)

select * from log;
----
ERROR 42P01: relation "log" does not exist
POSITION: 15

select id, v from t order by id;
----
id | v
1 | 2
2 | 1
3 | 4
9 | 9
(SELECT 4)

begin;
----
(BEGIN)

insert into t values (10, 10);
----
(INSERT 0 1)

truncate t cascade;
----
(TRUNCATE TABLE)

insert into t values (11, 11);
----
(INSERT 0 1)

commit;
----
(COMMIT)

select id, v from t;
----
id | v
11 | 11
(SELECT 1)

begin;
----
(BEGIN)

alter table t rename column v to value;
----
(ALTER TABLE)

update t set value = 12;
----
(UPDATE 1)

create table if not exists t (id int);
----
(CREATE TABLE)

commit;
----
(COMMIT)

select id, value from t;
----
id | value
11 | 12
(SELECT 1)

begin;
----
(BEGIN)

create table if not exists t (id int);
----
(CREATE TABLE)

insert into t values (13, 13);
----
(INSERT 0 1)

commit;
----
(COMMIT)

select id, value from t order by id;
----
id | value
11 | 12
13 | 13
(SELECT 2)

