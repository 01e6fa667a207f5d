-- postgres: same
create table p (id int primary key);
----
(CREATE TABLE)

insert into p values (1), (2);
----
(INSERT 0 2)

create table t (id int primary key, a int not null, b text unique, c int check (c < 100), d int generated always as (a * 2) stored, p int references p);
----
(CREATE TABLE)

insert into t (id, a, b, c, p) values (1, 1, 'one', 1, 1), (2, 2, 'two', 2, 2), (3, 3, null, 3, null), (4, 4, null, 4, 1);
----
(INSERT 0 4)

select * from t order by id;
----
id | a | b | c | d | p
1 | 1 | one | 1 | 2 | 1
2 | 2 | two | 2 | 4 | 2
3 | 3 | ∅ | 3 | 6 | ∅
4 | 4 | ∅ | 4 | 8 | 1
(SELECT 4)

insert into t (id, a) values (5, 5), (6, 6), (5, 7);
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(5) already exists.

insert into t (id, a) values (5, 5), (1, 6), (5, 7);
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(1) already exists.

insert into t (id, a, b) values (5, 5, 'five'), (6, 6, 'two'), (7, null, 'seven');
----
ERROR 23505: duplicate key value violates unique constraint "t_b_key"
DETAIL: Key (b)=(two) already exists.

insert into t (id, a, b) values (5, 5, 'five'), (6, null, 'two'), (7, 7, 'five');
----
ERROR 23502: null value in column "a" of relation "t" violates not-null constraint
DETAIL: Failing row contains (6, null, two, null, null, null).

insert into t (id, a, c) values (5, 5, 5), (6, 6, 100), (1, 7, 7);
----
ERROR 23514: new row for relation "t" violates check constraint "t_c_check"
DETAIL: Failing row contains (6, 6, null, 100, 12, null).

insert into t (id, a, p) values (5, 5, 1), (6, 6, 3), (7, 7, 4);
----
ERROR 23503: insert or update on table "t" violates foreign key constraint "t_p_fkey"
DETAIL: Key (p)=(3) is not present in table "p".

select count(*) from t;
----
count
4
(SELECT 1)

insert into t (id, a, b) select i, i, 'row ' || i from generate_series(10, 3000) as i;
----
(INSERT 0 2991)

insert into t (id, a, b) select i, i, 'row ' || (i - 3000) from generate_series(3001, 6000) as i;
----
ERROR 23505: duplicate key value violates unique constraint "t_b_key"
DETAIL: Key (b)=(row 10) already exists.

select count(*), sum(d), min(b), max(b) from t;
----
count | sum | min | max
2995 | 9002930 | one | two
(SELECT 1)

begin;
----
(BEGIN)

insert into t (id, a) values (7001, 1), (7002, 2);
----
(INSERT 0 2)

insert into t (id, a) values (7003, 3), (7002, 4);
----
ERROR 23505: duplicate key value violates unique constraint "t_pkey"
DETAIL: Key (id)=(7002) already exists.

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

insert into t (id, a, b) values (7001, 1, 'x'), (7002, 2, 'y');
----
(INSERT 0 2)

savepoint s;
----
(SAVEPOINT)

insert into t (id, a, b) values (7003, 3, 'z'), (7004, 4, 'x');
----
ERROR 23505: duplicate key value violates unique constraint "t_b_key"
DETAIL: Key (b)=(x) already exists.

rollback to s;
----
(ROLLBACK)

insert into t (id, a, b) values (7003, 3, 'z'), (7004, 4, 'w');
----
(INSERT 0 2)

commit;
----
(COMMIT)

select id, a, b, d from t where id > 7000 order by id;
----
id | a | b | d
7001 | 1 | x | 2
7002 | 2 | y | 4
7003 | 3 | z | 6
7004 | 4 | w | 8
(SELECT 4)

create unique index t_small on t (c);
----
(CREATE INDEX)

insert into t (id, a, c) values (8001, 1, 50), (8002, 2, 50), (8003, 3, 9);
----
ERROR 23505: duplicate key value violates unique constraint "t_small"
DETAIL: Key (c)=(50) already exists.

insert into t (id, a, c) values (8004, 1, 51), (8005, 2, 9);
----
(INSERT 0 2)

insert into t (id, a) values (9001, 1), (9002, 2) returning id, d;
----
id | d
9001 | 2
9002 | 4
(INSERT 0 2)

select id, b from t where a % 1000 = 7 and b is not null order by id;
----
id | b
1007 | row 1007
2007 | row 2007
(SELECT 2)

select id, d from t where b = 'row ' || (select max(p.id) + 20 from p) order by id;
----
id | d
22 | 44
(SELECT 1)

select count(*) from t where a > (select avg(a) from t as o where o.id < t.id and o.id > t.id - 3);
----
count
2998
(SELECT 1)

select p.id, t.id from p join t on t.p = p.id order by 1, 2;
----
id | id
1 | 1
1 | 4
2 | 2
(SELECT 3)

select p.id, t.id from p left join t on t.p = p.id and t.a > 1 order by 1, 2;
----
id | id
1 | 4
2 | 2
(SELECT 2)

select id from t where id < 5 and exists (select 1 from p where p.id = t.p and p.id <> t.id) order by id;
----
id
4
(SELECT 1)

select id from t where id < 5 and not exists (select 1 from p where p.id = t.p) order by id;
----
id
3
(SELECT 1)

select x.v, y.w from (values (1, 1.0), (2, null), (3, 1.00)) as x (v, k) join (values (1, 1), (2, 1), (3, null), (4, 7)) as y (w, k) on x.k = y.k order by 1, 2;
----
v | w
1 | 1
1 | 2
3 | 1
3 | 2
(SELECT 4)

select x.v, y.w from (values (1, 1), (2, null), (3, 2)) as x (v, k) full join (values (1, 1), (2, 1), (3, null), (4, 7)) as y (w, k) on x.k = y.k order by 1, 2;
----
v | w
1 | 1
1 | 2
2 | ∅
3 | ∅
∅ | 3
∅ | 4
(SELECT 6)

select k, count(*), count(v), sum(v), avg(v), count(distinct v), sum(v) filter (where v > 1), string_agg(v::text, ',' order by v desc) from (values (1, 1), (1, 2), (2, null), (1, 2), (2, 5)) as r (k, v) group by k order by k;
----
k | count | count | sum | avg | count | sum | string_agg
1 | 3 | 3 | 5 | 1.6666666666666667 | 2 | 4 | 2,2,1
2 | 2 | 1 | 5 | 5.0000000000000000 | 1 | 5 | 5
(SELECT 2)

