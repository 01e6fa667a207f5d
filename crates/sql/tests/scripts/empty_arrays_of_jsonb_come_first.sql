-- postgres: same
create table t (id int primary key, j jsonb);
----
(CREATE TABLE)

insert into t values (1, '[]'), (2, 'null'), (3, '"a"'), (4, '1'), (5, 'true'), (6, '[1]'), (7, '{}'), (8, '[[]]'), (9, '[null]'), (10, null), (11, '{"a": 1}'), (12, '[{}]'), (13, '[1, 2]');
----
(INSERT 0 13)

select id, j from t order by j;
----
id | j
1 | []
2 | null
3 | "a"
4 | 1
5 | true
9 | [null]
6 | [1]
8 | [[]]
12 | [{}]
13 | [1, 2]
7 | {}
11 | {"a": 1}
10 | ∅
(SELECT 13)

select id from t order by j desc nulls last limit 5;
----
id
11
7
13
12
8
(SELECT 5)

select '[]'::jsonb < 'null'::jsonb, '[[]]'::jsonb < '[null]'::jsonb, greatest('[]'::jsonb, '1'), '{}'::jsonb > '[]';
----
?column? | ?column? | greatest | ?column?
t | f | 1 | t
(SELECT 1)

select j from t where j < 'null';
----
j
[]
(SELECT 1)

select j, count(*) from t where j = '[]' group by j;
----
j | count
[] | 1
(SELECT 1)

