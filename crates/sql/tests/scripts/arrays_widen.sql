create table lists (id int primary key, small int2[], wide int8[], words text[]);
----
(CREATE TABLE)

insert into lists values (1, array[1, 2]::int2[], array[1, 2], array['a', null]), (2, '{3}', array[4]::int2[], array['b']::varchar[]);
----
(INSERT 0 2)

insert into lists select 3, null, small, words from lists where id = 1;
----
(INSERT 0 1)

select * from lists order by id;
----
id | small | wide | words
1 | {1,2} | {1,2} | {a,NULL}
2 | {3} | {4} | {b}
3 | ∅ | {1,2} | {a,NULL}
(SELECT 3)

update lists set wide = small where id = 2 returning wide, pg_typeof(wide);
----
wide | pg_typeof
{3} | bigint[]
(UPDATE 1)

delete from lists where 4 = any (wide) or id = 3 returning id;
----
id
3
(DELETE 1)

