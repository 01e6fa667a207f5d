-- postgres: same
select substring('foobar' from 'foo|foobar') as a, regexp_match('xyz', '.|...') as b, regexp_replace('foobar', 'foo|foobar', 'x') as c;
----

select regexp_matches(E'a\nb\n', '^', 'mg') as m;
----

select regexp_like(E'a\nb', 'a.b') as plain, regexp_like(E'a\nb', 'a.b', 'n') as n, regexp_like('ab', 'a b', 'x') as x, regexp_like('A', 'a', 'i') as i;
----

select 'abc' ~ 'B' as a, 'abc' ~* 'B' as b, 'abc' !~ 'B' as c, 'abc' !~* 'B' as d, 'ab' ~ '^(?:a|ab)$' as e;
----

select regexp_match('abcabc', '(\w)(\w)c\1\2') as refers, regexp_match('foo123', '(?<=o)\d(?!2)') as looks, regexp_match('foo13', '\d(?=3)') as ahead;
----

select regexp_match('ab', '(a*)*') as a, regexp_match('ab', '(a*)+') as b, regexp_match('abc01234xyz', '(?:(.*?)(\d+)(.*)){1,1}') as c;
----

select regexp_match('XY1234Z', 'Y*([0-9]{1,3})') as longest, regexp_match('XY1234Z', 'Y*?([0-9]{1,3})') as shortest;
----

select regexp_match('a.c', '***=a.c') as literal, regexp_match('ABC', '(?i)b') as embedded, 'a|b' ~ '(?q)a|b' as q, regexp_match('a|b', 'a|b', 'e') as e;
----

select regexp_replace('foobarbaz', 'b..', 'X') as a, regexp_replace('foobarbaz', 'b..', 'X', 'g') as b, regexp_replace('foobarbaz', 'b(..)', 'X\1Y\&\\\0\', 'g') as c;
----

select regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 0, 'i') as a, regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 3, 'i') as b, regexp_replace('abcb', 'b', 'x', 3) as c, regexp_replace('abcb', 'b', 'x', 1, 1, 'g') as d;
----

select regexp_replace('abc', '', '-', 'g') as a, regexp_replace('aéb', 'x*', '-', 'g') as b, regexp_replace('abc', 'b*', '-', 2, 2) as c, regexp_replace('abc', 'x', 'y', 10) as d;
----

select regexp_split_to_array('the quick  fox', '\s+') as a, regexp_split_to_array('abc', '') as b, regexp_split_to_array('abc', 'b*') as c, regexp_split_to_array(',a,', ',') as d;
----

select regexp_split_to_table('aXbxc', 'x', 'i') as part;
----

select regexp_count('ABCABCAXYaxy', 'A.') as a, regexp_count('ABCABCAXYaxy', 'A.', 1, 'i') as b, regexp_count('aaa', 'a', 3) as c, regexp_count('aaa', 'a', 9) as d, regexp_count('aaa', '') as e;
----

select regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 0, 'i') as a, regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 1, 'i', 2) as b, regexp_instr('number of your street, town zip, FR', '[^,]+', 1, 2) as c, regexp_instr('éa', 'a') as d, regexp_instr('abc', 'b', 1, 1, 0, '', 1) as e, regexp_instr('abc', 'b', 1, 2) as f;
----

select regexp_substr('ABCDEF', 'c(.)(..)', 1, 1, 'i') as a, regexp_substr('ABCDEF', 'c(.)(..)', 1, 1, 'i', 2) as b, regexp_substr('number of your street, town zip, FR', '[^,]+', 1, 2) as c, regexp_substr('abc', 'b', 3) as d, regexp_substr('abc', '(x)?b', 1, 1, '', 1) as e, regexp_substr('abc', 'b', 1, 1, '', 2) as f;
----

select substring('foobar' from 'o(.)b') as a, substring('foobar' from '(x)?o') as b, substring('foobar' from '%#"o_b#"%' for '#') as c, substring('foobar', '#"o_b#"%', '#') as d;
----

select similar_to_escape('a%[^%_]_(b|c){2}^$.x\%') as a, similar_to_escape('[]_]_[^]_]_[[:alpha:]_]_') as b, similar_to_escape('[a\]_]_', '#') as c;
----

select 'a]b' similar to 'a[]]b' as a, 'abc' similar to '(a|b)(b|bc)%' as b, 'x_y' similar to 'x#_y' escape '#' as c, 'ab' similar to '(a)(b)' as d;
----

select similar_to_escape('a#"b#"c#"d', '#');
----

select regexp_match('a', 'a', 'g');
----

select regexp_like('a', 'a', 'g');
----

select regexp_count('a', 'a', 1, 'g');
----

select regexp_instr('a', 'a', 1, 1, 0, 'g');
----

select regexp_substr('a', 'a', 1, 1, 'g');
----

select regexp_split_to_array('a', 'a', 'g');
----

select * from regexp_split_to_table('a', 'a', 'g');
----

select regexp_replace('a', 'a', 'b', '1');
----

select regexp_replace('a', 'a', 'b', 'z');
----

select regexp_replace('a', 'a', 'b', 0);
----

select regexp_replace('a', 'a', 'b', 1, -1);
----

select regexp_instr('a', 'a', 1, 1, 2);
----

select regexp_instr('a', 'a', 1, 0);
----

select regexp_substr('a', 'a', 1, 1, '', -1);
----

select regexp_match('a', 'a', 'qx');
----

select 'a' ~ '(a';
----

select 'a' ~ '[b-a]';
----

select 'a' ~ '(a)\2';
----

select 'a' ~ 'a{2,1}';
----

select 'a' ~ '\q';
----

select 'É' ~* 'é' as a, 'ß' ~ '[[:alpha:]]' as b, 'Ж' ~* '[а-я]' as c, 'é' ~ '^\w$' as d, '٣' ~ '\d' as e;
----
