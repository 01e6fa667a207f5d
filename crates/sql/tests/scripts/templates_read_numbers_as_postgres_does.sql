-- postgres: same
select to_number('66,0','9') a, to_number('1234','999') b, to_number('05870','9S') c, to_number('12,454.8-', '99G999D9S') d;
----
a | b | c | d
6 | 123 | 0 | -12454.8
(SELECT 1)

select to_number('-34,338,492', '99G999G999') a, to_number('-34,338,492.654,878', '99G999G999D999G999') b, to_number('<564646.654564>', '999999.999999PR') c;
----
a | b | c
-34338492 | -34338492.654878 | -564646.654564
(SELECT 1)

select to_number('0.00001-', '9.999999S') a, to_number('5.01-', 'FM9.999999S') b, to_number('5.01-', 'FM9.999999MI') c, to_number('5 4 4 4 4 8 . 7 8', '9 9 9 9 9 9 . 9 9') d;
----
a | b | c | d
-0.00001 | -5.01 | -5.01 | 544448.78
(SELECT 1)

select to_number('.01', 'FM9.99') a, to_number('.0', '99999999.99999999') b, to_number('0', '99.99') c, to_number('.-01', 'S99.99') d, to_number('.01-', '99.99S') e, to_number(' . 0 1-', ' 9 9 . 9 9 S') f;
----
a | b | c | d | e | f
0.01 | 0.0 | 0 | -0.01 | -0.01 | -0.01
(SELECT 1)

select to_number('34,50','999,99') a, to_number('123,000','999G') b, to_number('123456','999G999') c, to_number('$1234.56','L9,999.99') d, to_number('$1,234.56','L99,999.99') e, to_number('1234.56','L99,999.99') f, to_number('42nd', '99th') g;
----
a | b | c | d | e | f | g
3450 | 123 | 123456 | 1234.56 | 1234.56 | 1234.56 | 42
(SELECT 1)

select to_number('12345', '99V9') a, to_number('-12.5', 'SG99.9') b, to_number('12+', '99PL') c, to_number('12-', '99') d, to_number('- 12', '999') e, to_number('1.2.3', '9.9.9') f;
----
ERROR 42601: multiple decimal points

select to_number('abc', '999');
----
ERROR 22P02: invalid input syntax for type numeric: " "

select to_number('', '999');
----
ERROR 22P02: invalid input syntax for type numeric: " "

select to_number('1', '') is null;
----
?column?
t
(SELECT 1)

select to_number('1e3', '9EEEE');
----
ERROR 0A000: "EEEE" not supported for input

select to_number('12x34', '99"x"99') a, to_number('x12', '"x"99') b, to_number('12.99', '99.9') c, to_number('12.95', '99D0') d, to_number('7', '0000') e, to_number('+7', '9') f, to_number('+7', '99') g;
----
a | b | c | d | e | f | g
1234 | 12 | 12.9 | 12.9 | 7 | 7 | 7
(SELECT 1)

select interval '1:02' minute to second a, interval '-1:02' minute to second b, interval '1:02:03' minute to second c, interval '3' minute to second d, interval '1:02.5' minute to second e;
----
a | b | c | d | e
00:01:02 | -00:01:02 | 01:02:03 | 00:00:03 | 00:01:02.5
(SELECT 1)

select interval '1:02' hour to minute a, interval '1 1:02' day to minute b;
----
a | b
01:02:00 | 1 day 01:02:00
(SELECT 1)

select to_timestamp('31','DDD');
----
ERROR 22007: cannot calculate day of year without year information

select to_date('05 Feb','MM Mon');
----
ERROR 22007: conflicting values for "Mon" field in formatting string
DETAIL: This value contradicts a previous setting for the same field type.

select to_timestamp('13 12 99','DDD MM YY')::timestamp;
----
to_timestamp
1999-12-13 00:00:00
(SELECT 1)

select to_date('2024 60', 'YYYY DDD') a, to_date('2023 60', 'YYYY DDD') b, to_date('02 02', 'MM MM') c;
----
a | b | c
2024-02-29 | 2023-03-01 | 0001-02-01 BC
(SELECT 1)

select to_date('2023 366', 'YYYY DDD');
----
ERROR 22008: date/time field value out of range: "2023 366"

select to_date('2023 2024', 'YYYY YYYY');
----
ERROR 22007: conflicting values for "YYYY" field in formatting string
DETAIL: This value contradicts a previous setting for the same field type.

select to_number('12345', '99V9');
----
to_number
12.3000000000000000
(SELECT 1)

select to_number('12345', '999V99');
----
to_number
123.4500000000000000
(SELECT 1)

select to_number('-12.5', 'SG99.9');
----
to_number
-12.5
(SELECT 1)

select to_number('-12.5', 'MI99.9');
----
to_number
-12.5
(SELECT 1)

select to_number('12.5-', '99.9MI');
----
to_number
-12.5
(SELECT 1)

select to_number('12+', '99PL');
----
to_number
12
(SELECT 1)

