//! Who a node is: founding, joining, directories that are lost, and those that come back.

use crate::client::PgClient;
use crate::process::{Node, Spec, meridian, run};
use meridian_workload::{Client, Value};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// Debug builds on busy machines are slow.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(200);

/// So many nodes with one `--join` list, on ports that were free a moment ago.
#[allow(clippy::disallowed_methods, reason = "a test looks for ports that are free")]
fn specs(dir: &Path, count: usize) -> Vec<Spec> {
    let free: Vec<_> = (0..count * 2).map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    let mut addrs = free.iter().map(|listener| listener.local_addr().expect("an address").to_string());
    let listen: Vec<String> = addrs.by_ref().take(count).collect();
    let spec = |(n, (listen_at, sql_listen)): (usize, (&String, String))| Spec {
        locality: format!("region=eu,zone=z{n}"),
        listen: listen_at.clone(),
        sql_listen,
        join: listen.clone(),
        ..Spec::alone(&dir.join(format!("n{n}")))
    };
    listen.iter().zip(addrs).enumerate().map(spec).collect()
}

async fn start_all(specs: &[Spec]) -> Vec<Node> {
    futures::future::join_all(specs.iter().map(Spec::start)).await
}

fn node_command(args: &[&str]) -> std::process::Output {
    let mut command = meridian();
    command.args(args);
    run(command, "")
}

/// The lines of `meridian node status`, without its head.
fn status(of: &Node) -> Vec<Vec<String>> {
    let out = node_command(&["node", "status", "--node", &of.addr]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().skip(1).map(|line| line.split_whitespace().map(str::to_string).collect()).collect()
}

/// A node's state, as `status` says it.
fn state(of: &Node, id: &str) -> String {
    let lines = status(of);
    lines.iter().find(|line| line[0] == id).map_or("unknown".to_string(), |line| line[6].clone())
}

fn id(node: &Node) -> String {
    let log = node.log();
    let line = log.lines().find(|l| l.starts_with("node ") && l.contains(" of region ")).expect("it says who it is");
    line.split_whitespace().nth(1).expect("an id").to_string()
}

async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done().await {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(POLL).await;
    }
}

async fn try_sql(node: &Node, sql: &str) -> Option<Vec<String>> {
    let asked = async {
        let mut client = PgClient::connect(&node.sql_addr, "root", "defaultdb").await.ok()?;
        let rows = client.query(sql, &[]).await.ok()?.rows;
        Some(rows.into_iter().flatten().map(|value| value.to_string()).collect())
    };
    tokio::time::timeout(Duration::from_secs(8), asked).await.ok().flatten()
}

async fn sql(node: &Node, text: &str) -> Vec<String> {
    let mut answer = None;
    until(text, async || {
        answer = try_sql(node, text).await;
        answer.is_some()
    })
    .await;
    answer.expect("just seen")
}

fn lose(spec: &Spec) {
    std::fs::rename(&spec.dir, spec.dir.with_extension("lost")).expect("movable");
}

