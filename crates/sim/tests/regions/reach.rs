//! What clients get while something is out of reach: a region, a link, room on a disk.

use crate::script::{ASIA, Cluster, EU, US};
use meridian_base::parts::LargeFrom;
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

/// Runs a statement on a new connection: the rows or the error, and how long it took.
fn timed(c: &mut Cluster, region: &str, sql: &str) -> (meridian_base::Result<Vec<Vec<String>>>, Duration) {
    let began = c.elapsed();
    let database = if sql.contains(" FROM g") { "far" } else { "d" };
    let result = c.try_sql(region, database, sql);
    (result, c.elapsed() - began)
}

#[test]
fn what_needs_a_lost_region_fails_at_once_and_the_rest_is_answered() {
    const AT_ONCE: Duration = Duration::from_millis(1_500);
    let mut c = Cluster::start(3, 1, 171, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE far PRIMARY REGION \"{ASIA}\" REGIONS \"{EU}\", \"{US}\""));
    c.sql(US, "far", "CREATE TABLE g (id INT8 PRIMARY KEY, v INT8) LOCALITY GLOBAL; INSERT INTO g VALUES (1, 10)");
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE here (id INT8 PRIMARY KEY, v INT8)");
    c.sql(US, "d", &format!("CREATE TABLE there (id INT8 PRIMARY KEY, v INT8) LOCALITY REGIONAL BY TABLE IN \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE r (id INT8 PRIMARY KEY, v INT8) LOCALITY REGIONAL BY ROW");
    c.sql(US, "d", "INSERT INTO here VALUES (1, 10); INSERT INTO there VALUES (1, 20); INSERT INTO r VALUES (1, 30)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(5));
    c.kill_region(ASIA);
    c.pass(Duration::from_secs(6));

    for sql in [
        "SELECT v FROM there WHERE id = 1",
        "INSERT INTO there VALUES (2, 1)",
        "UPDATE there SET v = 1",
        "SELECT v FROM g WHERE id = 1",
        "SELECT v FROM there AS OF SYSTEM TIME '-1s'",
        "INSERT INTO r VALUES (2, 1)",
        "SELECT v FROM r WHERE id = 77",
    ] {
        let (result, took) = timed(&mut c, US, sql);
        let e = result.expect_err(sql);
        assert_eq!(e.sqlstate(), "57P03", "{sql}: {e}");
        assert!(took < AT_ONCE, "{sql}: {took:?}, {e}");
        assert!(e.message().contains(ASIA), "{sql}: {e}");
        assert!(e.get_detail().is_some_and(|d| d.contains("have not been heard of for")), "{sql}: {e}");
        assert!(e.get_hint().is_some_and(|h| h.contains("AS OF SYSTEM TIME '-")), "{sql}: {:?}", e.get_hint());
    }
    // After a little more the hint is still what can be read.
    let hint = c.try_sql(US, "d", "SELECT v FROM there").unwrap_err().get_hint().unwrap().to_string();
    let past = hint.split("AS OF SYSTEM TIME ").nth(1).and_then(|h| h.split(' ').next()).unwrap().to_string();
    for (sql, v) in [
        (format!("SELECT v FROM there AS OF SYSTEM TIME {past}"), "20"),
        ("SELECT v FROM there AS OF SYSTEM TIME with_max_staleness('1h')".to_string(), "20"),
        ("SELECT v FROM here".to_string(), "10"),
        ("SELECT v FROM here AS OF SYSTEM TIME '-1s'".to_string(), "10"),
        ("SELECT v FROM r WHERE id = 1".to_string(), "30"),
    ] {
        let (result, took) = timed(&mut c, US, &sql);
        assert_eq!(result.unwrap_or_else(|e| panic!("{sql}: {e}")), [[v]]);
        assert!(took < AT_ONCE, "{sql}: {took:?}");
    }
    let create = format!("CREATE TABLE x (id INT8 PRIMARY KEY) LOCALITY REGIONAL BY TABLE IN \"{ASIA}\"");
    let (result, took) = timed(&mut c, US, &create);
    assert_eq!(result.expect_err("its home is lost").sqlstate(), "57P03");
    assert!(took < Duration::from_secs(2), "{took:?}");

    // It comes back, and so does everything else.
    c.restart_region(ASIA);
    c.pass(Duration::from_secs(10));
    assert_eq!(c.sql(US, "d", "SELECT v FROM there WHERE id = 1"), [["20"]]);
    c.sql(US, "d", "INSERT INTO r VALUES (2, 1)");
    c.sql(US, "d", &create);
}

/// Two of three voters die. Who holds no replica does not know who the voters are, and two nodes of
/// the region live: the third voter, and one that has just come. Nothing of the commit was sent,
/// and nobody says that its outcome is unknown.
#[test]
fn a_commit_that_never_left_fails_when_its_home_counts_as_lost() {
    let mut c = Cluster::start(2, 1, 173, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{EU}\" REGIONS \"{US}\""));
    c.sql(US, "d", "CREATE TABLE there (id INT8 PRIMARY KEY, v INT8); INSERT INTO there VALUES (1, 20)");
    c.settled(US, "d");
    let block = c.converse(US, "d");
    block.ask(&mut c, "BEGIN");
    block.ask(&mut c, "UPDATE there SET v = 21 WHERE id = 1");
    c.kill_region(EU);
    // The connection is known to be broken, and the group not yet to be lost.
    c.pass(Duration::from_millis(500));
    let began = c.elapsed();
    block.say("COMMIT");
    let e = block.hear(&mut c).expect_err("its home is lost");
    assert_eq!(e.sqlstate(), "57P03", "{e}");
    let took = c.elapsed() - began;
    assert!((Duration::from_secs(2)..Duration::from_secs(6)).contains(&took), "{took:?}");
    c.restart_region(EU);
    c.pass(Duration::from_secs(10));
    assert_eq!(c.sql(US, "d", "SELECT v FROM there WHERE id = 1"), [["20"]]);
}

