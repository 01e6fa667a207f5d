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
org | kind | escrow_estimate
acme | disk | 50
acme | vm | 3
bell | vm | 7
(SELECT 3)

select escrow_estimate(used) as used, escrow_estimate(q.net), pg_typeof(escrow_estimate(net)) from quotas q where org = 'acme' and kind = 'vm';
----
used | escrow_estimate | pg_typeof
3 | 1.50 | numeric
(SELECT 1)

select kind from quotas where escrow_estimate(used) > 5 and org = 'acme';
----
kind
disk
(SELECT 1)

select org, kind from quotas order by escrow_estimate(used) desc limit 2;
----
org | kind
acme | disk
bell | vm
(SELECT 2)

select org, sum(escrow_estimate(used)), max(escrow_estimate(net)) from quotas group by org order by org;
----
org | sum | max
acme | 53 | 1.50
bell | 7 | -2.00
(SELECT 2)

select min(escrow_estimate(used)), max(escrow_estimate(used)), count(*) from quotas;
----
min | max | count
3 | 50 | 3
(SELECT 1)

select max(kind) from quotas where escrow_estimate(used) < 40;
----
max
vm
(SELECT 1)

select escrow_estimate(used) > 5, count(*) from quotas group by escrow_estimate(used) > 5 order by 1;
----
?column? | count
f | 1
t | 2
(SELECT 2)

select used - escrow_estimate(used) as late from quotas where used <> escrow_estimate(used) + 1 order by org, kind;
----
late
0
0
0
(SELECT 3)

select q.kind, (select escrow_estimate(q.used) + 1), p.kind from quotas q left join quotas p on p.org = q.org and escrow_estimate(p.used) > escrow_estimate(q.used) order by q.org, q.kind;
----
kind | ?column? | kind
disk | 51 | ∅
vm | 4 | disk
vm | 8 | ∅
(SELECT 3)

select kind from quotas q where exists (select from quotas p where p.org = q.org and escrow_estimate(p.used) < escrow_estimate(q.used));
----
kind
disk
(SELECT 1)

select distinct escrow_estimate(used) from quotas where org = 'acme' or kind = 'vm' order by 1;
----
escrow_estimate
3
7
50
(SELECT 3)

with known as (select org, escrow_estimate(used) as about from quotas) select * from known where about < 10 order by about;
----
org | about
acme | 3
bell | 7
(SELECT 2)

create view known as select org, kind, escrow_estimate(used) as about from quotas;
----
(CREATE VIEW)

select * from known where org = 'acme' order by about;
----
org | kind | about
acme | vm | 3
acme | disk | 50
(SELECT 2)

select * from quotas where kind = 'vm' and escrow_estimate(used) = 3 for update;
----
org | kind | used | net | note
acme | vm | 3 | 1.50 | ∅
(SELECT 1)

begin;
----
(BEGIN)

update quotas set used = used + 4 where org = 'acme' and kind = 'vm';
----
(UPDATE 1)

select escrow_estimate(used), used from quotas where org = 'acme' and kind = 'vm';
----
escrow_estimate | used
7 | 7
(SELECT 1)

update quotas set used = 20 where org = 'acme' and kind = 'vm';
----
(UPDATE 1)

update quotas set used = used - 1 where org = 'acme' and kind = 'vm';
----
(UPDATE 1)

select escrow_estimate(used), used from quotas where org = 'acme' and kind = 'vm';
----
escrow_estimate | used
19 | 19
(SELECT 1)

delete from quotas where org = 'acme' and kind = 'vm';
----
(DELETE 1)

insert into quotas values ('acme', 'vm', 9);
----
(INSERT 0 1)

select escrow_estimate(used), used from quotas where org = 'acme' and kind = 'vm';
----
escrow_estimate | used
9 | 9
(SELECT 1)

rollback;
----
(ROLLBACK)

update quotas set note = 'little' where escrow_estimate(used) < 10 returning kind, escrow_estimate(used);
----
kind | escrow_estimate
vm | 3
vm | 7
(UPDATE 2)

update quotas set used = used + 1 where org = 'bell' and escrow_estimate(used) < 10;
----
(UPDATE 1)

select * from quotas order by org, kind;
----
org | kind | used | net | note
acme | disk | 50 | 0.00 | ∅
acme | vm | 3 | 1.50 | little
bell | vm | 8 | -2.00 | little
(SELECT 3)

delete from quotas where escrow_estimate(used) >= 50;
----
(DELETE 1)

