use crate::support::{TestNode, rows, session, start};
use meridian_node::session::Shared;
use meridian_server::MachineRuntime;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// A node that stops inside a living process leaves nothing behind that holds its directory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_alone_is_a_whole_database_and_starts_again_in_the_same_process() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path(), "eu", "a", "127.0.0.1:0", &[]).await.unwrap();
    let mut s = session(&node, &Shared::new(), 1);
    rows(&mut s, "CREATE TABLE t (id int PRIMARY KEY, name text)").await;
    rows(&mut s, "INSERT INTO t VALUES (1, 'one'), (2, 'two')").await;
    rows(&mut s, "UPDATE t SET name = 'zwei' WHERE id = 2").await;
    let names = [[Some("one".into())], [Some("zwei".into())]];
    assert_eq!(rows(&mut s, "SELECT name FROM t ORDER BY id").await, names);
    drop(s);
    node.shutdown().await;
    drop(node);
    let node = start_again(dir.path()).await;
    let mut s = session(&node, &Shared::new(), 1);
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

/// Waits, not long, until nobody holds a data directory: the threads that write end a moment after the node does.
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
    let mut s = session(&node, &shared, 1);
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
    // By default, for who says that it only reads: what is new is not seen (unless the machine takes half a second for it).
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
    drop(s);
    node.shutdown().await;
}
