//! Escrow columns whose tokens are moved by `majority`, while sites die and are cut off.

use crate::script::{ASIA, AUSTRALIA, Cluster, EU, Repeated, US, WEST, refused};
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
    c.sql(US, "d", BY_MAJORITY);
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
fn settle(c: &mut Cluster, regions: &[&str]) -> Duration {
    let began = c.elapsed();
    loop {
        let rows: Vec<i64> = regions.iter().map(|region| in_rounds(c, region)).collect();
        let took = c.elapsed() - began;
        if rows.iter().all(|rows| *rows == 0) {
            return took;
        }
        assert!(took <= SETTLED_MAX, "rows are still in rounds after {took:?}: {rows:?}");
        c.pass(Duration::from_millis(200));
    }
}

/// Each region can take each number to both its bounds: no token is lost or held.
fn reach_all_tokens(c: &mut Cluster, limit: i64) {
    for id in 1..=3 {
        for region in REGIONS {
            let used: i64 =
                c.sql(region, "d", &format!("SELECT used FROM quotas WHERE id = {id}"))[0][0].parse().expect("a number");
            assert!((0..=limit).contains(&used), "row {id} is {used}");
            for delta in [limit - used, -limit, used] {
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

const BY_ANY: &str = "ALTER TABLE quotas ALTER COLUMN used SET (escrow.protocol = 'any')";
const BY_MAJORITY: &str = "ALTER TABLE quotas ALTER COLUMN used SET (escrow.protocol = 'majority')";

#[test]
fn tokens_come_by_majority_and_its_sites_stay_until_all_rounds_have_ended() {
    let mut c = start(511);
    for region in REGIONS {
        c.sql(region, "d", "UPDATE quotas SET used = used + 1 WHERE id = 1");
    }
    reach_all_tokens(&mut c, LIMIT);
    settle(&mut c, &REGIONS);
    let refusal = |c: &mut Cluster, sql: &str| refused(c.try_sql(US, "defaultdb", sql));
    let (drop, add) = (format!("ALTER DATABASE d DROP REGION \"{ASIA}\""), format!("ALTER DATABASE d ADD REGION \"{ASIA}\""));
    for sql in [&drop, &format!("ALTER DATABASE d PRIMARY REGION \"{EU}\"")] {
        assert_eq!(refusal(&mut c, sql).0, "0A000", "{sql}");
    }
    // A region that does not answer may have offers out.
    c.cut_off(ASIA);
    let ending = c.converse(US, "d");
    ending.say(BY_ANY);
    c.pass(Duration::from_secs(5));
    assert_eq!(refusal(&mut c, &drop).0, "0A000");
    assert_eq!(refused(c.try_sql(US, "d", BY_MAJORITY)).0, "55006");
    let nodes = c.nodes();
    nodes[..2].iter().for_each(|other| c.mend(&nodes[2], other));
    ending.hear(&mut c).expect("the rounds have ended");
    reach_all_tokens(&mut c, LIMIT);
    c.sql(US, "defaultdb", &drop);
    c.sql(US, "d", BY_MAJORITY);
    assert_eq!(refusal(&mut c, &add).0, "0A000");
    c.sql(EU, "d", "UPDATE quotas SET used = used + 1 WHERE id = 1");
    c.sql(EU, "d", BY_ANY);
    c.sql(US, "defaultdb", &add);
    c.settled(US, "d");
    c.sql(EU, "d", BY_MAJORITY);
    reach_all_tokens(&mut c, LIMIT);
    settle(&mut c, &REGIONS);
}

/// Rounds end, and begin again, while their rows are changed all the time; and with other bounds.
#[test]
fn rounds_of_majority_end_under_load_and_begin_again() {
    const WRITES: usize = 200;
    let mut c = start(514);
    let writers = write(&mut c, WRITES);
    let run = |c: &mut Cluster, sql: &str| {
        let end = c.elapsed() + Duration::from_secs(60);
        while let Err(e) = c.try_sql(US, "d", sql) {
            assert!(c.elapsed() < end && e.is_retry(), "{sql}: {e}");
            c.pass(Duration::from_millis(200));
        }
    };
    for _ in 0..4 {
        c.pass(Duration::from_secs(2));
        // Offers of the number before end with it.
        let set = c.repeat(EU, "d", "UPDATE quotas SET used = 30 WHERE id = 3", 5);
        while set.lock().len() < 5 {
            c.pass(Duration::from_millis(100));
        }
        run(&mut c, BY_ANY);
        c.pass(Duration::from_secs(1));
        run(&mut c, BY_MAJORITY);
    }
    while writers.iter().any(|writer| writer.lock().len() < WRITES) {
        c.pass(Duration::from_secs(1));
    }
    println!("{} acknowledged", acknowledged(&writers));
    reach_all_tokens(&mut c, LIMIT);
    for limit in [LIMIT + 20, LIMIT - 7] {
        assert_eq!(refused(c.try_sql(US, "d", &bounded_by(limit))).0, "0A000");
        c.sql(EU, "d", "UPDATE quotas SET used = 0");
        c.sql(EU, "d", "UPDATE quotas SET used = used + 1 WHERE id < 3");
        c.sql(ASIA, "d", "UPDATE quotas SET used = used + 1 WHERE id = 1");
        [BY_ANY, &bounded_by(limit), BY_MAJORITY].into_iter().for_each(|sql| drop(c.sql(US, "d", sql)));
        reach_all_tokens(&mut c, limit);
    }
    settle(&mut c, &REGIONS);
}

fn bounded_by(limit: i64) -> String {
    format!(
        "ALTER TABLE quotas DROP CONSTRAINT quotas_used_check, ADD CONSTRAINT quotas_used_check CHECK (used BETWEEN 0 AND {limit})"
    )
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
    let took = settle(&mut c, &REGIONS);
    println!("no row is in a round after {took:?}");
    reach_all_tokens(&mut c, LIMIT);
    settle(&mut c, &REGIONS);
}

/// Others may take what is left, and not what a statement of a block has reserved.
#[test]
fn what_a_block_has_taken_is_there_when_it_commits() {
    let mut c = start(513);
    c.sql(US, "d", BY_ANY);
    c.sql(US, "d", "UPDATE quotas SET used = 0 WHERE id = 1");
    let add = |n: i64| format!("UPDATE quotas SET used = used + {n} WHERE id = 1");
    let block = c.converse(EU, "d");
    for sql in ["BEGIN", &add(3), &add(2)] {
        block.ask(&mut c, sql);
    }
    c.sql(ASIA, "d", &add(LIMIT - 5));
    // The number itself would allow it.
    let other = c.converse(ASIA, "d");
    other.say(&add(5));
    c.pass(Duration::from_secs(3));
    block.ask(&mut c, "COMMIT");
    assert_eq!(refused(other.hear(&mut c)).0, "23514");
    assert_eq!(c.sql(ASIA, "d", "SELECT used FROM quotas WHERE id = 1"), [[LIMIT.to_string()]]);
    // A block that is rolled back holds nothing.
    for sql in ["BEGIN", &add(-30), "ROLLBACK"] {
        block.ask(&mut c, sql);
    }
    c.pass(Duration::from_millis(500));
    c.sql(US, "d", &add(-LIMIT));
    // Tokens that it has brought stay where it was.
    for sql in ["BEGIN", &add(30), "ROLLBACK"] {
        block.ask(&mut c, sql);
    }
    let parts = c.sql(US, "d", "SELECT can_add FROM [SHOW ESCROW FOR TABLE quotas FOR ROW (1)] WHERE region = 'europe-west2'");
    assert!(parts[0][0].parse::<i64>().expect("a number") >= 30, "{parts:?}");
}

/// A statement over many rows whose tokens are elsewhere takes a few round trips, and not some for
/// each row; one that adds nothing needs no tokens.
#[test]
fn tokens_of_many_rows_come_together() {
    let mut c = start(515);
    c.sql(US, "d", BY_ANY);
    let create = "CREATE TABLE many (id INT8 PRIMARY KEY, a INT8 NOT NULL DEFAULT 0 ESCROW CHECK (a BETWEEN 0 AND 90), b INT8 NOT NULL DEFAULT 5 ESCROW CHECK (b BETWEEN 0 AND 90))";
    c.sql(US, "d", create);
    c.sql(US, "d", "INSERT INTO many (id) SELECT g FROM generate_series(1, 500) AS s(g)");
    c.settled(US, "d");
    c.sql(EU, "d", "UPDATE many SET b = b + 0 WHERE id = 1");
    c.sql(EU, "d", "INSERT INTO many (id, a) VALUES (2, 0) ON CONFLICT (id) DO UPDATE SET a = many.a + excluded.a");
    let began = c.elapsed();
    c.sql(EU, "d", "UPDATE many SET a = a + 3, b = b + 0 WHERE id <= 500");
    let took = c.elapsed() - began;
    println!("500 rows took {took:?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(c.sql(US, "d", "SELECT sum(a), sum(b) FROM many"), [["1500", "2500"]]);
    // Some of them are short everywhere.
    c.sql(US, "d", "UPDATE many SET a = 90 WHERE id % 100 = 0");
    assert_eq!(refused(c.try_sql(ASIA, "d", "UPDATE many SET a = a + 1")).0, "23514");
    c.sql(ASIA, "d", "UPDATE many SET a = a + 1 WHERE id % 100 <> 0");
    assert_eq!(c.sql(EU, "d", "SELECT sum(a) FROM many"), [[(495 * 4 + 5 * 90).to_string()]]);
}

const FIVE: [&str; 5] = [US, EU, ASIA, WEST, AUSTRALIA];
/// The regions in which most sites are; the table's own region is not among them.
const THREE: [&str; 3] = [ASIA, WEST, AUSTRALIA];
/// How often each changes a number.
const TIMES: usize = 300;

/// What a table's number may be, by what the clients that added to it were told.
fn explained(begin: i64, writers: &[(i64, Repeated)]) -> (i64, i64) {
    let (mut least, mut most) = (begin, begin);
    for (delta, writer) in writers {
        for (result, _) in &*writer.lock() {
            let is_known = !matches!(result, Err(state) if matches!(&**state, "40003" | "08006"));
            if is_known && result.is_err() {
                continue;
            }
            least += if is_known { *delta } else { (*delta).min(0) };
            most += if is_known { *delta } else { (*delta).max(0) };
        }
    }
    (least, most)
}

fn succeeded(writer: &Repeated) -> usize {
    writer.lock().iter().filter(|(result, _)| result.is_ok()).count()
}

/// Each region can take the number to both its bounds.
fn reach_all(c: &mut Cluster, table: &str) {
    for region in FIVE {
        let used: i64 = c.sql(region, "d", &format!("SELECT used FROM {table}"))[0][0].parse().expect("a number");
        for delta in [LIMIT - used, -LIMIT, used] {
            let update = format!("UPDATE {table} SET used = used + ({delta}) WHERE id = 1");
            let end = c.elapsed() + Duration::from_secs(40);
            while let Err(e) = c.try_sql(region, "d", &update) {
                assert!(e.is_retry() && c.elapsed() < end, "{region}: {update}: {e}");
                c.pass(Duration::from_millis(100));
            }
        }
    }
}

/// Of five sites, two are cut off from three (Samya, section 5.6). Those who take tokens are beside
/// those who give some, on both sides: `any` goes on on both, `majority` where three are.
#[test]
fn two_of_five_sites_are_cut_off_from_the_others() {
    let mut c = Cluster::start(5, 1, 521, Tuning::default());
    c.pass(Duration::from_secs(15));
    let others = FIVE[1..].iter().map(|region| format!("\"{region}\"")).collect::<Vec<_>>().join(", ");
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS {others}"));
    for table in ["by_any", "by_majority"] {
        let used = format!("used INT8 NOT NULL ESCROW CHECK (used BETWEEN 0 AND {LIMIT})");
        c.sql(US, "d", &format!("CREATE TABLE {table} (id INT8 PRIMARY KEY, {used})"));
    }
    c.sql(US, "d", "ALTER TABLE by_majority ALTER COLUMN used SET (escrow.protocol = 'majority')");
    for table in ["by_any", "by_majority"] {
        c.sql(US, "d", &format!("INSERT INTO {table} VALUES (1, {})", LIMIT / 2));
    }
    c.settled(US, "d");
    // Each side takes and gives as much: what one site takes, it has to get from another one.
    let changes = [(US, 4), (EU, -4), (ASIA, 5), (WEST, -2), (AUSTRALIA, -3)];
    for (region, table) in FIVE.into_iter().flat_map(|region| [(region, "by_any"), (region, "by_majority")]) {
        for delta in [2, -2] {
            c.sql(region, "d", &format!("UPDATE {table} SET used = used + ({delta}) WHERE id = 1"));
        }
    }
    c.part(&THREE);
    // The nodes have noticed.
    c.pass(Duration::from_secs(5));
    let write = |c: &mut Cluster, table: &str| {
        let update = |delta: i64| format!("UPDATE {table} SET used = used + ({delta}) WHERE id = 1");
        changes.map(|(region, delta)| (delta, c.repeat(region, "d", &update(delta), TIMES)))
    };
    let (any, majority) = (write(&mut c, "by_any"), write(&mut c, "by_majority"));
    let so_far = |writers: &[(i64, Repeated)]| writers.iter().map(|(_, writer)| succeeded(writer)).collect::<Vec<_>>();
    let mut progress = Vec::new();
    for _ in 0..2 {
        c.pass(Duration::from_secs(20));
        progress.push([so_far(&any), so_far(&majority)]);
    }
    println!("acknowledged in 20 s and in 40 s, by any and by majority: {progress:?}");
    // Nobody's own tokens last that long.
    for (at, region) in FIVE.into_iter().enumerate() {
        for protocol in (0..2).filter(|protocol| *protocol == 0 || THREE.contains(&region)) {
            let (before, after) = (progress[0][protocol][at], progress[1][protocol][at]);
            assert!(after > before || after == TIMES, "{region} goes on: {progress:?}");
        }
    }
    c.join(&THREE);
    let end = c.elapsed() + Duration::from_secs(240);
    while any.iter().chain(&majority).any(|(_, writer)| writer.lock().len() < TIMES) {
        assert!(c.elapsed() < end, "some writer does not end");
        c.pass(Duration::from_secs(1));
    }
    for (table, writers) in [("by_any", &any), ("by_majority", &majority)] {
        let used: i64 = c.sql(EU, "d", &format!("SELECT used FROM {table}"))[0][0].parse().expect("a number");
        let (least, most) = explained(LIMIT / 2, writers);
        assert!((least..=most).contains(&used), "{table} is {used}, and clients know of {least} to {most}");
        reach_all(&mut c, table);
    }
    settle(&mut c, &FIVE);
}

/// Its tokens are not held any more, but they are there; and the id under which they were held is
/// one that no group knows any more.
#[test]
fn a_block_that_is_open_for_long_commits_what_it_has_taken() {
    let mut c = start(516);
    c.sql(US, "d", BY_ANY);
    c.sql(US, "d", "UPDATE quotas SET used = 0 WHERE id = 1");
    let block = c.converse(EU, "d");
    for sql in ["BEGIN", "UPDATE quotas SET used = used + 3 WHERE id = 1"] {
        block.ask(&mut c, sql);
    }
    for _ in 0..9 {
        c.pass(Duration::from_secs(5));
        c.sql(US, "d", "UPDATE quotas SET used = used + 1 WHERE id = 1");
        c.sql(EU, "d", "UPDATE quotas SET used = used + 1 WHERE id = 2");
    }
    block.ask(&mut c, "COMMIT");
    assert_eq!(c.sql(US, "d", "SELECT used FROM quotas WHERE id = 1"), [["12"]]);
}

/// Long after it began it commits under another id than its first one, for which nothing is held.
#[test]
fn a_block_that_takes_tokens_late_does_not_keep_them_from_itself() {
    let mut c = start(517);
    c.sql(US, "d", BY_ANY);
    c.sql(US, "d", "UPDATE quotas SET used = 0 WHERE id = 1");
    let block = c.converse(EU, "d");
    for sql in ["BEGIN", "SELECT id FROM quotas WHERE id = 2"] {
        block.ask(&mut c, sql);
    }
    c.pass(Duration::from_secs(25));
    block.ask(&mut c, &format!("UPDATE quotas SET used = used + {LIMIT} WHERE id = 1"));
    block.ask(&mut c, "COMMIT");
    assert_eq!(c.sql(US, "d", "SELECT used FROM quotas WHERE id = 1"), [[LIMIT.to_string()]]);
}
