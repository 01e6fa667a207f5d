create database told primary region "us-east1" regions "europe-west1";
----
(CREATE DATABASE)

-- session: us-east1 told
create table t (id int primary key, v int) locality regional by row;
----
(CREATE TABLE)

alter table t alter column crdb_region set on update rehome_row()::public.crdb_internal_region;
----
(ALTER TABLE)

show create table t;
----
table_name | create_statement
t | CREATE TABLE public.t (
    id integer NOT NULL,
    v integer,
    CONSTRAINT t_pkey PRIMARY KEY (id)
) LOCALITY REGIONAL BY ROW;
ALTER TABLE public.t ALTER COLUMN crdb_region SET ON UPDATE rehome_row()::public.crdb_internal_region;
(SHOW 1)

alter table public.t alter column crdb_region set on update rehome_row();
----
(ALTER TABLE)

insert into t (id, v) values (1, 1);
----
(INSERT 0 1)

-- session: europe-west1 told
update t set v = 2 where id = 1 returning crdb_region;
----
crdb_region
europe-west1
(UPDATE 1)

alter table t alter column crdb_region drop on update;
----
(ALTER TABLE)

show create table t;
----
table_name | create_statement
t | CREATE TABLE public.t (
    id integer NOT NULL,
    v integer,
    CONSTRAINT t_pkey PRIMARY KEY (id)
) LOCALITY REGIONAL BY ROW;
(SHOW 1)

create table named (id int primary key, r told.public.crdb_internal_region not null default 'us-east1'::public.crdb_internal_region) locality regional by row as r;
----
(CREATE TABLE)

create table wrong (id int primary key, r public.text);
----
ERROR 42704: type "public.text" does not exist

