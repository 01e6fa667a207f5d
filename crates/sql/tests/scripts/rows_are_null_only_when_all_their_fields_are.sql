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

