create table quotas (org text, kind text, used int8 not null default 0 escrow check (used between 0 and 50), note text, primary key (org, kind));
----
(CREATE TABLE)

insert into quotas values ('acme', 'vm', 3), ('acme', 'disk', 50), ('bell', 'vm', 0);
----
(INSERT 0 3)

insert into quotas (org, kind) values ('bell', 'disk');
----
(INSERT 0 1)

select * from quotas order by org, kind;
----
org | kind | used | note
acme | disk | 50 | ∅
acme | vm | 3 | ∅
bell | disk | 0 | ∅
bell | vm | 0 | ∅
(SELECT 4)

select used from quotas where org = 'acme' and kind = 'vm';
----
used
3
(SELECT 1)

update quotas set used = used + 3 where org = 'acme' and kind = 'vm';
----
(UPDATE 1)

update quotas set used = used - 1 where org = 'acme' and kind = 'vm';
----
(UPDATE 1)

update quotas set used = 2 + used where kind = 'vm' and org = 'acme';
----
(UPDATE 1)

select used from quotas where org = 'acme' and kind = 'vm';
----
used
7
(SELECT 1)

explain update quotas set used = used + 3 where org = 'acme' and kind = 'vm';
----
QUERY PLAN
Update on quotas (escrow delta, local)
  Index Cond: (org = 'acme') AND (kind = 'vm')
(EXPLAIN)

explain update quotas set used = used + 3 where org = 'acme';
----
QUERY PLAN
Update on quotas (escrow delta, of rows that are read)
  ->  Index Scan using quotas_pkey on quotas
        Index Cond: (org = 'acme')
        Locks rows
Regions: us-east1
(EXPLAIN)

explain update quotas set used = used * 3 where org = 'acme' and kind = 'vm';
----
QUERY PLAN
Update on quotas
  ->  Escrow Numbers (used)
        ->  Point Lookup using quotas_pkey on quotas
              Index Cond: (org = 'acme') AND (kind = 'vm')
              Locks rows
Regions: us-east1
(EXPLAIN)

explain select used, note from quotas where used > 5 and note is null;
----
QUERY PLAN
Escrow Numbers (used)
  Filter: (quotas.used > 5)
  ->  Seq Scan on quotas
        Filter: (note IS NULL)
Regions: us-east1
(EXPLAIN)

update quotas set used = used + 1 where org = 'acme' and kind = 'none';
----
(UPDATE 0)

update quotas set used = used + 44 where org = 'acme' and kind = 'vm';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_used_check"
DETAIL: "used" stays from 0 to 50; it can go down by 7 and up by 43.

update quotas set used = used - 8 where org = 'acme' and kind = 'vm';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_used_check"
DETAIL: "used" stays from 0 to 50; it can go down by 7 and up by 43.

update quotas set used = used + 1000 where org = 'acme' and kind = 'vm';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_used_check"
DETAIL: "used" stays from 0 to 50.

update quotas set used = used + 0 where org = 'acme' and kind = 'vm';
----
(UPDATE 1)

update quotas set used = used + null::int8 where org = 'acme' and kind = 'vm';
----
ERROR 23502: null value in column "used" of relation "quotas" violates not-null constraint

select kind, used from quotas where used > 5 order by used desc;
----
kind | used
disk | 50
vm | 7
(SELECT 2)

select org, sum(used), count(*) from quotas group by org order by org;
----
org | sum | count
acme | 57 | 2
bell | 0 | 2
(SELECT 2)

update quotas set used = used * 2 where org = 'acme' and kind = 'vm' returning used, kind;
----
used | kind
14 | vm
(UPDATE 1)

update quotas set used = used - 4, note = 'less' where org = 'acme' and kind = 'vm' returning *;
----
org | kind | used | note
acme | vm | 10 | less
(UPDATE 1)

update quotas set used = used + 1, note = 'more' where used < 10;
----
(UPDATE 2)

