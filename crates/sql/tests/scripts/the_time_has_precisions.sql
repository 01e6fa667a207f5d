-- postgres: same
select current_timestamp(0) = date_trunc('second', current_timestamp + interval '0.5 seconds');
----

select localtimestamp(3) - localtimestamp < interval '0.001 seconds', extract(microseconds from localtime(2))::int8 % 10000;
----

select pg_typeof(localtime(1)), pg_typeof(current_timestamp(6)), pg_typeof(localtimestamp(2));
----

