-- postgres: same
-- ARRAY[…] under a cast has no type of its own: each element is cast.
select array['01', 2]::text[], array['t', true]::text[], array['NaN', 2]::numeric[], array[1, '2.5']::numeric[];
----
array | array | array | array
{01,2} | {t,true} | {NaN,2} | {1,2.5}
(SELECT 1)

select array[date '2024-01-01', timestamp '2024-01-01 10:00']::text[];
----
array
{2024-01-01,"2024-01-01 10:00:00"}
(SELECT 1)

select 1 as one where '02' = any(array['02', 3]::text[]);
----
one
1
(SELECT 1)

select (array[array[1, 2], array['3', 4]])::text[], array[array[1, 2], '{3,4}'::int[]]::text[], array[null, 1]::varchar(1)[];
----
array | array | array
{{1,2},{3,4}} | {{1,2},{3,4}} | {NULL,1}
(SELECT 1)

select array['a', 1]::int[];
----
ERROR 22P02: invalid input syntax for type integer: "a"
POSITION: 14

select array[]::int[], '{}'::text[] || array['x', 1]::text[];
----
array | ?column?
{} | {x,1}
(SELECT 1)

