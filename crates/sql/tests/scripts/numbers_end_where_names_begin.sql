-- postgres: same
select 1a;
----

select 123abc from generate_series(1, 1);
----

select 1_000;
----

select 1 a;
----

select 1 "a", 1.5 as b;
----

select -(-9223372036854775808);
----

select - -9223372036854775808;
----

select -(-(5)), -(5), - - -7;
----

select pg_typeof(-9223372036854775808), pg_typeof(-(-9223372036854775808));
----

select -(-2147483648), pg_typeof(-2147483648);
----

