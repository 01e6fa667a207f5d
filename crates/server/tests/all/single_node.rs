use crate::support::{TestNode, rows, session, start};
use meridian_server::MachineRuntime;
use meridian_sql::session::Shared;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// A node that stops inside a living process leaves nothing behind that holds its directory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_alone_is_a_whole_database_and_starts_again_in_the_same_process() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path(), "eu", "a", "127.0.0.1:0", &[]).await.unwrap();
    let mut s = session(&node, &Shared::new(), 1).await;
    rows(&mut s, "CREATE TABLE t (id int PRIMARY KEY, name text)").await;
    rows(&mut s, "INSERT INTO t VALUES (1, 'one'), (2, 'two')").await;
    rows(&mut s, "UPDATE t SET name = 'zwei' WHERE id = 2").await;
    let names = [[Some("one".into())], [Some("zwei".into())]];
    assert_eq!(rows(&mut s, "SELECT name FROM t ORDER BY id").await, names);
    drop(s);
    node.shutdown().await;
    drop(node);
    let node = start_again(dir.path()).await;
    let mut s = session(&node, &Shared::new(), 1).await;
    assert_eq!(rows(&mut s, "SELECT name FROM t ORDER BY id").await, names);
    drop(s);
    node.shutdown().await;
}

/// One of three: the others, which go on, hold connections to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_stops_lets_its_directory_go_while_the_others_live() {
    let dirs: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let first = start(dirs[0].path(), "eu", "a", "127.0.0.1:0", &[]).await.unwrap();
    let join = [first.addr()];
    let second = start(dirs[1].path(), "eu", "b", "127.0.0.1:0", &join).await.unwrap();
    let third = start(dirs[2].path(), "eu", "c", "127.0.0.1:0", &join).await.unwrap();
    third.shutdown().await;
    drop(third);
    released(dirs[2].path()).await;
    second.shutdown().await;
    first.shutdown().await;
}