#[test]
fn nodes_without_a_replica_hear_that_a_group_is_lost() {
    let mut c = Cluster::start(2, 3, 175, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\""));
    c.sql(US, "d", &format!("CREATE TABLE t (id INT8 PRIMARY KEY, v INT8) LOCALITY REGIONAL BY TABLE IN \"{EU}\""));
    c.sql(US, "d", "INSERT INTO t VALUES (1, 10)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(5));
    ["n4", "n5"].iter().for_each(|node| c.kill(node));
    c.grow(5);
    // It remembers nothing of before.
    c.kill("n3");
    c.restart("n3");
    c.pass(Duration::from_secs(8));
    for node in ["n1", "n2", "n3"] {
        let began = c.elapsed();
        let e = c.try_sql_at(node, "d", "SELECT v FROM t").expect_err("two of three are gone");
        let took = c.elapsed() - began;
        assert!(took < Duration::from_millis(1_500), "{node}: {took:?}, {e}");
        assert_eq!(e.sqlstate(), "57P03", "{node}: {e}");
        assert!(e.get_detail().is_some_and(|d| d.contains("2 of the 3 nodes")), "{node}: {e:?}");
        // One that was restarted and holds a replica has heard of nothing that can be read.
        assert!(e.get_hint().is_none_or(|hint| !hint.contains("-17")), "{node}: {e:?}");
    }
    ["n4", "n5"].iter().for_each(|node| c.restart(node));
    c.pass(Duration::from_secs(6));
    for node in ["n1", "n2", "n3"] {
        assert_eq!(c.try_sql_at(node, "d", "SELECT v FROM t").expect("it is led again"), [["10"]]);
    }
}

