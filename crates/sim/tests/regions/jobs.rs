//! Changes of locality while the nodes die that they need.

use crate::script::{ASIA, Cluster, EU, US, refused};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

/// One node in each of three regions, and a table with rows in a database that survives what is
/// said.
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

/// The groups of the other regions are made for the change. Their first voters die while they are
/// being founded; a majority lives.
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

/// While a dead region's schema lease is waited out, whoever looks is told, in any region; then the
/// statement goes on.
#[test]
fn who_looks_at_the_jobs_sees_what_a_first_step_waits_for() {
    let mut c = start(7, "ZONE");
    c.sql(US, "d", &format!("CREATE TABLE far (id INT8 PRIMARY KEY) LOCALITY REGIONAL BY TABLE IN \"{ASIA}\""));
    c.settled(US, "d");
    c.kill_region(ASIA);
    c.begin_sql(US, "d", "CREATE TABLE later (id INT8 PRIMARY KEY)");
    let start = c.elapsed();
    for region in [EU, US] {
        loop {
            let jobs = c.sql(region, "d", "SHOW JOBS");
            if let Some(step) = jobs.iter().find(|row| row[5].contains("schema leases")) {
                assert!(step[5].contains(ASIA) && step[5].contains("s more"), "{step:?}");
                break;
            }
            assert!(c.elapsed() - start < Duration::from_secs(30), "{region} sees only {jobs:?}");
            c.pass(Duration::from_millis(500));
        }
    }
    while c.try_sql(EU, "d", "SELECT * FROM later").is_err() {
        assert!(c.elapsed() - start < Duration::from_secs(120), "the statement does not go on");
        c.pass(Duration::from_secs(1));
    }
    assert!(c.sql(EU, "d", "SHOW JOBS").iter().all(|row| row[0] != "NULL"), "nothing is waited for any more");
}

/// A change that needs a region which is dead is cancelled; the table is as it was, and stays so
/// when the region is back.
#[test]
fn a_change_that_waits_for_a_dead_region_is_cancelled() {
    let mut c = start(8, "ZONE");
    c.sql(US, "d", "ALTER TABLE t SET LOCALITY REGIONAL BY ROW");
    c.sql(ASIA, "d", "INSERT INTO t VALUES (601, 601)");
    c.settled(US, "d");
    c.kill_region(ASIA);
    c.begin_sql(US, "d", "ALTER TABLE t SET LOCALITY REGIONAL BY TABLE");
    let (id, _) = until_job(&mut c, Duration::from_secs(150), |state, running| state == "running" && running.contains(ASIA));
    c.sql(EU, "d", &format!("CANCEL JOB {id}"));
    until_job(&mut c, Duration::from_secs(150), |state, _| state == "canceled");
    assert_eq!(locality(&mut c), "REGIONAL BY ROW");
    // Nothing of it needs the dead region.
    assert_eq!(c.sql(EU, "d", &format!("SELECT v FROM t WHERE crdb_region = '{US}' AND id = 7")), [["7"]]);
    c.restart_region(ASIA);
    c.pass(Duration::from_secs(10));
    c.settled(US, "d");
    assert_eq!(c.sql(ASIA, "d", "SELECT count(*), sum(v) FROM t"), [["601", "180901"]]);
    c.sql(US, "d", "ALTER TABLE t SET LOCALITY REGIONAL BY TABLE");
    assert_eq!(c.sql(ASIA, "d", "SELECT count(*), sum(v) FROM t"), [["601", "180901"]]);
}

/// The region that a table's rows are at home in is lost, and then the goal that has kept them
/// available is given up: they stay available, since the voters that live keep their votes.
#[test]
fn a_goal_that_needs_dead_voters_takes_no_votes_from_the_living() {
    let mut c = Cluster::start(3, 2, 9, Tuning::default());
    c.pass(Duration::from_secs(15));
    let regions = format!("PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\"");
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d {regions} SURVIVE REGION FAILURE"));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8) LOCALITY REGIONAL BY ROW");
    c.sql(ASIA, "d", "INSERT INTO t VALUES (1, 1)");
    c.settled(US, "d");
    c.kill_region(ASIA);
    c.pass(Duration::from_secs(10));
    c.sql(US, "d", "UPDATE t SET v = 2 WHERE id = 1");
    c.begin_sql(EU, "d", "ALTER DATABASE d SURVIVE ZONE FAILURE");
    for v in 3..9 {
        c.pass(Duration::from_secs(10));
        c.sql(EU, "d", &format!("UPDATE t SET v = {v} WHERE id = 1"));
    }
    assert_eq!(c.sql(US, "d", "SHOW SURVIVAL GOAL FROM DATABASE d"), [["d", "zone"]]);
    c.restart_region(ASIA);
    c.pass(Duration::from_secs(10));
    c.settled(US, "d");
    assert_eq!(c.sql(ASIA, "d", "SELECT v FROM t WHERE id = 1"), [["8"]]);
}

/// A change of regions is made at once, and a job for as long as replicas move: it says what they
/// wait for, and cannot be cancelled.
#[test]
fn a_change_of_regions_is_a_job_until_the_replicas_are_there() {
    let mut c = start(12, "ZONE");
    c.kill_region(ASIA);
    c.begin_sql(US, "d", "ALTER DATABASE d SURVIVE REGION FAILURE");
    let moves = |running: &str| running.starts_with("moving the replicas of d; waits for g");
    let (id, _) = until_job(&mut c, Duration::from_secs(30), |state, running| state == "running" && moves(running));
    assert_eq!(c.sql(EU, "d", "SHOW SURVIVAL GOAL FROM DATABASE d"), [["d", "region"]]);
    for verb in ["CANCEL", "PAUSE"] {
        let (sqlstate, message) = refused(c.try_sql(EU, "d", &format!("{verb} JOB {id}")));
        assert_eq!(sqlstate, "55000", "{message}");
    }
    let row = c.sql(EU, "d", "SHOW JOBS").pop().expect("a job");
    assert_eq!((&*row[0], &*row[2]), (&*id, "ALTER DATABASE d SURVIVE REGION FAILURE"));
    assert!(row[8].parse::<f64>().expect("a share") < 1.0, "{row:?}");
    // The node that watches dies; another one goes on.
    c.restart_region(ASIA);
    c.kill("n1");
    c.pass(Duration::from_secs(10));
    c.restart("n1");
    until_job(&mut c, Duration::from_secs(60), |state, _| state == "succeeded");
    let row = c.sql(EU, "d", "SHOW JOBS").pop().expect("a job");
    assert_eq!((&*row[0], &*row[8]), (&*id, "1"));
    c.settled(US, "d");
}
