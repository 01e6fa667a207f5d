//! A primary that stands still for longer than its lease, as a machine that is suspended does, and
//! goes on with what its sockets hold. The simulator cannot do this: there, the tasks of a node are
//! never stopped between two lines.

use crate::client::PgClient;
use crate::cluster::{settled, specs, sql, start_all, try_sql};
use crate::process::Node;
use futures::future::join_all;
use meridian_workload::{Client, Value};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const ROUNDS: i64 = 3;
/// So many reads wait in the sockets: some of them are run before the node has heard of the next
/// primary.
const READERS: usize = 24;
/// Longer than an election and the statement after it take.
const PATIENCE: Duration = Duration::from_secs(60);
const READ: &str = "SELECT v FROM stalled WHERE k = 1";

/// The group of the table's rows; the catalog's comes first in `SHOW RANGES`.
async fn primary<'n>(nodes: &[&'n Node]) -> &'n Node {
    const LEASE_HOLDER: usize = 4;
    let mut client = PgClient::connect(&nodes[0].sql_addr, "root", "defaultdb").await.expect("a connection");
    let ranges = client.query("SHOW RANGES", &[]).await.expect("an answer");
    let holder = ranges.rows.last().map(|row| row[LEASE_HOLDER].to_string()).expect("a group");
    nodes.iter().copied().find(|node| crate::cluster::id(node) == holder).expect("one of the nodes")
}

async fn read(client: &mut PgClient) -> Option<Value> {
    let rows = timeout(PATIENCE, client.query(READ, &[])).await.ok()?.ok()?.rows;
    rows.into_iter().flatten().next()
}

/// What is read after a write was acknowledged is that write, or an error, and never what was there
/// before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_was_suspended_answers_nothing_by_a_lease_that_has_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    let nodes = start_all(&specs(dir.path(), 3)).await;
    let nodes: Vec<&Node> = nodes.iter().collect();
    sql(nodes[0], "CREATE TABLE IF NOT EXISTS stalled (k INT8 PRIMARY KEY, v INT8)").await;
    sql(nodes[0], "INSERT INTO stalled VALUES (1, 0) ON CONFLICT (k) DO NOTHING").await;
    for round in 1..=ROUNDS {
        settled(&nodes).await;
        let stopped = primary(&nodes).await;
        let other = nodes.iter().find(|node| node.addr != stopped.addr).expect("three nodes");
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let mut reader = PgClient::connect(&stopped.sql_addr, "root", "defaultdb").await.expect("a connection");
            assert_eq!(read(&mut reader).await, Some(Value::Int(round - 1)));
            readers.push(reader);
        }
        stopped.suspend();
        let update = format!("UPDATE stalled SET v = {round} WHERE k = 1");
        let written = timeout(PATIENCE, async { while try_sql(other, &update).await.is_none() {} });
        written.await.expect("the others elect a primary");
        let reads = tokio::spawn(join_all(readers.into_iter().map(|mut reader| async move { read(&mut reader).await })));
        sleep(Duration::from_millis(300)).await;
        stopped.resume();
        let found: Vec<Value> = reads.await.expect("no panic").into_iter().flatten().collect();
        assert!(found.iter().all(|v| *v == Value::Int(round)), "round {round}: {found:?}");
        assert!(found.len() >= READERS / 2, "round {round}: most readers are answered: {found:?}");
    }
}