#[test]
fn one_cut_link_costs_a_detour_and_no_availability() {
    let mut c = Cluster::start(3, 1, 172, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE u (id INT8 PRIMARY KEY, v INT8)");
    c.sql(US, "d", &format!("CREATE TABLE e (id INT8 PRIMARY KEY, v INT8) LOCALITY REGIONAL BY TABLE IN \"{EU}\""));
    c.sql(US, "d", "INSERT INTO u VALUES (1, 0); INSERT INTO e VALUES (1, 0)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(5));

    c.cut("n1", "n2");
    let before = c.repeat(EU, "d", "UPDATE u SET v = v + 1 WHERE id = 1", 10);
    let across = c.repeat(ASIA, "d", "WITH a AS (UPDATE u SET v = v + 1 RETURNING 1) UPDATE e SET v = v + 1", 1);
    c.pass(Duration::from_secs(12));
    for (result, took) in before.lock().iter().chain(across.lock().iter()) {
        assert_eq!(*result, Ok(()));
        assert!(*took < Duration::from_millis(3_000), "{took:?}");
    }
    assert_eq!((before.lock().len(), across.lock().len()), (10, 1));
    // On new connections, from everywhere. What was read at a replica may be out of date once.
    for gateway in [EU, US, ASIA] {
        let began = c.elapsed();
        c.sql(gateway, "d", "WITH a AS (UPDATE u SET v = v + 1 RETURNING 1) UPDATE e SET v = v + 1");
        assert!(c.elapsed() - began < Duration::from_secs(3), "{gateway}: {:?}", c.elapsed() - began);
    }
    c.pass(Duration::from_secs(3));
    assert_eq!(c.sql(ASIA, "d", "SHOW TRANSACTIONS"), [[""; 0]; 0]);
    assert_eq!(c.sql(US, "d", "SELECT v FROM e"), [["4"]]);

    // The catalog's log takes the longer way too, and the logs of the copies that are read at the
    // far end.
    c.sql(ASIA, "d", "CREATE TABLE made (id INT8 PRIMARY KEY) LOCALITY GLOBAL; INSERT INTO made VALUES (1)");
    for gateway in [EU, US, ASIA] {
        let began = c.elapsed();
        assert_eq!(c.sql(gateway, "d", "SELECT count(*) FROM made, e"), [["1"]]);
        assert!(c.elapsed() - began < Duration::from_secs(3), "{gateway}: {:?}", c.elapsed() - began);
    }

    c.mend("n1", "n2");
    c.pass(Duration::from_secs(3));
    let began = c.elapsed();
    assert_eq!(c.sql(EU, "d", "SELECT v FROM u"), [["14"]]);
    assert!(c.elapsed() - began < Duration::from_secs(1));
}

/// Heartbeats pass what is large, of their own group's log too; so its leader stays, and sends it
/// once.
#[test]
fn a_large_transaction_over_slow_links_deposes_nobody() {
    const BYTES_PER_SECOND: u64 = 3_000_000;
    let mut c = Cluster::start(1, 3, 176, Tuning::default());
    c.sql(US, "defaultdb", "CREATE DATABASE one; CREATE DATABASE other");
    c.sql(US, "one", "CREATE TABLE t (id INT8 PRIMARY KEY, v TEXT)");
    c.sql(US, "other", "CREATE TABLE a (id INT8 PRIMARY KEY)");
    c.settled(US, "one");
    c.settled(US, "other");
    c.pass(Duration::from_secs(5));
    let nodes = ["n1", "n2", "n3"];
    let leads = |c: &mut Cluster| c.status("n1").into_iter().map(|n| (n.node.id, n.leads)).collect::<Vec<_>>();
    for (i, a) in nodes.iter().enumerate() {
        nodes[i + 1..].iter().for_each(|b| c.narrow(a, b, BYTES_PER_SECOND));
    }
    let before = leads(&mut c);
    let load = c.load(US, "other", "a", 0);
    c.pass(Duration::from_secs(2));
    let began = c.elapsed();
    c.sql(US, "one", "INSERT INTO t SELECT i, repeat('x', 1000000) FROM generate_series(1, 14) AS g(i)");
    let took = c.elapsed() - began;
    assert!((Duration::from_secs(4)..Duration::from_secs(15)).contains(&took), "14 MB pass each link once: {took:?}");
    c.pass(Duration::from_secs(10));
    assert_eq!(leads(&mut c), before);
    load.stop();
    c.pass(Duration::from_secs(2));
    let pause = load.longest_pause(began);
    assert!(pause < Duration::from_millis(500), "{pause:?}");
    load.check(&mut c, US, "other", "a");
    assert_eq!(c.sql(US, "one", "SELECT count(*), sum(length(v)) FROM t"), [["14", "14000000"]]);
}

#[test]
fn a_full_disk_refuses_what_adds_and_serves_the_rest() {
    let mut c = Cluster::start(1, 1, 173, Tuning::default());
    c.sql(US, "defaultdb", "CREATE DATABASE d");
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8); CREATE TABLE gone (id INT8 PRIMARY KEY)");
    c.sql(US, "d", "INSERT INTO t SELECT i, i FROM generate_series(1, 100) AS g(i); INSERT INTO gone VALUES (1)");
    c.fill("n1", true);
    c.pass(Duration::from_secs(1));
    for sql in
        ["INSERT INTO t VALUES (200, 1)", "UPDATE t SET v = 0", "BEGIN; DELETE FROM t; INSERT INTO t VALUES (1, 1); COMMIT"]
    {
        let e = c.try_sql(US, "d", sql).expect_err(sql);
        assert_eq!(e.sqlstate(), "53100", "{sql}: {e}");
        assert!(e.get_hint().is_some(), "{sql}");
    }
    c.sql(US, "d", "DELETE FROM t WHERE id > 50");
    c.sql(US, "d", "TRUNCATE gone");
    // Leases and promises go on for as long as the reserve lasts.
    c.pass(Duration::from_secs(20));
    assert_eq!(c.sql(US, "d", "SELECT count(*), sum(v) FROM t"), [["50", "1275"]]);
    c.fill("n1", false);
    c.pass(Duration::from_secs(1));
    c.sql(US, "d", "INSERT INTO t VALUES (200, 1)");
    c.pass(Duration::from_secs(30));
    c.kill("n1");
    c.restart("n1");
    c.pass(Duration::from_secs(5));
    assert_eq!(c.sql(US, "d", "SELECT count(*), sum(v) FROM t"), [["51", "1276"]]);
}

/// As long as a quorum has room, writes go on there: leadership leaves the full node, whose log may
/// wait for as long as it takes.
#[test]
fn one_full_disk_of_three_stops_nobody() {
    const MOVED_WITHIN: Duration = Duration::from_secs(8);
    let mut c = Cluster::start(1, 3, 174, Tuning::default());
    c.sql(US, "defaultdb", "CREATE DATABASE d");
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v STRING)");
    c.sql(US, "d", "INSERT INTO t VALUES (0, '')");
    for full in ["n1", "n2", "n3"] {
        c.fill(full, true);
        c.pass(MOVED_WITHIN);
        for _ in 0..20 {
            c.sql(US, "d", "INSERT INTO t SELECT max(id) + 1, repeat('x', 10000) FROM t");
            c.pass(Duration::from_millis(200));
        }
        c.fill(full, false);
        c.pass(Duration::from_secs(10));
    }
    assert_eq!(c.sql(US, "d", "SELECT count(*), max(id) FROM t"), [["61", "60"]]);
}

