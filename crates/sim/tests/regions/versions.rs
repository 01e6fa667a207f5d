//! How long old versions are kept.

use crate::script::{ASIA, Cluster, EU, PAUSE, US, refused};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

/// Much longer than versions are kept otherwise, a transaction reads what it read at first,
/// wherever it runs; and then the versions go.
#[test]
fn what_an_open_transaction_may_read_is_kept() {
    let tuning = Tuning { gc_ttl: Duration::from_secs(5), gc_interval: Duration::from_secs(1), ..Tuning::default() };
    let mut c = Cluster::start(3, 1, 61, tuning);
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
