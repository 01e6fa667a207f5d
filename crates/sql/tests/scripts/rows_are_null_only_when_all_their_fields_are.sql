-- postgres: same
create table f (id int primary key, b text, n int);
----
(CREATE TABLE)

insert into f values (1, 'x', 1), (2, 'x', null), (3, null, 3), (4, null, null);
----
(INSERT 0 4)

select row(1, null) is null as a, row(1, null) is not null as b, not (row(1, null) is null) as c;
----
a | b | c
f | f | t
(SELECT 1)

select row(1, 2) is not null as a, row(null, null) is not null as b, row(null, null) is null as c, (1, null) is not null as d;
----
a | b | c | d
t | f | t | f
(SELECT 1)

select id from f where (b, n) is not null order by id;
----
id
1
(SELECT 1)

select id from f where not ((b, n) is null) order by id;
----
id
1
2
3
(SELECT 3)

select id from f where (b, n) is null order by id;
----
id
4
(SELECT 1)

select id, f is not null as whole from f order by id;
----
id | whole
1 | t
2 | f
3 | f
4 | f
(SELECT 4)

select id from f where row(b, n) is not null and n is not null order by id;
----
id
1
(SELECT 1)

select row(1, row(null, null)) is not null as inner_row, row(null, row(null)) is null as nested;
----
inner_row | nested
t | f
(SELECT 1)

-- Rows compare field by field, each with the operator of its types.
create table fields (id int primary key, d date, u uuid);
----
(CREATE TABLE)

insert into fields values (1, '2020-01-01', '00000000-0000-4000-8000-000000000001');
----
(INSERT 0 1)

select count(*) from fields where row(id, d) = row(1, '2020-01-01');
----
count
1
(SELECT 1)

select count(*) from fields where row(id, d) in (row(2, '2020-01-01'), (1, '2020-01-01'));
----
count
1
(SELECT 1)

select row(u) = row('00000000-0000-4000-8000-000000000001'), row(id) = row('1'), row(id, d) < row(1, '2020-01-02'), row(d, id) is not distinct from row('2020-01-01', 1), row(d, null) is distinct from row('2020-01-01', null) from fields;
----
?column? | ?column? | ?column? | ?column? | ?column?
t | t | t | t | f
(SELECT 1)

select row(date '2020-01-01') = row(timestamp '2020-01-01'), row(1, 2) <> row(1, 2), row(1, 2) = (1, 2);
----
?column? | ?column? | ?column?
t | f | t
(SELECT 1)

select row(1, 2) = row(1);
----
ERROR 42601: unequal number of entries in row expressions
POSITION: 18

select (1, 2) <> all (select 1, 3) as differs, (1, 2) <> any (select 1, 2) as same, (1, 2) < any (select 0, 9 union all select 1, 3) as before,
    (1, 2) < any (select 1, 1) as not_before, (2, 0) >= all (select 1, 9 union all select 2, 0) as last;
----
differs | same | before | not_before | last
t | f | t | f | t
(SELECT 1)

select (1, null) in (select 1, 2), (1, null) in (select 2, 2), (1, null) <> all (select 2, 2), (1, null) < any (select 2, 0), (null, 1) < any (select 2, 0);
----
?column? | ?column? | ?column? | ?column? | ?column?
∅ | f | t | t | ∅
(SELECT 1)

select (d, id) in (select timestamp '2020-01-01', 1), (d, id) >= all (select timestamptz '2019-01-01 UTC', 7), row(d, id) in (select timestamp '2020-01-01 01:00', 1),
    ('a'::char(3), 1) in (select 'a'::char(5), 1) from fields;
----
?column? | ?column? | ?column? | ?column?
t | t | f | t
(SELECT 1)

delete from fields where row(id, d) <> row(1, '2020-01-01');
----
(DELETE 0)

