//! What a node refuses, with a message that says what and where; and how it stops when it is told
//! to.

use crate::client::PgClient;
use crate::process::{Spec, meridian, run};
use meridian_workload::Client;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_belongs_to_one_process() {
    let dir = tempfile::tempdir().expect("a directory");
    let spec = Spec::alone(&dir.path().join("node"));
    let node = spec.start().await;
    let said = spec.refused().await;
    assert!(said.contains("is in use by process") && said.contains(&spec.dir.display().to_string()), "{said}");
    drop(node);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_in_use_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = Spec::alone(&dir.path().join("node")).start().await;
    let other = Spec::alone(&dir.path().join("other"));
    let said = Spec { sql_listen: node.sql_addr.clone(), ..other.clone() }.refused().await;
    assert!(said.contains(&node.sql_addr) && said.contains("--sql-listen"), "{said}");
    let said = Spec { listen: node.addr.clone(), ..other }.refused().await;
    assert!(said.contains(&node.addr) && said.contains("--listen"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_of_a_newer_version_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let spec = Spec::alone(&dir.path().join("node"));
    drop(spec.start().await);
    let file = spec.dir.join("node");
    let text = std::fs::read_to_string(&file).expect("the identity");
    let (before, rest) = text.split_once("\nformat ").expect("a format");
    let newer = format!("{before}\nformat 999{}", &rest[rest.find('\n').expect("a line")..]);
    std::fs::write(&file, newer).expect("writable");
    let said = spec.refused().await;
    assert!(said.contains("newer") && said.contains("999") && said.contains(&file.display().to_string()), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_lacks_its_log_or_its_identity_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let spec = Spec::alone(&dir.path().join("node"));
    drop(spec.start().await);
    for (name, says) in [("log", "there is no log file in"), ("node", "is missing, although")] {
        let (here, away) = (spec.dir.join(name), dir.path().join("away"));
        std::fs::rename(&here, &away).expect("movable");
        let said = spec.refused().await;
        assert!(said.contains(says) && said.contains(&here.display().to_string()), "{said}");
        if here.is_dir() {
            std::fs::remove_dir_all(&here).expect("removable");
        }
        std::fs::rename(&away, &here).expect("movable");
        drop(spec.start().await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_of_another_cluster_does_not_join() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = Spec::alone(&dir.path().join("node")).start().await;
    let other = Spec::alone(&dir.path().join("other"));
    drop(other.start().await);
    let said = Spec { join: vec![node.addr.clone()], ..other }.refused().await;
    assert!(said.contains("wrong cluster") && said.contains(&node.addr) && said.contains("--data-dir"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_at_a_members_address_is_no_member() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = Spec::alone(&dir.path().join("first")).start().await;
    let second = Spec { join: vec![first.addr.clone()], ..Spec::alone(&dir.path().join("second")) };
    let second = second.start().await;
    let address = second.addr.clone();
    second.kill();
    // It has a cluster of its own.
    let stranger = Spec::alone(&dir.path().join("stranger"));
    drop(stranger.start().await);
    let stranger = Spec { listen: address, ..stranger }.start().await;
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    while !stranger.log().contains("wrong cluster") {
        assert!(tokio::time::Instant::now() < deadline, "it was not refused: {}", stranger.log());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    for node in [&first, &stranger] {
        let mut command = meridian();
        command.arg("sql").arg(node.url()).args(["-c", "SELECT 1"]);
        assert!(run(command, "").status.success(), "both clusters go on");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_others_can_reach_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let spec = Spec { sql_listen: "0.0.0.0:0".into(), ..Spec::alone(&dir.path().join("node")) };
    let said = spec.refused().await;
    assert!(said.contains("--insecure"), "{said}");
    for told in ["--advertise", "--sql-advertise"] {
        let mut spec = Spec::alone(&dir.path().join("told"));
        spec.options.extend([told, "10.0.0.1:28105"].map(String::from));
        let said = spec.refused().await;
        assert!(said.contains("10.0.0.1:28105") && said.contains("--insecure"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_ends_a_node_well_and_its_rows_stay() {
    let dir = tempfile::tempdir().expect("a directory");
    let spec = Spec::alone(&dir.path().join("node"));
    let node = spec.start().await;
    let sql = |url: String, text: &str| {
        let mut command = meridian();
        command.arg("sql").arg(url).args(["-c", text]);
        run(command, "")
    };
    let out = sql(node.url(), "CREATE TABLE t (id INT8 PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)");
    assert!(out.status.success(), "{out:?}");
    let (status, said) = node.terminate().await;
    assert!(status.success() && said.contains("stopped"), "{status}: {said}");
    let node = spec.start().await;
    let out = sql(node.url(), "SELECT count(*) FROM t");
    assert!(String::from_utf8_lossy(&out.stdout).contains("     3\n"), "{out:?}");
}

/// On SIGTERM a block may end well; what would take longer is told why it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_lets_an_open_block_finish() {
    let dir = tempfile::tempdir().expect("a directory");
    let spec = Spec::alone(&dir.path().join("node"));
    let node = spec.start().await;
    let connect = async || PgClient::connect(&node.sql_addr, "root", "defaultdb").await.expect("a connection");
    let (mut block, mut busy) = (connect().await, connect().await);
    block.execute("CREATE TABLE t (id INT8 PRIMARY KEY)").await.expect("a table");
    block.execute("BEGIN; INSERT INTO t VALUES (1)").await.expect("a block");
    let busy = tokio::spawn(async move {
        busy.execute("SELECT count(*) FROM generate_series(1, 30000) AS a, generate_series(1, 30000) AS b").await
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let ending = tokio::spawn(node.terminate());
    tokio::time::sleep(Duration::from_millis(500)).await;
    block.execute("INSERT INTO t VALUES (2)").await.expect("the block goes on");
    block.execute("COMMIT").await.expect("the block ends");
    let ended = busy.await.expect("a task").expect_err("it would take for ever");
    assert_eq!(ended.sqlstate(), "57P01", "{ended}");
    let (status, said) = ending.await.expect("a task");
    assert!(status.success() && said.contains("stopped"), "{status}: {said}");
    let node = spec.start().await;
    let mut client = PgClient::connect(&node.sql_addr, "root", "defaultdb").await.expect("a connection");
    assert_eq!(client.query("SELECT id FROM t", &[]).await.expect("rows").rows.len(), 2);
}
