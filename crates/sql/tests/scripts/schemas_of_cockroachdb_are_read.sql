create database movr primary region "us-east1" regions "europe-west1", "asia-northeast1" survive region failure;
----
(CREATE DATABASE)

-- session: us-east1 movr
-- As cockroach dumps it: SHOW CREATE TABLE.
CREATE TABLE public.users (
	id UUID NOT NULL,
	city VARCHAR NOT NULL,
	name STRING(40) NULL,
	credit_card BYTES NULL,
	at TIMESTAMPTZ NULL DEFAULT '2026-01-01 00:00:00+00:00':::TIMESTAMPTZ,
	rowid INT8 NOT VISIBLE NOT NULL DEFAULT unique_rowid(),
	crdb_region public.crdb_internal_region NOT VISIBLE NOT NULL DEFAULT default_to_database_primary_region(gateway_region())::public.crdb_internal_region,
	CONSTRAINT users_pkey PRIMARY KEY (city ASC, id ASC),
	INDEX users_name_idx (name ASC) STORING (credit_card),
	UNIQUE INDEX users_card_key (credit_card DESC),
	INDEX (at),
	FAMILY "primary" (id, city, name, credit_card, rowid, crdb_region),
	FAMILY f2 (at)
) LOCALITY REGIONAL BY ROW;
----
(CREATE TABLE)

show create table users;
----
table_name | create_statement
users | CREATE TABLE public.users (
    id uuid NOT NULL,
    city character varying NOT NULL,
    name character varying(40),
    credit_card bytea,
    at timestamp with time zone DEFAULT '2026-01-01 00:00:00+00:00'::TIMESTAMPTZ,
    rowid bigint NOT VISIBLE NOT NULL DEFAULT unique_rowid(),
    CONSTRAINT users_pkey PRIMARY KEY (city, id)
) LOCALITY REGIONAL BY ROW;
CREATE INDEX users_name_idx ON public.users USING btree (name) INCLUDE (credit_card);
CREATE UNIQUE INDEX users_card_key ON public.users USING btree (credit_card DESC);
CREATE INDEX users_at_idx ON public.users USING btree (at);
(SHOW 1)

show indexes from users;
----
table_name | index_name | non_unique | seq_in_index | column_name | direction | storing | implicit | visible
users | users_pkey | f | 1 | city | ASC | f | f | t
users | users_pkey | f | 2 | id | ASC | f | f | t
users | users_pkey | f | 3 | name | N/A | t | f | t
users | users_pkey | f | 4 | credit_card | N/A | t | f | t
users | users_pkey | f | 5 | at | N/A | t | f | t
users | users_name_idx | t | 1 | name | ASC | f | f | t
users | users_name_idx | t | 2 | credit_card | N/A | t | f | t
users | users_card_key | f | 1 | credit_card | DESC | f | f | t
users | users_at_idx | t | 1 | at | ASC | f | f | t
(SHOW 9)

insert into users (id, city, name, rowid) values ('00000000-0000-4000-8000-000000000001', 'paris', 'ann', 7);
----
(INSERT 0 1)

select * from users;
----
id | city | name | credit_card | at
00000000-0000-4000-8000-000000000001 | paris | ann | ∅ | 2026-01-01 00:00:00+00
(SELECT 1)

select name, rowid, crdb_region from users@users_name_idx where name = 'ann';
----
name | rowid | crdb_region
ann | 7 | us-east1
(SELECT 1)

select count(*) from public.users@{FORCE_INDEX=users_pkey} as u join users@users_pkey as v using (id);
----
count
1
(SELECT 1)

-- Columns may be called like the words.
create table words (family text, index int primary key, "unique" int, visible bool);
----
(CREATE TABLE)

create table more (family varchar(10), index varchar(10) not null family, k int primary key using hash with (bucket_count = 8), index (family), family (k, index), check (k > 0));
----
(CREATE TABLE)

show create table more;
----
table_name | create_statement
more | CREATE TABLE public.more (
    family character varying(10),
    index character varying(10) NOT NULL,
    k integer NOT NULL,
    CONSTRAINT more_pkey PRIMARY KEY (k),
    CONSTRAINT more_k_check CHECK ((k > 0))
) LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
CREATE INDEX more_family_idx ON public.more USING btree (family);
(SHOW 1)

create table bad (k int primary key, j jsonb, inverted index (j));
----
ERROR 0A000: inverted indexes are not supported
POSITION: 47

create table bad (k int primary key, index b (nosuch));
----
ERROR 42703: column "nosuch" does not exist

create table if not exists words (k int primary key, index b (nosuch));
----
(CREATE TABLE)

alter table words add column x string not visible default 'a', add column y int create family g, add column if not exists z string create if not exists family h;
----
(ALTER TABLE)

