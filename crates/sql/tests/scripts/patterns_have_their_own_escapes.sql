-- postgres: same
create table o (id int primary key, v int, t text, c char(5));
----
(CREATE TABLE)

insert into o values (1, 10, 'abc', 'abc'), (2, 20, 'b_d', 'b_d'), (3, null, null, null);
----
(INSERT 0 3)

select t, t similar to '(a|b)%' as s, t not similar to 'b\_d' as n, c similar to 'abc' as c from o order by id;
----
t | s | n | c
abc | t | t | f
b_d | t | f | f
∅ | ∅ | ∅ | ∅
(SELECT 3)

select id from o where t similar to '%[cd]' order by id;
----
id
1
2
(SELECT 2)

select 'abc' similar to '(b|c)%' as a, 'abc' similar to '%(b|d)%' as b, 'abc' not similar to 'abc' as c, 'a.c' similar to 'a.c' as d;
----
a | b | c | d
f | t | f | t
(SELECT 1)

select 'a%c' similar to 'a\%c' as a, 'abc' similar to 'a#%c' escape '#' as b, null similar to 'a' as c, 'a' similar to null as d;
----
a | b | c | d
t | f | ∅ | ∅
(SELECT 1)

select 'a\bc' similar to 'a\%' escape '' as a, 'abc' similar to 'a%' escape null as b;
----
a | b
t | ∅
(SELECT 1)

select 'a' similar to 'a' escape 'no';
----
ERROR 22025: invalid escape string
HINT: Escape string must be empty or one character.

select 1 similar to 'a';
----
ERROR 42883: operator does not exist: integer ~ text
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.
POSITION: 10

select 'a%c' like 'a#%c' escape '#' as a, 'abc' like 'a#%c' escape '#' as b, 'a#c' like 'a##c' escape '#' as c, 'A%c' ilike 'a#%C' escape '#' as d;
----
a | b | c | d
t | f | t | t
(SELECT 1)

select 'a\c' like 'a\c' escape '' as a, 'a\c' like 'a#\c' escape '#' as b, 'a%c' like 'a\%c' escape '\' as c, 'abc' not like 'a_c' escape '!' as d;
----
a | b | c | d
t | t | t | f
(SELECT 1)

select 'a' like 'a#' escape '#';
----
?column?
f
(SELECT 1)

select 'a' like 'a' escape 'no';
----
ERROR 22025: invalid escape string
HINT: Escape string must be empty or one character.

select id from o where t like 'b#_%' escape '#';
----
id
2
(SELECT 1)

select like_escape('a#%', '#'), 'a' like 'a' escape null as n;
----
like_escape | n
a\% | ∅
(SELECT 1)

