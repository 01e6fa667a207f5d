create database movr primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 movr
CREATE TABLE quotas (org TEXT PRIMARY KEY, used INT8 NOT NULL DEFAULT 0, note TEXT, CONSTRAINT within CHECK (used BETWEEN 0 AND 100));
----
(CREATE TABLE)

INSERT INTO quotas VALUES ('a', 1, 'one'), ('b', 99, 'two'), ('c', 50, NULL);
----
(INSERT 0 3)

ALTER TABLE quotas ALTER COLUMN used SET ESCROW;
----
(ALTER TABLE)

SELECT create_statement FROM [SHOW CREATE TABLE quotas];
----
create_statement
CREATE TABLE public.quotas (
    org text NOT NULL,
    used bigint NOT NULL DEFAULT 0 ESCROW,
    note text,
    CONSTRAINT quotas_pkey PRIMARY KEY (org),
    CONSTRAINT within CHECK ((used BETWEEN 0 AND 100))
) LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
(SELECT 1)

SELECT * FROM quotas ORDER BY org;
----
org | used | note
a | 1 | one
b | 99 | two
c | 50 | ∅
(SELECT 3)

SHOW ESCROW FOR TABLE quotas;
----
org | column_name | region | part | can_take | can_add
a | used | us-east1 | 1 | 1 | 99
a | used | asia-northeast1 | ∅ | ∅ | ∅
a | used | europe-west1 | ∅ | ∅ | ∅
b | used | us-east1 | 99 | 99 | 1
b | used | asia-northeast1 | ∅ | ∅ | ∅
b | used | europe-west1 | ∅ | ∅ | ∅
c | used | us-east1 | 50 | 50 | 50
c | used | asia-northeast1 | ∅ | ∅ | ∅
c | used | europe-west1 | ∅ | ∅ | ∅
(SELECT 9)

EXPLAIN UPDATE quotas SET used = used + 1 WHERE org = 'a';
----
QUERY PLAN
Update on quotas (escrow delta, local)
  Index Cond: (org = 'a')
(EXPLAIN)

-- session: europe-west1 movr
UPDATE quotas SET used = used + 1 WHERE org = 'a';
----
(UPDATE 1)

UPDATE quotas SET used = used + 2 WHERE org = 'b';
----
ERROR 23514: new row for relation "quotas" violates check constraint "within"
DETAIL: "used" stays from 0 to 100; it can go down by 99 and up by 1.

UPDATE quotas SET note = 'changed' WHERE org = 'c';
----
(UPDATE 1)

UPDATE quotas SET org = 'd' WHERE org = 'c';
----
(UPDATE 1)

UPDATE quotas SET used = 7 WHERE org = 'b' RETURNING *;
----
org | used | note
b | 7 | two
(UPDATE 1)

DELETE FROM quotas WHERE org = 'a' RETURNING used;
----
used
2
(DELETE 1)

INSERT INTO quotas VALUES ('e', 3) RETURNING *;
----
org | used | note
e | 3 | ∅
(INSERT 0 1)

SELECT * FROM quotas ORDER BY org;
----
org | used | note
b | 7 | two
d | 50 | changed
e | 3 | ∅
(SELECT 3)

-- Again, which changes nothing.
ALTER TABLE quotas ALTER COLUMN used SET ESCROW;
----
(ALTER TABLE)

-- And back.
ALTER TABLE quotas ALTER COLUMN used DROP ESCROW;
----
(ALTER TABLE)

ALTER TABLE quotas ALTER COLUMN used DROP ESCROW;
----
(ALTER TABLE)

SELECT create_statement FROM [SHOW CREATE TABLE quotas];
----
create_statement
CREATE TABLE public.quotas (
    org text NOT NULL,
    used bigint NOT NULL DEFAULT 0,
    note text,
    CONSTRAINT quotas_pkey PRIMARY KEY (org),
    CONSTRAINT within CHECK ((used BETWEEN 0 AND 100))
) LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
(SELECT 1)

