-- postgres: same
create table t (id int primary key, s text);
----
(CREATE TABLE)

create index t_s on t (s);
----
(CREATE INDEX)

drop index concurrently t_s;
----
(DROP INDEX)

drop index concurrently t_s;
----
ERROR 42704: index "t_s" does not exist

drop index concurrently if exists t_s;
----
(DROP INDEX)

select indexname from pg_indexes where tablename = 't' and schemaname = 'public';
----
indexname
t_pkey
(SELECT 1)

create index t_s on t (s);
----
(CREATE INDEX)

create index t_t on t (s, id);
----
(CREATE INDEX)

drop index concurrently t_s, t_t;
----
ERROR 0A000: DROP INDEX CONCURRENTLY does not support dropping multiple objects

drop index concurrently t_s cascade;
----
ERROR 0A000: DROP INDEX CONCURRENTLY does not support CASCADE

