-- postgres: same

create table logs (id int primary key, d date, t timestamp, z timestamptz, prio int, note text);
----
(CREATE TABLE)

insert into logs select g, date '2024-01-01' + g / 10, timestamp '2024-01-01 00:00' + g * interval '2 hours', timestamptz '2024-01-01 00:00+00' + g * interval '3 hours', g % 5, case when g % 3 = 0 then 'n' else g::text end from generate_series(0, 999) as g;
----
(INSERT 0 1000)

insert into logs values (1000, 'infinity', 'infinity', 'infinity', 0, null), (1001, '-infinity', '-infinity', '-infinity', 1, null), (1002, null, null, null, 2, null);
----
(INSERT 0 3)

create index on logs (d);
----
(CREATE INDEX)

create index on logs (t);
----
(CREATE INDEX)

create index on logs (z);
----
(CREATE INDEX)

set timezone = 'Europe/Paris';
----
(SET)

select count(*), min(id), max(id) from logs where t > date '2024-02-01';
----
count | min | max
628 | 373 | 1000
(SELECT 1)

select count(*), min(id), max(id) from logs where date '2024-02-01' <= t;
----
count | min | max
629 | 372 | 1000
(SELECT 1)

select count(*), min(id), max(id) from logs where t between date '2024-02-01' and date '2024-02-03';
----
count | min | max
25 | 372 | 396
(SELECT 1)

select id from logs where t = date '2024-02-01';
----
id
372
(SELECT 1)

select count(*) from logs where t <> date '2024-02-01';
----
count
1001
(SELECT 1)

select count(*), min(id), max(id) from logs where z > date '2024-02-01';
----
count | min | max
753 | 248 | 1000
(SELECT 1)

select count(*), min(id), max(id) from logs where z < timestamp '2024-02-01 12:00';
----
count | min | max
253 | 0 | 1001
(SELECT 1)

select id from logs where z = timestamp '2024-02-01 01:00';
----
id
248
(SELECT 1)

select count(*), min(id), max(id) from logs where t >= timestamptz '2024-02-01 00:00+00';
----
count | min | max
628 | 373 | 1000
(SELECT 1)

select count(*), min(id), max(id) from logs where t < timestamptz '2024-03-31 03:30+00';
----
count | min | max
1001 | 0 | 1001
(SELECT 1)

select id from logs where t = timestamptz '2024-02-01 00:00+01';
----
id
372
(SELECT 1)

select count(*), min(id), max(id) from logs where d >= timestamptz '2024-02-01 00:00+00';
----
count | min | max
681 | 320 | 1000
(SELECT 1)

select count(*), min(id), max(id) from logs where d > timestamp '2024-02-01 00:00';
----
count | min | max
681 | 320 | 1000
(SELECT 1)

select count(*), min(id), max(id) from logs where d = timestamp '2024-02-01 00:00';
----
count | min | max
10 | 310 | 319
(SELECT 1)

select count(*) from logs where d = timestamp '2024-02-01 00:01';
----
count
0
(SELECT 1)

select count(*) from logs where t > 'infinity'::date;
----
count
0
(SELECT 1)

select count(*) from logs where t >= '-infinity'::date;
----
count
1002
(SELECT 1)

select count(*) from logs where d <= 'infinity'::timestamptz;
----
count
1002
(SELECT 1)

select count(*) from logs where t < date '5000000-01-01';
----
count
1001
(SELECT 1)

select count(*) from logs where z > null::date;
----
count
0
(SELECT 1)

select count(*) from logs where not (prio <> 3);
----
count
200
(SELECT 1)

select count(*) from logs where not (t > date '2024-02-01');
----
count
374
(SELECT 1)

select count(*) from logs where not (prio < 3) and not (d = date '2024-02-01');
----
count
396
(SELECT 1)

set timezone = 'Pacific/Auckland';
----
(SET)

select count(*), min(id), max(id) from logs where t >= timestamptz '2024-02-01 00:00+00';
----
count | min | max
622 | 379 | 1000
(SELECT 1)

select count(*), min(id), max(id) from logs where d < timestamptz '2024-02-01 00:00+00';
----
count | min | max
321 | 0 | 1001
(SELECT 1)

select count(*) from (select * from logs where prio <> 0) as x where 100 / prio > 20;
----
count
802
(SELECT 1)

with x as (select * from logs where prio <> 0) select count(*) from x where 100 / prio > 20;
----
count
802
(SELECT 1)

with x as materialized (select * from logs where prio <> 0) select count(*) from x where 100 / prio > 20;
----
count
802
(SELECT 1)

select count(*) from (select distinct prio from logs where prio <> 0) as x where 100 / prio > 20;
----
count
4
(SELECT 1)

select count(*) from (select prio, count(*) as n from logs where prio <> 0 group by prio) as x where 100 / prio > 20;
----
count
4
(SELECT 1)

select count(*) from (select id, 100 / prio as q from logs where prio <> 0) as x where q > 20;
----
count
802
(SELECT 1)

select count(*) from (select note from logs where note ~ '^[0-9]+$') as x where note::int > 500;
----
count
332
(SELECT 1)

select count(*) from logs as o join (select id, prio from logs where prio <> 0) as x on x.id = o.id where 100 / x.prio > 20;
----
count
802
(SELECT 1)

select count(*) from logs as o left join (select id, prio from logs where prio <> 0) as x on x.id = o.id where 100 / x.prio > 20;
----
count
802
(SELECT 1)

select count(*) from logs as a left join logs as b on b.id = a.id + 500 where b.prio = 3 and b.d is not null or b.prio = 4;
----
count
200
(SELECT 1)

select count(*) from logs as a left join logs as b on b.id = a.id + 500 where (b.prio = 3) is not true;
----
count
903
(SELECT 1)