SELECT * FROM quotas ORDER BY org;
----
org | used | note
b | 7 | two
d | 50 | changed
e | 3 | ∅
(SELECT 3)

EXPLAIN UPDATE quotas SET used = used + 1 WHERE org = 'd';
----
QUERY PLAN
Update on quotas
  ->  Point Lookup using quotas_pkey on quotas
        Index Cond: (org = 'd')
        Locks rows
        Regions: us-east1 (round trips between regions: 1)
Regions: us-east1
Predicted Round Trips Between Regions: 1
(EXPLAIN)

UPDATE quotas SET used = used + 1 WHERE org = 'd';
----
(UPDATE 1)

UPDATE quotas SET used = used + 1000 WHERE org = 'd';
----
ERROR 23514: new row for relation "quotas" violates check constraint "within"
DETAIL: Failing row contains (d, 1051, changed).

SELECT * FROM quotas ORDER BY org;
----
org | used | note
b | 7 | two
d | 51 | changed
e | 3 | ∅
(SELECT 3)

SHOW ESCROW FOR TABLE quotas;
----
ERROR 42809: table "quotas" has no escrow columns
POSITION: 1

-- And on once more: rows that changed meanwhile have other numbers.
ALTER TABLE quotas ALTER COLUMN used SET ESCROW;
----
(ALTER TABLE)

SELECT * FROM quotas ORDER BY org;
----
org | used | note
b | 7 | two
d | 51 | changed
e | 3 | ∅
(SELECT 3)

-- Columns that are added.
ALTER TABLE quotas ADD COLUMN seats INT4 NOT NULL DEFAULT 5 ESCROW CHECK (seats BETWEEN 0 AND 10);
----
(ALTER TABLE)

SELECT * FROM quotas ORDER BY org;
----
org | used | note | seats
b | 7 | two | 5
d | 51 | changed | 5
e | 3 | ∅ | 5
(SELECT 3)

UPDATE quotas SET seats = seats + 1, used = used - 1 WHERE org = 'd';
----
(UPDATE 1)

UPDATE quotas SET seats = seats + 9 WHERE org = 'd';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_seats_check"
DETAIL: "seats" stays from 0 to 10; it can go down by 6 and up by 4.

SELECT * FROM quotas ORDER BY org;
----
org | used | note | seats
b | 7 | two | 5
d | 50 | changed | 6
e | 3 | ∅ | 5
(SELECT 3)

ALTER TABLE quotas ADD COLUMN few INT4 NOT NULL DEFAULT 50 ESCROW CHECK (few BETWEEN 0 AND 10);
----
ERROR 23514: the default of column "few" is outside its bounds

ALTER TABLE quotas ADD COLUMN few INT4 NOT NULL DEFAULT length(now()::text) ESCROW;
----
(ALTER TABLE)

ALTER TABLE quotas ADD COLUMN fewer INT4 ESCROW;
----
ERROR 0A000: escrow column "fewer" of table "quotas" must be NOT NULL

-- Values outside, and columns that cannot be.
CREATE TABLE other (k INT PRIMARY KEY, n INT NOT NULL, m INT, f FLOAT8 NOT NULL DEFAULT 0, i INT NOT NULL DEFAULT 0, most INT NOT NULL DEFAULT 10);
----
(CREATE TABLE)

CREATE INDEX ON other (i);
----
(CREATE INDEX)

INSERT INTO other VALUES (1, 5), (2, 50);
----
(INSERT 0 2)

ALTER TABLE other ALTER COLUMN m SET ESCROW;
----
ERROR 0A000: escrow column "m" of table "other" must be NOT NULL

ALTER TABLE other ALTER COLUMN f SET ESCROW;
----
ERROR 0A000: escrow column "f" of table "other" must be of an integer type, or of numeric with up to 18 digits

ALTER TABLE other ALTER COLUMN i SET ESCROW;
----
ERROR 0A000: escrow column "i" of table "other" cannot be in index "other_i_idx"

