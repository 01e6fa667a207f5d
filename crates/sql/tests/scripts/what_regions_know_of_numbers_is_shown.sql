create database movr primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 movr
create table quotas (org text, kind text, used int8 not null default 0 escrow check (used between 0 and 50), net numeric(8,2) not null default 1.5 escrow, note text, primary key (org, kind));
----
(CREATE TABLE)

insert into quotas values ('acme', 'vm', 3, 1.5), ('acme', 'disk', 50, 0), ('be''ll', 'vm', 7, -2);
----
(INSERT 0 3)

show escrow for table quotas;
----
org | kind | column_name | region | part | can_take | can_add
acme | disk | used | us-east1 | 50 | 50 | 0
acme | disk | used | asia-northeast1 | ∅ | ∅ | ∅
acme | disk | used | europe-west1 | ∅ | ∅ | ∅
acme | disk | net | us-east1 | 0.00 | 999999.99 | 999999.99
acme | disk | net | asia-northeast1 | ∅ | ∅ | ∅
acme | disk | net | europe-west1 | ∅ | ∅ | ∅
acme | vm | used | us-east1 | 3 | 3 | 47
acme | vm | used | asia-northeast1 | ∅ | ∅ | ∅
acme | vm | used | europe-west1 | ∅ | ∅ | ∅
acme | vm | net | us-east1 | 1.50 | 1000001.49 | 999998.49
acme | vm | net | asia-northeast1 | ∅ | ∅ | ∅
acme | vm | net | europe-west1 | ∅ | ∅ | ∅
be'll | vm | used | us-east1 | 7 | 7 | 43
be'll | vm | used | asia-northeast1 | ∅ | ∅ | ∅
be'll | vm | used | europe-west1 | ∅ | ∅ | ∅
be'll | vm | net | us-east1 | -2.00 | 999997.99 | 1000001.99
be'll | vm | net | asia-northeast1 | ∅ | ∅ | ∅
be'll | vm | net | europe-west1 | ∅ | ∅ | ∅
(SELECT 18)

show escrow for table quotas for row ('acme', 'vm');
----
org | kind | column_name | region | part | can_take | can_add
acme | vm | used | us-east1 | 3 | 3 | 47
acme | vm | used | asia-northeast1 | ∅ | ∅ | ∅
acme | vm | used | europe-west1 | ∅ | ∅ | ∅
acme | vm | net | us-east1 | 1.50 | 1000001.49 | 999998.49
acme | vm | net | asia-northeast1 | ∅ | ∅ | ∅
acme | vm | net | europe-west1 | ∅ | ∅ | ∅
(SELECT 6)

show escrow for table quotas for row ('be''ll', 'v' || 'm');
----
org | kind | column_name | region | part | can_take | can_add
be'll | vm | used | us-east1 | 7 | 7 | 43
be'll | vm | used | asia-northeast1 | ∅ | ∅ | ∅
be'll | vm | used | europe-west1 | ∅ | ∅ | ∅
be'll | vm | net | us-east1 | -2.00 | 999997.99 | 1000001.99
be'll | vm | net | asia-northeast1 | ∅ | ∅ | ∅
be'll | vm | net | europe-west1 | ∅ | ∅ | ∅
(SELECT 6)

show escrow for table quotas for row ('none', 'vm');
----
org | kind | column_name | region | part | can_take | can_add
(SELECT 0)

select region, part, can_add from [show escrow for table quotas] where org = 'acme' and column_name = 'used' and part > 10 order by can_add;
----
region | part | can_add
us-east1 | 50 | 0
(SELECT 1)

with shown as (show escrow for table quotas for row ('acme', 'vm')) select column_name, sum(part), sum(can_take), sum(can_add) from shown group by column_name order by 1;
----
column_name | sum | sum | sum
net | 1.50 | 1000001.49 | 999998.49
used | 3 | 3 | 47
(SELECT 2)

select q.org, s.region from quotas q join [show escrow for table quotas] s on s.org = q.org and s.kind = q.kind where q.note is null and s.column_name = 'used' limit 4;
----
org | region
acme | us-east1
acme | asia-northeast1
acme | europe-west1
acme | us-east1
(SELECT 4)

begin;
----
(BEGIN)

update quotas set used = used - 1, net = net + 0.25 where org = 'acme' and kind = 'vm';
----
(UPDATE 1)

show escrow for table quotas for row ('acme', 'vm');
----
org | kind | column_name | region | part | can_take | can_add
acme | vm | used | us-east1 | 2 | 2 | 48
acme | vm | used | asia-northeast1 | ∅ | ∅ | ∅
acme | vm | used | europe-west1 | ∅ | ∅ | ∅
acme | vm | net | us-east1 | 1.75 | 1000001.74 | 999998.24
acme | vm | net | asia-northeast1 | ∅ | ∅ | ∅
acme | vm | net | europe-west1 | ∅ | ∅ | ∅
(SELECT 6)

update quotas set used = 40 where org = 'acme' and kind = 'vm';
----
(UPDATE 1)

show escrow for table quotas for row ('acme', 'vm');
----
org | kind | column_name | region | part | can_take | can_add
acme | vm | used | us-east1 | 40 | 40 | 10
acme | vm | used | asia-northeast1 | 0 | 0 | 0
acme | vm | used | europe-west1 | 0 | 0 | 0
acme | vm | net | us-east1 | 1.75 | 1000001.74 | 999998.24
acme | vm | net | asia-northeast1 | ∅ | ∅ | ∅
acme | vm | net | europe-west1 | ∅ | ∅ | ∅
(SELECT 6)

