-- postgres: same
select interval(3) '1.23456 sec';
----
interval
00:00:01.235
(SELECT 1)

select interval(0) '1 day 1.5 sec', interval(6) '1.23456 sec';
----
interval | interval
1 day 00:00:02 | 00:00:01.23456
(SELECT 1)

select interval '1.23456 sec' second(3);
----
interval
00:00:01.235
(SELECT 1)

select 'a' as interval, interval '2 days';
----
interval | interval
a | 2 days
(SELECT 1)

select (interval(2) '0.126') * 2;
----
?column?
00:00:00.26
(SELECT 1)

