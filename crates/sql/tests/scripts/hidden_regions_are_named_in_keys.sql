create database keys primary region "us-east1" regions "europe-west1";
----
(CREATE DATABASE)

-- session: us-east1 keys
create table parents (id int, name text, primary key (crdb_region, id), unique (crdb_region, name)) locality regional by row;
----
(CREATE TABLE)

create table children (id int primary key, parent int, foreign key (crdb_region, parent) references parents (crdb_region, id)) locality regional by row;
----
(CREATE TABLE)

create index on children (crdb_region, parent);
----
(CREATE INDEX)

insert into parents (crdb_region, id, name) values ('us-east1', 1, 'a'), ('europe-west1', 1, 'a'), ('us-east1', 2, 'b');
----
(INSERT 0 3)

insert into parents (crdb_region, id, name) values ('us-east1', 1, 'c');
----
ERROR 23505: duplicate key value violates unique constraint "parents_pkey"
DETAIL: Key (crdb_region, id)=(us-east1, 1) already exists.

insert into parents (crdb_region, id, name) values ('europe-west1', 3, 'a');
----
ERROR 23505: duplicate key value violates unique constraint "parents_crdb_region_name_key"
DETAIL: Key (crdb_region, name)=(europe-west1, a) already exists.

insert into children (id, parent) values (1, 2);
----
(INSERT 0 1)

insert into children (id, crdb_region, parent) values (2, 'europe-west1', 2);
----
ERROR 23503: insert or update on table "children" violates foreign key constraint "children_crdb_region_parent_fkey"
DETAIL: Key (crdb_region, parent)=(europe-west1, 2) is not present in table "parents".

explain insert into children (id, parent) values (4, 1);
----
QUERY PLAN
Insert on children
  Regions: us-east1 (round trips between regions: 0)
  Unique children_pkey: europe-west1, us-east1 (round trips between regions: 1)
  Foreign Key children_crdb_region_parent_fkey: us-east1, else europe-west1 (round trips between regions: 0 to 1)
  ->  Result
Regions: europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

explain select name from parents where crdb_region = 'us-east1' and id = 1;
----
QUERY PLAN
Point Lookup using parents_pkey on parents
  Index Cond: (crdb_region = 'us-east1') AND (id = 1)
  Regions: us-east1 (round trips between regions: 0)
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

show create table parents;
----
table_name | create_statement
parents | CREATE TABLE public.parents (
    id integer NOT NULL,
    name text,
    CONSTRAINT parents_pkey PRIMARY KEY (crdb_region, id),
    CONSTRAINT parents_crdb_region_name_key UNIQUE (crdb_region, name)
) LOCALITY REGIONAL BY ROW;
(SHOW 1)

show create table children;
----
table_name | create_statement
children | CREATE TABLE public.children (
    id integer NOT NULL,
    parent integer,
    CONSTRAINT children_pkey PRIMARY KEY (id),
    CONSTRAINT children_crdb_region_parent_fkey FOREIGN KEY (crdb_region, parent) REFERENCES parents(crdb_region, id)
) LOCALITY REGIONAL BY ROW;
CREATE INDEX children_crdb_region_parent_idx ON public.children USING btree (crdb_region, parent);
(SHOW 1)

alter table children alter column crdb_region set default 'europe-west1';
----
(ALTER TABLE)

insert into children (id, parent) values (3, 1);
----
(INSERT 0 1)

select id, crdb_region from children order by id;
----
id | crdb_region
1 | us-east1
3 | europe-west1
(SELECT 2)

show create table children;
----
table_name | create_statement
children | CREATE TABLE public.children (
    id integer NOT NULL,
    parent integer,
    CONSTRAINT children_pkey PRIMARY KEY (id),
    CONSTRAINT children_crdb_region_parent_fkey FOREIGN KEY (crdb_region, parent) REFERENCES parents(crdb_region, id)
) LOCALITY REGIONAL BY ROW;
CREATE INDEX children_crdb_region_parent_idx ON public.children USING btree (crdb_region, parent);
ALTER TABLE public.children ALTER COLUMN crdb_region SET DEFAULT 'europe-west1'::crdb_internal_region;
(SHOW 1)

