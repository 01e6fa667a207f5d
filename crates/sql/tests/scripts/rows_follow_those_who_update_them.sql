create database homes primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 homes
create table stay (id int primary key, a int) locality regional by row;
----
(CREATE TABLE)

set enable_auto_rehoming = on;
----
(SET)

create table follow (id int primary key, a int) locality regional by row;
----
(CREATE TABLE)

create table named (id int primary key, a int, by text on update current_user || '!' default 'nobody', r crdb_internal_region not null default gateway_region()::crdb_internal_region on update rehome_row()) locality regional by row as r;
----
(CREATE TABLE)

show create table named;
----
table_name | create_statement
named | CREATE TABLE public.named (
    id integer NOT NULL,
    a integer,
    by text DEFAULT 'nobody'::text ON UPDATE current_user || '!',
    r crdb_internal_region NOT NULL DEFAULT gateway_region()::crdb_internal_region ON UPDATE rehome_row(),
    CONSTRAINT named_pkey PRIMARY KEY (id)
) LOCALITY REGIONAL BY ROW AS r;
(SHOW 1)

insert into stay values (1, 1);
----
(INSERT 0 1)

insert into follow values (1, 1), (2, 2);
----
(INSERT 0 2)

insert into named (id, a) values (1, 1);
----
(INSERT 0 1)

-- session: europe-west1 homes
update stay set a = 2 returning crdb_region;
----
crdb_region
us-east1
(UPDATE 1)

update follow set a = 2 where id = 1 returning crdb_region;
----
crdb_region
europe-west1
(UPDATE 1)

select id, crdb_region from follow order by id;
----
id | crdb_region
1 | europe-west1
2 | us-east1
(SELECT 2)

update named set a = 2 returning *;
----
id | a | by | r
1 | 2 | root! | europe-west1
(UPDATE 1)

update named set a = 3, r = 'asia-northeast1' returning *;
----
id | a | by | r
1 | 3 | root! | asia-northeast1
(UPDATE 1)

insert into follow values (2, 5) on conflict (id) do update set a = excluded.a returning id, a, crdb_region;
----
id | a | crdb_region
2 | 5 | europe-west1
(INSERT 0 1)

select rehome_row(), gateway_region();
----
rehome_row | gateway_region
europe-west1 | europe-west1
(SELECT 1)

set auto_rehoming_hysteresis = 0;
----
ERROR 22023: 0 is outside the valid range for parameter "auto_rehoming_hysteresis" (1 .. 1000000)

set auto_rehoming_hysteresis = 1000000;
----
(SET)

update named set a = 4 returning r;
----
r
asia-northeast1
(UPDATE 1)

explain update follow set a = 3 where id = 1;
----
QUERY PLAN
Update on follow
  Moves Rows: to the regions of the values (round trips between regions: 0 to 1)
  ->  Point Lookup using follow_pkey on follow
        Index Cond: (id = 1)
        Locks rows
        Regions: europe-west1, else asia-northeast1, us-east1 (round trips between regions: 0 to 1)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 0 to 1
(EXPLAIN)

alter table named add column c int on update 5 default 4;
----
(ALTER TABLE)

update named set a = 5 returning a, by, c;
----
a | by | c
5 | root! | 5
(UPDATE 1)

create table bad (a int, b int on update abs(a));
----
ERROR 0A000: cannot use column reference in ON UPDATE expression

create table bad (a int, b int generated always as (a) stored on update now());
----
ERROR 42P16: generated column "b" cannot have an ON UPDATE expression

-- rows that go where their parents are
create table parents (region crdb_internal_region not null default gateway_region()::crdb_internal_region, id int unique, primary key (region, id)) locality regional by row as region;
----
(CREATE TABLE)

create table children (id int primary key, region crdb_internal_region not null default gateway_region()::crdb_internal_region, parent int, other int, constraint of_parent foreign key (region, parent) references parents (region, id), constraint of_other foreign key (other) references parents (id)) locality regional by row as region;
----
(CREATE TABLE)

alter table children set (infer_rbr_region_col_using_constraint = 'of_other');
----
ERROR 42P16: foreign key constraint "of_other" does not include the region column "region"
HINT: Regions are inferred by a key over the region column and others.

alter table children set (infer_rbr_region_col_using_constraint = 'nothing');
----
ERROR 42704: foreign key constraint "nothing" of relation "children" does not exist

alter table stay set (infer_rbr_region_col_using_constraint = 'nothing');
----
ERROR 42704: foreign key constraint "nothing" of relation "stay" does not exist

alter table children set (infer_rbr_region_col_using_constraint = of_parent);
----
(ALTER TABLE)

