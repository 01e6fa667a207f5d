//! New indexes that every replica fills by itself, while rows change and nodes die.

use crate::script::{Cluster, US};
use meridian_region::{PlantedBug, Rules};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

const ROWS: usize = 2_000;
/// Values of the indexed column.
const VALUES: usize = 101;

/// Three nodes of one region, and a table on all of them.
fn start(seed: u64, rows: usize, tuning: Tuning) -> Cluster {
    let mut c = Cluster::start(1, 3, seed, tuning);
    c.pass(Duration::from_secs(5));
    c.sql(US, "defaultdb", "CREATE DATABASE d");
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8, w INT8)");
    c.sql(US, "d", &format!("INSERT INTO t SELECT g, g % {VALUES}, g FROM generate_series(1, {rows}) AS s(g)"));
    let ranges = c.settled(US, "d");
    assert_eq!(ranges.len(), 1);
    c
}

/// The state of the last job, if anybody says.
fn last_job(c: &mut Cluster) -> Option<String> {
    c.try_sql(US, "d", "SHOW JOBS").ok()?.pop().map(|row| row[4].clone())
}

fn until_job_ends(c: &mut Cluster, patience: Duration) -> String {
    let end = c.elapsed() + patience;
    loop {
        match last_job(c) {
            Some(state) if ["succeeded", "failed", "canceled"].contains(&&*state) => return state,
            state if c.elapsed() >= end => return format!("still {state:?}"),
            _ => c.pass(Duration::from_millis(100)),
        }
    }
}

