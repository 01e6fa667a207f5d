-- postgres: same
-- Subqueries of a statement that changes rows see the tables as they were before it.
create table h (id int primary key, v int, n int default 0); insert into h values (1, 10), (2, 20), (3, 30);
----
(CREATE TABLE)
(INSERT 0 3)

update h set v = (select x.v from h x where x.id = h.id - 1) returning id, v;
----
id | v
1 | ∅
2 | 10
3 | 20
(UPDATE 3)

update h set (v, n) = (select count(*), coalesce(sum(x.v), 0) from h x where x.id <= h.id) where id > 1 returning id, v, n;
----
id | v | n
2 | 2 | 10
3 | 3 | 30
(UPDATE 2)

update h set v = 100 * id, n = case when exists (select 1 from h x where x.v > 99) then 1 else 0 end;
----
(UPDATE 3)

select * from h order by id;
----
id | v | n
1 | 100 | 0
2 | 200 | 0
3 | 300 | 0
(SELECT 3)

update h set v = v + 1 returning id, v, (select sum(v) from h) as before;
----
id | v | before
1 | 101 | 600
2 | 201 | 600
3 | 301 | 600
(UPDATE 3)

insert into h select g, g from generate_series(4, 6) g returning id, (select count(*) from h) as before;
----
id | before
4 | 3
5 | 3
6 | 3
(INSERT 0 3)

delete from h where id > 4 returning id, (select count(*) from h) as before;
----
id | before
5 | 6
6 | 6
(DELETE 2)

insert into h values (1, 7), (2, 7), (9, 9) on conflict (id) do update set v = (select max(x.v) + 1 from h x), n = (select count(*) from h) returning id, v, n;
----
id | v | n
1 | 302 | 4
2 | 302 | 4
9 | 9 | 0
(INSERT 0 3)

insert into h values (10, 1), (10, 2) on conflict (id) do update set v = (select max(v) from h);
----
ERROR 21000: ON CONFLICT DO UPDATE command cannot affect row a second time
HINT: Ensure that no rows proposed for insertion within the same command have duplicate constrained values.

insert into h values (1, 1), (1, 2) on conflict (id) do update set v = (select max(v) from h);
----
ERROR 21000: ON CONFLICT DO UPDATE command cannot affect row a second time
HINT: Ensure that no rows proposed for insertion within the same command have duplicate constrained values.

insert into h values (11, 1), (11, 2), (1, 1) on conflict do nothing returning id, (select count(*) from h) as before;
----
id | before
11 | 5
(INSERT 0 1)

update h set v = y.v from (select max(v) as v from h) y where h.id = 9 returning h.v, y.v, (select v from h where id = 9) as before;
----
v | v | before
302 | 302 | 9
(UPDATE 1)

with c as (update h set n = (select count(*) from h x where x.id < h.id) returning id, n) select * from c order by id;
----
id | n
1 | 0
2 | 1
3 | 2
4 | 3
9 | 4
11 | 5
(SELECT 6)