/// It is known only at its commit that more than one group takes part.
#[test]
fn a_block_that_reads_elsewhere_after_it_wrote_much_is_refused() {
    let mut c = Cluster::start(2, 1, 177, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v TEXT)");
    c.sql(US, "d", &format!("CREATE TABLE e (id INT8 PRIMARY KEY) LOCALITY REGIONAL BY TABLE IN \"{EU}\""));
    c.sql(US, "d", "INSERT INTO e VALUES (1)");
    c.settled(US, "d");
    let block = c.converse(US, "d");
    block.ask(&mut c, "BEGIN");
    block.ask(&mut c, "INSERT INTO t SELECT i, repeat('x', 1000000) FROM generate_series(1, 18) AS g(i)");
    assert_eq!(block.ask(&mut c, "SELECT count(*) FROM e"), [["1"]]);
    block.say("COMMIT");
    let e = block.hear(&mut c).expect_err("one record holds no such slice");
    assert_eq!(e.sqlstate(), "53200", "{e}");
    assert!(e.get_detail().is_some_and(|d| d.contains("several regions, or homes")), "{e:?}");
    assert_eq!(c.sql(US, "d", "SELECT count(*) FROM t"), [["0"]]);
}

/// What one primary has answered at one moment needs no round.
#[test]
fn one_group_alone_takes_no_round_trip_to_commit() {
    let mut c = Cluster::start(3, 1, 178, Tuning::default());
    // No replica is in Asia, so that its gateway reads at the primary.
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8); INSERT INTO t VALUES (1, 10)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(5));
    let lines = c.sql(ASIA, "d", "EXPLAIN ANALYZE SELECT v FROM t WHERE id = 1").concat();
    let trips = lines.iter().find(|line| line.starts_with("Round Trips")).expect("a line about them");
    assert_eq!(trips, "Round Trips Between Regions: 1, to commit 0");
    assert_eq!(c.sql(ASIA, "d", "SET max_cross_region_round_trips = 1; SELECT v FROM t WHERE id = 1"), [["10"]]);
}

