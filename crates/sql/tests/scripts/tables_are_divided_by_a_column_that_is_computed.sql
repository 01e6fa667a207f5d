create database place primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 place
create table users (id int primary key, city text not null, name text unique);
----
(CREATE TABLE)

insert into users select g, (array['new york', 'paris', 'tokyo', 'boston'])[g % 4 + 1], 'user ' || g from generate_series(1, 1000) as s(g);
----
(INSERT 0 1000)

create index on users (city) storing (name);
----
(CREATE INDEX)

-- As CockroachDB's documentation does it.
alter table users add column region crdb_internal_region as (case when city in ('new york', 'boston') then 'us-east1' when city = 'tokyo' then 'asia-northeast1' else 'europe-west1' end) stored not null;
----
(ALTER TABLE)

show columns from users;
----
column_name | data_type | is_nullable | column_default | generation_expression | indices | is_hidden
id | integer | f | ∅ | ∅ | {users_pkey} | f
city | text | f | ∅ | ∅ | {users_pkey,users_city_idx} | f
name | text | t | ∅ | ∅ | {users_pkey,users_name_key,users_city_idx} | f
region | crdb_internal_region | f | ∅ | CASE WHEN city IN ('new york', 'boston') THEN 'us-east1' WHEN city = 'tokyo' THEN 'asia-northeast1' ELSE 'europe-west1' END | {users_pkey} | f
(SHOW 4)

select region, count(*) from users group by region order by region;
----
region | count
asia-northeast1 | 250
europe-west1 | 250
us-east1 | 500
(SELECT 3)

alter table users set locality regional by row as region;
----
(ALTER TABLE)

show locality from table users;
----
table_name | locality
users | REGIONAL BY ROW AS region
(SHOW 1)

select region, city, count(*) from users group by region, city order by region, city;
----
region | city | count
asia-northeast1 | tokyo | 250
europe-west1 | paris | 250
us-east1 | boston | 250
us-east1 | new york | 250
(SELECT 4)

update users set city = 'paris' where id = 2 returning region;
----
region
europe-west1
(UPDATE 1)

insert into users values (1001, 'tokyo', 'user 1001') returning region;
----
region
asia-northeast1
(INSERT 0 1)

insert into users values (1002, 'tokyo', 'user 1001');
----
ERROR 23505: duplicate key value violates unique constraint "users_name_key"
DETAIL: Key (name)=(user 1001) already exists.

select id, region from users where name = 'user 1001';
----
id | region
1001 | asia-northeast1
(SELECT 1)

-- A table that is divided already, and one that is everywhere.
alter table users add column key uuid not null default gen_random_uuid() unique, add column code text as (upper(city)) stored;
----
(ALTER TABLE)

select count(*), count(distinct key) from users;
----
count | count
1001 | 1001
(SELECT 1)

select code, count(*) from users where region = 'asia-northeast1' group by code;
----
code | count
TOKYO | 250
(SELECT 1)

create table codes (code text primary key) locality global;
----
(CREATE TABLE)

insert into codes values ('a'), ('b');
----
(INSERT 0 2)

alter table codes add column n int generated always as identity, add column long text as (code || code) stored;
----
(ALTER TABLE)

select * from codes order by code;
----
code | n | long
a | 1 | aa
b | 2 | bb
(SELECT 2)

-- A city of no region.
create table visits (id int primary key, city text);
----
(CREATE TABLE)

insert into visits values (1, 'tokyo'), (2, 'atlantis');
----
(INSERT 0 2)

alter table visits add column region crdb_internal_region as (case city when 'tokyo' then 'asia-northeast1' else city end) stored;
----
ERROR 22P02: invalid input value for enum crdb_internal_region: "atlantis"
HINT: valid regions: asia-northeast1, europe-west1, us-east1

select region from visits;
----
ERROR 42703: column "region" does not exist
POSITION: 8

alter table visits add column region crdb_internal_region as (case city when 'tokyo' then 'asia-northeast1' end) stored not null;
----
ERROR 23502: column "region" of relation "visits" contains null values

alter table visits add column region crdb_internal_region as (case city when 'tokyo' then 'asia-northeast1' end) stored;
----
(ALTER TABLE)

alter table visits set locality regional by row as region;
----
ERROR 42P16: column "region" in REGIONAL BY ROW AS must be NOT NULL
HINT: ALTER TABLE … ALTER COLUMN … SET NOT NULL.

alter table visits alter column region set not null;
----
ERROR 23502: column "region" of relation "visits" contains null values

update visits set city = 'tokyo';
----
(UPDATE 2)

alter table visits alter column region set not null;
----
(ALTER TABLE)

alter table visits set locality regional by row as region;
----
(ALTER TABLE)

select * from visits order by id;
----
id | city | region
1 | tokyo | asia-northeast1
2 | tokyo | asia-northeast1
(SELECT 2)

-- The gateway of the statement, for every row.
-- session: europe-west1 place
alter table visits add column seen crdb_internal_region default gateway_region()::crdb_internal_region, add column by_id int default unique_rowid() % 1;
----
(ALTER TABLE)

insert into visits (id, city) values (3, 'tokyo');
----
(INSERT 0 1)

-- session: us-east1 place
insert into visits (id, city) values (4, 'tokyo');
----
(INSERT 0 1)

select * from visits order by id;
----
id | city | region | seen | by_id
1 | tokyo | asia-northeast1 | europe-west1 | 0
2 | tokyo | asia-northeast1 | europe-west1 | 0
3 | tokyo | asia-northeast1 | europe-west1 | 0
4 | tokyo | asia-northeast1 | us-east1 | 0
(SELECT 4)

