-- postgres: same
select pg_typeof('a'), pg_typeof(null), pg_typeof('a'::text), pg_typeof(1), pg_typeof('a' || 'b'), pg_typeof((select 'a'));
----
pg_typeof | pg_typeof | pg_typeof | pg_typeof | pg_typeof | pg_typeof
unknown | unknown | text | integer | text | text
(SELECT 1)

select 1 as one where pg_typeof('a') = 'unknown'::regtype;
----
one
1
(SELECT 1)

select pg_typeof(pg_typeof('a'));
----
pg_typeof
regtype
(SELECT 1)

prepare untyped as select pg_typeof($1);
----
ERROR 42P18: could not determine data type of parameter $1

