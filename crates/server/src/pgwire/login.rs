//! How a client proves who it is: by the cluster's rules of login ([`hba`]).
//!
//! An unknown user and a wrong password are the same to a client: the same messages, the same work,
//! the same pause before the answer. Why a login failed is one line in the log. Logins, and failed
//! ones, are one event each; no event has anything that a password could be guessed with.

use super::frontend;
use super::scram::{self, Exchange};
use super::server::PgServer;
use super::wire::Wire;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use meridian_base::{Error, Result};
use meridian_pki::bugs::PlantedBugs;
use meridian_pki::scram::Verifier;
use meridian_pki::secret::Secret;
use meridian_pki::tls::Tls;
use meridian_sql::catalog::hba::{self, Maps, Method, Rule, Rules, Way};
use meridian_sql::catalog::{Catalog, Role, roles};
use meridian_sql::session::SessionFactory;
use parking_lot::Mutex;
use pgwire::messages::startup::Authentication;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// What a server asks of its clients.
#[derive(Clone, Default)]
pub struct Security {
    /// Offered to every client. `None`: requests for encryption are answered «no».
    pub tls: Option<Arc<Tls>>,
    pub mode: LoginMode,
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Security({:?}, TLS: {})", self.mode, self.tls.is_some())
    }
}

/// Whether clients are asked who they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoginMode {
    /// Whoever names a role is it (`--insecure`).
    #[default]
    Trust,
    /// By the cluster's rules.
    Rules,
}

/// What is known of a client before it says anything.
#[derive(Clone, Debug)]
pub struct Client {
    /// For the log.
    pub peer: String,
    pub way: Way,
    /// The role of its certificate.
    pub certificate: Option<String>,
    /// What SCRAM binds to.
    pub end_point: Option<Vec<u8>>,
    /// Its user of the operating system, and the number.
    pub system_user: Option<(String, u32)>,
}

impl Client {
    /// A client by TCP.
    pub fn of(peer: &str, is_tls: bool) -> Client {
        let address = peer.parse::<SocketAddr>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |a| a.ip());
        let way = Way::Host { address, is_tls };
        Client { peer: peer.to_string(), way, certificate: None, end_point: None, system_user: None }
    }
    /// A client by a Unix socket.
    pub fn local(uid: u32) -> Client {
        let name = user_name(uid).unwrap_or_else(|| uid.to_string());
        let peer = format!("[local] uid {uid}");
        Client { peer, way: Way::Local, certificate: None, end_point: None, system_user: Some((name, uid)) }
    }
    /// As PostgreSQL's messages tell it.
    fn described(&self, user: &str, database: &str) -> String {
        match &self.way {
            Way::Local => format!("host \"[local]\", user \"{user}\", database \"{database}\", no encryption"),
            Way::Host { address, is_tls } => {
                let encryption = if *is_tls { "SSL encryption" } else { "no encryption" };
                format!("host \"{address}\", user \"{user}\", database \"{database}\", {encryption}")
            }
        }
    }
}

/// The name of a user of the operating system.
fn user_name(uid: u32) -> Option<String> {
    let mut buffer = vec![0; 4_096];
    // SAFETY: an all-zero `passwd` is valid, as all of its fields are numbers and pointers.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the length of the call, and the buffer's length is its own.
    let failed = unsafe { libc::getpwuid_r(uid, &mut entry, buffer.as_mut_ptr(), buffer.len(), &mut found) };
    if failed != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the call has filled the entry in; its name lies in the buffer and ends with a zero.
    let name = unsafe { std::ffi::CStr::from_ptr(entry.pw_name) };
    Some(name.to_string_lossy().into_owned())
}

/// Failed guesses by address: the next answer takes longer.
#[derive(Default)]
pub struct Guesses(Mutex<BTreeMap<String, u32>>);

impl Guesses {
    const ADDRESSES_MAX: usize = 10_000;
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(3);

    fn key(client: &Client) -> String {
        match &client.way {
            Way::Local => String::new(),
            Way::Host { address, .. } => address.to_string(),
        }
    }
    /// One more; how long the answer waits.
    fn failed(&self, client: &Client) -> Duration {
        let mut guesses = self.0.lock();
        if guesses.len() >= Guesses::ADDRESSES_MAX {
            guesses.clear();
        }
        let count = guesses.entry(Guesses::key(client)).or_default();
        *count = count.saturating_add(1);
        (Guesses::FIRST * 2u32.saturating_pow((*count - 1).min(10))).min(Guesses::LONGEST)
    }
    fn succeeded(&self, client: &Client) {
        self.0.lock().remove(&Guesses::key(client));
    }
}

