//! Logins: TLS in every sslmode, passwords, certificates, the Unix socket, and bytes that no client
//! would send.

use super::memory::Memory;
use super::{Running, new_server, start_with};
use meridian_base::{NodeId, SessionId};
use meridian_pki::authority::{Hosts, NODE_LIFE_SECS};
use meridian_pki::directory::Pair;
use meridian_pki::tls::{Clock, Context, SslMode, Tls, client_config};
use meridian_pki::{Authority, Bundle, ClusterId, Moment, PrivateKey, Rules};
use meridian_server::SessionThreads;
use meridian_server::pgwire::{LoginMode, PgServer, Security, ServerOptions};
use meridian_sql::session::{SessionFactory, SessionOptions};
use proptest::prelude::*;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

#[allow(clippy::disallowed_methods, reason = "clients that are not ours look at the machine's clock")]
fn now() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    Moment(since.as_secs())
}

fn clock() -> Clock {
    Arc::new(now)
}

/// A cluster's authority, and its only node.
pub struct World {
    authority: Authority,
    pub tls: Arc<Tls>,
}

impl World {
    pub fn new() -> World {
        let id = ClusterId::random();
        let authority = Authority::create(id, now()).expect("an authority");
        let key = PrivateKey::generate();
        let hosts = Hosts::parse(["localhost", "127.0.0.1"]).expect("hosts");
        let public = key.public().expect("P-256");
        let made = authority.sign_node(id, NodeId(1), &hosts, &public, now(), NODE_LIFE_SECS).expect("signs");
        let pair = Pair::new(vec![made], key).expect("a pair");
        let nobody = |_: NodeId| false;
        let context = Context { cluster: id, clock: clock(), revoked: Arc::new(nobody), rules: Rules::ALL };
        let bundle = Bundle::new(vec![authority.certificate().clone()]).expect("an authority");
        let tls = Arc::new(Tls::new(context, bundle, &pair).expect("TLS"));
        World { authority, tls }
    }
    fn bundle(&self) -> Bundle {
        Bundle::new(vec![self.authority.certificate().clone()]).expect("an authority")
    }
    fn client(&self, role: &str) -> Pair {
        let key = PrivateKey::generate();
        let made = self.authority.sign_client(role, &key.public().expect("P-256"), now(), 86_400).expect("signs");
        Pair::new(vec![made], key).expect("a pair")
    }
    fn options(&self) -> ServerOptions {
        let security = Security { tls: Some(self.tls.clone()), mode: LoginMode::Rules };
        ServerOptions { security, startup_timeout: Duration::from_secs(20), ..ServerOptions::default() }
    }
    pub fn connector(&self, pair: Option<&Pair>) -> Rustls {
        let config = client_config(SslMode::VerifyFull, Some(self.bundle()), pair, clock()).expect("a configuration");
        Rustls { connector: TlsConnector::from(Arc::new(config)), end_point: self.tls.current().end_point.clone() }
    }
}

/// Runs statements as the superuser, beside all rules.
pub async fn sql(node: &Memory, text: &str) {
    let options =
        SessionOptions { id: SessionId(u64::MAX), user: "root".into(), database: "postgres".into(), ..Default::default() };
    let mut session = SessionFactory::open(node, options, node.shared()).await.expect("a session");
    session.query_text(text).await.unwrap_or_else(|e| panic!("{text}: {e}"));
}

async fn secure() -> (World, Running) {
    let world = World::new();
    let running = start_with(world.options()).await;
    sql(&running.node, "CREATE ROLE app LOGIN PASSWORD 'a secret'").await;
    (world, running)
}

/// tokio-postgres over rustls.
#[derive(Clone)]
pub struct Rustls {
    connector: TlsConnector,
    end_point: Option<Vec<u8>>,
}

impl Rustls {
    /// A handshake, and nothing else.
    pub async fn connecting<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> io::Result<TlsStream<S>> {
        let name = "127.0.0.1".try_into().expect("an address");
        self.connector.connect(name, stream).await
    }
}

