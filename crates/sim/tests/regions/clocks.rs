//! Clocks that are an hour ahead, and are set right.

use super::script::{Cluster, EU, US, refused};
use meridian_base::NodeId;
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

const HOUR: i64 = 3_600_000_000;
/// A restart, an election and the longest ordinary wait for the clock.
const SOON: Duration = Duration::from_secs(15);

fn two_regions(seed: u64) -> Cluster {
    let mut c = Cluster::start(2, 1, seed, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE us PRIMARY REGION \"{US}\"; CREATE DATABASE eu PRIMARY REGION \"{EU}\""));
    for (region, database) in [(US, "us"), (EU, "eu")] {
        c.sql(region, database, "CREATE TABLE t (id INT8 PRIMARY KEY); INSERT INTO t VALUES (1)");
        c.settled(region, database);
    }
    c
}

/// Whatever is written goes on above what was written, and what was acknowledged is seen.
#[test]
fn clocks_that_were_all_ahead_are_moved_there_again_by_an_operator() {
    for (regions, seed) in [(1, 71), (2, 72)] {
        let mut c = Cluster::start_with_clocks(regions, 1, seed, Tuning::default(), |_| HOUR);
        c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8); INSERT INTO t VALUES (1, 1)");
        let nodes: Vec<String> = (1..=regions).map(|n| format!("n{n}")).collect();
        for node in &nodes {
            c.kill(node);
            c.jump_clock(node, -HOUR);
        }
        nodes.iter().for_each(|node| c.restart(node));
        c.pass(Duration::from_secs(60));
        assert!(!c.has_started("n1"), "it waits, and neither serves nor ends");
        for n in c.status("n1") {
            let (_, by) = n.clock.expect("it answers").behind.expect("it is behind");
            assert!((3_500_000_000..3_610_000_000).contains(&by), "{by}");
        }
        let done = c.accept_clock("n1").expect("taken");
        assert_eq!((done.moved.len(), done.failed.len()), (regions, 0));
        c.await_start(&nodes);
        assert_eq!(c.sql(US, "defaultdb", "SELECT v FROM t"), [["1"]]);
        c.sql(US, "defaultdb", "UPDATE t SET v = v + 1; ALTER TABLE t ADD COLUMN w INT8 DEFAULT 7; INSERT INTO t VALUES (2, 2)");
        assert_eq!(c.accept_clock("n1").map(drop).expect_err("once is enough").sqlstate(), "55000");

        // A restart goes on where the clock was, and needs nobody.
        c.pass(Duration::from_secs(30));
        nodes.iter().for_each(|node| c.kill(node));
        nodes.iter().for_each(|node| c.restart(node));
        c.pass(SOON);
        c.await_start(&nodes);
        assert_eq!(c.sql(US, "defaultdb", "SELECT sum(v), sum(w) FROM t"), [["4", "14"]]);
        // The wall clock catches up in the end.
        let ahead = c.status("n1")[0].clock.expect("it answers").ahead_of_wall_micros;
        assert!((3_500_000_000..3_590_000_000).contains(&ahead), "{ahead}");
    }
}

/// What was promised an hour ahead is waited for by nobody: neither a row nor a schema change.
#[test]
fn whoever_writes_while_the_clock_is_behind_is_told_at_once() {
    let mut c = Cluster::start_with_clocks(1, 1, 77, Tuning::default(), |_| HOUR);
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY); INSERT INTO t VALUES (1)");
    // The catalog is flushed, so that the node knows at its start what it holds.
    c.pass(Duration::from_secs(45));
    c.kill("n1");
    c.jump_clock("n1", -HOUR);
    c.restart("n1");
    c.pass(SOON);
    for sql in ["INSERT INTO t VALUES (2)", "CREATE TABLE u (id INT8 PRIMARY KEY)"] {
        let began = c.elapsed();
        let (state, message) = refused(c.try_sql(US, "defaultdb", sql));
        assert!(state == "57P03" && message.contains("behind the last promise of group"), "{sql}: {state} {message}");
        let took = c.elapsed() - began;
        assert!(took < Duration::from_secs(2), "{sql}: {took:?}");
    }
    c.accept_clock("n1").expect("taken");
    c.sql(US, "defaultdb", "INSERT INTO t VALUES (2); CREATE TABLE u (id INT8 PRIMARY KEY)");
}

/// The copy of the catalog is flushed before, so the node starts; the table's version comes back
/// from the log, an hour ahead.
#[test]
fn what_was_created_while_the_clock_was_ahead_is_not_said_to_be_missing() {
    let mut c = Cluster::start_with_clocks(1, 1, 79, Tuning::default(), |_| HOUR);
    c.pass(Duration::from_secs(45));
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY); INSERT INTO t VALUES (1)");
    c.kill("n1");
    c.jump_clock("n1", -HOUR);
    c.restart("n1");
    c.pass(SOON);
    for sql in ["SELECT * FROM t", "INSERT INTO t VALUES (2)", "CREATE TABLE t (id INT8 PRIMARY KEY)"] {
        let began = c.elapsed();
        let (state, message) = refused(c.try_sql(US, "defaultdb", sql));
        assert!(state == "57P03" && message.contains("behind the last promise of group"), "{sql}: {state} {message}");
        let took = c.elapsed() - began;
        assert!(took < Duration::from_secs(2), "{sql}: {took:?}");
    }
    c.accept_clock("n1").expect("taken");
    assert_eq!(c.sql(US, "defaultdb", "SELECT * FROM t"), [["1"]]);
    c.sql(US, "defaultdb", "INSERT INTO t VALUES (2)");
}

