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
