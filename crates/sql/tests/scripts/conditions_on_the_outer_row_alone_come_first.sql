-- What EXISTS and IN say of the outer row alone is tested before a partner is looked for.
create table o (id int primary key, c int, k int);
----

create table i (id int primary key, k int, v int);
----

insert into o select g, g % 50, g % 40 from generate_series(1, 2000) g;
----

insert into i select g, g % 40, g from generate_series(1, 8000) g;
----

create index i_k on i (k);
----

analyze;
----

explain select count(*) from o where exists (select 1 from i where i.k = o.k and o.c = 3);
----

explain select count(*) from o where exists (select 1 from i where i.k = o.k and (o.c = 3 or o.c is null));
----

explain select count(*) from o where o.k in (select i.k from i where o.c in (3, 4) and i.v > 7);
----

select count(*) from o where exists (select 1 from i where i.k = o.k and (o.c = 3 or o.c is null));
----

select count(*) from o where o.k in (select i.k from i where o.c in (3, 4) and i.v > 7);
----

select count(*) from o where not exists (select 1 from i where i.k = o.k and o.c = 3);
----

select count(*) from o where exists (select 1 from i where i.k = o.k and o.c = 3 and o.id > 1000 + i.v);
----

-- An ordered walk finds nothing for outer rows without a partner, of which there are many here.
create index i_v_k on i (v, k);
----

explain select (select i.id from i where i.k = o.id order by i.v limit 1) from o;
----

explain select (select i.id from i where i.k = o.c order by i.v limit 1) from o;
----

select count(*), sum(x) from (select (select i.id from i where i.k = o.id order by i.v desc limit 1) x from o) q;
----

drop table o;
----

drop table i;
----
