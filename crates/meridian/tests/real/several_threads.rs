//! Large scans, which several threads read.

use crate::client::PgClient;
use crate::cluster::{self, sql};
use crate::process::{Node, Spec};
use meridian_workload::Client;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// Enough for several pieces.
const ROWS: u64 = 200_000;

/// A node with a large table that is counted. `None`: this machine has one core.
async fn start(dir: &Path) -> Option<Node> {
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        println!("skipped: a machine with one core reads nothing on several threads");
        return None;
    }
    let node = Spec::alone(&dir.join("node")).start().await;
    sql(&node, "CREATE TABLE t (id INT8 PRIMARY KEY, n INT8, v TEXT)").await;
    let insert = format!("INSERT INTO t SELECT i, i % 1000, 'v' || i FROM generate_series(1, {ROWS}) i");
    sql(&node, &insert).await;
    sql(&node, "ANALYZE t").await;
    Some(node)
}

/// How a statement reads its tables.
async fn explained(node: &Node, statement: &str) -> String {
    sql(node, &format!("EXPLAIN ANALYZE {statement}")).await.join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_have_all_rows_in_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(node) = start(dir.path()).await else { return };
    let of_all = (1..=ROWS).sum::<u64>().to_string();
    let sum = "SELECT sum(id)::INT8 FROM t WHERE v LIKE 'v%'";
    assert!(explained(&node, sum).await.contains("Read at Once"), "{}", explained(&node, sum).await);
    assert_eq!(sql(&node, sum).await, [of_all]);
    // A condition that fails for one row, rows that are joined, and a range of the key.
    let mut client = PgClient::connect(&node.sql_addr, "root", "defaultdb").await.expect("a connection");
    let e = client.query("SELECT count(*) FROM t WHERE id / (id - 150007) = 0", &[]).await.expect_err("it divides by zero");
    assert_eq!(e.sqlstate(), "22012", "{e}");
    let join = "SELECT count(*), sum(t.id)::INT8 FROM t JOIN (VALUES (5), (6)) AS w (n) ON w.n = t.n";
    let per_value: u64 = (0..ROWS / 1000).map(|i| i * 1000).sum();
    assert_eq!(sql(&node, join).await, ["400".to_string(), (2 * per_value + 200 * 11).to_string()]);
    assert_eq!(sql(&node, "SELECT count(*) FROM t WHERE id > 1000 AND id <= 150000").await, ["149000"]);
    // Without an order of its own a statement gives the rows in that of the key.
    let ordered = "SELECT count(*) FROM (SELECT id - lag(id) OVER () AS d FROM t WHERE n < 900) AS s WHERE d < 0";
    assert_eq!(sql(&node, ordered).await, ["0"]);
    assert_eq!(sql(&node, "SELECT id FROM t WHERE n = 7 LIMIT 2").await, ["7", "1007"]);
    // Of a statement that ends early nothing goes on.
    for _ in 0..50 {
        assert_eq!(sql(&node, "SELECT EXISTS (SELECT 1 FROM t WHERE v <> 'v1')").await, ["t"]);
    }
}

/// Conditions that take long end with their statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_interrupted_waits_for_no_page() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(node) = start(dir.path()).await else { return };
    let mut client = PgClient::connect(&node.sql_addr, "root", "defaultdb").await.expect("a connection");
    client.execute("SET statement_timeout = '200ms'").await.expect("a setting");
    for _ in 0..3 {
        let began = Instant::now();
        let e =
            client.query("SELECT count(*) FROM t WHERE md5(repeat(v, 100000)) = 'none'", &[]).await.expect_err("it takes long");
        assert_eq!(e.sqlstate(), "57014", "{e}");
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
    client.execute("SET statement_timeout = 0").await.expect("a setting");
    assert_eq!(sql(&node, "SELECT count(*) FROM t").await, [ROWS.to_string()]);
}

