create database movr primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 movr
create table quotas (org text, kind text, used int8 not null default 0 escrow check (used between 0 and 50), net numeric(8,2) not null default 1.5 escrow, note text, primary key (org, kind));
----
(CREATE TABLE)

insert into quotas values ('acme', 'vm', 3, 1.5), ('acme', 'disk', 50, 0), ('bell', 'vm', 7, -2);
----
(INSERT 0 3)

select org, kind, escrow_estimate(used) from quotas order by org, kind;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 19

select escrow_estimate(used) as used, escrow_estimate(q.net), pg_typeof(escrow_estimate(net)) from quotas q where org = 'acme' and kind = 'vm';
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

select kind from quotas where escrow_estimate(used) > 5 and org = 'acme';
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 31

select org, kind from quotas order by escrow_estimate(used) desc limit 2;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 39

select org, sum(escrow_estimate(used)), max(escrow_estimate(net)) from quotas group by org order by org;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 17

select min(escrow_estimate(used)), max(escrow_estimate(used)), count(*) from quotas;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 12

select max(kind) from quotas where escrow_estimate(used) < 40;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 36

select escrow_estimate(used) > 5, count(*) from quotas group by escrow_estimate(used) > 5 order by 1;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

select used - escrow_estimate(used) as late from quotas where used <> escrow_estimate(used) + 1 order by org, kind;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 71

select q.kind, (select escrow_estimate(q.used) + 1), p.kind from quotas q left join quotas p on p.org = q.org and escrow_estimate(p.used) > escrow_estimate(q.used) order by q.org, q.kind;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 115

select kind from quotas q where exists (select from quotas p where p.org = q.org and escrow_estimate(p.used) < escrow_estimate(q.used));
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 86

select distinct escrow_estimate(used) from quotas where org = 'acme' or kind = 'vm' order by 1;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 17

with known as (select org, escrow_estimate(used) as about from quotas) select * from known where about < 10 order by about;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 28

create view known as select org, kind, escrow_estimate(used) as about from quotas;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 40

select * from known where org = 'acme' order by about;
----
ERROR 42P01: relation "known" does not exist
POSITION: 15

select * from quotas where kind = 'vm' and escrow_estimate(used) = 3 for update;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 44

begin;
----
(BEGIN)

update quotas set used = used + 4 where org = 'acme' and kind = 'vm';
----
(UPDATE 1)

select escrow_estimate(used), used from quotas where org = 'acme' and kind = 'vm';
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

update quotas set used = 20 where org = 'acme' and kind = 'vm';
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

update quotas set used = used - 1 where org = 'acme' and kind = 'vm';
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

select escrow_estimate(used), used from quotas where org = 'acme' and kind = 'vm';
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

delete from quotas where org = 'acme' and kind = 'vm';
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

insert into quotas values ('acme', 'vm', 9);
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

select escrow_estimate(used), used from quotas where org = 'acme' and kind = 'vm';
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

rollback;
----
(ROLLBACK)

update quotas set note = 'little' where escrow_estimate(used) < 10 returning kind, escrow_estimate(used);
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 41

update quotas set used = used + 1 where org = 'bell' and escrow_estimate(used) < 10;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 58

select * from quotas order by org, kind;
----
org | kind | used | net | note
acme | disk | 50 | 0.00 | ∅
acme | vm | 3 | 1.50 | ∅
bell | vm | 7 | -2.00 | ∅
(SELECT 3)

delete from quotas where escrow_estimate(used) >= 50;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 26

select * from quotas order by org, kind;
----
org | kind | used | net | note
acme | disk | 50 | 0.00 | ∅
acme | vm | 3 | 1.50 | ∅
bell | vm | 7 | -2.00 | ∅
(SELECT 3)

explain select org, escrow_estimate(used) from quotas where org = 'acme' and kind = 'vm';
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 21

explain select escrow_estimate(used) from quotas where escrow_estimate(net) > 5 and note is null;
----
ERROR 42883: function escrow_estimate(numeric) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 56

explain select used, escrow_estimate(used) from quotas where used > escrow_estimate(used) and used > 3;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 69

explain update quotas set note = 'x' where escrow_estimate(used) > 5;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 44

select proname, prorettype::regtype, provolatile from pg_proc where proname = 'escrow_estimate';
----
proname | prorettype | provolatile
(SELECT 0)

-- session: asia-northeast1 movr
select escrow_estimate(used) from quotas where org = 'acme' and kind = 'vm';
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 41

-- session: us-east1 movr
create table plain (id int8 primary key, n int8);
----
(CREATE TABLE)

insert into plain values (1, 1);
----
(INSERT 0 1)

select escrow_estimate(n) from plain;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

select escrow_estimate(used + 1) from quotas;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

select escrow_estimate(3);
----
ERROR 42883: function escrow_estimate(integer) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

select escrow_estimate(note) from quotas;
----
ERROR 42883: function escrow_estimate(text) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

select escrow_estimate(used, net) from quotas;
----
ERROR 42883: function escrow_estimate(bigint, numeric) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

select escrow_estimate() from quotas;
----
ERROR 42883: function escrow_estimate() does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

select escrow_estimate(missing) from quotas;
----
ERROR 42703: column "missing" does not exist
POSITION: 24

select escrow_estimate(used) from (select used from quotas) q;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

select org, escrow_estimate(used) from quotas group by org;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 13

select * from escrow_estimate(3);
----
ERROR 42883: function escrow_estimate(integer) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

select escrow_estimate(used) over () from quotas;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

insert into quotas values ('cern', 'vm', 1) returning escrow_estimate(used);
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 55

insert into quotas values ('acme', 'vm', 1) on conflict (org, kind) do update set note = escrow_estimate(quotas.used)::text;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 90

alter table quotas add check (escrow_estimate(used) < 3);
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 1

create table wrong (id int8 primary key, n int8 not null escrow, m int8 default escrow_estimate(n));
----
ERROR 0A000: cannot use column reference in DEFAULT expression

create database near primary region "us-east1" regions "europe-west1" placement restricted;
----
(CREATE DATABASE)

-- session: us-east1 near
create table quotas (id int8 primary key, used int8 not null escrow);
----
(CREATE TABLE)

insert into quotas values (1, 3);
----
(INSERT 0 1)

select escrow_estimate(used) from quotas;
----
ERROR 42883: function escrow_estimate(bigint) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

select used from quotas;
----
used
3
(SELECT 1)

