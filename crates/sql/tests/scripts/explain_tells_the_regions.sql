create database far primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 far
create table users (id uuid primary key default gen_random_uuid(), email text unique, name text) locality regional by row;
----
(CREATE TABLE)

create table cities (id int, city text not null, region crdb_internal_region not null generated always as (case when city = 'ams' then 'europe-west1' else 'us-east1' end) stored, primary key (city, id), owner uuid references users) locality regional by row as region;
----
(CREATE TABLE)

create table codes (code text primary key, percent int) locality global;
----
(CREATE TABLE)

explain select * from users where id = '00000000-0000-4000-8000-000000000001';
----
QUERY PLAN
Point Lookup using users_pkey on users
  Index Cond: (id = '00000000-0000-4000-8000-000000000001')
  Regions: us-east1, else asia-northeast1, europe-west1 (round trips between regions: 0 to 1)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 0 to 1
(EXPLAIN)

explain select * from users where id = '00000000-0000-4000-8000-000000000001' and crdb_region = 'us-east1';
----
QUERY PLAN
Point Lookup using users_pkey on users
  Index Cond: (id = '00000000-0000-4000-8000-000000000001')
  Regions: us-east1 (round trips between regions: 0)
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

explain select name from users where crdb_region in ('us-east1', 'asia-northeast1');
----
QUERY PLAN
Seq Scan on users
  Regions: asia-northeast1, us-east1 (round trips between regions: 1)
Regions: asia-northeast1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

explain select name from users limit 1;
----
QUERY PLAN
Limit
  ->  Seq Scan on users
        Regions: us-east1, else asia-northeast1, europe-west1 (round trips between regions: 0 to 1)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 0 to 1
(EXPLAIN)

explain select name from users order by id limit 1;
----
QUERY PLAN
Limit
  ->  Seq Scan on users
        Regions: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

explain select crdb_region, email from users order by email;
----
QUERY PLAN
Index Only Scan using users_email_key on users
  Regions: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

explain select * from cities where city = 'ams' and id = 1;
----
QUERY PLAN
Point Lookup using cities_pkey on cities
  Index Cond: (city = 'ams') AND (id = 1)
  Regions: europe-west1 (round trips between regions: 1)
Regions: europe-west1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

explain select * from cities where city = 'nyc' and id = 1;
----
QUERY PLAN
Point Lookup using cities_pkey on cities
  Index Cond: (city = 'nyc') AND (id = 1)
  Regions: us-east1 (round trips between regions: 0)
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

explain select * from codes where code = 'x';
----
QUERY PLAN
Point Lookup using codes_pkey on codes
  Index Cond: (code = 'x')
  Regions: us-east1 (GLOBAL, read here) (round trips between regions: 0)
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

