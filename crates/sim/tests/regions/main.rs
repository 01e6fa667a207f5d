//! Regions, survivability and placement in whole simulated clusters.

mod builds;
mod clocks;
mod columns;
mod disks;
mod doubt;
mod escrow;
mod global;
mod jobs;
mod leaving;
mod life;
mod past;
mod reach;
mod revoke;
mod schema;
mod script;
mod spread;
mod steps;
mod strangers;
mod upgrade;
mod versions;
mod waits;

use meridian_base::GroupId;
use meridian_node::wire::Standing;
use meridian_sim::cluster::meridian::Tuning;
use script::{ASIA, Cluster, EU, US, nodes_in, refused};
use std::collections::BTreeMap;
use std::time::Duration;

/// How many nodes of a `replica_localities` are in each region.
fn per_region(localities: &str) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for one in localities.split("; ") {
        let region = one.split("region=").nth(1).and_then(|r| r.split(',').next()).unwrap_or_else(|| panic!("{localities}"));
        *count.entry(region.to_string()).or_default() += 1;
    }
    count
}

/// An election over regions, one more because votes were split, the wait for the old lease, and a
/// commit.
const FAILOVER_MAX: Duration = Duration::from_secs(10);

#[test]
fn a_database_that_survives_a_region_goes_on_without_its_home() {
    let mut c = Cluster::start(3, 3, 41, Tuning::default());
    c.sql(
        US,
        "defaultdb",
        &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\" SURVIVE REGION FAILURE"),
    );
    c.sql(US, "d", "CREATE TABLE a (id INT8 PRIMARY KEY); CREATE TABLE b (id INT8 PRIMARY KEY)");
    let ranges = c.settled(US, "d");
    assert_eq!(ranges.len(), 1);
    assert_eq!((nodes_in(&ranges[0][6]).len(), nodes_in(&ranges[0][7]).len()), (5, 0));
    let count = per_region(&ranges[0][8]);
    assert_eq!((count[US], count.values().copied().max()), (2, Some(2)));
    assert!(ranges[0][5].contains(US), "{ranges:?}");

    // A commit at home takes one round to the nearest other region and back.
    // (The first one after the group was founded may wait for the lease of its primary.)
    c.sql(US, "d", "INSERT INTO a VALUES (-5)");
    let start = c.elapsed();
    c.sql(US, "d", "INSERT INTO a VALUES (-1); INSERT INTO a VALUES (-2); INSERT INTO a VALUES (-3); INSERT INTO a VALUES (-4)");
    let each = (c.elapsed() - start) / 4;
    assert!((80..180).contains(&each.as_millis()), "{each:?}");

    let (near, far) = (c.load(EU, "d", "a", 0), c.load(ASIA, "d", "b", 0));
    c.pass(Duration::from_secs(5));
    let before = (near.count(), far.count());
    assert!(before.0 > 5 && before.1 > 5, "{before:?}");
    let killed = c.elapsed();
    c.kill_region(US);
    c.pass(Duration::from_secs(20));
    for (load, before) in [(&near, before.0), (&far, before.1)] {
        assert!(load.count() > before + 10, "commits go on: {before} before, {} now", load.count());
        let pause = load.longest_pause(killed);
        assert!(pause < FAILOVER_MAX, "{pause:?}");
    }
    near.check(&mut c, EU, "d", "a");
    far.check(&mut c, ASIA, "d", "b");

    // It goes home when home is there again.
    c.restart_region(US);
    let end = c.elapsed() + Duration::from_secs(60);
    while !c.settled(EU, "d")[0][5].contains(US) {
        assert!(c.elapsed() < end, "the primary does not go home");
        c.pass(Duration::from_secs(1));
    }
    near.stop();
    far.stop();
    c.pass(Duration::from_secs(3));
    near.check(&mut c, US, "d", "a");
    far.check(&mut c, US, "d", "b");
}

