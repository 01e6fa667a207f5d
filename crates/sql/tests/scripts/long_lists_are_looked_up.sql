-- postgres: same
-- Long lists are looked up, with the answers that a comparison of each of their values would give.
create table numbers (id int primary key, i int, n numeric, t text, c char(4), d date, f float8, r text);
----
(CREATE TABLE)

insert into numbers values
  (1, 1, 1.0, 'a', 'a', '2020-01-01', 0, 'x'),
  (2, 2, 2.50, 'b ', 'b ', '2020-01-02', '-0', 'y'),
  (3, null, null, null, null, null, null, null),
  (4, 40, 'NaN', '', '', 'infinity', 'NaN', 'z');
----
(INSERT 0 4)

select id, i in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19), i not in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19) from numbers order by id;
----
id | ?column? | ?column?
1 | t | f
2 | f | t
3 | ∅ | ∅
4 | f | t
(SELECT 4)

select id, i in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19, null), i not in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19, null) from numbers order by id;
----
id | ?column? | ?column?
1 | t | f
2 | ∅ | ∅
3 | ∅ | ∅
4 | ∅ | ∅
(SELECT 4)

select id, i = any ('{1,3,5,7,9,11,13,15,17,19}'), i <> all ('{1,3,5,7,9,11,13,15,17,19}') from numbers order by id;
----
id | ?column? | ?column?
1 | t | f
2 | f | t
3 | ∅ | ∅
4 | f | t
(SELECT 4)

select id, i = any ('{1,3,5,7,9,11,13,15,17,null}'), i <> all ('{1,3,5,7,9,11,13,15,17,null}') from numbers order by id;
----
id | ?column? | ?column?
1 | t | f
2 | ∅ | ∅
3 | ∅ | ∅
4 | ∅ | ∅
(SELECT 4)

select id, i <> any ('{1,1,1,1,1,1,1,1,1,1}'), i = all ('{1,1,1,1,1,1,1,1,1,1}') from numbers order by id;
----
id | ?column? | ?column?
1 | f | t
2 | t | f
3 | ∅ | ∅
4 | t | f
(SELECT 4)

select id, i = any ('{{1,3,5,7,9},{11,13,15,17,2}}'::int[]) from numbers order by id;
----
id | ?column?
1 | t
2 | t
3 | ∅
4 | f
(SELECT 4)

select id, i in (1.0, 2.5, 3, 4, 5, 6, 7, 8, 9, 40.00), n in (1, 2.5, 3, 4, 5, 6, 7, 8, 9, 'NaN') from numbers order by id;
----
id | ?column? | ?column?
1 | t | t
2 | f | t
3 | ∅ | ∅
4 | t | t
(SELECT 4)

select id, t in ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', '', 'i'), c in ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', '', 'i') from numbers order by id;
----
id | ?column? | ?column?
1 | t | t
2 | f | t
3 | ∅ | ∅
4 | t | t
(SELECT 4)

select id, d in ('2020-01-02', '2021-01-01', '2021-01-02', '2021-01-03', '2021-01-04', '2021-01-05', '2021-01-06', '2021-01-07', 'infinity') from numbers order by id;
----
id | ?column?
1 | f
2 | t
3 | ∅
4 | t
(SELECT 4)

select id, f in (0, 1, 2, 3, 4, 5, 6, 7, 8, 'NaN') from numbers order by id;
----
id | ?column?
1 | t
2 | t
3 | ∅
4 | t
(SELECT 4)

select id, (i, r) in ((1, 'x'), (2, 'x'), (3, 'x'), (4, 'x'), (5, 'x'), (6, 'x'), (7, 'x'), (8, 'x'), (40, 'z')), (i, r) not in ((1, 'x'), (2, 'x'), (3, 'x'), (4, 'x'), (5, 'x'), (6, 'x'), (7, 'x'), (8, 'x'), (40, 'z')) from numbers order by id;
----
id | ?column? | ?column?
1 | t | f
2 | f | t
3 | ∅ | ∅
4 | t | f
(SELECT 4)

select id, (i, r) in ((1, 'x'), (2, 'x'), (3, 'x'), (4, 'x'), (5, 'x'), (6, 'x'), (7, 'x'), (8, 'x'), (40, 'z'), (2, null)), (i, r) not in ((1, 'x'), (2, 'x'), (3, 'x'), (4, 'x'), (5, 'x'), (6, 'x'), (7, 'x'), (8, 'x'), (40, 'z'), (2, null)), (i, r) in ((1, 'x'), (2, 'x'), (3, 'x'), (4, 'x'), (5, 'x'), (6, 'x'), (7, 'x'), (8, 'x'), (40, 'z'), (null, 'q')) from numbers order by id;
----
id | ?column? | ?column? | ?column?
1 | t | f | t
2 | ∅ | ∅ | f
3 | ∅ | ∅ | ∅
4 | t | f | t
(SELECT 4)

