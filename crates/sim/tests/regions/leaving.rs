//! Groups that are deleted while others still need their votes.

use super::script::{ASIA, Cluster, EU, US};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

/// Three nodes, one in each region; row 1 is homed in Europe, and its move to Asia is acknowledged. Asia has voted, has not heard
/// Europe's vote, and is down.
fn move_in_doubt(seed: u64) -> Cluster {
    let mut c = Cluster::start(3, 1, seed, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE t (k INT8 PRIMARY KEY, v INT8 NOT NULL) LOCALITY REGIONAL BY ROW");
    c.sql(US, "d", &format!("INSERT INTO t (crdb_region, k, v) VALUES ('{EU}', 1, 100), ('{ASIA}', 2, 200), ('{US}', 3, 300)"));
    c.settled(US, "d");
    // What has committed so far is forgotten.
    c.pass(Duration::from_secs(40));
    let gateway = c.converse(US, "d");
    gateway.ask(&mut c, "BEGIN");
    gateway.ask(&mut c, "SELECT v FROM t WHERE k = 1");
    gateway.ask(&mut c, &format!("UPDATE t SET crdb_region = '{ASIA}' WHERE k = 1"));
    c.cut_one_way("n2", "n3");
    gateway.ask(&mut c, "COMMIT");
    c.kill_region(ASIA);
    c.mend("n2", "n3");
    c
}

fn job(c: &mut Cluster, named: &str) -> Vec<String> {
    let jobs = c.sql(US, "d", "SHOW JOBS");
    jobs.into_iter().rfind(|job| job[2].contains(named)).unwrap_or_else(|| panic!("no job of {named}"))
}

fn until(c: &mut Cluster, what: &str, mut done: impl FnMut(&mut Cluster) -> bool) {
    let end = c.elapsed() + Duration::from_secs(150);
    while !done(c) {
        assert!(c.elapsed() < end, "waited in vain for {what}: {:?}", c.try_sql(US, "d", "SHOW JOBS"));
        c.pass(Duration::from_millis(500));
    }
}

/// The region that the row left is dropped. Its group answers until Asia is back and knows what became of the move.
#[test]
fn a_group_that_leaves_answers_whoever_is_in_doubt() {
    let mut c = move_in_doubt(71);
    let groups = c.sql(US, "d", "SHOW RANGES FROM DATABASE d");
    let left = groups.iter().find(|row| row[2] == EU).expect("a group in Europe")[0].clone();
    c.begin_sql(US, "d", &format!("ALTER DATABASE d DROP REGION \"{EU}\""));
    until(&mut c, "the region to go", |c| c.sql(US, "d", "SHOW REGIONS FROM DATABASE d").len() == 2);
    c.pass(Duration::from_secs(60));
    let running = job(&mut c, "DROP REGION")[5].clone();
    assert!(running.starts_with(&format!("removing group {left}")), "{running}");
    assert!(running.contains(&format!("in region \"{ASIA}\", which does not answer")), "{running}");
    c.restart_region(ASIA);
    until(&mut c, "the move to end", |c| c.try_sql(ASIA, "d", "SELECT * FROM t WHERE k = 1").is_ok());
    assert_eq!(c.sql(ASIA, "d", "SELECT crdb_region, k, v FROM t WHERE k = 1"), [[ASIA, "1", "100"]]);
    assert_eq!(c.sql(US, "d", "SELECT count(*), sum(v) FROM t"), [["3", "600"]]);
    c.sql(US, "d", "UPDATE t SET v = v + 1 WHERE k = 1");
    until(&mut c, "the group to be gone", |c| c.sql(US, "d", "SHOW RANGES").iter().all(|row| row[0] != left));
    until(&mut c, "the job to end", |c| job(c, "DROP REGION")[4] == "succeeded");
    until(&mut c, "its replica to leave", |c| c.status("n1").iter().all(|n| n.holds.iter().all(|g| g.to_string() != left)));
    assert_eq!(c.sql(US, "d", "SELECT count(*), sum(v) FROM t"), [["3", "601"]]);
}
