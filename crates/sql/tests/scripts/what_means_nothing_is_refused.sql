create table t (a int primary key, b text);
----
(CREATE TABLE)

select first_value(a) ignore nulls over (order by a) from t;
----
ERROR 0A000: IGNORE NULLS is not supported
POSITION: 8

select first_value(a) respect nulls over (order by a) from t;
----
ERROR 0A000: RESPECT NULLS is not supported
POSITION: 8

select first_value(a ignore nulls) over (order by a) from t;
----
ERROR 42601: syntax error at or near "ignore"
POSITION: 22

select cast('1' as int format 'x');
----
ERROR 0A000: CAST … FORMAT is not supported
POSITION: 13

select sum(1) over (order by generate_series(1, 3));
----
ERROR 0A000: set-returning functions in the definition of a window are not supported
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
POSITION: 30

select generate_series(1, 3) as g, count(*) from t group by g;
----
ERROR 0A000: set-returning functions in GROUP BY are not supported
HINT: You might be able to move the set-returning function into a LATERAL FROM item.

select distinct on (a) a, generate_series(1, 3) from t order by a;
----
ERROR 0A000: set-returning functions in the select list of SELECT DISTINCT ON … ORDER BY are not supported
HINT: You might be able to move the set-returning function into a LATERAL FROM item.

copy t (a) to stdout (format csv, force_quote (b));
----
ERROR 42P10: FORCE_QUOTE column "b" not referenced by COPY

copy t (a) to stdout (format csv, force_quote (x));
----
ERROR 42703: column "x" of relation "t" does not exist

copy (select 1 as a) to stdout (format csv, force_quote (x));
----
ERROR 42703: column "x" does not exist

copy (select 1 as a) to stdout (format csv, force_quote (a));
----
(COPY 1)

copy t to stdout (force_quote (b));
----
ERROR 0A000: COPY force quote available only in CSV mode

copy t to stdout (format csv, force_null (b));
----
ERROR 0A000: COPY force null only available using COPY FROM

copy t to stdout (format csv, force_not_null (b));
----
ERROR 0A000: COPY force not null only available using COPY FROM

copy t from stdin (format csv, force_quote (b));
----
ERROR 0A000: COPY force quote only available using COPY TO

copy t from stdin (force_null (b));
----
ERROR 0A000: COPY force null available only in CSV mode

copy t (a) from stdin (format csv, force_null (b));
----
ERROR 42P10: FORCE_NULL column "b" not referenced by COPY

copy t (a) from stdin (format csv, force_not_null (b));
----
ERROR 42P10: FORCE_NOT_NULL column "b" not referenced by COPY

copy t (a) from stdin (format csv, force_not_null (x));
----
ERROR 42703: column "x" of relation "t" does not exist

