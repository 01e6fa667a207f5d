-- postgres: same
-- Many elements are looked up, with the answers that a comparison of each would give.
create table a (id int primary key, n int[], t text[], j jsonb);
----
(CREATE TABLE)

insert into a values
  (1, array(select generate_series(1, 100)), array(select 'x' || generate_series(1, 100)), (select jsonb_agg(g) from generate_series(1, 100) g)),
  (2, array(select generate_series(1, 100) union all select null), array(select 'x' || generate_series(50, 149)), (select jsonb_agg(g) || '[{"a": 1, "b": [1, 2]}, [3, 4], "5", null]' from generate_series(1, 100) g)),
  (3, array(select generate_series(101, 200)), '{}', '[]'),
  (4, '{}', null, '[1.0, 2.00, 3]');
----
(INSERT 0 4)

select x.id, y.id, x.n @> y.n as n, x.n <@ y.n as m, x.n && y.n as o, x.t @> y.t as t, x.t && y.t as u, x.j @> y.j as j from a x, a y order by 1, 2;
----
id | id | n | m | o | t | u | j
1 | 1 | t | t | t | t | t | t
1 | 2 | f | t | t | f | t | f
1 | 3 | f | f | f | t | f | t
1 | 4 | t | f | f | ∅ | ∅ | t
2 | 1 | t | f | t | f | t | t
2 | 2 | f | f | t | t | t | t
2 | 3 | f | f | f | t | f | t
2 | 4 | t | f | f | ∅ | ∅ | t
3 | 1 | f | f | f | f | f | f
3 | 2 | f | f | f | f | f | f
3 | 3 | t | t | t | t | f | t
3 | 4 | t | f | f | ∅ | ∅ | f
4 | 1 | f | t | f | ∅ | ∅ | f
4 | 2 | f | t | f | ∅ | ∅ | f
4 | 3 | f | t | f | ∅ | ∅ | t
4 | 4 | t | t | f | ∅ | ∅ | t
(SELECT 16)

select j @> '[{"a": 1}, [4], "5", null, 7, 8, 9]' as a, j @> '[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100.00]' as b, j @> '"5"' as c, j @> '[[5], 1]' as d from a order by id;
----
a | b | c | d
f | t | f | f
t | t | t | f
f | f | f | f
f | f | f | f
(SELECT 4)

