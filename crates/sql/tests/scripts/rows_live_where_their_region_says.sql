create database movr primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 movr
create table users (id uuid primary key default gen_random_uuid(), email text unique, name text) locality regional by row;
----
(CREATE TABLE)

create table rides (id int primary key, city text not null, region crdb_internal_region not null as (case when city like 'a%' then 'europe-west1' else 'us-east1' end) stored, fare int) locality regional by row as region;
----
(CREATE TABLE)

create index rides_fare on rides (fare desc) include (city);
----
(CREATE INDEX)

create table codes (code text primary key, percent int) locality global;
----
(CREATE TABLE)

create table plain (id int primary key, a int) locality regional by table in "europe-west1";
----
(CREATE TABLE)

show create table users;
----
table_name | create_statement
users | CREATE TABLE public.users (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    email text,
    name text,
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_email_key UNIQUE (email)
) LOCALITY REGIONAL BY ROW;
(SHOW 1)

show create table rides;
----
table_name | create_statement
rides | CREATE TABLE public.rides (
    id integer NOT NULL,
    city text NOT NULL,
    region crdb_internal_region NOT NULL GENERATED ALWAYS AS (CASE WHEN city LIKE 'a%' THEN 'europe-west1' ELSE 'us-east1' END) STORED,
    fare integer,
    CONSTRAINT rides_pkey PRIMARY KEY (id)
) LOCALITY REGIONAL BY ROW AS region;
CREATE INDEX rides_fare ON public.rides USING btree (fare DESC) INCLUDE (city);
(SHOW 1)

show create table codes;
----
table_name | create_statement
codes | CREATE TABLE public.codes (
    code text NOT NULL,
    percent integer,
    CONSTRAINT codes_pkey PRIMARY KEY (code)
) LOCALITY GLOBAL;
(SHOW 1)

show tables;
----
schema_name | table_name | type | owner | locality
public | codes | table | root | GLOBAL
public | plain | table | root | REGIONAL BY TABLE IN "europe-west1"
public | rides | table | root | REGIONAL BY ROW AS region
public | users | table | root | REGIONAL BY ROW
(SHOW 4)

show locality from table rides;
----
table_name | locality
rides | REGIONAL BY ROW AS region
(SHOW 1)

show partitions from table rides;
----
table_name | partition_name | column_names | index_name | partition_value
rides | asia-northeast1 | region | rides_pkey | ('asia-northeast1')
rides | asia-northeast1 | region | rides_fare | ('asia-northeast1')
rides | europe-west1 | region | rides_pkey | ('europe-west1')
rides | europe-west1 | region | rides_fare | ('europe-west1')
rides | us-east1 | region | rides_pkey | ('us-east1')
rides | us-east1 | region | rides_fare | ('us-east1')
(SHOW 6)

show columns from users;
----
column_name | data_type | is_nullable | column_default | generation_expression | indices | is_hidden
id | uuid | f | gen_random_uuid() | ∅ | {users_pkey} | f
email | text | t | ∅ | ∅ | {users_pkey,users_email_key} | f
name | text | t | ∅ | ∅ | {users_pkey} | f
crdb_region | crdb_internal_region | f | default_to_database_primary_region(gateway_region())::crdb_internal_region | ∅ | {users_pkey} | t
(SHOW 4)

select typname, typtype, typcategory from pg_type where typname = 'crdb_internal_region';
----
typname | typtype | typcategory
crdb_internal_region | e | E
(SELECT 1)

select enumlabel from pg_enum order by enumsortorder;
----
enumlabel
asia-northeast1
europe-west1
us-east1
(SELECT 3)

select column_name, data_type, is_nullable from information_schema.columns where table_name = 'users' order by ordinal_position;
----
column_name | data_type | is_nullable
id | uuid | NO
email | text | YES
name | text | YES
(SELECT 3)

select 'mars'::crdb_internal_region;
----
ERROR 22P02: invalid input value for enum crdb_internal_region: "mars"
HINT: valid regions: asia-northeast1, europe-west1, us-east1
POSITION: 8

select 'us-east1'::crdb_internal_region, pg_typeof('us-east1'::crdb_internal_region), 'us-east1'::text::crdb_internal_region::text;
----
crdb_internal_region | pg_typeof | text
us-east1 | crdb_internal_region | us-east1
(SELECT 1)

select gateway_region(), default_to_database_primary_region('mars'), default_to_database_primary_region('asia-northeast1');
----
gateway_region | default_to_database_primary_region | default_to_database_primary_region
us-east1 | us-east1 | asia-northeast1
(SELECT 1)

insert into users (id, email, name) values ('00000000-0000-4000-8000-000000000001', 'a@x', 'ann');
----
(INSERT 0 1)

-- session: europe-west1 movr
insert into users (id, email, name) values ('00000000-0000-4000-8000-000000000002', 'b@x', 'bob');
----
(INSERT 0 1)

insert into users (id, email, name, crdb_region) values ('00000000-0000-4000-8000-000000000003', 'c@x', 'cat', 'asia-northeast1');
----
(INSERT 0 1)

