-- postgres: same
select current_timestamp(0) = date_trunc('second', current_timestamp + interval '0.5 seconds');
----
?column?
t
(SELECT 1)

select localtimestamp(3) - localtimestamp < interval '0.001 seconds', extract(microseconds from localtime(2))::int8 % 10000;
----
?column? | ?column?
t | 0
(SELECT 1)

select pg_typeof(localtime(1)), pg_typeof(current_timestamp(6)), pg_typeof(localtimestamp(2));
----
pg_typeof | pg_typeof | pg_typeof
time without time zone | timestamp with time zone | timestamp without time zone
(SELECT 1)

