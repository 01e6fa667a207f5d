-- postgres: same
-- Below the top of a document, a path that leads through a scalar changes nothing.
select jsonb_set('{"a":1}', '{a,b}', '2'), jsonb_set('{"a":null}', '{a,b}', '2'), '{"a":1}'::jsonb #- '{a,b}', jsonb_insert('[1]', '{0,x}', '2');
----
jsonb_set | jsonb_set | ?column? | jsonb_insert
{"a": 1} | {"a": null} | {"a": 1} | [1]
(SELECT 1)

select jsonb_set('1', '{a}', '2');
----
ERROR 22023: cannot set path in scalar

select '1'::jsonb #- '{a}';
----
ERROR 22023: cannot delete path in scalar

select jsonb_set('{"a":[1]}', '{a,b}', '2');
----
ERROR 22P02: path element at position 2 is not an integer: "b"

