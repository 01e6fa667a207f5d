//! Columns whose values are written into the rows that are there, while those are written.

use crate::script::{ASIA, Cluster, EU, US, refused};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

/// The way from a table of one region to one that is divided by what its rows say, with rows that
/// move from city to city meanwhile.
#[test]
fn a_table_is_divided_by_a_column_that_is_computed_while_its_rows_change() {
    let mut c = Cluster::start(3, 1, 91, Tuning::default());
    // Until the catalog has its three voters.
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(
        US,
        "d",
        "CREATE TABLE users (id INT8 PRIMARY KEY, city TEXT NOT NULL, trips INT8 NOT NULL DEFAULT 0, name TEXT UNIQUE)",
    );
    let cities = "ARRAY['new york', 'paris', 'tokyo']";
    c.sql(
        US,
        "d",
        &format!("INSERT INTO users SELECT g, ({cities})[g % 3 + 1], 0, 'user ' || g FROM generate_series(1, 900) AS s(g)"),
    );
    c.settled(US, "d");
    let pick = "(SELECT 1 + floor(random() * 900)::INT8)";
    let moves = format!("UPDATE users SET city = ({cities})[trips % 3 + 1], trips = trips + 1 WHERE id = {pick}");
    let writers: Vec<_> = [US, EU, ASIA].map(|region| c.repeat(region, "d", &moves, 1_000_000)).into();
    c.pass(Duration::from_secs(2));
    let region = format!("CASE city WHEN 'new york' THEN '{US}' WHEN 'paris' THEN '{EU}' WHEN 'tokyo' THEN '{ASIA}' END");
    let counts = |writers: &[crate::script::Repeated]| writers.iter().map(|w| w.lock().len()).collect::<Vec<_>>();
    let before = counts(&writers);
    let add = format!(
        "ALTER TABLE users ADD COLUMN region crdb_internal_region AS ({region}) STORED NOT NULL, ADD COLUMN key UUID DEFAULT gen_random_uuid()"
    );
    c.sql(EU, "d", &add);
    let wrong = format!("SELECT count(*) FROM people WHERE region::text IS DISTINCT FROM {region} OR key IS NULL OR n IS NULL");
    let between = counts(&writers);
    c.sql(ASIA, "d", "ALTER TABLE users SET LOCALITY REGIONAL BY ROW AS region");
    let after = counts(&writers);
    for ((a, b), c) in before.iter().zip(&between).zip(&after) {
        assert!(a < b && b < c, "{before:?} {between:?} {after:?}: somebody had to wait all the time");
    }
    // The counter is in a group that nothing has used before.
    c.sql(EU, "d", "ALTER TABLE users ADD COLUMN n SERIAL UNIQUE");
    let last = counts(&writers);
    assert!(last.iter().zip(&after).all(|(last, after)| last > after), "{after:?} {last:?}");
    // Who reads all of it wants nobody to write: the writers do not find it any more.
    c.sql(US, "d", "ALTER TABLE users RENAME TO people");
    println!("updates: {before:?}, {between:?} with the column, {after:?} divided, {last:?} numbered; {:?}", c.elapsed());
    for writer in &writers {
        let failed: Vec<_> = writer.lock().iter().filter_map(|(result, _)| result.clone().err()).collect();
        assert!(failed.iter().all(|state| state == "40001" || state == "42P01"), "{failed:?}");
    }
    for reader in [US, EU, ASIA] {
        assert_eq!(c.sql(reader, "d", &wrong), [["0"]], "seen from {reader}");
        assert_eq!(
            c.sql(reader, "d", "SELECT count(*), count(DISTINCT key), count(DISTINCT n), count(DISTINCT region) FROM people"),
            [["900", "900", "900", "3"]]
        );
    }
    assert_eq!(c.sql(EU, "d", "SHOW LOCALITY FROM TABLE people")[0][1], "REGIONAL BY ROW AS region");
    assert_eq!(refused(c.try_sql(EU, "d", "INSERT INTO people (id, city) VALUES (1000, 'atlantis')")).0, "23502");
}