/// Waits, not long, until nobody holds a data directory: the threads that write end a moment after
/// the node does.
async fn released(dir: &Path) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match MachineRuntime::open(dir) {
            Ok(_) => return,
            Err(e) => assert!(Instant::now() < deadline, "{e}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn start_again(dir: &Path) -> TestNode {
    released(dir).await;
    start(dir, "eu", "a", "127.0.0.1:0", &[]).await.unwrap()
}

/// `AS OF SYSTEM TIME`, in its forms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_past_is_read_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path(), "eu", "a", "127.0.0.1:0", &[]).await.unwrap();
    let shared = Shared::new();
    let mut s = session(&node, &shared, 1).await;
    rows(&mut s, "CREATE TABLE t (id int PRIMARY KEY, name text)").await;
    rows(&mut s, "INSERT INTO t VALUES (1, 'one'), (2, 'two')").await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let before = rows(&mut s, "SELECT clock_timestamp()::text").await[0][0].clone().unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    rows(&mut s, "UPDATE t SET name = 'zwei' WHERE id = 2").await;
    rows(&mut s, "DELETE FROM t WHERE id = 1").await;
    // An index that did not exist then knows nothing of then; nor does a column.
    rows(&mut s, "CREATE INDEX by_name ON t (name)").await;
    rows(&mut s, "ALTER TABLE t ADD COLUMN extra int DEFAULT 7").await;

    let old = |rows: Vec<Vec<Option<String>>>| rows.concat().into_iter().map(Option::unwrap).collect::<Vec<_>>().join(" ");
    let past = format!("SELECT * FROM t ORDER BY id AS OF SYSTEM TIME '{before}'");
    assert_eq!(old(rows(&mut s, &past).await), "1 one 2 two");
    let by_name = format!("SELECT id FROM t AS OF SYSTEM TIME '{before}' WHERE name = 'two'");
    assert_eq!(old(rows(&mut s, &by_name).await), "2");
    assert_eq!(old(rows(&mut s, "SELECT * FROM t").await), "2 zwei 7");
    assert_eq!(old(rows(&mut s, "SELECT * FROM t AS OF SYSTEM TIME with_max_staleness('10s')").await), "2 zwei 7");
    assert_eq!(old(rows(&mut s, "SELECT count(*) FROM t AS OF SYSTEM TIME with_min_timestamp(now(), true)").await), "1");

    rows(&mut s, &format!("PREPARE old AS SELECT name FROM t AS OF SYSTEM TIME '{before}' WHERE id = $1")).await;
    assert_eq!(old(rows(&mut s, "EXECUTE old (2)").await), "two");
    rows(&mut s, &format!("BEGIN AS OF SYSTEM TIME '{before}'")).await;
    assert_eq!(old(rows(&mut s, "SELECT name FROM t WHERE id = 1").await), "one");
    assert_eq!(old(rows(&mut s, "SELECT name FROM t WHERE id = 2").await), "two");
    let state = |e: meridian_base::Error| e.sqlstate().to_string();
    assert_eq!(s.query_text("DELETE FROM t").await.map_err(state).err().as_deref(), Some("25006"));
    rows(&mut s, "ROLLBACK").await;
    rows(&mut s, "BEGIN").await;
    rows(&mut s, &format!("SET TRANSACTION AS OF SYSTEM TIME '{before}'")).await;
    assert_eq!(old(rows(&mut s, "SELECT count(*) FROM t").await), "2");
    rows(&mut s, "COMMIT").await;

    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(old(rows(&mut s, "SELECT count(*) FROM t AS OF SYSTEM TIME follower_read_timestamp()").await), "1");
    // By default, for who says that it only reads: what is new is not seen (unless the machine
    // takes half a second for it).
    rows(&mut s, "SET default_transaction_use_follower_reads = on").await;
    let mut seen = [0, 0];
    for id in 3..13 {
        rows(&mut s, &format!("INSERT INTO t VALUES ({id}, 'new')")).await;
        assert_eq!(old(rows(&mut s, "SELECT count(*) FROM t").await), (id - 1).to_string());
        let query = format!("SELECT count(*) FROM t WHERE id = {id}");
        rows(&mut s, "BEGIN READ ONLY").await;
        seen[0] += old(rows(&mut s, &query).await).parse::<i32>().unwrap();
        rows(&mut s, "COMMIT").await;
        rows(&mut s, "SET default_transaction_read_only = on").await;
        seen[1] += old(rows(&mut s, &query).await).parse::<i32>().unwrap();
        rows(&mut s, "SET default_transaction_read_only = off").await;
    }
    assert!(seen[0] < 10 && seen[1] < 10, "{seen:?} of 10");
    rows(&mut s, "SET default_transaction_use_follower_reads = off").await;
    for (sql, sqlstate) in [
        ("SELECT * FROM t AS OF SYSTEM TIME '2999-01-01'", "22023"),
        ("SELECT * FROM t AS OF SYSTEM TIME '+1s'", "22023"),
        ("SELECT * FROM t AS OF SYSTEM TIME '+178000000 years'", "22023"),
        ("SELECT * FROM t AS OF SYSTEM TIME with_min_timestamp('infinity')", "22023"),
        ("SELECT * FROM t AS OF SYSTEM TIME 'soon'", "22007"),
        ("SELECT * FROM t AS OF SYSTEM TIME NULL", "22004"),
        ("SELECT * FROM t AS OF SYSTEM TIME with_max_staleness('-1s')", "22023"),
        // Before the cluster was founded.
        ("SELECT * FROM t AS OF SYSTEM TIME '2001-01-01'", "22023"),
        ("SELECT * FROM t FOR UPDATE AS OF SYSTEM TIME '-200ms'", "25006"),
        ("INSERT INTO t AS OF SYSTEM TIME '-200ms' VALUES (9, 'x')", "25006"),
        ("CREATE VIEW v AS SELECT * FROM t AS OF SYSTEM TIME '-200ms'", "0A000"),
        ("SELECT 1; SELECT * FROM t AS OF SYSTEM TIME '-1s'", "25001"),
    ] {
        assert_eq!(s.query_text(sql).await.map_err(state).err().as_deref(), Some(sqlstate), "{sql}");
    }
    // What is prepared is planned as it was then, too.
    rows(&mut s, "ALTER TABLE t RENAME COLUMN name TO title").await;
    rows(&mut s, &format!("PREPARE renamed AS SELECT name FROM t AS OF SYSTEM TIME '{before}' WHERE id = $1")).await;
    assert_eq!(old(rows(&mut s, "EXECUTE renamed (1)").await), "one");
    rows(&mut s, "DROP TABLE t").await;
    rows(&mut s, "CREATE TABLE t (id text PRIMARY KEY)").await;
    rows(&mut s, &format!("PREPARE dropped AS SELECT * FROM t AS OF SYSTEM TIME '{before}' WHERE id = $1")).await;
    assert_eq!(old(rows(&mut s, "EXECUTE dropped (2)").await), "2 two");
    assert_eq!(old(rows(&mut s, "EXECUTE old (1)").await), "one");
    drop(s);
    node.shutdown().await;
}

