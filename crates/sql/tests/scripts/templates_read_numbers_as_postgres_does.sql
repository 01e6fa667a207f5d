-- postgres: same
select to_number('66,0','9') a, to_number('1234','999') b, to_number('05870','9S') c, to_number('12,454.8-', '99G999D9S') d;
----

select to_number('-34,338,492', '99G999G999') a, to_number('-34,338,492.654,878', '99G999G999D999G999') b, to_number('<564646.654564>', '999999.999999PR') c;
----

select to_number('0.00001-', '9.999999S') a, to_number('5.01-', 'FM9.999999S') b, to_number('5.01-', 'FM9.999999MI') c, to_number('5 4 4 4 4 8 . 7 8', '9 9 9 9 9 9 . 9 9') d;
----

select to_number('.01', 'FM9.99') a, to_number('.0', '99999999.99999999') b, to_number('0', '99.99') c, to_number('.-01', 'S99.99') d, to_number('.01-', '99.99S') e, to_number(' . 0 1-', ' 9 9 . 9 9 S') f;
----

select to_number('34,50','999,99') a, to_number('123,000','999G') b, to_number('123456','999G999') c, to_number('$1234.56','L9,999.99') d, to_number('$1,234.56','L99,999.99') e, to_number('1234.56','L99,999.99') f, to_number('42nd', '99th') g;
----

select to_number('12345', '99V9') a, to_number('-12.5', 'SG99.9') b, to_number('12+', '99PL') c, to_number('12-', '99') d, to_number('- 12', '999') e, to_number('1.2.3', '9.9.9') f;
----

select to_number('abc', '999');
----

select to_number('', '999');
----

select to_number('1', '') is null;
----

select to_number('1e3', '9EEEE');
----

select to_number('12x34', '99"x"99') a, to_number('x12', '"x"99') b, to_number('12.99', '99.9') c, to_number('12.95', '99D0') d, to_number('7', '0000') e, to_number('+7', '9') f, to_number('+7', '99') g;
----

select interval '1:02' minute to second a, interval '-1:02' minute to second b, interval '1:02:03' minute to second c, interval '3' minute to second d, interval '1:02.5' minute to second e;
----

select interval(2) '1.2345 sec' a, interval(0) '1.7 sec' b;
----

select interval '1:02' hour to minute a, interval '1 1:02' day to minute b;
----

select to_timestamp('31','DDD');
----

select to_date('05 Feb','MM Mon');
----

select to_timestamp('13 12 99','DDD MM YY')::timestamp;
----

select to_date('2024 60', 'YYYY DDD') a, to_date('2023 60', 'YYYY DDD') b, to_date('02 02', 'MM MM') c;
----

select to_date('2023 366', 'YYYY DDD');
----

select to_date('2023 2024', 'YYYY YYYY');
----

select to_number('12345', '99V9');
----

select to_number('12345', '999V99');
----

select to_number('-12.5', 'SG99.9');
----

select to_number('-12.5', 'MI99.9');
----

select to_number('12.5-', '99.9MI');
----

select to_number('12+', '99PL');
----

select to_number('12-', '99');
----

select to_number('12-', '999');
----

select to_number('- 12', '999');
----

select to_number('- 12', '9999');
----

select to_number('  12', '9999');
----

select to_number('  12', '99');
----

select to_number('1,2', '9,9');
----

select to_number('12', '9,9');
----

select to_number(',12', '9,99');
----

select to_number(',12', 'FM9,99');
----

select to_number(',12', 'FM,99');
----

select to_number('1-2', '999');
----

select to_number('1-2', '9S9');
----

select to_number('1-', '9S');
----

select to_number('<12>', '99PR');
----

select to_number('<12>', '999PR');
----

select to_number('12', '99PRS');
----

select to_number('12', 'S99S');
----

select to_number('12', 'SMI99');
----

select to_number('12', '9V9.9');
----

select to_number('12', 'PR99');
----

select to_number('+12', 'S99');
----

select to_number('+-12', 'S999');
----

select to_number('12abc', '99');
----

select to_number('a1b2', '9999');
----

select to_number('1 2', '99');
----

select to_number('1  2', '999');
----

select to_number('1€2', '999');
----

select to_number('1.', '9.9');
----

select to_number('-.5', '9.9');
----

select to_number('12th', '99TH');
----

select to_number('12', 'B99');
----

select to_number('٣', '9');
----

select to_number('NaN', '999');
----

select to_number('12.345', '99.99');
----

select to_number('1.5', '9V9');
----

select to_number('1234', '9"a"999');
----

select to_number('1234', '9a999');
----

select to_number('1234', '9 999');
----

select to_number('1x234', '9 999');
----

select to_number('1x234', '9"xy"999');
----

select to_number('1€2', '9€9');
----

select to_number('1€2', '9"€"9');
----

select to_number('1€2', '9L9');
----

select to_number('1xx2', '9TH9');
----

select to_number('1xx2', '9th9');
----

select to_number('1xx2', '9Th9');
----

