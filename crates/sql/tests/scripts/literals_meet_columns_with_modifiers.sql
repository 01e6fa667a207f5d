-- postgres: same
-- A literal in quotation marks is compared as it is, not rounded or cut to the column's modifier.
create table acct (id int primary key, amount numeric(10,2), code varchar(5), ch char(4)); create index on acct (amount); insert into acct values (1, 5.12, 'abc', 'ab'), (2, 5.13, 'ab', 'ab'), (3, 10, 'abcde', 'abcd');
----
(CREATE TABLE)
(CREATE INDEX)
(INSERT 0 3)

select (select count(*) from acct where amount = '5.123'), (select count(*) from acct where amount in ('5.123', '7')), (select count(*) from acct where amount = any('{5.123}')), (select count(*) from acct where (id, amount) = (1, '5.123')), (select count(*) from acct where amount = '99999999999');
----
count | count | count | count | count
0 | 0 | 0 | 0 | 0
(SELECT 1)

select id from acct where amount > '5.126' order by id;
----
id
2
3
(SELECT 2)

select id from acct where code in ('abcdefgh', 'ab') or code = 'abcdefgh' or code = any('{abcdefgh}');
----
id
2
(SELECT 1)

select id from acct where ch = 'ab' and ch in ('ab', 'abcdef') order by id;
----
id
1
2
(SELECT 2)

prepare q as select id from acct where amount = $1;
----
(PREPARE)

execute q('5.123');
----
id
(SELECT 0)

execute q('5.13');
----
id
2
(SELECT 1)

select coalesce(code, 'abcdefgh'), greatest(code, 'abcdefgh'), case when id = 1 then 'abcdefgh' else code end, nullif(code, 'abcdefgh') from acct where id = 1;
----
coalesce | greatest | code | nullif
abc | abcdefgh | abcdefgh | abc
(SELECT 1)

select lag(amount, 1, 0.12345) over (order by id) from acct order by 1 limit 1;
----
lag
0.12345
(SELECT 1)

select code from acct where id = 1 union all select 'abcdefgh' order by 1;
----
code
abc
abcdefgh
(SELECT 2)

with recursive r (n, p) as (select 1, 1.0::numeric(4,1) union all select n + 1, p / 3 from r where n < 5) select * from r;
----
ERROR 42804: recursive query "r" column 2 has type numeric(4,1) in non-recursive term but type numeric overall
HINT: Cast the output of the non-recursive term to the correct type.

select array['a', 'b'] || 'z'::text, 'z'::text || array['a', 'b'], array['a'] || null::text;
----
?column? | ?column? | ?column?
{a,b,z} | {z,a,b} | {a,NULL}
(SELECT 1)

