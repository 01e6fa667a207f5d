-- postgres: same
select interval(3) '1.23456 sec';
----

select interval(0) '1 day 1.5 sec', interval(6) '1.23456 sec';
----

select interval '1.23456 sec' second(3);
----

select 'a' as interval, interval '2 days';
----

select (interval(2) '0.126') * 2;
----

