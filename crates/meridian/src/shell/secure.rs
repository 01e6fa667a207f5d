//! How the shell proves who it is, and knows whom it talks to: TLS with libpq's `sslmode`s,
//! passwords by SCRAM (RFC 5802, RFC 7677), certificates.

use super::target::Target;
use meridian_base::{Error, ErrorKind, Result};
use meridian_pki::directory::Pair;
use meridian_pki::tls::{SslMode, client_config, end_point};
use meridian_pki::{Bundle, Certificate, Moment, PrivateKey};
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

const SSL_REQUEST: u32 = 80_877_103;

/// Whether TLS is used, and how much is asked of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    No,
    /// If the server has it.
    Prefer,
    Yes(SslMode),
}

impl Tls {
    /// libpq's `sslmode`.
    pub fn parse(mode: &str) -> Option<Tls> {
        Some(match mode {
            "disable" | "allow" => Tls::No,
            "prefer" => Tls::Prefer,
            "require" => Tls::Yes(SslMode::Require),
            "verify-ca" => Tls::Yes(SslMode::VerifyCa),
            "verify-full" => Tls::Yes(SslMode::VerifyFull),
            _ => return None,
        })
    }
}

/// A password. Not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(…)")
    }
}

/// The part of a URL that is about security.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secured {
    pub tls: Tls,
    /// The authorities to verify the server by.
    pub authorities: Option<PathBuf>,
    /// The client's certificate, and its key.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub password: Option<Password>,
}

impl Secured {
    /// The URL's, or the environment's, as for libpq: a command line is seen by others.
    pub fn password(&self) -> Option<Password> {
        self.password.clone().or_else(|| std::env::var("PGPASSWORD").ok().map(Password))
    }
}

impl Default for Secured {
    /// As libpq.
    fn default() -> Secured {
        Secured { tls: Tls::Prefer, authorities: None, certificate: None, key: None, password: None }
    }
}

fn refused(why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, "08001", why.to_string())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| refused(format!("cannot read {}: {e}", path.display())))
}

/// A connection to a server.
pub enum Shaken {
    Tls(Box<TlsStream<TcpStream>>),
    Plain(TcpStream),
}

/// The handshake with a server, if it is wanted and the server has it.
pub async fn shake_hands(target: &Target, mut stream: TcpStream) -> Result<Shaken> {
    let mode = match target.secured.tls {
        Tls::No => return Ok(Shaken::Plain(stream)),
        Tls::Prefer => SslMode::Require,
        Tls::Yes(mode) => mode,
    };
    let lost = |e: std::io::Error| refused(format!("the server at {} does not answer: {e}", target.addr()));
    let request = [8u32.to_be_bytes(), SSL_REQUEST.to_be_bytes()].concat();
    stream.write_all(&request).await.map_err(lost)?;
    match stream.read_u8().await.map_err(lost)? {
        b'S' => {}
        b'N' if target.secured.tls == Tls::Prefer => return Ok(Shaken::Plain(stream)),
        b'N' => return Err(refused(format!("the server at {} has no TLS", target.addr()))),
        _ => return Err(refused(format!("what answers at {} does not speak PostgreSQL's protocol", target.addr()))),
    }
    let now = crate::cert::now();
    let config = config(&target.secured, mode, now).map_err(refused)?;
    let name = ServerName::try_from(target.host.clone());
    let name = name.map_err(|_| refused(format!("{:?} is neither a DNS name nor an address", target.host)))?;
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let stream = connected.map_err(|e| refused(format!("{}: {}", target.addr(), meridian_pki::tls::explain(&e))))?;
    Ok(Shaken::Tls(Box::new(stream)))
}

fn config(secured: &Secured, mode: SslMode, now: Moment) -> meridian_pki::Result<tokio_rustls::rustls::ClientConfig> {
    let told = |e: Error| meridian_pki::Error::new(meridian_pki::Kind::File, e.message());
    let bundle = secured.authorities.as_ref().map(|path| Bundle::from_pem(&read(path).map_err(told)?)).transpose()?;
    let pair = match (&secured.certificate, &secured.key) {
        (Some(certificate), Some(key)) => {
            let chain = meridian_pki::verify::read_certificates(&read(certificate).map_err(told)?)?;
            Some(Pair::new(chain, PrivateKey::from_pem(&read(key).map_err(told)?)?)?)
        }
        _ => None,
    };
    // As in libpq, `prefer` encrypts and does not verify the server.
    let bundle = bundle.filter(|_| secured.tls != Tls::Prefer);
    client_config(mode, bundle, pair.as_ref(), Arc::new(move || now))
}

/// What SCRAM binds to.
pub fn end_point_of(stream: &TlsStream<TcpStream>) -> Option<Vec<u8>> {
    let shown = stream.get_ref().1.peer_certificates()?.first()?;
    end_point(&Certificate::parse(shown).ok()?)
}

/// The client's side of a login.
pub struct Login {
    password: Option<Password>,
    end_point: Option<Vec<u8>>,
    scram: Option<ScramSha256>,
    /// The server has shown that it has the password's verifier.
    is_proved: bool,
}

impl Login {
    pub fn new(target: &Target, end_point: Option<Vec<u8>>) -> Login {
        Login { password: target.secured.password(), end_point, scram: None, is_proved: false }
    }

    /// The answer to an authentication message, of the kind `p`, if there is one.
    pub fn answer(&mut self, body: &[u8]) -> Result<Option<Vec<u8>>> {
        let no_sense = || refused("the server's login makes no sense");
        let (code, rest) = body.split_first_chunk::<4>().ok_or_else(no_sense)?;
        match u32::from_be_bytes(*code) {
            0 if self.scram.is_some() && !self.is_proved => Err(refused("the server has not shown that it knows the password")),
            0 => Ok(None),
            10 => self.begin(rest).map(Some),
            11 => {
                let scram = self.scram.as_mut().ok_or_else(no_sense)?;
                scram.update(rest).map_err(refused)?;
                Ok(Some(scram.message().to_vec()))
            }
            12 => {
                self.scram.as_mut().ok_or_else(no_sense)?.finish(rest).map_err(refused)?;
                self.is_proved = true;
                Ok(None)
            }
            _ => Err(refused("the server asks for a password in a way that would tell it to others")),
        }
    }

    fn begin(&mut self, mechanisms: &[u8]) -> Result<Vec<u8>> {
        let Some(password) = &self.password else {
            let e = Error::new(ErrorKind::Unavailable, "28000", "the server wants a password, and this shell has none");
            return Err(e.hint("Put it into the URL, or into the environment as PGPASSWORD; `meridian url` prints that of root."));
        };
        let offers = |name: &str| mechanisms.split(|byte| *byte == 0).any(|offered| offered == name.as_bytes());
        let (mechanism, binding) = match self.end_point.take() {
            Some(end_point) if offers(SCRAM_SHA_256_PLUS) => {
                (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(end_point))
            }
            // The server checks this flag: it fails the login if somebody in between has removed
            // SCRAM-SHA-256-PLUS from its list (RFC 5802, section 6).
            Some(_) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
            None => (SCRAM_SHA_256, ChannelBinding::unsupported()),
        };
        if !offers(mechanism) {
            return Err(refused("the server offers no login that this shell knows"));
        }
        let scram = ScramSha256::new(password.0.as_bytes(), binding);
        let first = scram.message();
        let answer = [mechanism.as_bytes(), &[0], &(first.len() as u32).to_be_bytes(), first].concat();
        self.scram = Some(scram);
        Ok(answer)
    }
}
