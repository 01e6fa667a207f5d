-- postgres: same
create table l (id int primary key, v int);
----
(CREATE TABLE)

create table m (id int primary key, w int);
----
(CREATE TABLE)

insert into l values (1, 10);
----
(INSERT 0 1)

insert into m values (1, 20);
----
(INSERT 0 1)

select 1 as one for share;
----
one
1
(SELECT 1)

select * from l for update of nope;
----
ERROR 42P01: relation "nope" in FOR UPDATE clause not found in FROM clause
POSITION: 31

select * from l, m where l.id = m.id for update of l;
----
id | v | id | w
1 | 10 | 1 | 20
(SELECT 1)

select * from l, m where l.id = m.id for update of l, m;
----
id | v | id | w
1 | 10 | 1 | 20
(SELECT 1)

select * from l, m where l.id = m.id for update of m nowait;
----
id | v | id | w
1 | 10 | 1 | 20
(SELECT 1)

select * from l as x for update of l;
----
ERROR 42P01: relation "l" in FOR UPDATE clause not found in FROM clause
POSITION: 36

select * from l as x for update of x;
----
id | v
1 | 10
(SELECT 1)

select * from l join m on l.id = m.id for update of l for share of m;
----
id | v | id | w
1 | 10 | 1 | 20
(SELECT 1)

select * from l join m using (id) for update of nope skip locked;
----
ERROR 42P01: relation "nope" in FOR UPDATE clause not found in FROM clause
POSITION: 49

select * from (select * from l) as d for update of d;
----
id | v
1 | 10
(SELECT 1)

select * from (select * from l) as d for update of l;
----
ERROR 42P01: relation "l" in FOR UPDATE clause not found in FROM clause
POSITION: 52

select * from l where exists (select 1 from m where m.id = l.id) for update of m;
----
ERROR 42P01: relation "m" in FOR UPDATE clause not found in FROM clause
POSITION: 80

select * from l for update of public.l;
----
ERROR 42601: FOR UPDATE must specify unqualified relation names
POSITION: 31

select * from generate_series(1, 2) as g for update;
----
g
1
2
(SELECT 2)

select * from generate_series(1, 2) as g for update of g;
----
ERROR 0A000: FOR UPDATE cannot be applied to a function
POSITION: 56

with c as (select * from l) select * from c for update;
----
id | v
1 | 10
(SELECT 1)

with c as (select * from l) select * from c for update of c;
----
ERROR 0A000: FOR UPDATE cannot be applied to a WITH query
POSITION: 59

select 1 for update;
----
?column?
1
(SELECT 1)

select 1 + 1 for share nowait;
----
?column?
2
(SELECT 1)

select (select 1 from l for update) as n, (select max(w) from m) for update;
----
n | max
1 | 20
(SELECT 1)

select 1 for update of nope;
----
ERROR 42P01: relation "nope" in FOR UPDATE clause not found in FROM clause
POSITION: 24

