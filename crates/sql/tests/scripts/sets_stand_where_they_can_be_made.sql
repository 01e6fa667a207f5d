-- postgres: same
create table t (a int primary key, b int);
----
(CREATE TABLE)

insert into t values (1, 1), (2, 2);
----
(INSERT 0 2)

select case when true then generate_series(1, 2) else 1 end;
----
ERROR 0A000: set-returning functions are not allowed in CASE
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
POSITION: 28

select case generate_series(1, 2) when 1 then 2 end;
----
ERROR 0A000: set-returning functions are not allowed in CASE
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
POSITION: 13

select coalesce(generate_series(1, 2), 1);
----
ERROR 0A000: set-returning functions are not allowed in COALESCE
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
POSITION: 17

select sum(generate_series(1, 3));
----
ERROR 0A000: aggregate function calls cannot contain set-returning function calls
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
POSITION: 12

select string_agg('x', ',' order by generate_series(1, 3));
----
ERROR 0A000: aggregate function calls cannot contain set-returning function calls
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
POSITION: 37

select lag(generate_series(1, 3)) over ();
----
ERROR 0A000: window function calls cannot contain set-returning function calls
HINT: You might be able to move the set-returning function into a LATERAL FROM item.
POSITION: 12

select greatest(generate_series(1, 3), 2);
----
greatest
2
2
3
(SELECT 3)

select 1 in (generate_series(1, 2), 3);
----
?column?
t
f
(SELECT 2)

select coalesce((select generate_series(1, 2) limit 1), 3);
----
coalesce
1
(SELECT 1)

select distinct on (a) a, generate_series(1, 3) as g from t order by a, g desc;
----
a | g
1 | 3
2 | 3
(SELECT 2)

select distinct on (a) a, generate_series(1, 3) as g from t;
----
a | g
1 | 1
2 | 1
(SELECT 2)

select generate_series(1, a), count(*) from t;
----
ERROR 42803: column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

select generate_series(1, max(a)) as g, count(*) from t;
----
g | count
1 | 2
2 | 2
(SELECT 2)

-- A function of several columns gives rows.
select json_each('{"a": 1, "b": [2]}');
----
json_each
(a,1)
(b,[2])
(SELECT 2)

select a, jsonb_each_text('{"a": "x,y", "b": null}') as pair, generate_series(1, 3) as n from t where a = 1;
----
a | pair | n
1 | (a,"x,y") | 1
1 | (b,) | 2
1 | ∅ | 3
(SELECT 3)

select json_each('{"a": 1}')::text, 1 as one;
----
json_each | one
(a,1) | 1
(SELECT 1)

select row_to_json(json_each('{"a": 1}'));
----
row_to_json
{"key":"a","value":1}
(SELECT 1)

select p from (select json_each('{"a": 1, "b": 2}') as p) s;
----
p
(a,1)
(b,2)
(SELECT 2)

