//! Indexes that are built at the same time.

use crate::client::PgClient;
use crate::process::{Node, Spec};
use meridian_workload::Client;

async fn connect(node: &Node) -> PgClient {
    PgClient::connect(&node.sql_addr, "root", "defaultdb").await.expect("a connection")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_of_a_small_table_does_not_wait_for_that_of_a_large_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = Spec::alone(&dir.path().join("node")).start().await;
    let mut client = connect(&node).await;
    for sql in [
        "CREATE TABLE small (id INT8 PRIMARY KEY, v INT8)",
        "INSERT INTO small SELECT i, i % 7 FROM generate_series(1, 100) AS g(i)",
        "CREATE TABLE large (id INT8 PRIMARY KEY, v TEXT)",
    ] {
        client.execute(sql).await.expect("a statement");
    }
    for part in 0..6 {
        let (first, last) = (part * 50_000 + 1, (part + 1) * 50_000);
        let sql = format!("INSERT INTO large SELECT i, md5(i::text) FROM generate_series({first}, {last}) AS g(i)");
        client.execute(&sql).await.expect("rows");
    }
    let mut other = connect(&node).await;
    let large = tokio::spawn(async move { other.execute("CREATE INDEX ON large (v, id)").await.map(drop) });
    // The statement has begun once its index is there.
    let begun =
        "SELECT 1 FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid WHERE c.relname = 'large' AND NOT i.indisprimary";
    while client.query(begun, &[]).await.expect("an answer").rows.is_empty() {
        assert!(!large.is_finished(), "nothing is there of it");
    }
    client.execute("CREATE INDEX ON small (v)").await.expect("an index");
    assert!(!large.is_finished(), "the small one waited for the large one");
    large.await.expect("no panic").expect("an index");
}
