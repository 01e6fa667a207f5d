create table a (x int primary key);
----
(CREATE TABLE)

create table b (y int primary key);
----
(CREATE TABLE)

insert into a values (1), (2);
----
(INSERT 0 2)

insert into b values (10);
----
(INSERT 0 1)

-- The comma after the clause belongs to the list of tables.
select x, y from a as of system time '-1us', b order by x;
----
x | y
1 | 10
2 | 10
(SELECT 2)

select x from a, b as of system time '-1us' order by x;
----
x
1
2
(SELECT 2)

select x from a as of system time '-1us' where x = 1;
----
x
1
(SELECT 1)

-- The time is an expression.
select count(*) from a as of system time now() - interval '1 microsecond';
----
count
2
(SELECT 1)

select count(*) from a as of system time (now() - '1us'::interval) where x = 2;
----
count
1
(SELECT 1)

select count(*) from a as of system time interval '-1us';
----
count
2
(SELECT 1)

select count(*) from a as of system time '-' || '1us' where x = 2;
----
count
1
(SELECT 1)

select count(*) from a as of system time interval '1 hour';
----
ERROR 22023: AS OF SYSTEM TIME: cannot specify a timestamp in the future
POSITION: 24

select count(*) from a as of system time 'yester' || 'year';
----
ERROR 22007: invalid input syntax for type timestamp with time zone: "yesteryear"
POSITION: 24

select count(*) from a as of system time with_max_staleness('10s');
----
count
2
(SELECT 1)

select count(*) from a as of system time with_max_staleness('10s', true);
----
count
2
(SELECT 1)

select count(*) from a as of system time with_max_staleness('10s', nearest_only => true);
----
count
2
(SELECT 1)

select count(*) from a as of system time with_max_staleness('10s', nearest => true);
----
ERROR 0A000: named arguments are not supported
POSITION: 24

select count(*) from a as of system time with_max_staleness('10s', true, nearest_only => true);
----
ERROR 0A000: named arguments are not supported
POSITION: 24

select count(*) from a as of system time with_max_staleness();
----
ERROR 42883: function with_max_staleness() does not exist
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
POSITION: 24

select count(*) from a as of system time follower_read_timestamp(nearest_only => true);
----
ERROR 0A000: named arguments are not supported
POSITION: 24

select count(*) from a as of system time $1;
----
ERROR 0A000: parameters are not supported in AS OF SYSTEM TIME
POSITION: 24

select count(*) from a as of system time;
----
ERROR 42601: syntax error at end of input
POSITION: 41

select count(*) from a as of system time '+1h';
----
ERROR 22023: AS OF SYSTEM TIME: cannot specify a timestamp in the future
POSITION: 24

-- Whoever reads the past does not write.
begin read write as of system time '-1us';
----
ERROR 42601: AS OF SYSTEM TIME specified with READ WRITE mode
HINT: A transaction that reads the past is read-only.
POSITION: 60

select 'no block is open';
----
?column?
no block is open
(SELECT 1)

begin as of system time '-1us', read write;
----
ERROR 42601: AS OF SYSTEM TIME specified with READ WRITE mode
HINT: A transaction that reads the past is read-only.
POSITION: 7

begin as of system time '-1us';
----
(BEGIN)

set transaction read write;
----
ERROR 42601: AS OF SYSTEM TIME specified with READ WRITE mode
HINT: A transaction that reads the past is read-only.

rollback;
----
(ROLLBACK)

begin as of system time '-1us';
----
(BEGIN)

set transaction_read_only = off;
----
ERROR 42601: AS OF SYSTEM TIME specified with READ WRITE mode
HINT: A transaction that reads the past is read-only.

rollback;
----
(ROLLBACK)

begin;
----
(BEGIN)

set transaction read write, as of system time '-1us';
----
ERROR 42601: AS OF SYSTEM TIME specified with READ WRITE mode
HINT: A transaction that reads the past is read-only.
POSITION: 29

rollback;
----
(ROLLBACK)

begin as of system time '-1us';
----
(BEGIN)

set transaction read only;
----
(SET)

insert into a values (3);
----
ERROR 25006: cannot execute INSERT in a read-only transaction

rollback;
----
(ROLLBACK)

begin as of system time '-1us';
----
(BEGIN)

create table c (z int primary key);
----
ERROR 25006: cannot execute a schema change in a read-only transaction

rollback;
----
(ROLLBACK)

begin as of system time '-1us';
----
(BEGIN)

select x from a for update;
----
ERROR 25006: cannot execute SELECT FOR UPDATE or nextval() in a read-only transaction

rollback;
----
(ROLLBACK)

insert into a select y from b as of system time '-1us';
----
ERROR 25006: cannot execute INSERT in a read-only transaction

copy a from stdin as of system time '-1us';
----
ERROR 0A000: AS OF SYSTEM TIME is not supported in this statement
HINT: Say it with a query by itself, or with BEGIN for all that the block reads.
POSITION: 19

-- A chain reads the same past.
begin as of system time '-1us';
----
(BEGIN)

select count(*) from a;
----
count
2
(SELECT 1)

commit and chain;
----
(COMMIT)

set transaction read write;
----
ERROR 42601: AS OF SYSTEM TIME specified with READ WRITE mode
HINT: A transaction that reads the past is read-only.

rollback and chain;
----
(ROLLBACK)

insert into a values (3);
----
ERROR 25006: cannot execute INSERT in a read-only transaction

rollback;
----
(ROLLBACK)

-- By default, read-only transactions read the past; others do not.
set default_transaction_use_follower_reads = on;
----
(SET)

begin read only;
----
(BEGIN)

set transaction read write;
----
(SET)

insert into a values (3);
----
(INSERT 0 1)

select count(*) from a;
----
count
3
(SELECT 1)

commit;
----
(COMMIT)

reset default_transaction_use_follower_reads;
----
(RESET)

begin read write;
----
(BEGIN)

set transaction as of system time '-1us';
----
ERROR 42601: AS OF SYSTEM TIME specified with READ WRITE mode
HINT: A transaction that reads the past is read-only.
POSITION: 17

rollback;
----
(ROLLBACK)

begin read write;
----
(BEGIN)

set transaction read only, as of system time '-1us';
----
(SET)

select count(*) from a;
----
count
3
(SELECT 1)

rollback;
----
(ROLLBACK)

select count(*) from a as of system time (select now());
----
ERROR 0A000: subqueries are not supported in AS OF SYSTEM TIME
POSITION: 24

