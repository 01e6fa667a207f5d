//! Clusters of processes, and what operators and clients see of them.

use crate::client::PgClient;
use crate::process::{Node, Spec, meridian, run};
use meridian_workload::{Client, Value};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// Debug builds on busy machines are slow.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(200);

/// So many nodes of a region with one `--join` list, each in a zone of its own, on ports that were
/// free a moment ago.
#[allow(clippy::disallowed_methods, reason = "a test looks for ports that are free")]
pub fn specs(dir: &Path, count: usize) -> Vec<Spec> {
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

/// The same, each in a region of its own: `r0` and so on.
pub fn specs_in_regions(dir: &Path, count: usize) -> Vec<Spec> {
    let in_region = |(n, spec)| Spec { locality: format!("region=r{n},zone=a"), ..spec };
    specs(dir, count).into_iter().enumerate().map(in_region).collect()
}

pub async fn start_all(specs: &[Spec]) -> Vec<Node> {
    futures::future::join_all(specs.iter().map(Spec::start)).await
}

/// Runs `meridian` with these arguments.
pub fn command(args: &[&str]) -> std::process::Output {
    let mut command = meridian();
    command.args(args);
    run(command, "")
}

/// The lines of `meridian node status` about nodes.
pub fn status(of: &Node) -> Vec<Vec<String>> {
    // Not what is said below of versions and clocks.
    let is_node = |line: &&str| line.split_whitespace().next().is_some_and(|id| id.starts_with('n') && !id.ends_with(':'));
    let out = command(&["node", "status", "--node", &of.addr]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().skip(1).filter(is_node).map(|line| line.split_whitespace().map(str::to_string).collect()).collect()
}

/// A node's state, as `status` says it.
pub fn state(of: &Node, id: &str) -> String {
    let lines = status(of);
    lines.iter().find(|line| line[0] == id).map_or("unknown".to_string(), |line| line[6].clone())
}

pub fn id(node: &Node) -> String {
    let log = node.log();
    let line = log.lines().find(|l| l.starts_with("node ") && l.contains(" of region ")).expect("it says who it is");
    line.split_whitespace().nth(1).expect("an id").to_string()
}

pub async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done().await {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(POLL).await;
    }
}

/// The values of all rows, or nothing if there is no answer within seconds.
pub async fn try_sql(node: &Node, sql: &str) -> Option<Vec<String>> {
    try_sql_in(node, "defaultdb", sql).await
}

pub async fn try_sql_in(node: &Node, database: &str, sql: &str) -> Option<Vec<String>> {
    try_sql_at(&node.sql_addr, database, sql).await
}

pub async fn try_sql_at(addr: &str, database: &str, sql: &str) -> Option<Vec<String>> {
    let asked = async {
        let mut client = PgClient::connect(addr, "root", database).await.ok()?;
        let rows = client.query(sql, &[]).await.ok()?.rows;
        Some(rows.into_iter().flatten().map(|value| value.to_string()).collect())
    };
    tokio::time::timeout(Duration::from_secs(8), asked).await.ok().flatten()
}

/// The values of all rows, in the end. For statements that may be run twice.
pub async fn sql(node: &Node, text: &str) -> Vec<String> {
    sql_in(node, "defaultdb", text).await
}

pub async fn sql_in(node: &Node, database: &str, text: &str) -> Vec<String> {
    let mut answer = None;
    until(text, async || {
        answer = try_sql_in(node, database, text).await;
        answer.is_some()
    })
    .await;
    answer.expect("just seen")
}

pub fn lose(spec: &Spec) {
    let lost = spec.dir.with_extension("lost");
    let _ = std::fs::remove_dir_all(&lost);
    std::fs::rename(&spec.dir, lost).expect("movable");
}

/// All groups have these voters, which are alive, and wait for nothing.
pub async fn settled(voters: &[&Node]) {
    /// Of SHOW RANGES.
    const LEASE_HOLDER: usize = 4;
    const VOTERS: usize = 6;
    const WAITS_FOR: usize = 9;
    let mut ids: Vec<String> = voters.iter().map(|node| id(node)).collect();
    ids.sort();
    let all_are_voters = |shown: &Value| {
        let Value::Text(shown) = shown else { return false };
        let mut shown: Vec<&str> = shown.trim_matches(['{', '}']).split(',').collect();
        shown.sort_unstable();
        shown == ids
    };
    until("all replicas to be where they belong", async || {
        let Ok(mut client) = PgClient::connect(&voters[0].sql_addr, "root", "defaultdb").await else { return false };
        let Ok(ranges) = client.query("SHOW RANGES", &[]).await else { return false };
        let is_well =
            |r: &Vec<Value>| r[WAITS_FOR] == Value::Null && r[LEASE_HOLDER] != Value::Null && all_are_voters(&r[VOTERS]);
        ranges.rows.iter().all(is_well)
    })
    .await;
}
