use crate::support::{rows, session, start};
use meridian_node::session::Shared;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_committed_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path(), "eu", "a", "127.0.0.1:0", &[]).await.unwrap();
    let shared = Shared::new();
    let mut s = session(&node, &shared, 1);
    rows(&mut s, "CREATE TABLE t (id int PRIMARY KEY, name text)").await;
    rows(&mut s, "INSERT INTO t VALUES (1, 'one'), (2, 'two')").await;
    rows(&mut s, "UPDATE t SET name = 'zwei' WHERE id = 2").await;
    assert_eq!(rows(&mut s, "SELECT name FROM t ORDER BY id").await, [[Some("one".into())], [Some("zwei".into())]]);
    drop(s);
    node.shutdown().await;
    drop(node);

    let mut node = None;
    for _ in 0..100 {
        // The stopped node's threads let go of the directory a moment later.
        if meridian_server::MachineRuntime::open(dir.path()).is_ok() {
            node = Some(start(dir.path(), "eu", "a", "127.0.0.1:0", &[]).await.unwrap());
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let node = node.expect("the directory becomes free");
    let mut s = session(&node, &shared, 2);
    assert_eq!(rows(&mut s, "SELECT name FROM t ORDER BY id").await, [[Some("one".into())], [Some("zwei".into())]]);
    drop(s);
    node.shutdown().await;
}