pub struct Bound<S> {
    stream: TlsStream<S>,
    end_point: Option<Vec<u8>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Rustls {
    type Stream = Bound<S>;
    type TlsConnect = Rustls;
    type Error = io::Error;
    fn make_tls_connect(&mut self, _: &str) -> io::Result<Rustls> {
        Ok(self.clone())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Rustls {
    type Stream = Bound<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Bound<S>>> + Send>>;
    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = "127.0.0.1".try_into().expect("an address");
            let stream = self.connector.connect(name, stream).await?;
            Ok(Bound { stream, end_point: self.end_point })
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Bound<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Bound<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Bound<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.end_point.clone().map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// Logs in with a driver; the SQLSTATE if that fails.
async fn login(running: &Running, rustls: Rustls, user: &str, password: &str, more: &str) -> Result<String, String> {
    let config = format!(
        "host=127.0.0.1 port={} user={user} password='{password}' dbname=postgres connect_timeout=20 {more}",
        running.port
    );
    let told = |e: tokio_postgres::Error| e.code().map_or_else(|| e.to_string(), |c| c.code().to_string());
    let (client, connection) = tokio_postgres::connect(&config, rustls).await.map_err(told)?;
    tokio::spawn(connection);
    Ok(client.query_one("SELECT current_user::text", &[]).await.map_err(told)?.get(0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_logs_in_with_its_password_over_tls() {
    let (world, running) = secure().await;
    let rustls = || world.connector(None);
    for binding in ["disable", "prefer", "require"] {
        let more = format!("sslmode=require channel_binding={binding}");
        assert_eq!(login(&running, rustls(), "app", "a secret", &more).await, Ok("app".into()), "{binding}");
    }
    let failed = |user, password, more| login(&running, rustls(), user, password, more);
    assert_eq!(failed("app", "another one", "sslmode=require").await, Err("28P01".into()));
    assert_eq!(failed("nobody_there", "a secret", "sslmode=require").await, Err("28P01".into()));
    assert_eq!(failed("app", "a secret", "sslmode=disable").await, Err("28000".into()), "there is a rule for TLS alone");
    // A role without a password, and one whose password is over.
    sql(&running.node, "CREATE ROLE bare LOGIN; CREATE ROLE late LOGIN PASSWORD 'x' VALID UNTIL '2001-01-01'").await;
    assert_eq!(failed("bare", "x", "sslmode=require").await, Err("28P01".into()));
    assert_eq!(failed("late", "x", "sslmode=require").await, Err("28P01".into()));
    // What is asked after the proof.
    sql(&running.node, "CREATE ROLE closed NOLOGIN PASSWORD 'x'; CREATE ROLE one LOGIN PASSWORD 'x' CONNECTION LIMIT 0").await;
    assert_eq!(failed("closed", "x", "sslmode=require").await, Err("28000".into()));
    assert_eq!(failed("closed", "y", "sslmode=require").await, Err("28P01".into()));
    assert_eq!(failed("one", "x", "sslmode=require").await, Err("53300".into()));
    sql(&running.node, "REVOKE CONNECT ON DATABASE postgres FROM PUBLIC").await;
    assert_eq!(failed("app", "a secret", "sslmode=require").await, Err("42501".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_the_role_that_its_map_says() {
    let (world, running) = secure().await;
    sql(&running.node, "ALTER SYSTEM SET ident_maps = 'm alice app'").await;
    sql(&running.node, "ALTER SYSTEM SET hba_rules = 'hostssl all app all cert map=m\nhostssl all all all cert'").await;
    sql(&running.node, "CREATE ROLE alice LOGIN; CREATE ROLE bob LOGIN").await;
    let alice = world.client("alice");
    let with = |pair| world.connector(pair);
    assert_eq!(login(&running, with(Some(&alice)), "app", "", "sslmode=require").await, Ok("app".into()));
    assert_eq!(login(&running, with(Some(&alice)), "alice", "", "sslmode=require").await, Ok("alice".into()));
    assert_eq!(login(&running, with(Some(&alice)), "bob", "", "sslmode=require").await, Err("28000".into()));
    assert_eq!(login(&running, with(None), "alice", "", "sslmode=require").await, Err("28000".into()));
    let stranger = World::new().client("alice");
    assert!(login(&running, with(Some(&stranger)), "alice", "", "sslmode=require").await.is_err());
}

/// Runs psql; whether it succeeded, and what it printed.
async fn psql(running: &Running, host: &str, user: &str, env: &[(&str, &str)]) -> Option<(bool, String)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::split_paths(&path).map(|d| d.join("psql")).find(|p| p.is_file())?;
    let mut command = tokio::process::Command::new(program);
    let port = running.port.to_string();
    command.args(["-X", "-A", "-t", "-w", "-h", host, "-p", &port, "-U", user, "-d", "postgres", "-c", "select current_user"]);
    command.envs(env.iter().copied()).env("PGCONNECT_TIMEOUT", "20").kill_on_drop(true);
    let output = command.output().await.expect("it starts");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Some((output.status.success(), said))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_logs_in_by_every_sslmode() {
    let (world, running) = secure().await;
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().join("ca.crt");
    std::fs::write(&root, world.bundle().to_pem()).expect("writes");
    let other = folder.path().join("other.crt");
    std::fs::write(&other, World::new().bundle().to_pem()).expect("writes");
    let (root, other) = (root.to_string_lossy().into_owned(), other.to_string_lossy().into_owned());
    for (mode, file, is_let_in) in [
        ("disable", &root, false),
        ("allow", &root, true),
        ("prefer", &root, true),
        ("require", &root, true),
        ("verify-ca", &root, true),
        ("verify-full", &root, true),
        ("verify-ca", &other, false),
        ("verify-full", &other, false),
    ] {
        let env = [("PGPASSWORD", "a secret"), ("PGSSLMODE", mode), ("PGSSLROOTCERT", file)];
        let Some((succeeded, said)) = psql(&running, "127.0.0.1", "app", &env).await else {
            eprintln!("skipped: psql is not installed");
            return;
        };
        assert_eq!(succeeded, is_let_in, "{mode}: {said}");
    }
    let env = [("PGPASSWORD", "a secret"), ("PGSSLMODE", "require"), ("PGCHANNELBINDING", "require")];
    assert_eq!(psql(&running, "127.0.0.1", "app", &env).await.expect("it is there"), (true, "app\n".into()));
    let (succeeded, said) =
        psql(&running, "127.0.0.1", "app", &[("PGPASSWORD", "wrong"), ("PGSSLMODE", "require")]).await.expect("it is there");
    assert!(!succeeded && said.contains("password authentication failed for user \"app\""), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operator_comes_in_by_the_socket_whatever_the_rules_say() {
    let world = World::new();
    let (server, node) = new_server(world.options());
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join(".s.PGSQL.5499");
    let listener = tokio::net::UnixListener::bind(&path).expect("a socket");
    let serving = server.clone();
    tokio::spawn(async move { serving.serve_unix(listener, SessionThreads::start().expect("threads")).await });
    sql(&node, "ALTER SYSTEM SET hba_rules = 'local all all reject'").await;
    sql(&node, "CREATE ROLE app LOGIN").await;
    let log_in = async |user: &str| {
        let mut config = tokio_postgres::Config::new();
        config.host_path(folder.path()).port(5499).user(user).dbname("postgres");
        let (_, connection) = config.connect(tokio_postgres::NoTls).await?;
        drop(connection);
        Ok::<(), tokio_postgres::Error>(())
    };
    log_in("root").await.expect("the operator is let in");
    let refused = log_in("app").await.expect_err("the rule rejects others");
    assert_eq!(refused.code().map(|c| c.code()), Some("28000"));
}

async fn duplex(server: &PgServer) -> tokio::io::DuplexStream {
    let (client, stream) = tokio::io::duplex(1 << 16);
    let server = server.clone();
    tokio::spawn(async move { server.serve_stream(stream, "127.0.0.1:1").await });
    client
}

#[tokio::test]
async fn a_handshake_may_come_first() {
    let world = World::new();
    let (server, node) = new_server(world.options());
    sql(&node, "ALTER SYSTEM SET hba_rules = 'hostssl all all all trust'").await;
    let rustls = world.connector(None);
    let name = "127.0.0.1".try_into().expect("an address");
    let mut stream = rustls.connector.connect(name, duplex(&server).await).await.expect("a handshake");
    let body = b"\0\x03\0\0user\0root\0database\0postgres\0\0";
    stream.write_all(&(body.len() as u32 + 4).to_be_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'R');
    // Without the protocol's name it is refused.
    let mut config = client_config(SslMode::VerifyFull, Some(world.bundle()), None, clock()).expect("a configuration");
    config.alpn_protocols.clear();
    let name = "127.0.0.1".try_into().expect("an address");
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, duplex(&server).await).await.expect("a handshake");
    let _ = stream.write_all(body).await;
    assert!(stream.read_u8().await.is_err());
}

/// The messages of a login without TLS, up to its end: their kinds and lengths, and the salt.
async fn exchange(server: &PgServer, user: &str) -> (Vec<(u8, usize)>, String) {
    let mut client = duplex(server).await;
    let body = format!("\0\x03\0\0user\0{user}\0database\0postgres\0\0");
    client.write_all(&(body.len() as u32 + 4).to_be_bytes()).await.unwrap();
    client.write_all(body.as_bytes()).await.unwrap();
    let (mut kinds, mut salt, mut nonce) = (Vec::new(), String::new(), String::new());
    while let Ok(kind) = client.read_u8().await {
        let mut body = vec![0; client.read_u32().await.unwrap() as usize - 4];
        client.read_exact(&mut body).await.unwrap();
        kinds.push((kind, body.len()));
        let answer = match body.first_chunk::<4>() {
            Some([0, 0, 0, 10]) => [&b"SCRAM-SHA-256\0\0\0\0\x0cn,,n=,r=abcd"[..]].concat(),
            Some([0, 0, 0, 11]) => {
                let text = String::from_utf8_lossy(&body[4..]).into_owned();
                let field = |name| text.split(',').find_map(|f| f.strip_prefix(name)).unwrap_or_default().to_string();
                (salt, nonce) = (field("s="), field("r="));
                format!("c=biws,r={nonce},p={}", "A".repeat(43) + "=").into_bytes()
            }
            _ => continue,
        };
        client.write_all(b"p").await.unwrap();
        client.write_all(&(answer.len() as u32 + 4).to_be_bytes()).await.unwrap();
        client.write_all(&answer).await.unwrap();
    }
    assert!(nonce.starts_with("abcd"));
    (kinds, salt)
}

#[tokio::test]
async fn an_unknown_user_is_answered_like_a_known_one() {
    let world = World::new();
    let options = ServerOptions { security: Security { tls: None, mode: LoginMode::Rules }, ..world.options() };
    let (server, node) = new_server(options);
    sql(&node, "CREATE ROLE known LOGIN PASSWORD 'x'; ALTER SYSTEM SET hba_rules = 'host all all all scram-sha-256'").await;
    let (known, salt) = exchange(&server, "known").await;
    let (unknown, mock) = exchange(&server, "unown").await;
    assert_eq!(known, unknown);
    assert_eq!(salt.len(), mock.len());
    assert_eq!(mock, exchange(&server, "unown").await.1, "the salt of a name stays");
    assert_ne!(mock, exchange(&server, "other").await.1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any bytes before the proof: the server answers or ends, in time, and goes on serving.
    #[test]
    fn bytes_before_the_proof(bytes in proptest::collection::vec(any::<u8>(), 0..200), how in 0..5u8, has_tls: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            let tls = has_tls.then(|| world.tls.clone());
            let security = Security { tls, mode: LoginMode::Rules };
            let (server, node) = new_server(ServerOptions { security, ..ServerOptions::default() });
            sql(&node, "ALTER SYSTEM SET hba_rules = 'host all all all scram-sha-256'").await;
            let body = b"\0\x03\0\0user\0app\0database\0postgres\0\0";
            let startup = [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat();
            let framed = |body: &[u8]| [&b"p"[..], &(body.len() as u32 + 4).to_be_bytes(), body].concat();
            let begun = framed(b"SCRAM-SHA-256\0\0\0\0\x0cn,,n=,r=abcd");
            let sent = match how {
                0 => bytes.clone(),
                1 => [&startup[..], &bytes].concat(),
                2 => [&startup[..], &framed(&bytes)].concat(),
                3 => [&startup[..], &begun, &framed(&bytes)].concat(),
                _ => [&8u32.to_be_bytes()[..], &80877103u32.to_be_bytes(), &bytes].concat(),
            };
            let (mut client, stream) = tokio::io::duplex(1 << 16);
            let serving = async {
                server.serve_stream(stream, "127.0.0.1:1").await;
            };
            let talking = async {
                let _ = client.write_all(&sent).await;
                let _ = client.shutdown().await;
                let mut answer = Vec::new();
                let _ = client.read_to_end(&mut answer).await;
                answer
            };
            let ended = tokio::time::timeout(Duration::from_secs(20), async { tokio::join!(serving, talking) }).await;
            let ((), answer) = ended.expect("it ends in time");
            assert!(answer.len() < 4_096, "an answer to a stranger is short");
            assert_eq!(server.connections(), 0);
        });
    }
}
