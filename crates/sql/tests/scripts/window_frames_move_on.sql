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
(INSERT 0 24)

select id, count(*) over w, count(i) over w, sum(i) over w, sum(i::int8) over w, avg(i) over w
from t window w as (order by id rows between 3 preceding and 1 following) order by id;
----
id | count | count | sum | sum | avg
1 | 2 | 2 | 2 | 2 | 1.00000000000000000000
2 | 3 | 3 | -2 | -2 | -0.66666666666666666667
3 | 4 | 4 | -2 | -2 | -0.50000000000000000000
4 | 5 | 5 | 2 | 2 | 0.40000000000000000000
5 | 5 | 5 | 0 | 0 | 0.00000000000000000000
6 | 5 | 4 | -3 | -3 | -0.75000000000000000000
7 | 5 | 4 | 6 | 6 | 1.5000000000000000
8 | 5 | 4 | 4 | 4 | 1.00000000000000000000
9 | 5 | 4 | 2 | 2 | 0.50000000000000000000
10 | 5 | 4 | 0 | 0 | 0.00000000000000000000
11 | 5 | 5 | -1 | -1 | -0.20000000000000000000
12 | 5 | 5 | -3 | -3 | -0.60000000000000000000
13 | 5 | 4 | -1 | -1 | -0.25000000000000000000
14 | 5 | 4 | -3 | -3 | -0.75000000000000000000
15 | 5 | 4 | 6 | 6 | 1.5000000000000000
16 | 5 | 4 | 4 | 4 | 1.00000000000000000000
17 | 5 | 4 | 2 | 2 | 0.50000000000000000000
18 | 5 | 5 | 7 | 7 | 1.4000000000000000
19 | 5 | 5 | 5 | 5 | 1.00000000000000000000
20 | 5 | 4 | 1 | 1 | 0.25000000000000000000
21 | 5 | 4 | -1 | -1 | -0.25000000000000000000
22 | 5 | 4 | -3 | -3 | -0.75000000000000000000
23 | 5 | 4 | -5 | -5 | -1.2500000000000000
24 | 4 | 3 | -3 | -3 | -1.00000000000000000000
(SELECT 24)

select id, sum(n) over w, avg(n) over w, count(n) over w, var_samp(n) over w
from t window w as (order by id rows between 2 preceding and current row) order by id;
----
id | sum | avg | count | var_samp
1 | 3.2500000000000000 | 3.2500000000000000 | 1 | ∅
2 | 5.5000000000000000 | 2.7500000000000000 | 2 | 0.50000000000000000000000000000000
3 | 6.7500000000000000 | 2.2500000000000000 | 3 | 1.00000000000000000000000000000000
4 | 4.6234500000000000 | 1.5411500000000000 | 3 | 0.38085496750000000000000000000000
5 | 2.3734500000000000 | 1.18672500000000000000 | 2 | 0.00800745125000000000000000000000
6 | 3.6234500000000000 | 1.8117250000000000 | 2 | 0.94744495125000000000000000000000
7 | 4.0000000000000000 | 2.0000000000000000 | 2 | 0.50000000000000000000000000000000
8 | 4.50000000000000000000 | 1.50000000000000000000 | 3 | 1.0000000000000000000000000000000000000000
9 | NaN | NaN | 3 | NaN
10 | NaN | NaN | 2 | NaN
11 | NaN | NaN | 2 | NaN
12 | 2.50000000000000000000 | 1.25000000000000000000 | 2 | 0.5000000000000000000000000000000000000000
13 | Infinity | Infinity | 3 | NaN
14 | Infinity | Infinity | 3 | NaN
15 | Infinity | Infinity | 2 | NaN
16 | 4.00000000000000000000 | 2.00000000000000000000 | 2 | 2.0000000000000000000000000000000000000000
17 | 3.50000000000000000000 | 1.75000000000000000000 | 2 | 1.1250000000000000000000000000000000000000
18 | 6.75000000000000000000 | 2.25000000000000000000 | 3 | 1.3125000000000000000000000000000000000000
19 | 8.0000000000000000 | 2.6666666666666667 | 3 | 0.27083333333333333333333333333333
20 | 5.5000000000000000 | 2.7500000000000000 | 2 | 0.50000000000000000000000000000000
21 | 2.50000000000000000000 | 1.25000000000000000000 | 2 | 2.0000000000000000000000000000000000000000
22 | 3.75000000000000000000 | 1.87500000000000000000 | 2 | 5.2812500000000000000000000000000000000000
23 | 6.25000000000000000000 | 2.08333333333333333333 | 3 | 2.7708333333333333333333333333333333333333
24 | 7.5000000000000000 | 2.5000000000000000 | 3 | 1.00000000000000000000000000000000
(SELECT 24)

