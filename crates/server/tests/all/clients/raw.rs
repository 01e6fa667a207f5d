//! Bytes on a stream in memory: the protocol's corners, and input that no client would send.

use super::new_server;
use meridian_server::pgwire::ServerOptions;
use proptest::prelude::*;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn startup(minor: u16, parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = ((3u32 << 16) | u32::from(minor)).to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend_from_slice(format!("{name}\0{value}\0").as_bytes());
    }
    body.push(0);
    let mut bytes = (body.len() as i32 + 4).to_be_bytes().to_vec();
    bytes.extend_from_slice(&body);
    bytes
}

fn root(minor: u16) -> Vec<u8> {
    startup(minor, &[("user", "root"), ("database", "postgres")])
}

/// Reads messages until one of a kind, or the end.
async fn until(client: &mut DuplexStream, kind: u8) -> Vec<(u8, Vec<u8>)> {
    let mut messages = Vec::new();
    let read = async {
        while let Ok(k) = client.read_u8().await {
            let length = client.read_i32().await.unwrap();
            let mut body = vec![0; length as usize - 4];
            client.read_exact(&mut body).await.unwrap();
            messages.push((k, body));
            if k == kind {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), read).await.expect("an answer in time");
    messages
}

fn kinds(messages: &[(u8, Vec<u8>)]) -> String {
    messages.iter().map(|(k, _)| *k as char).collect()
}

/// A field of an error.
fn field(body: &[u8], code: u8) -> String {
    let found = body.split(|b| *b == 0).find(|f| f.first() == Some(&code));
    found.map(|f| String::from_utf8_lossy(&f[1..]).into_owned()).unwrap_or_default()
}

async fn connect(options: ServerOptions) -> DuplexStream {
    let (server, _) = new_server(options);
    connect_to(&server)
}

fn connect_to(server: &meridian_server::pgwire::PgServer) -> DuplexStream {
    let (client, stream) = tokio::io::duplex(1 << 20);
    let server = server.clone();
    tokio::spawn(async move { server.serve_stream(stream, "memory").await });
    client
}

#[tokio::test]
async fn encryption_is_refused_and_the_startup_goes_on() {
    let mut client = connect(ServerOptions::default()).await;
    for code in [80877103u32, 80877104] {
        client.write_all(&[8u32.to_be_bytes(), code.to_be_bytes()].concat()).await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'N');
    }
    client.write_all(&root(0)).await.unwrap();
    let messages = until(&mut client, b'Z').await;
    assert_eq!(messages[0], (b'R', vec![0, 0, 0, 0]));
    let key = messages.iter().find(|(k, _)| *k == b'K').unwrap();
    assert_eq!(key.1.len(), 8);
    let parameters: Vec<String> =
        messages.iter().filter(|(k, _)| *k == b'S').map(|(_, b)| String::from_utf8_lossy(b).into_owned()).collect();
    for expected in ["client_encoding\0UTF8\0", "standard_conforming_strings\0on\0", "integer_datetimes\0on\0", "TimeZone\0UTC\0"]
    {
        assert!(parameters.iter().any(|p| p == expected), "{expected:?} in {parameters:?}");
    }
}

#[tokio::test]
async fn protocol_3_2_has_long_keys_and_newer_ones_are_negotiated() {
    let mut client = connect(ServerOptions::default()).await;
    client.write_all(&root(2)).await.unwrap();
    let messages = until(&mut client, b'Z').await;
    assert_eq!(messages.iter().find(|(k, _)| *k == b'K').unwrap().1.len(), 4 + 32);
    let mut client = connect(ServerOptions::default()).await;
    client.write_all(&startup(9999, &[("user", "root"), ("database", "postgres"), ("_pq_.x", "1")])).await.unwrap();
    let messages = until(&mut client, b'Z').await;
    assert_eq!(messages[0].0, b'v');
    assert_eq!(messages[0].1[..8], [0, 3, 0, 2, 0, 0, 0, 1]);
}

