//! Operators who end transactions in doubt.

use super::script::{ASIA, Cluster, EU, US};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

/// Asia's vote reaches nobody, and Asia is lost. One operator commits the transaction in America
/// while another one aborts it in Europe: what the first of them has done counts for both.
#[test]
fn two_operators_who_disagree_end_a_transaction_in_one_way() {
    let mut c = Cluster::start(3, 1, 72, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE t (k INT8 PRIMARY KEY, v INT8 NOT NULL) LOCALITY REGIONAL BY ROW");
    c.sql(US, "d", &format!("INSERT INTO t (crdb_region, k, v) VALUES ('{US}', 1, 0), ('{EU}', 2, 0), ('{ASIA}', 3, 0)"));
    c.settled(US, "d");
    c.pass(Duration::from_secs(40));
    let gateway = c.converse(US, "d");
    gateway.ask(&mut c, "BEGIN");
    gateway.ask(&mut c, "UPDATE t SET v = v + 1");
    for other in ["n1", "n2"] {
        c.cut_one_way("n3", other);
    }
    gateway.say("COMMIT");
    c.pass(Duration::from_millis(500));
    c.kill_region(ASIA);
    c.pass(Duration::from_secs(45));
    let id = c.sql(US, "d", "SHOW TRANSACTIONS")[0][0].clone();
    c.begin_sql(US, "d", &format!("RESOLVE TRANSACTION '{id}' AS COMMIT UNSAFE"));
    c.begin_sql(EU, "d", &format!("RESOLVE TRANSACTION '{id}' AS ABORT UNSAFE"));
    c.pass(Duration::from_secs(15));
    assert_eq!(c.sql(US, "d", "SHOW TRANSACTIONS"), Vec::<Vec<String>>::new());
    let (home, away) = (c.sql(US, "d", "SELECT v FROM t WHERE k = 1"), c.sql(EU, "d", "SELECT v FROM t WHERE k = 2"));
    assert_eq!(home, away, "half of it is applied");
}
