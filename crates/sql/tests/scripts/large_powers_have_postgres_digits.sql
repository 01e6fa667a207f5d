-- postgres: same
select length(x::text), md5(x::text) from (values (2::numeric ^ 400000), (12345.678::numeric ^ 12345), (1.5::numeric ^ 300000), (0.5::numeric ^ -400000), (repeat('9', 1000)::numeric ^ 130), ((-3)::numeric ^ 100001)) as t(x);
----
length | md5
120429 | 3257dc71b460d4c5cb4b7aa97ffb09c7
50527 | 3f5dcdc6966a4258a0ad49c90dd10f50
52845 | 014d883b3d26569e2e9e313d32e65b17
120429 | 3257dc71b460d4c5cb4b7aa97ffb09c7
130017 | 6134f2495808b13f3a75fb9cc3bddc7f
47731 | a9ee3e1075ecb002d32861ee616c22f0
(SELECT 6)

select 1.000001::numeric ^ 1000000, 0.999999::numeric ^ 1000000, 1.000001::numeric ^ 1000000.5, (-1.0000001)::numeric ^ 9999999;
----
?column? | ?column? | ?column? | ?column?
2.7182804693193769 | 0.3678792572316451 | 2.7182818284592718 | -2.7182814207168242
(SELECT 1)

select 2::numeric ^ 0.5, 10::numeric ^ -3, 10::numeric ^ 2.5, 0.1::numeric ^ 20, 1.1::numeric ^ 100, 3.7::numeric ^ -2.25, 99.99::numeric ^ 3;
----
?column? | ?column? | ?column? | ?column? | ?column? | ?column? | ?column?
1.4142135623730950 | 0.0010000000000000 | 316.22776601683793 | 0.0000000000000000 | 13780.6123398222701841 | 0.05266791437639255 | 999700.0299990000000000
(SELECT 1)

select length(x::text), md5(x::text) from (values (1.5::numeric ^ 6000.5), (7::numeric ^ 3000.25), (123456789::numeric ^ 300.125)) as t(x);
----
length | md5
1059 | 5073b35df19bd18ff211642b7d40ac9c
2539 | 42a5fa68092bbd8fb43a472c2fbe46ed
2433 | 903b161721daeeb873fbba80817ae406
(SELECT 3)

select 1.5::numeric ^ 300000.5;
----
ERROR 22003: value overflows numeric format

select 10::numeric ^ 131073;
----
ERROR 22003: value overflows numeric format

select 0.1::numeric ^ 5000, 0.5::numeric ^ 20000;
----
?column? | ?column?
0.0000000000000000 | 0.0000000000000000
(SELECT 1)

select exp(0::numeric), exp(1::numeric), exp(-1.5::numeric), exp(100.25::numeric), exp(-700::numeric);
----
exp | exp | exp | exp | exp
1.0000000000000000 | 2.7182818284590452 | 0.2231301601484298 | 34516107331259239871361985995265746750923963.19 | 0.00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000009859676543759771
(SELECT 1)

select length(exp(5000::numeric)::text), md5(exp(5000::numeric)::text), exp(-5999.9::numeric) = 0;
----
length | md5 | ?column?
2172 | 1d5133cba8bb68d8129fb66c7e63e13c | t
(SELECT 1)

select exp(6000::numeric);
----
ERROR 22003: value overflows numeric format

select ln(2::numeric), ln(10.5::numeric), ln(0.000001::numeric), ln(1.0000000001::numeric), ln(123456789012345678901234567890::numeric);
----
ln | ln | ln | ln | ln
0.6931471805599453 | 2.3513752571634777 | -13.815510557964274 | 0.00000000009999999999500000 | 66.985688719142977
(SELECT 1)

select ln(repeat('9', 100000)::numeric), ln(('0.' || repeat('0', 5000) || '1')::numeric) < -11512;
----
ln | ?column?
230258.50929940457 | t
(SELECT 1)

select log(1000::numeric), log(2::numeric, 1024::numeric), log(1.0000001::numeric, 1.0000002::numeric), log(3.5::numeric, 0.01::numeric);
----
log | log | log | log
3.0000000000000000 | 10.0000000000000000 | 1.9999999000000150 | -3.6760107871955497
(SELECT 1)

select sqrt(2::numeric), sqrt(0.0001::numeric), length(sqrt(repeat('9', 100000)::numeric)::text), md5(sqrt(repeat('7', 99999)::numeric)::text);
----
sqrt | sqrt | length | md5
1.414213562373095 | 0.01000000000000000 | 50001 | 1cfe0f4b2f9e0e7b8cea6cfd1f832432
(SELECT 1)

select length(factorial(5000)::text), md5(factorial(5000)::text);
----
length | md5
16326 | ef55f1756a66a6ed9a8a23e45c346534
(SELECT 1)

