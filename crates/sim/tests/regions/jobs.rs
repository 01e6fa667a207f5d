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
