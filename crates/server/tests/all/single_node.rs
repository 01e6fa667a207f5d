use crate::support::{rows, session, start};
use meridian_node::session::Shared;
use std::future::Future;

/// Runs a node's life in a runtime of its own: when it ends, all its tasks do, as with its process.
fn in_a_life_of_its_own(life: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(life);
}

#[test]
fn what_is_committed_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let expected = [[Some("one".to_string())], [Some("zwei".to_string())]];
    in_a_life_of_its_own(async {
        let node = start(dir.path(), "eu", "a", "127.0.0.1:0", &[]).await.unwrap();
        let mut s = session(&node, &Shared::new(), 1);
        rows(&mut s, "CREATE TABLE t (id int PRIMARY KEY, name text)").await;
        rows(&mut s, "INSERT INTO t VALUES (1, 'one'), (2, 'two')").await;
        rows(&mut s, "UPDATE t SET name = 'zwei' WHERE id = 2").await;
        assert_eq!(rows(&mut s, "SELECT name FROM t ORDER BY id").await, expected);
        drop(s);
        node.shutdown().await;
    });
    // The threads of the first life let go of the directory a moment after it.
    for _ in 0..200 {
        if meridian_server::MachineRuntime::open(dir.path()).is_ok() {
            break;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    in_a_life_of_its_own(async {
        let node = start(dir.path(), "eu", "a", "127.0.0.1:0", &[]).await.unwrap();
        let mut s = session(&node, &Shared::new(), 2);
        assert_eq!(rows(&mut s, "SELECT name FROM t ORDER BY id").await, expected);
        drop(s);
        node.shutdown().await;
    });
}