explain select c.id, u.name from cities c join users u on u.id = c.owner where c.city = 'nyc' and c.id = 1;
----
QUERY PLAN
Lookup Join
  ->  Point Lookup using cities_pkey on cities c
        Index Cond: (city = 'nyc') AND (id = 1)
        Regions: us-east1 (round trips between regions: 0)
  ->  Point Lookup using users_pkey on users u
        Index Cond: (id = outer #1)
        Regions: us-east1, else asia-northeast1, europe-west1 (round trips between regions: 0 to 1)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 0 to 1
(EXPLAIN)

explain insert into users (name, email) values ('a', 'x');
----
QUERY PLAN
Insert on users
  Regions: us-east1 (round trips between regions: 0)
  Unique users_email_key: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
  ->  Result
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

explain insert into users (name) values ('a');
----
QUERY PLAN
Insert on users
  Regions: us-east1 (round trips between regions: 0)
  ->  Result
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

explain insert into users (id, name) values ('00000000-0000-4000-8000-000000000001', 'a');
----
QUERY PLAN
Insert on users
  Regions: us-east1 (round trips between regions: 0)
  Unique users_pkey: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
  ->  Result
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

explain insert into cities (id, city) values (1, 'nyc');
----
QUERY PLAN
Insert on cities
  Regions: of the values (round trips between regions: 0 to 1)
  Foreign Key cities_owner_fkey: us-east1, else asia-northeast1, europe-west1 (round trips between regions: 0 to 1)
  ->  Result
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 0 to 1
(EXPLAIN)

explain update users set name = 'b' where id = '00000000-0000-4000-8000-000000000001';
----
QUERY PLAN
Update on users
  ->  Point Lookup using users_pkey on users
        Index Cond: (id = '00000000-0000-4000-8000-000000000001')
        Locks rows
        Regions: us-east1, else asia-northeast1, europe-west1 (round trips between regions: 0 to 1)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 0 to 1
(EXPLAIN)

explain update users set crdb_region = 'europe-west1', email = 'x' where crdb_region = 'us-east1';
----
QUERY PLAN
Update on users
  Moves Rows: to the regions of the values (round trips between regions: 0 to 1)
  Unique users_email_key: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
  ->  Seq Scan on users
        Locks rows
        Regions: us-east1 (round trips between regions: 0)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

explain delete from users where id = '00000000-0000-4000-8000-000000000001';
----
QUERY PLAN
Delete on users
  Foreign Key cities_owner_fkey: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
  ->  Point Lookup using users_pkey on users
        Index Cond: (id = '00000000-0000-4000-8000-000000000001')
        Locks rows
        Regions: us-east1, else asia-northeast1, europe-west1 (round trips between regions: 0 to 1)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

insert into users (id, email) values ('00000000-0000-4000-8000-000000000001', 'us');
----
(INSERT 0 1)

insert into users (id, email, crdb_region) values ('00000000-0000-4000-8000-000000000002', 'eu', 'europe-west1');
----
(INSERT 0 1)

set enforce_home_region = on;
----
(SET)

select email from users where id = '00000000-0000-4000-8000-000000000001';
----
email
us
(SELECT 1)

select email from users where id = '00000000-0000-4000-8000-000000000002';
----
ERROR 42898: query is not running in its home region
DETAIL: It would look for rows in regions "asia-northeast1", "europe-west1"; the gateway is in "us-east1".
HINT: Say which region's rows are meant, run it where they are at home, or SET enforce_home_region = off.

select email from users where crdb_region = 'us-east1';
----
email
us
(SELECT 1)

select email from users;
----
ERROR 42898: query is not running in its home region
DETAIL: It would look for rows in regions "asia-northeast1", "europe-west1"; the gateway is in "us-east1".
HINT: Say which region's rows are meant, run it where they are at home, or SET enforce_home_region = off.

select email from users limit 1;
----
email
us
(SELECT 1)

insert into cities (id, city) values (1, 'nyc');
----
(INSERT 0 1)

insert into cities (id, city) values (1, 'ams');
----
ERROR 42898: query is not running in its home region
DETAIL: It would read or write rows of region "europe-west1"; the gateway is in "us-east1".
HINT: Run it from region "europe-west1", say which region's rows are meant, or SET enforce_home_region = off.

insert into users (email) values ('x');
----
ERROR 42898: query is not running in its home region
DETAIL: It would look for rows in regions "asia-northeast1", "europe-west1"; the gateway is in "us-east1".
HINT: Say which region's rows are meant, run it where they are at home, or SET enforce_home_region = off.

select * from codes;
----
code | percent
(SELECT 0)

update users set crdb_region = 'europe-west1' where id = '00000000-0000-4000-8000-000000000001';
----
ERROR 42898: query is not running in its home region
DETAIL: It would read or write rows of region "europe-west1"; the gateway is in "us-east1".
HINT: Run it from region "europe-west1", say which region's rows are meant, or SET enforce_home_region = off.

-- session: europe-west1 far
set enforce_home_region = on;
----
(SET)

select * from codes;
----
code | percent
(SELECT 0)

update codes set percent = 1 where code = 'none';
----
ERROR 42898: query is not running in its home region
DETAIL: It would read or write rows of region "us-east1"; the gateway is in "europe-west1".
HINT: Run it from region "us-east1", say which region's rows are meant, or SET enforce_home_region = off.

update codes set percent = 1;
----
ERROR 42898: query is not running in its home region
DETAIL: It would read or write rows of region "us-east1"; the gateway is in "europe-west1".
HINT: Run it from region "us-east1", say which region's rows are meant, or SET enforce_home_region = off.

delete from codes where code = 'none' or code = 'some';
----
ERROR 42898: query is not running in its home region
DETAIL: It would read or write rows of region "us-east1"; the gateway is in "europe-west1".
HINT: Run it from region "us-east1", say which region's rows are meant, or SET enforce_home_region = off.

select * from codes where code = 'none' for update;
----
ERROR 42898: query is not running in its home region
DETAIL: It would read or write rows of region "us-east1"; the gateway is in "europe-west1".
HINT: Run it from region "us-east1", say which region's rows are meant, or SET enforce_home_region = off.

set enforce_home_region = off;
----
(SET)

set max_cross_region_round_trips = 0;
----
(SET)

select email from users where id = '00000000-0000-4000-8000-000000000002';
----
email
eu
(SELECT 1)

select email from users where id = '00000000-0000-4000-8000-000000000001';
----
ERROR 42899: the statement takes too many round trips between regions
DETAIL: It takes 1, its commit included; max_cross_region_round_trips is 0.
HINT: EXPLAIN shows which operators leave the region.

update users set name = 'x' where id = '00000000-0000-4000-8000-000000000001';
----
ERROR 42899: the statement takes too many round trips between regions
DETAIL: It takes 1, its commit included; max_cross_region_round_trips is 0.
HINT: EXPLAIN shows which operators leave the region.

copy (select email from users where id = '00000000-0000-4000-8000-000000000001') to stdout;
----
ERROR 42899: the statement takes too many round trips between regions
DETAIL: It takes 1, its commit included; max_cross_region_round_trips is 0.
HINT: EXPLAIN shows which operators leave the region.

set max_cross_region_round_trips = 1;
----
(SET)

update users set name = 'x' where id = '00000000-0000-4000-8000-000000000001';
----
(UPDATE 1)

-- without the search in the gateway's region first
reset max_cross_region_round_trips;
----
(RESET)

set locality_optimized_partitioned_index_scan = off;
----
(SET)

explain select * from users where id = '00000000-0000-4000-8000-000000000002';
----
QUERY PLAN
Point Lookup using users_pkey on users
  Index Cond: (id = '00000000-0000-4000-8000-000000000002')
  Regions: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

select email from users where id = '00000000-0000-4000-8000-000000000002';
----
email
eu
(SELECT 1)

select email from users where id in ('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002') order by email;
----
email
eu
us
(SELECT 2)

set max_cross_region_round_trips = 0;
----
(SET)

select email from users where id = '00000000-0000-4000-8000-000000000002';
----
ERROR 42899: the statement takes too many round trips between regions
DETAIL: It takes 1, its commit included; max_cross_region_round_trips is 0.
HINT: EXPLAIN shows which operators leave the region.

set locality_optimized_partitioned_index_scan = on;
----
(SET)

select email from users where id = '00000000-0000-4000-8000-000000000002';
----
email
eu
(SELECT 1)

reset max_cross_region_round_trips;
----
(RESET)

reset enforce_home_region;
----
(RESET)

-- The past is read here, whoever is at home elsewhere.
explain select name from users as of system time '-1us';
----
QUERY PLAN
Seq Scan on users
  Regions: asia-northeast1, europe-west1, us-east1 (of the past, read here) (round trips between regions: 0)
Regions: europe-west1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

explain select * from users as of system time follower_read_timestamp() where id = '00000000-0000-4000-8000-000000000001';
----
QUERY PLAN
Point Lookup using users_pkey on users
  Index Cond: (id = '00000000-0000-4000-8000-000000000001')
  Regions: asia-northeast1, europe-west1, us-east1 (of the past, read here) (round trips between regions: 0)
Regions: europe-west1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

set enforce_home_region = on;
----
(SET)

select email from users as of system time '-1us' where crdb_region = 'us-east1';
----
email
us
(SELECT 1)

select email from users where crdb_region = 'us-east1';
----
ERROR 42898: query is not running in its home region
DETAIL: It would read or write rows of region "us-east1"; the gateway is in "europe-west1".
HINT: Run it from region "us-east1", say which region's rows are meant, or SET enforce_home_region = off.

alter database far placement restricted;
----
(ALTER DATABASE)

select email from users as of system time '-1us' where crdb_region = 'us-east1';
----
ERROR 42898: query is not running in its home region
DETAIL: It would read or write rows of region "us-east1"; the gateway is in "europe-west1".
HINT: Run it from region "us-east1", say which region's rows are meant, or SET enforce_home_region = off.

reset enforce_home_region;
----
(RESET)

explain select name from users as of system time '-1us';
----
QUERY PLAN
Seq Scan on users
  Regions: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

