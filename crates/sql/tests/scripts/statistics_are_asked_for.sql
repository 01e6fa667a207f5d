-- postgres: same
CREATE TABLE t (a INT PRIMARY KEY, b TEXT, c INT);
----
(CREATE TABLE)

CREATE VIEW v AS SELECT a FROM t;
----
(CREATE VIEW)

INSERT INTO t SELECT i, 'x' || (i % 5), NULLIF(i % 3, 0) FROM generate_series(1, 900) i;
----
(INSERT 0 900)

SELECT reltuples FROM pg_class WHERE oid = 't'::regclass;
----
reltuples
-1
(SELECT 1)

ANALYZE t;
----
(ANALYZE)

SELECT reltuples FROM pg_class WHERE oid = 't'::regclass;
----
reltuples
900
(SELECT 1)

ANALYZE VERBOSE t;
----
(ANALYZE)

ANALYSE t (a, c), t (b);
----
(ANALYZE)

ANALYZE (VERBOSE, SKIP_LOCKED off) t (b);
----
(ANALYZE)

VACUUM ANALYZE t;
----
(VACUUM)

VACUUM (ANALYZE, VERBOSE) t (a);
----
(VACUUM)

VACUUM t;
----
(VACUUM)

ANALYZE v;
----
(ANALYZE)

ANALYZE nothing;
----
ERROR 42P01: relation "nothing" does not exist

ANALYZE t (nothing);
----
ERROR 42703: column "nothing" of relation "t" does not exist

ANALYZE t (a, b, a);
----
ERROR 42701: column "a" of relation "t" appears more than once

ANALYZE (nothing) t;
----
ERROR 42601: unrecognized ANALYZE option "nothing"

ANALYZE t b;
----
ERROR 42601: syntax error at or near "b"
POSITION: 11

BEGIN;
----
(BEGIN)

INSERT INTO t VALUES (1000, 'y', 1);
----
(INSERT 0 1)

ANALYZE t (a);
----
(ANALYZE)

ROLLBACK;
----
(ROLLBACK)

DROP VIEW v;
----
(DROP VIEW)

DROP TABLE t;
----
(DROP TABLE)