insert into users (email, crdb_region) values ('x', 'mars');
----
ERROR 22P02: invalid input value for enum crdb_internal_region: "mars"
HINT: valid regions: asia-northeast1, europe-west1, us-east1
POSITION: 53

insert into users (email, crdb_region) values ('x', null);
----
ERROR 23502: null value in column "crdb_region" of relation "users" violates not-null constraint
DETAIL: Failing row contains (00000000-0000-4001-ac57-6faf21467d1e, x, null).

select name, crdb_region from users order by name;
----
name | crdb_region
ann | us-east1
bob | europe-west1
cat | asia-northeast1
(SELECT 3)

select * from users where name = 'ann';
----
id | email | name
00000000-0000-4000-8000-000000000001 | a@x | ann
(SELECT 1)

select name from users where crdb_region = 'asia-northeast1';
----
name
cat
(SELECT 1)

select name from users where crdb_region in ('asia-northeast1', 'us-east1') order by name desc;
----
name
cat
ann
(SELECT 2)

select crdb_region, count(*) from users group by crdb_region order by 1;
----
crdb_region | count
asia-northeast1 | 1
europe-west1 | 1
us-east1 | 1
(SELECT 3)

select min(crdb_region), max(crdb_region) from users where crdb_region <> 'us-east1';
----
min | max
asia-northeast1 | europe-west1
(SELECT 1)

select name from users where crdb_region = gateway_region()::crdb_internal_region;
----
name
bob
(SELECT 1)

select name from users where crdb_region = 'mars';
----
ERROR 22P02: invalid input value for enum crdb_internal_region: "mars"
HINT: valid regions: asia-northeast1, europe-west1, us-east1
POSITION: 44

-- unique over all regions
insert into users (email, name) values ('a@x', 'eve');
----
ERROR 23505: duplicate key value violates unique constraint "users_email_key"
DETAIL: Key (email)=(a@x) already exists.

insert into users (id, email) values ('00000000-0000-4000-8000-000000000001', 'd@x');
----
ERROR 23505: duplicate key value violates unique constraint "users_pkey"
DETAIL: Key (id)=(00000000-0000-4000-8000-000000000001) already exists.

insert into users (email, name) values ('a@x', 'eve') on conflict (email) do update set name = excluded.name || '!' returning name, crdb_region;
----
name | crdb_region
eve! | us-east1
(INSERT 0 1)

insert into users (email, name) values ('c@x', 'eve') on conflict do nothing;
----
(INSERT 0 0)

update users set email = 'c@x' where name = 'bob';
----
ERROR 23505: duplicate key value violates unique constraint "users_email_key"
DETAIL: Key (email)=(c@x) already exists.

-- a row moves
update users set crdb_region = 'europe-west1' where name = 'cat' returning name, crdb_region;
----
name | crdb_region
cat | europe-west1
(UPDATE 1)

select name from users where crdb_region = 'asia-northeast1';
----
name
(SELECT 0)

select name from users where crdb_region = 'europe-west1' order by name;
----
name
bob
cat
(SELECT 2)

select name, crdb_region from users where email = 'c@x';
----
name | crdb_region
cat | europe-west1
(SELECT 1)

update users set crdb_region = 'us-east1', email = 'cc@x' where email = 'c@x';
----
(UPDATE 1)

select email, crdb_region from users where id = '00000000-0000-4000-8000-000000000003';
----
email | crdb_region
cc@x | us-east1
(SELECT 1)

insert into users (email) values ('cc@x');
----
ERROR 23505: duplicate key value violates unique constraint "users_email_key"
DETAIL: Key (email)=(cc@x) already exists.

insert into rides (id, city, fare) values (1, 'amsterdam', 5), (2, 'boston', 7), (3, 'athens', 6), (4, 'chicago', 8);
----
(INSERT 0 4)

insert into rides (id, city, region) values (9, 'x', 'us-east1');
----
ERROR 428C9: cannot insert a non-DEFAULT value into column "region"
DETAIL: Column "region" is a generated column.

select id, region from rides order by id;
----
id | region
1 | europe-west1
2 | us-east1
3 | europe-west1
4 | us-east1
(SELECT 4)

select id, region from rides order by id desc limit 2;
----
id | region
4 | us-east1
3 | europe-west1
(SELECT 2)

select fare, city, region from rides order by fare desc;
----
fare | city | region
8 | chicago | us-east1
7 | boston | us-east1
6 | athens | europe-west1
5 | amsterdam | europe-west1
(SELECT 4)

select fare from rides order by fare desc limit 1;
----
fare
8
(SELECT 1)

select id from rides where fare between 6 and 7 order by fare;
----
id
3
2
(SELECT 2)

select id from rides where city = 'amsterdam';
----
id
1
(SELECT 1)

select id, city from rides where id in (4, 1, 3) order by id;
----
id | city
1 | amsterdam
3 | athens
4 | chicago
(SELECT 3)

select id from rides where id = 1 and city = 'amsterdam';
----
id
1
(SELECT 1)

select id from rides where id = 1 and city = 'boston';
----
id
(SELECT 0)

