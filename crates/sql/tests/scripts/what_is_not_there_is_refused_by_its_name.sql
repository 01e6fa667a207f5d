create table o (id int primary key, v int);
----
(CREATE TABLE)

select sum(v) over (order by id rows between unbounded preceding and current row exclude current row) from o;
----
ERROR 0A000: EXCLUDE in window frames is not supported
POSITION: 82

select sum(v) over (order by id rows unbounded preceding exclude ties) from o;
----
ERROR 0A000: EXCLUDE in window frames is not supported
POSITION: 58

select sum(v) over (order by id range between unbounded preceding and unbounded following exclude no others) from o;
----
sum
(SELECT 0)

select sum(v) over w from o window w as (order by id rows between 1 preceding and 1 following exclude group);
----
ERROR 0A000: EXCLUDE in window frames is not supported
POSITION: 95

select percentile_cont(0.5) within group (order by v) from o;
----
ERROR 0A000: function percentile_cont is not supported
POSITION: 8

select mode() within group (order by v) from o;
----
ERROR 0A000: function mode is not supported
POSITION: 8

select grouping(id) from o group by id;
----
ERROR 0A000: function grouping is not supported
POSITION: 8

select pg_sleep(1);
----
ERROR 0A000: function pg_sleep is not supported
POSITION: 8

select * from jsonb_path_query('[1]', '$[*]');
----
ERROR 0A000: function jsonb_path_query is not supported

select no_such_function(1);
----
ERROR 42883: function no_such_function(integer) does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 8

