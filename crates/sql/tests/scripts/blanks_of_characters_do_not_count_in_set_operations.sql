-- postgres: same
create table ch (id int primary key, c char(4), d char(6));
----
(CREATE TABLE)

insert into ch values (1, 'a', 'a'), (2, 'b', 'bb'), (3, null, 'c');
----
(INSERT 0 3)

select c || '.' from ((select 'b'::char(4) as c) intersect (select max(c) from ch)) q;
----
?column?
b.
(SELECT 1)

(select max(c) from ch) except (select 'b'::char(4));
----
max
(SELECT 0)

(select 'b'::char(4)) except (select max(c) from ch);
----
bpchar
(SELECT 0)

select id, rank() over (order by case when id = 2 then c else d end) from ch order by id;
----
id | rank
1 | 1
2 | 2
3 | 3
(SELECT 3)

select string_agg(id::text, ',' order by case when id = 2 then 'a'::char(2) else 'a'::char(5) end, id) from ch;
----
string_agg
1,2,3
(SELECT 1)

create table texts (id int primary key, t text);
----
(CREATE TABLE)

insert into texts select 1, 'b'::char(4);
----
(INSERT 0 1)

select t || '.' from texts;
----
?column?
b.
(SELECT 1)

select array_agg(distinct x order by x) from (select 'a'::char(5) as x union all select 'a'::char(5)) s;
----
array_agg
{"a    "}
(SELECT 1)

