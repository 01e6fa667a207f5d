//! Waits in the queues of several primaries.

use super::script::{ASIA, Cluster, EU, Repeated, US};
use meridian_base::{ErrorKind, NodeId};
use meridian_node::wire::Standing;
use meridian_sim::cluster::meridian::Tuning;
use std::time::Duration;

/// Five rows in each region: 0 to 4, 10 to 14, 20 to 24.
fn rows_everywhere(seed: u64) -> Cluster {
    let mut c = Cluster::start(3, 3, seed, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8 NOT NULL) LOCALITY REGIONAL BY ROW");
    for (at, region) in [US, EU, ASIA].into_iter().enumerate() {
        let rows: Vec<String> = (0..5).map(|i| format!("('{region}', {}, 0)", at * 10 + i)).collect();
        c.sql(region, "d", &format!("INSERT INTO t (crdb_region, id, v) VALUES {}", rows.join(", ")));
    }
    c.settled(US, "d");
    c
}

/// Waits until all have run so often, none of them in vain, and none longer than `each_max`.
fn all_succeed(c: &mut Cluster, clients: &[Repeated], times: usize, each_max: Duration) {
    let end = c.elapsed() + each_max * times as u32;
    while clients.iter().any(|ended| ended.lock().len() < times) {
        assert!(c.elapsed() < end, "still running: {clients:?}");
        c.pass(Duration::from_millis(100));
    }
    let ended: Vec<_> = clients.iter().map(|ended| ended.lock().clone()).collect();
    for (result, took) in ended.iter().flatten() {
        assert!(result.is_ok() && *took < each_max, "{ended:?}");
    }
}

fn circles(c: &mut Cluster) -> u64 {
    let of = |metrics: Vec<Vec<String>>| {
        let row = metrics.into_iter().find(|row| row[0] == "txn.regions.deadlocks").expect("a metric");
        row[1].parse::<u64>().expect("a number")
    };
    [US, EU, ASIA].into_iter().map(|region| of(c.sql(region, "d", "SHOW METRICS"))).sum()
}

/// Statements that lock a whole table do so in one order, wherever they come from: none of them
/// waits for one that waits for it.
#[test]
fn statements_that_lock_all_regions_take_turns() {
    let mut c = rows_everywhere(61);
    let clients = [US, EU, ASIA, US, ASIA].map(|region| c.repeat(region, "d", "UPDATE t SET v = v + 1", 5));
    let bystander = c.repeat(EU, "d", "UPDATE t SET v = v + 1 WHERE id = 11", 20);
    all_succeed(&mut c, &clients, 5, Duration::from_secs(8));
    all_succeed(&mut c, &[bystander], 20, Duration::from_secs(8));
    assert_eq!(circles(&mut c), 0);
    assert_eq!(c.sql(US, "d", "SELECT count(*), sum(v) FROM t"), [["15".to_string(), (15 * 5 * 5 + 20).to_string()]]);
}

/// Each locks its own region's row first. The youngest of a circle gives way after
/// `deadlock_timeout`, a second.
#[test]
fn a_circle_of_waits_over_two_primaries_is_broken() {
    const TIMES: usize = 4;
    const EACH_MAX: Duration = Duration::from_secs(20);
    let mut c = rows_everywhere(62);
    let both = |first: i64, second: i64| {
        let add = |id| format!("UPDATE t SET v = v + 1 WHERE id = {id}");
        format!("ROLLBACK; BEGIN; {}; {}; COMMIT", add(first), add(second))
    };
    let clients = [US, ASIA, US, ASIA].map(|region| {
        let (own, other) = if region == US { (1, 21) } else { (21, 1) };
        c.repeat(region, "d", &both(own, other), TIMES)
    });
    while clients.iter().any(|ended| ended.lock().len() < TIMES) {
        assert!(c.elapsed() < EACH_MAX * TIMES as u32, "still running: {clients:?}");
        c.pass(Duration::from_millis(100));
    }
    let ended: Vec<_> = clients.iter().flat_map(|ended| ended.lock().clone()).collect();
    assert!(ended.iter().all(|(_, took)| *took < EACH_MAX), "{ended:?}");
    assert!(ended.iter().all(|(result, _)| result.as_ref().map_or_else(|e| e.starts_with("40"), |()| true)), "{ended:?}");
    let succeeded = ended.iter().filter(|(result, _)| result.is_ok()).count();
    assert!(succeeded > TIMES, "{ended:?}");
    assert_eq!(c.sql(US, "d", "SELECT sum(v) FROM t"), [[(2 * succeeded).to_string()]]);
    assert!(circles(&mut c) > 0, "nobody met in a circle, this shows nothing: {ended:?}");
}

