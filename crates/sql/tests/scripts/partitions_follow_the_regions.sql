create database d primary region "us-east1" regions "europe-west1";
----
(CREATE DATABASE)

-- session: us-east1 d
create table t (id int primary key, v int unique) locality regional by row;
----
(CREATE TABLE)

create table g (id int primary key) locality global;
----
(CREATE TABLE)

insert into t (crdb_region, id, v) values ('us-east1', 1, 1), ('europe-west1', 2, 2);
----
(INSERT 0 2)

insert into t (crdb_region, id, v) values ('asia-northeast1', 3, 3);
----
ERROR 22P02: invalid input value for enum crdb_internal_region: "asia-northeast1"
HINT: valid regions: europe-west1, us-east1
POSITION: 44

show partitions from table t;
----
table_name | partition_name | column_names | index_name | partition_value
t | europe-west1 | crdb_region | t_pkey | ('europe-west1')
t | europe-west1 | crdb_region | t_v_key | ('europe-west1')
t | us-east1 | crdb_region | t_pkey | ('us-east1')
t | us-east1 | crdb_region | t_v_key | ('us-east1')
(SHOW 4)

alter database d add region "asia-northeast1";
----
(ALTER DATABASE)

show partitions from table t;
----
table_name | partition_name | column_names | index_name | partition_value
t | asia-northeast1 | crdb_region | t_pkey | ('asia-northeast1')
t | asia-northeast1 | crdb_region | t_v_key | ('asia-northeast1')
t | europe-west1 | crdb_region | t_pkey | ('europe-west1')
t | europe-west1 | crdb_region | t_v_key | ('europe-west1')
t | us-east1 | crdb_region | t_pkey | ('us-east1')
t | us-east1 | crdb_region | t_v_key | ('us-east1')
(SHOW 6)

insert into t (crdb_region, id, v) values ('asia-northeast1', 3, 3);
----
(INSERT 0 1)

-- Unique over the new partition too.
insert into t (crdb_region, id, v) values ('us-east1', 3, 4);
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(3) already exists.

insert into t (crdb_region, id, v) values ('asia-northeast1', 4, 2);
----
ERROR 23505: duplicate key value violates unique constraint "t_v_key"
DETAIL: Key (v)=(2) already exists.

select crdb_region, id, v from t order by id;
----
crdb_region | id | v
us-east1 | 1 | 1
europe-west1 | 2 | 2
asia-northeast1 | 3 | 3
(SELECT 3)

alter database d drop region "asia-northeast1";
----
ERROR 2BP01: could not remove enum value "asia-northeast1" as it is being used by "t"
DETAIL: Rows of the table are homed in "asia-northeast1".
HINT: Move them to another region, or delete them, before dropping the region.

select crdb_region, id, v from t where id = 3;
----
crdb_region | id | v
asia-northeast1 | 3 | 3
(SELECT 1)

update t set crdb_region = 'europe-west1' where id = 3;
----
(UPDATE 1)

alter database d drop region "asia-northeast1";
----
(ALTER DATABASE)

show partitions from table t;
----
table_name | partition_name | column_names | index_name | partition_value
t | europe-west1 | crdb_region | t_pkey | ('europe-west1')
t | europe-west1 | crdb_region | t_v_key | ('europe-west1')
t | us-east1 | crdb_region | t_pkey | ('us-east1')
t | us-east1 | crdb_region | t_v_key | ('us-east1')
(SHOW 4)

select crdb_region, id, v from t order by id;
----
crdb_region | id | v
us-east1 | 1 | 1
europe-west1 | 2 | 2
europe-west1 | 3 | 3
(SELECT 3)

insert into t (crdb_region, id, v) values ('asia-northeast1', 5, 5);
----
ERROR 22P02: invalid input value for enum crdb_internal_region: "asia-northeast1"
HINT: valid regions: europe-west1, us-east1
POSITION: 44

-- The primary region moves, and with it what lives there; rows that name their region stay.
alter database d set primary region "europe-west1";
----
(ALTER DATABASE)

select crdb_region, id, v from t order by id;
----
crdb_region | id | v
us-east1 | 1 | 1
europe-west1 | 2 | 2
europe-west1 | 3 | 3
(SELECT 3)

explain (costs off) select * from g where id = 1;
----
QUERY PLAN
Point Lookup using g_pkey on g
  Index Cond: (id = 1)
  Regions: us-east1 (GLOBAL, read here) (round trips between regions: 0)
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

