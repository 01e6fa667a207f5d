create table a (id int primary key);
----
(CREATE TABLE)

create volatile table v (a int);
----
ERROR 0A000: a clause of this CREATE TABLE is not supported

create multiset table v (a int);
----
ERROR 0A000: a clause of this CREATE TABLE is not supported

create table v (a int) distkey(a);
----
ERROR 0A000: a clause of this CREATE TABLE is not supported

create table v (a int) location 'x';
----
ERROR 0A000: a clause of this CREATE TABLE is not supported

create table v (a int) cluster by (a);
----
ERROR 42601: syntax error at or near "cluster"
POSITION: 24

create table v as select id from a with data and no statistics;
----
ERROR 0A000: AND STATISTICS is not supported: a new table is counted by itself

drop table a purge;
----
ERROR 0A000: a clause of this DROP is not supported

select count(*) from a;
----
count
0
(SELECT 1)