insert into rides (id, city) values (1, 'boston');
----
ERROR 23505: duplicate key value violates unique constraint "rides_pkey"
DETAIL: Key (id)=(1) already exists.

update rides set city = 'austin' where id = 2 returning id, region;
----
id | region
2 | europe-west1
(UPDATE 1)

select id, region from rides where region = 'europe-west1' order by id;
----
id | region
1 | europe-west1
2 | europe-west1
3 | europe-west1
(SELECT 3)

delete from rides where id in (2, 3) returning id;
----
id
2
3
(DELETE 2)

select count(*) from rides;
----
count
2
(SELECT 1)

select r.id, u.name from rides r join users u on u.email = case r.id when 1 then 'a@x' else 'cc@x' end order by 1;
----
id | name
1 | eve!
4 | cat
(SELECT 2)

create table t (id int primary key, r crdb_internal_region not null default 'europe-west1', a int, unique (r, a)) locality regional by row as r;
----
(CREATE TABLE)

insert into t values (1, default, 1), (2, 'us-east1', 1);
----
(INSERT 0 2)

insert into t values (3, 'us-east1', 1);
----
ERROR 23505: duplicate key value violates unique constraint "t_r_a_key"
DETAIL: Key (r, a)=(us-east1, 1) already exists.

insert into t values (1, 'us-east1', 2);
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(1) already exists.

select * from t order by id;
----
id | r | a
1 | europe-west1 | 1
2 | us-east1 | 1
(SELECT 2)

create unique index on t (a);
----
ERROR 23505: could not create unique index "t_a_idx"
DETAIL: Key (a)=(1) is duplicated.

create index t_a on t (a);
----
(CREATE INDEX)

select id from t where a = 1 order by id;
----
id
1
2
(SELECT 2)

alter table t add column b int not null default 4;
----
(ALTER TABLE)

alter table t add constraint b_is_four check (b = 4);
----
(ALTER TABLE)

alter table t add constraint b_is_five check (b = 5);
----
ERROR 23514: check constraint "b_is_five" of relation "t" is violated by some row

alter table t alter column r drop not null;
----
ERROR 42P10: cannot drop NOT NULL of column "r" as it is used to store the region in a REGIONAL BY ROW table
HINT: Change the table's locality first.

alter table t alter column r type text;
----
ERROR 42P10: cannot change the type of column "r" as it is used to store the region in a REGIONAL BY ROW table
HINT: Change the table's locality first.

alter table t drop column r;
----
ERROR 42P10: cannot drop column "r" as it is used to store the region in a REGIONAL BY ROW table
HINT: Change the table's locality first.

alter table users drop column crdb_region;
----
ERROR 42P10: cannot drop column "crdb_region" as it is used to store the region in a REGIONAL BY ROW table
HINT: Change the table's locality first.

truncate t;
----
(TRUNCATE TABLE)

select count(*) from t;
----
count
0
(SELECT 1)

insert into t (id, r, a) values (1, 'us-east1', 1);
----
(INSERT 0 1)

drop table t;
----
(DROP TABLE)

insert into codes values ('x', 5);
----
(INSERT 0 1)

select * from codes;
----
code | percent
x | 5
(SELECT 1)

create table bad (id int) locality regional by row as nope;
----
ERROR 42703: column "nope" in REGIONAL BY ROW AS does not exist

create table bad (id int, r text) locality regional by row as r;
----
ERROR 42P16: cannot use column "r" which has type text in REGIONAL BY ROW
DETAIL: REGIONAL BY ROW must reference a column of type crdb_internal_region.

create table bad (id int, crdb_region text) locality regional by row;
----
ERROR 42P16: cannot use column "crdb_region" which has type text in REGIONAL BY ROW
DETAIL: REGIONAL BY ROW must reference a column of type crdb_internal_region.

create table bad (id int) locality regional by table in "mars";
----
ERROR 42602: region "mars" has not been added to database "movr"
HINT: valid regions: asia-northeast1, europe-west1, us-east1

-- session: us-east1 postgres
create table bad (id int) locality regional by row;
----
ERROR 42P16: cannot set LOCALITY on a table in a database that is not multi-region enabled
HINT: CREATE DATABASE … PRIMARY REGION makes a multi-region database.

create table bad (id int) locality global;
----
ERROR 42P16: cannot set LOCALITY on a table in a database that is not multi-region enabled
HINT: CREATE DATABASE … PRIMARY REGION makes a multi-region database.

create table bad (r crdb_internal_region);
----
ERROR 42704: type "crdb_internal_region" does not exist
DETAIL: The database has no regions.
HINT: ALTER DATABASE … SET PRIMARY REGION makes it a multi-region database.

select 'us-east1'::crdb_internal_region;
----
ERROR 42704: type "crdb_internal_region" does not exist
DETAIL: Database "postgres" has no regions.
HINT: ALTER DATABASE … SET PRIMARY REGION makes it a multi-region database.
POSITION: 8

select default_to_database_primary_region('us-east1');
----
ERROR 22023: current database "postgres" is not multi-region enabled

