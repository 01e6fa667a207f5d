-- postgres: same
create table o (id int primary key, v int);
----
(CREATE TABLE)

drop index nope;
----
ERROR 42704: index "nope" does not exist

drop index if exists nope;
----
(DROP INDEX)

drop index nosuch.nope;
----
ERROR 3F000: schema "nosuch" does not exist

drop index o;
----
ERROR 42809: "o" is not an index
HINT: Use DROP TABLE to remove a table.

drop index o_v;
----
ERROR 42704: index "o_v" does not exist

create index o_v on o (v);
----
(CREATE INDEX)

drop index o_v;
----
(DROP INDEX)

drop table nope;
----
ERROR 42P01: table "nope" does not exist

alter index nope rename to other;
----
ERROR 42P01: relation "nope" does not exist

