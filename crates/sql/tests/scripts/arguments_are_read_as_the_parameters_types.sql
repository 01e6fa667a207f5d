-- postgres: same
set timezone = 'UTC';
----
(SET)

prepare s1 (int8) as select $1 + 1 as next;
----
(PREPARE)

execute s1 ('1');
----
next
2
(SELECT 1)

execute s1 ('x');
----
ERROR 22P02: invalid input syntax for type bigint: "x"

execute s1 (null);
----
next
∅
(SELECT 1)

execute s1 (2.6);
----
next
4
(SELECT 1)

prepare s2 (date, numeric(6,2), bool, text, int[]) as select $1 as d, $2 as n, $3 as b, $4 as t, $5 as a;
----
(PREPARE)

execute s2 ('2024-02-29', '12.5', 'yes', 'text', '{1,2}');
----
d | n | b | t | a
2024-02-29 | 12.5 | t | text | {1,2}
(SELECT 1)

execute s2 ('2024-02-30', '12.5', 'yes', 'text', '{1,2}');
----
ERROR 22008: date/time field value out of range: "2024-02-30"

execute s2 ('2024-02-29', 'many', 'yes', 'text', '{1,2}');
----
ERROR 22P02: invalid input syntax for type numeric: "many"

execute s2 ('2024-02-29', '1', 'maybe', 'text', '{1,2}');
----
ERROR 22P02: invalid input syntax for type boolean: "maybe"

execute s2 (date '2024-01-01' + 1, 3, true, 'a' || 'b', array[1]);
----
d | n | b | t | a
2024-01-02 | 3 | t | ab | {1}
(SELECT 1)

execute s1 (true);
----
ERROR 42804: parameter $1 of type boolean cannot be coerced to the expected type bigint
HINT: You will need to rewrite or cast the expression.

execute s1 ('1'::text);
----
ERROR 42804: parameter $1 of type text cannot be coerced to the expected type bigint
HINT: You will need to rewrite or cast the expression.

execute s1 ('1', '2');
----
ERROR 42601: wrong number of parameters for prepared statement "s1"
DETAIL: Expected 1 parameters but got 2.