/// What a transaction has in a queue ends with it, at the primary that gave it, while primaries
/// move and gateways are wrong about them.
#[test]
fn entries_end_with_their_transactions_while_primaries_move() {
    const TIMES: usize = 10;
    const EACH_MAX: Duration = Duration::from_secs(30);
    let mut c = rows_everywhere(64);
    let both = |first: i64, second: i64| {
        let add = |id| format!("UPDATE t SET v = v + 1 WHERE id = {id}");
        format!("ROLLBACK; BEGIN; {}; {}; COMMIT", add(first), add(second))
    };
    let pairs = [(US, 1, 21), (US, 11, 1), (EU, 11, 21), (EU, 1, 11), (ASIA, 21, 1), (ASIA, 11, 21)];
    let clients = pairs.map(|(region, first, second)| c.repeat(region, "d", &both(first, second), TIMES));
    let nodes: Vec<NodeId> = ["n1", "n4", "n7", "n2", "n5", "n8"].map(|name| c.id_of(name)).into();
    let mut drained = nodes.iter().cycle();
    while clients.iter().any(|ended| ended.lock().len() < TIMES) {
        assert!(c.elapsed() < EACH_MAX * TIMES as u32, "still running: {clients:?}");
        let node = *drained.next().expect("for ever");
        for standing in [Standing::Draining, Standing::Active] {
            // The catalog's primary moves, too.
            let asked = c.elapsed();
            while let Err(e) = c.stand("n3", node, standing) {
                assert!(e.kind() == ErrorKind::NotPrimary && c.elapsed() - asked < EACH_MAX, "{e}");
                c.pass(Duration::from_millis(500));
            }
            c.pass(Duration::from_millis(1_500));
        }
    }
    let ended: Vec<_> = clients.iter().flat_map(|ended| ended.lock().clone()).collect();
    let longest = ended.iter().map(|(_, took)| *took).max().expect("some");
    assert!(longest < EACH_MAX, "{longest:?}: {ended:?}");
}

/// What is left out because others have locked it is not read: neither what they do to it nor that
/// it is there can refuse whoever left it out.
#[test]
fn locked_rows_are_left_out_and_not_certified() {
    let mut c = rows_everywhere(63);
    for (locker, other) in [(US, US), (US, ASIA), (ASIA, US)] {
        let take = "SELECT id FROM t WHERE id IN (1, 2) ORDER BY id FOR UPDATE SKIP LOCKED";
        let statements = [
            (0, "BEGIN"),
            (0, "SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT"),
            (1, "BEGIN"),
            (1, take),
            (1, "SELECT id FROM t WHERE id = 1 FOR UPDATE SKIP LOCKED"),
            (1, "SELECT id FROM t WHERE id < 4 ORDER BY id FOR UPDATE SKIP LOCKED"),
            (1, "UPDATE t SET v = v + 1 WHERE id = 2"),
            (0, "UPDATE t SET v = v + 1 WHERE id = 1"),
            (0, "COMMIT"),
            (1, "COMMIT"),
        ];
        let answers: Vec<Vec<Vec<String>>> = c
            .on_two([locker, other], "d", &statements)
            .into_iter()
            .zip(statements)
            .map(|(answer, (_, sql))| answer.unwrap_or_else(|e| panic!("{locker}, {other}: {sql}: {e}")))
            .collect();
        let ids = |at: usize| answers[at].iter().map(|row| row[0].clone()).collect::<Vec<_>>();
        assert_eq!(
            (ids(1), ids(3), ids(4), ids(5)),
            (vec!["1".into()], vec!["2".into()], vec![], ["0", "2", "3"].map(String::from).into())
        );
    }
    assert_eq!(c.sql(US, "d", "SELECT id, v FROM t WHERE id IN (1, 2)"), [["1", "3"], ["2", "3"]]);
}

/// A commit whose primary cannot be reached is waited for no longer than the client wants to; what
/// became of it nobody knows.
#[test]
fn the_wait_for_a_commit_ends_with_the_statements_timeout() {
    let mut c = Cluster::start(3, 1, 77, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY)");
    c.settled(US, "d");
    let client = c.converse(EU, "d");
    client.ask(&mut c, "SET statement_timeout = '2s'");
    client.ask(&mut c, "INSERT INTO t VALUES (1)");
    c.cut_off(US);
    let began = c.elapsed();
    client.say("INSERT INTO t VALUES (2)");
    let error = client.hear(&mut c).expect_err("nobody answers");
    let took = c.elapsed() - began;
    assert!(took < Duration::from_millis(2_500), "{took:?}: {error}");
    assert!(["40003", "57014"].contains(&error.sqlstate()), "{error}");
    c.mend("n1", "n2");
    c.mend("n1", "n3");
    c.pass(Duration::from_secs(10));
    client.ask(&mut c, "INSERT INTO t VALUES (3)");
}

