//! Two hosts of a pod, and `kill -9` of each in turn: both serve one database, nothing acknowledged
//! is lost, and what clients see is strictly serializable.
//!
//! A third node, which is no host, has the third vote. `MERIDIAN_POD_KILLS` says how often a host
//! is killed.

use crate::cluster;
use crate::kills::{Load, longest_gap, number_from_env};
use crate::process::{Node, Spec};
use meridian_workload::bank::{Bank, BankConfig};
use meridian_workload::checkers::{list_append, promise::Promise};
use meridian_workload::list_append::{Extras, ListAppend, ListAppendConfig};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const KILLS_DEFAULT: u64 = 6;
const HOSTS: usize = 2;
const BANK_WORKERS: u32 = 6;
const LIST_WORKERS: u32 = 4;
/// A new term has to begin if L was killed. The gaps themselves are printed.
const GAP_MAX: Duration = Duration::from_secs(10);

/// Two hosts, and a node that is none.
fn specs(dir: &Path) -> Vec<Spec> {
    let mut specs = cluster::specs(dir, HOSTS + 1);
    for host in &mut specs[..HOSTS] {
        host.locality = "region=eu,zone=pod".into();
        host.options.extend(["--pod=p".into(), format!("--pod-memory={}", dir.join("memory").display())]);
    }
    specs
}

/// The sum of a counter of `SHOW METRICS` over nodes.
async fn metric(nodes: &[&Node], name: &str) -> i64 {
    let mut sum = 0;
    for node in nodes {
        let all = cluster::sql(node, "SHOW METRICS").await;
        let found = all.chunks(2).find(|pair| pair[0] == name).expect("a metric of that name");
        sum += found[1].parse::<i64>().expect("a number");
    }
    sum
}

/// `SHOW POD` of a host: each live host as (node, leads, slots).
async fn live_hosts(node: &Node) -> Vec<(String, bool, i64)> {
    const COLUMNS: usize = 10;
    let rows = cluster::sql(node, "SHOW POD").await;
    let live = rows.chunks(COLUMNS).filter(|row| row[6] == "live");
    live.map(|row| (row[4].clone(), row[5] == "t", row[7].parse().expect("a number"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_serve_one_database_and_kill_9_of_either_loses_nothing() {
    let kills = number_from_env("MERIDIAN_POD_KILLS", KILLS_DEFAULT);
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs(dir.path());
    let mut nodes: Vec<Option<Node>> = cluster::start_all(&specs).await.into_iter().map(Some).collect();
    let at_hosts: Vec<String> = specs[..HOSTS].iter().map(|spec| spec.sql_listen.clone()).collect();

    let think_time = Duration::from_millis(2 + kills / 4);
    let bank = Arc::new(Bank::new(BankConfig { think_time, snapshot_share: 0.1, ..BankConfig::default() }));
    let bank_load = Load::start(bank.clone(), at_hosts.clone(), BANK_WORKERS, 1).await;
    let extras = Extras { deletes: true, by_index: true, savepoint_share: 0.1, reading_share: 0.2, ..Extras::default() };
    let lists = ListAppendConfig { think_time: 2 * think_time, extras, ..ListAppendConfig::default() };
    let list_load = Load::start(Arc::new(ListAppend::new(lists)), at_hosts, LIST_WORKERS, 2).await;
    let (context, history) = (bank_load.context.clone(), list_load.context.history.clone());

    let (mut gaps, mut takeovers) = (Vec::new(), 0);
    for n in 0..=kills {
        // Both hosts serve, each its own clients.
        cluster::until("a pod of two hosts", async || {
            let hosts: Vec<&Node> = nodes[..HOSTS].iter().flatten().collect();
            let before = metric(&hosts, "pod.commits").await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            metric(&hosts, "pod.commits").await > before
        })
        .await;
        for host in nodes[..HOSTS].iter().flatten() {
            cluster::until("SHOW POD tells two live hosts, of which one leads", async || {
                let live = live_hosts(host).await;
                let leaders = live.iter().filter(|(_, leads, _)| *leads).count();
                let slots: i64 = live.iter().map(|(_, _, slots)| slots).sum();
                leaders > 0 && live.len() == HOSTS * leaders && (1..=1_024 * leaders as i64).contains(&slots)
            })
            .await;
        }
        if n == kills {
            break;
        }
        // Each twice: the other one leads by then.
        let victim = n as usize / 2 % HOSTS;
        let killed_at = context.timer.now_micros();
        nodes[victim].take().expect("it runs").kill();
        tokio::time::sleep(Duration::from_secs(2)).await;
        takeovers += metric(&[nodes[1 - victim].as_ref().expect("it runs")], "pod.takeovers").await;
        nodes[victim] = Some(specs[victim].start().await);
        let gap = longest_gap(&context, killed_at, context.timer.now_micros());
        println!("kill {} of {kills}: host {victim}, longest silence {} ms", n + 1, gap.as_millis());
        gaps.push(gap);
    }

    // All at once.
    nodes.iter_mut().for_each(|node| node.take().expect("it runs").kill());
    nodes = cluster::start_all(&specs).await.into_iter().map(Some).collect();
    let (before, deadline) = (bank.acknowledged(), Instant::now() + Duration::from_secs(30));
    while bank.acknowledged() == before {
        assert!(Instant::now() < deadline, "nothing is served after all came back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let facts = bank_load.judge().await + list_load.judge().await;
    let records = history.records();
    let anomalies = list_append::check(&records, &Promise::Strict);
    println!(
        "{kills} kills: {} acknowledged transfers, {} transactions on lists, {takeovers} takeovers, {facts} facts checked; \
         silences {gaps:?}",
        bank.acknowledged(),
        records.len()
    );
    assert!(anomalies.is_empty(), "{anomalies:#?}");
    assert!(takeovers > 0, "no host was ever missed");
    assert!(gaps.iter().all(|gap| *gap < GAP_MAX), "silent for too long: {gaps:?}");
    drop(nodes);
}
