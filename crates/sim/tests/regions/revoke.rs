//! `REVOKE` while links are cut and a node dies. Once it has answered, no node lets anybody do what
//! was revoked: in prepared statements, open cursors and reads of the past as well.

use crate::script::{ASIA, Cluster, Conversation, EU, US, refused};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

const REGIONS: [&str; 3] = [US, EU, ASIA];
/// What each session has prepared.
const PREPARED: [(&str, &str); 4] = [
    ("r", "SELECT count(*) FROM t"),
    ("g", "SELECT count(*) FROM e"),
    ("w", "UPDATE t SET v = v + 1 WHERE k = 1"),
    ("p", "SELECT count(*) FROM t AS OF SYSTEM TIME '-3s'"),
];

/// What is the matter while something is revoked.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Nothing,
    CutOff(&'static str),
    OneWay(&'static str, &'static str),
    Killed(&'static str),
}

impl Fault {
    fn begin(self, c: &mut Cluster) {
        match self {
            Fault::Nothing => {}
            Fault::CutOff(region) => c.cut_off(region),
            Fault::OneWay(from, to) => c.cut_one_way(from, to),
            Fault::Killed(region) => c.kill_region(region),
        }
    }
    /// Whether a region's node may not know what the others do.
    fn separates(self, region: &str) -> bool {
        match self {
            Fault::CutOff(apart) => apart == region,
            Fault::OneWay(..) => true,
            Fault::Nothing | Fault::Killed(_) => false,
        }
    }
    fn end(self, c: &mut Cluster) {
        match self {
            Fault::Nothing => {}
            Fault::CutOff(region) => c.join(&[region]),
            Fault::OneWay(from, to) => c.mend(from, to),
            Fault::Killed(region) => c.restart_region(region),
        }
    }
}

/// Two sessions of the role in a region: one with prepared statements, one with an open cursor.
struct Sessions {
    region: &'static str,
    prepared: Conversation,
    cursor: Conversation,
}

impl Sessions {
    fn open(c: &mut Cluster, region: &'static str) -> Sessions {
        let prepared = c.converse(region, "d");
        let cursor = c.converse(region, "d");
        prepared.ask(c, "SET ROLE ada");
        for (name, sql) in PREPARED {
            prepared.ask(c, &format!("PREPARE {name} AS {sql}"));
            prepared.ask(c, &format!("EXECUTE {name}"));
        }
        for sql in ["SET ROLE ada", "BEGIN", "DECLARE c CURSOR FOR SELECT k FROM t", "FETCH 1 FROM c"] {
            cursor.ask(c, sql);
        }
        Sessions { region, prepared, cursor }
    }

    /// What the role may do still. A node that is apart reads the past by what it knows
    /// (`docs/limitations.md`).
    fn allowed(&self, c: &mut Cluster, is_apart: bool) -> Vec<String> {
        let asked = PREPARED.into_iter().filter(|(name, _)| *name != "p" || !is_apart);
        let all: Vec<String> = asked.flat_map(|(name, sql)| [format!("EXECUTE {name}"), sql.to_string()]).collect();
        all.iter().for_each(|sql| self.prepared.say(sql));
        let mut allowed: Vec<String> = Vec::new();
        for sql in all {
            if self.prepared.hear(c).is_ok() {
                allowed.push(format!("{}: {sql}", self.region));
            }
        }
        self.cursor.say("FETCH 1 FROM c");
        if self.cursor.hear(c).is_ok() {
            allowed.push(format!("{}: FETCH", self.region));
        }
        allowed
    }
}

/// Asks until it is answered.
fn answered(c: &mut Cluster, region: &str, sql: &str) {
    let end = c.elapsed() + Duration::from_secs(120);
    while let Err(e) = c.try_sql(region, "d", sql) {
        assert!(c.elapsed() < end, "{sql}: {e}");
        c.pass(Duration::from_millis(200));
    }
}

/// What the role was allowed to do after `REVOKE` had answered.
fn run(seed: u64, tuning: Tuning, rounds: &[(Fault, &str)]) -> Vec<String> {
    let mut c = Cluster::start(3, 1, seed, tuning);
    c.pass(Duration::from_secs(10));
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE t (k INT8 PRIMARY KEY, v INT8 NOT NULL)");
    c.sql(US, "d", "CREATE TABLE e (k INT8 PRIMARY KEY, v INT8 NOT NULL) LOCALITY GLOBAL");
    c.sql(US, "d", "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)");
    c.sql(US, "d", "CREATE ROLE ada; CREATE ROLE readers; GRANT SELECT, UPDATE ON t, e TO readers");
    c.settled(US, "d");
    let mut allowed = Vec::new();
    for (at, (fault, from)) in rounds.iter().enumerate() {
        // By a membership, and by a privilege on the tables.
        let (grant, revoke) = match at % 2 {
            0 => ("GRANT readers TO ada", "REVOKE readers FROM ada"),
            _ => ("GRANT SELECT, UPDATE ON t, e TO ada", "REVOKE ALL ON t, e FROM ada"),
        };
        answered(&mut c, US, grant);
        // What was granted is old enough for a read of the past.
        c.pass(Duration::from_secs(5));
        let mut sessions: Vec<Sessions> = REGIONS.into_iter().map(|region| Sessions::open(&mut c, region)).collect();
        fault.begin(&mut c);
        answered(&mut c, from, revoke);
        if let Fault::Killed(dead) = fault {
            sessions.retain(|s| s.region != *dead);
        }
        let found = sessions.iter().flat_map(|s| s.allowed(&mut c, fault.separates(s.region))).collect::<Vec<_>>();
        allowed.extend(found.into_iter().map(|what| format!("{fault:?}: {what}")));
        fault.end(&mut c);
        c.pass(Duration::from_secs(15));
        for region in REGIONS {
            // One that was down or cut off meanwhile.
            if c.try_sql(region, "d", "SET ROLE ada; SELECT count(*) FROM t").is_ok() {
                allowed.push(format!("after {fault:?}: {region}"));
            }
        }
    }
    allowed
}

#[test]
fn what_was_revoked_is_refused_by_every_node_whatever_is_cut() {
    let rounds = [
        (Fault::Nothing, EU),
        (Fault::CutOff(ASIA), US),
        (Fault::OneWay("n1", "n2"), US),
        (Fault::Killed(EU), US),
        (Fault::CutOff(US), EU),
        (Fault::OneWay("n3", "n1"), EU),
    ];
    let allowed = run(171, Tuning::default(), &rounds);
    assert!(allowed.is_empty(), "{allowed:#?}");
}

#[test]
fn a_privilege_that_is_checked_when_a_statement_is_prepared_only_is_noticed() {
    let tuning = Tuning { checks_at_prepare_only: true, ..Tuning::default() };
    let allowed = run(171, tuning, &[(Fault::CutOff(ASIA), US)]);
    assert!(!allowed.is_empty(), "the planted bug goes unnoticed");
}

/// A table that is gone has no owner and no privileges any more that could be taken away.
#[test]
fn the_past_of_a_dropped_table_is_read_by_superusers() {
    let mut c = Cluster::start(1, 1, 172, Tuning::default());
    c.pass(Duration::from_secs(10));
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\""));
    c.sql(US, "d", "CREATE ROLE ada; CREATE ROLE eve; GRANT CREATE ON SCHEMA public TO eve");
    c.sql(US, "d", "SET ROLE eve; CREATE TABLE t (k INT8 PRIMARY KEY); INSERT INTO t VALUES (1); GRANT SELECT ON t TO ada");
    c.pass(Duration::from_secs(5));
    let past = "SELECT count(*) FROM t AS OF SYSTEM TIME '-3s'";
    assert_eq!(c.sql(US, "d", &format!("SET ROLE ada; {past}")), [["1"]]);
    c.sql(US, "d", "SET ROLE eve; REVOKE SELECT ON t FROM ada; DROP TABLE t");
    let answer = c.try_sql(US, "d", &format!("SET ROLE ada; {past}"));
    assert_eq!(refused(answer).0, "42501");
    assert_eq!(refused(c.try_sql(US, "d", &format!("SET ROLE eve; {past}"))).0, "42501");
    assert_eq!(c.sql(US, "d", past), [["1"]]);
    assert_eq!(c.sql(US, "d", &format!("GRANT pg_read_all_data TO ada; SET ROLE ada; {past}")), [["1"]]);
}

