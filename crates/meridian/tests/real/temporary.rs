//! Statements that have no room in memory, and their files.

use crate::client::PgClient;
use crate::process::{Node, Spec};
use meridian_workload::{Client, Value};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Numbers, each with a long text. A statement has no room in memory for all of them.
const WIDE: &str = "(SELECT g, repeat('x', 400) || g AS pad FROM generate_series(1, 340000) AS g)";
const PATIENCE: Duration = Duration::from_secs(60);
/// Each number up to 280,000 once, with so much beside it that a statement holds half of them.
const ROWS: &str =
    "(SELECT (g::INT8 * 7919) % 280001 AS k, repeat('x', 400) || g AS pad FROM generate_series(1, 280000) AS g) AS r";

async fn connect(node: &Node) -> PgClient {
    PgClient::connect(&node.sql_addr, "root", "defaultdb").await.expect("a connection")
}

async fn numbers(client: &mut PgClient, sql: &str) -> Vec<i64> {
    let rows = client.query(sql, &[]).await.expect("an answer").rows;
    let number = |value: &Value| match value {
        Value::Int(n) => *n,
        Value::Text(text) => text.parse().expect("a number"),
        other => panic!("a number, found {other:?}"),
    };
    rows.iter().flat_map(|row| row.iter().map(number)).collect()
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_statements_use_temporary_files_which_go_with_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let spec = Spec::alone(&dir.path().join("node"));
    let folder = dir.path().join("node").join("temporary");
    let node = spec.start().await;
    let mut client = connect(&node).await;

    let sorted = format!("SELECT k, length(pad) FROM {ROWS} ORDER BY k, pad LIMIT 2 OFFSET 250000");
    let found = numbers(&mut client, &sorted).await;
    assert_eq!((found[0], found[2]), (250_001, 250_002));
    until("the file to go", || files(&folder) == 0).await;

    client.execute("SET temp_file_limit = '1MB'").await.expect("a setting");
    let e = client.query(&sorted, &[]).await.expect_err("it needs more");
    assert_eq!(e.sqlstate(), "53400", "{e}");
    client.execute("RESET temp_file_limit").await.expect("a setting");

    for (query, expected) in [
        ("SELECT count(*), sum(n)::INT8 FROM (SELECT pad, count(*) AS n FROM {} AS a GROUP BY pad) AS g", [340_000, 340_000]),
        ("SELECT count(*), sum(a.g)::INT8 FROM {} AS a JOIN {} AS b USING (pad)", [340_000, 57_800_170_000]),
        ("SELECT count(*), min(length(pad)) FROM (SELECT DISTINCT pad FROM {} AS a) AS d", [340_000, 401]),
        ("SELECT count(*), 0 FROM (SELECT pad FROM {} AS a EXCEPT SELECT pad FROM {} AS b WHERE g > 9) AS e", [9, 0]),
    ] {
        let query = query.replace("{}", WIDE);
        let mut busy = connect(&node).await;
        let running = tokio::spawn(async move { numbers(&mut busy, &query).await });
        until("a file", || files(&folder) > 0 || running.is_finished()).await;
        assert!(!running.is_finished(), "it had room");
        assert_eq!(running.await.expect("an answer"), expected);
    }

    // A process that is killed leaves its files, and the next one removes them.
    let query = format!("SELECT k FROM {ROWS} ORDER BY pad");
    let mut busy = connect(&node).await;
    let running = tokio::spawn(async move { busy.query(&query, &[]).await.map(drop) });
    until("a file", || files(&folder) > 0).await;
    drop(node);
    assert!(running.await.expect("no panic").is_err() || files(&folder) == 0);
    let node = spec.start().await;
    assert_eq!(files(&folder), 0);
    assert_eq!(numbers(&mut connect(&node).await, "SELECT 1").await, [1]);
}