select id, sum(n) over w, stddev_pop(i) over w, variance(i) over w, var_pop(n) over w
from t where id > 13 window w as (order by id rows between 4 preceding and 2 preceding) order by id;
----
id | sum | stddev_pop | variance | var_pop
14 | ∅ | ∅ | ∅ | ∅
15 | ∅ | ∅ | ∅ | ∅
16 | 3.0000000000000000 | ∅ | ∅ | 0
17 | 3.0000000000000000 | 0 | ∅ | 0
18 | 4.00000000000000000000 | 2.0000000000000000 | 8.0000000000000000 | 1.0000000000000000000000000000000000000000
19 | 3.50000000000000000000 | 2.8674417556808756 | 12.3333333333333333 | 0.5625000000000000000000000000000000000000
20 | 6.75000000000000000000 | 2.8674417556808756 | 12.3333333333333333 | 0.8750000000000000000000000000000000000000
21 | 8.0000000000000000 | 3.2659863237109041 | 16.0000000000000000 | 0.18055555555555555555555555555556
22 | 5.5000000000000000 | 2.8674417556808756 | 12.3333333333333333 | 0.25000000000000000000000000000000
23 | 2.50000000000000000000 | 3.5000000000000000 | 24.5000000000000000 | 1.0000000000000000000000000000000000000000
24 | 3.75000000000000000000 | 1.5000000000000000 | 4.5000000000000000 | 2.6406250000000000000000000000000000000000
(SELECT 11)

select id, sum(f) over w, avg(f) over w, min(f) over w, max(f) over w, stddev(f) over w
from t window w as (order by id rows between 2 preceding and 2 following) order by id;
----
id | sum | avg | min | max | stddev
1 | 0.75 | 0.25 | 0.125 | 0.375 | 0.125
2 | 1.25 | 0.3125 | 0.125 | 0.5 | 0.1613743060919757
3 | 1.875 | 0.375 | 0.125 | 0.625 | 0.19764235376052372
4 | 1.75 | 0.4375 | 0.25 | 0.625 | 0.1613743060919757
5 | 2.375 | 0.59375 | 0.375 | 0.875 | 0.21347814095749162
6 | 3 | 0.75 | 0.5 | 1 | 0.22821773229381923
7 | 3.625 | 0.90625 | 0.625 | 1.125 | 0.21347814095749162
8 | Infinity | Infinity | 0.875 | Infinity | NaN
9 | Infinity | Infinity | 0.875 | Infinity | NaN
10 | Infinity | Infinity | 1 | Infinity | NaN
11 | Infinity | Infinity | 1.125 | Infinity | NaN
12 | Infinity | Infinity | 1.375 | Infinity | NaN
13 | 6.625 | 1.65625 | 1.375 | 1.875 | 0.21347814095749162
14 | 7.25 | 1.8125 | 1.625 | 2 | 0.1613743060919757
15 | 9.375 | 1.875 | 1.625 | 2.125 | 0.19764235376052372
16 | 7.75 | 1.9375 | 1.75 | 2.125 | 0.1613743060919757
17 | 8.375 | 2.09375 | 1.875 | 2.375 | 0.21347814095749162
18 | 9 | 2.25 | 2 | 2.5 | 0.22821773229381923
19 | 9.625 | 2.40625 | 2.125 | 2.625 | 0.21347814095749162
20 | 10.25 | 2.5625 | 2.375 | 2.75 | 0.1613743060919757
21 | 13.125 | 2.625 | 2.375 | 2.875 | 0.19764235376052372
22 | 10.75 | 2.6875 | 2.5 | 2.875 | 0.1613743060919757
23 | 8.25 | 2.75 | 2.625 | 2.875 | 0.125
24 | 5.625 | 2.8125 | 2.75 | 2.875 | 0.08838834764831845
(SELECT 24)