ALTER TABLE other ALTER COLUMN k SET ESCROW;
----
ERROR 0A000: escrow column "k" of table "other" cannot be in index "other_pkey"

ALTER TABLE other ALTER COLUMN absent SET ESCROW;
----
ERROR 42703: column "absent" of relation "other" does not exist

ALTER TABLE absent ALTER COLUMN n SET ESCROW;
----
ERROR 42P01: relation "absent" does not exist

ALTER TABLE IF EXISTS absent ALTER COLUMN n SET ESCROW;
----
(ALTER TABLE)

ALTER TABLE other ADD CONSTRAINT few CHECK (n <= most) NOT VALID;
----
(ALTER TABLE)

ALTER TABLE other ALTER COLUMN n SET ESCROW;
----
ERROR 0A000: escrow column "n" of table "other" cannot have a CHECK that is NOT VALID

BEGIN;
----
(BEGIN)

ALTER TABLE other DROP CONSTRAINT few;
----
(ALTER TABLE)

ALTER TABLE other ADD CONSTRAINT few CHECK (n <= most);
----
(ALTER TABLE)

ALTER TABLE other ALTER COLUMN n SET ESCROW;
----
ERROR 0A000: escrow column "n" of table "other" cannot rest on constraint "few", which the same transaction adds
HINT: Commit the constraint before SET ESCROW, or add it in the same ALTER TABLE.

COMMIT;
----
(ROLLBACK)

SELECT * FROM other ORDER BY k;
----
k | n | m | f | i | most
1 | 5 | ∅ | 0 | 0 | 10
2 | 50 | ∅ | 0 | 0 | 10
(SELECT 2)

UPDATE other SET most = 60 WHERE k = 2;
----
(UPDATE 1)

ALTER TABLE other ALTER COLUMN n SET ESCROW;
----
ERROR 0A000: escrow column "n" of table "other" cannot have a CHECK that is NOT VALID

SELECT * FROM other ORDER BY k;
----
k | n | m | f | i | most
1 | 5 | ∅ | 0 | 0 | 10
2 | 50 | ∅ | 0 | 0 | 60
(SELECT 2)

UPDATE other SET most = 5 WHERE k = 2;
----
ERROR 23514: new row for relation "other" violates check constraint "few"
DETAIL: Failing row contains (2, 50, null, 0, 0, 5).

UPDATE other SET most = 55, n = n + 3 WHERE k = 2;
----
(UPDATE 1)

SELECT * FROM other ORDER BY k;
----
k | n | m | f | i | most
1 | 5 | ∅ | 0 | 0 | 10
2 | 53 | ∅ | 0 | 0 | 55
(SELECT 2)

BEGIN;
----
(BEGIN)

CREATE TABLE fresh (k INT PRIMARY KEY, n INT NOT NULL);
----
(CREATE TABLE)

INSERT INTO fresh VALUES (1, 1);
----
(INSERT 0 1)

ALTER TABLE fresh ALTER COLUMN n SET ESCROW;
----
(ALTER TABLE)

COMMIT;
----
(COMMIT)

SELECT create_statement FROM [SHOW CREATE TABLE fresh];
----
create_statement
CREATE TABLE public.fresh (
    k integer NOT NULL,
    n integer NOT NULL ESCROW,
    CONSTRAINT fresh_pkey PRIMARY KEY (k)
) LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
(SELECT 1)

INSERT INTO fresh VALUES (2, 2);
----
(INSERT 0 1)

UPDATE fresh SET n = n + 1;
----
(UPDATE 2)

SELECT * FROM fresh ORDER BY k;
----
k | n
1 | 2
2 | 3
(SELECT 2)

-- All that is done at once, or nothing.
BEGIN;
----
(BEGIN)

ALTER TABLE fresh ALTER COLUMN n DROP ESCROW;
----
(ALTER TABLE)

ALTER TABLE fresh ADD COLUMN m INT NOT NULL DEFAULT 3 ESCROW;
----
ERROR 55006: column "n" of table "fresh" is becoming an escrow column, or ceases to be one
HINT: SHOW JOBS shows the statement that does it.

