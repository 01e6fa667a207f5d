-- postgres: same
select a, b, age(a, b), age(b, a) from (values
  (timestamp '2020-01-31', timestamp '2020-02-29'), ('2020-03-31', '2020-02-29'), ('2020-03-01', '2020-01-31'),
  ('2021-03-01', '2021-01-31'), ('2020-05-15 10:00', '2020-06-14 11:30'), ('2019-12-31', '2020-03-30 23:59:59.5'),
  ('2020-04-30', '2020-05-31'), ('2020-10-31', '2020-11-30 12:00'), ('2000-02-29', '2001-02-28'),
  ('2020-07-31 05:00', '2020-08-31 04:00')) v (a, b);
----
a | b | age | age
2020-01-31 00:00:00 | 2020-02-29 00:00:00 | -29 days | 29 days
2020-03-31 00:00:00 | 2020-02-29 00:00:00 | 1 mon 2 days | -1 mons -2 days
2020-03-01 00:00:00 | 2020-01-31 00:00:00 | 1 mon 1 day | -1 mons -1 days
2021-03-01 00:00:00 | 2021-01-31 00:00:00 | 1 mon 1 day | -1 mons -1 days
2020-05-15 10:00:00 | 2020-06-14 11:30:00 | -30 days -01:30:00 | 30 days 01:30:00
2019-12-31 00:00:00 | 2020-03-30 23:59:59.5 | -2 mons -30 days -23:59:59.5 | 2 mons 30 days 23:59:59.5
2020-04-30 00:00:00 | 2020-05-31 00:00:00 | -1 mons -1 days | 1 mon 1 day
2020-10-31 00:00:00 | 2020-11-30 12:00:00 | -30 days -12:00:00 | 30 days 12:00:00
2000-02-29 00:00:00 | 2001-02-28 00:00:00 | -11 mons -28 days | 11 mons 28 days
2020-07-31 05:00:00 | 2020-08-31 04:00:00 | -30 days -23:00:00 | 30 days 23:00:00
(SELECT 10)

select date_bin('15 min', timestamp 'infinity', timestamp '2001-01-01') as a, date_bin('15 min', timestamptz '-infinity', timestamptz '2001-01-01') as b;
----
a | b
infinity | -infinity
(SELECT 1)

select date_bin('1 month', timestamp '-infinity', timestamp '2001-01-01') as a, date_bin('0 min', timestamp 'infinity', timestamp 'infinity') as b;
----
a | b
-infinity | infinity
(SELECT 1)

select date_bin('15 min', timestamp '2001-01-01', timestamp 'infinity');
----
ERROR 22008: origin out of range

select date_bin('0 min', timestamp '2001-01-01', timestamp '2001-01-01');
----
ERROR 22008: stride must be greater than zero

-- Hours and minutes are west of Greenwich, numbers of hours are east.
set timezone = '04:30';
----
(SET)

select '2020-01-01 00:00+00'::timestamptz;
----
timestamptz
2019-12-31 19:30:00-04:30
(SELECT 1)

set timezone = '-04:30';
----
(SET)

select '2020-01-01 00:00+00'::timestamptz;
----
timestamptz
2020-01-01 04:30:00+04:30
(SELECT 1)

set timezone = '4.5';
----
(SET)

select '2020-01-01 00:00+00'::timestamptz;
----
timestamptz
2020-01-01 04:30:00+04:30
(SELECT 1)

set timezone = '-3';
----
(SET)

select '2020-01-01 00:00+00'::timestamptz;
----
timestamptz
2019-12-31 21:00:00-03
(SELECT 1)

set time zone interval '04:30' hour to minute;
----
(SET)

select '2020-01-01 00:00+00'::timestamptz;
----
timestamptz
2020-01-01 04:30:00+04:30
(SELECT 1)

show timezone;
----
TimeZone
<+04:30>-04:30
(SHOW)

set time zone interval '-04:30';
----
(SET)

show timezone;
----
TimeZone
<-04:30>+04:30
(SHOW)

set time zone interval '4' hour;
----
(SET)

show timezone;
----
TimeZone
<+04>-04
(SHOW)

set time zone interval '1 mon';
----
ERROR 22023: invalid value for parameter "TimeZone": "INTERVAL '1 mon'"
DETAIL: Cannot specify months in time zone interval.

set timezone = 'UTC';
----
(SET)

select make_timestamptz(2020, 1, 1, 0, 0, 0, '04:30');
----
ERROR 22023: invalid input syntax for type numeric time zone: "04:30"
HINT: Numeric time zones must have "-" or "+" as first character.

select make_timestamptz(2020, 1, 1, 0, 0, 0, '+04:30') as a, make_timestamptz(2020, 1, 1, 0, 0, 0, '-4') as b, make_timestamptz(2020, 1, 1, 0, 0, 0, 'UTC+3') as c;
----
a | b | c
2019-12-31 19:30:00+00 | 2020-01-01 04:00:00+00 | 2020-01-01 03:00:00+00
(SELECT 1)