#[tokio::test]
async fn what_cannot_be_opened_is_fatal() {
    for (bytes, code) in [
        (startup(0, &[("database", "postgres")]), "28000"),
        (startup(0, &[("user", "root"), ("database", "nowhere")]), "3D000"),
        (startup(0, &[("user", "root"), ("database", "postgres"), ("no_such_setting", "1")]), "42704"),
        (startup(0, &[("user", "root"), ("database", "postgres"), ("client_encoding", "LATIN1")]), "0A000"),
        (vec![0, 0, 0, 4], "08P01"),
        ([&9u32.to_be_bytes()[..], &[0, 2, 0, 0, 0]].concat(), "0A000"),
    ] {
        let mut client = connect(ServerOptions::default()).await;
        client.write_all(&bytes).await.unwrap();
        let messages = until(&mut client, b'Z').await;
        assert_eq!(kinds(&messages), "E");
        assert_eq!((field(&messages[0].1, b'S'), field(&messages[0].1, b'C')), ("FATAL".into(), code.into()));
    }
}

#[tokio::test]
async fn clients_beyond_the_limit_are_told_so() {
    let (server, _) = new_server(ServerOptions { max_connections: 1, ..ServerOptions::default() });
    let mut first = connect_to(&server);
    first.write_all(&root(0)).await.unwrap();
    until(&mut first, b'Z').await;
    let mut second = connect_to(&server);
    second.write_all(&root(0)).await.unwrap();
    assert_eq!(field(&until(&mut second, b'Z').await[0].1, b'C'), "53300");
    first.write_all(&message(b'X', b"")).await.unwrap();
    assert!(until(&mut first, b'Z').await.is_empty());
    let mut third = connect_to(&server);
    third.write_all(&root(0)).await.unwrap();
    assert_eq!(until(&mut third, b'Z').await.last().unwrap().0, b'Z');
}

/// Of those who say nothing, the ones that have waited longest make room.
#[tokio::test]
async fn whoever_says_nothing_keeps_nobody_out() {
    let (server, _) = new_server(ServerOptions { max_connections: 2, ..ServerOptions::default() });
    let mut first = connect_to(&server);
    first.write_all(&root(0)).await.unwrap();
    until(&mut first, b'Z').await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(connect_to(&server));
        tokio::task::yield_now().await;
    }
    let mut second = connect_to(&server);
    second.write_all(&root(0)).await.unwrap();
    assert_eq!(until(&mut second, b'Z').await.last().unwrap().0, b'Z');
    let ended = tokio::time::timeout(Duration::from_secs(5), silent[0].read(&mut [0])).await;
    assert_eq!(ended.expect("it had to go").unwrap(), 0);
    let waits = tokio::time::timeout(Duration::from_millis(50), silent[299].read(&mut [0])).await;
    assert!(waits.is_err(), "there is room for the last one");
    // Who is in stays in.
    first.write_all(&message(b'Q', b"SELECT 1\0")).await.unwrap();
    assert_eq!(kinds(&until(&mut first, b'Z').await), "TDCZ");
}