/// At whatever moment it dies, and whether the column can be added or not.
#[test]
fn adding_a_column_outlives_the_node_that_runs_it() {
    for (seed, millis, divisor) in
        [(12, 20, "v + 1"), (13, 300, "v + 1"), (14, 900, "v + 1"), (15, 300, "v - 4999"), (16, 900, "v - 4999")]
    {
        let mut c = Cluster::start(1, 3, seed, Tuning::default());
        // Until the catalog has its three voters.
        c.pass(Duration::from_secs(15));
        c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8)");
        for from in (0..5_000).step_by(1_000) {
            let rows = format!("SELECT g, g FROM generate_series({from}, {}) AS s(g)", from + 999);
            c.sql(US, "defaultdb", &format!("INSERT INTO t {rows}"));
        }
        let add = format!("ALTER TABLE t ADD COLUMN n SERIAL, ADD COLUMN q INT8 AS (1000000 / ({divisor})) STORED");
        c.begin_sql(US, "defaultdb", &add);
        let state = |c: &mut Cluster| c.try_sql(US, "defaultdb", "SHOW JOBS").ok()?.pop().map(|row| row[4].clone());
        let end = c.elapsed() + Duration::from_secs(10);
        while state(&mut c).is_none() {
            assert!(c.elapsed() < end, "the job does not begin");
            c.pass(Duration::from_millis(5));
        }
        c.pass(Duration::from_millis(millis));
        // A connection goes to the region's first node, and the job runs where its session is.
        c.kill("n1");
        c.pass(Duration::from_secs(5));
        c.sql(US, "defaultdb", "UPDATE t SET v = v + 10000 WHERE id < 10; INSERT INTO t VALUES (5000, 5000)");
        let end = c.elapsed() + Duration::from_secs(60);
        loop {
            let now = state(&mut c).expect("a job");
            if now == "succeeded" || now == "failed" {
                assert_eq!(now == "succeeded", divisor == "v + 1", "killed after {millis} ms");
                break;
            }
            assert!(c.elapsed() < end, "the job is {now}");
            c.pass(Duration::from_secs(1));
        }
        if divisor == "v + 1" {
            let found = "SELECT count(*), count(DISTINCT n), count(*) FILTER (WHERE q IS DISTINCT FROM 1000000 / (v + 1)) FROM t";
            assert_eq!(c.sql(US, "defaultdb", found), [["5001", "5001", "0"]], "killed after {millis} ms");
        } else {
            assert_eq!(c.sql(US, "defaultdb", "SELECT * FROM t WHERE id = 4999"), [["4999", "4999"]]);
            assert_eq!(c.sql(US, "defaultdb", "SHOW SEQUENCES").len(), 0);
        }
    }
}

/// All regions add to the same numbers; meanwhile these get shares, lose them and get them again,
/// and the rows move. What was acknowledged is what they are in the end.
#[test]
fn numbers_are_exact_while_their_column_is_split_and_joined_and_their_rows_move() {
    const FIRST: i64 = 500_000;
    let mut c = Cluster::start(3, 1, 97, Tuning::default());
    // Until the catalog has its three voters.
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(
        US,
        "d",
        "CREATE TABLE quotas (id INT8 PRIMARY KEY, used INT8 NOT NULL CHECK (used BETWEEN 0 AND 1000000000), note TEXT)",
    );
    c.sql(US, "d", &format!("INSERT INTO quotas SELECT g, {FIRST}, 'as it was' FROM generate_series(1, 2000) AS s(g)"));
    c.settled(US, "d");
    let adds = [(US, 1, 1), (EU, 10, 1), (ASIA, 100, 1), (US, -3, 2), (EU, -30, 2), (ASIA, 700, 2), (EU, 5, 3)];
    let writers: Vec<_> = adds
        .iter()
        .map(|(region, delta, id)| {
            let update = format!("UPDATE quotas SET used = used + ({delta}) WHERE id = {id}");
            c.repeat(region, "d", &update, 1_000_000)
        })
        .collect();
    // Others change the rows, and not their numbers.
    let notes = [US, ASIA].map(|region| c.repeat(region, "d", "UPDATE quotas SET note = note || 'x' WHERE id < 3", 1_000_000));
    let acknowledged = |writer: &crate::script::Repeated| writer.lock().iter().filter(|(result, _)| result.is_ok()).count();
    let mut counts = vec![writers.iter().map(acknowledged).collect::<Vec<_>>()];
    for (at, action) in [
        "ALTER COLUMN used SET ESCROW",
        "SET LOCALITY REGIONAL BY ROW",
        "ALTER COLUMN used DROP ESCROW",
        "ALTER COLUMN used SET ESCROW",
        "SET LOCALITY GLOBAL",
        "ADD COLUMN seats INT4 NOT NULL DEFAULT 5 ESCROW CHECK (seats >= 0)",
        "ALTER COLUMN used DROP ESCROW",
    ]
    .iter()
    .enumerate()
    {
        c.sql([US, EU, ASIA][at % 3], "d", &format!("ALTER TABLE quotas {action}"));
        c.pass(Duration::from_secs(3));
        counts.push(writers.iter().map(acknowledged).collect());
        let sum = c.sql([EU, ASIA, US][at % 3], "d", &format!("SELECT count(*), sum(used - {FIRST}) FROM quotas WHERE id > 3"));
        assert_eq!(sum, [["1997", "0"]], "after {action}");
    }
    println!("acknowledged: {counts:?}; {:?}", c.elapsed());
    for (before, after) in counts.iter().zip(&counts[1..]) {
        let went_on = before.iter().zip(after).filter(|(before, after)| before < after).count();
        assert!(went_on * 2 > before.len(), "{counts:?}: most had to wait all the time");
    }
    // The writers do not find it any more.
    c.sql(US, "d", "ALTER TABLE quotas RENAME TO numbers");
    c.pass(Duration::from_secs(5));
    for id in 1..=3 {
        let of_row = adds.iter().zip(&writers).filter(|((_, _, of), _)| *of == id);
        let expected: i64 = of_row.map(|((_, delta, _), writer)| *delta * acknowledged(writer) as i64).sum();
        let row = c.sql(EU, "d", &format!("SELECT used FROM numbers WHERE id = {id}"));
        assert_eq!(row, [[(FIRST + expected).to_string()]], "row {id}");
    }
    for writer in writers.iter().chain(&notes) {
        let failed: Vec<_> = writer.lock().iter().filter_map(|(result, _)| result.clone().err()).collect();
        // Two statements may each wait for a row that the other one has.
        assert!(failed.iter().all(|state| ["40001", "40P01", "42P01"].contains(&&**state)), "{failed:?}");
    }
}