/// All groups have three voters that have everything.
async fn settled(node: &Node) {
    /// Of SHOW RANGES: what a group waits for.
    const WAITS_FOR: usize = 9;
    until("all replicas to be where they belong", async || {
        let Ok(mut client) = PgClient::connect(&node.sql_addr, "root", "defaultdb").await else { return false };
        let ranges = client.query("SHOW RANGES FROM DATABASE defaultdb", &[]).await;
        ranges.is_ok_and(|ranges| ranges.rows.iter().all(|row| row[WAITS_FOR] == Value::Null))
    })
    .await;
    // A change of members that was begun is not reported before it is.
    tokio::time::sleep(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_found_one_cluster_and_whoever_loses_its_directory_is_a_new_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs(dir.path(), 3);
    // The last one comes first: it waits, says for whom, and tells clients so.
    let early = specs[2].launch();
    until("a word of whom it waits for", async || {
        early.log().contains(&format!("waiting for {}, {}", specs[0].listen, specs[1].listen))
    })
    .await;
    assert!(early.log().contains(&format!("meridian init --node {}", specs[2].listen)), "{}", early.log());
    let refusal = PgClient::connect(&specs[2].sql_listen, "root", "defaultdb").await.err().expect("it does not serve");
    assert_eq!(refusal.sqlstate(), "57P03", "{refusal}");
    let (mut nodes, third) = tokio::join!(start_all(&specs[..2]), early.served());
    nodes.push(third);
    assert_eq!(status(&nodes[0]).len(), 3, "{:?}", status(&nodes[0]));
    sql(&nodes[0], "CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY, v INT8)").await;
    sql(&nodes[0], "INSERT INTO t SELECT g, 0 FROM generate_series(1, 100) AS s(g) ON CONFLICT (k) DO NOTHING").await;
    settled(&nodes[0]).await;

    // One after the other, the founder too.
    for lost in [1, 0] {
        let (other, old) = ((lost + 1) % 3, id(&nodes[lost]));
        nodes.remove(lost).kill();
        lose(&specs[lost]);
        let new = specs[lost].start().await;
        nodes.insert(lost, new);
        assert!(id(&nodes[lost]) != old && id(&nodes[lost]) != "n1", "it is a new node");
        until("the old one to go", async || state(&nodes[other], &old) == "decommissioned").await;
        assert_eq!(sql(&nodes[lost], "SELECT count(*) FROM t").await, ["100"]);
    }

    // The directory that was lost is found again, but its node is no member any more.
    let found = Spec { dir: specs[1].dir.with_extension("lost"), listen: "127.0.0.1:0".into(), ..specs[1].clone() };
    let found = Spec { sql_listen: "127.0.0.1:0".into(), ..found };
    let said = found.refused().await;
    assert!(said.contains("was decommissioned"), "{said}");
    settled(&nodes[2]).await;
    // Two of three are enough: the new nodes vote.
    nodes.remove(2).kill();
    sql(&nodes[0], "UPDATE t SET v = v + 1 WHERE k = 1").await;
    assert_eq!(sql(&nodes[1], "SELECT count(*) FROM t").await, ["100"]);
}

/// Of three voters one lags, two die, and one of these comes back without its directory: with its vote the one that lags would lead,
/// and what was acknowledged would be gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_directory_has_no_vote() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs(dir.path(), 3);
    let mut nodes = start_all(&specs).await;
    sql(&nodes[0], "CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY, v INT8)").await;
    sql(&nodes[0], "INSERT INTO t VALUES (1, 0) ON CONFLICT (k) DO NOTHING").await;
    settled(&nodes[0]).await;
    nodes.remove(2).kill();
    sql(&nodes[0], "UPDATE t SET v = 777 WHERE k = 1").await;
    nodes.drain(..).for_each(Node::kill);
    lose(&specs[1]);
    let emptied = specs[1].launch();
    let lags = specs[2].launch();
    until("the emptied one to look for its cluster", async || emptied.log().contains("waiting to join the cluster")).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    for node in [&emptied, &lags] {
        let rows = try_sql(node, "SELECT v FROM t WHERE k = 1").await;
        assert!(rows.as_ref().is_none_or(|rows| *rows == ["777"]), "{rows:?}");
    }
    let first = specs[0].start().await;
    let (emptied, lags) = tokio::join!(emptied.served(), lags.served());
    for node in [&first, &emptied, &lags] {
        assert_eq!(sql(node, "SELECT v FROM t WHERE k = 1").await, ["777"]);
    }
    assert_eq!(id(&emptied), "n4");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_founded_without_those_who_stay_away_when_an_operator_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs(dir.path(), 3);
    let (first, second) = (specs[0].launch(), specs[1].launch());
    until("both to wait for the third", async || {
        [&first, &second].iter().all(|node| node.log().contains(&format!("waiting for {} (", specs[2].listen)))
    })
    .await;
    let init = |addr: &str| node_command(&["init", "--node", addr]);
    let out = init(&specs[1].listen);
    assert!(out.status.success(), "{out:?}");
    let (first, second) = tokio::join!(first.served(), second.served());
    assert_eq!((id(&second), id(&first)), ("n1".to_string(), "n2".to_string()));
    for spec in &specs[..2] {
        let out = init(&spec.listen);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && said.contains("already"), "{said}");
    }
    let third = specs[2].start().await;
    assert_eq!(id(&third), "n3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_added_again_after_its_node_was_decommissioned_and_the_last_node_stays() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs(dir.path(), 2);
    let alone = Spec { join: Vec::new(), ..specs[0].clone() }.start().await;
    let out = node_command(&["node", "decommission", "--node", &alone.addr, "1"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && said.contains("no other node would stay"), "{said}");
    assert_eq!(state(&alone, "n1"), "active");
    let second = specs[1].start().await;
    assert_eq!(id(&second), "n2");
    let out = node_command(&["node", "decommission", "--node", &alone.addr, "n2"]);
    assert!(out.status.success(), "{out:?}");
    drop(second);
    lose(&specs[1]);
    let again = specs[1].start().await;
    assert_eq!(id(&again), "n3");
    assert_eq!(state(&alone, "n2"), "decommissioned");
    sql(&again, "SELECT 1").await;
}

/// Its members still look for it where it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_node_that_lost_its_directory_founds_no_second_cluster() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs(dir.path(), 2);
    let first = Spec { join: Vec::new(), ..specs[0].clone() };
    let founder = first.start().await;
    let second = specs[1].start().await;
    founder.kill();
    lose(&first);
    let said = first.refused().await;
    assert!(said.contains("a cluster counts on this address") && said.contains(&second.addr), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_none_is_called_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let said = Spec { listen: "127.0.0.1:99999".into(), ..Spec::alone(&dir.path().join("node")) }.refused().await;
    assert!(said.contains("127.0.0.1:99999") && said.contains("HOST:PORT") && !said.contains("Another process"), "{said}");
}
