-- postgres: same
create table t (id int primary key, s text, c int);
----
(CREATE TABLE)

create index t_sc on t (s, c);
----
(CREATE INDEX)

insert into t select g, 's' || g % 3, g / 4 from generate_series(1, 1200) as g;
----
(INSERT 0 1200)

insert into t values (2000, null, 5), (2001, 's1', null), (2002, 's1', 150);
----
(INSERT 0 3)

select id, c from t where s = 's1' and (c, id) < (150, 601) order by c desc, id desc limit 5;
----
id | c
598 | 149
595 | 148
592 | 148
589 | 147
586 | 146
(SELECT 5)

select id, c from t where s = 's1' and (c, id) > (150, 601) order by c, id limit 5;
----
id | c
2002 | 150
604 | 151
607 | 151
610 | 152
613 | 153
(SELECT 5)

select id, c from t where s = 's1' and (c, id) <= (150, 601) order by c desc, id desc limit 3;
----
id | c
601 | 150
598 | 149
595 | 148
(SELECT 3)

select id, c from t where s = 's1' and (c < 150 or c = 150 and id > 600) order by c desc, id limit 4;
----
id | c
601 | 150
2002 | 150
598 | 149
592 | 148
(SELECT 4)

select count(*) from t where s = 's1' and (c < 150 or c < 100);
----
count
200
(SELECT 1)

select count(*) from t where s = 's1' and (c < 150 or c is null);
----
count
201
(SELECT 1)

select count(*) from t where s = 's1' and (c <= 150 or c = 150 and id < 0);
----
count
202
(SELECT 1)

select count(*) from t where s = 's1' and (c >= 299 or c = 150);
----
count
3
(SELECT 1)

select count(*) from t where s = 's1' and (s, c, id) > ('s1', 298, 3);
----
count
3
(SELECT 1)

prepare page(text, int, int) as select id, c from t where s = $1 and (c, id) < ($2, $3) order by c desc, id desc limit 3;
----
(PREPARE)

execute page('s1', 150, 601);
----
id | c
598 | 149
595 | 148
592 | 148
(SELECT 3)

execute page('s1', null, 601);
----
id | c
(SELECT 0)

execute page('s2', 150, null);
----
id | c
599 | 149
596 | 149
593 | 148
(SELECT 3)