select * from quotas order by org, kind;
----
org | kind | used | note
acme | disk | 50 | ∅
acme | vm | 10 | less
bell | disk | 1 | more
bell | vm | 1 | more
(SELECT 4)

update quotas set used = 51 where org = 'bell';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_used_check"
DETAIL: Failing row contains (bell, disk, 51, more).

update quotas set used = null where org = 'bell';
----
ERROR 23502: null value in column "used" of relation "quotas" violates not-null constraint
DETAIL: Failing row contains (bell, disk, null, more).

update quotas set used = default where org = 'bell' and kind = 'vm';
----
(UPDATE 1)

update quotas set note = 'kept' where org = 'acme' and kind = 'disk' returning used;
----
used
50
(UPDATE 1)

update quotas set kind = 'ssd' where kind = 'disk' and org = 'acme';
----
(UPDATE 1)

select * from quotas order by org, kind;
----
org | kind | used | note
acme | ssd | 50 | kept
acme | vm | 10 | less
bell | disk | 1 | more
bell | vm | 0 | more
(SELECT 4)

begin;
----
(BEGIN)

update quotas set used = used + 5 where org = 'bell' and kind = 'vm';
----
(UPDATE 1)

savepoint a;
----
(SAVEPOINT)

update quotas set used = used + 2 where org = 'bell' and kind = 'vm';
----
(UPDATE 1)

select used from quotas where org = 'bell' and kind = 'vm';
----
used
7
(SELECT 1)

rollback to a;
----
(ROLLBACK)

select used from quotas where org = 'bell' and kind = 'vm';
----
used
5
(SELECT 1)

insert into quotas values ('cern', 'vm', 1);
----
(INSERT 0 1)

update quotas set used = used + 9 where org = 'cern' and kind = 'vm';
----
(UPDATE 1)

update quotas set used = used - 11 where org = 'cern' and kind = 'vm';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_used_check"
DETAIL: "used" stays from 0 to 50; it can go down by 10 and up by 40.

rollback to a;
----
(ROLLBACK)

delete from quotas where org = 'bell' and kind = 'disk';
----
(DELETE 1)

update quotas set used = used + 9 where org = 'bell' and kind = 'disk';
----
(UPDATE 0)

commit;
----
(COMMIT)

select * from quotas order by org, kind;
----
org | kind | used | note
acme | ssd | 50 | kept
acme | vm | 10 | less
bell | vm | 5 | more
(SELECT 3)

insert into quotas values ('acme', 'ssd', 1) on conflict (org, kind) do update set used = quotas.used - 10 returning used;
----
used
40
(INSERT 0 1)

insert into quotas values ('acme', 'gpu', 60);
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_used_check"
DETAIL: Failing row contains (acme, gpu, 60, null).

insert into quotas values ('acme', 'gpu', null);
----
ERROR 23502: null value in column "used" of relation "quotas" violates not-null constraint
DETAIL: Failing row contains (acme, gpu, null, null).

delete from quotas where org = 'acme' returning kind, used;
----
kind | used
ssd | 40
vm | 10
(DELETE 2)

insert into quotas values ('acme', 'vm', 7);
----
(INSERT 0 1)

select * from quotas order by org, kind;
----
org | kind | used | note
acme | vm | 7 | ∅
bell | vm | 5 | more
(SELECT 2)

select q.used, p.used from quotas q join quotas p on q.used > p.used order by 1, 2;
----
used | used
7 | 5
(SELECT 1)

show create table quotas;
----
table_name | create_statement
quotas | CREATE TABLE public.quotas (
    org text NOT NULL,
    kind text NOT NULL,
    used bigint NOT NULL DEFAULT 0 ESCROW,
    note text,
    CONSTRAINT quotas_pkey PRIMARY KEY (org, kind),
    CONSTRAINT quotas_used_check CHECK ((used BETWEEN 0 AND 50))
);
(SHOW 1)