show create table children;
----
table_name | create_statement
children | CREATE TABLE public.children (
    id integer NOT NULL,
    region crdb_internal_region NOT NULL DEFAULT gateway_region()::crdb_internal_region,
    parent integer,
    other integer,
    CONSTRAINT children_pkey PRIMARY KEY (id),
    CONSTRAINT of_parent FOREIGN KEY (region, parent) REFERENCES parents(region, id),
    CONSTRAINT of_other FOREIGN KEY (other) REFERENCES parents(id)
) WITH (infer_rbr_region_col_using_constraint = 'of_parent') LOCALITY REGIONAL BY ROW AS region;
(SHOW 1)

insert into parents values ('us-east1', 1), ('europe-west1', 2), ('asia-northeast1', 3);
----
(INSERT 0 3)

insert into children (id, parent) values (1, 1), (2, 2), (3, 3), (4, null);
----
(INSERT 0 4)

insert into children (id, parent) values (5, 6);
----
ERROR 23503: insert or update on table "children" violates foreign key constraint "of_parent"
DETAIL: Key (region, parent)=(europe-west1, 6) is not present in table "parents".

insert into children (id, region, parent) values (5, 'us-east1', 3);
----
ERROR 23503: insert or update on table "children" violates foreign key constraint "of_parent"
DETAIL: Key (region, parent)=(us-east1, 3) is not present in table "parents".

insert into children (id, parent, region) values (5, 3, default);
----
ERROR 23503: insert or update on table "children" violates foreign key constraint "of_parent"
DETAIL: Key (region, parent)=(europe-west1, 3) is not present in table "parents".

insert into children (id, parent) select 10 + id, id from parents;
----
(INSERT 0 3)

select id, region, parent from children order by id;
----
id | region | parent
1 | us-east1 | 1
2 | europe-west1 | 2
3 | asia-northeast1 | 3
4 | europe-west1 | ∅
11 | us-east1 | 1
12 | europe-west1 | 2
13 | asia-northeast1 | 3
(SELECT 7)

alter table children set (infer_rbr_region_col_using_constraint = '');
----
(ALTER TABLE)

insert into children (id, parent) values (6, 1);
----
ERROR 23503: insert or update on table "children" violates foreign key constraint "of_parent"
DETAIL: Key (region, parent)=(europe-west1, 1) is not present in table "parents".

create table grand (id int primary key, parent int, foreign key (id, parent) references parents (id, id)) with (infer_rbr_region_col_using_constraint = 'x');
----
ERROR 42830: there is no unique constraint matching given keys for referenced table "parents"

alter table follow alter column a set on update 7;
----
(ALTER TABLE)

alter table follow alter a set on update 8, drop column a;
----
ERROR 42601: syntax error at or near ","
POSITION: 42

alter table follow alter column nothing set on update 7;
----
ERROR 42703: column "nothing" of relation "follow" does not exist

alter table if exists nowhere alter column a drop on update;
----
(ALTER TABLE)

alter table follow alter column a set on update id;
----
ERROR 0A000: cannot use column reference in ON UPDATE expression

alter table follow alter column a set on update 'x';
----
ERROR 22P02: invalid input syntax for type integer: "x"
POSITION: 1

alter table follow alter column a set on update;
----
ERROR 42601: syntax error at end of input
POSITION: 48

show create table follow;
----
table_name | create_statement
follow | CREATE TABLE public.follow (
    id integer NOT NULL,
    a integer ON UPDATE 7,
    CONSTRAINT follow_pkey PRIMARY KEY (id)
) LOCALITY REGIONAL BY ROW;
ALTER TABLE public.follow ALTER COLUMN crdb_region SET ON UPDATE rehome_row();
(SHOW 1)

update follow set id = 3 where id = 2 returning id, a;
----
id | a
3 | 7
(UPDATE 1)

alter table follow alter a drop on update;
----
(ALTER TABLE)

update follow set id = 2 where id = 3 returning id, a;
----
id | a
2 | 7
(UPDATE 1)

show create table follow;
----
table_name | create_statement
follow | CREATE TABLE public.follow (
    id integer NOT NULL,
    a integer,
    CONSTRAINT follow_pkey PRIMARY KEY (id)
) LOCALITY REGIONAL BY ROW;
ALTER TABLE public.follow ALTER COLUMN crdb_region SET ON UPDATE rehome_row();
(SHOW 1)

create table made (id int primary key, a int generated always as (id + 1) stored);
----
(CREATE TABLE)

alter table made alter column a set on update 3;
----
ERROR 42P16: generated column "a" cannot have an ON UPDATE expression

