-- postgres: same
create table fl (id int primary key, s text);
----
(CREATE TABLE)

insert into fl select i, 's' || i from generate_series(1, 200) i;
----
(INSERT 0 200)

select count(*) as n from fl where s ~ any (array(select '^s' || i || '$' from generate_series(1, 50) i));
----
n
50
(SELECT 1)

select count(*) as n from fl where s ~ any (select '^s' || i || '$' from generate_series(1, 50) i);
----
n
50
(SELECT 1)

select count(*) as n from fl where s !~ all (select '^s' || i || '$' from generate_series(1, 50) i);
----
n
150
(SELECT 1)

select count(*) as n from fl where s !~ all (array(select '^s' || i || '$' from generate_series(1, 50) i));
----
n
150
(SELECT 1)

select count(*) as n from fl where s ~ any (array(select null::text from generate_series(1, 50) i));
----
n
0
(SELECT 1)

select count(*) as n from fl where (s ~ any (array(select null::text from generate_series(1, 50) i))) is null;
----
n
200
(SELECT 1)

select count(*) as n from fl where s ~~ any (array(select 's' || i || '_' from generate_series(1, 50) i) || array[null]);
----
n
191
(SELECT 1)

select count(*) as n from fl where s ~ any (array(select '(' from generate_series(1, 50) i));
----
ERROR 2201B: invalid regular expression: parentheses () not balanced

