-- postgres: same
set search_path = x;
----
(SET)

select pg_advisory_unlock_all();
----
pg_advisory_unlock_all
''
(SELECT 1)

close all;
----
(CLOSE CURSOR)

unlisten *;
----
(UNLISTEN)

reset all;
----
(RESET)

show search_path;
----
search_path
"$user", public
(SHOW)

