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
ERROR 42704: unrecognized configuration parameter "escrow.for.table.quotas"

show escrow for table quotas for row ('acme', 'vm');
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.quotas.for.row"

show escrow for table quotas for row ('be''ll', 'v' || 'm');
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.quotas.for.row"

show escrow for table quotas for row ('none', 'vm');
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.quotas.for.row"

select region, part, can_add from [show escrow for table quotas] where org = 'acme' and column_name = 'used' and part > 10 order by can_add;
----
ERROR 0A000: [show escrow for table quotas] is not supported
POSITION: 35

with shown as (show escrow for table quotas for row ('acme', 'vm')) select column_name, sum(part), sum(can_take), sum(can_add) from shown group by column_name order by 1;
----
ERROR 42601: syntax error at or near ")"
POSITION: 67

select q.org, s.region from quotas q join [show escrow for table quotas] s on s.org = q.org and s.kind = q.kind where q.note is null and s.column_name = 'used' limit 4;
----
ERROR 0A000: [show escrow for table quotas] is not supported
POSITION: 43

begin;
----
(BEGIN)

update quotas set used = used - 1, net = net + 0.25 where org = 'acme' and kind = 'vm';
----
(UPDATE 1)

show escrow for table quotas for row ('acme', 'vm');
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.quotas.for.row"

update quotas set used = 40 where org = 'acme' and kind = 'vm';
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

show escrow for table quotas for row ('acme', 'vm');
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

delete from quotas where org = 'acme' and kind = 'vm';
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

show escrow for table quotas for row ('acme', 'vm');
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

rollback;
----
(ROLLBACK)

explain show escrow for table quotas;
----
ERROR 0A000: this statement is not supported: SHOW escrow for

explain select part from [show escrow for table quotas] where org = 'acme' and kind = 'vm' and region = 'us-east1';
----
ERROR 0A000: [show escrow for table quotas] is not supported
POSITION: 26

explain select * from [show escrow for table quotas] order by org, kind;
----
ERROR 0A000: [show escrow for table quotas] is not supported
POSITION: 23

prepare shown as show escrow for table quotas for row ($1, $2);
----
ERROR 0A000: this statement is not supported: SHOW escrow for

execute shown('acme', 'disk');
----
ERROR 26000: prepared statement "shown" does not exist

show escrow for table quotas limit 2;
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.quotas.limit"

select org, kind, part from [show escrow for table quotas] limit 2;
----
ERROR 0A000: [show escrow for table quotas] is not supported
POSITION: 29

create table orders (id int8 primary key, stock int4 not null escrow check (stock >= 0)) locality regional by row;
----
(CREATE TABLE)

insert into orders (crdb_region, id, stock) values ('us-east1', 2, 20), ('europe-west1', 1, 10), ('asia-northeast1', 3, 30);
----
(INSERT 0 3)

show escrow for table orders;
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.orders"

explain show escrow for table orders;
----
ERROR 0A000: this statement is not supported: SHOW escrow for

create table one (region text, stock int8 not null escrow);
----
(CREATE TABLE)

insert into one values ('x', 4);
----
(INSERT 0 1)

select * from [show escrow for table one] s (id, what, site) where site = 'us-east1';
----
ERROR 0A000: [show escrow for table one] is not supported
POSITION: 15

create table plain (id int8 primary key, n int8);
----
(CREATE TABLE)

create view seen as select * from quotas;
----
(CREATE VIEW)

show escrow for table plain;
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.plain"

show escrow for table seen;
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.seen"

show escrow for table nothing;
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.nothing"

show escrow for table quotas for row ('acme');
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.quotas.for.row"

show escrow for table quotas for row ('acme', 'vm', 1);
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.quotas.for.row"

show escrow for table quotas for row (org, kind);
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.quotas.for.row.org.kind"

show escrow for table orders for row (true);
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.orders.for.row.true"

show escrow for table orders for row ('x');
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.orders.for.row"

show escrow for quotas;
----
ERROR 42704: unrecognized configuration parameter "escrow.for.quotas"

show escrow for table quotas for row;
----
ERROR 42704: unrecognized configuration parameter "escrow.for.table.quotas.for.row"

show escrow;
----
ERROR 42704: unrecognized configuration parameter "escrow"

select region from [show escrow for table one] where region = 'x';
----
ERROR 0A000: [show escrow for table one] is not supported
POSITION: 20

