-- postgres: same
select to_char('-1 day -2:03:04.005'::interval, 'YYYY YY MM DD DDD HH24 HH12 HH MI SS MS US SSSS FMDD'), to_char('-14 mons'::interval, 'YYYY YYY YY Y MM DD');
----
to_char | to_char
0000 00 00 -1 -01 -02 -02 -02 -03 -04 -05 -05000 -7384 -1 | -0001 -001 -01 -1 -02 00
(SELECT 1)

select to_char('-100 days -10:11:12.131415'::interval, 'DD DDD HH24 MI SS MS US'), to_char('1 year 2 mons 3 days 04:05:06'::interval, 'YYYY YYY YY Y MM DD HH24:MI:SS');
----
to_char | to_char
-100 -100 -10 -11 -12 -131 -131415 | 0001 001 01 1 02 03 04:05:06
(SELECT 1)