/// A block that only reads and was refused twice waits for a moment for each row that is being
/// written. While it waits for the second row, both change: it sees both rows as they were, or both
/// as they are.
#[test]
fn a_read_of_several_rows_that_waits_in_the_middle_sees_one_moment() {
    let mut c = Cluster::start(2, 3, 65, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8 NOT NULL)");
    c.sql(US, "d", &format!("CREATE TABLE near (id INT8 PRIMARY KEY) LOCALITY REGIONAL BY TABLE IN \"{EU}\""));
    c.sql(US, "d", "INSERT INTO t VALUES (1, 0), (2, 0)");
    c.settled(US, "d");
    let (reader, writer) = (c.converse(EU, "d"), c.converse(US, "d"));
    let read = "SELECT v FROM t WHERE id IN (1, 2) ORDER BY id";
    let begin = |c: &mut Cluster| {
        reader.ask(c, "BEGIN READ ONLY");
        reader.ask(c, "SELECT id FROM near");
    };
    for _ in 0..2 {
        begin(&mut c);
        reader.ask(&mut c, read);
        writer.ask(&mut c, "UPDATE t SET v = v + 1");
        reader.say("COMMIT");
        assert_eq!(reader.hear(&mut c).expect_err("the rows have changed").sqlstate(), "40001");
    }
    writer.ask(&mut c, "BEGIN");
    writer.ask(&mut c, "UPDATE t SET v = v + 1");
    begin(&mut c);
    reader.say(read);
    // The first row's moment, 300 ms, is over, and the second one's is not.
    c.pass(Duration::from_millis(500));
    writer.ask(&mut c, "COMMIT");
    let rows = reader.hear(&mut c).expect("rows");
    assert_eq!(rows[0], rows[1], "of two moments");
    reader.ask(&mut c, "COMMIT");
}

/// `ON CONFLICT DO UPDATE` locks and reads its rows in one message, wherever their primary is.
#[test]
fn an_upsert_of_many_rows_takes_few_messages() {
    let mut c = Cluster::start(1, 3, 64, Tuning::default());
    c.pass(Duration::from_secs(15));
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8)");
    c.sql(US, "defaultdb", "INSERT INTO t SELECT g, 0 FROM generate_series(1, 1000) AS s(g)");
    c.pass(Duration::from_secs(5));
    let upsert = "INSERT INTO t SELECT g, 1 FROM generate_series(501, 1500) AS s(g) ON CONFLICT (id) DO UPDATE SET v = t.v + 1";
    let took = ["n1", "n2", "n3"].map(|node| {
        let began = c.elapsed();
        c.try_sql_at(node, "defaultdb", upsert).expect("nothing is in its way");
        c.elapsed() - began
    });
    assert!(took.iter().all(|took| *took < Duration::from_millis(500)), "{took:?}");
    assert_eq!(c.sql(US, "defaultdb", "SELECT count(*), sum(v) FROM t"), [["1500", "3000"]]);
}

