//! The port for clients.

use super::{Mutator, corpus};
use crate::clients::login::{World, sql};
use crate::clients::new_server;
use meridian_server::pgwire::{LoginMode, PgServer, Security, ServerOptions};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

/// Connections with changed messages.
const DRAWN: usize = 1_500;
/// The longest of all messages before the proof, with their answers.
const ANSWER_BYTES_MAX: usize = 4_096;
/// How long a stranger may keep the server busy that has said everything.
const PATIENCE: Duration = Duration::from_secs(10);

fn framed(kind: &[u8], body: &[u8]) -> Vec<u8> {
    [kind, &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn startup(minor: u8, parameters: &str) -> Vec<u8> {
    framed(b"", &[&[0, 3, 0, minor][..], parameters.replace(' ', "\0").as_bytes(), b"\0\0"].concat())
}

/// What clients say first, and what follows while they have not proved who they are.
fn recorded(hello: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let request = |code: u32| [8u32.to_be_bytes(), code.to_be_bytes()].concat();
    let app = startup(0, "user app database postgres");
    let scram = framed(b"p", b"SCRAM-SHA-256\0\0\0\0\x20n,,n=,r=rOprNGfwEbeRWgbNEkqOabcd");
    let plus = framed(b"p", b"SCRAM-SHA-256-PLUS\0\0\0\0\x35p=tls-server-end-point,,n=,r=rOprNGfwEbeRWgbNEkqOabcd");
    let proof = b"c=biws,r=rOprNGfwEbeRWgbNEkqOabcdAAAAAAAAAAAAAAAAAAAAAAAA,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let last = framed(b"p", proof);
    vec![
        ("startup", app.clone()),
        ("startup 3.2", startup(2, "user app database postgres application_name psql client_encoding UTF8")),
        ("startup with options", startup(0, "user app options -csearch_path=a replication false _pq_.x 1")),
        ("startup of protocol 2", framed(b"", &[&[0, 2, 0, 0][..], &[b'a'; 64], &[0; 220]].concat())),
        ("SSLRequest", request(80_877_103)),
        ("GSSENCRequest", request(80_877_104)),
        ("GSSENCRequest and SSLRequest", [request(80_877_104), request(80_877_103)].concat()),
        ("CancelRequest", [16u32.to_be_bytes(), 80_877_102u32.to_be_bytes(), [0, 0, 0, 1], [1, 2, 3, 4]].concat()),
        ("CancelRequest of 3.2", framed(b"", &[&80_877_102u32.to_be_bytes()[..], &[0, 0, 0, 1], &[7; 32]].concat())),
        ("ClientHello", hello.to_vec()),
        ("SSLRequest and ClientHello", [&request(80_877_103), hello].concat()),
        ("SCRAM-SHA-256", [&app[..], &scram].concat()),
        ("SCRAM-SHA-256 with a wrong proof", [&app[..], &scram, &last].concat()),
        ("SCRAM-SHA-256-PLUS without TLS", [&app[..], &plus].concat()),
        ("a password in clear text", [&app[..], &framed(b"p", b"a secret\0")].concat()),
        ("a query", [&app[..], &framed(b"Q", b"SELECT 1\0")].concat()),
    ]
}

/// The first bytes of a client that asks for TLS at once.
async fn client_hello(world: &World) -> Vec<u8> {
    let (client, mut server) = tokio::io::duplex(1 << 16);
    let connector = world.connector(None);
    let connecting = connector.connecting(client);
    let reading = async {
        let mut hello = vec![0; 1 << 14];
        let read = server.read(&mut hello).await.expect("a hello");
        hello.truncate(read);
        hello
    };
    tokio::select! {
        biased;
        _ = connecting => panic!("nobody answers"),
        hello = reading => hello,
    }
}

/// Collects what the operator is told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!("{}={value:?} ", field.name()));
    }
}

