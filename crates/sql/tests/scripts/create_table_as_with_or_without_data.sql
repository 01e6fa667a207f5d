-- postgres: same
create table a (id int primary key, t text);
insert into a select i, 't' || i from generate_series(1, 5) i;
create table b as select id, t from a with data;
create table c as select id, t from a with no data;
select count(*) from b;
select count(*) from c;
insert into c values (1, 'x');
create table if not exists c as select 1 with no data;
select * from c;
