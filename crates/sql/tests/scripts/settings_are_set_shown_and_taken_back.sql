-- postgres: same
set statement_timeout = 90000;
----
(SET)

show statement_timeout;
----
statement_timeout
90s
(SHOW)

begin; set local statement_timeout = '2min'; set work_mem = '64MB';
----
(BEGIN)
(SET)
(SET)

show statement_timeout;
----
statement_timeout
2min
(SHOW)

rollback;
----
(ROLLBACK)

select current_setting('statement_timeout'), current_setting('work_mem') = '64MB';
----
current_setting | ?column?
90s | f
(SELECT 1)

select set_config('app.person', 'ada', false);
----
set_config
ada
(SELECT 1)

show app.person;
----
app.person
ada
(SHOW)

set search_path to Foo, "Bar", public;
----
(SET)

show search_path;
----
search_path
foo, "Bar", public
(SHOW)

reset search_path;
----
(RESET)

show search_path;
----
search_path
"$user", public
(SHOW)

set time zone 'Europe/Berlin';
----
(SET)

show time zone;
----
TimeZone
Europe/Berlin
(SHOW)

reset all;
----
(RESET)

show statement_timeout;
----
statement_timeout
0
(SHOW)

set statement_timeout = 'soon';
----
ERROR 22023: invalid value for parameter "statement_timeout": "soon"

set nosuch = 1;
----
ERROR 42704: unrecognized configuration parameter "nosuch"

show nosuch;
----
ERROR 42704: unrecognized configuration parameter "nosuch"

set server_version = '16';
----
ERROR 55P02: parameter "server_version" cannot be changed

set enable_sort = maybe;
----
ERROR 22023: parameter "enable_sort" requires a Boolean value

prepare p as select 1 as one;
----
(PREPARE)

prepare p as select 2;
----
ERROR 42P05: prepared statement "p" already exists

execute p;
----
one
1
(SELECT 1)

deallocate p;
----
(DEALLOCATE)

execute p;
----
ERROR 26000: prepared statement "p" does not exist

