
create database movr primary region "us-east1" regions "europe-west1", "asia-northeast1";
----

-- session: us-east1 movr
create table rows (id int8 primary key, a int8 not null escrow check (a between 0 and 10)) locality regional by row;
----

create table one (id int8 primary key, a int8 not null escrow check (a between 0 and 10));
----

create table everywhere (id int8 primary key, a int8 not null escrow check (a between 0 and 10)) locality global;
----

insert into rows (id, a) values (1, 3);
----

insert into one values (1, 3);
----

insert into everywhere values (1, 3);
----

-- session: europe-west1 movr
update rows set a = a + 1 where id = 1;
----

update one set a = a + 1 where id = 1;
----

update everywhere set a = a + 1 where id = 1;
----

update rows set a = a + 1 where id = 1 and crdb_region = 'asia-northeast1';
----

update rows set a = a + 1 where id = 1 and crdb_region = 'us-east1';
----

update rows set crdb_region = 'europe-west1' where id = 1;
----

update rows set a = a + 6 where id = 1;
----

select *, crdb_region from rows;
----

update one set a = 9 where id = 1;
----

select o.a, e.a from one o join everywhere e on o.id = e.id;
----

explain update rows set a = a + 1 where id = 1;
----

explain select a from one where id = 1;
----

delete from everywhere where id = 1;
----

update everywhere set a = a + 1 where id = 1;
----

alter database movr drop region "asia-northeast1";
----

alter table one set locality global;
----

drop table one;
----