#[test]
fn a_clock_that_jumps_ahead_while_its_node_serves_costs_a_restart_and_no_more() {
    let mut c = two_regions(73);
    let load = c.load(EU, "eu", "t", 100);
    c.pass(Duration::from_secs(2));
    c.jump_clock("n2", HOUR);
    c.pass(Duration::from_secs(1));
    assert!(c.ended("n2").expect("it stops").contains("jumped ahead"), "it stops itself");
    c.kill("n2");
    c.jump_clock("n2", -HOUR);
    c.restart("n2");
    c.pass(SOON);
    load.stop();
    c.pass(Duration::from_secs(2));
    c.sql(EU, "eu", "INSERT INTO t VALUES (2)");
    load.check(&mut c, EU, "eu", "t");
}

/// The clock stays behind the other nodes' clocks after the step, and they would refuse this node's
/// messages.
#[test]
fn a_clock_that_jumps_ahead_while_its_node_waits_to_join_costs_a_restart_and_no_more() {
    let mut c = two_regions(80);
    c.lose_disk("n2");
    c.cut("n1", "n2");
    c.restart("n2");
    c.pass(Duration::from_secs(3));
    c.jump_clock("n2", 600_000);
    c.pass(Duration::from_secs(1));
    assert!(c.ended("n2").expect("it stops").contains("jumped ahead"), "it stops itself");
    c.kill("n2");
    c.jump_clock("n2", -600_000);
    c.mend("n1", "n2");
    c.restart("n2");
    c.await_start(&["n2".into()]);
    assert_eq!(c.sql(EU, "us", "SELECT id FROM t"), [["1"]]);
}

/// A new process whose clock is an hour off finds the cluster. The members refuse to take it in,
/// and `meridian init` on it is refused with 55000.
#[test]
fn a_new_node_with_a_wrong_clock_founds_no_second_cluster() {
    const HOUR: i64 = 3_600_000_000;
    for (seed, by) in [(86, HOUR), (87, -HOUR)] {
        let mut c = two_regions(seed);
        c.lose_disk("n2");
        c.jump_clock("n2", by);
        c.restart("n2");
        c.pass(Duration::from_secs(5));
        let e = c.init("n2").expect_err("there is a cluster");
        assert_eq!((e.sqlstate(), e.message().contains("there is a cluster already")), ("55000", true), "{e}");
        c.kill("n2");
        c.jump_clock("n2", -by);
        c.restart("n2");
        c.await_start(&["n2".into()]);
        assert_eq!(c.sql(EU, "us", "SELECT id FROM t"), [["1"]]);
    }
}

#[test]
fn a_clock_that_is_set_back_while_its_node_serves_goes_on() {
    let mut c = Cluster::start_with_clocks(1, 1, 74, Tuning::default(), |_| HOUR);
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8); INSERT INTO t VALUES (1, 1)");
    c.jump_clock("n1", -HOUR);
    let began = c.elapsed();
    for _ in 0..10 {
        c.sql(US, "defaultdb", "UPDATE t SET v = v + 1");
    }
    c.sql(US, "defaultdb", "CREATE TABLE u (id INT8 PRIMARY KEY); INSERT INTO u VALUES (1)");
    assert!(c.elapsed() - began < SOON);
    assert_eq!(c.sql(US, "defaultdb", "SELECT v FROM t"), [["11"]]);
}

/// The group's only voter elects itself at once; what it would promise by a clock that is wrong is
/// prevented by the other region's.
#[test]
fn a_node_that_starts_with_a_wrong_clock_promises_nothing() {
    let mut c = two_regions(75);
    c.kill("n2");
    c.jump_clock("n2", HOUR);
    c.restart("n2");
    c.pass(Duration::from_secs(5));
    assert!(c.ended("n2").expect("it stops").contains("clock differs"), "it stops itself");
    c.kill("n2");
    c.jump_clock("n2", -HOUR);
    c.restart("n2");
    c.pass(SOON);
    c.sql(EU, "eu", "INSERT INTO t VALUES (2)");
    assert_eq!(c.sql(US, "eu", "SELECT count(*) FROM t"), [["2"]]);
}

