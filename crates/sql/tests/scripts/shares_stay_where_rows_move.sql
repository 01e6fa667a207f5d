create database movr primary region "us-east1" regions "europe-west1", "asia-northeast1";
----
(CREATE DATABASE)

-- session: us-east1 movr
CREATE TABLE quotas (org TEXT PRIMARY KEY, used INT8 NOT NULL DEFAULT 0 ESCROW CHECK (used BETWEEN 0 AND most), most INT8 NOT NULL DEFAULT 100);
----
(CREATE TABLE)

INSERT INTO quotas VALUES ('a', 10), ('b', 20), ('c', 30);
----
(INSERT 0 3)

-- session: europe-west1 movr
UPDATE quotas SET used = used + 1 WHERE org = 'a';
----
(UPDATE 1)

ALTER TABLE quotas SET LOCALITY REGIONAL BY ROW;
----
(ALTER TABLE)

SELECT *, crdb_region FROM quotas ORDER BY org;
----
org | used | most | crdb_region
a | 11 | 100 | us-east1
b | 20 | 100 | us-east1
c | 30 | 100 | us-east1
(SELECT 3)

UPDATE quotas SET crdb_region = 'asia-northeast1' WHERE org = 'b';
----
(UPDATE 1)

UPDATE quotas SET used = used + 2 WHERE org = 'b';
----
(UPDATE 1)

INSERT INTO quotas VALUES ('d', 40);
----
(INSERT 0 1)

UPDATE quotas SET most = 60 WHERE org = 'b';
----
(UPDATE 1)

UPDATE quotas SET most = 20 WHERE org = 'b';
----
ERROR 23514: new row for relation "quotas" violates check constraint "quotas_check"
DETAIL: "used" stays from 0 to 20.

UPDATE quotas SET used = 5 WHERE org = 'c';
----
(UPDATE 1)

SHOW ESCROW FOR TABLE quotas;
----
org | column_name | region | part | can_take | can_add
a | used | us-east1 | 11 | 11 | 89
a | used | asia-northeast1 | ∅ | ∅ | ∅
a | used | europe-west1 | ∅ | ∅ | ∅
b | used | us-east1 | 22 | 22 | 38
b | used | asia-northeast1 | ∅ | ∅ | ∅
b | used | europe-west1 | ∅ | ∅ | ∅
c | used | us-east1 | 5 | 5 | 95
c | used | asia-northeast1 | 0 | 0 | 0
c | used | europe-west1 | 0 | 0 | 0
d | used | us-east1 | ∅ | ∅ | ∅
d | used | asia-northeast1 | ∅ | ∅ | ∅
d | used | europe-west1 | 40 | 40 | 60
(SELECT 12)

ALTER TABLE quotas SET LOCALITY GLOBAL;
----
(ALTER TABLE)

UPDATE quotas SET used = used + 3 WHERE org = 'd';
----
(UPDATE 1)

DELETE FROM quotas WHERE org = 'c';
----
(DELETE 1)

INSERT INTO quotas VALUES ('e', 50);
----
(INSERT 0 1)

UPDATE quotas SET most = 99 WHERE org = 'a';
----
(UPDATE 1)

SELECT org, used, most FROM quotas ORDER BY org;
----
org | used | most
a | 11 | 99
b | 22 | 60
d | 43 | 100
e | 50 | 100
(SELECT 4)

ALTER TABLE quotas SET LOCALITY REGIONAL BY TABLE IN "asia-northeast1";
----
(ALTER TABLE)

EXPLAIN UPDATE quotas SET used = used - 3 WHERE org = 'd';
----
QUERY PLAN
Update on quotas (escrow delta, local)
  Index Cond: (org = 'd')
(EXPLAIN)

UPDATE quotas SET used = used - 3 WHERE org = 'd';
----
(UPDATE 1)

UPDATE quotas SET used = 77 WHERE org = 'a';
----
(UPDATE 1)

SELECT org, used, most FROM quotas ORDER BY org;
----
org | used | most
a | 77 | 99
b | 22 | 60
d | 40 | 100
e | 50 | 100
(SELECT 4)

SHOW ESCROW FOR TABLE quotas;
----
org | column_name | region | part | can_take | can_add
a | used | us-east1 | 0 | 0 | 0
a | used | asia-northeast1 | 77 | 77 | 22
a | used | europe-west1 | 0 | 0 | 0
b | used | us-east1 | 22 | 22 | 38
b | used | asia-northeast1 | ∅ | ∅ | ∅
b | used | europe-west1 | ∅ | ∅ | ∅
d | used | us-east1 | ∅ | ∅ | ∅
d | used | asia-northeast1 | ∅ | ∅ | ∅
d | used | europe-west1 | 40 | 40 | 60
e | used | us-east1 | 50 | 50 | 50
e | used | asia-northeast1 | ∅ | ∅ | ∅
e | used | europe-west1 | ∅ | ∅ | ∅
(SELECT 12)

ALTER TABLE quotas DROP CONSTRAINT quotas_check, ADD CONSTRAINT wide CHECK (used BETWEEN -5 AND 200);
----
(ALTER TABLE)

UPDATE quotas SET used = used - 80 WHERE org = 'a';
----
(UPDATE 1)

SELECT org, used, most FROM quotas ORDER BY org;
----
org | used | most
a | -3 | 99
b | 22 | 60
d | 40 | 100
e | 50 | 100
(SELECT 4)

ALTER TABLE quotas ALTER COLUMN used DROP ESCROW;
----
(ALTER TABLE)

ALTER TABLE quotas SET LOCALITY REGIONAL BY ROW;
----
(ALTER TABLE)

ALTER TABLE quotas ALTER COLUMN used SET ESCROW;
----
(ALTER TABLE)

UPDATE quotas SET used = used + 1 RETURNING org, used, most;
----
org | used | most
d | 41 | 100
e | 51 | 100
b | 23 | 60
a | -2 | 99
(UPDATE 4)

SHOW ESCROW FOR TABLE quotas;
----
org | column_name | region | part | can_take | can_add
a | used | asia-northeast1 | ∅ | ∅ | ∅
a | used | europe-west1 | ∅ | ∅ | ∅
a | used | us-east1 | -2 | 3 | 202
b | used | asia-northeast1 | 23 | 28 | 177
b | used | europe-west1 | ∅ | ∅ | ∅
b | used | us-east1 | ∅ | ∅ | ∅
d | used | asia-northeast1 | ∅ | ∅ | ∅
d | used | europe-west1 | 41 | 46 | 159
d | used | us-east1 | ∅ | ∅ | ∅
e | used | asia-northeast1 | ∅ | ∅ | ∅
e | used | europe-west1 | 51 | 56 | 149
e | used | us-east1 | ∅ | ∅ | ∅
(SELECT 12)

