//! Changes of locality while the nodes die that they need.

use crate::script::{ASIA, Cluster, EU, US};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

/// One node in each of three regions, and a table with rows in a database that survives what is said.
fn start(seed: u64, survives: &str) -> Cluster {
    let mut c = Cluster::start(3, 1, seed, Tuning::default());
    // Until the catalog has its three voters.
    c.pass(Duration::from_secs(15));
    let regions = format!("PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\"");
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d {regions} SURVIVE {survives} FAILURE"));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8 UNIQUE)");
    c.sql(US, "d", "INSERT INTO t SELECT g, g FROM generate_series(1, 600) AS s(g)");
    c.settled(US, "d");
    c
}

/// The last job, if anybody says: its number, state, and what it does and waits for.
fn last_job(c: &mut Cluster) -> Option<(String, String, String)> {
    c.try_sql(US, "d", "SHOW JOBS").ok()?.pop().map(|row| (row[0].clone(), row[4].clone(), row[5].clone()))
}

fn until_job(c: &mut Cluster, patience: Duration, is_so: impl Fn(&str, &str) -> bool) -> (String, Duration) {
    let start = c.elapsed();
    loop {
        let job = last_job(c);
        if let Some((id, state, running)) = &job
            && is_so(state, running)
        {
            return (id.clone(), c.elapsed() - start);
        }
        assert!(c.elapsed() - start < patience, "the last job is {job:?}");
        // What is short is looked for closely.
        let is_long = c.elapsed() - start > Duration::from_secs(3);
        c.pass(Duration::from_millis(if is_long { 1_000 } else { 10 }));
    }
}

fn locality(c: &mut Cluster) -> String {
    c.sql(US, "d", "SHOW LOCALITY FROM TABLE t")[0][1].clone()
}

/// The groups of the other regions are made for the change. Their first voters die while they are being founded; a majority lives.
#[test]
fn a_region_that_dies_while_its_groups_are_founded_stops_no_change_of_locality() {
    for (seed, millis) in [(3, 0), (4, 60), (5, 130), (6, 400)] {
        let mut c = start(seed, "REGION");
        c.begin_sql(US, "d", "ALTER TABLE t SET LOCALITY REGIONAL BY ROW");
        until_job(&mut c, Duration::from_secs(10), |state, _| state == "running");
        c.pass(Duration::from_millis(millis));
        c.kill("n2");
        until_job(&mut c, Duration::from_secs(150), |state, _| state == "succeeded");
        assert_eq!(locality(&mut c), "REGIONAL BY ROW");
        assert_eq!(c.sql(US, "d", "SELECT count(*), sum(v) FROM t"), [["600", "180300"]]);
        c.sql(ASIA, "d", "INSERT INTO t VALUES (601, 601)");
        c.restart("n2");
        c.pass(Duration::from_secs(10));
        c.settled(US, "d");
        c.sql(EU, "d", "INSERT INTO t VALUES (602, 602)");
        assert_eq!(c.sql(EU, "d", "SELECT count(*), count(DISTINCT crdb_region) FROM t"), [["602", "3"]]);
    }
}

/// With zone survival the region's rows have nowhere else to be: the change waits, says for what, and can be taken back.
#[test]
fn a_change_of_locality_that_waits_for_a_region_says_so_and_is_cancelled() {
    let mut c = start(8, "ZONE");
    c.begin_sql(US, "d", "ALTER TABLE t SET LOCALITY REGIONAL BY ROW");
    until_job(&mut c, Duration::from_secs(10), |state, _| state == "running");
    c.kill("n2");
    let says_so = |_: &str, running: &str| running.contains("waits for the primary of group") && running.contains(EU);
    let (id, _) = until_job(&mut c, Duration::from_secs(40), says_so);
    let start = c.elapsed();
    c.sql(ASIA, "d", &format!("CANCEL JOB {id}"));
    let (_, took) = until_job(&mut c, Duration::from_secs(80), |state, _| state == "canceled");
    let all = c.elapsed() - start;
    // One schema lease, at most, of a group that was there before.
    assert!(all < Duration::from_secs(75), "cancelled after {all:?}, seen after {took:?}");
    assert_eq!(locality(&mut c), "REGIONAL BY TABLE IN PRIMARY REGION");
    c.sql(US, "d", "INSERT INTO t VALUES (601, 601)");

    // The next one finds out before it keeps anybody from writing, and gives up by itself.
    c.begin_sql(US, "d", "ALTER TABLE t SET LOCALITY REGIONAL BY ROW");
    let (next, _) = until_job(&mut c, Duration::from_secs(80), |state, _| state == "running");
    assert_ne!(next, id);
    for number in 602..=620 {
        c.sql(US, "d", &format!("INSERT INTO t VALUES ({number}, {number})"));
    }
    until_job(&mut c, Duration::from_secs(200), |state, _| state == "failed");
    assert_eq!(locality(&mut c), "REGIONAL BY TABLE IN PRIMARY REGION");

    c.restart("n2");
    c.pass(Duration::from_secs(10));
    c.sql(US, "d", "ALTER TABLE t SET LOCALITY REGIONAL BY ROW");
    c.sql(EU, "d", "INSERT INTO t VALUES (700, 700)");
    assert_eq!(c.sql(EU, "d", "SELECT count(*), sum(v) FROM t"), [["621", "193210"]]);
}
