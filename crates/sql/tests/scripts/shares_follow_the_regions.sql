create database movr primary region "us-east1";
----
(CREATE DATABASE)

-- session: us-east1 movr
create table rows (id int8 primary key, a int8 not null escrow check (a between 0 and 10)) locality regional by row;
----
(CREATE TABLE)

create table one (id int8 primary key, a int8 not null escrow check (a between 0 and most), most int8 not null);
----
(CREATE TABLE)

create table everywhere (id int8 primary key, a int8 not null escrow) locality global;
----
(CREATE TABLE)

insert into rows (id, a) values (1, 3), (2, 4);
----
(INSERT 0 2)

insert into one select n, 3, 10 from generate_series(1, 300) n;
----
(INSERT 0 300)

insert into everywhere values (1, 3);
----
(INSERT 0 1)

alter database movr add region "europe-west1";
----
(ALTER DATABASE)

alter database movr add region "asia-northeast1";
----
(ALTER DATABASE)

-- session: asia-northeast1 movr
-- A number that is set has a share in every region.
update one set a = a * 1 + 1;
----
(UPDATE 300)

update one set a = a + 1 where id = 1;
----
(UPDATE 1)

update rows set a = a * 2;
----
(UPDATE 2)

update rows set a = a - 1 where id = 1;
----
(UPDATE 1)

insert into rows (id, a) values (3, 5);
----
(INSERT 0 1)

-- session: us-east1 movr
select * from rows order by id;
----
id | a
1 | 5
2 | 8
3 | 5
(SELECT 3)

select count(*), sum(a), max(a) from one;
----
count | sum | max
300 | 1201 | 5
(SELECT 1)

alter database movr drop region "asia-northeast1";
----
ERROR 2BP01: could not remove enum value "asia-northeast1" as it is being used by "rows"
DETAIL: Rows of the table are homed in "asia-northeast1".
HINT: Move them to another region, or delete them, before dropping the region.

update rows set crdb_region = 'europe-west1' where id = 3;
----
(UPDATE 1)

alter database movr drop region "asia-northeast1";
----
(ALTER DATABASE)

select * from rows order by id;
----
id | a
1 | 5
2 | 8
3 | 5
(SELECT 3)

select count(*), sum(a), max(a) from one;
----
count | sum | max
300 | 1201 | 5
(SELECT 1)

update rows set a = a + 6 where id = 1;
----
ERROR 23514: new row for relation "rows" violates check constraint "rows_a_check"
DETAIL: "a" stays from 0 to 10; it can go down by 5 and up by 5.

update rows set a = a + 5 where id = 1;
----
(UPDATE 1)

update one set most = 4 where id = 2;
----
(UPDATE 1)

update one set a = a + 1 where id = 2;
----
ERROR 23514: new row for relation "one" violates check constraint "one_check"
DETAIL: "a" stays from 0 to 4; it can go down by 4 and up by 0.

alter database movr add region "asia-northeast1";
----
(ALTER DATABASE)

alter database movr set primary region "europe-west1";
----
(ALTER DATABASE)

update everywhere set a = a + 1 where id = 1;
----
(UPDATE 1)

update rows set a = a - 1 where id = 3;
----
(UPDATE 1)

update one set a = 0;
----
(UPDATE 300)

select sum(a) from one;
----
sum
0
(SELECT 1)

alter database movr drop region "us-east1";
----
ERROR 2BP01: could not remove enum value "us-east1" as it is being used by "rows"
DETAIL: Rows of the table are homed in "us-east1".
HINT: Move them to another region, or delete them, before dropping the region.

update rows set crdb_region = 'europe-west1' where true;
----
(UPDATE 3)

alter database movr drop region "us-east1";
----
(ALTER DATABASE)

select * from rows order by id;
----
id | a
1 | 10
2 | 8
3 | 4
(SELECT 3)

select * from everywhere;
----
id | a
1 | 4
(SELECT 1)

update rows set a = a - 9 where id = 1;
----
(UPDATE 1)

update rows set a = a - 2 where id = 1;
----
ERROR 23514: new row for relation "rows" violates check constraint "rows_a_check"
DETAIL: "a" stays from 0 to 10; it can go down by 1 and up by 9.

