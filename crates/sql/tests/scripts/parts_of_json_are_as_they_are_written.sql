-- postgres: same
-- Parts of a json are as they are written there.
select '{"z":1,"a":{"y":1,"b":2}}'::json->'a' as a, '{"a":1.0,"b":1e2}'::json->'b' as b, '{"a":[1, 2]}'::json->>'a' as c, '{"a":1,"a": 2 }'::json->'a' as d;
----
a | b | c | d
{"y":1,"b":2} | 1e2 | [1, 2] | 2
(SELECT 1)

select '[1.50, {"a" : 1}]'::json->0 as a, '[1.50, {"a" : 1}]'::json->-1 as b, '"x"'::json->0 as c, '{"a":"q\"\u00e9"}'::json->>'a' as d, '[null]'::json->>0 as e;
----
a | b | c | d | e
1.50 | {"a" : 1} | ∅ | q"é | ∅
(SELECT 1)

select '{"a":{"b":[1,{"c" : null}]}}'::json #> '{a,b,1}' as a, '{"a":{"b":[1,{"c": null}]}}'::json #>> '{a,b,1,c}' as b, '{"a":{"b":[1,{"c":2}]}}'::json #> '{a,b,-2}' as c, '[ 1]'::json #> '{}' as d;
----
a | b | c | d
{"c" : null} | ∅ | 1 | [ 1]
(SELECT 1)

select json_extract_path('{"a":{"b": 1.0}}', 'a') as a, json_extract_path_text('{"a":{"b": 1.0}}', 'a', 'b') as b, json_strip_nulls('{"b":[1,null, {"c":null}],"a":null }') as c;
----
a | b | c
{"b": 1.0} | 1.0 | {"b":[1,null,{}]}
(SELECT 1)

select key, value from json_each('{"b":1,"a": [2 ,3],"b":null}');
----
key | value
b | 1
a | [2 ,3]
b | null
(SELECT 3)

select key, value from json_each_text('{"b":"x","a": [2 ,3],"b":null}');
----
key | value
b | x
a | [2 ,3]
b | ∅
(SELECT 3)

select json_object_keys('{"b":1,"a":2,"b":3}') as k;
----
k
b
a
b
(SELECT 3)

select value from json_array_elements('[1.0, {"b" :1, "a":2}, null]');
----
value
1.0
{"b" :1, "a":2}
null
(SELECT 3)

select value from json_array_elements_text('["x", {"b" :1}, null]');
----
value
x
{"b" :1}
∅
(SELECT 3)

select json_each('[1]');
----
ERROR 22023: cannot deconstruct an array as an object

select json_object_keys('1');
----
ERROR 22023: cannot call json_object_keys on a scalar

select json_array_elements('{}');
----
ERROR 22023: cannot call json_array_elements on a non-array

