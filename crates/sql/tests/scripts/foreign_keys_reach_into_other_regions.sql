create database shop primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 shop
create table customers (id int primary key, name text) locality regional by row;
----
(CREATE TABLE)

create table codes (code text primary key) locality global;
----
(CREATE TABLE)

create table orders (id int primary key, customer int references customers on delete cascade on update cascade, code text references codes on delete set null) locality regional by row;
----
(CREATE TABLE)

create table notes (id int primary key, orders int references orders on delete restrict) locality regional by table in "asia-northeast1";
----
(CREATE TABLE)

insert into customers (id, name, crdb_region) values (1, 'us', 'us-east1'), (2, 'eu', 'europe-west1'), (3, 'asia', 'asia-northeast1');
----
(INSERT 0 3)

insert into codes values ('a'), ('b');
----
(INSERT 0 2)

insert into orders (id, customer, code, crdb_region) values (10, 1, 'a', 'us-east1'), (11, 2, 'a', 'us-east1'), (12, 2, 'b', 'asia-northeast1');
----
(INSERT 0 3)

insert into orders (id, customer) values (13, 4);
----
ERROR 23503: insert or update on table "orders" violates foreign key constraint "orders_customer_fkey"
DETAIL: Key (customer)=(4) is not present in table "customers".

insert into orders (id, customer, code) values (13, 3, 'c');
----
ERROR 23503: insert or update on table "orders" violates foreign key constraint "orders_code_fkey"
DETAIL: Key (code)=(c) is not present in table "codes".

insert into notes values (1, 12);
----
(INSERT 0 1)

insert into notes values (2, 13);
----
ERROR 23503: insert or update on table "notes" violates foreign key constraint "notes_orders_fkey"
DETAIL: Key (orders)=(13) is not present in table "orders".

delete from customers where id = 2;
----
ERROR 23503: update or delete on table "orders" violates foreign key constraint "notes_orders_fkey" on table "notes"
DETAIL: Key (id)=(12) is still referenced from table "notes".

delete from notes;
----
(DELETE 1)

delete from codes where code = 'b';
----
(DELETE 1)

select id, customer, code, crdb_region from orders order by id;
----
id | customer | code | crdb_region
10 | 1 | a | us-east1
11 | 2 | a | us-east1
12 | 2 | ∅ | asia-northeast1
(SELECT 3)

update customers set id = 20 where id = 2;
----
(UPDATE 1)

select id, customer, crdb_region from orders order by id;
----
id | customer | crdb_region
10 | 1 | us-east1
11 | 20 | us-east1
12 | 20 | asia-northeast1
(SELECT 3)

delete from customers where id = 20;
----
(DELETE 1)

select id from orders order by id;
----
id
10
(SELECT 1)

update customers set crdb_region = 'europe-west1' where id = 1;
----
(UPDATE 1)

select o.id, c.crdb_region from orders o join customers c on c.id = o.customer;
----
id | crdb_region
10 | europe-west1
(SELECT 1)

create table pairs (region crdb_internal_region not null, id int, primary key (region, id)) locality regional by row as region;
----
(CREATE TABLE)

create table halves (region crdb_internal_region not null, id int primary key, pair int, foreign key (region, pair) references pairs (region, id)) locality regional by row as region;
----
(CREATE TABLE)

insert into pairs values ('us-east1', 1), ('europe-west1', 1), ('europe-west1', 2);
----
(INSERT 0 3)

insert into halves values ('us-east1', 1, 1), ('europe-west1', 2, 2);
----
(INSERT 0 2)

insert into halves values ('us-east1', 3, 2);
----
ERROR 23503: insert or update on table "halves" violates foreign key constraint "halves_region_pair_fkey"
DETAIL: Key (region, pair)=(us-east1, 2) is not present in table "pairs".

update halves set region = 'us-east1' where id = 2;
----
ERROR 23503: insert or update on table "halves" violates foreign key constraint "halves_region_pair_fkey"
DETAIL: Key (region, pair)=(us-east1, 2) is not present in table "pairs".

alter table customers add column parent int;
----
(ALTER TABLE)

update customers set parent = 7 where id = 3;
----
(UPDATE 1)

alter table customers add constraint parent_exists foreign key (parent) references customers;
----
ERROR 23503: insert or update on table "customers" violates foreign key constraint "parent_exists"
DETAIL: Key (parent)=(7) is not present in table "customers".

update customers set parent = 1 where id = 3;
----
(UPDATE 1)

alter table customers add constraint parent_exists foreign key (parent) references customers;
----
(ALTER TABLE)

drop table customers;
----
ERROR 2BP01: cannot drop table customers because other objects depend on it
DETAIL: constraint orders_customer_fkey on table orders depends on table customers
HINT: Use DROP ... CASCADE to drop the dependent objects too.

drop table customers cascade;
----
(DROP TABLE)