#[test]
fn a_database_gets_regions_while_it_is_written_and_its_data_follows() {
    let mut c = Cluster::start(3, 3, 7, Tuning::default());
    c.sql(US, "defaultdb", "CREATE DATABASE d");
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY); CREATE SEQUENCE s; SELECT nextval('s')");
    let load = c.load(US, "d", "t", 0);
    c.pass(Duration::from_secs(2));
    let placed = |c: &mut Cluster| {
        let ranges = c.settled(US, "d");
        assert_eq!(ranges.len(), 1, "{ranges:?}");
        let primary = ranges[0][5].split("region=").nth(1).and_then(|r| r.split(',').next()).expect("a region").to_string();
        let (voters, others) = (nodes_in(&ranges[0][6]), nodes_in(&ranges[0][7]));
        let held = voters.union(&others).copied().collect();
        // What is not placed on a node leaves it.
        c.await_holders("n1", &ranges[0][0].clone(), &held);
        (primary, voters.len(), others.len())
    };
    assert_eq!(placed(&mut c), (US.to_string(), 3, 0));
    c.sql(EU, "d", &format!("ALTER DATABASE d SET PRIMARY REGION \"{US}\""));
    c.sql(EU, "d", &format!("ALTER DATABASE d ADD REGION \"{EU}\"; ALTER DATABASE d ADD REGION \"{ASIA}\""));
    assert_eq!(placed(&mut c), (US.to_string(), 3, 2));
    c.sql(EU, "d", "ALTER DATABASE d SURVIVE REGION FAILURE");
    assert_eq!(placed(&mut c), (US.to_string(), 5, 0));
    c.sql(EU, "d", &format!("ALTER DATABASE d SET PRIMARY REGION \"{EU}\""));
    assert_eq!(placed(&mut c), (EU.to_string(), 5, 0));
    let (state, message) = refused(c.try_sql(EU, "d", &format!("ALTER DATABASE d DROP REGION \"{US}\"")));
    assert_eq!((state.as_str(), message.as_str()), ("22023", "at least 3 regions are required for surviving a region failure"));
    c.sql(EU, "d", "ALTER DATABASE d SURVIVE ZONE FAILURE");
    assert_eq!(placed(&mut c), (EU.to_string(), 3, 2));
    c.sql(EU, "d", &format!("ALTER DATABASE d DROP REGION \"{US}\""));
    assert_eq!(placed(&mut c), (EU.to_string(), 3, 1));
    c.sql(EU, "d", "ALTER DATABASE d PLACEMENT RESTRICTED");
    assert_eq!(placed(&mut c), (EU.to_string(), 3, 0));
    load.stop();
    c.pass(Duration::from_secs(3));
    assert!(load.count() > 50, "{}", load.count());
    load.check(&mut c, ASIA, "d", "t");
    assert!(load.longest_pause(Duration::from_secs(3)) < FAILOVER_MAX, "{:?}", load.longest_pause(Duration::from_secs(3)));
    assert_eq!(c.sql(EU, "d", "SELECT nextval('s') > 1"), [["t"]]);

    // What is dropped leaves no replica behind.
    let group = c.settled(US, "d")[0][0].clone();
    c.sql(US, "defaultdb", "DROP DATABASE d");
    c.await_holders("n1", &group, &Default::default());
}

#[test]
fn replicas_leave_a_node_that_is_decommissioned_and_one_that_is_dead() {
    let tuning = Tuning { dead_after: Duration::from_secs(12), ..Tuning::default() };
    let mut c = Cluster::start(1, 3, 5, tuning);
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY)");
    let load = c.load(US, "defaultdb", "t", 0);
    let fourth = c.grow(1);
    let group = c.settled(US, "defaultdb")[0][0].clone();
    let (two, three, four) = (c.id_of("n2"), c.id_of("n3"), c.id_of(&fourth));
    let one = c.id_of("n1");

    // Draining: no primary there, but replicas.
    c.stand("n1", three, Standing::Draining).expect("taken");
    c.pass(Duration::from_secs(8));
    let leads = c.status("n1").into_iter().find(|n| n.node.id == three).expect("listed").leads;
    assert!(leads.is_empty(), "{leads:?}");
    c.stand("n1", three, Standing::Active).expect("taken");

    // One that is silent for a moment keeps its replicas; one that stays silent loses them.
    c.kill("n2");
    c.pass(Duration::from_secs(8));
    c.await_voters(&group, &[one, two, three]);
    c.pass(Duration::from_secs(20));
    c.await_voters(&group, &[one, three, four]);
    c.restart("n2");
    c.pass(Duration::from_secs(10));

    // Decommissioned: its replicas go first, then it may go. Nobody says that they are gone when
    // nobody can be asked.
    c.stand("n1", four, Standing::Decommissioning).expect("taken");
    let early = c.stand("n1", four, Standing::Decommissioned).expect_err("it has a replica");
    assert_eq!(early.sqlstate(), "55000", "{early}");
    c.await_voters(&group, &[one, two, three]);
    c.await_holders("n1", &group, &[one, two, three].into());
    c.stand("n1", four, Standing::Decommissioned).expect("taken");
    c.pass(Duration::from_secs(3));
    assert!(c.has_ended(&fourth), "a node that was decommissioned stops");
    let refusal = c.stand("n1", four, Standing::Active).expect_err("for ever");
    assert_eq!(refusal.sqlstate(), "55000");
    load.stop();
    c.pass(Duration::from_secs(3));
    load.check(&mut c, US, "defaultdb", "t");
}

