-- postgres: same
create table lk (id int primary key, v int, k int);
----
(CREATE TABLE)

insert into lk select g, (g * 7) % 20, g % 5 from generate_series(0, 19) g;
----
(INSERT 0 20)

create view fours as select id, v from lk where k = 4;
----
(CREATE VIEW)

select a.id, b.id as of from lk a join lk b on a.id = b.v where b.k = 4 and a.id < 16 order by a.id for update of a;
----
id | of
3 | 9
8 | 4
13 | 19
(SELECT 3)

select a.id from lk a join lk b on a.id = b.v where b.k = 4 order by a.id desc limit 2 offset 1 for no key update of a for share of b;
----
id
13
8
(SELECT 2)

select id, v from lk where k = 2 order by v desc limit 2 for update;
----
id | v
17 | 19
2 | 14
(SELECT 2)

select id from lk where k = 2 order by v desc limit 1 offset 2 for update skip locked;
----
id
7
(SELECT 1)

select id from lk where k = 2 order by v limit 0 for update nowait;
----
id
(SELECT 0)

select id from lk order by random() limit 0 for update;
----
id
(SELECT 0)

select count(*) from lk where id = (select id from lk where k = 3 order by v desc limit 1 for update skip locked);
----
count
1
(SELECT 1)

update lk set k = 7 where id in (select id from lk where k = 3 order by v desc limit 2 for update skip locked) returning id, v;
----
id | v
8 | 16
13 | 11
(UPDATE 2)

with next as (select id from lk where k = 7 order by v limit 1 for update skip locked) update lk set k = 3 from next where lk.id = next.id returning lk.id;
----
id
13
(UPDATE 1)

(select id from lk where k = 1 for update) order by id limit 2;
----
id
1
6
(SELECT 2)

(select id, v from lk where k = 1) order by v desc limit 1 for update;
----
id | v
11 | 17
(SELECT 1)

table lk order by v desc, id limit 1 for update;
----
id | v | k
17 | 19 | 2
(SELECT 1)

select * from fours order by v desc limit 1 for update;
----
id | v
14 | 18
(SELECT 1)

select f.id from fours f join lk on lk.id = f.v order by f.id limit 2 for update of f;
----
id
4
9
(SELECT 2)

select d.id from (select id, v from lk where k = 4 order by v) d join lk on lk.id = d.v order by d.v limit 2 for update of d;
----
id
9
4
(SELECT 2)

select l.id, x.id as next from lk l cross join lateral (select id from lk m where m.id > l.id order by m.v limit 1 for update) x where l.id in (3, 5) order by l.id;
----
id | next
3 | 6
5 | 6
(SELECT 2)

select distinct v from lk for update;
----
ERROR 0A000: FOR UPDATE is not allowed with DISTINCT clause

select count(*) from lk for share;
----
ERROR 0A000: FOR SHARE is not allowed with aggregate functions

select k from lk group by k for key share;
----
ERROR 0A000: FOR KEY SHARE is not allowed with GROUP BY clause

select k from lk having true for update;
----
ERROR 0A000: FOR UPDATE is not allowed with HAVING clause

select 1 from lk having true for update;
----
ERROR 0A000: FOR UPDATE is not allowed with HAVING clause

select row_number() over () from lk for no key update;
----
ERROR 0A000: FOR NO KEY UPDATE is not allowed with window functions

select generate_series(1, 2) from lk for update;
----
ERROR 0A000: FOR UPDATE is not allowed with set-returning functions in the target list

select d.n from (select count(*) as n from lk) d, lk for update;
----
ERROR 0A000: FOR UPDATE is not allowed with aggregate functions

select d.k from (select k from lk group by k) d for update of d;
----
ERROR 0A000: FOR UPDATE is not allowed with GROUP BY clause

select d.k from (select distinct k from lk) d for share;
----
ERROR 0A000: FOR SHARE is not allowed with DISTINCT clause

select d.k from (select k from lk union select 1) d for update;
----
ERROR 0A000: FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT

select a.id, b.id as other from lk a left join lk b on b.id = a.v + 18 where a.id < 2 order by a.id for update of a;
----
id | other
0 | 18
1 | ∅
(SELECT 2)

select a.id from lk a left join lk b on b.id = a.v for update;
----
ERROR 0A000: FOR UPDATE cannot be applied to the nullable side of an outer join

select a.id from lk a left join lk b on b.id = a.v for update of b;
----
ERROR 0A000: FOR UPDATE cannot be applied to the nullable side of an outer join

select a.id from lk a right join lk b on b.id = a.v for share of a;
----
ERROR 0A000: FOR SHARE cannot be applied to the nullable side of an outer join

select a.id from lk a full join lk b on b.id = a.v for no key update of a;
----
ERROR 0A000: FOR NO KEY UPDATE cannot be applied to the nullable side of an outer join

select a.id from lk a left join lk b on b.id = a.v where b.k = 4 and a.k = 4 order by a.id for update of b;
----
id
(SELECT 0)

begin;
----
(BEGIN)

declare c cursor for select id from lk where k = 2 order by v desc for update;
----
(DECLARE CURSOR)

fetch 1 from c;
----
id
17
(FETCH 1)

fetch 2 from c;
----
id
2
7
(FETCH 2)

commit;
----
(COMMIT)

prepare p (int, int) as select id from lk where k = $1 order by v desc limit $2 for update skip locked;
----
(PREPARE)

execute p (2, 1);
----
id
17
(SELECT 1)

execute p (4, 2);
----
id
14
19
(SELECT 2)

deallocate p;
----
(DEALLOCATE)

