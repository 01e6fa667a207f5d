-- postgres: same
-- CREATE TABLE AS makes a table of a query's columns, and fills it with its rows.
create table t (a int primary key, b text, c numeric(6,2), d timestamp);
----
(CREATE TABLE)

insert into t values (1, 'one', 1.5, '2020-01-02 03:04:05'), (2, 'two', null, null);
----
(INSERT 0 2)

create table u as select * from t;
----
(SELECT 2)

select * from u order by a;
----
a | b | c | d
1 | one | 1.50 | 2020-01-02 03:04:05
2 | two | ∅ | ∅
(SELECT 2)

create table u as select 1 as x;
----
ERROR 42P07: relation "u" already exists

create table if not exists u as select 1 as x;
----
(CREATE TABLE AS)

select a + 1 as n from u order by n;
----
n
2
3
(SELECT 2)

create table v as select b || '!' as shout, count(*), sum(c) as sums from t group by b;
----
(SELECT 2)

select * from v order by shout;
----
shout | count | sums
one! | 1 | 1.50
two! | 1 | ∅
(SELECT 2)

select column_name, data_type from information_schema.columns where table_schema = 'public' and table_name = 'v' order by ordinal_position;
----
column_name | data_type
shout | text
count | bigint
sums | numeric
(SELECT 3)

begin;
----
(BEGIN)

create table w as select a from t where a > 1;
----
(SELECT 1)

insert into w values (5);
----
(INSERT 0 1)

select * from w order by a;
----
a
2
5
(SELECT 2)

rollback;
----
(ROLLBACK)

select * from w;
----
ERROR 42P01: relation "w" does not exist
POSITION: 15

create table w as select a / (a - 2) as n from t;
----
ERROR 22012: division by zero

select * from w;
----
ERROR 42P01: relation "w" does not exist
POSITION: 15

create table w as select a, a from t;
----
ERROR 42701: column "a" specified more than once

create table w as select missing from t;
----
ERROR 42703: column "missing" does not exist
POSITION: 26

create table w as values (1, 'x'), (2, 'y');
----
(SELECT 2)

select * from w order by column1;
----
column1 | column2
1 | x
2 | y
(SELECT 2)

create table x as with r as (select max(a) as most from t) select most from r;
----
(SELECT 1)

table x;
----
most
2
(SELECT 1)

