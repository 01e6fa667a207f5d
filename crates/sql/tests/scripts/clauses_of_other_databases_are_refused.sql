create table a (id int primary key);
create volatile table v (a int);
create multiset table v (a int);
create table v (a int) distkey(a);
create table v (a int) location 'x';
create table v (a int) cluster by (a);
create table v as select id from a with data and no statistics;
drop table a purge;
select count(*) from a;
