-- postgres: same
create table wa (id int primary key);
----
(CREATE TABLE)

create table wb (id int primary key, k int);
----
(CREATE TABLE)

insert into wa values (1), (2), (3);
----
(INSERT 0 3)

insert into wb values (1, 10), (9, null);
----
(INSERT 0 2)

select count(q) as n from wa left join (select id, k from wb) q on q.id = wa.id;
----
n
1
(SELECT 1)

select wa.id, coalesce(to_jsonb(q), '{}') as q from wa left join (select id, k from wb) q on q.id = wa.id order by 1;
----
id | q
1 | {"k": 10, "id": 1}
2 | {}
3 | {}
(SELECT 3)

select wa.id, q::text as q from wa left join (select k from wb where id = 9 union all select 1) q on wa.id = 3 order by 1, 2;
----
id | q
1 | ∅
2 | ∅
3 | ()
3 | (1)
(SELECT 4)

with q as (select id, k + 1 as k from wb) select wa.id, coalesce(q::text, 'none') as q from wa left join q on q.id = wa.id order by 1;
----
id | q
1 | (1,11)
2 | none
3 | none
(SELECT 3)

select wa.id, coalesce(q::text, 'none') as q from wa left join (values (1, 'x')) q (id, v) on q.id = wa.id order by 1;
----
id | q
1 | (1,x)
2 | none
3 | none
(SELECT 3)

select id, coalesce(q::text, 'none') as q from wa left join (select id, k from wb) q using (id) order by 1;
----
id | q
1 | (1,10)
2 | none
3 | none
(SELECT 3)

select id, wa, q from (select id from wa where id > 1) wa full join (select id, k from wb) q using (id) order by 1;
----
id | wa | q
1 | ∅ | (1,10)
2 | (2) | ∅
3 | (3) | ∅
9 | ∅ | (9,)
(SELECT 4)

select wa.id, coalesce(q::text, 'none') as q, coalesce(r::text, 'none') as r from wa left join ((select id from wa where id < 3) q left join (select id, k from wb) r on r.id = q.id) on q.id = wa.id order by 1;
----
id | q | r
1 | (1) | (1,10)
2 | (2) | none
3 | none | none
(SELECT 3)

select json_agg(q order by wa.id) filter (where q is distinct from null) as q from wa left join (select id, k from wb) q on q.id = wa.id;
----
q
[{"id":1,"k":10}]
(SELECT 1)

select wa.id, (select count(q) from generate_series(1, 2)) as n from wa left join (select id, k from wb) q on q.id = wa.id order by 1;
----
ERROR 42803: column "wa.id" must appear in the GROUP BY clause or be used in an aggregate function
POSITION: 8

select q from (select id, k from wb) q order by q;
----
q
(1,10)
(9,)
(SELECT 2)

select count(q) as n from wa join (select id, k from wb) q on q.id = wa.id;
----
n
1
(SELECT 1)

select wa.id from wa left join (select id, k from wb) q on q.id = wa.id where q is distinct from null order by 1;
----
id
1
(SELECT 1)

select q, count(*) as n from wa left join (select id from wb) q on q.id = wa.id group by q order by 2;
----
q | n
(1) | 1
∅ | 2
(SELECT 2)

