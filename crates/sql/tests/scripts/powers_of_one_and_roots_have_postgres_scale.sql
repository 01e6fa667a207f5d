-- postgres: same
select 1::numeric ^ 0.123456789;
----
?column?
1.0000000000000000
(SELECT 1)

select 1.00000000000000000000 ^ 2;
----
?column?
1.00000000000000000000
(SELECT 1)

select 1.00000000000000000000 ^ 0.1234567890123456789012;
----
?column?
1.0000000000000000000000
(SELECT 1)

select 1 ^ (-3.000000000000000000000000);
----
?column?
1.0000000000000000
(SELECT 1)

select 1::numeric ^ 0.00000000000000000000000000005;
----
?column?
1.00000000000000000000000000000
(SELECT 1)

select 1.00 ^ 12345678901234567890;
----
?column?
1.0000000000000000
(SELECT 1)

select 2::numeric ^ 0;
----
?column?
1.0000000000000000
(SELECT 1)

select 2.000000000000000000000000000 ^ 0;
----
?column?
1.000000000000000000000000000
(SELECT 1)

select 2 ^ 0.00000000000000000000000;
----
?column?
1.0000000000000000
(SELECT 1)

select 'NaN'::numeric ^ 0;
----
?column?
1
(SELECT 1)

select 'NaN'::numeric ^ 1;
----
?column?
NaN
(SELECT 1)

select 'Infinity'::numeric ^ 0;
----
?column?
1
(SELECT 1)

select 1.00 ^ 'NaN'::numeric;
----
?column?
1
(SELECT 1)

select 1::numeric ^ 'Infinity';
----
?column?
1
(SELECT 1)

select (-1)::numeric ^ 'Infinity';
----
?column?
1
(SELECT 1)

select 0.0000000000000000000 ^ 3;
----
?column?
0.0000000000000000000
(SELECT 1)

select 0.0000000000000000000 ^ 2.5;
----
?column?
0.0000000000000000
(SELECT 1)

select 0 ^ 0.3;
----
?column?
0.0000000000000000
(SELECT 1)

select sqrt(2::numeric), sqrt(10::numeric ^ 40), sqrt(123456789012345678901234567890.123456789), sqrt(0.0000000000000000000000000001);
----
sqrt | sqrt | sqrt | sqrt
1.414213562373095 | 100000000000000000000.0000000000000000 | 351364182882014.425311122 | 0.00000000000001000000000000000
(SELECT 1)

select md5(sqrt((10::numeric ^ 3000) + 7)::text), md5(sqrt(2 * 10::numeric ^ 9001)::text), length(sqrt(3 * 10::numeric ^ 20000)::text);
----
md5 | md5 | length
9027c0eb7759e3b64ef83df279243b36 | 2e126cc65e9456a06c206ea68c8af46f | 10018
(SELECT 1)

select md5(sqrt((10::numeric ^ 5000 - 1) * (10::numeric ^ 5000 - 1))::text), sqrt((10::numeric ^ 5000 - 1) * (10::numeric ^ 5000 - 1)) = 10::numeric ^ 5000 - 1;
----
md5 | ?column?
3a25e255d2ff132098ad6f628bceeeb9 | t
(SELECT 1)

set statement_timeout = '10s';
----
(SET)

select stddev(x * 10::numeric ^ 3000)::text like '1%' from generate_series(1, 3) as x;
----
?column?
t
(SELECT 1)