/// A view may show something else now, or its owner may see less: the past asks for what the
/// present one needs.
#[test]
fn the_past_of_a_view_shows_no_more_than_its_present() {
    let mut c = Cluster::start(1, 1, 173, Tuning::default());
    c.pass(Duration::from_secs(10));
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\""));
    c.sql(US, "d", "CREATE ROLE ada; CREATE ROLE eve; CREATE ROLE bob; GRANT bob TO eve");
    c.sql(US, "d", "GRANT CREATE ON SCHEMA public TO eve, bob");
    c.sql(US, "d", "SET ROLE eve; CREATE TABLE t (k INT8 PRIMARY KEY); INSERT INTO t VALUES (1), (2)");
    c.sql(US, "d", "SET ROLE eve; CREATE VIEW given AS SELECT k FROM t; CREATE VIEW narrowed AS SELECT k FROM t");
    c.sql(US, "d", "SET ROLE eve; CREATE VIEW outer_one AS SELECT k FROM narrowed");
    c.sql(US, "d", "SET ROLE eve; GRANT SELECT ON given, narrowed, outer_one TO ada");
    c.pass(Duration::from_secs(5));
    let past = |role: &str, view: &str| format!("SET ROLE {role}; SELECT count(*) FROM {view} AS OF SYSTEM TIME '-3s'");
    for view in ["given", "narrowed", "outer_one"] {
        assert_eq!(c.sql(US, "d", &past("ada", view)), [["2"]], "{view}");
    }
    c.sql(US, "d", "SET ROLE eve; ALTER VIEW given OWNER TO bob");
    c.sql(US, "d", "SET ROLE eve; CREATE OR REPLACE VIEW narrowed AS SELECT k FROM t WHERE k = 1");
    // The present: `bob` may not read the table.
    assert_eq!(refused(c.try_sql(US, "d", "SET ROLE ada; SELECT count(*) FROM given")).0, "42501");
    assert_eq!(c.sql(US, "d", "SET ROLE ada; SELECT count(*) FROM outer_one"), [["1"]]);
    for (role, view) in [("ada", "given"), ("bob", "given"), ("ada", "narrowed"), ("ada", "outer_one")] {
        assert_eq!(refused(c.try_sql(US, "d", &past(role, view))).0, "42501", "{role}, {view}");
    }
    for view in ["narrowed", "outer_one"] {
        assert_eq!(c.sql(US, "d", &past("eve", view)), [["2"]], "its owner reads {view}");
    }
    c.pass(Duration::from_secs(5));
    assert_eq!(c.sql(US, "d", &past("ada", "narrowed")), [["1"]]);
    // The same text over another table.
    c.sql(US, "d", "SET ROLE eve; CREATE TABLE s (k INT8 PRIMARY KEY); INSERT INTO s VALUES (7), (8), (9)");
    c.sql(US, "d", "SET ROLE eve; CREATE VIEW again AS SELECT k FROM s");
    c.pass(Duration::from_secs(5));
    c.sql(US, "d", "SET ROLE eve; CREATE OR REPLACE VIEW again AS SELECT 1::INT8 AS k");
    c.sql(US, "d", "SET ROLE eve; DROP TABLE s; CREATE TABLE s (k INT8 PRIMARY KEY)");
    c.sql(US, "d", "SET ROLE eve; CREATE OR REPLACE VIEW again AS SELECT k FROM s; GRANT SELECT ON again TO ada");
    assert_eq!(refused(c.try_sql(US, "d", &past("ada", "again"))).0, "42501");
}