alter table children alter column crdb_region drop not null;
----
ERROR 42P10: cannot drop NOT NULL of column "crdb_region" as it is used to store the region in a REGIONAL BY ROW table
HINT: Change the table's locality first.

alter table children alter column crdb_region type text;
----
ERROR 42P10: cannot change the type of column "crdb_region" as it is used to store the region in a REGIONAL BY ROW table
HINT: Change the table's locality first.

-- The row id is nobody's to name.
create table heap (v int) locality regional by row;
----
(CREATE TABLE)

create index on heap (rowid);
----
(CREATE INDEX)

alter table heap add primary key (crdb_region, v);
----
ERROR 0A000: adding a primary key to a table that has other indexes is not supported yet
HINT: Drop the other indexes, add the primary key, and create them again.

insert into heap values (1);
----
(INSERT 0 1)

select v, crdb_region from heap;
----
v | crdb_region
1 | us-east1
(SELECT 1)

show create table heap;
----
table_name | create_statement
heap | CREATE TABLE public.heap (
    v integer
) LOCALITY REGIONAL BY ROW;
CREATE INDEX heap_rowid_idx ON public.heap USING btree (rowid);
(SHOW 1)

-- They have other names when somebody wants that, and stay when rows move elsewhere.
create table renamed (id int primary key) locality regional by row;
----
(CREATE TABLE)

alter table renamed rename column crdb_region to place;
----
(ALTER TABLE)

insert into renamed (id, place) values (1, 'europe-west1');
----
(INSERT 0 1)

select id, place from renamed;
----
id | place
1 | europe-west1
(SELECT 1)

show create table renamed;
----
table_name | create_statement
renamed | CREATE TABLE public.renamed (
    id integer NOT NULL,
    place crdb_internal_region NOT VISIBLE NOT NULL DEFAULT default_to_database_primary_region(gateway_region())::crdb_internal_region,
    CONSTRAINT renamed_pkey PRIMARY KEY (id)
) LOCALITY REGIONAL BY ROW AS place;
(SHOW 1)

create table stays (id int primary key) locality regional by row;
----
(CREATE TABLE)

insert into stays (id, crdb_region) values (1, 'europe-west1');
----
(INSERT 0 1)

alter table stays set locality regional by table;
----
(ALTER TABLE)

select id, crdb_region from stays;
----
id | crdb_region
1 | europe-west1
(SELECT 1)

show create table stays;
----
table_name | create_statement
stays | CREATE TABLE public.stays (
    id integer NOT NULL,
    crdb_region crdb_internal_region NOT VISIBLE NOT NULL DEFAULT default_to_database_primary_region(gateway_region())::crdb_internal_region,
    CONSTRAINT stays_pkey PRIMARY KEY (id)
) LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
(SHOW 1)

create table told (id int primary key, crdb_region crdb_internal_region not visible not null
    as (case when id > 9 then 'europe-west1' else 'us-east1' end::crdb_internal_region) stored) locality regional by row;
----
(CREATE TABLE)

show create table told;
----
table_name | create_statement
told | CREATE TABLE public.told (
    id integer NOT NULL,
    crdb_region crdb_internal_region NOT VISIBLE NOT NULL GENERATED ALWAYS AS (CASE WHEN id > 9 THEN 'europe-west1' ELSE 'us-east1' END::crdb_internal_region) STORED,
    CONSTRAINT told_pkey PRIMARY KEY (id)
) LOCALITY REGIONAL BY ROW AS crdb_region;
(SHOW 1)

create table nameless (a int);
----
(CREATE TABLE)

alter table nameless rename column rowid to id;
----
ERROR 0A000: the row id of a table without a primary key cannot be renamed

