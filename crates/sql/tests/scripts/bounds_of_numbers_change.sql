create database movr primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 movr
create table quotas (id int8 primary key, used int8 not null default 0 escrow check (used between 0 and 50), most int8 not null default 60) locality regional by row;
----
(CREATE TABLE)

insert into quotas (id, used) select n, n % 50 from generate_series(1, 400) n;
----
(INSERT 0 400)

alter table quotas drop constraint quotas_used_check, add constraint wide check (used between -10 and 100);
----
(ALTER TABLE)

show create table quotas;
----
table_name | create_statement
quotas | CREATE TABLE public.quotas (
    id bigint NOT NULL,
    used bigint NOT NULL DEFAULT 0 ESCROW,
    most bigint NOT NULL DEFAULT 60,
    CONSTRAINT quotas_pkey PRIMARY KEY (id),
    CONSTRAINT wide CHECK ((used BETWEEN -10 AND 100))
) LOCALITY REGIONAL BY ROW;
(SHOW 1)

-- session: europe-west1 movr
update quotas set used = used + 60 where id = 4;
----
(UPDATE 1)

update quotas set used = used - 80 where id = 4;
----
ERROR 23514: new row for relation "quotas" violates check constraint "wide"
DETAIL: "used" stays from -10 to 100; it can go down by 74 and up by 36.

update quotas set used = 64 where id = 5;
----
(UPDATE 1)

-- session: us-east1 movr
alter table quotas drop constraint wide, add constraint narrow check (used between 0 and 63);
----
ERROR 23514: new row for relation "quotas" violates check constraint "narrow"
DETAIL: "used" stays from 0 to 63.

select job_type, description, status, error from [show jobs] where description like '%narrow%';
----
job_type | description | status | error
SCHEMA CHANGE | alter table quotas drop constraint wide, add constraint narrow check (used between 0 and 63) | failed | new row for relation "quotas" violates check constraint "narrow"
(SELECT 1)

show create table quotas;
----
table_name | create_statement
quotas | CREATE TABLE public.quotas (
    id bigint NOT NULL,
    used bigint NOT NULL DEFAULT 0 ESCROW,
    most bigint NOT NULL DEFAULT 60,
    CONSTRAINT quotas_pkey PRIMARY KEY (id),
    CONSTRAINT wide CHECK ((used BETWEEN -10 AND 100))
) LOCALITY REGIONAL BY ROW;
(SHOW 1)

-- All is as it was.
update quotas set used = used - 74 where id = 5;
----
(UPDATE 1)

update quotas set used = used + 35 where id = 5;
----
(UPDATE 1)

alter table quotas drop constraint wide, add constraint narrow check (used between -10 and 64);
----
(ALTER TABLE)

select count(*), min(used), max(used) from quotas;
----
count | min | max
400 | 0 | 64
(SELECT 1)

update quotas set used = used + 39 where id = 5;
----
(UPDATE 1)

update quotas set used = used + 40 where id = 5;
----
ERROR 23514: new row for relation "quotas" violates check constraint "narrow"
DETAIL: "used" stays from -10 to 64; it can go down by 74 and up by 0.

-- Constants become columns of the row, and the other way round.
alter table quotas drop constraint narrow, add constraint narrow check (used between -10 and most);
----
ERROR 23514: new row for relation "quotas" violates check constraint "narrow"
DETAIL: "used" stays from -10 to 60.

update quotas set used = -10 where id in (4, 5);
----
(UPDATE 2)

alter table quotas drop constraint narrow, add constraint narrow check (used between -10 and most);
----
(ALTER TABLE)

update quotas set used = used + 71 where id = 5;
----
ERROR 23514: new row for relation "quotas" violates check constraint "narrow"
DETAIL: "used" stays from -10 to 60; it can go down by 0 and up by 70.

update quotas set most = 70, used = used + 80 where id = 5 returning id, used, most;
----
id | used | most
5 | 70 | 70
(UPDATE 1)

update quotas set used = used + 1 where id = 5;
----
ERROR 23514: new row for relation "quotas" violates check constraint "narrow"
DETAIL: "used" stays from -10 to 70; it can go down by 80 and up by 0.

alter table quotas drop constraint narrow;
----
(ALTER TABLE)

update quotas set used = used + 1000000 where id = 5;
----
(UPDATE 1)

