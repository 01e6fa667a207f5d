create database d primary region "us-east1";
----
(CREATE DATABASE)

show regions from database d;
----
database | region | primary | secondary | zones
d | us-east1 | t | f | {a}
(SHOW 1)

create database e regions "us-east1";
----
ERROR 42P12: PRIMARY REGION must be specified if REGIONS are specified

create database e primary region "us-east1" regions "mars";
----
ERROR 42602: region "mars" does not exist
HINT: valid regions: asia-northeast1, europe-west1, us-east1

create database e primary region "us-east1" regions "europe-west1", "europe-west1";
----
ERROR 42602: region "europe-west1" defined multiple times

create database e primary region "us-east1" survive region failure;
----
ERROR 22023: at least 3 regions are required for surviving a region failure
HINT: you must add additional regions to the database using ALTER DATABASE e ADD REGION <region_name>, or change the survivability goal

create database e primary region "us-east1" secondary region "us-east1";
----
ERROR 42P12: the secondary region cannot be the same as the current primary region

create database plain;
----
(CREATE DATABASE)

alter database plain add region "europe-west1";
----
ERROR 42P12: cannot add region "europe-west1" to database "plain"
DETAIL: The database has no primary region.
HINT: you must add a PRIMARY REGION first using ALTER DATABASE plain PRIMARY REGION "europe-west1"

alter database plain drop region "us-east1";
----
ERROR 42P12: database has no regions to drop

alter database plain survive region failure;
----
ERROR 42602: database must have associated regions before a survival goal can be set
HINT: you must first add a primary region to the database using ALTER DATABASE plain PRIMARY REGION <region_name>

alter database plain placement restricted;
----
ERROR 42602: database must have associated regions before a placement policy can be set
HINT: you must first add a primary region to the database using ALTER DATABASE plain PRIMARY REGION <region_name>

alter database plain set secondary region "europe-west1";
----
ERROR 42602: database must have associated regions before a secondary region can be set
HINT: you must first add a primary region to the database using ALTER DATABASE plain PRIMARY REGION <region_name>

alter database d add region "mars";
----
ERROR 42602: region "mars" does not exist
HINT: valid regions: asia-northeast1, europe-west1, us-east1

alter database d add region "us-east1";
----
ERROR 42710: region "us-east1" already added to database

alter database d add region if not exists "us-east1";
----
(ALTER DATABASE)

alter database d set primary region "europe-west1";
----
ERROR 42602: region "europe-west1" has not been added to database "d"
HINT: you must add the region to the database before setting it as primary region, using ALTER DATABASE d ADD REGION "europe-west1"

alter database d add region "europe-west1";
----
(ALTER DATABASE)

show survival goal from database d;
----
database | survival_goal
d | zone
(SHOW 1)

alter database d survive region failure;
----
ERROR 22023: at least 3 regions are required for surviving a region failure
HINT: you must add additional regions to the database using ALTER DATABASE d ADD REGION <region_name>, or change the survivability goal

alter database d add region "asia-northeast1";
----
(ALTER DATABASE)

alter database d survive region failure;
----
(ALTER DATABASE)

show survival goal from database d;
----
database | survival_goal
d | region
(SHOW 1)

alter database d placement restricted;
----
ERROR 22023: a region-survivable database cannot also have a restricted placement policy
DETAIL: Surviving the loss of a region takes copies outside the home region, and RESTRICTED forbids them.

alter database d drop region "asia-northeast1";
----
ERROR 22023: at least 3 regions are required for surviving a region failure
HINT: you must add additional regions to the database using ALTER DATABASE d ADD REGION <region_name>, or change the survivability goal

alter database d survive zone failure;
----
(ALTER DATABASE)

alter database d placement restricted;
----
(ALTER DATABASE)

alter database d survive region failure;
----
ERROR 22023: a region-survivable database cannot also have a restricted placement policy
DETAIL: Surviving the loss of a region takes copies outside the home region, and RESTRICTED forbids them.

show zone configuration from database d;
----
target | raw_config_sql
DATABASE d | ALTER DATABASE d CONFIGURE ZONE USING
	num_replicas = 3,
	num_voters = 3,
	constraints = '{+region=us-east1: 3}',
	voter_constraints = '{+region=us-east1: 3}',
	lease_preferences = '[[+region=us-east1]]'
(SHOW 1)

alter database d placement default;
----
(ALTER DATABASE)

alter database d set secondary region "us-east1";
----
ERROR 42P12: the secondary region cannot be the same as the current primary region

alter database d set secondary region "asia-northeast1";
----
(ALTER DATABASE)

show regions from database d;
----
database | region | primary | secondary | zones
d | us-east1 | t | f | {a}
d | asia-northeast1 | f | t | {a}
d | europe-west1 | f | f | {a}
(SHOW 3)

alter database d drop region "asia-northeast1";
----
ERROR 42P12: cannot drop region "asia-northeast1"
HINT: You must designate another region as the secondary region using ALTER DATABASE d SECONDARY REGION <region name> or remove the secondary region using ALTER DATABASE d DROP SECONDARY REGION

