-- postgres: same
create table t (id int primary key, a int, b text);
----
(CREATE TABLE)

create table u (id int primary key, t_id int, v int);
----
(CREATE TABLE)

create index on u (t_id);
----
(CREATE INDEX)

insert into t values (1, 10, 'one'), (2, 20, 'two'), (3, null, 'three'), (4, 40, null), (5, 10, 'five');
----
(INSERT 0 5)

insert into u values (1, 1, 10), (2, 1, 11), (3, 2, 20), (4, null, 30), (5, 9, null), (6, 4, 40), (7, 4, 40);
----
(INSERT 0 7)

select id from t where exists (select 1 from u where u.t_id = t.id) order by 1;
----
id
1
2
4
(SELECT 3)

select id from t where not exists (select 1 from u where u.t_id = t.id) order by 1;
----
id
3
5
(SELECT 2)

select id from t where exists (select 1 from u where u.t_id = t.id and u.v > t.a) order by 1;
----
id
1
(SELECT 1)

select id from t where not exists (select 1 from u where u.v = t.a) order by 1;
----
id
3
(SELECT 1)

select id from t where id in (select t_id from u) order by 1;
----
id
1
2
4
(SELECT 3)

select id from t where (id, a) in (select t_id, v from u) order by 1;
----
id
1
2
4
(SELECT 3)

select id from t where a in (select v from u where u.t_id = t.id) order by 1;
----
id
1
2
4
(SELECT 3)

select id from t where a = any (select v + 0 from u where u.t_id >= t.id) order by 1;
----
id
1
2
4
(SELECT 3)

select id from t where id not in (select t_id from u) order by 1;
----
id
(SELECT 0)

select id from t where id not in (select t_id from u where t_id is not null) order by 1;
----
id
3
5
(SELECT 2)

select id from t where a in (select v from u) is not true order by 1;
----
id
3
(SELECT 1)

select id from t where exists (select 1 from u where u.t_id = t.id) or a is null order by 1;
----
id
1
2
3
4
(SELECT 4)

select id from t where exists (select count(*) from u where u.t_id = t.id) order by 1;
----
id
1
2
3
4
5
(SELECT 5)

select id from t where exists (select 1 from u where u.t_id = t.id limit 0) order by 1;
----
id
(SELECT 0)

select id from t where exists (select 1 from u) and not exists (select 1 from u where v > 100) order by 1 limit 2;
----
id
1
2
(SELECT 2)

select t.id, u.id from t join u on u.t_id = t.id
  where exists (select 1 from t x where x.a = t.a and x.id <> t.id) and u.v in (select a from t) order by 1, 2;
----
id | id
1 | 1
(SELECT 1)

select id from t where exists (select 1 from u join t x on x.id = u.t_id where x.a = t.a) order by 1;
----
id
1
2
4
5
(SELECT 4)

select id from t where exists
  (select 1 from u where u.t_id = t.id and exists (select 1 from t y where y.a = u.v and y.b = t.b)) order by 1;
----
id
1
2
(SELECT 2)

select id from t where exists (select 1 from u where u.t_id = t.id and not exists (select 1 from u w where w.t_id = u.t_id and w.id < u.id and w.v < t.a + 1000)) order by 1;
----
id
1
2
4
(SELECT 3)

select distinct b from t where id in (select t_id from u where v > 5) order by 1;
----
b
one
two
∅
(SELECT 3)

select a, count(*) from t where id in (select t_id from u union select 5) group by a
  having exists (select 1 from u where u.v = t.a) order by 1;
----
a | count
10 | 2
20 | 1
40 | 1
(SELECT 3)

with few as (select t_id from u where v >= 20)
  select id from t where id in (select t_id from few) and id in (select s.t_id from few s where s.t_id > 2) order by 1;
----
id
4
(SELECT 1)

select id from t where 10 in (select v from u where u.t_id = t.id) order by 1;
----
id
1
(SELECT 1)

select id from t where (select count(*) from u where u.t_id = t.id) = 2 and id in (select t_id from u) order by 1;
----
id
1
4
(SELECT 2)

update t set b = b || '!' where id in (select t_id from u) and b is not null returning id, b;
----
id | b
1 | one!
2 | two!
(UPDATE 2)

delete from t where not exists (select 1 from u where u.t_id = t.id) returning id;
----
id
3
5
(DELETE 2)

select id from t where id in (select t_id from u where t.a is not null) union all
  select id from u where exists (select 1 from t where t.id = u.t_id) order by 1;
----
id
1
1
2
2
3
4
6
7
(SELECT 8)

