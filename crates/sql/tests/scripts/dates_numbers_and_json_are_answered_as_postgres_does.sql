-- postgres: same
select extract(epoch from timestamp '294270-01-01'), extract(epoch from timestamptz '294270-01-01 UTC');
----
extract | extract
9224097091200.000000 | 9224097091200.000000
(SELECT 1)

set timezone = 'UTC';
----
(SET)

select make_timestamptz(2020, 1, 1, 0, 0, 0, '+2'), make_timestamptz(2020, 1, 1, 0, 0, 0, '-03:30'),
  make_timestamptz(2020, 1, 1, 0, 0, 0, 'UTC+2');
----
make_timestamptz | make_timestamptz | make_timestamptz
2019-12-31 22:00:00+00 | 2020-01-01 03:30:00+00 | 2020-01-01 02:00:00+00
(SELECT 1)

set timezone = '04:30';
----
(SET)

select timestamptz '2020-01-01 00:00:00+00';
----
timestamptz
2019-12-31 19:30:00-04:30
(SELECT 1)

reset timezone;
----
(RESET)

select interval '1 2:03:04' day to hour, interval '1 2:03:04' day, interval '1 2:03' day to minute,
  interval '1 year 3 days' month, interval '1.5' hour, interval '14' month, interval '1-2' year,
  interval '-1 2:03:04' day to hour, interval '3.25' second(1), interval '1 2:03:04.5678' day to second(2);
----
interval | interval | interval | interval | interval | interval | interval | interval | interval | interval
1 day 02:00:00 | 1 day | 1 day 02:03:00 | 1 year | 01:00:00 | 1 year 2 mons | 1 year | -1 days +02:00:00 | 00:00:03.3 | 1 day 02:03:04.57
(SELECT 1)

select ('[1,"2"]'::jsonb)['1'], ('[1,"2"]'::jsonb)[-1], ('{"a":{"b":1}}'::jsonb)['a']['b'], ('{"a":1}'::jsonb)['x'];
----
jsonb | jsonb | jsonb | jsonb
"2" | "2" | 1 | ∅
(SELECT 1)

select '[1,2]'::json #> '{}', '{"a": [1, 2]}'::json #> '{a}', '[1, 2]'::json #>> '{}', json_extract_path('{"a":"b"}', 'a');
----
?column? | ?column? | ?column? | json_extract_path
[1,2] | [1, 2] | [1, 2] | "b"
(SELECT 1)

select power('-inf'::numeric, 4.5);
----
ERROR 2201F: a negative number raised to a non-integer power yields a complex result

select power('-inf'::numeric, 3), power('-inf'::numeric, 'inf'::numeric), power('-inf'::numeric, -3);
----
power | power | power
-Infinity | Infinity | 0
(SELECT 1)

select round(5.5e131071, -131072);
----
ERROR 22003: value overflows numeric format

select round(4.5e131071, -131072);
----
round
0
(SELECT 1)

select '[' || to_char(-1.5, '9.9MI') || to_char(1.5, '9.9MI') || to_char(-1.5, 'MI9.9') || to_char(5, 'MI9') || to_char(5, 'PL9')
  || to_char(-5, 'PL9') || to_char(5, '9PL') || to_char(-5, '9PL') || ']';
----
?column?
[1.5-1.5 -1.5 5+ 5 -5 5+-5 ]
(SELECT 1)

select '[' || to_char(-5, 'SG9') || to_char(5, '9SG') || to_char(12, '9SG9') || to_char(-12, '9MI9') || to_char(485, 'L999')
  || to_char(485, 'FML999') || to_char(-5, 'FM9MI') || to_char(5, 'FM9MI') || to_char(5, 'FMPL9') || ']';
----
?column?
[-55+1+21-2  485 4855-5+5]
(SELECT 1)

select '[' || to_char(-1, '9th') || to_char(2, '9th') || to_char(485, 'FM999TH') || to_char(1.5, '9.9th') || to_char(-5, 'S999')
  || to_char(5, '999S') || to_char(-485, '999PR') || ']';
----
?column?
[-1 2nd485TH 1.5  -5  5+<485>]
(SELECT 1)

select substr('abc', 1, 2), 1::int2::int8, upper('x')::text, true::int, date '2020-01-01'::text, (select 1)::int,
  case when true then 1 end::int8, a::int8::int2 from (values (1)) v(a);
----
substr | int8 | upper | int4 | text | ?column? | int8 | a
ab | 1 | X | 1 | 2020-01-01 | 1 | 1 | 1
(SELECT 1)

begin;
----
(BEGIN)

savepoint a;
----
(SAVEPOINT)

set transaction read only;
----
(SET)

rollback to a;
----
(ROLLBACK)

show transaction_read_only;
----
transaction_read_only
off
(SHOW)

commit;
----
(COMMIT)

select interval '1 day' * (-2147483648) as d, interval '1 month' * (-2147483648) as m;
----
d | m
-2147483648 days | -178956970 years -8 mons
(SELECT 1)

select interval '1 day' * 2147483648;
----
ERROR 22008: interval out of range

select interval '1 microsecond' * (-9223372036854775808) as t;
----
t
-2562047788:00:54.775808
(SELECT 1)

select interval '1 microsecond' * 9223372036854775807;
----
ERROR 22008: interval out of range

