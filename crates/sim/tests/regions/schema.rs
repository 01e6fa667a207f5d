//! Schema changes and rows in one transaction.

use crate::script::{ASIA, Cluster, EU, Repeated, US, refused};
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

fn start(seed: u64) -> Cluster {
    let mut c = Cluster::start(3, 1, seed, Tuning::default());
    // Until the catalog has its three voters.
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", &format!("CREATE TABLE near (id INT8 PRIMARY KEY, v INT8); CREATE TABLE far (id INT8 PRIMARY KEY, v INT8) LOCALITY REGIONAL BY TABLE IN \"{ASIA}\"; CREATE TABLE everywhere (id INT8 PRIMARY KEY, v INT8) LOCALITY GLOBAL"));
    for table in ["near", "far", "everywhere"] {
        c.sql(US, "d", &format!("INSERT INTO {table} VALUES (1, 0), (2, 0)"));
    }
    c.settled(US, "d");
    c
}

/// From every gateway, over every kind of table: the step commits with all of it, and with none if
/// anything else came first.
#[test]
fn rows_of_all_regions_change_with_the_schema() {
    let mut c = start(51);
    for (n, region) in [US, EU, ASIA].into_iter().enumerate() {
        let begun = c.elapsed();
        let block = format!(
            "BEGIN; UPDATE near SET v = v + 1; ALTER TABLE near ADD COLUMN w{n} INT8; UPDATE far SET v = v + 1;
             UPDATE everywhere SET v = v + 1; CREATE TABLE log{n} (id INT8 PRIMARY KEY, far INT8 REFERENCES far, v INT8);
             INSERT INTO log{n} SELECT f.id, f.id, n.v + e.v FROM near n JOIN far f USING (id) JOIN everywhere e USING (id);
             UPDATE near SET w{n} = v * 10; COMMIT"
        );
        c.sql(region, "d", &block);
        let took = c.elapsed() - begun;
        assert!(took < Duration::from_secs(6), "{took:?}");
        for reader in [US, EU, ASIA] {
            let v = (n + 1).to_string();
            let rows = c.sql(reader, "d", &format!("SELECT v, w{n} FROM near"));
            assert_eq!(rows, vec![vec![v.clone(), format!("{}0", n + 1)]; 2], "{region} seen from {reader}");
            assert_eq!(c.sql(reader, "d", "SELECT DISTINCT v FROM far"), [[v.clone()]]);
            assert_eq!(c.sql(reader, "d", "SELECT DISTINCT v FROM everywhere"), [[v]]);
            assert_eq!(c.sql(reader, "d", &format!("SELECT sum(v) FROM log{n}")), [[(4 * (n + 1)).to_string()]]);
        }
    }
    // What was read has changed.
    let results = c.on_two(
        [US, EU],
        "d",
        &[
            (0, "BEGIN"),
            (0, "SELECT v FROM far WHERE id = 1"),
            (0, "CREATE TABLE too_late (id INT8 PRIMARY KEY)"),
            (1, "UPDATE far SET v = 100 WHERE id = 1"),
            (0, "INSERT INTO near VALUES (3, 3)"),
            (0, "COMMIT"),
        ],
    );
    let refusal = refused(results.into_iter().next_back().expect("an answer"));
    assert_eq!(refusal.0, "40001", "{}", refusal.1);
    assert_eq!(refused(c.try_sql(US, "d", "SELECT * FROM too_late")).0, "42P01");
    assert_eq!(c.sql(US, "d", "SELECT count(*) FROM near"), [["2"]]);
    // Another schema change came first: of something else, and of what the transaction uses.
    let results = c.on_two(
        [US, EU],
        "d",
        &[
            (0, "BEGIN"),
            (0, "INSERT INTO near VALUES (3, 3)"),
            (1, "CREATE TABLE other (id INT8 PRIMARY KEY)"),
            (0, "CREATE TABLE mine (id INT8 PRIMARY KEY)"),
            (0, "COMMIT"),
            (0, "BEGIN"),
            (0, "INSERT INTO near VALUES (4, 4)"),
            (1, "ALTER TABLE near DROP COLUMN w0"),
            (0, "CREATE TABLE mine_too (id INT8 PRIMARY KEY)"),
            (0, "COMMIT"),
        ],
    );
    let outcomes: Vec<Option<String>> = results.into_iter().map(|r| r.err().map(|e| e.sqlstate().to_string())).collect();
    assert_eq!(outcomes[..9], vec![None; 9]);
    assert_eq!(outcomes[9].as_deref(), Some("40001"));
    assert_eq!(c.sql(EU, "d", "SELECT count(*) FROM near"), [["3"]]);
    assert_eq!(c.sql(EU, "d", "SELECT count(*) FROM mine"), [["0"]]);
}