/// The SQLSTATE of a statement that must fail.
async fn refused(session: &mut Box<dyn meridian_sql::session::ClientSession>, sql: &str) -> String {
    session.query_text(sql).await.map(|r| format!("{r:?}")).expect_err(sql).sqlstate().to_string()
}

/// PostgreSQL manual, 13.3.2, and `ROLLBACK TO SAVEPOINT`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_locked_as_strongly_and_as_long_as_needed() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path(), "eu", "a", "127.0.0.1:0", &[]).await.unwrap();
    let shared = Shared::new();
    let (mut a, mut b) = (session(&node, &shared, 1).await, session(&node, &shared, 2).await);
    rows(&mut a, "CREATE TABLE t (id int PRIMARY KEY, name text, v int, other int, INDEX (v))").await;
    rows(&mut a, "INSERT INTO t SELECT g, 'n' || g, 0, 0 FROM generate_series(1, 20) g").await;
    let lock = |id: u32, how: &str| format!("SELECT id FROM t WHERE id = {id} FOR {how} NOWAIT");

    // A condition that no index answers, or that an index answers in part: only rows that match are
    // locked.
    for change in ["UPDATE t SET id = id + 100 WHERE name = 'n7'", "DELETE FROM t WHERE v = 0 AND name = 'n7'"] {
        rows(&mut a, &format!("BEGIN; {change}")).await;
        for id in (1..=20).filter(|id| *id != 7) {
            rows(&mut b, &lock(id, "UPDATE")).await;
        }
        assert_eq!(refused(&mut b, &lock(7, "KEY SHARE")).await, "55P03", "{change}");
        rows(&mut a, "ROLLBACK").await;
        rows(&mut b, &lock(7, "UPDATE")).await;
    }
    rows(&mut a, "BEGIN; SELECT id FROM t WHERE id = 7 AND name = 'other' FOR UPDATE").await;
    rows(&mut b, &lock(7, "UPDATE")).await;
    rows(&mut a, "ROLLBACK").await;
    // Nor is anybody waited for whose row does not match.
    rows(&mut a, "BEGIN; SELECT id FROM t WHERE id = 7 FOR UPDATE").await;
    rows(&mut b, "SET lock_timeout = '2s'; UPDATE t SET other = 1 WHERE name = 'n8'").await;
    assert_eq!(refused(&mut b, "UPDATE t SET other = 1 WHERE name = 'n7'").await, "55P03");
    let free = rows(&mut b, "SELECT id FROM t WHERE name IN ('n6', 'n7', 'n8') ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED").await;
    assert_eq!(free, [[Some("6".to_string())], [Some("8".to_string())]]);
    rows(&mut a, "COMMIT").await;

    // Who keeps the keys and who needs them kept do not wait for each other.
    rows(&mut a, "BEGIN; UPDATE t SET other = 2 WHERE id = 3").await;
    rows(&mut b, &lock(3, "KEY SHARE")).await;
    for stronger in ["SHARE", "NO KEY UPDATE", "UPDATE"] {
        assert_eq!(refused(&mut b, &lock(3, stronger)).await, "55P03", "{stronger}");
    }
    rows(&mut a, "COMMIT").await;
    rows(&mut a, &format!("BEGIN; {}", lock(3, "SHARE"))).await;
    rows(&mut b, &lock(3, "SHARE")).await;
    assert_eq!(refused(&mut b, &lock(3, "NO KEY UPDATE")).await, "55P03");
    rows(&mut a, "COMMIT").await;

    // What was locked after a savepoint is let go with it; what was locked before stays.
    rows(&mut a, &format!("BEGIN; {}", lock(4, "UPDATE"))).await;
    rows(&mut a, "SAVEPOINT s; UPDATE t SET other = 3 WHERE id IN (4, 5); UPDATE t SET other = 3 WHERE name = 'n6'").await;
    for id in [4, 5, 6] {
        assert_eq!(refused(&mut b, &lock(id, "UPDATE")).await, "55P03", "{id}");
    }
    rows(&mut a, "ROLLBACK TO s").await;
    rows(&mut b, &lock(5, "UPDATE")).await;
    rows(&mut b, &lock(6, "UPDATE")).await;
    assert_eq!(refused(&mut b, &lock(4, "UPDATE")).await, "55P03");
    rows(&mut a, "COMMIT").await;
    assert_eq!(rows(&mut a, "SELECT sum(other) FROM t WHERE id IN (4, 5, 6)").await, [[Some("0".to_string())]]);

    // Who waits for a row that then matches no more goes on without it.
    rows(&mut a, "BEGIN; UPDATE t SET name = 'gone' WHERE id = 9").await;
    let waits = tokio::spawn(async move {
        let changed = rows(&mut b, "SET lock_timeout = 0; UPDATE t SET other = 9 WHERE name = 'n9' RETURNING id").await;
        (b, changed)
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    rows(&mut a, "COMMIT").await;
    let (b, changed) = waits.await.unwrap();
    assert!(changed.is_empty(), "{changed:?}");
    drop((a, b));
    node.shutdown().await;
}

/// Nobody hands out a number that was drawn before `ALTER SEQUENCE` or `setval` was acknowledged,
/// on whichever node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drawn_numbers_end_with_what_was_said_of_the_sequence() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path(), "eu", "a", "127.0.0.1:0", &[]).await.unwrap();
    // Two registries are two nodes, as far as drawn blocks go.
    let (mut a, mut b) = (session(&node, &Shared::new(), 1).await, session(&node, &Shared::new(), 2).await);
    let one = |rows: Vec<Vec<Option<String>>>| rows[0][0].clone().unwrap().parse::<i64>().unwrap();
    rows(&mut a, "CREATE SEQUENCE q").await;
    assert_eq!(one(rows(&mut a, "SELECT nextval('q')").await), 1);
    assert_eq!(one(rows(&mut b, "SELECT nextval('q')").await), 33);
    // A block that began before does not see the old one either.
    rows(&mut b, "BEGIN; SELECT 1 FROM pg_class LIMIT 1").await;
    rows(&mut a, "ALTER SEQUENCE q INCREMENT 1000").await;
    let drawn = one(rows(&mut b, "SELECT nextval('q')").await);
    assert_eq!(drawn, 1033, "b gives back what is left of its block, the last one drawn");
    rows(&mut b, "COMMIT").await;
    let drawn = one(rows(&mut a, "SELECT nextval('q')").await);
    assert!(drawn > 1033 && drawn % 1000 == 33, "{drawn}");
    rows(&mut a, "ALTER SEQUENCE q MAXVALUE 1500 START 1 RESTART WITH 5 INCREMENT 1").await;
    let (x, y) = (one(rows(&mut a, "SELECT nextval('q')").await), one(rows(&mut b, "SELECT nextval('q')").await));
    assert_eq!((x, y), (5, 37));
    rows(&mut a, "DROP SEQUENCE q; CREATE SEQUENCE q START 7").await;
    assert_eq!(one(rows(&mut b, "SELECT nextval('q')").await), 7);
    drop((a, b));
    node.shutdown().await;
}

