-- postgres: same
select f, '[' || to_char('NaN'::numeric, f) || ']' as nan, '[' || to_char('-Infinity'::numeric, f) || ']' as low from unnest(array['999D99', 'FM9990.0', 'S00', '99999999999.9', '999', '0', 'FM999', '999S', '000000000', 'MI999', '999PR', '99,999', '0.0', 'FM00000.00', 'SG9999']) as f;
----
f | nan | low
999D99 | [ NaN] | [-###.##]
FM9990.0 | [NaN] | [-####.#]
S00 | [+##] | [-##]
99999999999.9 | [         NaN] | [   -Infinity]
999 | [ NaN] | [-###]
0 | [ #] | [-#]
FM999 | [NaN] | [-###]
999S | [NaN+] | [###-]
000000000 | [ 000000NaN] | [-0Infinity]
MI999 | [ NaN] | [-###]
999PR | [ NaN ] | [<###>]
99,999 | [    NaN] | [-##,###]
0.0 | [ #.#] | [-#.#]
FM00000.00 | [00NaN] | [-#####.##]
SG9999 | [+ NaN] | [-####]
(SELECT 15)

select to_char('Infinity'::float8, '999999999D99'), to_char('NaN'::float8, '999D99');
----
to_char | to_char
  Infinity |  NaN
(SELECT 1)

select to_char('infinity'::timestamp, 'YYYY') is null, to_char('-infinity'::timestamptz, 'YYYY') is null, to_char(timestamp '2024-01-01', '') is null, to_char(1, '');
----
?column? | ?column? | ?column? | to_char
t | t | t | 
(SELECT 1)

select sign('NaN'::float8), sign('-0'::float8), sign('-Infinity'::float8), sign('NaN'::numeric);
----
sign | sign | sign | sign
0 | 0 | -1 | NaN
(SELECT 1)

