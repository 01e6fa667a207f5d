//! What a client holds in its hands when the primary dies while a result is on its way: an error,
//! and no result that was not certified.

use crate::cluster::{specs_in_regions, sql, sql_in, start_all, until};
use crate::process::Node;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than any statement waits for a primary.
const PATIENCE: Duration = Duration::from_secs(60);

/// A message of the server: its type and its body.
type Message = (u8, Vec<u8>);

/// A connection that hides nothing that was sent.
struct Raw(TcpStream);

impl Raw {
    #[allow(clippy::disallowed_methods, reason = "it talks to a real process")]
    async fn connect(node: &Node) -> Raw {
        let mut raw = Raw(TcpStream::connect(&node.sql_addr).await.expect("a connection"));
        let parameters = b"user\0root\0database\0d\0\0";
        let mut startup = (parameters.len() as u32 + 8).to_be_bytes().to_vec();
        startup.extend(196_608_u32.to_be_bytes());
        startup.extend(parameters);
        raw.0.write_all(&startup).await.expect("sent");
        let greeting = raw.answer().await;
        assert!(greeting.iter().all(|(kind, _)| *kind != b'E'), "{greeting:?}");
        raw
    }
    async fn send(&mut self, messages: &[Message]) {
        let mut bytes = Vec::new();
        for (kind, body) in messages {
            bytes.push(*kind);
            bytes.extend((body.len() as u32 + 4).to_be_bytes());
            bytes.extend(body);
        }
        self.0.write_all(&bytes).await.expect("sent");
    }
    /// Everything up to `ReadyForQuery`.
    async fn answer(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        let all = async {
            while messages.last().is_none_or(|(kind, _): &Message| *kind != b'Z') {
                let kind = self.0.read_u8().await.expect("a message");
                let length = self.0.read_u32().await.expect("a length") as usize;
                let mut body = vec![0; length - 4];
                self.0.read_exact(&mut body).await.expect("a body");
                messages.push((kind, body));
            }
        };
        tokio::time::timeout(PATIENCE, all).await.expect("an answer in time");
        messages
    }
}

/// `Query`.
fn simple(sql: &str) -> Vec<Message> {
    vec![(b'Q', format!("{sql}\0").into_bytes())]
}

/// `Parse`, `Bind`, `Describe`, `Execute`, `Sync`.
fn extended(sql: &str) -> Vec<Message> {
    vec![
        (b'P', [b"\0", sql.as_bytes(), b"\0\0\0"].concat()),
        (b'B', b"\0\0\0\0\0\0\0\0".to_vec()),
        (b'D', b"P\0".to_vec()),
        (b'E', b"\0\0\0\0\0".to_vec()),
        (b'S', Vec::new()),
    ]
}

fn kinds(messages: &[Message]) -> String {
    messages.iter().map(|(kind, _)| *kind as char).collect()
}

/// The SQLSTATE of the only error.
fn sqlstate(messages: &[Message]) -> String {
    let errors: Vec<_> = messages.iter().filter(|(kind, _)| *kind == b'E').collect();
    let [(_, body)] = &errors[..] else { panic!("not one error: {}", kinds(messages)) };
    let code = body.split(|b| *b == 0).find(|field| field.first() == Some(&b'C')).expect("an SQLSTATE");
    String::from_utf8_lossy(&code[1..]).into_owned()
}

/// Rows are read at the nearest replica and certified where they are homed, in another region,
/// whose only node dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_keeps_a_result_that_was_not_certified() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs_in_regions(dir.path(), 3);
    let mut nodes = start_all(&specs).await;
    sql(&nodes[0], "CREATE DATABASE IF NOT EXISTS d PRIMARY REGION \"r0\" REGIONS \"r1\", \"r2\"").await;
    let create = "CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY, v STRING) LOCALITY REGIONAL BY TABLE IN \"r2\"";
    sql_in(&nodes[0], "d", create).await;
    sql_in(&nodes[0], "d", "INSERT INTO t SELECT g, 'a' FROM generate_series(1, 5) AS s(g) ON CONFLICT (k) DO NOTHING").await;
    // The replica near the gateway has everything.
    until("a replica near the gateway", async || {
        sql_in(&nodes[0], "d", "SELECT count(*) FROM t AS OF SYSTEM TIME with_max_staleness('5s')").await == ["5"]
    })
    .await;

    let statements = [
        simple("SELECT k, v FROM t"),
        simple("SELECT 1; SELECT count(*) FROM t"),
        simple("DELETE FROM t WHERE k = 77"),
        simple("COPY t TO STDOUT"),
        extended("SELECT k, v FROM t"),
        extended("DELETE FROM t WHERE k = 77"),
        extended("COPY t TO STDOUT"),
    ];
    let (mut clients, mut slow) = (Vec::new(), Vec::new());
    for statement in &statements {
        let mut client = Raw::connect(&nodes[0]).await;
        client.send(statement).await;
        let well = client.answer().await;
        assert!(well.iter().any(|(kind, _)| *kind == b'C') && !kinds(&well).contains('E'), "{}", kinds(&well));
        clients.push(client);
    }
    // These have rows in hand when the primary dies.
    const SLOW: &str = "UPDATE t SET v = 'b' WHERE k < (SELECT count(*) FROM generate_series(1, 3000) AS a(i), \
                        generate_series(1, 3000) AS b(j) WHERE i % 7 <> j % 5) RETURNING k";
    for statement in [simple(SLOW), extended(SLOW)] {
        let mut client = Raw::connect(&nodes[0]).await;
        client.send(&statement).await;
        slow.push((client, statement));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    nodes.remove(2).kill();
    for (client, statement) in clients.iter_mut().zip(&statements) {
        client.send(statement).await;
    }
    for (client, statement) in slow.iter_mut().map(|(c, s)| (c, &*s)).chain(clients.iter_mut().zip(&statements)) {
        let told = client.answer().await;
        let what = String::from_utf8_lossy(&statement[0].1).into_owned();
        println!("{what:?}: {}", kinds(&told));
        assert!(!kinds(&told).contains(['D', 'd', 'C', 'c', 'H']), "{what:?}: {}", kinds(&told));
        assert!(["57P03", "40003", "40001"].contains(&sqlstate(&told).as_str()), "{what:?}: {}", sqlstate(&told));
    }

    let _back = specs[2].start().await;
    for (client, statement) in clients.iter_mut().zip(&statements) {
        until("the home to be led again", async || {
            client.send(statement).await;
            !kinds(&client.answer().await).contains('E')
        })
        .await;
    }
}
