create table quotas (org text primary key, used int8 not null default 0 escrow, quota int4 not null default 10, least int4 not null default 0, check (used between least and quota and used <= 1000));
----
(CREATE TABLE)

insert into quotas values ('acme', 3, 10, 0), ('bell', 0, 2000, -5);
----
(INSERT 0 2)

insert into quotas values ('cat', 11, 10);
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: Failing row contains (cat, 11, 10, 0).

insert into quotas values ('cat', 0, 10, 11);
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: Failing row contains (cat, 0, 10, 11).

update quotas set used = used + 7 where org = 'acme';
----
(UPDATE 1)

update quotas set used = used + 1 where org = 'acme';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from 0 to 10; it can go down by 10 and up by 0.

update quotas set quota = quota + 5 where org = 'acme';
----
(UPDATE 1)

update quotas set used = used + 5 where org = 'acme';
----
(UPDATE 1)

update quotas set used = used + 1 where org = 'acme';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from 0 to 15; it can go down by 15 and up by 0.

-- Lowering needs room.
update quotas set quota = 14 where org = 'acme';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from 0 to 14.

update quotas set quota = 20, used = used - 3 where org = 'acme' returning *;
----
org | used | quota | least
acme | 12 | 20 | 0
(UPDATE 1)

update quotas set quota = 12, least = 12 where org = 'acme' returning *;
----
org | used | quota | least
acme | 12 | 12 | 12
(UPDATE 1)

update quotas set used = used + 1 where org = 'acme';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from 12 to 12; it can go down by 0 and up by 0.

update quotas set used = used - 1 where org = 'acme';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from 12 to 12; it can go down by 0 and up by 0.

update quotas set least = 13 where org = 'acme';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from 13 to 12.

update quotas set least = -2, quota = 4, used = 0 where org = 'acme' returning *;
----
org | used | quota | least
acme | 0 | 4 | -2
(UPDATE 1)

update quotas set used = used - 2 where org = 'acme';
----
(UPDATE 1)

update quotas set used = used - 1 where org = 'acme';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from -2 to 4; it can go down by 0 and up by 6.

begin;
----
(BEGIN)

update quotas set quota = 6 where org = 'acme';
----
(UPDATE 1)

update quotas set used = used + 8 where org = 'acme';
----
(UPDATE 1)

savepoint s;
----
(SAVEPOINT)

update quotas set quota = 3 where org = 'acme';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from -2 to 3.

rollback to s;
----
(ROLLBACK)

select used, quota from quotas where org = 'acme';
----
used | quota
6 | 6
(SELECT 1)

commit;
----
(COMMIT)

update quotas set used = used + 1 where org = 'acme';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from -2 to 6; it can go down by 8 and up by 0.

-- The constant bound goes on above the column.
update quotas set used = used + 1000 where org = 'bell';
----
(UPDATE 1)

update quotas set used = used + 1 where org = 'bell';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from -5 to 1000; it can go down by 1005 and up by 0.

update quotas set quota = 3000 where org = 'bell';
----
(UPDATE 1)

update quotas set used = used + 1 where org = 'bell';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from -5 to 1000; it can go down by 1005 and up by 0.

update quotas set quota = 999 where org = 'bell';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from -5 to 999.

insert into quotas values ('bell', 0) on conflict (org) do update set quota = quotas.quota - 2000, used = quotas.used - 1000 returning *;
----
org | used | quota | least
bell | 0 | 1000 | -5
(INSERT 0 1)

update quotas set used = used + 1001 where org = 'bell';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from -5 to 1000; it can go down by 5 and up by 1000.

update quotas set used = used + 1000, org = 'bill' where org = 'bell' returning *;
----
org | used | quota | least
bill | 1000 | 1000 | -5
(UPDATE 1)

select * from quotas order by org;
----
org | used | quota | least
acme | 6 | 6 | -2
bill | 1000 | 1000 | -5
(SELECT 2)

alter table quotas alter column quota drop not null;
----
ERROR 0A000: escrow column "used" of table "quotas" can have a CHECK of >=, <= and BETWEEN with constants and NOT NULL numbers of its row only
DETAIL: Constraint "quotas_check" says something else.

alter table quotas alter column quota type int8;
----
ERROR 0A000: changing a column from type integer to type bigint is not supported yet
DETAIL: Every stored row would have to be written again.
HINT: Add a column of the new type, fill it with UPDATE, drop the old column and rename the new one.

alter table quotas drop column least;
----
ERROR 0A000: escrow column "used" of table "quotas" had constraint "quotas_check", whose columns stay until its bounds have changed

create table a (id int primary key, n numeric(8, 2) not null escrow check (n <= most), most numeric(6, 2) not null, more int8 not null);
----
(CREATE TABLE)

insert into a values (1, 1.25, 2.5, 0);
----
(INSERT 0 1)

update a set n = n + 1.26 where id = 1;
----
ERROR 23514: new row for relation "a" violates check constraint "a_check"
DETAIL: "n" stays from -999999.99 to 2.50; it can go down by 1000001.24 and up by 1.25.

update a set n = n + 1.25 where id = 1;
----
(UPDATE 1)

create table b (id int primary key, n int8 not null escrow check (n <= most), most numeric(6, 2) not null);
----
ERROR 0A000: escrow column "n" of table "b" can have a CHECK of >=, <= and BETWEEN with constants and NOT NULL numbers of its row only
DETAIL: Constraint "b_check" says something else.

create table b (id int primary key, n int8 not null escrow check (n <= most), most int8);
----
ERROR 0A000: escrow column "n" of table "b" can have a CHECK of >=, <= and BETWEEN with constants and NOT NULL numbers of its row only
DETAIL: Constraint "b_check" says something else.

create table b (id int primary key, n int8 not null escrow check (n < most), most int8 not null);
----
ERROR 0A000: escrow column "n" of table "b" can have a CHECK of >=, <= and BETWEEN with constants and NOT NULL numbers of its row only
DETAIL: Constraint "b_check" says something else.

create table b (id int primary key, n int8 not null escrow, m int8 not null escrow, check (n <= m));
----
ERROR 0A000: escrow column "n" of table "b" can have a CHECK of >=, <= and BETWEEN with constants and NOT NULL numbers of its row only
DETAIL: Constraint "b_check" says something else.

show create table quotas;
----
table_name | create_statement
quotas | CREATE TABLE public.quotas (
    org text NOT NULL,
    used bigint NOT NULL DEFAULT 0 ESCROW,
    quota integer NOT NULL DEFAULT 10,
    "least" integer NOT NULL DEFAULT 0,
    CONSTRAINT quotas_pkey PRIMARY KEY (org),
    CONSTRAINT quotas_check CHECK ((used BETWEEN least AND quota AND used <= 1000))
);
(SHOW 1)

create table c (id int primary key, used int8 not null escrow check (used between least and quota), quota int8 not null, least int8 not null default 0);
----
(CREATE TABLE)

insert into c values (1, 50, 80);
----
(INSERT 0 1)

-- What the delta gives back is taken at once.
update c set quota = 40, used = used - 20 where id = 1 returning *;
----
id | used | quota | least
1 | 30 | 40 | 0
(UPDATE 1)

update c set least = 35, used = used + 6, quota = 50 where id = 1 returning *;
----
id | used | quota | least
1 | 36 | 50 | 35
(UPDATE 1)

update c set least = 38, used = used + 1 where id = 1 returning *;
----
ERROR 23514: new row for relation "c" violates check constraint "c_check"
DETAIL: Failing row contains (1, 37, 50, 38).

