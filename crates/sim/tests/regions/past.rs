//! Stale reads while regions are out of reach: what they are there for.

use crate::script::{ASIA, Cluster, EU, US, refused};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

const STALE: &str = "AS OF SYSTEM TIME with_max_staleness('1h')";

#[test]
fn the_past_is_read_where_no_primary_is_in_reach() {
    let mut c = Cluster::start(3, 1, 71, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE here (id INT8 PRIMARY KEY, v INT8)");
    c.sql(US, "d", &format!("CREATE TABLE there (id INT8 PRIMARY KEY, v INT8) LOCALITY REGIONAL BY TABLE IN \"{ASIA}\""));
    c.sql(US, "d", "INSERT INTO here VALUES (1, 10); INSERT INTO there VALUES (1, 20)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(5));
    c.cut_off(ASIA);
    c.pass(Duration::from_secs(20));

    // Inside: who connects now reads what was there, of every region, and is refused the present.
    for past in [STALE, "AS OF SYSTEM TIME with_max_staleness('1h', nearest_only => true)", "AS OF SYSTEM TIME '-25s'"] {
        for (table, v) in [("here", "10"), ("there", "20")] {
            let rows = c.try_sql(ASIA, "d", &format!("SELECT v FROM {table} {past}"));
            assert_eq!(rows.unwrap_or_else(|e| panic!("{table} {past}: {e}")), [[v]]);
        }
    }
    assert_eq!(refused(c.try_sql(ASIA, "d", "SELECT v FROM here")).0, "57P03");
    assert_eq!(refused(c.try_sql(ASIA, "d", &format!("SELECT v FROM here {}", STALE.replace("1h", "5s")))).0, "57P03");

    // Outside: a schema change after the region was lost does not hide its rows, unless it was
    // theirs.
    c.sql(EU, "d", "CREATE TABLE other (id INT8 PRIMARY KEY)");
    c.pass(Duration::from_secs(1));
    for gateway in [US, EU] {
        assert_eq!(c.sql(gateway, "d", &format!("SELECT v FROM there {STALE}")), [["20"]]);
        assert_eq!(c.sql(gateway, "d", &format!("BEGIN {STALE}; SELECT v FROM there; SELECT v FROM here")), [["10"]]);
    }
    c.sql(EU, "d", "ALTER TABLE there ADD COLUMN w INT8");
    c.pass(Duration::from_secs(1));
    assert_eq!(refused(c.try_sql(US, "d", &format!("SELECT v FROM there {STALE}"))).0, "57P03");
    assert_eq!(c.sql(US, "d", &format!("SELECT v FROM here {STALE}")), [["10"]]);
}

/// Where there is no replica near, a bounded time is the newest that the primaries can serve, not
/// the oldest that is allowed.
#[test]
fn a_bounded_time_is_a_new_one_where_no_replica_is_near() {
    let mut c = Cluster::start(3, 1, 72, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8)");
    c.sql(US, "d", "INSERT INTO t VALUES (1, 10)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(30));
    c.sql(US, "d", "UPDATE t SET v = 20");
    c.pass(Duration::from_secs(10));
    for gateway in [US, EU, ASIA] {
        assert_eq!(c.sql(gateway, "d", &format!("SELECT v FROM t {}", STALE.replace("1h", "20s"))), [["20"]], "{gateway}");
    }
}

/// An estimate is read at replicas of the gateway's region, and so is a number of the past; the
/// number itself is not.
#[test]
fn an_estimate_sends_nothing_to_other_regions() {
    let mut c = Cluster::start(3, 1, 73, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE quotas (id INT8 PRIMARY KEY, used INT8 NOT NULL ESCROW CHECK (used BETWEEN 0 AND 1000))");
    c.sql(US, "d", "INSERT INTO quotas VALUES (1, 3)");
    c.settled(US, "d");
    c.sql(EU, "d", "UPDATE quotas SET used = used + 4 WHERE id = 1");
    c.pass(Duration::from_secs(15));
    let estimate = "SELECT escrow_estimate(used) FROM quotas WHERE id = 1";
    let exact = "SELECT used FROM quotas WHERE id = 1";
    let trips = |c: &mut Cluster, sql: &str| {
        let lines = c.sql(US, "d", &format!("EXPLAIN ANALYZE {sql}")).concat();
        lines.into_iter().find(|line| line.starts_with("Round Trips")).expect("a line about them")
    };
    let none = "Round Trips Between Regions: 0, to commit 0";
    assert_eq!(trips(&mut c, estimate), none);
    assert_ne!(trips(&mut c, exact), none);
    assert_eq!((c.sql(US, "d", estimate), c.sql(US, "d", exact)), (vec![vec!["7".to_string()]], vec![vec!["7".to_string()]]));
    let start = c.elapsed();
    c.sql(US, "d", &[estimate; 10].join("; "));
    assert!(c.elapsed() - start < Duration::from_millis(60), "{:?}", c.elapsed() - start);

    // What replicas here do not know yet, and what the transaction itself has done.
    let new = "INSERT INTO quotas VALUES (2, 5); SELECT COALESCE(escrow_estimate(used), -1) FROM quotas WHERE id = 2";
    assert_eq!(c.sql(US, "d", new), [["-1"]]);
    let own = format!("BEGIN; UPDATE quotas SET used = used + 2 WHERE id = 1; {estimate}");
    assert_eq!(c.sql(EU, "d", &own), [["9"]]);
    c.pass(Duration::from_secs(15));
    assert_eq!(c.sql(US, "d", &estimate.replace("= 1", "= 2")), [["5"]]);

    let shown = "[SHOW ESCROW FOR TABLE quotas FOR ROW (1)]";
    let parts = |past: &str| format!("SELECT region, part FROM {shown} {past} WHERE part IS NOT NULL ORDER BY region");
    for past in ["", "AS OF SYSTEM TIME '-5s'"] {
        // The round that brought tokens to Europe left some in Asia.
        assert_eq!(c.sql(ASIA, "d", &parts(past)), [[ASIA, "0"], [EU, "4"], [US, "3"]], "{past}");
    }
    let whole = "SHOW ESCROW FOR TABLE quotas AS OF SYSTEM TIME '-5s'";
    assert_eq!(c.sql(ASIA, "d", whole).len(), 6);
}