select id, bool_and(b) over w, bool_or(b) over w, every(b) over w, bit_and(i) over w, bit_or(i) over w
from t window w as (order by id rows between 2 preceding and current row) order by id;
----
id | bool_and | bool_or | every | bit_and | bit_or
1 | f | f | f | -1 | -1
2 | f | f | f | 3 | -1
3 | f | t | f | 0 | -1
4 | f | t | f | 0 | -1
5 | f | t | f | 0 | -4
6 | f | t | f | 0 | -3
7 | f | t | f | 4 | -3
8 | f | t | f | 5 | -3
9 | f | t | f | 4 | -1
10 | f | t | f | 0 | -1
11 | f | t | f | 2 | -1
12 | f | f | f | 2 | -1
13 | f | f | f | 3 | -1
14 | f | f | f | 3 | -1
15 | f | t | f | 0 | 3
16 | f | t | f | 0 | 4
17 | f | t | f | 0 | -3
18 | f | t | f | 0 | -3
19 | f | t | f | 1 | -3
20 | f | t | f | 0 | -1
21 | f | t | f | 4 | -1
22 | f | t | f | -6 | -1
23 | f | t | f | -5 | -1
24 | f | f | f | 3 | -1
(SELECT 24)

select id, sum(v) over w, avg(v) over w, min(v) over w, max(n) over w, min(s) over w
from t window w as (order by id rows between 3 preceding and 1 preceding) order by id;
----
id | sum | avg | min | max | min
1 | ∅ | ∅ | ∅ | ∅ | ∅
2 | ∅ | ∅ | ∅ | 3.2500000000000000 | b
3 | 2 mons -2 days +00:00:01 | 2 mons -2 days +00:00:01 | 2 mons -2 days +00:00:01 | 3.2500000000000000 | b
4 | 2 mons -5 days +00:00:02.5 | 1 mon -2 days -11:59:58.75 | -3 days +00:00:01.5 | 3.2500000000000000 | b
5 | 3 mons -9 days +00:00:04.5 | 1 mon -3 days +00:00:01.5 | -3 days +00:00:01.5 | 2.2500000000000000 | c
6 | 3 mons -12 days +00:00:06 | 1 mon -4 days +00:00:02 | -3 days +00:00:01.5 | 1.2500000000000000 | a
7 | 3 mons -9 days +00:00:04.5 | 1 mon 11 days -11:59:57.75 | 1 mon -4 days +00:00:02 | 2.5000000000000000 | a
8 | 3 mons -12 days +00:00:06 | 1 mon 9 days 00:00:03 | 1 mon -7 days +00:00:03.5 | 2.5000000000000000 | a
9 | 3 mons -15 days +00:00:07.5 | 1 mon 8 days -11:59:56.25 | 1 mon -7 days +00:00:03.5 | 2.5000000000000000 | b
10 | 3 mons -24 days +00:00:12 | 1 mon -8 days +00:00:04 | -9 days +00:00:04.5 | NaN | c
11 | 3 mons -27 days +00:00:13.5 | 1 mon -9 days +00:00:04.5 | -9 days +00:00:04.5 | NaN | a
12 | 1 mon -19 days +00:00:09.5 | 6 days -11:59:55.25 | -9 days +00:00:04.5 | NaN | a
13 | 1 mon -22 days +00:00:11 | 4 days 00:00:05.5 | -12 days +00:00:06 | 1.7500000000000000 | a
14 | 1 mon -25 days +00:00:12.5 | 3 days -11:59:53.75 | -12 days +00:00:06 | Infinity | b
15 | 3 mons -39 days +00:00:19.5 | 1 mon -13 days +00:00:06.5 | -12 days +00:00:06 | Infinity | c
16 | 3 mons -42 days +00:00:21 | 1 mon -14 days +00:00:07 | -15 days +00:00:07.5 | Infinity | a
17 | 2 mons -29 days +00:00:14.5 | 1 mon -14 days -11:59:52.75 | -15 days +00:00:07.5 | 3.0000000000000000 | a
18 | 2 mons -32 days +00:00:16 | 1 mon -16 days +00:00:08 | -15 days +00:00:07.5 | 2.5000000 | a
19 | 2 mons -35 days +00:00:17.5 | 1 mon -17 days -11:59:51.25 | -18 days +00:00:09 | 3.2500000000000000 | b
20 | 3 mons -54 days +00:00:27 | 1 mon -18 days +00:00:09 | -18 days +00:00:09 | 3.2500000000000000 | c
21 | 3 mons -57 days +00:00:28.5 | 1 mon -19 days +00:00:09.5 | -18 days +00:00:09 | 3.2500000000000000 | a
22 | 3 mons -39 days +00:00:19.5 | 1 mon -4 days -11:59:50.25 | 1 mon -19 days +00:00:09.5 | 2.2500000000000000 | a
23 | 3 mons -42 days +00:00:21 | 1 mon -6 days +00:00:10.5 | 1 mon -22 days +00:00:11 | 3.5000000000000000 | a
24 | 3 mons -45 days +00:00:22.5 | 1 mon -7 days -11:59:48.75 | 1 mon -22 days +00:00:11 | 3.5000000000000000 | b
(SELECT 24)

