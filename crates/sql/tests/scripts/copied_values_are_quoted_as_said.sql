create table o (id int primary key, v int, t text);
----
(CREATE TABLE)

insert into o values (1, 10, 'abc'), (2, null, 'b,d');
----
(INSERT 0 2)

copy o to stdout (format csv, force_quote *);
----
(COPY 2)

copy (select id, t from o order by id) to stdout with (force_quote *, format csv, header);
----
(COPY 2)

copy o to stdout with csv force quote *;
----
(COPY 2)

copy o to stdout (format csv, force_quote (t));
----
(COPY 2)

