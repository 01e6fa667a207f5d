-- postgres: same
select sum(random()) = sum(random()) from generate_series(1, 10);
----
?column?
f
(SELECT 1)

select sum(g) = sum(g), count(distinct g + 1) = count(distinct g + 1) from generate_series(1, 10) g;
----
?column? | ?column?
t | t
(SELECT 1)

select count(*) from (select random() from generate_series(1, 10) group by random()) s;
----
count
10
(SELECT 1)

select count(*) filter (where a = b) from (select distinct on (random()) g as a, g as b from generate_series(1, 5) g order by random()) s;
----
count
5
(SELECT 1)

select sum(1.0), sum(1.00) from generate_series(1, 2);
----
sum | sum
2.0 | 2.00
(SELECT 1)

select g % 3 + 1.0 as k, count(*) from generate_series(1, 9) g group by g % 3 + 1.0 order by g % 3 + 1.0;
----
k | count
1.0 | 3
2.0 | 3
3.0 | 3
(SELECT 3)

