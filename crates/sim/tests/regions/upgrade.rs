//! Programs of two versions side by side, and the cluster version that follows.

use super::script::{ASIA, Cluster, EU, US};
use meridian_base::version::{ClusterVersion, Versions};
use meridian_base::{Clock, NodeId};
use meridian_node::Way;
use meridian_node::rpc::Rpc;
use meridian_node::wire::{ClusterVersions, Request};
use meridian_sim::cluster::meridian::{NODE_PORT, Tuning};
use meridian_sim::world::SimRuntime;
use std::sync::Arc;
use std::time::Duration;

/// What a node says of versions.
fn versions(c: &mut Cluster, of: &str) -> ClusterVersions {
    let addr = format!("{of}:{NODE_PORT}");
    let answer = c.on_client(US, move |host, _| async move {
        meridian_node::versions_of(&Way::plain(Arc::new(SimRuntime::new(host)), &addr)).await
    });
    answer.unwrap_or_else(|e| panic!("the versions of {of}: {e}"))
}

fn all_older() -> Tuning {
    let tuning = Tuning::default();
    tuning.older_programs.lock().extend(["n1", "n2", "n3"].map(String::from));
    tuning
}

/// Starts a node again, with the present program.
fn upgrade(c: &mut Cluster, node: &str) {
    c.kill(node);
    c.restart(node);
    c.await_start(&[node.to_string()]);
    c.pass(Duration::from_secs(10));
}

/// While an older program runs anywhere, only its formats are written, and everything works. When
/// the last one is gone the version is raised; from then on the older program is refused.
#[test]
fn the_cluster_version_follows_the_last_program() {
    let tuning = all_older();
    let mut c = Cluster::start(3, 1, 81, tuning.clone());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE t (k INT8 PRIMARY KEY)");
    for (i, node) in ["n2", "n3", "n1"].into_iter().enumerate() {
        assert_eq!(versions(&mut c, "n1").cluster, ClusterVersion::FIRST);
        c.sql(EU, "d", &format!("INSERT INTO t VALUES ({i})"));
        upgrade(&mut c, node);
    }
    for node in ["n1", "n2", "n3"] {
        let said = versions(&mut c, node);
        assert_eq!(said.cluster, Versions::OWN.newest, "{node}");
        assert!(said.nodes.iter().all(|(_, of_node)| *of_node == Versions::OWN), "{said:?}");
    }
    assert_eq!(c.sql(ASIA, "d", "SELECT count(*) FROM t"), [["3"]]);
    c.sql(US, "d", "ALTER TABLE t ADD COLUMN v INT8");

    tuning.older_programs.lock().insert("n3".into());
    c.kill("n3");
    c.restart("n3");
    c.pass(Duration::from_secs(10));
    let why = c.ended("n3").expect("the older program ends");
    assert!(why.contains("the cluster is at version 2") && why.contains("versions 1 to 1"), "{why}");
    c.restart("n3");
    c.await_start(&["n3".to_string()]);
    assert_eq!(c.sql(ASIA, "d", "SELECT count(*) FROM t"), [["3"]]);
}

/// Nodes die while the version is being raised.
#[test]
fn a_version_is_raised_once_whoever_dies_meanwhile() {
    for (seed, killed) in [(82, "n1"), (83, "n2"), (84, "n3")] {
        let mut c = Cluster::start(3, 1, seed, all_older());
        upgrade(&mut c, "n2");
        upgrade(&mut c, "n3");
        c.kill("n1");
        c.restart("n1");
        for _ in 0..20 {
            c.pass(Duration::from_millis(130));
            c.kill(killed);
            c.restart(killed);
        }
        c.await_start(&["n1".to_string(), "n2".to_string(), "n3".to_string()]);
        c.pass(Duration::from_secs(20));
        for node in ["n1", "n2", "n3"] {
            assert_eq!(versions(&mut c, node).cluster, Versions::OWN.newest, "{node} of {seed}");
        }
        c.sql(US, "defaultdb", "CREATE TABLE t (k INT8 PRIMARY KEY); INSERT INTO t VALUES (1)");
    }
}

/// A new node with an older program is refused by the catalog, and a program of another time by
/// whom it calls.
#[test]
fn strange_programs_are_refused_by_name() {
    let tuning = Tuning::default();
    let mut c = Cluster::start(1, 3, 85, tuning.clone());
    tuning.older_programs.lock().insert("n4".into());
    assert_eq!(c.begin_to_grow(0), "n4");
    c.pass(Duration::from_secs(10));
    let why = c.ended("n4").expect("the older program ends");
    assert!(why.contains("the cluster is at version 2"), "{why}");

    let later =
        Versions { oldest: ClusterVersion(Versions::OWN.newest.0 + 1), newest: ClusterVersion(Versions::OWN.newest.0 + 2) };
    let said = c.on_client(US, move |host, _| async move {
        let rpc = Rpc::new(Arc::new(SimRuntime::new(host)), Arc::new(Clock::new(Duration::from_secs(3_600))), later, None, None);
        rpc.call_addr(&format!("n1:{NODE_PORT}"), Request::Status, Duration::from_secs(5)).await
    });
    let e = said.expect_err("no version in common");
    assert!(e.sqlstate() == "08004" && e.message().contains("none in common"), "{e}");
    assert!(!c.status("n1").iter().any(|n| n.node.id == NodeId(4)), "it is a member");
}