/// The region whose rows it changes dies at some moment: either all of it has happened or nothing,
/// and the catalog goes on.
#[test]
fn a_participant_that_dies_leaves_neither_rows_nor_schema_behind_alone() {
    let mut committed = 0;
    for (seed, millis) in [(61, 250), (62, 500), (63, 700), (64, 900), (65, 1_100), (66, 1_500), (67, 3_000)] {
        let mut c = start(seed);
        c.begin_sql(US, "d", "BEGIN; UPDATE far SET v = v + 1; ALTER TABLE near ADD COLUMN w INT8; COMMIT");
        c.pass(Duration::from_millis(millis));
        c.kill("n3");
        c.pass(Duration::from_secs(3));
        // Rows of other regions are changed meanwhile.
        c.sql(EU, "d", "UPDATE near SET v = 7 WHERE id = 2");
        c.restart("n3");
        c.pass(Duration::from_secs(20));
        let has_column = c.try_sql(EU, "d", "SELECT w FROM near").is_ok();
        let expected = if has_column { "1" } else { "0" };
        assert_eq!(c.sql(EU, "d", "SELECT DISTINCT v FROM far"), [[expected]], "after {millis} ms, the column: {has_column}");
        committed += u32::from(has_column);
        c.sql(ASIA, "d", "CREATE TABLE later (id INT8 PRIMARY KEY)");
    }
    assert!((1..7).contains(&committed), "{committed} of 7 committed");
}

/// A row that changes all the time, and a job far away from it.
#[test]
fn an_index_over_a_hot_row_is_filled() {
    let mut c = start(71);
    let hot = c.repeat(US, "d", "UPDATE near SET v = v + 1 WHERE id = 1", 100_000);
    c.pass(Duration::from_secs(1));
    c.sql(ASIA, "d", "CREATE INDEX by_v ON near (v)");
    let updates = hot.lock().len();
    c.sql(US, "d", "CREATE UNIQUE INDEX by_id_v ON near (id, v)");
    assert!(hot.lock().len() > updates && updates > 100, "{updates} updates, then {}", hot.lock().len());
    assert_eq!(c.sql(EU, "d", "SELECT count(*) FROM near WHERE v >= 0"), [["2"]]);
}

/// The first GLOBAL table of a database, and the first ones with rows in other regions, have groups
/// that nobody has used before.
#[test]
fn tables_are_made_and_filled_at_once_in_groups_that_are_new() {
    let mut c = Cluster::start(3, 1, 81, Tuning::default());
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(
        EU,
        "d",
        "BEGIN; CREATE TABLE codes (code TEXT PRIMARY KEY) LOCALITY GLOBAL; SELECT count(*) FROM codes;
         INSERT INTO codes VALUES ('a'), ('b'); CREATE TABLE users (id INT8 PRIMARY KEY, code TEXT REFERENCES codes) LOCALITY REGIONAL BY ROW;
         INSERT INTO users VALUES (1, 'a'); COMMIT",
    );
    assert_eq!(c.sql(ASIA, "d", "SELECT crdb_region, id, code FROM users JOIN codes USING (code)"), [[EU, "1", "a"]]);
    c.sql(US, "d", "CREATE TABLE used (id INT8 PRIMARY KEY)");
    c.sql(
        US,
        "d",
        &format!(
            "BEGIN; INSERT INTO used VALUES (1); CREATE TABLE far (id INT8 PRIMARY KEY) LOCALITY REGIONAL BY TABLE IN \"{ASIA}\";
             INSERT INTO far SELECT id FROM used; COMMIT"
        ),
    );
    assert_eq!(c.sql(EU, "d", "SELECT id FROM far"), [["1"]]);
}