/// A row is locked if it is in the result: above joins and sorts, below limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_locked_that_are_in_the_result() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path(), "eu", "a", "127.0.0.1:0", &[]).await.unwrap();
    let shared = Shared::new();
    let (mut a, mut b) = (session(&node, &shared, 1).await, session(&node, &shared, 2).await);
    rows(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int, k int)").await;
    rows(&mut a, "INSERT INTO t SELECT g, (g * 7) % 20, g % 5 FROM generate_series(0, 19) g").await;
    let id = |id: u32| vec![Some(id.to_string())];
    let free = "SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED";

    // A join, and a sort below a limit.
    let join = "SELECT x.id FROM t x JOIN t y ON x.id = y.v WHERE y.k = 4 AND x.id < 16 ORDER BY x.id FOR UPDATE OF x";
    let sort = "SELECT id FROM t WHERE k = 2 ORDER BY v DESC LIMIT 2 FOR UPDATE";
    for (text, held) in [(join, [3, 8, 13].as_slice()), (sort, [17, 2].as_slice())] {
        let taken = rows(&mut a, &format!("BEGIN; {text}")).await;
        assert_eq!(taken, held.iter().map(|h| id(*h)).collect::<Vec<_>>(), "{text}");
        let others: Vec<_> = (0..20).filter(|i| !held.contains(i)).map(id).collect();
        assert_eq!(rows(&mut b, free).await, others, "{text}");
        rows(&mut a, "ROLLBACK").await;
    }

    // Workers of a queue take one job each, and nobody is refused when others finish first.
    let job = "SELECT id FROM t WHERE k = 3 ORDER BY v DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED";
    let mut workers = Vec::new();
    for (number, expected) in (3..).zip([8, 13, 18, 3]) {
        let mut worker = session(&node, &shared, number).await;
        assert_eq!(rows(&mut worker, &format!("BEGIN; {job}")).await, [id(expected)]);
        workers.push((worker, expected));
    }
    assert!(rows(&mut b, job).await.is_empty());
    assert_eq!(refused(&mut b, &job.replace("SKIP LOCKED", "NOWAIT")).await, "55P03");
    for (mut worker, job) in workers.into_iter().rev() {
        rows(&mut worker, &format!("UPDATE t SET k = 100 WHERE id = {job}; COMMIT")).await;
    }

    // Who waits for a row gets what it has become, or the next one if it matches no more.
    for (change, expected) in [("v = 1000", 17), ("v = -1", 2)] {
        rows(&mut a, &format!("BEGIN; UPDATE t SET {change} WHERE id = 17")).await;
        let waits = tokio::spawn(async move {
            let taken = rows(&mut b, "BEGIN; SELECT id FROM t WHERE k = 2 ORDER BY v DESC LIMIT 1 FOR UPDATE").await;
            rows(&mut b, "ROLLBACK").await;
            (b, taken)
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!waits.is_finished());
        rows(&mut a, "COMMIT").await;
        let taken;
        (b, taken) = waits.await.unwrap();
        assert_eq!(taken, [id(expected)], "{change}");
        assert_eq!(rows(&mut a, free).await.len(), 20);
    }
    drop((a, b));
    node.shutdown().await;
}
