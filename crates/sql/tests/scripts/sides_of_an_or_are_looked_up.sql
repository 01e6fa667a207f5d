-- postgres: same
create table places (a int, b int, c int, primary key (a, b));
----
(CREATE TABLE)

insert into places select x, y, x * y from generate_series(1, 5) as x, generate_series(1, 8) as y;
----
(INSERT 0 40)

-- a condition that only one side's place answers is tested of the others' rows
select * from places where a = 2 and ((a = 1 and b = 5) or b = 6) order by a, b;
----
a | b | c
2 | 6 | 12
(SELECT 1)

select * from places where b = 6 and ((a = 1 and b = 5) or a = 3 or (a = 4 and c = 24)) order by a, b;
----
a | b | c
3 | 6 | 18
4 | 6 | 24
(SELECT 2)

select * from places where a = 2 and (b = 1 or (b = 2 and c = 4) or (b = 3 and c = 5)) order by a, b;
----
a | b | c
2 | 1 | 2
2 | 2 | 4
(SELECT 2)