/// Deleting the rows of what was dropped, and writing down that it is done, is nobody's wait.
#[test]
fn what_a_change_leaves_to_do_does_not_delay_the_next_one() {
    /// A step of the farthest gateway, and a write of the catalog that it comes after.
    const STEP_MAX: Duration = Duration::from_millis(1_100);
    let mut c = start(57);
    c.sql(US, "d", "CREATE TABLE made (id INT8 PRIMARY KEY, v INT8) LOCALITY REGIONAL BY ROW");
    c.sql(US, "d", "INSERT INTO made SELECT g, g FROM generate_series(1, 300) s(g)");
    for (n, region) in [US, EU, ASIA].into_iter().enumerate() {
        c.sql(region, "d", "CREATE INDEX by_v ON made (v)");
        let statements = [
            "DROP INDEX by_v".to_string(),
            format!("ALTER TABLE made ADD COLUMN c{n} INT8"),
            format!("ALTER TABLE made DROP COLUMN c{n}"),
            format!("CREATE TABLE next{n} (id INT8 PRIMARY KEY)"),
            format!("DROP TABLE next{n}"),
            format!("CREATE TABLE last{n} (id INT8 PRIMARY KEY)"),
        ];
        for statement in statements {
            let begun = c.elapsed();
            c.sql(region, "d", &statement);
            let took = c.elapsed() - begun;
            assert!(took < STEP_MAX, "{statement} from {region}: {took:?}");
        }
    }
}

/// Those near the coordinator, who change the schema again and again, do not keep others from it.
#[test]
fn a_far_gateway_has_its_turn_at_the_schema() {
    const CHANGE_MAX: Duration = Duration::from_secs(4);
    let mut c = start(58);
    for table in ["a", "b"] {
        c.sql(US, "d", &format!("CREATE TABLE {table} (id INT8 PRIMARY KEY, v INT8)"));
    }
    let busy = [1, 2].map(|v| c.repeat(US, "d", &format!("ALTER TABLE a ALTER COLUMN v SET DEFAULT {v}"), 1_000));
    c.pass(Duration::from_secs(3));
    let made = |busy: &[Repeated]| busy.iter().map(|client| client.lock().len()).sum::<usize>();
    let before = made(&busy);
    for v in 0..5 {
        for region in [ASIA, EU] {
            let begun = c.elapsed();
            c.sql(region, "d", &format!("ALTER TABLE b ALTER COLUMN v SET DEFAULT {v}"));
            let took = c.elapsed() - begun;
            assert!(took < CHANGE_MAX, "from {region}: {took:?}");
        }
    }
    assert!(made(&busy) > before + 10, "the others went on");
}

/// The newest version of the catalog may be one that no group was told of, since only jobs can tell
/// it from the one before.
#[test]
fn blocks_change_schema_and_rows_after_a_step_of_a_job() {
    const BLOCK_MAX: Duration = Duration::from_secs(4);
    let mut c = start(59);
    for (n, region) in [US, EU, ASIA].into_iter().enumerate() {
        c.sql(US, "d", &format!("CREATE TABLE gone{n} (id INT8 PRIMARY KEY)"));
        c.sql(US, "d", &format!("DROP TABLE gone{n}"));
        c.pass(Duration::from_secs(5));
        let begun = c.elapsed();
        let made = format!("CREATE TABLE made{n} (id INT8 PRIMARY KEY); INSERT INTO made{n} VALUES (1), (2)");
        c.sql(region, "d", &format!("BEGIN; {made}; UPDATE near SET v = v + 1; ALTER TABLE far ADD COLUMN c{n} INT8; COMMIT"));
        let took = c.elapsed() - begun;
        assert!(took < BLOCK_MAX, "from {region}: {took:?}");
        assert_eq!(c.sql(EU, "d", &format!("SELECT count(*) FROM made{n}")), [["2"]]);
        assert_eq!(c.sql(EU, "d", "SELECT DISTINCT v FROM near"), [[(n + 1).to_string()]]);
    }
}
