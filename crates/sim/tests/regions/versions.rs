//! How long old versions are kept.

use crate::script::{ASIA, Cluster, EU, PAUSE, US, refused};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

fn short() -> Tuning {
    Tuning { gc_ttl: Duration::from_secs(5), gc_interval: Duration::from_secs(1), ..Tuning::default() }
}

/// Much longer than versions are kept otherwise, a transaction reads what it read at first,
/// wherever it runs; and then the versions go.
#[test]
fn what_an_open_transaction_may_read_is_kept() {
    let mut c = Cluster::start(3, 1, 61, short());
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8)");
    c.sql(US, "d", "INSERT INTO t VALUES (1, 0), (2, 0)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(10));
    for (gateway, begin) in [(ASIA, "BEGIN READ ONLY"), (US, "BEGIN READ ONLY"), (EU, "BEGIN AS OF SYSTEM TIME '-3s'")] {
        c.sql(US, "d", "UPDATE t SET v = 0");
        c.pass(Duration::from_secs(5));
        let answers = c.on_two(
            [gateway, US],
            "d",
            &[
                (0, begin),
                (0, "SELECT v FROM t WHERE id = 1"),
                (1, "UPDATE t SET v = v + 1"),
                (0, PAUSE),
                (1, "UPDATE t SET v = v + 1"),
                (0, PAUSE),
                (0, "SELECT v FROM t ORDER BY id"),
                (0, "COMMIT"),
                (0, PAUSE),
                (0, "SELECT v FROM t AS OF SYSTEM TIME '-50s'"),
            ],
        );
        let mut answers = answers.into_iter();
        let mut next = |n: usize| answers.nth(n).expect("an answer");
        assert_eq!(next(1).expect("a row"), [["0"]]);
        assert_eq!(next(2).unwrap_or_else(|e| panic!("{gateway}: {e}")), [["0"], ["0"]]);
        let too_old = refused(next(1));
        assert_eq!(too_old.0, "72000", "{}", too_old.1);
    }
}

const ROWS: &str = "SELECT i, i FROM generate_series(1, 100) AS g(i)";

/// How many indexes each region's node has removed.
fn swept(c: &mut Cluster) -> [u64; 3] {
    [US, EU, ASIA].map(|region| {
        let metrics = c.sql(region, "d", "SHOW METRICS");
        let row = metrics.iter().find(|row| row[0] == "store.indexes.swept").expect("a metric");
        row[1].parse().expect("a number")
    })
}

fn with_short_memory(seed: u64) -> Cluster {
    let mut c = Cluster::start(3, 1, seed, short());
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", &format!("CREATE TABLE kept (id INT8 PRIMARY KEY, v INT8); INSERT INTO kept {ROWS}"));
    c.settled(US, "d");
    c
}

/// Every replica removes dropped tables and indexes, the old indexes of truncated tables, and the
/// old homes of moved tables, also on a node that was down. `AS OF` reads them until then.
#[test]
fn indexes_that_nobody_can_reach_are_removed_from_every_replica() {
    let mut c = with_short_memory(62);
    c.sql(US, "d", "CREATE TABLE gone (id INT8 PRIMARY KEY, v INT8, INDEX (v))");
    c.sql(US, "d", "CREATE TABLE emptied (id INT8 PRIMARY KEY, v INT8)");
    c.sql(US, "d", "CREATE TABLE moved (id INT8 PRIMARY KEY, v INT8, INDEX i (v))");
    for table in ["gone", "emptied", "moved"] {
        c.sql(US, "d", &format!("INSERT INTO {table} {ROWS}"));
    }
    c.pass(Duration::from_secs(3));
    let before = swept(&mut c);
    c.kill_region(ASIA);
    c.pass(Duration::from_secs(10));
    let then = c.sql(US, "d", "SELECT now()")[0][0].clone();
    c.sql(US, "d", "DROP TABLE gone");
    assert_eq!(c.sql(EU, "d", &format!("SELECT count(*) FROM gone AS OF SYSTEM TIME '{then}'")), [["100"]]);
    c.sql(US, "d", "TRUNCATE emptied");
    c.sql(US, "d", "DROP INDEX moved@i");
    c.restart_region(ASIA);
    c.pass(Duration::from_secs(30));
    // The node that was down began to count anew.
    let [us, eu, asia] = swept(&mut c);
    assert_eq!([us - before[0], eu - before[1], asia], [4; 3], "two indexes of one table, and two others");
    assert_eq!(c.sql(US, "d", "SHOW JOBS"), Vec::<Vec<String>>::new(), "nobody is told to remove them");
    c.sql(US, "d", "ALTER TABLE moved SET LOCALITY GLOBAL");
    c.pass(Duration::from_secs(15));
    assert_eq!(swept(&mut c), [us + 1, eu + 1, asia + 1], "its old home");
    for (table, rows) in [("kept", "100"), ("emptied", "0"), ("moved", "100")] {
        assert_eq!(c.sql(US, "d", &format!("SELECT count(*) FROM {table}")), [[rows]], "{table}");
    }
}

/// Rows that a block writes ahead of COMMIT are under ids that the catalog does not name yet. They
/// stay for as long as the block is open, and go when it ends without COMMIT.
#[test]
fn what_an_open_block_has_written_ahead_stays() {
    let mut c = with_short_memory(63);
    let [commits, rolls_back, dies] = [US, US, EU].map(|region| c.converse(region, "d"));
    for (block, table) in [(&commits, "a"), (&rolls_back, "b"), (&dies, "c")] {
        block.ask(&mut c, "BEGIN");
        block.ask(&mut c, &format!("CREATE TABLE {table} (id INT8 PRIMARY KEY, v INT8)"));
        block.ask(&mut c, &format!("INSERT INTO {table} {ROWS}"));
    }
    let before = swept(&mut c);
    for i in 0..6 {
        // The catalog changes, so every node sweeps.
        c.sql(US, "d", &format!("CREATE TABLE other{i} (id INT8 PRIMARY KEY)"));
        c.pass(Duration::from_secs(3));
    }
    assert_eq!(swept(&mut c), before);
    assert_eq!(rolls_back.ask(&mut c, "SELECT count(*) FROM b"), [["100"]]);
    rolls_back.ask(&mut c, "ROLLBACK");
    commits.ask(&mut c, "COMMIT");
    c.pass(Duration::from_secs(15));
    let after = swept(&mut c);
    assert_eq!(after, before.map(|n| n + 1), "what was rolled back");
    assert_eq!(c.sql(ASIA, "d", "SELECT count(*), sum(v) FROM a"), [["100", "5050"]]);
    c.kill_region(EU);
    c.pass(Duration::from_secs(60));
    c.restart_region(EU);
    c.pass(Duration::from_secs(15));
    let [us, _, asia] = swept(&mut c);
    assert_eq!([us, asia], [after[0] + 1, after[2] + 1], "what nobody can commit any more");
    assert_eq!(c.sql(ASIA, "d", "SELECT count(*) FROM a"), [["100"]]);
}