/// Has a client prove that it is the user that it says it is.
pub async fn authenticate<S: AsyncRead + AsyncWrite + Unpin + Send>(
    wire: &mut Wire<S>,
    server: &PgServer,
    client: &Client,
    user: &str,
    database: &str,
) -> Result<()> {
    if server.options().security.mode == LoginMode::Trust {
        return Ok(());
    }
    let proved = prove(wire, server, client, user, database).await;
    match &proved {
        Ok(method) => {
            server.guesses().succeeded(client);
            tracing::info!(event = "login", user, database, peer = client.peer, method, "a client has logged in");
        }
        Err(e) => {
            let why = e.get_detail().unwrap_or_default();
            tracing::warn!(
                event = "login_failed",
                user,
                database,
                peer = client.peer,
                sqlstate = e.sqlstate(),
                why,
                "{}",
                e.message()
            );
            tokio::time::sleep(server.guesses().failed(client)).await;
        }
    }
    proved.map(drop).map_err(told)
}

/// What the client is told: nothing about why its password is wrong.
fn told(error: Error) -> Error {
    match error.sqlstate() {
        "28P01" => Error::sql("28P01", error.message().to_string()),
        _ => error,
    }
}

async fn prove<S: AsyncRead + AsyncWrite + Unpin + Send>(
    wire: &mut Wire<S>,
    server: &PgServer,
    client: &Client,
    user: &str,
    database: &str,
) -> Result<&'static str> {
    let sessions = server.sessions();
    let mut catalog = sessions.login_catalog();
    if catalog.find_role(user).is_none() {
        // It may have been made by another node a moment ago.
        sessions.login_catch_up().await?;
        catalog = sessions.login_catalog();
    }
    if is_operator(client) && catalog.role_by_id(roles::ROOT_ID).is_some_and(|r| r.name == user) {
        return Ok("operator");
    }
    let (rules, maps) = rules_of(&catalog);
    let Some(rule) = rules.find(&catalog, &client.way, database, user) else {
        return Err(Error::sql("28000", format!("no pg_hba.conf entry for {}", client.described(user, database))));
    };
    check_certificate(rule, client, user)?;
    match rule.method {
        Method::Trust => Ok("trust"),
        Method::Reject => {
            Err(Error::sql("28000", format!("pg_hba.conf rejects connection for {}", client.described(user, database))))
        }
        Method::Cert => {
            let name = client.certificate.as_deref().ok_or_else(no_certificate)?;
            match maps.allow(rule.map.as_deref(), name, user) {
                true => Ok("cert"),
                false => Err(Error::sql("28000", format!("certificate authentication failed for user \"{user}\""))),
            }
        }
        Method::Peer => match &client.system_user {
            Some((name, _)) if maps.allow(rule.map.as_deref(), name, user) => Ok("peer"),
            _ => Err(Error::sql("28000", format!("Peer authentication failed for user \"{user}\""))),
        },
        Method::Scram => password(wire, server, client, &catalog, user).await,
    }
}

/// Whether a client is whoever runs the node, or may become it: no rule locks the operator out.
fn is_operator(client: &Client) -> bool {
    // SAFETY: the call has no arguments and cannot fail.
    let own = unsafe { libc::geteuid() };
    client.way == Way::Local && client.system_user.as_ref().is_some_and(|(_, uid)| *uid == own || *uid == 0)
}

/// The rules that hold. They were read when they were set; one that a later program has written and
/// this one cannot read lets nobody in.
fn rules_of(catalog: &Catalog) -> (Rules, Maps) {
    let stored = catalog.login_rules();
    let text = stored.map(|r| r.hba.as_str()).filter(|text| !text.trim().is_empty()).unwrap_or(hba::BUILT_IN);
    let maps = stored.map(|r| r.ident.as_str()).unwrap_or_default();
    let read = Rules::parse(text).and_then(|rules| Ok((rules, Maps::parse(maps)?)));
    read.unwrap_or_else(|e| {
        tracing::error!("the rules of login cannot be read: {e}");
        Default::default()
    })
}

fn no_certificate() -> Error {
    Error::sql("28000", "connection requires a valid client certificate")
}
fn check_certificate(rule: &Rule, client: &Client, user: &str) -> Result<()> {
    match (rule.client_cert, &client.certificate) {
        (Some(_), None) => Err(no_certificate()),
        (Some(true), Some(name)) if name != user => {
            Err(Error::sql("28000", format!("certificate authentication failed for user \"{user}\"")))
        }
        _ => Ok(()),
    }
}