/// Logs are files of the simulated disk, stores are not; but a store is only where a replica is.
#[test]
fn restricted_rows_leave_no_byte_outside_their_home_region() {
    let mut c = Cluster::start(3, 1, 9, Tuning::default());
    let regions = format!("PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\"");
    c.sql(US, "defaultdb", &format!("CREATE DATABASE open {regions}; CREATE DATABASE shut {regions} PLACEMENT RESTRICTED"));
    let (seen, hidden) = ("a marker that may be copied", "a marker that stays at home");
    for (database, marker) in [("open", seen), ("shut", hidden)] {
        c.sql(US, database, "CREATE TABLE t (id INT8 PRIMARY KEY, v TEXT)");
        c.sql(US, database, &format!("INSERT INTO t VALUES (1, '{marker}')"));
    }
    // It is read everywhere, and written from everywhere, in transactions over both databases'
    // regions too.
    for region in [EU, ASIA] {
        assert_eq!(c.sql(region, "shut", "SELECT v FROM t WHERE id = 1"), [[hidden]]);
        c.sql(region, "shut", "UPDATE t SET id = id + 1; UPDATE t SET id = id - 1");
    }
    c.settled(US, "open");
    let group = c.settled(US, "shut")[0][0].clone();
    c.pass(Duration::from_secs(5));
    let home = c.id_of("n1");
    c.await_holders("n1", &group, &[home].into());
    for node in ["n1", "n2", "n3"] {
        assert!(c.files_hold(node, seen), "{node} has a copy of what may be copied");
        assert_eq!(c.files_hold(node, hidden), node == "n1", "{node}");
    }
}

#[test]
fn a_schema_change_outlives_the_node_that_runs_it() {
    let mut c = Cluster::start(1, 3, 11, Tuning::default());
    // Until the catalog has its three voters.
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8)");
    for from in (0..20_000).step_by(1_000) {
        let rows = format!("SELECT g, g FROM generate_series({from}, {}) AS s(g)", from + 999);
        c.sql(US, "defaultdb", &format!("INSERT INTO t {rows}"));
    }
    c.begin_sql(US, "defaultdb", "CREATE UNIQUE INDEX by_v ON t (v)");
    let status = |c: &mut Cluster| c.sql(US, "defaultdb", "SHOW JOBS").last().map(|row| (row[4].clone(), row[10].clone()));
    let end = c.elapsed() + Duration::from_secs(10);
    while status(&mut c).is_none() {
        assert!(c.elapsed() < end, "the job does not begin");
        c.pass(Duration::from_millis(20));
    }
    let (state, first) = status(&mut c).expect("a job");
    assert_eq!(state, "running");
    // A connection goes to the region's first node, and the job runs where its session is.
    c.kill("n1");
    let end = c.elapsed() + Duration::from_secs(60);
    loop {
        c.pass(Duration::from_secs(1));
        let (state, node) = status(&mut c).expect("a job");
        if state == "succeeded" {
            assert_ne!(node, first, "another node went on with it");
            break;
        }
        assert!(c.elapsed() < end, "the job is {state} on {node}");
    }
    assert_eq!(c.sql(US, "defaultdb", "SELECT count(*) FROM t WHERE v >= 0"), [["20000"]]);
    let duplicate = c.try_sql(US, "defaultdb", "INSERT INTO t VALUES (-1, 7)");
    assert_eq!(refused(duplicate).0, "23505");
}