INSERT INTO fresh VALUES (3, 3);
----
ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block

COMMIT;
----
(ROLLBACK)

SELECT create_statement FROM [SHOW CREATE TABLE fresh];
----
create_statement
CREATE TABLE public.fresh (
    k integer NOT NULL,
    n integer NOT NULL ESCROW,
    CONSTRAINT fresh_pkey PRIMARY KEY (k)
) LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
(SELECT 1)

SELECT * FROM fresh ORDER BY k;
----
k | n
1 | 2
2 | 3
(SELECT 2)

ALTER TABLE fresh ADD COLUMN o INT NOT NULL DEFAULT 3 ESCROW CHECK (o < 5), ADD CONSTRAINT c CHECK (k > 1);
----
ERROR 0A000: escrow column "o" of table "fresh" can have a CHECK of >=, <= and BETWEEN with constants and NOT NULL numbers of its row only
DETAIL: Constraint "fresh_o_check" says something else.

ALTER TABLE fresh ADD COLUMN o INT NOT NULL DEFAULT 3 ESCROW CHECK (o <= 5), ADD CONSTRAINT c CHECK (k > 1);
----
ERROR 23514: check constraint "c" of relation "fresh" is violated by some row

ALTER TABLE fresh ADD COLUMN o INT NOT NULL DEFAULT 3 ESCROW, ADD COLUMN p INT NOT NULL DEFAULT 4 ESCROW;
----
(ALTER TABLE)

UPDATE fresh SET o = o + 1, p = p - 1 RETURNING *;
----
k | n | o | p
1 | 2 | 4 | 3
2 | 3 | 4 | 3
(UPDATE 2)

ALTER TABLE fresh ALTER COLUMN p DROP ESCROW;
----
(ALTER TABLE)

ALTER TABLE fresh DROP COLUMN o;
----
(ALTER TABLE)

TRUNCATE fresh;
----
(TRUNCATE TABLE)

INSERT INTO fresh VALUES (7, 7);
----
(INSERT 0 1)

SELECT * FROM fresh;
----
k | n | p
7 | 7 | 4
(SELECT 1)

-- A number outside of what its row says: the column is as it was, or gone.
CREATE TABLE limited (k INT PRIMARY KEY, most INT NOT NULL, n INT NOT NULL DEFAULT 3);
----
(CREATE TABLE)

INSERT INTO limited VALUES (1, 10), (2, 2);
----
(INSERT 0 2)

ALTER TABLE limited ADD COLUMN used INT NOT NULL DEFAULT 3 ESCROW CHECK (used <= most);
----
ERROR 23514: check constraint "limited_check" of relation "limited" is violated by some row

SHOW CREATE TABLE limited;
----
table_name | create_statement
limited | CREATE TABLE public.limited (
    k integer NOT NULL,
    most integer NOT NULL,
    n integer NOT NULL DEFAULT 3,
    CONSTRAINT limited_pkey PRIMARY KEY (k)
) LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
(SHOW 1)

BEGIN;
----
(BEGIN)

ALTER TABLE limited ADD CONSTRAINT few CHECK (n <= most);
----
(ALTER TABLE)

ALTER TABLE limited ALTER COLUMN n SET ESCROW;
----
ERROR 0A000: escrow column "n" of table "limited" cannot rest on constraint "few", which the same transaction adds
HINT: Commit the constraint before SET ESCROW, or add it in the same ALTER TABLE.

COMMIT;
----
(ROLLBACK)

SHOW CREATE TABLE limited;
----
table_name | create_statement
limited | CREATE TABLE public.limited (
    k integer NOT NULL,
    most integer NOT NULL,
    n integer NOT NULL DEFAULT 3,
    CONSTRAINT limited_pkey PRIMARY KEY (k)
) LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
(SHOW 1)

UPDATE limited SET n = n + 1 RETURNING *;
----
k | most | n
1 | 10 | 4
2 | 2 | 4
(UPDATE 2)