#[tokio::test]
async fn shutdown_ends_idle_sessions_first_and_then_all() {
    let (server, _) = new_server(ServerOptions::default());
    let (mut idle, mut busy) = (connect_to(&server), connect_to(&server));
    for client in [&mut idle, &mut busy] {
        client.write_all(&root(0)).await.unwrap();
        until(client, b'Z').await;
    }
    busy.write_all(&message(b'Q', b"BEGIN\0")).await.unwrap();
    until(&mut busy, b'Z').await;
    let ending = server.clone();
    let end = tokio::spawn(async move { ending.shutdown(Duration::from_millis(200)).await });
    let said = until(&mut idle, b'Z').await;
    assert_eq!((kinds(&said), field(&said[0].1, b'C')), ("E".into(), "57P01".into()));
    assert_eq!(server.connections(), 1);
    let said = until(&mut busy, b'Z').await;
    assert_eq!((kinds(&said), field(&said[0].1, b'C')), ("E".into(), "57P01".into()));
    end.await.unwrap();
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_statement_it_waits_for() {
    let (server, node) = new_server(ServerOptions::default());
    let mut other = connect_to(&server);
    other.write_all(&root(0)).await.unwrap();
    until(&mut other, b'Z').await;
    other.write_all(&message(b'Q', b"CREATE TABLE t (a INT8 PRIMARY KEY)\0")).await.unwrap();
    until(&mut other, b'Z').await;
    // Longer than the test has patience: only the client's leaving can end it.
    node.faults.read_millis.store(600_000, Ordering::SeqCst);
    let queries = [
        message(b'Q', b"SELECT * FROM t\0"),
        [
            message(b'P', b"\0SELECT * FROM t\0\0\0"),
            message(b'B', b"\0\0\0\0\0\0\0\0"),
            message(b'E', b"\0\0\0\0\0"),
            message(b'S', b""),
        ]
        .concat(),
    ];
    for query in queries {
        let mut client = connect_to(&server);
        client.write_all(&root(0)).await.unwrap();
        until(&mut client, b'Z').await;
        client.write_all(&query).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(server.connections(), 2, "it waits");
        drop(client);
        let ended = async {
            while server.connections() > 1 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), ended).await.expect("noticed");
    }
}

#[tokio::test]
async fn what_is_sent_ahead_of_an_answer_is_answered() {
    let (server, node) = new_server(ServerOptions::default());
    let mut client = connect_to(&server);
    client.write_all(&root(0)).await.unwrap();
    until(&mut client, b'Z').await;
    client.write_all(&message(b'Q', b"CREATE TABLE t (a INT8 PRIMARY KEY)\0")).await.unwrap();
    until(&mut client, b'Z').await;
    node.faults.read_millis.store(50, Ordering::SeqCst);
    client.write_all(&message(b'Q', b"SELECT count(*) FROM t\0")).await.unwrap();
    // Let the server wait for the rows first; then send it more than it reads ahead.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let long = [b"SELECT '", &[b'x'; 8_000][..], b"'\0"].concat();
    let more: Vec<u8> = (0..20).flat_map(|_| message(b'Q', &long)).collect();
    client.write_all(&more).await.unwrap();
    for _ in 0..21 {
        assert_eq!(until(&mut client, b'Z').await.iter().filter(|(kind, _)| *kind == b'D').count(), 1);
    }
}

#[tokio::test]
async fn answers_that_nobody_asks_for_are_sent_and_not_kept() {
    let mut client = connect(ServerOptions::default()).await;
    client.write_all(&root(0)).await.unwrap();
    until(&mut client, b'Z').await;
    let columns: Vec<String> = (0..100).map(|n| format!("{n} AS a_column_with_a_long_name_{n}")).collect();
    let parse = message(b'P', format!("\0SELECT {}\0\0\0", columns.join(", ")).as_bytes());
    client.write_all(&[parse, message(b'D', b"S\0").repeat(1_000)].concat()).await.unwrap();
    // There was no `Sync`. What is left is what fits into a buffer.
    for _ in 0..950 {
        assert_eq!(until(&mut client, b'T').await.last().map(|(kind, _)| *kind), Some(b'T'));
    }
    client.write_all(&message(b'S', b"")).await.unwrap();
    assert_eq!(kinds(&until(&mut client, b'Z').await), format!("{}Z", "tT".repeat(50)));
}

