//! How a client proves who it is: by the cluster's rules of login ([`meridian_sql::catalog::hba`]).
//!
//! An unknown user and a wrong password are the same to a client: the same messages, the same work,
//! the same pause before the answer. Why a login failed is one line in the log. Logins, and failed
//! ones, are one event each; no event has anything that a password could be guessed with.

use super::clients::{Client, LoginMode, is_operator};
use super::frontend;
use super::scram::{self, Exchange};
use super::server::PgServer;
use super::wire::Wire;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use meridian_base::{DescriptorId, Error, Result};
use meridian_pki::scram::Verifier;
use meridian_pki::secret::Secret;
use meridian_sql::catalog::hba::{Maps, Method, Rule, Rules};
use meridian_sql::catalog::{Catalog, Role, ids};
use meridian_sql::session::SessionFactory;
use pgwire::messages::startup::Authentication;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// What a client has proved.
pub struct Proof {
    /// The role that it is, by its id: the name may be another's a moment later. `None`: nobody
    /// asks, or there is no such role.
    pub role: Option<DescriptorId>,
    /// How. `None`: nobody asks.
    method: Option<&'static str>,
}

impl Proof {
    /// Its session is open.
    pub fn succeeded(&self, user: &str, database: &str, client: &Client) {
        if let Some(method) = self.method {
            tracing::info!(event = "login", user, database, peer = client.peer, method, "a client has logged in");
        }
    }
    /// It may not have one all the same.
    pub fn failed(&self, user: &str, database: &str, client: &Client, error: &Error) {
        if self.method.is_some() {
            failed(user, database, client, error);
        }
    }
}

/// What a stranger has chosen stands in fields, where it is quoted.
fn failed(user: &str, database: &str, client: &Client, error: &Error) {
    let (sqlstate, reason, why) = (error.sqlstate(), error.message(), error.get_detail().unwrap_or_default());
    tracing::warn!(event = "login_failed", user, database, peer = client.peer, sqlstate, reason, why, "a login has failed");
}

/// Has a client prove that it is the user that it says it is.
pub async fn authenticate<S: AsyncRead + AsyncWrite + Unpin + Send>(
    wire: &mut Wire<S>,
    server: &PgServer,
    client: &Client,
    user: &str,
    database: &str,
) -> Result<Proof> {
    if server.options().security.mode == LoginMode::Trust {
        return Ok(Proof { role: None, method: None });
    }
    let proved = async {
        let catalog = catalog_for(server, user).await?;
        let method = prove(wire, server, client, &catalog, user, database).await?;
        Ok(Proof { role: catalog.find_role(user).map(|r| r.id), method: Some(method) })
    };
    let proved = proved.await;
    match &proved {
        Ok(_) => server.guesses().succeeded(client),
        Err(e) => {
            failed(user, database, client, e);
            tokio::time::sleep(server.guesses().failed(client)).await;
        }
    }
    proved.map_err(told)
}

/// What the client is told: nothing about why its password is wrong.
fn told(error: Error) -> Error {
    match error.sqlstate() {
        "28P01" => Error::sql("28P01", error.message().to_string()),
        _ => error,
    }
}

/// The catalog that a user is looked up in. A role that is not in it may have been made by another
/// node a moment ago.
async fn catalog_for(server: &PgServer, user: &str) -> Result<Arc<Catalog>> {
    let sessions = server.sessions();
    let catalog = sessions.login_catalog();
    if catalog.find_role(user).is_some() {
        return Ok(catalog);
    }
    sessions.login_catch_up().await?;
    Ok(sessions.login_catalog())
}

/// Returns how.
async fn prove<S: AsyncRead + AsyncWrite + Unpin + Send>(
    wire: &mut Wire<S>,
    server: &PgServer,
    client: &Client,
    catalog: &Catalog,
    user: &str,
    database: &str,
) -> Result<&'static str> {
    if is_operator(client) && catalog.role_by_id(ids::ROOT_ID).is_some_and(|r| r.name == user) {
        return Ok("operator");
    }
    let (rules, maps) = rules_of(catalog);
    let Some(rule) = rules.find(catalog, &client.way, database, user) else {
        return Err(Error::sql("28000", format!("no pg_hba.conf entry for {}", client.described(user, database))));
    };
    check_certificate(rule, client, user)?;
    match rule.method {
        Method::Trust => Ok("trust"),
        Method::Reject => {
            Err(Error::sql("28000", format!("pg_hba.conf rejects connection for {}", client.described(user, database))))
        }
        Method::Cert => {
            let name = client.certificate().ok_or_else(no_certificate)?;
            match maps.allow(rule.map.as_deref(), name, user) {
                true => Ok("cert"),
                false => Err(Error::sql("28000", format!("certificate authentication failed for user \"{user}\""))),
            }
        }
        Method::Peer => match &client.system_user {
            Some((name, _)) if maps.allow(rule.map.as_deref(), name, user) => Ok("peer"),
            _ => Err(Error::sql("28000", format!("Peer authentication failed for user \"{user}\""))),
        },
        Method::Scram => password(wire, server, client, catalog, user).await,
    }
}

/// The rules that hold. They were read when they were set; one that a later program has written and
/// this one cannot read lets nobody in.
fn rules_of(catalog: &Catalog) -> (Rules, Maps) {
    let read = Rules::parse(catalog.hba_rules()).and_then(|rules| Ok((rules, Maps::parse(catalog.ident_maps())?)));
    read.unwrap_or_else(|e| {
        tracing::error!("the rules of login cannot be read: {e}");
        Default::default()
    })
}

fn no_certificate() -> Error {
    Error::sql("28000", "connection requires a valid client certificate")
}
fn check_certificate(rule: &Rule, client: &Client, user: &str) -> Result<()> {
    match (rule.client_cert, client.certificate()) {
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
        Verifier::mock(&mock_secret(server, catalog), user, meridian_pki::Rules::ALL)
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