select to_number('12-', '99');
----
to_number
12
(SELECT 1)

select to_number('12-', '999');
----
to_number
12
(SELECT 1)

select to_number('- 12', '999');
----
to_number
-12
(SELECT 1)

select to_number('- 12', '9999');
----
to_number
-12
(SELECT 1)

select to_number('  12', '9999');
----
to_number
12
(SELECT 1)

select to_number('  12', '99');
----
to_number
1
(SELECT 1)

select to_number('1,2', '9,9');
----
to_number
12
(SELECT 1)

select to_number('12', '9,9');
----
to_number
12
(SELECT 1)

select to_number(',12', '9,99');
----
to_number
12
(SELECT 1)

select to_number(',12', 'FM9,99');
----
to_number
12
(SELECT 1)

select to_number(',12', 'FM,99');
----
to_number
1
(SELECT 1)

select to_number('1-2', '999');
----
to_number
12
(SELECT 1)

select to_number('1-2', '9S9');
----
to_number
-12
(SELECT 1)

select to_number('1-', '9S');
----
to_number
-1
(SELECT 1)

select to_number('<12>', '99PR');
----
to_number
-12
(SELECT 1)

select to_number('<12>', '999PR');
----
to_number
-12
(SELECT 1)

select to_number('12', '99PRS');
----
ERROR 42601: cannot use "S" and "PL"/"MI"/"SG"/"PR" together

select to_number('12', 'S99S');
----
ERROR 42601: cannot use "S" twice

select to_number('12', 'SMI99');
----
ERROR 42601: cannot use "S" and "MI" together

select to_number('12', '9V9.9');
----
ERROR 42601: cannot use "V" and decimal point together

select to_number('12', 'PR99');
----
ERROR 42601: "9" must be ahead of "PR"

select to_number('+12', 'S99');
----
to_number
12
(SELECT 1)

select to_number('+-12', 'S999');
----
to_number
12
(SELECT 1)

select to_number('12abc', '99');
----
to_number
12
(SELECT 1)

select to_number('a1b2', '9999');
----
to_number
12
(SELECT 1)

select to_number('1 2', '99');
----
to_number
12
(SELECT 1)

select to_number('1  2', '999');
----
to_number
12
(SELECT 1)

select to_number('1.', '9.9');
----
to_number
1
(SELECT 1)

select to_number('-.5', '9.9');
----
to_number
-0.5
(SELECT 1)

select to_number('12th', '99TH');
----
to_number
12
(SELECT 1)

select to_number('12', 'B99');
----
to_number
12
(SELECT 1)

select to_number('٣', '9');
----
ERROR 22P02: invalid input syntax for type numeric: " "

select to_number('NaN', '999');
----
ERROR 22P02: invalid input syntax for type numeric: " "

select to_number('12.345', '99.99');
----
to_number
12.34
(SELECT 1)

select to_number('1234', '9"a"999');
----
to_number
134
(SELECT 1)

select to_number('1234', '9a999');
----
to_number
134
(SELECT 1)

select to_number('1234', '9 999');
----
to_number
134
(SELECT 1)

select to_number('1x234', '9 999');
----
to_number
1234
(SELECT 1)

select to_number('1x234', '9"xy"999');
----
to_number
134
(SELECT 1)

select to_number('1€2', '9€9');
----
to_number
12
(SELECT 1)

select to_number('1€2', '9"€"9');
----
to_number
12
(SELECT 1)

select to_number('1€2', '9L9');
----
to_number
12
(SELECT 1)

select to_number('1xx2', '9TH9');
----
to_number
12
(SELECT 1)

select to_number('1xx2', '9th9');
----
to_number
12
(SELECT 1)

select to_number('1xx2', '9Th9');
----
to_number
12
(SELECT 1)

select to_number('12-', '999MI');
----
to_number
-12
(SELECT 1)

select to_number('12-', '9999MI');
----
to_number
-12
(SELECT 1)

select to_number('12+', '999MI');
----
to_number
12
(SELECT 1)

select to_number('12-', '999PL');
----
to_number
-12
(SELECT 1)

select to_number('12+', '999PL');
----
to_number
12
(SELECT 1)

select to_number('12-', '999SG');
----
to_number
-12
(SELECT 1)

select to_number('12-', '999S');
----
to_number
-12
(SELECT 1)

select to_number('12-', '9999S');
----
to_number
-12
(SELECT 1)

select to_number('1-2', '999MI');
----
to_number
-12
(SELECT 1)

select to_number('1-2', '999PL');
----
to_number
-12
(SELECT 1)

select to_number('12-', '9990');
----
to_number
12
(SELECT 1)

select to_number('5.01-', '9.999999');
----
to_number
5.01
(SELECT 1)

select to_number('5.01-', 'FM9.999999');
----
to_number
5.01
(SELECT 1)

select to_number('12-', 'MI9999');
----
to_number
-12
(SELECT 1)

select to_number('12-', '999PR');
----
to_number
12
(SELECT 1)

