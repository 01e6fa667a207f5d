//! Groups that are deleted while others still need their votes.

use super::script::{ASIA, Cluster, EU, US};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

/// Three nodes, one in each region, and in each region a row.
fn rows_everywhere(seed: u64) -> Cluster {
    let mut c = Cluster::start(3, 1, seed, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE t (k INT8 PRIMARY KEY, v INT8 NOT NULL) LOCALITY REGIONAL BY ROW");
    c.sql(US, "d", &format!("INSERT INTO t (crdb_region, k, v) VALUES ('{EU}', 1, 100), ('{ASIA}', 2, 200), ('{US}', 3, 300)"));
    c.settled(US, "d");
    // What has committed so far is forgotten.
    c.pass(Duration::from_secs(40));
    c
}

/// A transaction from America is acknowledged. Asia has voted, has not heard Europe's vote, and is
/// down.
fn in_doubt_in_asia(c: &mut Cluster, statements: &[&str]) {
    let gateway = c.converse(US, "d");
    gateway.ask(c, "BEGIN");
    for statement in statements {
        gateway.ask(c, statement);
    }
    c.cut_one_way("n2", "n3");
    gateway.ask(c, "COMMIT");
    // Asia's own vote is on its way to Europe.
    c.pass(Duration::from_millis(500));
    c.kill_region(ASIA);
    c.mend("n2", "n3");
}

/// Row 1 moves from Europe to Asia. That no other region has such a row is read, so America takes
/// part.
fn move_in_doubt(seed: u64) -> Cluster {
    let mut c = rows_everywhere(seed);
    let update = format!("UPDATE t SET crdb_region = '{ASIA}' WHERE k = 1");
    in_doubt_in_asia(&mut c, &["SELECT v FROM t WHERE k = 1", &update]);
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

/// The region that the row left is dropped. Its group answers until Asia is back and knows what
/// became of the move.
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

/// How long a statement may take that meets a transaction in doubt or a group without a quorum:
/// what it waits for has a bound, and so has how often it is tried again.
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

fn the_one_in_doubt(c: &mut Cluster) -> Vec<String> {
    let rows = c.sql(US, "d", "SHOW TRANSACTIONS");
    let [row] = &rows[..] else { panic!("{rows:?}") };
    row.clone()
}

/// Europe's nodes are lost for good, and with them the vote that Asia misses. What meets the row
/// fails in time; who operates the cluster sees why, is told what ending it risks, and in the end
/// ends it.
#[test]
fn a_transaction_in_doubt_is_seen_and_ended() {
    let mut c = rows_everywhere(72);
    let add = |region: &str, k: i64| format!("UPDATE t SET v = v + 1 WHERE crdb_region = '{region}' AND k = {k}");
    in_doubt_in_asia(&mut c, &[&add(EU, 1), &add(ASIA, 2)]);
    c.kill_region(EU);
    c.restart_region(ASIA);
    until(&mut c, "Asia to serve", |c| c.try_sql(ASIA, "d", "SHOW TRANSACTIONS").is_ok_and(|rows| !rows.is_empty()));
    for statement in [add(ASIA, 2), "UPDATE t SET v = v + 1 WHERE k IN (2, 3)".to_string(), "SELECT sum(v) FROM t".to_string()] {
        assert!(told(&mut c, ASIA, &statement).is_err(), "{statement}");
    }
    // Statements on the row fail at once when the node knows that the other participant is lost.
    c.pass(Duration::from_secs(5));
    let began = c.elapsed();
    let e = c.try_sql(ASIA, "d", &add(ASIA, 2)).expect_err("its row is reserved");
    assert!(e.sqlstate() == "57P03" && e.message().contains("in doubt"), "{e}");
    assert!(c.elapsed() - began < Duration::from_millis(1_500), "{:?}", c.elapsed() - began);
    // It is not ended by hand while it is young.
    c.pass(Duration::from_secs(30));
    let row = the_one_in_doubt(&mut c);
    assert!(row[6].starts_with("no primary of group ") && row[6].contains(EU), "{row:?}");
    let resolve = |how: &str| format!("RESOLVE TRANSACTION '{}' AS {how}", row[0]);
    let e = c.try_sql(US, "d", &resolve("COMMIT")).expect_err("it may be half applied");
    assert_eq!((e.sqlstate(), e.message().contains("cannot be asked")), ("55000", true), "{e}");
    let e = c.try_sql(US, "d", "RESOLVE TRANSACTION 't1.1' AS ABORT").expect_err("there is no such transaction");
    assert_eq!(e.sqlstate(), "42704");
    c.sql(US, "d", &resolve("COMMIT UNSAFE"));
    until(&mut c, "its end", |c| c.sql(US, "d", "SHOW TRANSACTIONS").is_empty());
    assert_eq!(c.sql(ASIA, "d", &format!("SELECT v FROM t WHERE crdb_region = '{ASIA}' AND k = 2")), [["201"]]);
    // Europe had done the same, as it shows when it is back after all.
    c.restart_region(EU);
    until(&mut c, "Europe to serve", |c| c.try_sql(EU, "d", "SELECT sum(v) FROM t").is_ok());
    assert_eq!(c.sql(EU, "d", "SELECT count(*), sum(v) FROM t"), [["3", "602"]]);
    assert!(c.sql(US, "d", "SHOW TRANSACTIONS").is_empty());
}

/// Europe is lost, but America took part and knows that the move has committed: whatever the
/// operator says, it has.
#[test]
fn an_outcome_that_somebody_knows_is_not_for_the_operator_to_choose() {
    let mut c = move_in_doubt(74);
    c.kill_region(EU);
    c.restart_region(ASIA);
    until(&mut c, "Asia to serve", |c| c.try_sql(ASIA, "d", "SHOW TRANSACTIONS").is_ok_and(|rows| !rows.is_empty()));
    let row = the_one_in_doubt(&mut c);
    c.sql(US, "d", &format!("RESOLVE TRANSACTION '{}' AS ABORT UNSAFE", row[0]));
    until(&mut c, "its end", |c| c.sql(US, "d", "SHOW TRANSACTIONS").is_empty());
    assert_eq!(c.sql(ASIA, "d", &format!("SELECT v FROM t WHERE crdb_region = '{ASIA}' AND k = 1")), [["100"]]);
}

/// Two of three nodes die.
#[test]
fn without_a_quorum_clients_are_told_in_time() {
    let mut c = Cluster::start(1, 3, 73, Tuning::default());
    c.sql(US, "defaultdb", "CREATE DATABASE d");
    c.sql(US, "d", "CREATE SEQUENCE s; CREATE TABLE t (k INT8 PRIMARY KEY, v INT8 NOT NULL); INSERT INTO t VALUES (1, 1)");
    c.settled(US, "d");
    c.kill("n2");
    c.kill("n3");
    // A primary that is left answers for as long as its lease holds.
    c.pass(Duration::from_secs(5));
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
