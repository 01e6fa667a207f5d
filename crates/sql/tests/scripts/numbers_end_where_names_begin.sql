-- postgres: same
select 1a;
----
ERROR 42601: trailing junk after numeric literal at or near "1a"
POSITION: 26

select 123abc from generate_series(1, 1);
----
ERROR 42601: trailing junk after numeric literal at or near "123abc"
POSITION: 8

select 1_000;
----
ERROR 42601: trailing junk after numeric literal at or near "1_000"
POSITION: 8

select 1 a;
----
a
1
(SELECT 1)

select 1 "a", 1.5 as b;
----
a | b
1 | 1.5
(SELECT 1)

select -(-9223372036854775808);
----
?column?
9223372036854775808
(SELECT 1)

select - -9223372036854775808;
----
?column?
9223372036854775808
(SELECT 1)

select -(-(5)), -(5), - - -7;
----
?column? | ?column? | ?column?
5 | -5 | -7
(SELECT 1)

select pg_typeof(-9223372036854775808), pg_typeof(-(-9223372036854775808));
----
pg_typeof | pg_typeof
bigint | numeric
(SELECT 1)

select -(-2147483648), pg_typeof(-2147483648);
----
?column? | pg_typeof
2147483648 | integer
(SELECT 1)

