//! Groups and their primaries spread over the nodes of a region.

use super::script::{Cluster, US};
use meridian_base::{GroupId, NodeId};
use meridian_sim::cluster::meridian::Tuning;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longer than a node waits between two groups that it hands over because another node leads fewer.
const BALANCED_WITHIN: Duration = Duration::from_secs(60);

/// How many groups each node leads, and of how many it holds replicas, without the catalog's.
fn spread(c: &mut Cluster) -> BTreeMap<NodeId, (usize, usize)> {
    let of_rows = |groups: &[GroupId]| groups.iter().filter(|g| **g != GroupId::CATALOG).count();
    c.status("n1").into_iter().map(|n| (n.node.id, (of_rows(&n.leads), of_rows(&n.holds)))).collect()
}

/// A region of three zones with two nodes each.
fn six_nodes(seed: u64) -> Cluster {
    let mut c = Cluster::start(1, 3, seed, Tuning::default());
    for zone in 0..3 {
        c.grow(zone);
    }
    c.pass(Duration::from_secs(5));
    c
}

fn create_databases(c: &mut Cluster, count: usize) {
    for n in 1..=count {
        c.sql(US, "defaultdb", &format!("CREATE DATABASE d{n} PRIMARY REGION \"{US}\""));
        let table = "CREATE TABLE t (k INT8 PRIMARY KEY) LOCALITY REGIONAL BY TABLE";
        c.sql(US, &format!("d{n}"), table);
        c.sql(US, &format!("d{n}"), "INSERT INTO t VALUES (1)");
        c.pass(Duration::from_secs(2));
    }
}

fn is_even(counts: impl Iterator<Item = usize> + Clone) -> bool {
    let least = counts.clone().min().expect("a node");
    counts.max().expect("a node") - least <= 1
}

#[test]
fn five_databases_spread_over_six_nodes() {
    let mut c = six_nodes(301);
    create_databases(&mut c, 5);
    let spread = spread(&mut c);
    assert_eq!(spread.len(), 6);
    assert!(is_even(spread.values().map(|(leads, _)| *leads)), "{spread:?}");
    assert!(spread.values().all(|(_, holds)| *holds > 0), "{spread:?}");
}

/// A node that is stopped leads nothing. When it is back, it takes its part over again, and no
/// replica moves.
#[test]
fn who_comes_back_leads_its_part_again() {
    let mut c = six_nodes(302);
    create_databases(&mut c, 5);
    let before = spread(&mut c);
    c.kill("n2");
    c.pass(Duration::from_secs(20));
    c.restart("n2");
    c.await_start(&["n2".to_string()]);
    let end = c.elapsed() + BALANCED_WITHIN;
    let holds = |s: &BTreeMap<NodeId, (usize, usize)>| s.values().map(|(_, holds)| *holds).collect::<Vec<_>>();
    loop {
        let now = spread(&mut c);
        if holds(&now) == holds(&before) && is_even(now.values().map(|(leads, _)| *leads)) {
            break;
        }
        assert!(c.elapsed() < end, "{now:?}");
        c.pass(Duration::from_secs(1));
    }
    for n in 1..=5 {
        assert_eq!(c.sql(US, &format!("d{n}"), "SELECT count(*) FROM t"), [["1"]]);
    }
}
