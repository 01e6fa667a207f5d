-- postgres: same
select substring('foobar' from 'foo|foobar') as a, regexp_match('xyz', '.|...') as b, regexp_replace('foobar', 'foo|foobar', 'x') as c;
----
a | b | c
foobar | {xyz} | x
(SELECT 1)

select regexp_matches(E'a\nb\n', '^', 'mg') as m;
----
m
{""}
{""}
{""}
(SELECT 3)

select regexp_like(E'a\nb', 'a.b') as plain, regexp_like(E'a\nb', 'a.b', 'n') as n, regexp_like('ab', 'a b', 'x') as x, regexp_like('A', 'a', 'i') as i;
----
plain | n | x | i
t | f | t | t
(SELECT 1)

select 'abc' ~ 'B' as a, 'abc' ~* 'B' as b, 'abc' !~ 'B' as c, 'abc' !~* 'B' as d, 'ab' ~ '^(?:a|ab)$' as e;
----
a | b | c | d | e
f | t | t | f | t
(SELECT 1)

select regexp_match('abcabc', '(\w)(\w)c\1\2') as refers, regexp_match('foo123', '(?<=o)\d(?!2)') as looks, regexp_match('foo13', '\d(?=3)') as ahead;
----
refers | looks | ahead
{a,b} | ∅ | {1}
(SELECT 1)

select regexp_match('ab', '(a*)*') as a, regexp_match('ab', '(a*)+') as b, regexp_match('abc01234xyz', '(?:(.*?)(\d+)(.*)){1,1}') as c;
----
a | b | c
{a} | {""} | {abc,01234,xyz}
(SELECT 1)

select regexp_match('XY1234Z', 'Y*([0-9]{1,3})') as longest, regexp_match('XY1234Z', 'Y*?([0-9]{1,3})') as shortest;
----
longest | shortest
{123} | {1}
(SELECT 1)

select regexp_match('a.c', '***=a.c') as literal, regexp_match('ABC', '(?i)b') as embedded, 'a|b' ~ '(?q)a|b' as q, regexp_match('a|b', 'a|b', 'e') as e;
----
literal | embedded | q | e
{a.c} | {B} | t | {a|b}
(SELECT 1)

select regexp_replace('foobarbaz', 'b..', 'X') as a, regexp_replace('foobarbaz', 'b..', 'X', 'g') as b, regexp_replace('foobarbaz', 'b(..)', 'X\1Y\&\\\0\', 'g') as c;
----
a | b | c
fooXbaz | fooXX | fooXarYbar\\0\XazYbaz\\0\
(SELECT 1)

select regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 0, 'i') as a, regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 3, 'i') as b, regexp_replace('abcb', 'b', 'x', 3) as c, regexp_replace('abcb', 'b', 'x', 1, 1, 'g') as d;
----
a | b | c | d
X PXstgrXSQL fXnctXXn | A PostgrXSQL function | abcx | axcb
(SELECT 1)

select regexp_replace('abc', '', '-', 'g') as a, regexp_replace('aéb', 'x*', '-', 'g') as b, regexp_replace('abc', 'b*', '-', 2, 2) as c, regexp_replace('abc', 'x', 'y', 10) as d;
----
a | b | c | d
-a-b-c- | -a-é-b- | ab-c | abc
(SELECT 1)

select regexp_split_to_array('the quick  fox', '\s+') as a, regexp_split_to_array('abc', '') as b, regexp_split_to_array('abc', 'b*') as c, regexp_split_to_array(',a,', ',') as d;
----
a | b | c | d
{the,quick,fox} | {a,b,c} | {a,c} | {"",a,""}
(SELECT 1)

select regexp_split_to_table('aXbxc', 'x', 'i') as part;
----
part
a
b
c
(SELECT 3)

select regexp_count('ABCABCAXYaxy', 'A.') as a, regexp_count('ABCABCAXYaxy', 'A.', 1, 'i') as b, regexp_count('aaa', 'a', 3) as c, regexp_count('aaa', 'a', 9) as d, regexp_count('aaa', '') as e;
----
a | b | c | d | e
3 | 4 | 1 | 0 | 4
(SELECT 1)

select regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 0, 'i') as a, regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 1, 'i', 2) as b, regexp_instr('number of your street, town zip, FR', '[^,]+', 1, 2) as c, regexp_instr('éa', 'a') as d, regexp_instr('abc', 'b', 1, 1, 0, '', 1) as e, regexp_instr('abc', 'b', 1, 2) as f;
----
a | b | c | d | e | f
3 | 7 | 23 | 2 | 2 | 0
(SELECT 1)