/// Who reads a number to write it stands in line with those who only add to it: all of them go on.
#[test]
fn numbers_that_are_read_to_be_written_line_up_with_deltas() {
    const DELTAS: usize = 3_000;
    const GUARDED: usize = 5;
    let mut c = Cluster::start(3, 1, 65, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE quotas (id INT8 PRIMARY KEY, used INT8 NOT NULL ESCROW CHECK (used BETWEEN 0 AND 1000000))");
    c.sql(US, "d", "INSERT INTO quotas VALUES (1, 500000)");
    c.settled(US, "d");
    let add = "UPDATE quotas SET used = used + 1 WHERE id = 1";
    let adding = [US, EU, ASIA].map(|region| c.repeat(region, "d", add, DELTAS));
    while adding.iter().any(|ended| ended.lock().len() < 10) {
        c.pass(Duration::from_millis(100));
    }
    let guarded = format!("{add} AND used < 900000 RETURNING used");
    let guarding = [US, EU].map(|region| c.repeat(region, "d", &guarded, GUARDED));
    all_succeed(&mut c, &guarding, GUARDED, Duration::from_secs(10));
    assert!(adding.iter().any(|ended| ended.lock().len() < DELTAS), "nobody added meanwhile, this shows nothing");
    all_succeed(&mut c, &adding, DELTAS, Duration::from_secs(10));
    let all = 500_000 + 3 * DELTAS + 2 * GUARDED;
    assert_eq!(c.sql(US, "d", "SELECT used FROM quotas WHERE id = 1"), [[all.to_string()]]);
}

/// A row says which other one belongs to it, and both change all the time: rounds fail, what was
/// read is reserved, and then it leads to a row that was not. The statement never sees the two rows
/// of two moments, and comes to an end.
#[test]
fn rows_that_lead_to_others_are_read_at_one_moment() {
    let mut c = Cluster::start(3, 1, 66, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\", \"{ASIA}\""));
    c.sql(US, "d", "CREATE TABLE a (id INT8 PRIMARY KEY, ref INT8 NOT NULL, n INT8 NOT NULL); INSERT INTO a VALUES (1, 1, 0)");
    c.sql(US, "d", &format!("CREATE TABLE b (id INT8 PRIMARY KEY, n INT8 NOT NULL) LOCALITY REGIONAL BY TABLE IN \"{EU}\""));
    // So many that nobody reads all of them for the sake of one.
    c.sql(US, "d", "INSERT INTO b SELECT g, 0 FROM generate_series(1, 2000) AS s(g)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(5));
    let write = "ROLLBACK; BEGIN; UPDATE a SET ref = 1 + n % 2, n = n + 1 WHERE id = 1; \
                 UPDATE b SET n = a.n FROM a WHERE a.id = 1 AND b.id = a.ref; COMMIT";
    let writer = c.repeat(US, "d", write, 100_000);
    while writer.lock().len() < 10 {
        c.pass(Duration::from_millis(100));
    }
    let before = writer.lock().iter().filter(|(result, _)| result.is_ok()).count();
    for _ in 0..10 {
        let rows = c.sql(ASIA, "d", "SELECT a.n, b.n FROM a JOIN b ON b.id = a.ref WHERE a.id = 1");
        assert_eq!(rows[0][0], rows[0][1], "of two moments");
    }
    let written = writer.lock().iter().filter(|(result, _)| result.is_ok()).count();
    assert!(written > before + 20, "nobody wrote meanwhile, this shows nothing");
    let metrics = c.sql(ASIA, "d", "SHOW METRICS");
    let of = |name: &str| metrics.iter().find(|row| row[0] == name).expect("a metric")[1].parse::<u64>().expect("a number");
    assert!(of("txn.read_rounds.failed") >= 2, "{metrics:?}");
    assert!(of("txn.reserving_reads") > 0, "{metrics:?}");
    assert!(of("txn.reserving_reads.missed") > 0, "nothing led elsewhere, this shows nothing: {metrics:?}");
}

/// Rows of other regions change while they are read; the past does not. For rows of this region it
/// suffices to try again.
#[test]
fn a_block_that_only_reads_is_told_what_helps() {
    let mut c = Cluster::start(2, 1, 67, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8 NOT NULL); INSERT INTO t VALUES (1, 0)");
    c.sql(US, "d", "CREATE TABLE g (id INT8 PRIMARY KEY) LOCALITY GLOBAL; INSERT INTO g VALUES (1)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(5));
    for (region, is_past) in [(EU, true), (US, false)] {
        let reader = c.converse(region, "d");
        for sql in ["BEGIN READ ONLY", "SELECT id FROM g", "SELECT v FROM t WHERE id = 1"] {
            reader.ask(&mut c, sql);
        }
        c.sql(US, "d", "UPDATE t SET v = v + 1");
        reader.say("COMMIT");
        let e = reader.hear(&mut c).expect_err("the row has changed");
        assert_eq!(e.sqlstate(), "40001", "{region}: {e}");
        let hint = e.get_hint().expect("a hint");
        assert_eq!(hint.contains("AS OF SYSTEM TIME follower_read_timestamp()"), is_past, "{region}: {hint}");
        assert!(hint.starts_with("Run the transaction again"), "{region}: {hint}");
    }
}

/// The error would rest on a row that has changed: the client is told that, and it counts.
#[test]
fn a_block_whose_error_rests_on_what_has_changed_counts_as_aborted() {
    let mut c = Cluster::start(2, 1, 68, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8 NOT NULL); INSERT INTO t VALUES (1, 7)");
    c.settled(US, "d");
    c.pass(Duration::from_secs(5));
    let block = c.converse(EU, "d");
    let aborted = |c: &mut Cluster| {
        let rows = block.ask(c, "SHOW METRICS");
        rows.iter().find(|row| row[0] == "txn.regions.aborted").expect("a metric")[1].parse::<u64>().expect("a number")
    };
    let before = aborted(&mut c);
    block.ask(&mut c, "BEGIN");
    assert_eq!(block.ask(&mut c, "SELECT v FROM t WHERE id = 1"), [["7"]]);
    c.sql(US, "d", "UPDATE t SET v = v + 1");
    block.say("SELECT 1 / (v - v) FROM t WHERE id = 1");
    assert_eq!(block.hear(&mut c).expect_err("the row has changed").sqlstate(), "40001");
    block.ask(&mut c, "ROLLBACK");
    assert_eq!(aborted(&mut c), before + 1);
}