delete from quotas where org = 'acme' and kind = 'vm';
----
(DELETE 1)

show escrow for table quotas for row ('acme', 'vm');
----
org | kind | column_name | region | part | can_take | can_add
(SELECT 0)

rollback;
----
(ROLLBACK)

explain show escrow for table quotas;
----
QUERY PLAN
Escrow Shares of quotas
  Shares: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
  ->  Seq Scan on quotas
        Regions: us-east1 (round trips between regions: 0)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

explain select part from [show escrow for table quotas] where org = 'acme' and kind = 'vm' and region = 'us-east1';
----
QUERY PLAN
Filter
  Filter: (region = 'us-east1')
  ->  Escrow Shares of quotas
        Shares: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
        ->  Point Lookup using quotas_pkey on quotas
              Index Cond: (org = 'acme') AND (kind = 'vm')
              Regions: us-east1 (round trips between regions: 0)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

explain select * from [show escrow for table quotas] order by org, kind;
----
QUERY PLAN
Escrow Shares of quotas
  Shares: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
  ->  Seq Scan on quotas
        Regions: us-east1 (round trips between regions: 0)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

prepare shown as show escrow for table quotas for row ($1, $2);
----
(PREPARE)

execute shown('acme', 'disk');
----
org | kind | column_name | region | part | can_take | can_add
acme | disk | used | us-east1 | 50 | 50 | 0
acme | disk | used | asia-northeast1 | ∅ | ∅ | ∅
acme | disk | used | europe-west1 | ∅ | ∅ | ∅
acme | disk | net | us-east1 | 0.00 | 999999.99 | 999999.99
acme | disk | net | asia-northeast1 | ∅ | ∅ | ∅
acme | disk | net | europe-west1 | ∅ | ∅ | ∅
(SELECT 6)

show escrow for table quotas limit 2;
----
ERROR 42601: syntax error at or near "limit"
POSITION: 30

select org, kind, part from [show escrow for table quotas] limit 2;
----
org | kind | part
acme | disk | 50
acme | disk | ∅
(SELECT 2)

create table orders (id int8 primary key, stock int4 not null escrow check (stock >= 0)) locality regional by row;
----
(CREATE TABLE)

insert into orders (crdb_region, id, stock) values ('us-east1', 2, 20), ('europe-west1', 1, 10), ('asia-northeast1', 3, 30);
----
(INSERT 0 3)

show escrow for table orders;
----
id | column_name | region | part | can_take | can_add
1 | stock | asia-northeast1 | ∅ | ∅ | ∅
1 | stock | europe-west1 | 10 | 10 | 2147483637
1 | stock | us-east1 | ∅ | ∅ | ∅
2 | stock | asia-northeast1 | ∅ | ∅ | ∅
2 | stock | europe-west1 | ∅ | ∅ | ∅
2 | stock | us-east1 | 20 | 20 | 2147483627
3 | stock | asia-northeast1 | 30 | 30 | 2147483617
3 | stock | europe-west1 | ∅ | ∅ | ∅
3 | stock | us-east1 | ∅ | ∅ | ∅
(SELECT 9)

explain show escrow for table orders;
----
QUERY PLAN
Escrow Shares of orders
  Shares: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
  ->  Seq Scan on orders
        Regions: asia-northeast1, europe-west1, us-east1 (round trips between regions: 1)
Regions: asia-northeast1, europe-west1, us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

create table one (region text, stock int8 not null escrow);
----
(CREATE TABLE)

insert into one values ('x', 4);
----
(INSERT 0 1)

select what, site, part, can_take, can_add from [show escrow for table one] s (id, what, site) where site = 'us-east1';
----
what | site | part | can_take | can_add
stock | us-east1 | 4 | 9223372036854775812 | 9223372036854775803
(SELECT 1)

create table plain (id int8 primary key, n int8);
----
(CREATE TABLE)

create view seen as select * from quotas;
----
(CREATE VIEW)

show escrow for table plain;
----
ERROR 42809: table "plain" has no escrow columns
POSITION: 1

show escrow for table seen;
----
ERROR 42809: "seen" is not a table
POSITION: 1

show escrow for table nothing;
----
ERROR 42P01: relation "nothing" does not exist
POSITION: 1

show escrow for table quotas for row ('acme');
----
ERROR 42601: FOR ROW has the wrong number of values for table "quotas"
DETAIL: Its primary key has 2, FOR ROW has 1.
POSITION: 1

show escrow for table quotas for row ('acme', 'vm', 1);
----
ERROR 42601: FOR ROW has the wrong number of values for table "quotas"
DETAIL: Its primary key has 2, FOR ROW has 3.
POSITION: 1

show escrow for table quotas for row (org, kind);
----
ERROR 42703: column "org" does not exist
POSITION: 1

show escrow for table orders for row (true);
----
ERROR 42883: operator does not exist: bigint = boolean
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
POSITION: 1

show escrow for table orders for row ('x');
----
ERROR 22P02: invalid input syntax for type bigint: "x"
POSITION: 1

show escrow for quotas;
----
ERROR 42601: syntax error at or near "quotas"
POSITION: 17

show escrow for table quotas for row;
----
ERROR 42601: syntax error at end of input
POSITION: 37

show escrow;
----
ERROR 42704: unrecognized configuration parameter "escrow"

select region from [show escrow for table one] where region = 'x';
----
region
(SELECT 0)

