-- postgres: same
create table p (id int primary key, k int, n int);
----
(CREATE TABLE)

create table c (id int primary key, pid int, v int not null, w int);
----
(CREATE TABLE)

insert into p values (1, 10, 1), (2, 20, null), (3, 30, 3), (4, null, 4);
----
(INSERT 0 4)

insert into c values (1, 1, 5, null), (2, 1, 6, 1), (3, 3, 7, null), (4, null, 8, 2);
----
(INSERT 0 4)

select p.id from p left join c on c.pid = p.id where c.id is null order by 1;
----
id
2
4
(SELECT 2)

select p.id, c.id, c.v, c.w from p left join c on c.pid = p.id where c.v is null order by 1;
----
id | id | v | w
2 | ∅ | ∅ | ∅
4 | ∅ | ∅ | ∅
(SELECT 2)

select p.id, c.pid from p left join c on c.pid = p.id where c.pid is null order by 1;
----
id | pid
2 | ∅
4 | ∅
(SELECT 2)

select p.id, c.id from p left join c on c.pid = p.id where c.w is null order by 1, 2;
----
id | id
1 | 1
2 | ∅
3 | 3
4 | ∅
(SELECT 4)

select p.id, c.id from p left join c on c.pid = p.id and c.v > 5 where c.id is null order by 1;
----
id | id
2 | ∅
4 | ∅
(SELECT 2)

select p.id, c.id from p left join c on c.pid = p.id and p.k > 10 where c.id is null order by 1;
----
id | id
1 | ∅
2 | ∅
4 | ∅
(SELECT 3)

select p.id, c.id, coalesce(c.v, -1) from p left join c on c.pid = p.id where c.id is null and c.w is null and p.id > 1 order by 1;
----
id | id | coalesce
2 | ∅ | -1
4 | ∅ | -1
(SELECT 2)

select p.id from p left join c on c.pid = p.id where c.id is null and c.w = 1;
----
id
(SELECT 0)

select p.id from p left join c on c.pid < p.id where c.id is null order by 1;
----
id
1
(SELECT 1)

select p.id from p left join (select * from c where v > 6) c on c.pid = p.id where c.id is null order by 1;
----
id
1
2
4
(SELECT 3)

select p.id from p left join c on c.pid = p.id left join p q on q.n = p.id where c.id is null and q.id is null order by 1;
----
id
2
(SELECT 1)

select p.id from p left join lateral (select c.id from c where c.pid = p.id limit 1) l on true where l.id is null order by 1;
----
id
2
4
(SELECT 2)

select c.id from p right join c on c.pid = p.id where p.id is null;
----
id
4
(SELECT 1)

select p.id, c.id from p full join c on c.pid = p.id where c.id is null order by 1;
----
id | id
2 | ∅
4 | ∅
(SELECT 2)

select count(*) from p left join c on false where c.id is null;
----
count
4
(SELECT 1)

update p set n = 0 from (select p.id from p left join c on c.pid = p.id where c.id is null) l where l.id = p.id returning p.id;
----
id
2
4
(UPDATE 2)

with d as (delete from p where id in (select p.id from p left join c on c.pid = p.id where c.id is null) returning id)
select id from d order by id;
----
id
2
4
(SELECT 2)

select * from p order by 1;
----
id | k | n
1 | 10 | 1
3 | 30 | 3
(SELECT 2)

create table hp (id int primary key);
----
(CREATE TABLE)

create table hc (id int primary key, x int, y int);
----
(CREATE TABLE)

insert into hp values (1), (2);
----
(INSERT 0 2)

insert into hc values (1, null, null), (2, 1, 2);
----
(INSERT 0 2)

select count(hc), count(hc.id), count(*) from hp left join hc on hc.x = hp.id;
----
count | count | count
1 | 1 | 2
(SELECT 1)

select json_agg(hc order by hp.id) from hp left join hc on hc.x = hp.id;
----
json_agg
[{"id":2,"x":1,"y":2}, null]
(SELECT 1)

select hp.id, hc::text, hc is null, hc is not null, row_to_json(hc) from hp left join hc on hc.x = hp.id order by 1;
----
id | hc | ?column? | ?column? | row_to_json
1 | (2,1,2) | f | t | {"id":2,"x":1,"y":2}
2 | ∅ | t | f | ∅
(SELECT 2)

select hc from hc order by hc.id;
----
hc
(1,,)
(2,1,2)
(SELECT 2)

select hc is null from hc order by id;
----
?column?
f
f
(SELECT 2)

select hp.id from hp left join (select id, row(x, y) r from hc) s on s.r = row(null::int, null::int) where s.r is null order by 1;
----
id
1
2
(SELECT 2)

select hp.id from hp left join hc on hc.x = hp.id where hc.id is null for update;
----
ERROR 0A000: FOR UPDATE cannot be applied to the nullable side of an outer join

select hp.id from hp left join hc on hc.x = hp.id where hc is null order by 1;
----
id
2
(SELECT 1)