/// Cut off, it cannot know. The group is not served for an hour then, and says why; the others are
/// as before.
#[test]
fn what_a_region_that_was_cut_off_promised_by_a_wrong_clock_is_waited_for() {
    let mut c = two_regions(76);
    // Its copy of the catalog is flushed: without that, it knows no groups until it hears of the
    // catalog's primary.
    c.pass(Duration::from_secs(45));
    c.cut_off(EU);
    c.kill("n2");
    c.jump_clock("n2", HOUR);
    c.restart("n2");
    // It leads, and promises an hour ahead. (It commits nothing: its schema lease is not renewed.)
    c.pass(SOON);
    c.kill("n2");
    c.jump_clock("n2", -HOUR);
    c.mend("n1", "n2");
    c.restart("n2");
    c.pass(SOON);
    c.sql(US, "us", "INSERT INTO t VALUES (2)");
    for region in [EU, US] {
        let began = c.elapsed();
        let (state, message) = refused(c.try_sql(region, "eu", "INSERT INTO t VALUES (3)"));
        assert_eq!(state, "57P03", "{message}");
        assert!(message.contains("behind the last promise of group"), "{message}");
        let took = c.elapsed() - began;
        assert!(took < Duration::from_secs(15), "{took:?}");
    }
    let refusal = c.accept_clock("n1").map(drop).expect_err("the other region's clock was right all the time");
    assert_eq!(refusal.sqlstate(), "55000");
}

/// Of two clocks that differ nobody knows which one is right, but for whoever's wall clock agrees
/// with the other one: it makes way.
#[test]
fn a_node_whose_clock_was_set_right_after_its_start_does_not_keep_others_from_starting() {
    let mut c = two_regions(78);
    c.pass(Duration::from_secs(45));
    c.cut_off(EU);
    c.kill("n2");
    c.jump_clock("n2", HOUR);
    c.restart("n2");
    c.pass(SOON);
    c.jump_clock("n2", -HOUR);
    c.mend("n1", "n2");
    c.pass(SOON);
    let ended = c.ended("n2").expect("it stops itself");
    assert!(ended.contains("clock differs"), "{ended}");
    c.kill("n2");
    c.restart("n2");
    c.kill("n1");
    c.restart("n1");
    c.await_start(&["n1".to_owned(), "n2".to_owned()]);
    c.sql(US, "us", "INSERT INTO t VALUES (2)");
}

/// A node that has no catalog yet knows the others from before its restart, and compares its clock
/// with theirs all the same. The third node is lost, so that the catalog has no majority, and
/// nothing to send, without the one whose clock is wrong.
#[test]
fn a_node_that_waits_for_the_catalog_notices_that_its_clock_was_set_right() {
    let mut c = Cluster::start(1, 3, 79, Tuning::default());
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY); INSERT INTO t VALUES (1)");
    c.await_voters("g1", &[NodeId(1), NodeId(2), NodeId(3)]);
    for other in ["n2", "n3"] {
        c.cut("n1", other);
    }
    c.kill("n1");
    c.jump_clock("n1", HOUR);
    c.restart("n1");
    c.pass(SOON);
    assert!(!c.has_started("n1"), "it has no catalog yet");
    c.kill("n2");
    c.jump_clock("n1", -HOUR);
    for other in ["n2", "n3"] {
        c.mend("n1", other);
    }
    c.pass(SOON);
    let ended = c.ended("n1").expect("it stops itself");
    assert!(ended.contains("clock differs"), "{ended}");
    c.kill("n1");
    c.restart("n1");
    c.await_start(&["n1".to_owned()]);
    c.pass(SOON);
    c.try_sql_at("n1", "defaultdb", "INSERT INTO t VALUES (2)").expect("two of three serve");
    assert_eq!(c.try_sql_at("n3", "defaultdb", "SELECT count(*) FROM t").expect("two of three serve"), [["2"]]);
}

/// A machine that slept finds its clock where it was, and what it reads of GLOBAL rows at such a
/// time is of the past, until its node has noticed and stops.
#[test]
fn a_node_that_slept_shows_nothing_of_the_past() {
    for (seed, asleep) in [(81, 600), (82, 1_700), (83, 4_000)] {
        let mut c = Cluster::start(1, 3, seed, Tuning::default());
        c.sql(US, "defaultdb", &format!("CREATE DATABASE us PRIMARY REGION \"{US}\""));
        c.sql(US, "us", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8) LOCALITY GLOBAL; INSERT INTO t VALUES (1, 0)");
        c.settled(US, "us");
        c.pass(Duration::from_secs(3));
        assert_eq!(c.try_sql_at("n3", "us", "SELECT v FROM t").expect("it serves"), [["0"]]);
        let seen = c.watch("n3", "us", "SELECT v FROM t");
        c.pass(Duration::from_secs(1));
        c.sleep("n3");
        c.pass(Duration::from_millis(asleep));
        c.try_sql_at("n1", "us", "UPDATE t SET v = 1").expect("two of three serve");
        seen.lock().clear();
        c.wake("n3");
        c.pass(Duration::from_secs(1));
        // The first question was asked before.
        let late: Vec<_> = seen.lock().iter().skip(1).filter(|rows| **rows != [["1"]]).cloned().collect();
        assert!(late.is_empty(), "after {asleep} ms: {late:?}");
        assert!(c.ended("n3").is_some_and(|e| e.contains("clock")), "it stops itself");
    }
}