alter database d set primary region "asia-northeast1";
----
ERROR 42P12: region "asia-northeast1" is currently the secondary region
HINT: you must drop the secondary region first using ALTER DATABASE d DROP SECONDARY REGION

alter database d drop secondary region;
----
(ALTER DATABASE)

alter database d drop secondary region;
----
ERROR 42P12: database "d" doesn't have a secondary region defined

alter database d drop secondary region if exists;
----
(ALTER DATABASE)

alter database d drop region "us-east1";
----
ERROR 42P12: cannot drop region "us-east1"
HINT: You must designate another region as the primary region using ALTER DATABASE d PRIMARY REGION <region name> or remove all other regions before attempting to drop region "us-east1"

alter database d drop region "mars";
----
ERROR 42704: region "mars" has not been added to database "d"

alter database d drop region if exists "mars";
----
(ALTER DATABASE)

alter database d drop region "asia-northeast1";
----
(ALTER DATABASE)

alter database d set primary region "europe-west1";
----
(ALTER DATABASE)

show regions from database d;
----
database | region | primary | secondary | zones
d | europe-west1 | t | f | {a}
d | us-east1 | f | f | {a}
(SHOW 2)

show zone configuration from database d;
----
target | raw_config_sql
DATABASE d | ALTER DATABASE d CONFIGURE ZONE USING
	num_replicas = 4,
	num_voters = 3,
	constraints = '{+region=europe-west1: 3, +region=us-east1: 1}',
	voter_constraints = '{+region=europe-west1: 3}',
	lease_preferences = '[[+region=europe-west1]]'
(SHOW 1)

-- Names are quoted where they have to be.
create database "a ""b" primary region "us-east1" regions "europe-west1";
----
(CREATE DATABASE)

show zone configuration from database "a ""b";
----
target | raw_config_sql
DATABASE "a ""b" | ALTER DATABASE "a ""b" CONFIGURE ZONE USING
	num_replicas = 4,
	num_voters = 3,
	constraints = '{+region=europe-west1: 1, +region=us-east1: 3}',
	voter_constraints = '{+region=us-east1: 3}',
	lease_preferences = '[[+region=us-east1]]'
(SHOW 1)

drop database "a ""b" cascade;
----
(DROP DATABASE)

show regions from all databases;
----
database_name | regions | primary_region | secondary_region
postgres | {} | ∅ | ∅
defaultdb | {} | ∅ | ∅
d | {europe-west1,us-east1} | europe-west1 | ∅
plain | {} | ∅ | ∅
(SHOW 4)

begin;
----
(BEGIN)

alter database d add region "asia-northeast1";
----
ERROR 25001: ALTER DATABASE with a change of regions cannot run inside a transaction block

rollback;
----
(ROLLBACK)

alter database d drop region "us-east1";
----
(ALTER DATABASE)

alter database d drop region "europe-west1";
----
(ALTER DATABASE)

show regions from database d;
----
database | region | primary | secondary | zones
(SHOW 0)

show survival goal from database d;
----
database | survival_goal
d | ∅
(SHOW 1)

alter database d set primary region "us-east1";
----
(ALTER DATABASE)

show regions;
----
region | zones | database_names | primary_region_of
asia-northeast1 | {a} | {} | {}
europe-west1 | {a} | {} | {}
us-east1 | {a} | {d} | {d}
(SHOW 3)

drop database d;
----
(DROP DATABASE)

-- A region that is the value of a column stays, whatever the table's locality.
alter database postgres set primary region "us-east1";
----
(ALTER DATABASE)

alter database postgres add region "europe-west1";
----
(ALTER DATABASE)

create table seen (id int8 primary key, at crdb_internal_region);
----
(CREATE TABLE)

insert into seen values (1, 'europe-west1'), (2, 'us-east1'), (3, null);
----
(INSERT 0 3)

alter database postgres drop region "europe-west1";
----
ERROR 2BP01: could not remove enum value "europe-west1" as it is being used by "seen"
DETAIL: It is the value of the column "at" in some row.

delete from seen where at = 'europe-west1';
----
(DELETE 1)

create table ways (id int8 primary key, through crdb_internal_region[]);
----
(CREATE TABLE)

insert into ways values (1, array['us-east1', 'europe-west1']::crdb_internal_region[]);
----
(INSERT 0 1)

alter database postgres drop region "europe-west1";
----
ERROR 2BP01: could not remove enum value "europe-west1" as it is being used by "ways"
DETAIL: It is the value of the column "through" in some row.

drop table ways;
----
(DROP TABLE)

alter database postgres drop region "europe-west1";
----
(ALTER DATABASE)

-- What a dropped column was of may go.
alter table seen set locality regional by row;
----
(ALTER TABLE)

alter table seen set locality regional by table;
----
(ALTER TABLE)

alter database postgres drop region "us-east1";
----
ERROR 2BP01: cannot drop region "us-east1" because column "at" of table "seen" has regions as values
HINT: Change the table's locality if it is REGIONAL BY ROW, and drop the column.

alter table seen drop column at;
----
(ALTER TABLE)

alter table seen drop column crdb_region;
----
(ALTER TABLE)

alter database postgres drop region "us-east1";
----
(ALTER DATABASE)

insert into seen values (4) returning *;
----
id
4
(INSERT 0 1)