/// Why no password is right, for the log.
fn hindrance(role: Option<&Role>, now_micros: i64) -> Option<&'static str> {
    match role {
        None => Some("there is no such role"),
        Some(role) if role.password.is_none() => Some("the role has no password"),
        Some(role) if role.valid_until.is_some_and(|until| until < now_micros) => Some("the password has expired"),
        Some(_) => None,
    }
}

async fn password<S: AsyncRead + AsyncWrite + Unpin + Send>(
    wire: &mut Wire<S>,
    server: &PgServer,
    client: &Client,
    catalog: &Catalog,
    user: &str,
) -> Result<&'static str> {
    let role = catalog.find_role(user);
    let now = server.sessions().login_now_micros() as i64 - meridian_sql::types::context::EPOCH_2000_UNIX_MICROS;
    let mut hindered = hindrance(role, now);
    let verifier = role.and_then(|r| r.password.as_deref()).and_then(|text| Verifier::parse(text).ok());
    let verifier = verifier.unwrap_or_else(|| {
        hindered = hindered.or(Some("the verifier cannot be read"));
        Verifier::mock(&mock_secret(server, catalog), user, PlantedBugs::default())
    });
    let wrong = |why: &str| Error::sql("28P01", format!("password authentication failed for user \"{user}\"")).detail(why);

    let end_point = client.end_point.as_deref();
    let plus = end_point.map(|_| scram::PLUS.to_string());
    wire.put(&Authentication::SASL(plus.into_iter().chain([scram::PLAIN.to_string()]).collect()));
    let (mechanism, first) = frontend::sasl_initial(answer(wire).await?)?;
    let mechanism = match &mechanism[..] {
        m if m == scram::PLAIN.as_bytes() => scram::PLAIN,
        m if m == scram::PLUS.as_bytes() && end_point.is_some() => scram::PLUS,
        _ => return Err(frontend::violation("client selected an invalid SASL authentication mechanism")),
    };
    let nonce = STANDARD.encode(meridian_pki::secret::random::<18>());
    let (exchange, next) = Exchange::begin(mechanism, &first, end_point, verifier, hindered.is_some(), &nonce)?;
    wire.put(&Authentication::SASLContinue(next.into()));
    let last = answer(wire).await?;
    match exchange.finish(&last)? {
        Some(signature) => {
            wire.put(&Authentication::SASLFinal(signature.into()));
            Ok(mechanism)
        }
        None => Err(wrong(hindered.unwrap_or("the password is wrong"))),
    }
}

/// Sends what was said, and waits for the client's next message.
async fn answer<S: AsyncRead + AsyncWrite + Unpin + Send>(wire: &mut Wire<S>) -> Result<bytes::Bytes> {
    let broken = |e: std::io::Error| Error::sql("08006", e.to_string());
    wire.send().await.map_err(broken)?;
    loop {
        if let Some(message) = frontend::login(&mut wire.input)? {
            return Ok(message);
        }
        if !wire.fill().await.map_err(broken)? {
            return Err(Error::sql("08006", "the client left while it was asked for a password"));
        }
    }
}

/// The cluster's; this process's own until the catalog has one.
fn mock_secret(server: &PgServer, catalog: &Catalog) -> Secret {
    let stored = catalog.login_rules().and_then(|r| <[u8; 32]>::try_from(&r.mock_secret[..]).ok());
    Secret::new(stored.unwrap_or(*server.own_secret()))
}

/// Draws the secret that answers for unknown users are made of, if the cluster has none yet.
pub async fn prepare(sessions: &dyn SessionFactory) -> Result<()> {
    match sessions.login_catalog().login_rules().is_some_and(|r| !r.mock_secret.is_empty()) {
        true => Ok(()),
        false => sessions.store_mock_secret(meridian_pki::secret::random::<32>().to_vec()).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_take_longer_and_longer() {
        let guesses = Guesses::default();
        let (one, other) = (Client::of("10.0.0.1:5", true), Client::of("10.0.0.2:5", true));
        let waits: Vec<Duration> = (0..12).map(|_| guesses.failed(&one)).collect();
        assert!(waits.windows(2).all(|w| w[0] <= w[1]));
        assert_eq!((waits[0], waits[11]), (Guesses::FIRST, Guesses::LONGEST));
        assert_eq!(guesses.failed(&other), Guesses::FIRST);
        guesses.succeeded(&one);
        assert_eq!(guesses.failed(&one), Guesses::FIRST);
    }

    #[test]
    fn only_the_operator_is_it() {
        assert!(is_operator(&Client::local(0)));
        assert!(!is_operator(&Client::of("127.0.0.1:1", false)));
        assert_eq!(user_name(0).as_deref(), Some("root"));
    }
}
