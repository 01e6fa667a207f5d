-- Columns: a hidden one is read and written by name.
create table t (id int primary key, a int, b int not visible, c int default 7);
----
(CREATE TABLE)

insert into t values (1, 10, 100), (2, 20, 200);
----
(INSERT 0 2)

select *, b from t order by id;
----
id | a | c | b
1 | 10 | 100 | ∅
2 | 20 | 200 | ∅
(SELECT 2)

alter table t alter column b set visible;
----
(ALTER TABLE)

alter table t alter column c set not visible;
----
(ALTER TABLE)

select * from t order by id;
----
id | a | b
1 | 10 | ∅
2 | 20 | ∅
(SELECT 2)

insert into t values (3, 30, 300);
----
(INSERT 0 1)

select id, a, b, c from t order by id;
----
id | a | b | c
1 | 10 | ∅ | 100
2 | 20 | ∅ | 200
3 | 30 | 300 | 7
(SELECT 3)

show create table t;
----
table_name | create_statement
t | CREATE TABLE public.t (
    id integer NOT NULL,
    a integer,
    b integer,
    c integer NOT VISIBLE DEFAULT 7,
    CONSTRAINT t_pkey PRIMARY KEY (id)
);
(SHOW 1)

alter table t alter column nothing set visible;
----
ERROR 42703: column "nothing" of relation "t" does not exist

alter table if exists nowhere alter column a set not visible;
----
(ALTER TABLE)

-- A hidden column that is computed has its value in the rows that were there before.
alter table t add column d int not visible generated always as (a + 1) stored;
----
(ALTER TABLE)

select id, d from t order by id;
----
id | d
1 | 11
2 | 21
3 | 31
(SELECT 3)

alter table t add column e int not visible generated always as (d + 1) stored;
----
ERROR 42P16: cannot use generated column "d" in column generation expression
DETAIL: A generated column cannot reference another generated column.

create table keyed (id int8 primary key default unique_rowid(), a int);
----
(CREATE TABLE)

alter table keyed alter column id set not visible;
----
ERROR 0A000: column "id" cannot be made not visible
DETAIL: It would be taken for the row id of a table without a primary key.

create table rowid_alone (a int);
----
(CREATE TABLE)

insert into rowid_alone values (1);
----
(INSERT 0 1)

alter table rowid_alone alter column rowid set visible;
----
(ALTER TABLE)

select a, rowid is not null as has_one from rowid_alone;
----
a | has_one
1 | t
(SELECT 1)

-- Indexes: a hidden one answers no query, and is unique all the same.
create unique index t_a on t (a) not visible;
----
(CREATE INDEX)

create index t_b on t (b);
----
(CREATE INDEX)

explain (costs off) select id from t where a = 10;
----
QUERY PLAN
Seq Scan on t
  Filter: (a = 10)
Regions: us-east1
(EXPLAIN)

insert into t values (4, 10, 400);
----
ERROR 23505: duplicate key value violates unique constraint "t_a"
DETAIL: Key (a)=(10) already exists.

insert into t values (4, 10, 400) on conflict (a) do nothing;
----
(INSERT 0 0)

show indexes from t;
----
table_name | index_name | non_unique | seq_in_index | column_name | direction | storing | implicit | visible
t | t_pkey | f | 1 | id | ASC | f | f | t
t | t_pkey | f | 2 | a | N/A | t | f | t
t | t_pkey | f | 3 | b | N/A | t | f | t
t | t_a | f | 1 | a | ASC | f | f | f
t | t_b | t | 1 | b | ASC | f | f | t
(SHOW 5)

select indexdef from pg_indexes where tablename = 't' order by indexname;
----
indexdef
CREATE UNIQUE INDEX t_a ON public.t USING btree (a) NOT VISIBLE
CREATE INDEX t_b ON public.t USING btree (b)
CREATE UNIQUE INDEX t_pkey ON public.t USING btree (id)
(SELECT 3)

alter index t_a visible;
----
(ALTER INDEX)

explain (costs off) select id from t where a = 10;
----
QUERY PLAN
Point Lookup using t_a on t
  Index Cond: (a = 10)
Regions: us-east1
(EXPLAIN)

alter index t@t_b not visible;
----
(ALTER INDEX)

explain (costs off) select id from t where b = 100;
----
QUERY PLAN
Seq Scan on t
  Filter: (b = 100)
Regions: us-east1
(EXPLAIN)

alter index t@t_pkey not visible;
----
ERROR 0A000: a primary index cannot be made not visible
DETAIL: It holds the rows.

alter index t@nothing visible;
----
ERROR 42704: index "nothing" of table "t" does not exist

alter index if exists t@nothing not visible;
----
(ALTER INDEX)

alter index t_a set (fillfactor = 70);
----
ERROR 0A000: ALTER INDEX … SET is not supported

create table u (a int, b int, index u_a (a) not visible, unique index u_b (b) visible);
----
(CREATE TABLE)

show create table u;
----
table_name | create_statement
u | CREATE TABLE public.u (
    a integer,
    b integer
);
CREATE INDEX u_a ON public.u USING btree (a) NOT VISIBLE;
CREATE UNIQUE INDEX u_b ON public.u USING btree (b);
(SHOW 1)

create table referring (a int references t (a));
----
(CREATE TABLE)

alter index t_a not visible;
----
(ALTER INDEX)

insert into referring values (10);
----
(INSERT 0 1)

insert into referring values (11);
----
ERROR 23503: insert or update on table "referring" violates foreign key constraint "referring_a_fkey"
DETAIL: Key (a)=(11) is not present in table "t".

-- Indexes may be named with their tables.
alter index t@t_b rename to t_bb;
----
(ALTER INDEX)

drop index u@t_bb;
----
ERROR 42704: index "t_bb" of table "u" does not exist

drop index if exists u@t_bb, t@t_bb;
----
(DROP INDEX)

drop index u@u_a;
----
(DROP INDEX)