insert into words (index) values (1);
----
(INSERT 0 1)

select * from words;
----
family | index | unique | visible | y | z
∅ | 1 | ∅ | ∅ | ∅ | ∅
(SELECT 1)

select x, z from words;
----
x | z
a | ∅
(SELECT 1)

create table hidden (a int not visible primary key, b int);
----
(CREATE TABLE)

insert into hidden (a, b) values (1, 2);
----
(INSERT 0 1)

select * from hidden;
----
b
2
(SELECT 1)

create index on hidden (a, b);
----
(CREATE INDEX)

show create table hidden;
----
table_name | create_statement
hidden | CREATE TABLE public.hidden (
    a integer NOT VISIBLE NOT NULL,
    b integer,
    CONSTRAINT hidden_pkey PRIMARY KEY (a)
) LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
CREATE INDEX hidden_a_b_idx ON public.hidden USING btree (a, b);
(SHOW 1)

-- UPSERT.
create table kv (k int primary key, v int default 5, w text, g int as (v + 1) stored, at int on update 9);
----
(CREATE TABLE)

upsert into kv (k, v, w) values (1, 1, 'a'), (2, 2, 'b');
----
(INSERT 0 2)

upsert into kv (k, w) values (1, 'c') returning *;
----
k | v | w | g | at
1 | 1 | c | 2 | 9
(INSERT 0 1)

upsert into kv values (2), (3, 30, 'd');
----
ERROR 42601: VALUES lists must all be the same length
POSITION: 23

select * from kv order by k;
----
k | v | w | g | at
1 | 1 | c | 2 | 9
2 | 2 | b | 3 | ∅
(SELECT 2)

upsert into kv (k) values (1), (4);
----
(INSERT 0 1)

upsert into kv (k, v) select k + 1, v * 10 from kv where k < 3;
----
(INSERT 0 2)

select * from kv order by k;
----
k | v | w | g | at
1 | 1 | c | 2 | 9
2 | 10 | b | 11 | 9
3 | 20 | ∅ | 21 | ∅
4 | 5 | ∅ | 6 | ∅
(SELECT 4)

with n as (select 9 as k) upsert into kv (k, v) select k, 90 from n;
----
(INSERT 0 1)

explain upsert into kv (k, v) values (1, 2);
----
QUERY PLAN
Insert on kv
  Regions: us-east1 (round trips between regions: 0)
  ->  Result
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

prepare p as upsert into kv (k, v) values ($1, $2);
----
(PREPARE)

execute p (9, 91);
----
(INSERT 0 1)

select v from kv where k = 9;
----
v
91
(SELECT 1)

upsert into kv (k, v) values (1, 2) on conflict (k) do nothing;
----
ERROR 42601: syntax error at or near "ON"

upsert into kv (k, v) values (1, 1), (1, 2);
----
ERROR 21000: ON CONFLICT DO UPDATE command cannot affect row a second time
HINT: Ensure that no rows proposed for insertion within the same command have duplicate constrained values.

create table heap (v int);
----
(CREATE TABLE)

upsert into heap values (1), (1);
----
(INSERT 0 2)

select count(*) from heap;
----
count
2
(SELECT 1)

-- What can be shown.
show create database movr;
----
database_name | create_statement
movr | CREATE DATABASE movr PRIMARY REGION "us-east1" REGIONS = "asia-northeast1", "europe-west1", "us-east1" SURVIVE REGION FAILURE
(SHOW 1)

show enums;
----
schema | name | values | owner
public | crdb_internal_region | {asia-northeast1,europe-west1,us-east1} | root
(SHOW 1)

show types;
----
schema | name | owner
public | crdb_internal_region | root
(SHOW 1)

select enum_range(null::crdb_internal_region), enum_first(null::crdb_internal_region), enum_last(null::crdb_internal_region);
----
enum_range | enum_first | enum_last
{asia-northeast1,europe-west1,us-east1} | asia-northeast1 | us-east1
(SELECT 1)

show partitions from index users@users_name_idx;
----
table_name | partition_name | column_names | index_name | partition_value
users | asia-northeast1 | crdb_region | users_name_idx | ('asia-northeast1')
users | europe-west1 | crdb_region | users_name_idx | ('europe-west1')
users | us-east1 | crdb_region | users_name_idx | ('us-east1')
(SHOW 3)

show partitions from index users@nosuch;
----
ERROR 42704: index "nosuch" does not exist

select count(*) > 0 from information_schema.tables;
----
?column?
t
(SELECT 1)

