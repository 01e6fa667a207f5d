-- postgres: same
create table t (id int primary key, v int);
----
(CREATE TABLE)

insert into t values (1, 5), (2, null), (3, 7);
----
(INSERT 0 3)

select ((select 1) union (select 2) order by 1 desc limit 1);
----
?column?
2
(SELECT 1)

select id, coalesce(((select v from t where id = 2) intersect (select null::int)), 0) as c from t order by id;
----
id | c
1 | 0
2 | 0
3 | 0
(SELECT 3)

select id from t where id = any ((select v - 2 from t) union all (select 1)) order by id;
----
id
1
3
(SELECT 2)

select id from t where id = ((select t.id) except (select 2));
----
id
1
3
(SELECT 2)

select id from t where -((select 1) union (select 1)) = -id;
----
id
1
(SELECT 1)

select case ((select 1) union (select 1)) when 1 then 'one' end;
----
case
one
(SELECT 1)

select * from (((select 1) union (select 2)) intersect (select 2)) as s;
----
?column?
2
(SELECT 1)

select id from t where id in ((select 1) union (select 3)) and exists ((select 1) except (select 2)) order by id;
----
id
1
3
(SELECT 2)

select id from t where v is distinct from ((select 5) union (select 5)) and id is not distinct from ((select 2) except (select 7));
----
id
2
(SELECT 1)

select extract(day from ((select date '2024-01-02') union (select date '2024-01-02'))) as d, substring('abc' from ((select 2) union (select 2)) for 1) as s;
----
d | s
2 | b
(SELECT 1)

values (((select 1) union (select 1)), 2);
----
column1 | column2
1 | 2
(SELECT 1)

(select id from t order by id) order by id desc;
----
ERROR 42601: multiple ORDER BY clauses not allowed

(select id from t limit 1) limit 1;
----
ERROR 42601: multiple LIMIT clauses not allowed

(select id from t offset 1) offset 1;
----
ERROR 42601: multiple OFFSET clauses not allowed

(select id from t order by id desc) limit 1;
----
id
3
(SELECT 1)

