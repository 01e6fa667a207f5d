//! tokio-postgres: the extended protocol with binary values, COPY, cancel, retries.

use super::{Running, start};
use futures::{SinkExt, TryStreamExt};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, NoTls};

async fn connect(running: &Running) -> Client {
    let config = format!("host=127.0.0.1 port={} user=root dbname=postgres connect_timeout=5", running.port);
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

fn code(error: &Error) -> String {
    error.code().map_or_else(|| error.to_string(), |c| c.code().to_string())
}

async fn one(client: &Client, sql: &str, params: &[&(dyn ToSql + Sync)]) -> i64 {
    client.query_one(sql, params).await.unwrap_or_else(|e| panic!("{sql}: {e:?}")).get(0)
}

async fn with_table(running: &Running) -> Client {
    let client = connect(running).await;
    client.batch_execute("CREATE TABLE t (id int8 PRIMARY KEY, v int8, note text)").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (1, 10, 'one'), (2, 20, NULL)").await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_with_binary_values() {
    let running = start().await;
    let client = with_table(&running).await;
    let update = client.prepare("UPDATE t SET v = v + $2 WHERE id = $1").await.unwrap();
    for _ in 0..3 {
        assert_eq!(client.execute(&update, &[&1i64, &5i64]).await.unwrap(), 1);
    }
    let rows = client.query("SELECT id, v, note FROM t ORDER BY id", &[]).await.unwrap();
    let rows: Vec<(i64, i64, Option<String>)> = rows.iter().map(|r| (r.get(0), r.get(1), r.get(2))).collect();
    assert_eq!(rows, [(1, 25, Some("one".to_string())), (2, 20, None)]);
    // A schema change between two executions goes unnoticed as long as the result keeps its shape.
    let select = client.prepare("SELECT v FROM t WHERE id = $1").await.unwrap();
    client.batch_execute("ALTER TABLE t ADD COLUMN extra text").await.unwrap();
    assert_eq!(client.query_one(&select, &[&2i64]).await.unwrap().get::<_, i64>(0), 20);
    let all = client.prepare("SELECT * FROM t").await.unwrap();
    client.batch_execute("ALTER TABLE t DROP COLUMN extra").await.unwrap();
    assert_eq!(code(&client.query(&all, &[]).await.unwrap_err()), "0A000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_of_a_driver() {
    let running = start().await;
    let mut client = with_table(&running).await;
    let mut transaction = client.transaction().await.unwrap();
    transaction.execute("UPDATE t SET v = 0", &[]).await.unwrap();
    let savepoint = transaction.savepoint("inner").await.unwrap();
    assert_eq!(code(&savepoint.execute("INSERT INTO t VALUES (1, 1, 'twice')", &[]).await.unwrap_err()), "23505");
    assert_eq!(code(&savepoint.execute("SELECT 1", &[]).await.unwrap_err()), "25P02");
    savepoint.rollback().await.unwrap();
    transaction.execute("INSERT INTO t VALUES (3, 0, 'three')", &[]).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(one(&client, "SELECT count(*) FROM t WHERE v = 0", &[]).await, 3);
    let transaction = client.build_transaction().read_only(true).start().await.unwrap();
    assert_eq!(code(&transaction.execute("DELETE FROM t", &[]).await.unwrap_err()), "25006");
    transaction.rollback().await.unwrap();
    assert_eq!(one(&client, "SELECT count(*) FROM t", &[]).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn portals_give_their_rows_in_parts() {
    let running = start().await;
    let mut client = connect(&running).await;
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind("SELECT g FROM generate_series(1, 7) AS s(g)", &[]).await.unwrap();
    let mut sizes = Vec::new();
    for _ in 0..4 {
        sizes.push(transaction.query_portal(&portal, 3).await.unwrap().len());
    }
    assert_eq!(sizes, [3, 3, 1, 0]);
    transaction.batch_execute("DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 5) AS s(g)").await.unwrap();
    assert_eq!(transaction.simple_query("FETCH 2 FROM c").await.unwrap().len(), 4);
    transaction.commit().await.unwrap();
    assert_eq!(code(&client.batch_execute("FETCH 1 FROM c").await.unwrap_err()), "34000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_in_and_out() {
    let running = start().await;
    let client = with_table(&running).await;
    let copy = client.copy_in::<_, bytes::Bytes>("COPY t FROM STDIN").await.unwrap();
    let mut copy = std::pin::pin!(copy);
    let lines: String = (10..3010).map(|i| format!("{i}\t{}\tline {i}\n", i * 2)).collect();
    for piece in lines.as_bytes().chunks(777) {
        copy.send(bytes::Bytes::copy_from_slice(piece)).await.unwrap();
    }
    assert_eq!(copy.finish().await.unwrap(), 3000);
    assert_eq!(one(&client, "SELECT sum(v)::int8 FROM t WHERE id >= 10", &[]).await, (10..3010).sum::<i64>() * 2);
    let out =
        client.copy_out("COPY (SELECT id, note FROM t WHERE id < 11 ORDER BY id) TO STDOUT (FORMAT csv, HEADER)").await.unwrap();
    let out: Vec<bytes::Bytes> = out.try_collect().await.unwrap();
    assert_eq!(String::from_utf8(out.concat()).unwrap(), "id,note\n1,one\n2,\n10,line 10\n");
    // A row that does not fit undoes all of it.
    let copy = client.copy_in::<_, bytes::Bytes>("COPY t (id, v) FROM STDIN (FORMAT csv)").await.unwrap();
    let mut copy = std::pin::pin!(copy);
    copy.send(bytes::Bytes::from_static(b"5000,1\nx,2\n")).await.unwrap();
    let refused = copy.finish().await.unwrap_err();
    assert_eq!(code(&refused), "22P02");
    assert_eq!(refused.as_db_error().and_then(|e| e.where_()), Some("COPY t, line 2, column id"));
    assert_eq!(one(&client, "SELECT count(*) FROM t WHERE id = 5000", &[]).await, 0);
}

/// In the block that made the table, batches of rows commit while later ones are still read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_into_a_table_of_its_block_commits_in_parts() {
    let running = start().await;
    let client = connect(&running).await;
    let lines = |ids: std::ops::Range<i64>| -> String { ids.map(|i| format!("{i}\t{}\n", i * 2)).collect() };
    let load = async |text: String| -> Result<u64, tokio_postgres::Error> {
        let copy = client.copy_in::<_, bytes::Bytes>("COPY n FROM STDIN").await?;
        let mut copy = std::pin::pin!(copy);
        for piece in text.as_bytes().chunks(5_000) {
            copy.send(bytes::Bytes::copy_from_slice(piece)).await?;
        }
        copy.finish().await
    };
    const TABLE: &str = "BEGIN; CREATE TABLE n (id INT PRIMARY KEY, v INT)";
    client.batch_execute(TABLE).await.unwrap();
    assert_eq!(load(lines(0..12_500)).await.unwrap(), 12_500);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(one(&client, "SELECT sum(v)::int8 FROM n", &[]).await, (0..12_500).sum::<i64>() * 2);
    assert_eq!(one(&client, "SELECT count(*) FROM n", &[]).await, 12_500);
    client.batch_execute("DROP TABLE n").await.unwrap();
    // A row of the last batch has the key of a row of the first one, or of one that may be on its
    // way still.
    for twice in [7, 8_990, 9_001] {
        client.batch_execute(TABLE).await.unwrap();
        let refused = load(lines(0..9_000) + &lines(9_001..9_005) + &lines(twice..twice + 1)).await.unwrap_err();
        assert_eq!(code(&refused), "23505", "{refused:?}");
        assert_eq!(code(&client.batch_execute("SELECT 1").await.unwrap_err()), "25P02");
        client.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(code(&client.batch_execute("SELECT * FROM n").await.unwrap_err()), "42P01");
    }
    // The commits are refused.
    client.batch_execute(TABLE).await.unwrap();
    // All are, for as long as that: the rows of the tables before may still be under deletion.
    running.node.faults.conflicts.store(u64::MAX, Ordering::SeqCst);
    assert_eq!(code(&load(lines(0..9_000)).await.unwrap_err()), "40001");
    running.node.faults.conflicts.store(0, Ordering::SeqCst);
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(code(&client.batch_execute("SELECT * FROM n").await.unwrap_err()), "42P01");
    assert_eq!(one(&client, "SELECT 1::int8", &[]).await, 1);
}

/// Where rows are on another node, those of a batch are asked for together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_asks_another_node_for_many_rows_at_once() {
    let running = start().await;
    let client = connect(&running).await;
    client.batch_execute("CREATE TABLE n (id INT PRIMARY KEY, v INT)").await.unwrap();
    running.node.faults.is_far.store(true, Ordering::SeqCst);
    assert_eq!(load_lines(&client, 0..5_000, async || ()).await.unwrap(), 5_000);
    let requests = running.node.faults.requests_ahead.load(Ordering::SeqCst);
    assert!((5..10).contains(&requests), "{requests} requests");
}

/// A load into a table without rows, of more than a transaction may write: begins it, and ends it
/// after `amid` has run.
async fn load_lines(client: &Client, ids: std::ops::Range<i64>, amid: impl AsyncFnOnce()) -> Result<u64, Error> {
    let copy = client.copy_in::<_, bytes::Bytes>("COPY n FROM STDIN").await?;
    let mut copy = std::pin::pin!(copy);
    let lines: Vec<String> = ids.map(|id| format!("{id}\t{}\n", id % 10_000)).collect();
    let (last, most) = lines.split_last().expect("some lines");
    for piece in most.concat().as_bytes().chunks(5_000) {
        copy.send(bytes::Bytes::copy_from_slice(piece)).await?;
    }
    // The server has read much of it.
    tokio::time::sleep(Duration::from_millis(300)).await;
    amid().await;
    copy.send(bytes::Bytes::from(last.clone())).await?;
    copy.finish().await
}

/// The ids of the indexes that the table has now.
async fn indexes(client: &Client) -> Vec<u32> {
    let text = "SELECT indexrelid FROM pg_index WHERE indrelid = 'n'::regclass ORDER BY 1";
    client.query(text, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_into_a_table_without_rows_goes_ahead_of_its_transaction() {
    let running = start().await;
    running.node.load_bytes.store(100_000, Ordering::SeqCst);
    let (client, other) = (connect(&running).await, connect(&running).await);
    client.batch_execute("CREATE TABLE n (id INT PRIMARY KEY, v INT UNIQUE)").await.unwrap();
    let first = indexes(&client).await;
    // Nobody sees a row of it before all are there, and a row that others insert fails it.
    let unseen = async || assert_eq!(one(&other, "SELECT count(*) FROM n", &[]).await, 0);
    assert_eq!(load_lines(&client, 0..9_000, unseen).await.unwrap(), 9_000);
    let loaded = indexes(&client).await;
    assert!(first.iter().all(|id| !loaded.contains(id)), "the indexes are the same: {loaded:?}");
    assert_eq!(one(&client, "SELECT count(*) FROM n WHERE id >= 0", &[]).await, 9_000);
    assert_eq!(one(&client, "SELECT sum(id) FROM n WHERE v BETWEEN 8000 AND 8001", &[]).await, 16_001);
    assert_eq!(code(&client.batch_execute("INSERT INTO n VALUES (9001, 17)").await.unwrap_err()), "23505");
    // A table with rows keeps its indexes.
    assert_eq!(load_lines(&client, 9_000..10_000, async || ()).await.unwrap(), 1_000);
    assert_eq!(code(&load_lines(&client, 10_000..20_000, async || ()).await.unwrap_err()), "23505");
    assert_eq!(indexes(&client).await, loaded);
    client.batch_execute("DELETE FROM n").await.unwrap();
    // The last row has the value of the first one.
    assert_eq!(code(&load_lines(&client, 1..10_002, async || ()).await.unwrap_err()), "23505");
    assert_eq!(one(&client, "SELECT count(*) FROM n", &[]).await, 0);
    assert_eq!(indexes(&client).await, loaded);
    let meets = async || other.batch_execute("INSERT INTO n VALUES (-1, -1)").await.unwrap();
    assert_eq!(code(&load_lines(&client, 0..9_000, meets).await.unwrap_err()), "40001");
    assert_eq!(one(&client, "SELECT sum(id) FROM n", &[]).await, -1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_begins_a_block_goes_ahead_of_it() {
    let running = start().await;
    running.node.load_bytes.store(100_000, Ordering::SeqCst);
    let (client, other) = (connect(&running).await, connect(&running).await);
    client.batch_execute("CREATE TABLE n (id INT PRIMARY KEY, v INT); CREATE TABLE m (id INT)").await.unwrap();
    let first = indexes(&client).await;
    for end in ["ROLLBACK", "COMMIT"] {
        client.batch_execute("BEGIN").await.unwrap();
        assert_eq!(load_lines(&client, 0..9_000, async || ()).await.unwrap(), 9_000);
        client.batch_execute("INSERT INTO n VALUES (-1, 0); SAVEPOINT s; INSERT INTO m SELECT id FROM n").await.unwrap();
        assert_eq!(one(&client, "SELECT count(*) FROM m", &[]).await, 9_001);
        client.batch_execute("ROLLBACK TO s; DELETE FROM n WHERE id < 100; INSERT INTO m VALUES (1)").await.unwrap();
        assert_eq!(one(&other, "SELECT count(*) FROM n", &[]).await, 0);
        client.batch_execute(end).await.unwrap();
    }
    assert_eq!(one(&other, "SELECT count(*) FROM n", &[]).await, 8_900);
    assert_eq!(one(&other, "SELECT count(*) FROM m", &[]).await, 1);
    assert_ne!(indexes(&client).await, first);
    // A row that others insert between the load and the commit.
    client.batch_execute("DROP TABLE n; CREATE TABLE n (id INT PRIMARY KEY, v INT); BEGIN").await.unwrap();
    assert_eq!(load_lines(&client, 0..9_000, async || ()).await.unwrap(), 9_000);
    other.batch_execute("INSERT INTO n VALUES (-1, -1)").await.unwrap();
    assert_eq!(code(&client.batch_execute("COMMIT").await.unwrap_err()), "40001");
    assert_eq!(one(&other, "SELECT sum(id) FROM n", &[]).await, -1);
    // A load that is not the first statement has the bound of its transaction.
    client.batch_execute("DELETE FROM n; BEGIN; INSERT INTO m VALUES (2)").await.unwrap();
    let before = indexes(&client).await;
    assert_eq!(load_lines(&client, 0..9_000, async || ()).await.unwrap(), 9_000);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!((indexes(&client).await, one(&client, "SELECT count(*) FROM n", &[]).await), (before, 9_000));
}

/// As a dump of a table with hidden columns does: those that are named are loaded, and no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_loads_hidden_columns_that_are_named() {
    let running = start().await;
    let client = with_table(&running).await;
    client.batch_execute("CREATE TABLE h (id INT PRIMARY KEY, secret INT NOT VISIBLE DEFAULT 7)").await.unwrap();
    for (text, rows) in [("COPY h (secret, id) FROM STDIN", "8\t1\n9\t2\n"), ("COPY h FROM STDIN", "3\n")] {
        let copy = client.copy_in::<_, bytes::Bytes>(text).await.unwrap();
        let mut copy = std::pin::pin!(copy);
        copy.send(bytes::Bytes::from_static(rows.as_bytes())).await.unwrap();
        copy.finish().await.unwrap();
    }
    client.batch_execute("ALTER TABLE h RENAME COLUMN secret TO known").await.unwrap();
    let out = client.copy_out("COPY h (id, known) TO STDOUT").await.unwrap();
    let out: Vec<bytes::Bytes> = out.try_collect().await.unwrap();
    assert_eq!(String::from_utf8(out.concat()).unwrap(), "1\t8\n2\t9\n3\t7\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_are_retried_while_nothing_was_sent() {
    let running = start().await;
    let client = with_table(&running).await;
    let faults = running.node.faults.clone();
    let fail = |n| faults.conflicts.store(n, Ordering::SeqCst);
    // An implicit transaction, in both protocols; a block in one string.
    fail(5);
    client.execute("UPDATE t SET v = v + 1 WHERE id = 1", &[]).await.unwrap();
    fail(5);
    client.batch_execute("UPDATE t SET v = v + 1 WHERE id = 1").await.unwrap();
    fail(5);
    client.batch_execute("BEGIN; UPDATE t SET v = v + 1 WHERE id = 1; SELECT v FROM t; COMMIT").await.unwrap();
    assert_eq!(one(&client, "SELECT v FROM t WHERE id = 1", &[]).await, 13);
    // A block over several messages cannot be run again: the client must.
    client.batch_execute("BEGIN").await.unwrap();
    client.batch_execute("UPDATE t SET v = v + 1 WHERE id = 1").await.unwrap();
    fail(1);
    assert_eq!(code(&client.batch_execute("COMMIT").await.unwrap_err()), "40001");
    // Nor is there an end to it.
    fail(1_000);
    assert_eq!(code(&client.execute("UPDATE t SET v = v + 1 WHERE id = 1", &[]).await.unwrap_err()), "40001");
    fail(0);
    assert_eq!(one(&client, "SELECT v FROM t WHERE id = 1", &[]).await, 13);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_shows_as_a_pause() {
    let running = start().await;
    let client = with_table(&running).await;
    running.node.faults.unavailable.store(20, Ordering::SeqCst);
    assert_eq!(one(&client, "SELECT v FROM t WHERE id = 2", &[]).await, 20);
    // The first statement of a block as well.
    client.batch_execute("BEGIN").await.unwrap();
    running.node.faults.unavailable.store(20, Ordering::SeqCst);
    client.batch_execute("UPDATE t SET v = 21 WHERE id = 2").await.unwrap();
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(one(&client, "SELECT v FROM t WHERE id = 2", &[]).await, 21);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_end_when_they_are_told_to() {
    let running = start().await;
    let client = with_table(&running).await;
    running.node.faults.read_millis.store(60_000, Ordering::SeqCst);
    let cancel = client.cancel_token();
    let slow = client.query("SELECT * FROM t", &[]);
    let stop = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel_query(NoTls).await.unwrap();
    };
    let (slow, ()) = tokio::join!(slow, stop);
    assert_eq!(code(&slow.unwrap_err()), "57014");
    client.batch_execute("SET statement_timeout = '50ms'").await.unwrap();
    assert_eq!(code(&client.query("SELECT * FROM t", &[]).await.unwrap_err()), "57014");
    client.batch_execute("SET statement_timeout = 0").await.unwrap();
    running.node.faults.read_millis.store(0, Ordering::SeqCst);
    assert_eq!(one(&client, "SELECT count(*) FROM t", &[]).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_end_each_others_statements_and_sessions() {
    let running = start().await;
    let (client, other) = (with_table(&running).await, connect(&running).await);
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let pids = other.query("SELECT pid FROM pg_stat_activity ORDER BY pid", &[]).await.unwrap();
    assert!(pids.iter().any(|row| row.get::<_, i32>(0) == pid));
    for (function, code_of_end) in [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")] {
        running.node.faults.read_millis.store(60_000, Ordering::SeqCst);
        let slow = client.query("SELECT * FROM t", &[]);
        let stop = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            other.query_one(&format!("SELECT {function}($1)"), &[&pid]).await.unwrap().get::<_, bool>(0)
        };
        let (slow, stopped) = tokio::join!(slow, stop);
        assert_eq!((code(&slow.unwrap_err()).as_str(), stopped), (code_of_end, true), "{function}");
        running.node.faults.read_millis.store(0, Ordering::SeqCst);
    }
    assert!(client.query("SELECT 1", &[]).await.is_err(), "its session is over");
    assert!(!other.query_one("SELECT pg_cancel_backend(2000000000)", &[]).await.unwrap().get::<_, bool>(0), "nobody");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_conflict_and_all_updates_count() {
    let running = start().await;
    let client = with_table(&running).await;
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let client = connect(&running).await;
        tasks.push(tokio::spawn(async move {
            for _ in 0..25 {
                client.execute("UPDATE t SET v = v + 1 WHERE id = 2", &[]).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(one(&client, "SELECT v FROM t WHERE id = 2", &[]).await, 120);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schema_changes_in_a_block_are_one_step() {
    let running = start().await;
    let client = with_table(&running).await;
    client
        .batch_execute("BEGIN; CREATE TABLE a (x int8 PRIMARY KEY); CREATE TABLE b (y int8); INSERT INTO a VALUES (1), (2)")
        .await
        .unwrap();
    let other = connect(&running).await;
    assert_eq!(code(&other.query("SELECT * FROM a", &[]).await.unwrap_err()), "42P01");
    assert_eq!(one(&client, "SELECT count(*) FROM a", &[]).await, 2);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(one(&other, "SELECT count(*) FROM a", &[]).await, 2);
    // Rolled back: nothing is left, and nothing of it shows in tables made later.
    client.batch_execute("BEGIN; CREATE TABLE c (x int8 PRIMARY KEY); INSERT INTO c VALUES (7); ROLLBACK").await.unwrap();
    client.batch_execute("CREATE TABLE c (x int8 PRIMARY KEY)").await.unwrap();
    assert_eq!(one(&client, "SELECT count(*) FROM c", &[]).await, 0);
    // TRUNCATE and a load, as pgbench does it.
    client.batch_execute("BEGIN; TRUNCATE t; INSERT INTO t VALUES (9, 9, 'nine')").await.unwrap();
    assert_eq!(one(&other, "SELECT count(*) FROM t", &[]).await, 2);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(one(&other, "SELECT id FROM t", &[]).await, 9);
    // Rows that others can see change with the schema, and not before.
    client
        .batch_execute("BEGIN; CREATE TABLE d (x int8); INSERT INTO t VALUES (1, 1, ''); INSERT INTO d VALUES (1)")
        .await
        .unwrap();
    assert_eq!(one(&other, "SELECT count(*) FROM t", &[]).await, 1);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(one(&other, "SELECT count(*) FROM t", &[]).await, 2);
    assert_eq!(one(&other, "SELECT count(*) FROM d", &[]).await, 1);
    // If the rows are not what they were, nothing changes.
    client.batch_execute("BEGIN; SELECT v FROM t WHERE id = 9; CREATE TABLE e (x int8)").await.unwrap();
    other.batch_execute("UPDATE t SET v = 10 WHERE id = 9").await.unwrap();
    assert_eq!(code(&client.batch_execute("COMMIT").await.unwrap_err()), "40001");
    assert_eq!(code(&other.query("SELECT * FROM e", &[]).await.unwrap_err()), "42P01");
}

/// Deep plans are answered or refused; the process, and its other sessions, go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deep_plans_do_not_end_the_process() {
    let running = start().await;
    let client = with_table(&running).await;
    let joins = |kind: &str, n: usize| {
        let more = (1..n).map(|i| format!(" {kind} t t{i} ON t{i}.id = t{}.id", i - 1));
        format!("SELECT count(*) FROM t t0{}", more.collect::<String>())
    };
    let chain = |n: usize| {
        let more = (1..n).map(|i| format!(", c{i} AS (SELECT x.id FROM c{} x, t LIMIT 1)", i - 1));
        let uses: Vec<String> = (0..n).map(|i| format!("c{i} t{i}")).collect();
        let more: String = more.collect();
        format!("WITH c0 AS (SELECT id FROM t LIMIT 1){more} SELECT count(*) FROM {}", uses.join(" CROSS JOIN "))
    };
    let tests = |n: usize| {
        let all: Vec<String> = (0..n).map(|i| format!("id IN (SELECT id FROM t WHERE v > {i})")).collect();
        format!("SELECT count(*) FROM t WHERE {}", all.join(" AND "))
    };
    let mut answered = 0;
    for n in [20, 80, 160, 320] {
        for sql in [joins("JOIN", n), joins("LEFT JOIN", n), chain(n / 4), tests(n)] {
            match client.query_one(&sql, &[]).await {
                Ok(_) => answered += 1,
                Err(e) => assert_eq!(code(&e), "54001", "{n}: {e}"),
            }
        }
    }
    assert!(answered >= 6, "{answered}");
    assert_eq!(one(&client, "SELECT count(*) FROM t", &[]).await, 2);
}