-- Numbers do not bound each other.
ALTER TABLE limited ADD COLUMN a INT NOT NULL DEFAULT 5 ESCROW, ADD COLUMN b INT NOT NULL DEFAULT 3 ESCROW CHECK (b <= a);
----
ERROR 0A000: escrow column "b" of table "limited" can have a CHECK of >=, <= and BETWEEN with constants and NOT NULL numbers of its row only
DETAIL: Constraint "limited_check" says something else.

ALTER TABLE limited ADD COLUMN b INT NOT NULL DEFAULT 3 ESCROW CHECK (b <= a), ADD COLUMN a INT NOT NULL DEFAULT 5 ESCROW;
----
ERROR 42703: column "a" does not exist

ALTER TABLE limited ALTER COLUMN n SET ESCROW;
----
(ALTER TABLE)

ALTER TABLE limited ALTER COLUMN n SET (escrow.protocol = 'majority');
----
(ALTER TABLE)

ALTER TABLE limited ADD CONSTRAINT bound CHECK (n <= 30);
----
ERROR 0A000: escrow column "n" of table "limited" keeps its bounds while rounds of escrow.protocol = 'majority' may be under way
HINT: ALTER TABLE limited ALTER COLUMN n SET (escrow.protocol = 'any') ends them; 'majority' may be set again afterwards.

ALTER TABLE limited ALTER COLUMN n SET (escrow.protocol = 'any');
----
(ALTER TABLE)

ALTER TABLE limited ADD CONSTRAINT bound CHECK (n <= 30);
----
(ALTER TABLE)

ALTER TABLE limited ALTER COLUMN n SET (escrow.protocol = 'majority');
----
(ALTER TABLE)

UPDATE limited SET n = n + 30 WHERE k = 1;
----
ERROR 23514: new row for relation "limited" violates check constraint "bound"
DETAIL: "n" stays from -2147483648 to 30; it can go down by 2147483652 and up by 26.

BEGIN;
----
(BEGIN)

ALTER TABLE limited ALTER COLUMN n SET (escrow.protocol = 'any');
----
(ALTER TABLE)

ALTER TABLE limited ALTER COLUMN n SET (escrow.protocol = 'majority');
----
(ALTER TABLE)

COMMIT;
----
(COMMIT)

ALTER TABLE limited ALTER COLUMN n DROP ESCROW;
----
ERROR 0A000: escrow column "n" of table "limited" stays one while rounds of escrow.protocol = 'majority' may be under way
HINT: ALTER TABLE limited ALTER COLUMN n SET (escrow.protocol = 'any') ends them; 'majority' may be set again afterwards.

-- A block keeps the column, whose rows it may have written, and not the constraint.
CREATE TABLE blocked (k INT PRIMARY KEY, most INT NOT NULL);
----
(CREATE TABLE)

INSERT INTO blocked VALUES (1, 10), (2, 2);
----
(INSERT 0 2)

BEGIN;
----
(BEGIN)

INSERT INTO blocked VALUES (3, 5);
----
(INSERT 0 1)

ALTER TABLE blocked ADD COLUMN n INT NOT NULL DEFAULT 3 ESCROW CHECK (n <= most);
----
(ALTER TABLE)

COMMIT;
----
ERROR XXA00: transaction committed but schema change aborted with error: (23514): check constraint "blocked_check" of relation "blocked" is violated by some row
DETAIL: The work that a schema change needs after its transaction failed.
HINT: What the transaction did to rows is committed. Changes of the schema that need no further work are, too; look at SHOW JOBS.

SHOW CREATE TABLE blocked;
----
table_name | create_statement
blocked | CREATE TABLE public.blocked (
    k integer NOT NULL,
    most integer NOT NULL,
    n integer NOT NULL DEFAULT 3,
    CONSTRAINT blocked_pkey PRIMARY KEY (k)
) LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
(SHOW 1)

UPDATE blocked SET n = n + 1 RETURNING *;
----
k | most | n
1 | 10 | 4
2 | 2 | 4
3 | 5 | 4
(UPDATE 3)