create table prices (id int8 primary key, net numeric(8,2) not null escrow check (net >= -5.5 and 100 >= net), free int4 not null escrow);
----
(CREATE TABLE)

insert into prices values (1, 99.5, 2147483647);
----
(INSERT 0 1)

update prices set net = net + 0.25, free = free - 7 where id = 1;
----
(UPDATE 1)

update prices set net = net + 0.255 where id = 1;
----
ERROR 22003: numeric field overflow
DETAIL: What is added has more than 2 digits behind its point, and its last one may be rounded up or down.
HINT: Round it first.

update prices set net = net + 0.26 where id = 1;
----
ERROR 23514: new row for relation "prices" violates check constraint "prices_net_check"
DETAIL: "net" stays from -5.50 to 100.00; it can go down by 105.25 and up by 0.25.

update prices set net = net - 105.25 where id = 1;
----
(UPDATE 1)

update prices set free = free + 8 where id = 1;
----
ERROR 22003: integer out of range

select * from prices;
----
id | net | free
1 | -5.50 | 2147483640
(SELECT 1)

truncate prices;
----
(TRUNCATE TABLE)

select * from prices;
----
id | net | free
(SELECT 0)

insert into prices values (1, -5.5, 0);
----
(INSERT 0 1)

update prices set net = net - 0.01 where id = 1;
----
ERROR 23514: new row for relation "prices" violates check constraint "prices_net_check"
DETAIL: "net" stays from -5.50 to 100.00; it can go down by 0.00 and up by 105.50.

create index on quotas (used);
----
ERROR 0A000: escrow column "used" of table "quotas" cannot be in index "quotas_used_idx"

create index on quotas (org) include (used);
----
ERROR 0A000: escrow column "used" of table "quotas" cannot be in index "quotas_org_idx"

create index on quotas (org) where used > 3;
----
ERROR 0A000: partial indexes are not supported yet

alter table quotas add check (used < 40);
----
ERROR 0A000: escrow column "used" of table "quotas" can have one CHECK

alter table quotas drop constraint quotas_used_check;
----
(ALTER TABLE)

alter table quotas alter column used drop not null;
----
ERROR 0A000: escrow column "used" of table "quotas" must be NOT NULL

alter table quotas alter column used type int4;
----
ERROR 0A000: changing a column from type bigint to type integer is not supported yet
DETAIL: Every stored row would have to be written again.
HINT: Add a column of the new type, fill it with UPDATE, drop the old column and rename the new one.

alter table quotas add column twice int8 generated always as (used * 2) stored;
----
ERROR 0A000: escrow column "used" of table "quotas" cannot be in the expression of generated column "twice"

alter table quotas add column more int8 not null default 0 escrow;
----
(ALTER TABLE)

alter table quotas rename column used to taken;
----
(ALTER TABLE)

update quotas set taken = taken + 1 where org = 'acme' and kind = 'vm' returning taken;
----
taken
8
(UPDATE 1)

alter table quotas drop column taken;
----
(ALTER TABLE)

select * from quotas order by org, kind;
----
org | kind | note | more
acme | vm | ∅ | 0
bell | vm | more | 0
(SELECT 2)

create table wrong (id int8 primary key, n int8 escrow);
----
ERROR 0A000: escrow column "n" of table "wrong" must be NOT NULL

create table wrong (id int8 primary key, n float8 not null escrow);
----
ERROR 0A000: escrow column "n" of table "wrong" must be of an integer type, or of numeric with up to 18 digits

create table wrong (id int8 primary key, n int8 not null escrow check (n > id));
----
ERROR 0A000: escrow column "n" of table "wrong" can have a CHECK of >=, <= and BETWEEN with constants and NOT NULL numbers of its row only
DETAIL: Constraint "wrong_check" says something else.

create table wrong (id int8 primary key, n int8 not null escrow check (n between 5 and 3));
----
ERROR 42P16: no value of column "n" meets constraint "wrong_n_check"