#[tokio::test]
async fn an_error_of_the_extended_protocol_skips_to_sync() {
    let mut client = connect(ServerOptions::default()).await;
    client.write_all(&root(0)).await.unwrap();
    until(&mut client, b'Z').await;
    let pipeline = [
        message(b'P', b"\0SHOW work_mem\0\0\0"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'D', b"P\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'B', b"\0nothing\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
        message(b'B', b"\0\0\0"),
        message(b'P', b"\0SHOW work_mem\0\0\0"),
        message(b'S', b""),
        message(b'Q', b"\0"),
    ];
    client.write_all(&pipeline.concat()).await.unwrap();
    let first = until(&mut client, b'Z').await;
    assert_eq!(kinds(&first), "12TDCEZ");
    assert_eq!(field(&first[5].1, b'C'), "26000");
    let second = until(&mut client, b'Z').await;
    assert_eq!((kinds(&second), field(&second[0].1, b'C')), ("EZ".into(), "08P01".into()));
    assert_eq!(kinds(&until(&mut client, b'Z').await), "IZ");
    // A malformed simple query is answered at once.
    client.write_all(&message(b'Q', b"no end")).await.unwrap();
    assert_eq!(kinds(&until(&mut client, b'Z').await), "EZ");
}

/// Drivers that ask with `Flush` and send `Sync` after the answer wait for errors, too.
#[tokio::test]
async fn an_error_of_the_extended_protocol_is_sent_at_once() {
    let (mut client, _) = with_rows().await;
    let parse = |query: &str| message(b'P', format!("\0{query}\0\0\0").as_bytes());
    let bad: [Vec<Vec<u8>>; 4] = [
        vec![parse("SELECT * FROM missing"), message(b'D', b"S\0"), message(b'H', b"")],
        vec![parse("SELECT 1/0"), message(b'B', b"\0\0\0\0\0\0\0\0"), message(b'E', b"\0\0\0\0\0"), message(b'H', b"")],
        vec![message(b'B', b"\0nobody\0\0\0\0\0\0\0"), message(b'H', b"")],
        // Not even a Flush.
        vec![message(b'D', b"Snobody\0")],
    ];
    for messages in bad {
        client.write_all(&messages.concat()).await.unwrap();
        let answer = until(&mut client, b'E').await;
        assert_eq!(answer.last().map(|(kind, _)| *kind), Some(b'E'), "{}", kinds(&answer));
        client.write_all(&message(b'S', b"")).await.unwrap();
        assert_eq!(kinds(&until(&mut client, b'Z').await), "Z");
    }
}

/// A connection to a table `t` with the rows 1 and 2, and the node behind it.
async fn with_rows() -> (DuplexStream, super::memory::Memory) {
    let (server, node) = new_server(ServerOptions::default());
    let mut client = connect_to(&server);
    client.write_all(&root(0)).await.unwrap();
    until(&mut client, b'Z').await;
    for sql in ["CREATE TABLE t (a INT8 PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)"] {
        assert_eq!(told(&mut client, &[query(sql)]).await, "CZ");
    }
    (client, node)
}

fn query(sql: &str) -> Vec<u8> {
    message(b'Q', format!("{sql}\0").as_bytes())
}

/// `Parse` under a name, `Bind` and `Execute`, for at most so many rows.
fn run(name: &str, sql: &str, rows: u8) -> Vec<u8> {
    [
        message(b'P', format!("{name}\0{sql}\0\0\0").as_bytes()),
        message(b'B', format!("\0{name}\0\0\0\0\0\0\0").as_bytes()),
        message(b'E', &[0, 0, 0, 0, rows]),
    ]
    .concat()
}

const FLUSH: &[u8] = b"H\0\0\0\x04";
const SYNC: &[u8] = b"S\0\0\0\x04";

/// The kinds of the answers up to `ReadyForQuery`.
async fn told(client: &mut DuplexStream, messages: &[Vec<u8>]) -> String {
    client.write_all(&messages.concat()).await.unwrap();
    kinds(&until(client, b'Z').await)
}

/// Rows and command tags that come before an error count as true: those of an implicit transaction
/// that was not certified must not come.
#[tokio::test]
async fn nothing_of_an_implicit_transaction_comes_before_its_error() {
    let (mut client, node) = with_rows().await;
    let lose = || node.faults.lost.store(1, Ordering::SeqCst);
    let sync = || SYNC.to_vec();
    for sql in [
        "SELECT * FROM t",
        "DELETE FROM t WHERE a > 2",
        "INSERT INTO t VALUES (3) RETURNING a",
        "INSERT INTO t VALUES (3) RETURNING a; SELECT 1",
        "SELECT * FROM t; SELECT a FROM t WHERE a = 1",
        "SELECT * FROM t; ROLLBACK",
        "COPY t TO STDOUT",
        "COPY (SELECT a FROM t UNION ALL SELECT a FROM t) TO STDOUT",
    ] {
        lose();
        assert_eq!(told(&mut client, &[query(sql)]).await, "EZ", "{sql}");
        if !sql.contains(';') {
            lose();
            assert_eq!(told(&mut client, &[run("", sql, 0), sync()]).await, "12EZ", "{sql}");
        }
    }
    // Whatever the error is, and whichever statement or message of the transaction has it.
    assert_eq!(told(&mut client, &[query("INSERT INTO t VALUES (3) RETURNING a; SELECT 1/0")]).await, "EZ");
    assert_eq!(told(&mut client, &[query("SELECT * FROM t; SELECT nothing")]).await, "EZ");
    let insert = || run("", "INSERT INTO t VALUES (3) RETURNING a", 0);
    assert_eq!(told(&mut client, &[insert(), run("", "SELECT 1/0", 0), sync()]).await, "12EZ");
    assert_eq!(told(&mut client, &[insert(), run("", "SELECT nothing", 0), sync()]).await, "12EZ");
    assert_eq!(told(&mut client, &[insert(), message(b'B', b"\0\0\0"), sync()]).await, "12EZ", "a malformed message");
    assert_eq!(told(&mut client, &[insert(), message(b'D', b"Pnone\0"), sync()]).await, "12EZ");
    // A portal in parts.
    lose();
    assert_eq!(told(&mut client, &[run("", "SELECT * FROM t", 1), sync()]).await, "12EZ");
    assert_eq!(told(&mut client, &[query("SELECT a FROM t")]).await, "TDDCZ", "nothing was inserted");
}

#[tokio::test]
async fn what_was_committed_before_an_error_stays_told() {
    let (mut client, node) = with_rows().await;
    // A schema change commits what comes before it; so does COMMIT.
    assert_eq!(told(&mut client, &[query("INSERT INTO t VALUES (3); CREATE TABLE t (a INT8)")]).await, "CEZ");
    assert_eq!(
        told(&mut client, &[query("BEGIN; INSERT INTO t VALUES (4); COMMIT; SELECT a FROM t; SELECT 1/0")]).await,
        "CCCEZ"
    );
    // A block is speculative until its end, and its client knows that.
    node.faults.lost.store(1, Ordering::SeqCst);
    assert_eq!(told(&mut client, &[query("BEGIN; SELECT a FROM t WHERE a > 3; COMMIT")]).await, "CTDCEZ");
    assert_eq!(told(&mut client, &[query("SELECT a FROM t")]).await, "TDDDDCZ");
}

#[tokio::test]
async fn a_flush_certifies_what_it_sends() {
    let (mut client, node) = with_rows().await;
    client.write_all(&[run("", "SELECT * FROM t", 0), FLUSH.to_vec()].concat()).await.unwrap();
    assert_eq!(kinds(&until(&mut client, b'C').await), "12DDC");
    assert_eq!(told(&mut client, &[SYNC.to_vec()]).await, "Z");
    node.faults.lost.store(1, Ordering::SeqCst);
    client.write_all(&[run("", "SELECT * FROM t", 0), FLUSH.to_vec()].concat()).await.unwrap();
    assert_eq!(kinds(&until(&mut client, b'E').await), "12E");
    assert_eq!(told(&mut client, &[run("", "SELECT 1", 0), SYNC.to_vec()]).await, "Z", "skipped to Sync");
}

/// `Parse` and `Close` whose answers are taken back have had no effect.
#[tokio::test]
async fn statements_that_were_never_said_to_be_parsed_are_not() {
    let (mut client, _) = with_rows().await;
    assert_eq!(told(&mut client, &[run("kept", "SELECT 1", 0), SYNC.to_vec()]).await, "12DCZ");
    let close = message(b'C', b"Skept\0");
    let again = message(b'P', b"kept\0SELECT 1/0\0\0\0");
    let pipeline = [run("first", "SELECT * FROM t", 0), close, again, run("new", "SELECT 1/0", 0), SYNC.to_vec()];
    assert_eq!(told(&mut client, &pipeline).await, "12EZ");
    let use_of = |name: &str| {
        let bind = message(b'B', format!("\0{name}\0\0\0\0\0\0\0").as_bytes());
        [bind, message(b'E', b"\0\0\0\0\0"), SYNC.to_vec()]
    };
    assert_eq!(told(&mut client, &use_of("first")).await, "2DDCZ");
    assert_eq!(told(&mut client, &use_of("kept")).await, "2DCZ");
    assert_eq!(told(&mut client, &use_of("new")).await, "EZ");
}

#[tokio::test]
async fn copy_in_sends_nothing_that_is_not_certified() {
    let (mut client, _) = with_rows().await;
    let said = told(&mut client, &[query("INSERT INTO t VALUES (3) RETURNING a; COPY t FROM STDIN")]).await;
    assert_eq!(said, "EZ");
    // Its own tag waits for the commit as well.
    client.write_all(&query("COPY t FROM STDIN; SELECT 1/0")).await.unwrap();
    assert_eq!(kinds(&until(&mut client, b'G').await), "G");
    assert_eq!(told(&mut client, &[message(b'd', b"3\n"), message(b'c', b"")]).await, "EZ");
    client.write_all(&query("BEGIN; INSERT INTO t VALUES (3); COPY t FROM STDIN; COMMIT")).await.unwrap();
    assert_eq!(kinds(&until(&mut client, b'G').await), "CCG");
    assert_eq!(told(&mut client, &[message(b'd', b"4\n"), message(b'c', b"")]).await, "CCZ");
    assert_eq!(told(&mut client, &[query("SELECT a FROM t")]).await, "TDDDDCZ");
}

#[tokio::test]
async fn bytes_that_are_no_message_end_the_connection() {
    let mut client = connect(ServerOptions::default()).await;
    client.write_all(&root(0)).await.unwrap();
    until(&mut client, b'Z').await;
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let said = until(&mut client, b'Z').await;
    assert_eq!((field(&said[0].1, b'S'), field(&said[0].1, b'C')), ("FATAL".into(), "08P01".into()));
}

fn fuzzed_messages() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let texts = proptest::sample::select(vec![
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SHOW ALL",
        "SAVEPOINT a",
        "ROLLBACK TO a",
        "SET work_mem='1MB'",
        "",
        ";",
        "x",
        "DISCARD ALL",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "DEALLOCATE ALL",
        "COPY t FROM STDIN",
    ]);
    let body = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..24),
        texts.clone().prop_map(|t| format!("{t}\0").into_bytes()),
        texts.prop_map(|t| format!("\0{t}\0\0\0").into_bytes()),
        Just(b"\0\0\0\0\0\0\0\0".to_vec()),
        Just(b"P\0".to_vec()),
        Just(b"\0\0\0\0\0".to_vec()),
    ];
    let kind = proptest::sample::select(&b"QPBDECHSdcfF"[..]);
    proptest::collection::vec((kind, body).prop_map(|(k, b)| message(k, &b)), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn a_session_survives_any_messages(messages in fuzzed_messages(), tail in proptest::collection::vec(any::<u8>(), 0..16)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (server, _) = new_server(ServerOptions::default());
            let (mut client, stream) = tokio::io::duplex(1 << 20);
            let served = {
                let server = server.clone();
                tokio::spawn(async move { server.serve_stream(stream, "memory").await })
            };
            client.write_all(&root(0)).await.unwrap();
            until(&mut client, b'Z').await;
            let _ = client.write_all(&messages.concat()).await;
            let _ = client.write_all(&tail).await;
            let _ = client.shutdown().await;
            let mut rest = Vec::new();
            let _ = tokio::time::timeout(Duration::from_secs(20), client.read_to_end(&mut rest)).await.expect("the session ends");
            served.await.expect("no panic");
            // The server goes on.
            let mut next = connect_to(&server);
            next.write_all(&root(0)).await.unwrap();
            assert_eq!(until(&mut next, b'Z').await.last().unwrap().0, b'Z');
        });
    }
}
