-- postgres: same
create table r (id int primary key, n text, a int, b text);
----
(CREATE TABLE)

insert into r values (1, 'x', 1, 'b'), (2, 'y', 2, 'c');
----
(INSERT 0 2)

update r set (n) = row('zz') where id = 1;
----
(UPDATE 1)

update r set (a, b) = row(5, 'q') where id = 2;
----
(UPDATE 1)

select * from r order by id;
----
id | n | a | b
1 | zz | 1 | b
2 | y | 5 | q
(SELECT 2)

update r set (n) = (select 'sub') where id = 1;
----
(UPDATE 1)

update r set (a, b) = (7, 'tuple') where id = 2;
----
(UPDATE 1)

update r set (a, b) = row(a + 1, default) where id = 2;
----
(UPDATE 1)

select * from r order by id;
----
id | n | a | b
1 | sub | 1 | b
2 | y | 8 | ∅
(SELECT 2)

update r set (n) = ('p');
----
ERROR 0A000: source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression

update r set (n) = 'p';
----
ERROR 0A000: source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression

update r set (a, b) = ('p');
----
ERROR 0A000: source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression

update r set (a, b) = row(1);
----
ERROR 42601: number of columns does not match number of values

update r set (n) = row('p', 'q');
----
ERROR 42601: number of columns does not match number of values

insert into r values (1, 'new', 10, 'ten') on conflict (id) do update set (n) = row(excluded.n);
----
(INSERT 0 1)

insert into r values (2, 'new', 20, 'twenty') on conflict (id) do update set (n, a, b) = row(excluded.n, r.a + excluded.a, 'both');
----
(INSERT 0 1)

insert into r values (2, 'new', 20, 'twenty') on conflict (id) do update set (n) = (excluded.n);
----
ERROR 0A000: source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression

select * from r order by id;
----
id | n | a | b
1 | new | 1 | b
2 | new | 28 | both
(SELECT 2)