create table wrong (id int8 primary key, n int8 not null default 9 escrow check (n between 1 and 3));
----
ERROR 23514: the default of column "n" is outside its bounds

create table wrong (id int8 primary key, n int8 not null escrow check (n <> 3));
----
ERROR 0A000: escrow column "n" of table "wrong" can have a CHECK of >=, <= and BETWEEN with constants and NOT NULL numbers of its row only
DETAIL: Constraint "wrong_n_check" says something else.

create table wrong (id int8, n int8 not null escrow primary key);
----
ERROR 0A000: escrow column "n" of table "wrong" cannot be in index "wrong_pkey"

create table wrong (id int8 primary key, n int8 not null escrow references quotas);
----
ERROR 42830: number of referencing and referenced columns for foreign key disagree

create table exact (id int8 primary key, unused int8 check (unused <> 3), a numeric(10,2) not null escrow check (a >= 0), b int2 not null escrow, c numeric(6,2) not null escrow);
----
(CREATE TABLE)

insert into exact values (1, 1, 10, 5, 0);
----
(INSERT 0 1)

update exact set a = a + 1.234 where id = 1;
----
(UPDATE 1)

update exact set a = a + 1.235 where id = 1;
----
(UPDATE 1)

update exact set a = a - 0.005 where id = 1;
----
(UPDATE 1)

update exact set a = a + 10.0 / 3 where id = 1;
----
(UPDATE 1)

update exact set c = c + 0.004 where id = 1;
----
(UPDATE 1)

update exact set c = c + 0.005 where id = 1;
----
ERROR 22003: numeric field overflow
DETAIL: What is added has more than 2 digits behind its point, and its last one may be rounded up or down.
HINT: Round it first.

select * from exact;
----
id | unused | a | b | c
1 | 1 | 15.80 | 5 | 0.00
(SELECT 1)

update exact set a = a - 100 where id = 1;
----
ERROR 23514: new row for relation "exact" violates check constraint "exact_a_check"
DETAIL: "a" stays from 0.00 to 99999999.99; it can go down by 15.80 and up by 99999984.19.

update exact set b = b + 40000 where id = 1;
----
ERROR 22003: smallint out of range

update exact set b = (b + 32760)::int2 where id = 1;
----
(UPDATE 1)

update exact set b = b + 70000 where id = 99;
----
(UPDATE 0)

update exact set b = b + null::int2 where id = 99;
----
(UPDATE 0)

insert into exact values (1, 1, null, 5, 0) on conflict do nothing;
----
ERROR 23502: null value in column "a" of relation "exact" violates not-null constraint
DETAIL: Failing row contains (1, 1, null, 5, 0.00).

insert into exact values (1, 1, 1, 1, 1) on conflict (id) do update set a = exact.a + excluded.a, b = exact.b - 1 returning a, b, c;
----
a | b | c
16.80 | 32764 | 0.00
(INSERT 0 1)

create table cents (id int8 primary key, a int8 not null escrow check (a between 0 and 5.5));
----
ERROR 0A000: escrow column "a" of table "cents" can have a CHECK of >=, <= and BETWEEN with constants and NOT NULL numbers of its row only
DETAIL: Constraint "cents_a_check" says something else.

begin;
----
(BEGIN)

insert into exact values (2, 1, 3, 3, 3);
----
(INSERT 0 1)

update exact set a = a + 2 where id = 2;
----
(UPDATE 1)

delete from exact where id = 2;
----
(DELETE 1)

update exact set a = a + 2 where id = 2;
----
(UPDATE 0)

insert into exact values (2, 1, 7, 3, 3);
----
(INSERT 0 1)

update exact set a = a + 2, b = 9 where id = 2;
----
(UPDATE 1)

commit;
----
(COMMIT)

select * from exact order by id;
----
id | unused | a | b | c
1 | 1 | 16.80 | 32764 | 0.00
2 | 1 | 9.00 | 9 | 3.00
(SELECT 2)