impl Subscriber for Told {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        *about.level() <= Level::INFO
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().push(text.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// The SQLSTATEs of the errors among a server's messages; `None`: they are not messages.
fn states(mut answer: &[u8]) -> Option<Vec<String>> {
    let mut states = Vec::new();
    while let Some((kind, rest)) = answer.split_first() {
        let (length, _) = rest.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        let body = rest.get(4..length)?;
        if *kind == b'E' {
            let field = |code: u8| body.split(|b| *b == 0).find(|f| f.first() == Some(&code));
            assert_eq!(field(b'S'), Some(&b"SFATAL"[..]), "an error before the proof ends the connection");
            states.push(String::from_utf8_lossy(&field(b'C')?[1..]).into_owned());
        }
        answer = &rest[length..];
    }
    Some(states)
}

/// Says something to the server, and no more; what it answers, and how long that takes.
async fn said(server: &PgServer, peer: &str, bytes: &[u8], leaves: bool) -> (Vec<u8>, Duration) {
    let (mut client, stream) = tokio::io::duplex(1 << 16);
    let begun = Instant::now();
    let talking = async {
        let _ = client.write_all(bytes).await;
        if leaves {
            let _ = client.shutdown().await;
        }
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        answer
    };
    let both = async { tokio::join!(server.serve_stream(stream, peer), talking) };
    let ((), answer) = tokio::time::timeout(PATIENCE, both).await.unwrap_or_else(|_| panic!("it does not end: {bytes:02x?}"));
    (answer, begun.elapsed())
}

async fn begin(client: &mut DuplexStream, startup: &[u8]) -> u8 {
    client.write_all(startup).await.expect("it listens");
    client.read_u8().await.expect("it answers")
}

#[tokio::test]
async fn whatever_comes_first_is_answered_shortly_and_logged_once() {
    let world = World::new();
    let security = Security { tls: Some(world.tls.clone()), mode: LoginMode::Rules };
    let options = ServerOptions { security, startup_timeout: Duration::from_secs(5), ..ServerOptions::default() };
    let (server, node) = new_server(options);
    sql(&node, "CREATE ROLE app LOGIN PASSWORD 'a secret'").await;
    sql(&node, "ALTER SYSTEM SET hba_rules = 'host all all all scram-sha-256'").await;
    let hello = client_hello(&world).await;
    let made = recorded(&hello);
    let corpus: BTreeMap<String, Vec<u8>> = corpus("clients.txt", &made);
    let told = Told::default();
    let logging = tracing::subscriber::set_default(told.clone());

    let (mut mutator, mut slowest) = (Mutator(0x9e37_79b9_7f4a_7c15), Duration::ZERO);
    let changed: Vec<Vec<u8>> = (0..DRAWN).map(|_| mutator.changed(&corpus)).collect();
    for (at, bytes) in corpus.values().chain(&changed).enumerate() {
        // Many addresses: who guesses passwords from one of them is slowed.
        let peer = format!("10.{}.{}.{}:1", at >> 16, at >> 8 & 255, at & 255);
        let (answer, took) = said(&server, &peer, bytes, true).await;
        slowest = slowest.max(took);
        assert!(answer.len() < ANSWER_BYTES_MAX, "{} bytes for {bytes:02x?}", answer.len());
        let mut lines = std::mem::take(&mut *told.0.lock());
        // Those that stopped in the middle of their login, below, are noticed a little later.
        lines.retain(|line| !line.contains("peer=\"127.0.0.1:1\""));
        assert!(lines.len() <= 1, "{lines:?} for {bytes:02x?}");
        assert!(lines.iter().all(|line| line.len() < 1_024 && !line.contains(char::is_control)), "{lines:?}");
        // Behind the answer to a request for TLS comes what only its handshake explains.
        let plain: Vec<u8> = answer.iter().copied().skip_while(|byte| b"SN".contains(byte)).collect();
        if plain.first() != Some(&0x15) && !answer.contains(&0x16) {
            let states = states(&plain).unwrap_or_else(|| panic!("{answer:02x?} for {bytes:02x?}"));
            // 08006: the client has said all that it will, in the middle of its proof. 22021: a
            // name that is no text.
            let known = ["08006", "08P01", "0A000", "22021", "28000", "28P01", "42601", "3D000"];
            assert!(states.iter().all(|s| known.contains(&&**s)), "{states:?} for {bytes:02x?}");
            assert!(states.len() <= 1 && (states.is_empty() || lines.len() <= 1), "{states:?}");
        }
        assert_eq!(server.connections(), 0);
        if at % 100 == 0 {
            let (mut client, stream) = tokio::io::duplex(1 << 16);
            let serving = server.clone();
            tokio::spawn(async move { serving.serve_stream(stream, "127.0.0.1:1").await });
            assert_eq!(begin(&mut client, &corpus["startup"]).await, b'R', "others are served");
        }
    }
    drop(logging);
    println!("{} connections, the slowest took {slowest:?}", corpus.len() + changed.len());

    // Who announces much is not waited for, and nothing is set aside for it.
    let huge = [0x7fff_ffff, 0x8000_0000, u32::MAX, 10_001, 3, 7].map(u32::to_be_bytes);
    let startup = &corpus["startup"];
    for length in huge {
        let announced = [&length[..], &startup[4..]].concat();
        let later = [&startup[..], b"p", &length, &[0; 8]].concat();
        for bytes in [announced, later] {
            let (answer, took) = said(&server, "10.9.9.9:1", &bytes, false).await;
            assert!(took < Duration::from_secs(4), "it was waited for: {took:?} for {bytes:02x?}");
            assert!(answer.len() < ANSWER_BYTES_MAX, "{bytes:02x?}");
        }
    }
}
