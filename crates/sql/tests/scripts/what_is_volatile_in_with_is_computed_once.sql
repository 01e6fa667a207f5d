-- postgres: same
create sequence numbers;
----
(CREATE SEQUENCE)

create table tasks (id int primary key, state text);
----
(CREATE TABLE)

insert into tasks select g, case when g % 3 = 0 then 'new' else 'done' end from generate_series(1, 60) as g;
----
(INSERT 0 60)

with c as (select random() as r) select count(distinct x) from (select (select r from c where g > 0) as x from generate_series(1, 100) as g) as z;
----
count
1
(SELECT 1)

with c as (select nextval('numbers') as n) select count(distinct x), max(x) from (select (select n from c where g > 0) as x from generate_series(1, 100) as g) as z;
----
count | max
1 | 1
(SELECT 1)

with c as (select random() as r) select count(distinct x.r) from generate_series(1, 50) as g, lateral (select r from c where g > 0) as x;
----
count
1
(SELECT 1)

with c as (select nextval('numbers') as n) select count(*) from tasks as t where exists (select from c where c.n < t.id);
----
count
58
(SELECT 1)

select last_value from numbers;
----
last_value
2
(SELECT 1)

with c as (select id from tasks where state = 'new' order by id limit 3 for update skip locked) select count(*) from tasks as t where exists (select from c where c.id = t.id);
----
count
3
(SELECT 1)

with c as (select id from tasks where state = 'new' order by id limit 3 for update skip locked) update tasks as t set state = 'taken' from c where c.id = t.id returning t.id;
----
id
3
6
9
(UPDATE 3)

with c as (select id from tasks where state = 'new' order by id limit 3 for update skip locked), u as (update tasks as t set state = 'taken' where exists (select from c where c.id = t.id) returning t.id) select count(*), sum(id) from u;
----
count | sum
3 | 45
(SELECT 1)

with c as (select id from tasks where state = 'new' order by id limit 3 for update skip locked), u as (update tasks as t set state = 'taken' where t.id in (select id from c) returning t.id) select count(*), sum(id) from u;
----
count | sum
3 | 72
(SELECT 1)

with c as (select id from tasks where state = 'new' order by id limit 3 for update) delete from tasks as t using c where c.id = t.id returning t.id;
----
id
30
33
36
(DELETE 3)

select state, count(*) from tasks group by 1 order by 1;
----
state | count
done | 40
new | 8
taken | 9
(SELECT 3)