show partitions from database movr;
----
table_name | partition_name | column_names | index_name | partition_value
users | asia-northeast1 | crdb_region | users_pkey | ('asia-northeast1')
users | asia-northeast1 | crdb_region | users_name_idx | ('asia-northeast1')
users | asia-northeast1 | crdb_region | users_card_key | ('asia-northeast1')
users | asia-northeast1 | crdb_region | users_at_idx | ('asia-northeast1')
users | europe-west1 | crdb_region | users_pkey | ('europe-west1')
users | europe-west1 | crdb_region | users_name_idx | ('europe-west1')
users | europe-west1 | crdb_region | users_card_key | ('europe-west1')
users | europe-west1 | crdb_region | users_at_idx | ('europe-west1')
users | us-east1 | crdb_region | users_pkey | ('us-east1')
users | us-east1 | crdb_region | users_name_idx | ('us-east1')
users | us-east1 | crdb_region | users_card_key | ('us-east1')
users | us-east1 | crdb_region | users_at_idx | ('us-east1')
(SHOW 12)

show zone configuration from index users@users_pkey;
----
target | raw_config_sql
PARTITION "asia-northeast1" OF TABLE movr.public.users | ALTER PARTITION "asia-northeast1" OF TABLE movr.public.users CONFIGURE ZONE USING
	num_replicas = 5,
	num_voters = 5,
	constraints = '{+region=asia-northeast1: 2, +region=europe-west1: 1, +region=us-east1: 1}',
	voter_constraints = '{+region=asia-northeast1: 2}',
	lease_preferences = '[[+region=asia-northeast1]]'
PARTITION "europe-west1" OF TABLE movr.public.users | ALTER PARTITION "europe-west1" OF TABLE movr.public.users CONFIGURE ZONE USING
	num_replicas = 5,
	num_voters = 5,
	constraints = '{+region=asia-northeast1: 1, +region=europe-west1: 2, +region=us-east1: 1}',
	voter_constraints = '{+region=europe-west1: 2}',
	lease_preferences = '[[+region=europe-west1]]'
PARTITION "us-east1" OF TABLE movr.public.users | ALTER PARTITION "us-east1" OF TABLE movr.public.users CONFIGURE ZONE USING
	num_replicas = 5,
	num_voters = 5,
	constraints = '{+region=asia-northeast1: 1, +region=europe-west1: 1, +region=us-east1: 2}',
	voter_constraints = '{+region=us-east1: 2}',
	lease_preferences = '[[+region=us-east1]]'
(SHOW 3)

create table "Codes" (code text primary key) locality global;
----
(CREATE TABLE)

show zone configuration from table "Codes";
----
target | raw_config_sql
TABLE movr.public."Codes" | ALTER TABLE movr.public."Codes" CONFIGURE ZONE USING
	global_reads = true,
	num_replicas = 5,
	num_voters = 5,
	constraints = '{+region=asia-northeast1: 1, +region=europe-west1: 1, +region=us-east1: 2}',
	voter_constraints = '{+region=us-east1: 2}',
	lease_preferences = '[[+region=us-east1]]'
(SHOW 1)

drop table "Codes";
----
(DROP TABLE)

show job 1;
----
ERROR 42704: job with ID 1 does not exist
HINT: SHOW JOBS lists them.

alter table users configure zone using num_replicas = 5;
----
ERROR 0A000: CONFIGURE ZONE (replicas follow regions, survival goals and localities) is not supported

alter database movr configure zone using num_replicas = 5;
----
ERROR 0A000: CONFIGURE ZONE (replicas follow regions, survival goals and localities) is not supported

set cluster setting kv.rangefeed.enabled = true;
----
ERROR 0A000: SET CLUSTER SETTING is not supported

show cluster setting version;
----
ERROR 0A000: SHOW CLUSTER SETTING is not supported

-- What PostgreSQL reads otherwise stays what it was.
create table pg (family text primary key, a int default 1, visible bool, b int references words (index), unique (family, a), check (family <> ''), check (a > 0 or not visible), c bool generated always as (not visible) stored, family2 text references pg (family));
----
(CREATE TABLE)

alter table pg add unique (family), add constraint k check (not visible), add column u text generated always as (upper(family)) stored;
----
(ALTER TABLE)

insert into pg (family, a, visible) values ('x', 3, false);
----
(INSERT 0 1)

select@a from pg where@a = 3 order by@a;
----
?column?
3
(SELECT 1)

select distinct@a, case when@a > 2 then@a else@a end from pg group by@a;
----
?column? | case
3 | 3
(SELECT 1)

insert into kv values (500, 1);
----
(INSERT 0 1)

with x as (upsert into kv (k, v) values (1, 99) returning *) insert into kv (k, v) values (500, -1);
----
ERROR 0A000: UPSERT inside another statement is not supported
POSITION: 12

with x as (insert into kv (k) values (600) returning k) upsert into kv (k, v) select 500, k from x;
----
(INSERT 0 1)

select k, v from kv where k >= 500 order by k;
----
k | v
500 | 600
600 | 5
(SELECT 2)

