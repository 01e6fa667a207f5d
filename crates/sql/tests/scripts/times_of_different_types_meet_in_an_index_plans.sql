create table logs (id int primary key, d date, t timestamp, z timestamptz, prio int);
----

create index on logs (d);
----

create index on logs (t);
----

create index on logs (z);
----

insert into logs select g, date '2024-01-01' + g / 10, timestamp '2024-01-01 00:00' + g * interval '2 hours', timestamptz '2024-01-01 00:00+00' + g * interval '3 hours', g % 5 from generate_series(0, 4999) as g;
----

analyze logs;
----

explain select count(*) from logs where t > date '2025-02-01';
----

explain select count(*) from logs where t between date '2024-02-01' and date '2024-02-03';
----

explain select count(*) from logs where t > now() - interval '1 day';
----

explain select count(*) from logs where z < date '2024-02-01';
----

explain select count(*) from logs where d > now() - interval '1 day';
----

explain select count(*) from logs where not (t <> timestamp '2024-02-01');
----

explain select count(*) from (select * from logs where prio <> 0) as x where 100 / prio > 20;
----

explain select count(*) from logs as a left join logs as b on b.id = a.id where b.id = 3 and b.d is not null or b.id = 4;
----