-- What has its own work to do is done alone.
begin;
----
(BEGIN)

alter table visits add column e int as (id + 1) stored;
----
(ALTER TABLE)

create index on visits (e);
----
ERROR 55000: column "e" of relation "visits" is being added
HINT: Try again when that is done: SHOW JOBS tells how far it is.

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter table visits add column e int as (id + 1) stored;
----
(ALTER TABLE)

alter table visits add unique (e);
----
ERROR 55000: column "e" of relation "visits" is being added
HINT: Try again when that is done: SHOW JOBS tells how far it is.

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter table visits add column e int as (id + 1) stored;
----
(ALTER TABLE)

alter table visits set locality global;
----
ERROR 55000: column "e" of relation "visits" is being added
HINT: Try again when that is done: SHOW JOBS tells how far it is.

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter table visits add column e int as (id + 1) stored;
----
(ALTER TABLE)

alter table visits rename column e to f;
----
ERROR 55000: column "e" of relation "visits" is being added
HINT: Try again when that is done: SHOW JOBS tells how far it is.

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter table visits add column e int as (id + 1) stored;
----
(ALTER TABLE)

alter table visits alter column e drop not null;
----
ERROR 55000: column "e" of relation "visits" is being added
HINT: Try again when that is done: SHOW JOBS tells how far it is.

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter table visits add column e int as (id + 1) stored;
----
(ALTER TABLE)

alter table visits drop column e;
----
ERROR 55000: column "e" of relation "visits" is being added
HINT: Try again when that is done: SHOW JOBS tells how far it is.

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter table visits add column e int as (id + 1) stored;
----
(ALTER TABLE)

alter table visits add column e int;
----
ERROR 42701: column "e" of relation "visits" already exists

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter table visits add column e int as (id + 1) stored;
----
(ALTER TABLE)

select e from visits;
----
ERROR 42703: column "e" does not exist
POSITION: 8

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter table visits add column e int as (id + 1) stored;
----
(ALTER TABLE)

insert into visits (id, city, e) values (5, 'tokyo', 6);
----
ERROR 42703: column "e" of relation "visits" does not exist
POSITION: 31

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter table visits add column e int as (id + 1) stored;
----
(ALTER TABLE)

insert into visits (id, city) values (5, 'tokyo') returning *;
----
id | city | region | seen | by_id
5 | tokyo | asia-northeast1 | us-east1 | 0
(INSERT 0 1)

alter table visits add column f uuid default gen_random_uuid();
----
(ALTER TABLE)

commit;
----
(COMMIT)

select id, e, f is not null as has_f from visits order by id;
----
id | e | has_f
1 | 2 | t
2 | 3 | t
3 | 4 | t
4 | 5 | t
5 | 6 | t
(SELECT 5)

create table keyless (v int);
----
(CREATE TABLE)

insert into keyless values (1), (2);
----
(INSERT 0 2)

begin;
----
(BEGIN)

alter table keyless add column e uuid default gen_random_uuid();
----
(ALTER TABLE)

alter table keyless add primary key (v);
----
ERROR 55000: column "e" of relation "keyless" is being added
HINT: Try again when that is done: SHOW JOBS tells how far it is.

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter table keyless add primary key (v);
----
(ALTER TABLE)

alter table keyless add column e uuid default gen_random_uuid();
----
ERROR 55000: primary key "keyless_pkey" of table "keyless" is being built
HINT: Add the column when that is done.

rollback;
----
(ROLLBACK)

alter table keyless add primary key (v, w), add column e uuid default gen_random_uuid(), add column w int as (v) stored;
----
ERROR 42703: column "w" named in key does not exist

alter table keyless add column w serial, add primary key (v, w), add column e uuid default gen_random_uuid();
----
(ALTER TABLE)

select v, w, count(e) from keyless group by v, w order by v;
----
v | w | count
1 | 1 | 1
2 | 2 | 1
(SELECT 2)

-- What fails afterwards takes the columns along.
begin;
----
(BEGIN)

insert into visits (id, city) values (6, 'tokyo');
----
(INSERT 0 1)

alter table visits add column g int default nextval('none');
----
ERROR 42P01: relation "none" does not exist

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

insert into visits (id, city) values (6, 'tokyo');
----
(INSERT 0 1)

alter table visits add column g uuid default gen_random_uuid();
----
(ALTER TABLE)

alter table visits add column h int as (10 / (id - 3)) stored;
----
(ALTER TABLE)

commit;
----
ERROR XXA00: transaction committed but schema change aborted with error: (22012): division by zero
DETAIL: The work that a schema change needs after its transaction failed.
HINT: What the transaction did to rows is committed. Changes of the schema that need no further work are, too; look at SHOW JOBS.

select g from visits;
----
ERROR 42703: column "g" does not exist
POSITION: 8

select h from visits;
----
ERROR 42703: column "h" does not exist
POSITION: 8

select count(*) from visits where id = 6;
----
count
1
(SELECT 1)

alter table visits add column i serial, add column h int as (10 / (id - 3)) stored;
----
ERROR 22012: division by zero

show sequences;
----
sequence_schema | sequence_name
public | codes_n_seq
public | keyless_w_seq
(SHOW 2)

alter table codes add column x serial, rename column n to number;
----
(ALTER TABLE)

select code, number, x from codes order by code;
----
code | number | x
a | 1 | 1
b | 2 | 2
(SELECT 2)

alter table codes add column w uuid default gen_random_uuid(), drop column w;
----
(ALTER TABLE)

select code, number, x from codes order by code;
----
code | number | x
a | 1 | 1
b | 2 | 2
(SELECT 2)

