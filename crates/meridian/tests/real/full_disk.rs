//! A disk that is full: writes are refused, reads and deletions go on, and everything does again
//! once there is room.

use crate::client::PgClient;
use crate::process::{Node, Spec};
use meridian_workload::{Client, Value};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;

/// A file system of its own, for as long as the test runs.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Needs a superuser. The reason, if it cannot be had.
    fn mount(at: &Path, size: &str) -> Result<SmallDisk, String> {
        std::fs::create_dir_all(at).expect("a folder");
        let options = format!("size={size}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).output();
        match mount {
            Ok(done) if done.status.success() => Ok(SmallDisk(at.to_path_buf())),
            Ok(done) => Err(String::from_utf8_lossy(&done.stderr).trim().to_string()),
            Err(e) => Err(e.to_string()),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Writes to a file until the disk has no room, or so much.
fn fill(path: &Path, bytes: u64) {
    let mut file = std::fs::File::create(path).expect("a file");
    let block = vec![1; 64 << 10];
    for _ in 0..bytes / block.len() as u64 {
        if file.write_all(&block).is_err() {
            return;
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

async fn connect(node: &Node) -> PgClient {
    PgClient::connect(&node.sql_addr, "root", "defaultdb").await.expect("a connection")
}

async fn count(client: &mut PgClient) -> i64 {
    let rows = client.execute("SELECT count(*) FROM t").await.expect("reads go on");
    match &rows.rows[0][0] {
        Value::Text(n) => n.parse().expect("a number"),
        other => panic!("a number, found {other:?}"),
    }
}

async fn insert(client: &mut PgClient, from: i64, rows: i64) -> meridian_base::Result<()> {
    let to = from + rows - 1;
    let sql = format!("INSERT INTO t SELECT i, repeat('abcdefgh', 128) FROM generate_series({from}, {to}) AS g(i)");
    client.execute(&sql).await.map(drop)
}

/// Inserts until the disk is full. The rows that were acknowledged.
async fn insert_until_refused(client: &mut PgClient, mut next: i64) -> i64 {
    const ROWS: i64 = 200;
    let deadline = Instant::now() + 3 * PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "the disk is never full");
        match insert(client, next, ROWS).await {
            Ok(()) => next += ROWS,
            Err(e) => {
                assert_eq!(e.sqlstate(), "53100", "{e}");
                return next;
            }
        }
    }
}

async fn resumed(client: &mut PgClient, next: i64) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(e) = insert(client, next, 1).await {
        assert_eq!(e.sqlstate(), "53100", "{e}");
        assert!(Instant::now() < deadline, "writes do not go on: {e}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_and_serves_the_rest() {
    let dir = tempfile::tempdir().expect("a directory");
    let mount = dir.path().join("disk");
    let _disk = match SmallDisk::mount(&mount, "160m") {
        Ok(disk) => disk,
        Err(why) => {
            println!("skipped: a small file system cannot be mounted here: {why}");
            return;
        }
    };
    let spec = Spec::alone(&mount.join("node"));
    let ballast = mount.join("ballast");
    fill(&ballast, 60 << 20);
    let node = spec.start().await;
    let mut client = connect(&node).await;
    client.execute("CREATE TABLE t (id INT8 PRIMARY KEY, v STRING)").await.expect("a table");

    // Its own rows fill it.
    let mut next = insert_until_refused(&mut client, 0).await;
    println!("full with {next} rows");
    assert!(next > 0);
    assert_eq!(count(&mut client).await, next);
    client.execute("DELETE FROM t WHERE id < 100").await.expect("deletions go on");
    // Another program takes all that is left.
    fill(&mount.join("other"), 1 << 30);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(count(&mut client).await, next - 100);
    client.execute("DELETE FROM t WHERE id < 200").await.expect("deletions go on, in the reserve");
    assert_eq!(insert(&mut client, next, 1).await.expect_err("the disk is full").sqlstate(), "53100");

    // Room is made.
    std::fs::remove_file(mount.join("other")).expect("a file");
    std::fs::remove_file(&ballast).expect("a file");
    resumed(&mut client, next).await;
    next += 1;
    next = insert_until_refused(&mut client, next).await;
    println!("full again with {next} rows");
    fill(&mount.join("other"), 1 << 30);
    client.execute("DELETE FROM t WHERE id < 300").await.expect("deletions go on");
    drop(client);

    // It dies with a full disk. When it is started again there it reads; with room it writes.
    node.kill();
    let node = spec.start().await;
    let mut client = connect(&node).await;
    assert_eq!(count(&mut client).await, next - 300);
    std::fs::remove_file(mount.join("other")).expect("a file");
    fill(&ballast, 0);
    client.execute("DELETE FROM t WHERE id < 400").await.expect("deletions go on");
    assert_eq!(count(&mut client).await, next - 400);
    let (status, log) = node.terminate().await;
    assert!(status.success(), "{log}");
}
