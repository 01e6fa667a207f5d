-- postgres: same
select 1 where 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid = ((select null::uuid) union (select null::uuid));
----
?column?
(SELECT 0)

select null::int + 1 as x from (select null::int as c union all select null::int) as s where c is null;
----
x
∅
∅
(SELECT 2)

select c + 1 as x from (select null::int as c union all select null::int) as s;
----
x
∅
∅
(SELECT 2)

select pg_typeof(c) from (select null::date as c union select null::date) as s;
----
pg_typeof
date
(SELECT 1)

select null::int union select 1 order by 1;
----
int4
1
∅
(SELECT 2)

select null union select 1 order by 1;
----
?column?
1
∅
(SELECT 2)

select null::uuid union select 1;
----
ERROR 42804: UNION types uuid and integer cannot be matched

select pg_typeof(c) from (select null as c union select null) as s;
----
pg_typeof
text
(SELECT 1)