select id, (i, 'x') in ((1, 'x'), (2, 'x'), (3, 'x'), (4, 'x'), (5, 'x'), (6, 'x'), (7, 'x'), (8, 'x'), (40, 'z')) from numbers order by id;
----
id | ?column?
1 | t
2 | t
3 | ∅
4 | f
(SELECT 4)

select id, (i, n) in ((1, 1), (2, 2.5), (3, 1), (4, 1), (5, 1), (6, 1), (7, 1), (8, 1), (9, 1)) from numbers order by id;
----
id | ?column?
1 | t
2 | t
3 | ∅
4 | f
(SELECT 4)

select id from numbers where i = 1 or i = 3 or i = 5 or i = 7 or i = 9 or i = 11 or i = 13 or i = 15 or i = 40 order by id;
----
id
1
4
(SELECT 2)

select id from numbers where not (i = 1 or i = 3 or i = 5 or i = 7 or i = 9 or i = 11 or i = 13 or i = 15 or i = 40) order by id;
----
id
2
(SELECT 1)

select id, i = any (array(select generate_series(1, 20))), i <> all (array(select generate_series(1, 20))) from numbers order by id;
----
id | ?column? | ?column?
1 | t | f
2 | t | f
3 | ∅ | ∅
4 | f | t
(SELECT 4)

select id, i = any (array(select generate_series(1, 20) union all select null)) from numbers order by id;
----
id | ?column?
1 | t
2 | t
3 | ∅
4 | ∅
(SELECT 4)

select id, i = any (array(select generate_series(numbers.id, 20))) from numbers order by id;
----
id | ?column?
1 | t
2 | t
3 | ∅
4 | f
(SELECT 4)

select id, i <> all (select generate_series(1, 20)), i not in (select generate_series(1, 20) union all select null) from numbers order by id;
----
id | ?column? | ?column?
1 | f | f
2 | f | f
3 | ∅ | ∅
4 | t | ∅
(SELECT 4)

select id, (i, r) <> all (select g, 'x' from generate_series(1, 20) g) from numbers order by id;
----
id | ?column?
1 | f
2 | t
3 | ∅
4 | t
(SELECT 4)

select id, (i, r) <> all (select g, null from generate_series(1, 20) g) from numbers order by id;
----
id | ?column?
1 | ∅
2 | ∅
3 | ∅
4 | t
(SELECT 4)

select id, i <> all (select generate_series(1, 0)), i = any (select generate_series(1, 0)) from numbers order by id;
----
id | ?column? | ?column?
1 | t | f
2 | t | f
3 | t | f
4 | t | f
(SELECT 4)

select id, (select count(*) from generate_series(1, 30) g where g in (numbers.i, 2, 3, 4, 5, 6, 7, 8, 9, 10)) from numbers order by id;
----
id | count
1 | 10
2 | 9
3 | 9
4 | 9
(SELECT 4)

prepare listed as select id, i in ($1, $2, 5, 7, 9, 11, 13, 15, 17, 19), i = any ($3) from numbers order by id;
----
(PREPARE)

execute listed (1, 40, '{1,3,5,7,9,11,13,15,17,19}');
----
id | ?column? | ?column?
1 | t | t
2 | f | f
3 | ∅ | ∅
4 | t | f
(SELECT 4)

execute listed (2, null, '{2,3,5,7,9,11,13,15,17,null}');
----
id | ?column? | ?column?
1 | ∅ | ∅
2 | t | t
3 | ∅ | ∅
4 | ∅ | ∅
(SELECT 4)

create table checked (id int primary key check (id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)));
----
(CREATE TABLE)

insert into checked values (1), (10);
----
(INSERT 0 2)

insert into checked values (11);
----
ERROR 23514: new row for relation "checked" violates check constraint "checked_id_check"
DETAIL: Failing row contains (11).

delete from numbers where i in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19);
----
(DELETE 1)

update numbers set i = 0 where i in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11) returning id;
----
id
2
(UPDATE 1)

select id, i from numbers order by id;
----
id | i
2 | 0
3 | ∅
4 | 40
(SELECT 3)