select * from quotas order by org, kind;
----
org | kind | used | net | note
acme | vm | 3 | 1.50 | little
bell | vm | 8 | -2.00 | little
(SELECT 2)

explain select org, escrow_estimate(used) from quotas where org = 'acme' and kind = 'vm';
----
QUERY PLAN
Escrow Estimates (used), read in this region
  ->  Point Lookup using quotas_pkey on quotas
        Index Cond: (org = 'acme') AND (kind = 'vm')
        Regions: us-east1 (round trips between regions: 0)
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

explain select escrow_estimate(used) from quotas where escrow_estimate(net) > 5 and note is null;
----
QUERY PLAN
Escrow Estimates (used, net), read in this region
  Filter: (escrow_estimate(net) > 5)
  ->  Seq Scan on quotas
        Filter: (note IS NULL)
        Regions: us-east1 (round trips between regions: 0)
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

explain select used, escrow_estimate(used) from quotas where used > escrow_estimate(used) and used > 3;
----
QUERY PLAN
Escrow Estimates (used), read in this region
  Filter: (quotas.used > escrow_estimate(used))
  ->  Escrow Numbers (used)
        Filter: (quotas.used > 3)
        ->  Seq Scan on quotas
              Regions: us-east1 (round trips between regions: 0)
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

explain update quotas set note = 'x' where escrow_estimate(used) > 5;
----
QUERY PLAN
Update on quotas
  ->  Escrow Estimates (used), read in this region
        Filter: (escrow_estimate(used) > 5)
        ->  Seq Scan on quotas
              Locks rows
              Regions: us-east1 (round trips between regions: 0)
Regions: us-east1
Predicted Round Trips Between Regions: 0
(EXPLAIN)

select proname, prorettype::regtype, provolatile from pg_proc where proname = 'escrow_estimate';
----
proname | prorettype | provolatile
escrow_estimate | 2283 | s
(SELECT 1)

-- session: asia-northeast1 movr
select escrow_estimate(used) from quotas where org = 'acme' and kind = 'vm';
----
escrow_estimate
3
(SELECT 1)

-- session: us-east1 movr
create table plain (id int8 primary key, n int8);
----
(CREATE TABLE)

insert into plain values (1, 1);
----
(INSERT 0 1)

select escrow_estimate(n) from plain;
----
ERROR 42809: column "n" is not an escrow column
POSITION: 8

select escrow_estimate(used + 1) from quotas;
----
ERROR 42809: the argument of escrow_estimate must be an escrow column
POSITION: 8

select escrow_estimate(3);
----
ERROR 42809: the argument of escrow_estimate must be an escrow column
POSITION: 8

select escrow_estimate(note) from quotas;
----
ERROR 42809: column "note" is not an escrow column
POSITION: 8

select escrow_estimate(used, net) from quotas;
----
ERROR 42883: function escrow_estimate with 2 arguments does not exist
POSITION: 8

select escrow_estimate() from quotas;
----
ERROR 42883: function escrow_estimate with 0 arguments does not exist
POSITION: 8

select escrow_estimate(missing) from quotas;
----
ERROR 42703: column "missing" does not exist
POSITION: 24

select escrow_estimate(used) from (select used from quotas) q;
----
ERROR 0A000: escrow_estimate of column "used" is not supported here
HINT: Call it in a query whose FROM names the table itself.
POSITION: 8

select org, escrow_estimate(used) from quotas group by org;
----
ERROR 42803: column "quotas.used" must appear in the GROUP BY clause or be used in an aggregate function

select * from escrow_estimate(3);
----
ERROR 42809: the argument of escrow_estimate must be an escrow column

select escrow_estimate(used) over () from quotas;
----
ERROR 42809: escrow_estimate is not an aggregate function
POSITION: 8

insert into quotas values ('cern', 'vm', 1) returning escrow_estimate(used);
----
ERROR 0A000: escrow_estimate of column "used" is not supported here
HINT: Call it in a query whose FROM names the table itself.
POSITION: 55

insert into quotas values ('acme', 'vm', 1) on conflict (org, kind) do update set note = escrow_estimate(quotas.used)::text;
----
ERROR 0A000: escrow_estimate of column "used" is not supported here
HINT: Call it in a query whose FROM names the table itself.
POSITION: 90

alter table quotas add check (escrow_estimate(used) < 3);
----
ERROR 0A000: escrow_estimate of column "used" is not supported here
HINT: Call it in a query whose FROM names the table itself.
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
ERROR 55000: region "us-east1" has no replica of the part of the number that region "europe-west1" has
HINT: Read the number itself.

select used from quotas;
----
used
3
(SELECT 1)

