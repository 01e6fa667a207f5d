-- postgres: same
create table t (id int primary key, v int);
----
(CREATE TABLE)

create table u (id int primary key, v int);
----
(CREATE TABLE)

insert into t values (1, 10), (2, 20), (3, null);
----
(INSERT 0 3)

insert into u values (1, 10), (2, 10), (3, 30);
----
(INSERT 0 3)

select t.id, s.c from t left join lateral (select t.v as c) as s on false order by 1;
----
id | c
1 | ∅
2 | ∅
3 | ∅
(SELECT 3)

select t.id, s.c, s.d from t left join lateral (select t.v as c, t.v as d from u where u.v = t.v) as s on s.c > 10 order by 1;
----
id | c | d
1 | ∅ | ∅
2 | ∅ | ∅
3 | ∅ | ∅
(SELECT 3)

select t.id, s.* from t left join lateral (select t.v as c, count(*) as n from u group by t.v) as s on s.c > 10 order by 1;
----
id | c | n
1 | ∅ | ∅
2 | 20 | 3
3 | ∅ | ∅
(SELECT 3)

select t.id, s.* from t left join lateral (select t.v, u.v, count(*) from u group by t.v, u.v) as s on s.count > 1 and t.id < 3 order by 1, 3;
----
id | v | v | count
1 | 10 | 10 | 2
2 | 20 | 10 | 2
3 | ∅ | ∅ | ∅
(SELECT 3)

select id, (select count(*) + t.v from (select t.v as c from u) as s where c is not null) from t order by 1;
----
id | ?column?
1 | 13
2 | 23
3 | ∅
(SELECT 3)

select id from t where v in (select min(u.v) from u join (select t.v as c from u as x group by x.id) as s on u.v = s.c group by u.v, t.id + 0) order by 1;
----
id
1
(SELECT 1)

select id, (select string_agg(s.c::text, ',') from u left join (select t.v as c, x.id from u as x where x.id > 1) as s on s.id = u.id) from t order by 1;
----
id | string_agg
1 | 10,10
2 | 20,20
3 | ∅
(SELECT 3)

select id, (select t.v from u group by t.v) from t order by 1;
----
id | v
1 | 10
2 | 20
3 | ∅
(SELECT 3)

select id from t where exists (select 1 from (select u.v + 0 as c, t.id as d from u) as s where s.c = t.v) order by 1;
----
id
1
(SELECT 1)

select id from t where not exists (select 1 from (select u.v + 0 as c, t.id as d from u) as s where s.c = t.v and d < 2) order by 1;
----
id
2
3
(SELECT 2)