select regexp_substr('ABCDEF', 'c(.)(..)', 1, 1, 'i') as a, regexp_substr('ABCDEF', 'c(.)(..)', 1, 1, 'i', 2) as b, regexp_substr('number of your street, town zip, FR', '[^,]+', 1, 2) as c, regexp_substr('abc', 'b', 3) as d, regexp_substr('abc', '(x)?b', 1, 1, '', 1) as e, regexp_substr('abc', 'b', 1, 1, '', 2) as f;
----
a | b | c | d | e | f
CDEF | EF |  town zip | ∅ | ∅ | ∅
(SELECT 1)

select substring('foobar' from 'o(.)b') as a, substring('foobar' from '(x)?o') as b, substring('foobar' from '%#"o_b#"%' for '#') as c, substring('foobar', '#"o_b#"%', '#') as d;
----
a | b | c | d
o | ∅ | oob | ∅
(SELECT 1)

select similar_to_escape('a%[^%_]_(b|c){2}^$.x\%') as a, similar_to_escape('[]_]_[^]_]_[[:alpha:]_]_') as b, similar_to_escape('[a\]_]_', '#') as c;
----
a | b | c
^(?:a.*[^%_].(?:b|c){2}\^\$\.x\%)$ | ^(?:[]_].[^]_].[[:alpha:]_].)$ | ^(?:[a\\].].)$
(SELECT 1)

select 'a]b' similar to 'a[]]b' as a, 'abc' similar to '(a|b)(b|bc)%' as b, 'x_y' similar to 'x#_y' escape '#' as c, 'ab' similar to '(a)(b)' as d;
----
a | b | c | d
t | t | t | t
(SELECT 1)

select similar_to_escape('a#"b#"c#"d', '#');
----
ERROR 2200C: SQL regular expression may not contain more than two escape-double-quote separators

select regexp_match('a', 'a', 'g');
----
ERROR 22023: regexp_match() does not support the "global" option
HINT: Use the regexp_matches function instead.

select regexp_like('a', 'a', 'g');
----
ERROR 22023: regexp_like() does not support the "global" option

select regexp_count('a', 'a', 1, 'g');
----
ERROR 22023: regexp_count() does not support the "global" option

select regexp_instr('a', 'a', 1, 1, 0, 'g');
----
ERROR 22023: regexp_instr() does not support the "global" option

select regexp_substr('a', 'a', 1, 1, 'g');
----
ERROR 22023: regexp_substr() does not support the "global" option

select regexp_split_to_array('a', 'a', 'g');
----
ERROR 22023: regexp_split_to_array() does not support the "global" option

select * from regexp_split_to_table('a', 'a', 'g');
----
ERROR 22023: regexp_split_to_table() does not support the "global" option

select regexp_replace('a', 'a', 'b', '1');
----
ERROR 22023: invalid regular expression option: "1"
HINT: If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.

select regexp_replace('a', 'a', 'b', 'z');
----
ERROR 22023: invalid regular expression option: "z"

select regexp_replace('a', 'a', 'b', 0);
----
ERROR 22023: invalid value for parameter "start": 0

select regexp_replace('a', 'a', 'b', 1, -1);
----
ERROR 22023: invalid value for parameter "n": -1

select regexp_instr('a', 'a', 1, 1, 2);
----
ERROR 22023: invalid value for parameter "endoption": 2

select regexp_instr('a', 'a', 1, 0);
----
ERROR 22023: invalid value for parameter "n": 0

select regexp_substr('a', 'a', 1, 1, '', -1);
----
ERROR 22023: invalid value for parameter "subexpr": -1

select regexp_match('a', 'a', 'qx');
----
ERROR 2201B: invalid regular expression: invalid argument to regex function

select 'a' ~ '(a';
----
ERROR 2201B: invalid regular expression: parentheses () not balanced

select 'a' ~ '[b-a]';
----
ERROR 2201B: invalid regular expression: invalid character range

select 'a' ~ '(a)\2';
----
ERROR 2201B: invalid regular expression: invalid backreference number

select 'a' ~ 'a{2,1}';
----
ERROR 2201B: invalid regular expression: invalid repetition count(s)

select 'a' ~ '\q';
----
ERROR 2201B: invalid regular expression: invalid escape \ sequence

select 'É' ~* 'é' as a, 'ß' ~ '[[:alpha:]]' as b, 'Ж' ~* '[а-я]' as c, 'é' ~ '^\w$' as d, '٣' ~ '\d' as e;
----
a | b | c | d | e
t | t | t | t | f
(SELECT 1)

