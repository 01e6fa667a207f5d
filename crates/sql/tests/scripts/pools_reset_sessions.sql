-- postgres: same
set search_path = x;
select pg_advisory_unlock_all();
close all;
unlisten *;
reset all;
show search_path;
