-- What the parser would read is refused where PostgreSQL refuses it.
create table o (id int primary key, v int); insert into o values (1, 1), (2, 2);
----
(CREATE TABLE)
(INSERT 0 2)

select top 1 id from o;
----
ERROR 42601: syntax error at or near "top"

select id from o qualify false;
----
ERROR 42601: syntax error at or near "qualify"

select 1 'x';
----
ERROR 42601: syntax error at or near "'"

select id from o join o p;
----
ERROR 42601: syntax error at or near "join"

select id from o with (nolock);
----
ERROR 42601: table hints are not supported: WITH (nolock)

create table z (a int auto_increment);
----
ERROR 42601: syntax error at or near "auto_increment"
POSITION: 23

create table z (a int identity);
----
ERROR 42601: syntax error at or near "identity"
POSITION: 23

create table z (a int not null invisible);
----
ERROR 42601: syntax error at or near "invisible"
POSITION: 32

insert o values (3, 3);
----
ERROR 42601: syntax error at or near "insert"

insert into table o values (3, 3);
----
ERROR 42601: syntax error at or near "table"

insert into o values row(3, 3);
----
ERROR 42601: syntax error at or near "row"

with a as (select 1 x), a as (select 2 x) select * from a;
----
ERROR 42712: WITH query name "a" specified more than once

select sum(v) over (rows between unbounded following and current row) from o;
----
ERROR 42P20: frame start cannot be UNBOUNDED FOLLOWING
POSITION: 8

select sum(rank() over ()) from o;
----
ERROR 42803: aggregate function calls cannot contain window function calls
POSITION: 12

select count(*) filter (where rank() over () = 1) from o;
----
ERROR 42P20: window functions are not allowed in FILTER
POSITION: 31

select rank() over (order by rank() over ()) from o;
----
ERROR 42P20: window functions are not allowed in window definitions
POSITION: 30

select 'a'
  'b' as joined, 1 isnull as no, null notnull as neither;
----
joined | no | neither
ab | f | f
(SELECT 1)

select id from o where v isnull or id notnull order by id;
----
id
1
2
(SELECT 2)

select array(select array[v, v + 1] from o order by id);
----
array
{{1,2},{2,3}}
(SELECT 1)

select (id, v) = (select 1, 1) from o order by id;
----
?column?
t
f
(SELECT 2)

select (id, v) = (select id, v from o) from o;
----
ERROR 21000: more than one row returned by a subquery used as an expression

select (id, v) < (select 1, 2 where false) from o where id = 1;
----
?column?
∅
(SELECT 1)

select '1.50'::jsonb ->> 0, '1.50'::jsonb -> 1, '{"a":1}'::jsonb ->> 0, '1.50'::json ->> 0;
----
?column? | ?column? | ?column? | ?column?
1.50 | ∅ | ∅ | ∅
(SELECT 1)

select rank() from o;
----
ERROR 42809: window function rank requires an OVER clause
POSITION: 8

select sum(v) over (w order by v) from o window w as (order by id);
----
ERROR 42P20: cannot override ORDER BY clause of window "w"
POSITION: 8

select trim(trailing from ' a ') || '|', trim(from ' b ') || '|', trim(leading from '  c') || '|', upper('ß') || lower('İ'), '{a}'::text[];
----
?column? | ?column? | ?column? | ?column? | text
 a| | b| | c| | ßi | {a}
(SELECT 1)