/// The replica here does not have it yet.
#[test]
fn a_session_sees_at_once_what_it_wrote_elsewhere() {
    let mut c = Cluster::start(2, 1, 179, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8); INSERT INTO t VALUES (1, 0)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(5));
    let client = c.converse(EU, "d");
    for v in 1..=10 {
        client.ask(&mut c, &format!("UPDATE t SET v = {v} WHERE id = 1"));
        client.ask(&mut c, "BEGIN");
        assert_eq!(client.ask(&mut c, "SELECT v FROM t WHERE id = 1"), [[v.to_string()]]);
        client.ask(&mut c, "COMMIT");
    }
}

/// The other half: it has left, it happens, and its answer is lost.
#[test]
fn a_commit_that_has_left_is_never_said_not_to_have_happened() {
    let mut c = Cluster::start(2, 1, 180, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{EU}\" REGIONS \"{US}\""));
    c.sql(US, "d", "CREATE TABLE there (id INT8 PRIMARY KEY, v INT8); INSERT INTO there VALUES (1, 20)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(5));
    let block = c.converse(US, "d");
    block.ask(&mut c, "BEGIN");
    block.ask(&mut c, "UPDATE there SET v = 21 WHERE id = 1");
    c.cut_one_way("n2", "n1");
    let began = c.elapsed();
    block.say("COMMIT");
    let e = block.hear(&mut c).expect_err("no answer comes");
    assert_eq!(e.sqlstate(), "40003", "{e}");
    let took = c.elapsed() - began;
    assert!((Duration::from_secs(18)..Duration::from_secs(30)).contains(&took), "{took:?}");
    c.mend("n1", "n2");
    c.pass(Duration::from_secs(10));
    assert_eq!(c.sql(US, "d", "SELECT v FROM there WHERE id = 1"), [["21"]]);
}

/// Pieces of its slice are on their way, and the request itself is not: nothing has happened.
#[test]
fn a_large_commit_that_does_not_get_through_has_surely_not_happened() {
    let large_from = LargeFrom { part_bytes: 1 << 20, slice_bytes: 2 << 20, ..LargeFrom::default() };
    let mut c = Cluster::start(2, 1, 181, Tuning { large_from, ..Tuning::default() });
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{EU}\" REGIONS \"{US}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v TEXT)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(5));
    let block = c.converse(US, "d");
    block.ask(&mut c, "BEGIN");
    block.ask(&mut c, "INSERT INTO t SELECT i, repeat('x', 500000) FROM generate_series(1, 24) AS g(i)");
    c.narrow("n1", "n2", 100_000);
    block.say("COMMIT");
    let e = block.hear(&mut c).expect_err("12 MB do not get through");
    assert_eq!(e.sqlstate(), "57P03", "{e}");
    c.narrow("n1", "n2", 100_000_000);
    c.pass(Duration::from_secs(20));
    assert_eq!(c.sql(EU, "d", "SELECT count(*) FROM t"), [["0"]]);
}
