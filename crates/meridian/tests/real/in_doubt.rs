//! `meridian debug txn` and `meridian debug end-transaction`: a transaction whose participant is
//! lost.

use crate::client::PgClient;
use crate::cluster::{command, specs_in_regions, sql, sql_in, start_all, until};
use crate::process::Node;
use meridian_workload::Client;
use std::time::Duration;
use tokio::time::Instant;

/// The transactions in doubt, as `meridian debug txn` lists them: the first column.
fn in_doubt(asked: &Node) -> Vec<String> {
    let out = command(&["debug", "txn", &asked.url()]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let cells = text.lines().filter_map(|line| line.split_once('|')).map(|(id, _)| id.trim().to_string());
    cells.filter(|cell| cell.starts_with('t') && cell[1..].starts_with(|c: char| c.is_ascii_digit())).collect()
}

/// The vote of one region never comes. The other region's row is reserved until an operator says
/// what becomes of it; nobody was told that it has committed, so it may be aborted, and the lost
/// region agrees when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_ends_a_transaction_whose_participant_is_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs_in_regions(dir.path(), 3);
    let mut nodes = start_all(&specs).await;
    sql(&nodes[0], "CREATE DATABASE IF NOT EXISTS d PRIMARY REGION \"r0\" REGIONS \"r1\", \"r2\"").await;
    for n in [1, 2] {
        let create =
            format!("CREATE TABLE IF NOT EXISTS t{n} (k INT8 PRIMARY KEY, v INT8) LOCALITY REGIONAL BY TABLE IN \"r{n}\"");
        sql_in(&nodes[0], "d", &create).await;
        sql_in(&nodes[0], "d", &format!("INSERT INTO t{n} VALUES (1, 10) ON CONFLICT (k) DO NOTHING")).await;
    }

    // Until then the rows may be led by a node of another region.
    let moving = "SELECT count(*) FROM [SHOW RANGES FROM DATABASE d] WHERE waits_for IS NOT NULL";
    until("all replicas to be where they belong", async || sql_in(&nodes[0], "d", moving).await == ["0"]).await;

    let mut client = PgClient::connect(&nodes[0].sql_addr, "root", "d").await.expect("a connection");
    for statement in ["BEGIN", "UPDATE t1 SET v = v + 1 WHERE k = 1", "UPDATE t2 SET v = v + 1 WHERE k = 1"] {
        client.execute(statement).await.expect("both regions live");
    }
    nodes[1].suspend();
    let commit = tokio::spawn(async move { client.execute("COMMIT").await });
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    nodes.remove(1).kill();
    let told = commit.await.expect("no panic").expect_err("a vote is missing");
    assert_eq!(told.sqlstate(), "40003", "{told}");

    let (gateway, other) = (&nodes[0], &nodes[1]);
    until("the transaction to be listed", async || in_doubt(gateway).len() == 1).await;
    let id = in_doubt(gateway).remove(0);
    // Its row is reserved. Reads of the row fail at once when the node knows that the other
    // participant is lost.
    let mut reader = PgClient::connect(&other.sql_addr, "root", "d").await.expect("a connection");
    let mut read = async || {
        let began = Instant::now();
        (reader.execute("SELECT v FROM t2").await.expect_err("its row is reserved"), began.elapsed())
    };
    until("the transaction to be in doubt", async || read().await.0.sqlstate() == "57P03").await;
    for _ in 0..3 {
        let (e, took) = read().await;
        assert!(e.sqlstate() == "57P03" && e.message().contains("in doubt"), "{e}");
        assert!(took < Duration::from_millis(1_500), "{took:?}");
    }
    let end = |flags: &[&str]| {
        let out = command(&[&["debug", "end-transaction", id.as_str(), "--as", "abort"], flags, &[&gateway.url()]].concat());
        (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
    };
    let (done, said) = end(&[]);
    assert!(!done && said.contains("younger than"), "{said}");
    until("the transaction to be old enough", async || {
        let (done, said) = end(&[]);
        assert!(!done, "it may be half applied, and the operator has not said to know that: {said}");
        said.contains("cannot be asked")
    })
    .await;
    let (done, said) = end(&["--i-know-it-may-be-half-applied"]);
    assert!(done, "{said}");
    until("its end", async || in_doubt(gateway).is_empty()).await;
    assert_eq!(sql_in(other, "d", "SELECT v FROM t2").await, ["10"]);
    let unknown = command(&["debug", "end-transaction", "t1.1", "--as", "abort", &gateway.url()]);
    assert!(!unknown.status.success(), "there is no such transaction");

    let _back = specs[1].start().await;
    assert_eq!(sql_in(gateway, "d", "SELECT v FROM t1").await, ["10"]);
    sql_in(gateway, "d", "UPDATE t1 SET v = 20").await;
    assert!(in_doubt(gateway).is_empty());
}