alter table quotas add constraint last check (used <= 100);
----
ERROR 23514: new row for relation "quotas" violates check constraint "last"
DETAIL: "used" stays from -9223372036854775808 to 100.

update quotas set used = used - 1000000 where id = 5;
----
(UPDATE 1)

alter table quotas add constraint last check (used <= 100);
----
(ALTER TABLE)

update quotas set used = used + 31 where id = 5;
----
ERROR 23514: new row for relation "quotas" violates check constraint "last"
DETAIL: "used" stays from -9223372036854775808 to 100; it can go down by 9223372036854775878 and up by 30.

begin;
----
(BEGIN)

alter table quotas drop constraint last;
----
(ALTER TABLE)

alter table quotas add constraint last check (used between -1000 and 200);
----
(ALTER TABLE)

commit;
----
(COMMIT)

update quotas set used = used + 131 where id = 5;
----
ERROR 23514: new row for relation "quotas" violates check constraint "last"
DETAIL: "used" stays from -1000 to 200; it can go down by 1070 and up by 130.

update quotas set used = used + 130 where id = 5;
----
(UPDATE 1)

alter table quotas drop constraint last, add constraint last check (used <= 100) not valid;
----
ERROR 0A000: escrow column "used" of table "quotas" cannot have a CHECK that is NOT VALID

alter table quotas add constraint second check (used > -2000);
----
ERROR 0A000: escrow column "used" of table "quotas" can have one CHECK

alter table quotas alter column used type int4;
----
ERROR 0A000: changing a column from type bigint to type integer is not supported yet
DETAIL: Every stored row would have to be written again.
HINT: Add a column of the new type, fill it with UPDATE, drop the old column and rename the new one.

create table q (id int8 primary key, used int8 not null escrow constraint c check (used <= 100 and used <= quota), quota int8 not null, other int8 not null default 0);
----
(CREATE TABLE)

insert into q values (1, 45, 80), (2, 5, 30);
----
(INSERT 0 2)

-- In a block, the rows still have their old tokens.
begin;
----
(BEGIN)

alter table q drop constraint c, add constraint c check (used <= 50 and used <= quota);
----
(ALTER TABLE)

update q set quota = 20 where id = 1;
----
ERROR 23514: new row for relation "q" violates check constraint "c"
DETAIL: "used" stays from -9223372036854775808 to 20.

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter table q drop constraint c, add constraint c check (used <= quota);
----
(ALTER TABLE)

update q set quota = 200 where id = 2;
----
(UPDATE 1)

update q set used = used + 150 where id = 2;
----
ERROR 23514: new row for relation "q" violates check constraint "c"
DETAIL: "used" stays from -9223372036854775808 to 100; it can go down by 9223372036854775813 and up by 95.

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

alter table q drop constraint c, add constraint c check (used <= quota);
----
(ALTER TABLE)

update q set quota = 200 where id = 2;
----
(UPDATE 1)

commit;
----
(COMMIT)

update q set used = used + 195 where id = 2;
----
(UPDATE 1)

update q set used = used + 1 where id = 2;
----
ERROR 23514: new row for relation "q" violates check constraint "c"
DETAIL: "used" stays from -9223372036854775808 to 200; it can go down by 9223372036854776008 and up by 0.

alter table q drop constraint c, add constraint c check (used between 0 and 10), drop column quota;
----
ERROR 0A000: escrow column "used" of table "q" had constraint "c", whose columns stay until its bounds have changed

alter table q drop column quota;
----
ERROR 0A000: escrow column "used" of table "q" had constraint "c", whose columns stay until its bounds have changed

alter table q rename column quota to most;
----
(ALTER TABLE)

alter table q add column more int8 not null default 5, drop constraint c, add constraint c check (used <= 1000);
----
ERROR 0A000: escrow column "used" of table "q" changes its bounds by a statement of its own

alter table q drop constraint c, add constraint c check (used <= 1000);
----
(ALTER TABLE)

begin;
----
(BEGIN)

alter table q drop constraint c, add constraint c check (used <= 2000);
----
(ALTER TABLE)

truncate q;
----
(TRUNCATE TABLE)

commit;
----
(COMMIT)

insert into q values (1, 1500, 0);
----
(INSERT 0 1)

alter table q drop constraint c;
----
(ALTER TABLE)

drop table q;
----
(DROP TABLE)

