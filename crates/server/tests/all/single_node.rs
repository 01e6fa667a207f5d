use crate::support::{rows, session, start};
use meridian_node::session::Shared;

/// Restarts are tested with processes: a node's tasks end with theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_alone_is_a_whole_database_and_stops_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path(), "eu", "a", "127.0.0.1:0", &[]).await.unwrap();
    let mut s = session(&node, &Shared::new(), 1);
    rows(&mut s, "CREATE TABLE t (id int PRIMARY KEY, name text)").await;
    rows(&mut s, "INSERT INTO t VALUES (1, 'one'), (2, 'two')").await;
    rows(&mut s, "UPDATE t SET name = 'zwei' WHERE id = 2").await;
    assert_eq!(rows(&mut s, "SELECT name FROM t ORDER BY id").await, [[Some("one".into())], [Some("zwei".into())]]);
    drop(s);
    node.shutdown().await;
}
