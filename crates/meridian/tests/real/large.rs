//! Transactions that write more than one entry of the log holds, on three processes: from the
//! primary's node and from others, while nodes are killed.

use crate::cluster::{self, sql, try_sql_at};
use crate::process::Node;
use std::time::Duration;

/// A row has 13 KB, so this is 26 MB: seven parts.
const ROWS: u64 = 2_000;

/// Rows with numbers from `first` on.
fn insert(first: u64) -> String {
    let last = first + ROWS - 1;
    format!("INSERT INTO large SELECT i, 0, repeat(md5(i::text), 400) FROM generate_series({first}, {last}) i")
}

async fn start(dir: &std::path::Path) -> (Vec<crate::process::Spec>, Vec<Option<Node>>) {
    let specs = cluster::specs(dir, 3);
    let nodes: Vec<_> = cluster::start_all(&specs).await.into_iter().map(Some).collect();
    cluster::settled(&nodes.iter().flatten().collect::<Vec<_>>()).await;
    sql(nodes[0].as_ref().expect("it runs"), "CREATE TABLE IF NOT EXISTS large (id INT8 PRIMARY KEY, n INT8, v TEXT)").await;
    (specs, nodes)
}

/// How many rows there are, of how many transactions, and the sum of `n`, the same on all nodes.
async fn expect(nodes: &[Option<Node>], rows: u64, sum: u64) {
    for node in nodes.iter().flatten() {
        let seen = sql(node, "SELECT count(*), coalesce(sum(n), 0)::INT8, coalesce(sum(length(v)), 0)::INT8 FROM large").await;
        assert_eq!(seen, [rows.to_string(), sum.to_string(), (rows * 12_800).to_string()]);
    }
}

#[tokio::test]
async fn any_node_commits_them_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_, nodes) = start(dir.path()).await;
    for (n, node) in (0..).zip(nodes.iter().flatten()) {
        // While the primary moves, a statement may fail; then it is run again, or was committed.
        cluster::until("a large insert", async || {
            let done = try_sql_at(&node.sql_addr, "defaultdb", &insert(n * ROWS)).await.is_some();
            done || sql(node, &format!("SELECT count(*) FROM large WHERE id = {}", n * ROWS)).await == ["1"]
        })
        .await;
        expect(&nodes, (n + 1) * ROWS, 0).await;
    }
    // Every third row of each transaction, from a node that may not lead: the rows are written
    // whole.
    sql(nodes[2].as_ref().expect("it runs"), "UPDATE large SET n = 1 WHERE id % 3 = 0").await;
    expect(&nodes, 3 * ROWS, ROWS).await;
    sql(nodes[1].as_ref().expect("it runs"), "DELETE FROM large WHERE id % 3 = 0").await;
    expect(&nodes, 2 * ROWS, 0).await;
}

#[tokio::test]
async fn killed_amid_parts_all_or_nothing_is_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let (specs, mut nodes) = start(dir.path()).await;
    let (mut rows, mut acknowledged) = (0, 0);
    for round in 0..4_u64 {
        let client = (round % 3) as usize;
        // The client's own node dies in every other round.
        let victim = (client + (round % 2) as usize) % 3;
        let addr = specs[client].sql_listen.clone();
        let statement = insert(round * ROWS);
        let insert = tokio::spawn(async move { try_sql_at(&addr, "defaultdb", &statement).await });
        tokio::time::sleep(Duration::from_millis(300 + 450 * round)).await;
        nodes[victim].take().expect("it runs").kill();
        let is_told = insert.await.expect("no panic").is_some();
        nodes[victim] = Some(specs[victim].start().await);
        cluster::settled(&nodes.iter().flatten().collect::<Vec<_>>()).await;
        let first = nodes[0].as_ref().expect("it runs");
        let seen: u64 = sql(first, "SELECT count(*) FROM large").await[0].parse().expect("a number");
        assert!(seen == rows + ROWS || (seen == rows && !is_told), "{seen} rows after {rows}, told {is_told}");
        (rows, acknowledged) = (seen, acknowledged + u64::from(is_told));
        expect(&nodes, rows, 0).await;
    }
    println!("{} of 4 committed, {acknowledged} of them were told", rows / ROWS);
}
