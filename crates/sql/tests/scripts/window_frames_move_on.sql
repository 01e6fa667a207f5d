-- postgres: same
-- A frame whose first row moves takes rows back, where its aggregate can: the answers are those of a
-- frame that is added up anew.
create table t (id int primary key, i int, n numeric, f float8, b bool, v interval, s text);
----
(CREATE TABLE)

insert into t
  select g, case when g % 7 = 0 then null else (g * 37) % 11 - 5 end,
    case when g = 9 then 'NaN' when g = 13 then 'Infinity' when g % 5 = 0 then null when g = 4 then 1.12345
      when g = 17 then 2.5000000 else (g * 13 % 17)::numeric / 4 end,
    case when g % 6 = 0 then null when g = 10 then 'Infinity' else g / 8.0 end,
    case when g % 4 = 0 then null else g % 3 = 0 end,
    case when g % 5 = 1 then null else g % 3 * interval '1 month' - g * interval '1 day' + g * interval '0.5 s' end,
    chr(97 + g % 5)
  from generate_series(1, 24) g;
----
ERROR 0A000: named arguments are not supported
POSITION: 436

select id, count(*) over w, count(i) over w, sum(i) over w, sum(i::int8) over w, avg(i) over w
from t window w as (order by id rows between 3 preceding and 1 following) order by id;
----
id | count | count | sum | sum | avg
(SELECT 0)

select id, sum(n) over w, avg(n) over w, count(n) over w, var_samp(n) over w
from t window w as (order by id rows between 2 preceding and current row) order by id;
----
id | sum | avg | count | var_samp
(SELECT 0)

select id, sum(n) over w, stddev_pop(i) over w, variance(i) over w, var_pop(n) over w
from t where id > 13 window w as (order by id rows between 4 preceding and 2 preceding) order by id;
----
id | sum | stddev_pop | variance | var_pop
(SELECT 0)

select id, sum(f) over w, avg(f) over w, min(f) over w, max(f) over w, stddev(f) over w
from t window w as (order by id rows between 2 preceding and 2 following) order by id;
----
id | sum | avg | min | max | stddev
(SELECT 0)

select id, bool_and(b) over w, bool_or(b) over w, every(b) over w, bit_and(i) over w, bit_or(i) over w
from t window w as (order by id rows between 2 preceding and current row) order by id;
----
id | bool_and | bool_or | every | bit_and | bit_or
(SELECT 0)

select id, sum(v) over w, avg(v) over w, min(v) over w, max(n) over w, min(s) over w
from t window w as (order by id rows between 3 preceding and 1 preceding) order by id;
----
id | sum | avg | min | max | min
(SELECT 0)

-- To the end of the partition, and from its peers.
select id, sum(i) over w, count(n) over w, max(i) over w, min(n) over w, string_agg(s, '') over w
from t window w as (order by id rows between current row and unbounded following) order by id;
----
id | sum | count | max | min | string_agg
(SELECT 0)

select id, sum(i) over w, count(*) over w, array_agg(id) over w
from t window w as (partition by s order by i range between current row and unbounded following) order by id;
----
id | sum | count | array_agg
(SELECT 0)

-- Frames that skip, are empty, or leave all rows at once.
select id, sum(i) over w, count(*) over w, max(s) over w
from t window w as (order by id rows between 5 following and 7 following) order by id;
----
id | sum | count | max
(SELECT 0)

select id, sum(i) over w, count(*) over w, bool_or(b) over w
from t window w as (order by id rows between 2 following and 1 following) order by id;
----
id | sum | count | bool_or
(SELECT 0)

select id, sum(i) over w, avg(n) over w
from t window w as (order by i, id rows between 1 preceding and unbounded following) order by i, id;
----
id | sum | avg
(SELECT 0)

-- A filter keeps rows out, and their arguments are not computed.
select id, sum(60 / i) filter (where i <> 0) over w, count(*) filter (where b) over w
from t window w as (order by id rows between 3 preceding and current row) order by id;
----
id | sum | count
(SELECT 0)

select sum(1 / x) filter (where x <> 0) over () from (values (0), (1), (2)) v(x);
----
sum
1
1
1
(SELECT 3)

-- The sum of one frame is out of range, the next one's is not.
select count(s) from (select sum(x) over (order by id rows between 1 preceding and current row) s
  from (values (1, 9223372036854775807), (2, 0), (3, 1), (4, -9223372036854775807)) v(id, x)) q;
----
count
4
(SELECT 1)

-- As fast as the frames are long, and they are long.
select sum(s), max(c), min(m) from (
  select sum(g) over w s, count(*) over w c, max(-g) over w m
  from generate_series(1, 30000) g window w as (order by g rows between current row and unbounded following)) q;
----
sum | max | min
9000450005000 | 30000 | -30000
(SELECT 1)

select sum(s) from (
  select avg(g::numeric) over (order by g rows between 10000 preceding and current row) s
  from generate_series(1, 30000) g) q;
----
sum
325017500.00000000000000000000
(SELECT 1)

drop table t;
----
(DROP TABLE)

