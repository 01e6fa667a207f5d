-- A condition that no row can pass leaves nothing to read, whatever it stands above or beside.
create table never (id int primary key, v int); insert into never select g, g % 7 from generate_series(1, 1000) g;
----
(CREATE TABLE)
(INSERT 0 1000)

explain select * from never a, never b, never c where a.v < b.v and b.v < c.v and false;
----
QUERY PLAN
Values Scan
(EXPLAIN)

select count(*) from never a, never b, never c, never d, never e where a.v < b.v and c.v < d.v and d.v <> e.v and 1 = 2;
----
count
0
(SELECT 1)

select count(*), max(a.id) from never a join never b on a.v < b.v and null where a.id > 3;
----
count | max
0 | ∅
(SELECT 1)

select a.id, b.id from never a left join never b on false and a.v = b.v where a.id < 3 order by 1;
----
id | id
1 | ∅
2 | ∅
(SELECT 2)

select a.id, b.id from never a full join never b on a.id = b.id and false where a.id < 3 or b.id < 3 order by 1, 2;
----
id | id
1 | ∅
2 | ∅
∅ | 1
∅ | 2
(SELECT 4)

select a.id from never a where exists (select 1 from never b, never c where b.v < c.v and a.id = b.id and false);
----
id
(SELECT 0)

select a.id from never a where a.id < 3 and not exists (select 1 from never b where b.id = a.id and 1 > 2) order by 1;
----
id
1
2
(SELECT 2)

select v, count(*) from never group by v having false;
----
v | count
(SELECT 0)

select count(*) from never having 1 = 0;
----
count
(SELECT 0)

select id from never where v = 1 and null for update;
----
id
(SELECT 0)

update never set v = 0 where false;
----
(UPDATE 0)

delete from never a using never b where a.v < b.v and false returning a.id;
----
id
(DELETE 0)

with w as (insert into never values (1001, 1) returning id) select w.id from w where false;
----
id
(SELECT 0)

select count(*) from never;
----
count
1001
(SELECT 1)

select 1 / (id - id) from never where false;
----
?column?
(SELECT 0)

