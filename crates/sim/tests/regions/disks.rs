//! Machines whose disk is gone: the same address with an empty directory.

use super::nodes_in;
use super::{Cluster, Tuning, US};
use meridian_node::wire::Standing;
use std::time::Duration;

/// Waits until a node that lost its disk is no member any more.
fn await_end(c: &mut Cluster, asked: &str, node: meridian_base::NodeId) {
    let end = c.elapsed() + Duration::from_secs(90);
    while c.standing(asked, node) != Some(Standing::Decommissioned) {
        assert!(c.elapsed() < end, "{node} is still {:?}", c.standing(asked, node));
        c.pass(Duration::from_secs(1));
    }
}

#[test]
fn a_machine_that_loses_its_disk_is_a_new_node_and_takes_the_old_ones_place() {
    let mut c = Cluster::start(1, 3, 21, Tuning::default());
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY)");
    let load = c.load(US, "defaultdb", "t", 0);
    c.settled(US, "defaultdb");
    // A follower, and then the node that founded the cluster.
    for (name, asked) in [("n2", "n1"), ("n1", "n3")] {
        let old = c.id_at(asked, name);
        c.lose_disk(name);
        c.pass(Duration::from_secs(1));
        c.restart(name);
        await_end(&mut c, asked, old);
        let new = c.id_at(asked, name);
        assert!(new.0 > 3, "{new}");
        let group = c.settled(US, "defaultdb")[0][0].clone();
        let wanted = ["n1", "n2", "n3"].map(|n| c.id_at(asked, n));
        c.await_holders(asked, &group, &wanted.into());
    }
    // The new ones vote.
    c.kill("n3");
    let before = load.count();
    c.pass(Duration::from_secs(15));
    assert!(load.count() > before + 10, "{before} before, {} now", load.count());
    load.stop();
    c.pass(Duration::from_secs(3));
    load.check(&mut c, US, "defaultdb", "t");
}

/// One of three voters lags, the two that know what was acknowledged die, and one of these comes
/// back empty. A majority of processes is there and no majority of what they promised.
#[test]
fn a_voter_that_lost_its_disk_does_not_elect_one_that_lags() {
    let mut c = Cluster::start(1, 4, 22, Tuning::default());
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY)");
    let ranges = c.settled(US, "defaultdb");
    let voters = nodes_in(&ranges[0][6]);
    let names: Vec<&str> = ["n1", "n2", "n3", "n4"].into_iter().filter(|n| voters.contains(&c.id_of(n))).collect();
    let [lags, lost, last] = names[..] else { panic!("three voters: {names:?}") };
    c.kill(lags);
    let load = c.load(US, "defaultdb", "t", 0);
    c.pass(Duration::from_secs(5));
    load.stop();
    c.pass(Duration::from_secs(3));
    assert!(load.count() > 10, "{}", load.count());
    c.kill(last);
    c.lose_disk(lost);
    c.pass(Duration::from_secs(1));
    c.restart(lost);
    c.restart(lags);
    c.pass(Duration::from_secs(30));
    let acknowledged = load.count();
    if let Ok(rows) = c.try_sql(US, "defaultdb", "SELECT count(*) FROM t") {
        assert_eq!(rows, [[acknowledged.to_string()]]);
    }
    c.restart(last);
    c.pass(Duration::from_secs(30));
    load.check(&mut c, US, "defaultdb", "t");
}