-- To the end of the partition, and from its peers.
select id, sum(i) over w, count(n) over w, max(i) over w, min(n) over w, string_agg(s, '') over w
from t window w as (order by id rows between current row and unbounded following) order by id;
----
id | sum | count | max | min | string_agg
1 | 3 | 20 | 5 | 0.25000000000000000000 | bcdeabcdeabcdeabcdeabcde
2 | 4 | 19 | 5 | 0.25000000000000000000 | cdeabcdeabcdeabcdeabcde
3 | 1 | 18 | 5 | 0.25000000000000000000 | deabcdeabcdeabcdeabcde
4 | 5 | 17 | 5 | 0.25000000000000000000 | eabcdeabcdeabcdeabcde
5 | 5 | 16 | 5 | 0.25000000000000000000 | abcdeabcdeabcdeabcde
6 | 1 | 16 | 5 | 0.25000000000000000000 | bcdeabcdeabcdeabcde
7 | 4 | 15 | 5 | 0.25000000000000000000 | cdeabcdeabcdeabcde
8 | 4 | 14 | 5 | 0.25000000000000000000 | deabcdeabcdeabcde
9 | -1 | 13 | 5 | 0.25000000000000000000 | eabcdeabcdeabcde
10 | 1 | 12 | 5 | 0.25000000000000000000 | abcdeabcdeabcde
11 | -1 | 12 | 5 | 0.25000000000000000000 | bcdeabcdeabcde
12 | 4 | 11 | 5 | 0.25000000000000000000 | cdeabcdeabcde
13 | 5 | 10 | 5 | 0.25000000000000000000 | deabcdeabcde
14 | 2 | 9 | 5 | 0.25000000000000000000 | eabcdeabcde
15 | 2 | 8 | 5 | 0.25000000000000000000 | abcdeabcde
16 | 2 | 8 | 5 | 0.25000000000000000000 | bcdeabcde
17 | -2 | 7 | 5 | 0.25000000000000000000 | cdeabcde
18 | 1 | 6 | 5 | 0.25000000000000000000 | deabcde
19 | 0 | 5 | 5 | 0.25000000000000000000 | eabcde
20 | -5 | 4 | 3 | 0.25000000000000000000 | abcde
21 | -3 | 4 | 3 | 0.25000000000000000000 | bcde
22 | -3 | 3 | 3 | 1.5000000000000000 | cde
23 | 2 | 2 | 3 | 1.5000000000000000 | de
24 | 3 | 1 | 3 | 1.5000000000000000 | e
(SELECT 24)

select id, sum(i) over w, count(*) over w, array_agg(id) over w
from t window w as (partition by s order by i range between current row and unbounded following) order by id;
----
id | sum | count | array_agg
1 | 3 | 3 | {1,16,21}
2 | 3 | 2 | {2,7}
3 | 4 | 5 | {3,23,18,13,8}
4 | 8 | 4 | {4,24,19,14}
5 | 4 | 1 | {5}
6 | 0 | 4 | {6,1,16,21}
7 | ∅ | 1 | {7}
8 | 5 | 1 | {8}
9 | 6 | 5 | {9,4,24,19,14}
10 | 6 | 2 | {10,5}
11 | -5 | 5 | {11,6,1,16,21}
12 | 2 | 3 | {12,2,7}
13 | 8 | 2 | {13,8}
14 | ∅ | 1 | {14}
15 | 6 | 3 | {15,10,5}
16 | 4 | 2 | {16,21}
17 | -1 | 4 | {17,12,2,7}
18 | 9 | 3 | {18,13,8}
19 | 5 | 2 | {19,14}
20 | 4 | 4 | {20,15,10,5}
21 | ∅ | 1 | {21}
22 | -6 | 5 | {22,17,12,2,7}
23 | 8 | 4 | {23,18,13,8}
24 | 8 | 3 | {24,19,14}
(SELECT 24)