/// Rows without a partner in a join above are left out where they are read: by one join, and by
/// several, of numbers and texts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_find_all_partners() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(node) = start(dir.path()).await else { return };
    sql(&node, "CREATE TABLE w (n INT4 PRIMARY KEY, v TEXT, d DECIMAL)").await;
    sql(&node, "INSERT INTO w SELECT i * 3, 'v' || i * 3, i FROM generate_series(1, 40) i").await;
    sql(&node, "ANALYZE w").await;
    // Sums, and the same where the key is computed, so that no scan knows it.
    for (from, computed) in [
        ("t JOIN w ON w.n = t.n", "t JOIN w ON w.n = t.n + 0"),
        ("t JOIN w ON w.v = t.v", "t JOIN w ON w.v = t.v || ''"),
        ("t JOIN w ON w.n = t.n AND w.v = t.v", "t JOIN w ON w.n = t.n + 0 AND w.v = t.v || ''"),
        ("t JOIN w ON w.n = t.n JOIN w AS x ON x.v = t.v", "t JOIN w ON w.n = t.n + 0 JOIN w AS x ON x.v = t.v || ''"),
        ("t LEFT JOIN w ON w.v = t.v JOIN w AS x ON x.n = t.n", "t LEFT JOIN w ON w.v = t.v || '' JOIN w AS x ON x.n = t.n + 0"),
        ("t FULL JOIN w ON w.v = t.v JOIN w AS x ON x.n = t.n", "t FULL JOIN w ON w.v = t.v || '' JOIN w AS x ON x.n = t.n + 0"),
        ("(SELECT * FROM t WHERE n IN (SELECT n FROM w)) AS t", "(SELECT * FROM t WHERE n + 0 IN (SELECT n FROM w)) AS t"),
        (
            "t JOIN w ON w.n = t.n WHERE NOT EXISTS (SELECT 1 FROM w AS x WHERE x.v = t.v)",
            "t JOIN w ON w.n = t.n + 0 WHERE NOT EXISTS (SELECT 1 FROM w AS x WHERE x.v = t.v || '')",
        ),
    ] {
        let of = async |from: &str| sql(&node, &format!("SELECT count(*), coalesce(sum(t.id), 0)::INT8 FROM {from}")).await;
        assert_eq!(of(from).await, of(computed).await, "{from}");
        assert!(of(from).await[0] != "0", "{from}");
    }
}

/// What they have read is certified: of two transactions that each write what the other has read,
/// one fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_they_have_read_is_certified() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(node) = start(dir.path()).await else { return };
    for round in 0..4 {
        let mut clients = Vec::new();
        for _ in 0..2 {
            let client = PgClient::connect(&node.sql_addr, "root", "defaultdb").await.expect("a connection");
            clients.push(client);
        }
        for client in &mut clients {
            client.execute("BEGIN ISOLATION LEVEL SERIALIZABLE").await.expect("a block");
            client.query("SELECT sum(n)::INT8 FROM t WHERE v LIKE 'v%'", &[]).await.expect("a sum");
        }
        for (n, client) in (0..).zip(&mut clients) {
            let update = format!("UPDATE t SET n = n + 1 WHERE id = {}", 1_000 + 100_000 * n + round);
            client.execute(&update).await.expect("nobody else has written it");
        }
        let mut committed = 0;
        for client in &mut clients {
            match client.execute("COMMIT").await {
                Ok(_) => committed += 1,
                Err(e) => assert_eq!(e.sqlstate(), "40001", "{e}"),
            }
        }
        assert_eq!(committed, 1, "in round {round}");
    }
}

/// While they read, rows change and groups get new primaries: the sums are those of one moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_see_one_moment() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(node) = start(dir.path()).await else { return };
    let addr = node.sql_addr.clone();
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let ends = is_over.clone();
    let writer = tokio::spawn(async move {
        let mut moved = 0_u64;
        while !ends.load(std::sync::atomic::Ordering::Relaxed) {
            // What one row has less, another one far away has more.
            let (from, to) = (1 + moved * 7919 % ROWS, 1 + (moved * 7919 + ROWS / 2) % ROWS);
            let statement = format!("UPDATE t SET n = n + CASE id WHEN {from} THEN -1 ELSE 1 END WHERE id IN ({from}, {to})");
            cluster::try_sql_at(&addr, "defaultdb", &statement).await;
            moved += 1;
        }
        moved
    });
    let total = (ROWS / 1000 * (0..1000).sum::<u64>()).to_string();
    for _ in 0..20 {
        assert_eq!(sql(&node, "SELECT sum(n)::INT8 FROM t WHERE v LIKE 'v%'").await, std::slice::from_ref(&total));
    }
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(writer.await.expect("no panic") > 0);
}
