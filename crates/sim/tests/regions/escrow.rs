//! Escrow columns whose tokens are moved by `majority`, while sites die and are cut off.

use crate::script::{ASIA, Cluster, EU, Repeated, US, refused};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

const REGIONS: [&str; 3] = [US, EU, ASIA];
const LIMIT: i64 = 60;
/// From the last fault on: no token is held any more.
const SETTLED_MAX: Duration = Duration::from_secs(10);

fn start(seed: u64) -> Cluster {
    let mut c = Cluster::start(3, 1, seed, Tuning::default());
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(
        US,
        "d",
        &format!("CREATE TABLE quotas (id INT8 PRIMARY KEY, used INT8 NOT NULL ESCROW CHECK (used BETWEEN 0 AND {LIMIT}))"),
    );
    c.sql(US, "d", "ALTER TABLE quotas ALTER COLUMN used SET (escrow.protocol = 'majority')");
    c.sql(US, "d", &format!("INSERT INTO quotas SELECT g, {} FROM generate_series(1, 3) AS s(g)", LIMIT / 2));
    c.settled(US, "d");
    c
}

/// Rows that have a leader or an offer out, at the region's only node.
fn in_rounds(c: &mut Cluster, region: &str) -> i64 {
    let rows = c.sql(region, "d", "SHOW METRICS");
    let row = rows.iter().find(|row| row.iter().any(|v| v == "escrow.rows.in_rounds"));
    row.and_then(|row| row.last()).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("no such metric: {rows:?}"))
}

/// How many statements were acknowledged; the others failed in ways that one may try again.
fn acknowledged(writers: &[Repeated]) -> usize {
    let mut acknowledged = 0;
    for (result, _) in writers.iter().flat_map(|w| w.lock().clone()) {
        match result {
            Ok(()) => acknowledged += 1,
            Err(state) => assert!(["40001", "40003", "23514", "57P03", "08006"].contains(&&*state), "{state}"),
        }
    }
    acknowledged
}

/// Waits until no row is in a round, nowhere.
fn settle(c: &mut Cluster) -> Duration {
    let began = c.elapsed();
    while REGIONS.map(|region| in_rounds(c, region)) != [0; 3] {
        let took = c.elapsed() - began;
        assert!(took <= SETTLED_MAX, "rows are still in rounds after {took:?}: {:?}", REGIONS.map(|region| in_rounds(c, region)));
        c.pass(Duration::from_millis(200));
    }
    c.elapsed() - began
}

/// Each region can take each number to both its bounds: no token is lost or held.
fn reach_all_tokens(c: &mut Cluster) {
    for id in 1..=3 {
        for region in REGIONS {
            let used: i64 =
                c.sql(region, "d", &format!("SELECT used FROM quotas WHERE id = {id}"))[0][0].parse().expect("a number");
            assert!((0..=LIMIT).contains(&used), "row {id} is {used}");
            for delta in [LIMIT - used, -LIMIT, used] {
                let update = format!("UPDATE quotas SET used = used + ({delta}) WHERE id = {id}");
                let end = c.elapsed() + SETTLED_MAX;
                while let Err(e) = c.try_sql(region, "d", &update) {
                    assert!(e.is_retry() && c.elapsed() < end, "{region}: {update}: {e}");
                    c.pass(Duration::from_millis(100));
                }
            }
        }
    }
}

/// Changes of the three rows by all regions, in directions that need each other's tokens.
fn write(c: &mut Cluster, times: usize) -> Vec<Repeated> {
    let changes = [
        (US, "used + 7", 1),
        (EU, "used + 5", 2),
        (ASIA, "used - 6", 1),
        (US, "used - 3", 2),
        (EU, "used + 9", 3),
        (ASIA, "used - 8", 3),
    ];
    changes
        .into_iter()
        .map(|(region, value, id)| c.repeat(region, "d", &format!("UPDATE quotas SET used = {value} WHERE id = {id}"), times))
        .collect()
}

#[test]
fn tokens_come_by_majority_and_its_sites_stay() {
    let mut c = start(511);
    for region in REGIONS {
        c.sql(region, "d", "UPDATE quotas SET used = used + 1 WHERE id = 1");
    }
    reach_all_tokens(&mut c);
    settle(&mut c);
    let refusal = |c: &mut Cluster, sql: &str| refused(c.try_sql(US, "defaultdb", sql));
    for sql in [format!("ALTER DATABASE d DROP REGION \"{ASIA}\""), format!("ALTER DATABASE d PRIMARY REGION \"{EU}\"")] {
        assert_eq!(refusal(&mut c, &sql).0, "0A000", "{sql}");
    }
    // Also when it is moved by transactions again. A table without the setting has other regions.
    c.sql(EU, "d", "ALTER TABLE quotas ALTER COLUMN used SET (escrow.protocol = 'any')");
    assert_eq!(refusal(&mut c, &format!("ALTER DATABASE d DROP REGION \"{ASIA}\"")).0, "0A000");
    reach_all_tokens(&mut c);
    c.sql(EU, "d", "TRUNCATE quotas");
    c.sql(US, "defaultdb", &format!("ALTER DATABASE d DROP REGION \"{ASIA}\""));
}

#[test]
fn rounds_end_when_sites_have_died_and_were_cut_off() {
    let mut c = start(512);
    let writers = write(&mut c, 150);
    c.pass(Duration::from_secs(3));
    let nodes = c.nodes();
    // The majority goes on without the third site, which may have offers out.
    c.cut_off(ASIA);
    c.pass(Duration::from_secs(5));
    let before = acknowledged(&writers);
    c.pass(Duration::from_secs(3));
    assert!(acknowledged(&writers) > before, "two of three sites go on");
    for other in nodes.iter().filter(|n| **n != nodes[2]) {
        c.mend(&nodes[2], other);
    }
    // Each dies once in the middle of its rounds.
    for node in nodes.iter().rev() {
        c.pass(Duration::from_secs(2));
        c.kill(node);
        c.pass(Duration::from_millis(700));
        c.restart(node);
    }
    c.pass(Duration::from_secs(40));
    println!("{} acknowledged", acknowledged(&writers));
    let took = settle(&mut c);
    println!("no row is in a round after {took:?}");
    reach_all_tokens(&mut c);
    settle(&mut c);
}