/// A group whose primary does not answer may count on the node.
#[test]
fn a_node_stays_a_member_while_a_group_may_count_on_it() {
    let mut c = Cluster::start(3, 2, 66, Tuning::default());
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{ASIA}\" REGIONS \"{US}\", \"{EU}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY)");
    let group = c.settled(US, "d")[0][0].clone();
    c.kill_region(ASIA);
    c.pass(Duration::from_secs(10));
    let idle = c.id_of("n2");
    c.stand("n1", idle, Standing::Decommissioning).expect("taken");
    c.pass(Duration::from_secs(20));
    let refusal = c.stand("n1", idle, Standing::Decommissioned).expect_err("nobody speaks for the group");
    assert_eq!(refusal.sqlstate(), "55000");
    assert!(refusal.message().contains(&format!("no primary answers for group {group}")), "{refusal}");
    c.restart_region(ASIA);
    let end = c.elapsed() + Duration::from_secs(120);
    while let Err(e) = c.stand("n1", idle, Standing::Decommissioned) {
        assert!(e.sqlstate() == "55000" && c.elapsed() < end, "{e}");
        c.pass(Duration::from_secs(1));
    }
}

/// A schema change that has not left its node is tried at the next primary of the catalog, not
/// given up with an unknown outcome.
#[test]
fn schemas_change_while_the_catalogs_primary_is_dead() {
    let mut c = Cluster::start(1, 3, 67, Tuning::default());
    c.pass(Duration::from_secs(15));
    let primary = c.status("n1").into_iter().find(|n| n.leads.contains(&GroupId::CATALOG)).expect("a primary").node.id;
    let names = ["n1", "n2", "n3"];
    let dead = names.into_iter().find(|n| c.id_of(n) == primary).expect("its name");
    c.kill(dead);
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY)");
    c.sql(US, "defaultdb", "INSERT INTO t VALUES (1)");
}

/// A cluster of three regions becomes one of two: no other node takes the vote for the catalog, and
/// the cluster has as many as one that was founded with two.
#[test]
fn the_last_node_of_a_region_is_decommissioned() {
    let mut c = Cluster::start(3, 1, 65, Tuning::default());
    c.pass(Duration::from_secs(15));
    let catalog = GroupId::CATALOG.to_string();
    let (one, two, three) = (c.id_of("n1"), c.id_of("n2"), c.id_of("n3"));
    c.await_voters(&catalog, &[one, two, three]);
    c.stand("n1", three, Standing::Decommissioning).expect("taken");
    let end = c.elapsed() + Duration::from_secs(40);
    while let Err(e) = c.stand("n1", three, Standing::Decommissioned) {
        assert!(e.sqlstate() == "55000" && c.elapsed() < end, "{e}");
        c.pass(Duration::from_secs(1));
    }
    c.pass(Duration::from_secs(5));
    assert!(c.has_ended("n3"), "a node that was decommissioned stops");
    c.sql(EU, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY)");
    c.sql(US, "defaultdb", "INSERT INTO t VALUES (1)");
    assert_eq!(c.sql(EU, "defaultdb", "SELECT count(*) FROM t"), [["1"]]);
}

/// The only node of a database's home region keeps what nobody else may have, and SHOW RANGES says
/// so.
#[test]
fn a_node_that_cannot_be_emptied_says_why() {
    let mut c = Cluster::start(3, 1, 64, Tuning::default());
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY)");
    c.settled(US, "d");
    let only = c.id_of("n1");
    for (standing, what) in [
        (Standing::Draining, "is being drained, and no other voter can lead the group"),
        (Standing::Decommissioning, "is being decommissioned, and no other node may take its replica"),
    ] {
        c.stand("n2", only, standing).expect("taken");
        c.pass(Duration::from_secs(8));
        let ranges = c.sql(EU, "d", "SHOW RANGES FROM DATABASE d");
        assert!(ranges[0].iter().any(|cell| cell.contains(what)), "{ranges:?}");
    }
    c.stand("n2", only, Standing::Active).expect("taken");
    c.pass(Duration::from_secs(8));
    c.settled(US, "d");
}
