-- postgres: same
-- Infinity is no angle, and NaN is any.
select sin('-inf'::float8);
----
ERROR 22003: input is out of range

select cot('inf'::float8);
----
ERROR 22003: input is out of range

select cos('nan'::float8), sinh('inf'::float8);
----
cos | sinh
NaN | Infinity
(SELECT 1)

