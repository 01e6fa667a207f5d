-- postgres: same
-- CREATE TABLE AS makes a table of a query's columns, and fills it with its rows.
create table t (a int primary key, b text, c numeric(6,2), d timestamp);
insert into t values (1, 'one', 1.5, '2020-01-02 03:04:05'), (2, 'two', null, null);
create table u as select * from t;
select * from u order by a;
create table u as select 1 as x;
create table if not exists u as select 1 as x;
select a + 1 as n from u order by n;
create table v as select b || '!' as shout, count(*), sum(c) as sums from t group by b;
select * from v order by shout;
select column_name, data_type from information_schema.columns where table_name = 'v' order by ordinal_position;
begin;
create table w as select a from t where a > 1;
insert into w values (5);
select * from w order by a;
rollback;
select * from w;
create table w as select a / (a - 2) as n from t;
select * from w;
create table w as select a, a from t;
create table w as select missing from t;
create table w as values (1, 'x'), (2, 'y');
select * from w order by column1;
create table x as with r as (select max(a) as most from t) select most from r;
table x;
