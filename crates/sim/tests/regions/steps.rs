//! What clients are told of their schema changes while the catalog's primary comes and goes.

use crate::script::{ASIA, Cluster, EU, US, connect};
use meridian_base::{Error, GroupId};
use meridian_sim::cluster::meridian::Tuning;
use meridian_sim::sql_wire::SimConnector;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A client that creates and drops tables of its own, one statement after the other, and judges
/// each answer.
#[derive(Default)]
struct Judged {
    acknowledged: usize,
    unknown: usize,
    /// Answers that cannot be true.
    lies: Vec<String>,
    /// Tables, and whether they are there as far as the client was told.
    tables: Vec<(String, Option<bool>)>,
}

impl Judged {
    /// What a statement that was to make `wanted` true was told, and what is known after it.
    fn judge(&mut self, statement: &str, known: Option<bool>, wanted: bool, told: Result<(), Error>) -> Option<bool> {
        match told {
            Ok(()) => {
                if known == Some(wanted) {
                    self.lies.push(format!("{statement}: done, although it had been done before"));
                }
                self.acknowledged += 1;
                Some(wanted)
            }
            // 42P07: the table exists; 42P01: it does not.
            Err(e) if e.sqlstate() == if wanted { "42P07" } else { "42P01" } => {
                if known == Some(!wanted) {
                    self.lies.push(format!("{statement}: {e}, although nobody else has done it"));
                }
                Some(wanted)
            }
            Err(e) if e.sqlstate() == "40003" || e.sqlstate().starts_with("08") || e.sqlstate() == "57014" => {
                self.unknown += 1;
                None
            }
            // It has not happened.
            Err(_) => known,
        }
    }
}

fn clients(c: &mut Cluster, stop: &Arc<AtomicBool>) -> Vec<Arc<Mutex<Judged>>> {
    let mut all = Vec::new();
    for (n, region) in [US, EU, ASIA, US, EU, ASIA].into_iter().enumerate() {
        let judged = Arc::new(Mutex::new(Judged::default()));
        all.push(judged.clone());
        let stop = stop.clone();
        c.spawn(region, move |host, regions| async move {
            let connector = SimConnector::new(host, regions);
            let mut table = 0;
            while !stop.load(Ordering::Relaxed) {
                let Ok(mut client) = connect(&connector, region, "defaultdb").await else {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                'connected: while !stop.load(Ordering::Relaxed) {
                    table += 1;
                    let name = format!("t{n}_{table}");
                    // Every third one in a block, with a row.
                    let create = match table % 3 {
                        0 => vec![
                            format!(
                                "BEGIN; CREATE TABLE {name} (id INT8 PRIMARY KEY); CREATE TABLE {name}_b (id INT8 PRIMARY KEY)"
                            ),
                            format!("INSERT INTO {name} VALUES (1)"),
                            "COMMIT".to_string(),
                        ],
                        _ => vec![format!("CREATE TABLE {name} (id INT8 PRIMARY KEY)")],
                    };
                    let mut known = Some(false);
                    for (statements, wanted) in [
                        (create, true),
                        (vec![format!("DROP TABLE {name}")], false),
                        (vec![format!("CREATE TABLE {name} (id INT8 PRIMARY KEY)")], true),
                    ] {
                        let mut told = Ok(());
                        for statement in statements.iter().flat_map(|s| s.split("; ")) {
                            let answer = tokio::time::timeout(Duration::from_secs(120), client.execute(statement)).await;
                            told = answer.unwrap_or_else(|_| Err(Error::unknown_outcome("no answer"))).map(drop);
                            if told.is_err() {
                                break;
                            }
                        }
                        let is_lost = told.as_ref().err().is_some_and(|e| e.sqlstate().starts_with("08"));
                        if told.is_err() && statements.len() > 1 && !is_lost {
                            let _ = client.execute("ROLLBACK").await;
                        }
                        known = judged.lock().judge(&statements.join("; "), known, wanted, told);
                        if is_lost {
                            judged.lock().tables.push((name, known));
                            break 'connected;
                        }
                    }
                    judged.lock().tables.push((name, known));
                }
            }
        });
    }
    all
}

/// The coordinator dies, or is cut off, at drawn moments: before it has a step, with it in its log,
/// while it spreads it.
#[test]
fn what_clients_are_told_of_their_schema_changes_is_true() {
    for seed in [81, 82] {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut c = Cluster::start(3, 1, seed, Tuning::default());
        c.pass(Duration::from_secs(15));
        let stop = Arc::new(AtomicBool::new(false));
        let all = clients(&mut c, &stop);
        let names = ["n1", "n2", "n3"];
        let ids = names.map(|name| c.id_of(name));
        for round in 0..8 {
            c.pass(Duration::from_millis(rng.random_range(500..4_000)));
            let led =
                |c: &mut Cluster| c.status("n1").into_iter().find(|n| n.leads.contains(&GroupId::CATALOG)).map(|n| n.node.id);
            let mut primary = led(&mut c);
            while primary.is_none() {
                c.pass(Duration::from_millis(100));
                primary = led(&mut c);
            }
            let at = ids.iter().position(|id| Some(*id) == primary).expect("a node");
            let others: Vec<&str> = names.into_iter().filter(|n| *n != names[at]).collect();
            let down = Duration::from_millis(rng.random_range(500..8_000));
            if round % 2 == 0 {
                c.kill(names[at]);
                c.pass(down);
                c.restart(names[at]);
            } else {
                others.iter().for_each(|other| c.cut(names[at], other));
                c.pass(down);
                others.iter().for_each(|other| c.mend(names[at], other));
            }
            c.pass(Duration::from_secs(8));
        }
        stop.store(true, Ordering::Relaxed);
        c.pass(Duration::from_secs(130));
        let there: Vec<String> = c.sql(US, "defaultdb", "SELECT tablename FROM pg_tables").into_iter().flatten().collect();
        let (mut acknowledged, mut unknown, mut lies) = (0, 0, Vec::new());
        for judged in all {
            let judged = judged.lock();
            acknowledged += judged.acknowledged;
            unknown += judged.unknown;
            lies.extend(judged.lies.iter().cloned());
            for (name, known) in &judged.tables {
                if known.is_some_and(|known| known != there.contains(name)) {
                    lies.push(format!("{name}: known to be there: {known:?}"));
                }
            }
        }
        println!("seed {seed}: {acknowledged} acknowledged, {unknown} unknown, {} untrue", lies.len());
        assert!(lies.is_empty(), "seed {seed}: {lies:#?}");
        assert!(acknowledged > 30, "seed {seed}: {acknowledged} acknowledged, {unknown} unknown");
    }
}