/// By the index a node finds what it finds in the rows, at the primary and at its own replica.
fn check(c: &mut Cluster, node: &str, index: &str) {
    let plan = c.try_sql_at(node, "d", "EXPLAIN SELECT id, w FROM t WHERE v = 1").expect("a plan");
    assert!(plan.iter().any(|row| row[0].contains(&format!("using {index} on t"))), "the index is not used: {plan:?}");
    for of_past in ["", " AS OF SYSTEM TIME follower_read_timestamp()"] {
        for value in (0..VALUES).step_by(4) {
            let both = ["v", "v + 0"].map(|column| {
                let sql = format!("SELECT id, w FROM t{of_past} WHERE {column} = {value} ORDER BY id");
                c.try_sql_at(node, "d", &sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
            });
            assert_eq!(both[0], both[1], "rows with {value}{of_past} at {node}");
        }
    }
}

/// Changes values, inserts and deletes rows while `during` happens.
fn under_load(c: &mut Cluster, during: impl FnOnce(&mut Cluster)) {
    let change = format!("UPDATE t SET v = (v * 7 + 3) % {VALUES} WHERE id % 97 = 5");
    let insert = format!("INSERT INTO t SELECT max(id) + 1, max(id) % {VALUES}, 0 FROM t");
    let loads = [
        c.repeat(US, "d", &change, 60),
        c.repeat(US, "d", &insert, 60),
        c.repeat(US, "d", "DELETE FROM t WHERE id = (SELECT min(id) FROM t)", 60),
    ];
    during(c);
    let end = c.elapsed() + Duration::from_secs(120);
    while loads.iter().any(|load| load.lock().len() < 60) {
        assert!(c.elapsed() < end, "the load does not end");
        c.pass(Duration::from_millis(100));
    }
    let done = loads.iter().map(|load| load.lock().iter().filter(|(result, _)| result.is_ok()).count());
    assert!(done.sum::<usize>() > 5, "hardly anything was changed");
}

/// How many indexes the replicas of a node have filled.
fn filled(c: &mut Cluster, node: &str) -> u64 {
    let rows = c.try_sql_at(node, "d", "SHOW METRICS").expect("metrics");
    let row = rows.iter().find(|row| row[0] == "store.indexes.filled");
    row.map_or(0, |row| row[1].parse().expect("a number"))
}

#[test]
fn an_index_that_replicas_fill_under_load_has_all_rows() {
    let mut c = start(61, ROWS, Tuning::default());
    under_load(&mut c, |c| {
        c.sql(US, "d", "CREATE INDEX i ON t (v) STORING (w)");
    });
    c.pass(Duration::from_secs(8));
    for node in c.nodes() {
        check(&mut c, &node, "i");
        assert_eq!(filled(&mut c, &node), 1);
    }
    // Nothing has a second entry.
    assert_eq!(c.sql(US, "d", "SELECT count(*) - count(DISTINCT id) FROM t WHERE v >= 0"), [["0"]]);
}

/// Whenever a node dies, the index is whole in the end, also on who comes back, by the log or by a
/// snapshot.
#[test]
fn nodes_that_die_while_an_index_is_filled_have_it_in_the_end() {
    for (seed, node, millis, loses_disk) in
        [(62, "n1", 120, false), (63, "n2", 160, false), (64, "n3", 200, true), (65, "n1", 240, false), (66, "n2", 300, true)]
    {
        let mut c = start(seed, ROWS, Tuning::default());
        under_load(&mut c, |c| {
            c.begin_sql(US, "d", "CREATE INDEX i ON t (v) STORING (w)");
            c.pass(Duration::from_millis(millis));
            match loses_disk {
                true => c.lose_disk(node),
                false => c.kill(node),
            }
            c.pass(Duration::from_secs(1));
            c.restart(node);
        });
        // The job's node may be the one that has died.
        assert_eq!(until_job_ends(&mut c, Duration::from_secs(150)), "succeeded", "seed {seed}");
        c.pass(Duration::from_secs(10));
        let nodes: Vec<String> = c.nodes().into_iter().filter(|n| !(loses_disk && n == node)).collect();
        nodes.iter().for_each(|node| check(&mut c, node, "i"));
    }
}

/// Two rows with one value, there before or inserted meanwhile: 23505, and the index is gone.
#[test]
fn a_unique_index_is_refused_where_replicas_find_a_value_twice() {
    let mut c = start(67, ROWS, Tuning::default());
    let e = c.try_sql(US, "d", "CREATE UNIQUE INDEX u ON t (v)").expect_err("values are there twice");
    assert_eq!(e.sqlstate(), "23505");
    under_load(&mut c, |c| {
        // `w` of new rows is 0.
        let e = c.try_sql(US, "d", "CREATE UNIQUE INDEX u ON t (w)");
        let zeros = c.sql(US, "d", "SELECT count(*) FROM t WHERE w = 0");
        match e {
            Err(e) => assert_eq!(e.sqlstate(), "23505"),
            Ok(_) => assert!(["0", "1"].contains(&&*zeros[0][0]), "{zeros:?}"),
        }
    });
    c.sql(US, "d", "DELETE FROM t WHERE w = 0");
    c.sql(US, "d", "DROP INDEX IF EXISTS u; CREATE UNIQUE INDEX u2 ON t (w)");
    let nodes = c.nodes();
    assert!(nodes.iter().all(|node| filled(&mut c, node) >= 3), "replicas find what is there twice");
    let row = c.sql(US, "d", "SELECT max(id) FROM t")[0][0].clone();
    assert_eq!(c.sql(US, "d", &format!("SELECT id FROM t WHERE w = {row}")), [[row.clone()]]);
    let e = c.try_sql(US, "d", &format!("INSERT INTO t VALUES (1000000, 1, {row})")).expect_err("it is there");
    assert_eq!(e.sqlstate(), "23505");
}

/// Old versions are collected every millisecond, whatever their age. What an index is filled from
/// must not be: a replica whose disk is full owes the index for as long as that lasts, and has to
/// read rows as of long ago then.
fn beside_garbage_collection(rules: Rules, seed: u64) -> Result<(), String> {
    let tuning = Tuning {
        rules,
        gc_ttl: Duration::ZERO,
        gc_interval: Duration::from_millis(1),
        protected_for_max: Duration::ZERO,
        ..Tuning::default()
    };
    let mut c = start(seed, 300, tuning);
    let changes = format!("UPDATE t SET v = (v * 7 + 3) % {VALUES} WHERE id % 97 = 5");
    c.fill("n3", true);
    c.pass(Duration::from_secs(8));
    let load = c.repeat(US, "d", &changes, 60);
    c.begin_sql(US, "d", "CREATE INDEX i ON t (v) STORING (w)");
    let state = until_job_ends(&mut c, Duration::from_secs(60));
    if state != "succeeded" {
        return Err(format!("the job is {state}"));
    }
    while load.lock().len() < 60 {
        c.pass(Duration::from_millis(100));
    }
    c.fill("n3", false);
    c.pass(Duration::from_secs(30));
    match c.nodes().into_iter().find(|node| filled(&mut c, node) != 1) {
        Some(node) => Err(format!("{node} has not filled the index")),
        None => Ok(()),
    }
}

#[test]
fn what_an_index_is_filled_from_is_not_collected() {
    let seeds = 71..74;
    for seed in seeds.clone() {
        beside_garbage_collection(Rules::ALL, seed).expect("all replicas fill the index");
    }
    let bug = Rules::without(PlantedBug::BuildHoldsNothing);
    let mut found = seeds.filter(|seed| beside_garbage_collection(bug, *seed).is_err());
    assert!(found.next().is_some(), "the bug is caught");
}

/// A member without room is not waited for, and fills the index when it has room again.
#[test]
fn a_full_disk_does_not_hold_up_an_index() {
    let mut c = start(91, 300, Tuning::default());
    c.fill("n3", true);
    c.pass(Duration::from_secs(8));
    c.begin_sql(US, "d", "CREATE INDEX i ON t (v) STORING (w)");
    assert_eq!(until_job_ends(&mut c, Duration::from_secs(60)), "succeeded");
    c.fill("n3", false);
    c.pass(Duration::from_secs(30));
    for node in c.nodes() {
        check(&mut c, &node, "i");
    }
}

/// An index that is dropped while a member owes it is owed no more, and another one is filled.
#[test]
fn an_index_is_dropped_while_a_node_is_down_that_owes_it() {
    let mut c = start(92, 300, Tuning::default());
    c.begin_sql(US, "d", "CREATE INDEX gone ON t (v)");
    c.pass(Duration::from_millis(150));
    c.kill("n3");
    assert_eq!(until_job_ends(&mut c, Duration::from_secs(120)), "succeeded");
    c.sql(US, "d", "DROP INDEX gone");
    c.restart("n3");
    c.pass(Duration::from_secs(20));
    c.sql(US, "d", "CREATE INDEX i ON t (v) STORING (w)");
    c.pass(Duration::from_secs(8));
    for node in c.nodes() {
        check(&mut c, &node, "i");
    }
}
