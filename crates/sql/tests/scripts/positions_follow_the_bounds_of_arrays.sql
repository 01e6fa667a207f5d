-- postgres: same
-- Elements are counted from the lower bound of an array.
select array_positions('[2:3]={5,6}'::int[], 5), array_position('[2:3]={5,6}'::int[], 6);
----
array_positions | array_position
{2} | 3
(SELECT 1)

select array_position(array[1, 2], 2, null);
----
ERROR 22004: initial position must not be null