-- Frames that skip, are empty, or leave all rows at once.
select id, sum(i) over w, count(*) over w, max(s) over w
from t window w as (order by id rows between 5 following and 7 following) order by id;
----
id | sum | count | max
1 | 2 | 3 | d
2 | 3 | 3 | e
3 | 5 | 3 | e
4 | -5 | 3 | e
5 | -4 | 3 | c
6 | -3 | 3 | d
7 | 2 | 3 | e
8 | 3 | 3 | e
9 | 4 | 3 | e
10 | 1 | 3 | c
11 | 2 | 3 | d
12 | 3 | 3 | e
13 | 4 | 3 | e
14 | 3 | 3 | e
15 | -7 | 3 | c
16 | -6 | 3 | d
17 | -3 | 3 | e
18 | 2 | 2 | e
19 | 3 | 1 | e
20 | ∅ | 0 | ∅
21 | ∅ | 0 | ∅
22 | ∅ | 0 | ∅
23 | ∅ | 0 | ∅
24 | ∅ | 0 | ∅
(SELECT 24)

select id, sum(i) over w, count(*) over w, bool_or(b) over w
from t window w as (order by id rows between 2 following and 1 following) order by id;
----
id | sum | count | bool_or
1 | ∅ | 0 | ∅
2 | ∅ | 0 | ∅
3 | ∅ | 0 | ∅
4 | ∅ | 0 | ∅
5 | ∅ | 0 | ∅
6 | ∅ | 0 | ∅
7 | ∅ | 0 | ∅
8 | ∅ | 0 | ∅
9 | ∅ | 0 | ∅
10 | ∅ | 0 | ∅
11 | ∅ | 0 | ∅
12 | ∅ | 0 | ∅
13 | ∅ | 0 | ∅
14 | ∅ | 0 | ∅
15 | ∅ | 0 | ∅
16 | ∅ | 0 | ∅
17 | ∅ | 0 | ∅
18 | ∅ | 0 | ∅
19 | ∅ | 0 | ∅
20 | ∅ | 0 | ∅
21 | ∅ | 0 | ∅
22 | ∅ | 0 | ∅
23 | ∅ | 0 | ∅
24 | ∅ | 0 | ∅
(SELECT 24)

select id, sum(i) over w, avg(n) over w
from t window w as (order by i, id rows between 1 preceding and unbounded following) order by i, id;
----
id | sum | avg
11 | 3 | NaN
22 | 3 | NaN
3 | 8 | NaN
6 | 13 | NaN
17 | 17 | NaN
9 | 20 | NaN
20 | 23 | NaN
1 | 25 | Infinity
12 | 27 | Infinity
23 | 28 | Infinity
4 | 29 | Infinity
15 | 30 | Infinity
18 | 30 | Infinity
10 | 30 | Infinity
2 | 29 | Infinity
13 | 27 | Infinity
24 | 24 | Infinity
5 | 21 | 1.42857142857142857143
16 | 18 | 1.41666666666666666667
8 | 14 | 1.41666666666666666667
19 | 10 | 1.50000000000000000000
7 | 5 | 1.75000000000000000000
14 | ∅ | 1.58333333333333333333
21 | ∅ | 1.62500000000000000000
(SELECT 24)

-- A filter keeps rows out, and their arguments are not computed.
select id, sum(60 / i) filter (where i <> 0) over w, count(*) filter (where b) over w
from t window w as (order by id rows between 3 preceding and current row) order by id;
----
id | sum | count
1 | -60 | 0
2 | -40 | 0
3 | -55 | 1
4 | -55 | 1
5 | 20 | 1
6 | -20 | 2
7 | -5 | 1
8 | 7 | 1
9 | -38 | 2
10 | 12 | 1
11 | 0 | 1
12 | -72 | 1
13 | -22 | 0
14 | -52 | 0
15 | -40 | 1
16 | 35 | 1
17 | -5 | 1
18 | 55 | 2
19 | 67 | 1
20 | 22 | 1
21 | 42 | 2
22 | -30 | 1
23 | -102 | 1
24 | -52 | 1
(SELECT 24)

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

