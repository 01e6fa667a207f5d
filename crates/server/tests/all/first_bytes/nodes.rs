//! The port for nodes.

use super::{Mutator, corpus};
use meridian_node::{Node, NodeConfig, Place, Security};
use meridian_pki::join::{Joiner, Token};
use meridian_pki::tls::name_of;
use meridian_pki::{Moment, PrivateKey, Rules};
use meridian_server::MachineRuntime;
use meridian_store::Backend;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Connections with changed messages, and how many are open at once: a node has 128 places for the
/// handshakes of one machine.
const DRAWN: usize = 600;
const AT_ONCE: usize = 40;
/// A handshake may take 1.5 s, and a message of a joiner 5 s.
const PATIENCE: Duration = Duration::from_secs(8);
const ANSWER_BYTES_MAX: usize = 8_192;

#[allow(clippy::disallowed_methods, reason = "a process that is no node looks at the machine's clock")]
fn now() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    Moment(since.as_secs())
}

async fn founder(dir: &std::path::Path) -> Node {
    let runtime = MachineRuntime::open(dir).expect("a free directory");
    let place = Place { region: "r0".into(), zone: "a".into() };
    let mut config = NodeConfig::new(place, "127.0.0.1:0", "127.0.0.1:1", Backend::Fjall { path: dir.join("store") });
    config.log_options.segment_bytes = 4 << 20;
    config.security = Some(Security::new(dir.join("certs")));
    Node::start(Arc::new(runtime), config).await.expect("a founder")
}

fn joiner(token: &Token) -> Joiner {
    Joiner::new(token.clone(), PrivateKey::generate(), vec!["localhost".into()], Vec::new(), Rules::ALL)
}

/// A joiner's handshake.
async fn handshake(joiner: &Joiner, addr: &str) -> TlsStream<TcpStream> {
    let config = joiner.config(Arc::new(now)).expect("a configuration");
    #[allow(clippy::disallowed_methods, reason = "a test opens connections")]
    let stream = TcpStream::connect(addr).await.expect("it listens");
    TlsConnector::from(Arc::new(config)).connect(name_of(meridian_base::NodeId(0)), stream).await.expect("a handshake")
}

/// The first bytes of a joiner.
async fn client_hello(token: &Token) -> Vec<u8> {
    let config = joiner(token).config(Arc::new(now)).expect("a configuration");
    let (client, mut server) = tokio::io::duplex(1 << 16);
    let mut hello = vec![0; 1 << 14];
    tokio::select! {
        biased;
        _ = TlsConnector::from(Arc::new(config)).connect(name_of(meridian_base::NodeId(0)), client) => panic!("nobody answers"),
        read = server.read(&mut hello) => hello.truncate(read.expect("a hello")),
    }
    hello
}

/// Says something, and waits until the node ends the connection; how many bytes it has answered.
async fn said(addr: &str, bytes: &[u8]) -> usize {
    #[allow(clippy::disallowed_methods, reason = "a test opens connections")]
    let mut stream = TcpStream::connect(addr).await.expect("it listens");
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    let _ = ended.unwrap_or_else(|_| panic!("the node does not end it: {bytes:02x?}"));
    answer.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_comes_first_is_ended_in_time_and_keeps_no_node_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = founder(dir.path()).await;
    let addr = node.addr();
    let token = Token::parse(&node.create_token(600).await.expect("a token")).expect("one");
    let hello = client_hello(&token).await;
    // What a node says whose cluster has no certificates: a length, the protocol's version,
    // nothing.
    let greeting = [&24u32.to_be_bytes()[..], &[6], &[0; 23]].concat();
    let http = b"GET / HTTP/1.1\r\nHost: meridian\r\n\r\n".to_vec();
    let corpus = corpus("nodes.txt", &[("ClientHello", hello), ("Hello without TLS", greeting), ("HTTP", http)]);
    let mut mutator = Mutator(0x2545_f491_4f6c_dd1d);
    let changed: Vec<Vec<u8>> = (0..DRAWN).map(|_| mutator.changed(&corpus)).collect();
    let begun = Instant::now();
    for some in changed.chunks(AT_ONCE) {
        let answers = futures::future::join_all(some.iter().map(|bytes| said(&addr, bytes)));
        // Somebody with a token is shown the node's certificate meanwhile.
        let joiner = joiner(&token);
        let (answers, _stream) = tokio::join!(answers, handshake(&joiner, &addr));
        assert!(answers.iter().all(|answer| *answer < ANSWER_BYTES_MAX), "{answers:?}");
    }
    println!("{DRAWN} connections in {:?}", begun.elapsed());

    // Behind a joiner's handshake, up to the proof: no number of bytes is believed.
    for message in [&[0xff; 4][..], &[0, 1, 0, 1], &[0, 0, 0, 0], &[0, 0, 0, 9, 1, 2, 3], &[0, 0, 0, 3, 1, 2, 3]] {
        let mut stream = handshake(&joiner(&token), &addr).await;
        stream.write_all(message).await.expect("it listens");
        let mut answer = Vec::new();
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok() && answer.len() < 256, "{message:?}: {} bytes", answer.len());
    }
    let status = node.create_token(600).await;
    assert!(status.is_ok(), "the node goes on: {status:?}");
    node.shutdown().await;
}
