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

/// How long a statement may take that meets a transaction in doubt or a group without a quorum: what it waits for has a bound, and so
/// has how often it is tried again.
const TOLD_WITHIN: Duration = Duration::from_secs(45);

/// What is said to a client within the bound.
fn told(c: &mut Cluster, region: &str, statement: &str) -> Result<(), String> {
    let ended = c.repeat(region, "d", statement, 1);
    let end = c.elapsed() + TOLD_WITHIN;
    while ended.lock().is_empty() {
        assert!(c.elapsed() < end, "{statement}: neither an answer nor an error in {TOLD_WITHIN:?}");
        c.pass(Duration::from_millis(200));
    }
    let (result, _) = ended.lock()[0].clone();
    result
}

/// Europe's nodes are lost for good, and with them the vote that Asia misses. What meets the row fails in time; who operates the
/// cluster sees why, is kept from ending what may end by itself, and in the end ends it.
#[test]
fn a_transaction_in_doubt_is_seen_and_ended() {
    let mut c = move_in_doubt(72);
    c.kill_region(EU);
    c.restart_region(ASIA);
    until(&mut c, "Asia to serve", |c| c.try_sql(ASIA, "d", "SELECT v FROM t WHERE k = 2").is_ok());
    for statement in ["UPDATE t SET v = v + 1 WHERE k IN (2, 3)", "UPDATE t SET v = v + 1 WHERE k = 1", "SELECT sum(v) FROM t"] {
        assert!(told(&mut c, ASIA, statement).is_err(), "{statement}");
    }
    let rows = c.sql(US, "d", "SHOW TRANSACTIONS");
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert!(row[6].starts_with("no primary of group ") && row[6].contains(EU), "{row:?}");
    let resolve = |how: &str| format!("RESOLVE TRANSACTION '{}' AS {how}", row[0]);
    let e = c.try_sql(US, "d", &resolve("COMMIT")).expect_err("it may be half applied");
    assert_eq!((e.sqlstate(), e.get_detail().is_some_and(|d| d.contains("half of it"))), ("55000", true), "{e}");
    let e = c.try_sql(US, "d", "RESOLVE TRANSACTION 't1.1' AS ABORT").expect_err("there is no such transaction");
    assert_eq!(e.sqlstate(), "42704");
    // Europe was heard to say YES by the gateway alone.
    c.sql(US, "d", &resolve("COMMIT UNSAFE"));
    until(&mut c, "its end", |c| c.sql(US, "d", "SHOW TRANSACTIONS").is_empty());
    assert_eq!(c.sql(ASIA, "d", "SELECT v FROM t WHERE k = 1 AND crdb_region = 'asia-northeast1'"), [["100"]]);
    // And when Europe is back after all, it has done the same.
    c.restart_region(EU);
    until(&mut c, "Europe to serve", |c| c.try_sql(EU, "d", "SELECT sum(v) FROM t").is_ok());
    assert_eq!(c.sql(EU, "d", "SELECT count(*), sum(v) FROM t"), [["3", "600"]]);
    assert!(c.sql(US, "d", "SHOW TRANSACTIONS").is_empty());
}

/// One of three nodes is decommissioned, another one dies.
#[test]
fn without_a_quorum_clients_are_told_in_time() {
    let mut c = Cluster::start(1, 3, 73, Tuning::default());
    c.sql(US, "defaultdb", "CREATE DATABASE d; CREATE SEQUENCE d.public.s");
    c.sql(US, "d", "CREATE TABLE t (k INT8 PRIMARY KEY, v INT8 NOT NULL); INSERT INTO t VALUES (1, 1)");
    c.settled(US, "d");
    c.kill("n2");
    c.kill("n3");
    let statements = [
        "SELECT v FROM t",
        "UPDATE t SET v = v + 1",
        "INSERT INTO t VALUES (2, 2)",
        "SELECT nextval('s')",
        "BEGIN; SELECT v FROM t FOR UPDATE",
        "CREATE TABLE u (k INT8 PRIMARY KEY)",
    ];
    for statement in statements {
        let told = told(&mut c, US, statement);
        assert!(told.is_err(), "{statement}");
    }
}
