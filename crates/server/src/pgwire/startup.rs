//! From the first byte to the first `ReadyForQuery` (manual, 55.2.1).

use super::clients::Client;
use super::frontend::{self, First};
use super::server::PgServer;
use super::wire::Wire;
use bytes::Bytes;
use meridian_base::{DescriptorId, Error, Result, SessionId};
use meridian_sql::parse::truncate;
use meridian_sql::session::{ClientSession, SessionFactory, SessionOptions};
use pgwire::messages::response::TransactionStatus;
use pgwire::messages::startup::{Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey};
use tokio::io::{AsyncRead, AsyncWrite};

/// The newest minor version of protocol 3 that is spoken here.
const MINOR_NEWEST: u16 = 2;
/// Bytes of a cancel key since 3.2; before it had four.
const KEY_BYTES: usize = 32;

/// What a client asked for.
pub struct Request {
    pub minor: u16,
    pub parameters: Vec<(String, String)>,
}

/// Answers requests for encryption and cancel requests until a startup message comes. `None`: the
/// connection was for something else, or ended.
pub async fn request<S: AsyncRead + AsyncWrite + Unpin + Send>(
    wire: &mut Wire<S>,
    cancel: impl Fn(i32, &Bytes),
) -> Result<Option<Request>> {
    let (mut asked_ssl, mut asked_gss) = (false, false);
    loop {
        let Some(first) = frontend::first(&mut wire.input)? else {
            match wire.fill().await {
                Ok(true) => continue,
                _ => return Ok(None),
            }
        };
        match first {
            First::Ssl if !asked_ssl => {
                asked_ssl = true;
                refuse_encryption(wire).await?;
            }
            First::GssEncryption if !asked_gss => {
                asked_gss = true;
                refuse_encryption(wire).await?;
            }
            First::Ssl | First::GssEncryption => return Err(frontend::violation("encryption was asked for twice")),
            First::Cancel { pid, key } => {
                cancel(pid, &key);
                return Ok(None);
            }
            First::Startup { major: 3, minor, parameters } => return Ok(Some(Request { minor, parameters })),
            First::Startup { major, minor, .. } => {
                let message = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{MINOR_NEWEST}");
                return Err(Error::unsupported(message));
            }
        }
    }
}

async fn refuse_encryption<S: AsyncRead + AsyncWrite + Unpin + Send>(wire: &mut Wire<S>) -> Result<()> {
    // Bytes sent before the answer would have been sent in the clear by a client that thinks
    // otherwise.
    if !wire.input.is_empty() {
        return Err(frontend::violation("received unencrypted data after a request for encryption"));
    }
    wire.put_byte(b'N');
    wire.send().await.map_err(|e| Error::sql("08006", e.to_string()))
}

/// What a client asked for, understood; not proved.
pub struct Begun {
    options: SessionOptions,
    pub user: String,
    pub database: String,
    minor: u16,
}

impl Begun {
    /// The same of a client that has proved which role it is.
    pub fn of(mut self, role: Option<DescriptorId>) -> Begun {
        self.options.role = role;
        self
    }
}

/// Reads the startup message.
pub fn begin<S: AsyncRead + AsyncWrite + Unpin + Send>(wire: &mut Wire<S>, request: Request) -> Result<Begun> {
    let mut options = SessionOptions::default();
    let mut unknown = Vec::new();
    for (name, value) in request.parameters {
        match name.as_str() {
            // As every name, they have at most 63 bytes.
            "user" => options.user = truncate(value),
            "database" => options.database = truncate(value),
            "application_name" => options.application_name = value,
            "options" => options.settings.extend(command_line(&value)?),
            "replication" if ["false", "off", "no", "0"].contains(&value.as_str()) => {}
            "replication" => return Err(Error::unsupported("the replication protocol is not supported")),
            _ if name.starts_with("_pq_.") => unknown.push(name),
            _ => options.settings.push((name, value)),
        }
    }
    if options.user.is_empty() {
        return Err(Error::sql("28000", "no PostgreSQL user name specified in startup packet"));
    }
    if options.database.is_empty() {
        options.database = options.user.clone();
    }
    // 3.1 was never released.
    let minor = if request.minor >= MINOR_NEWEST { MINOR_NEWEST } else { 0 };
    if minor != request.minor || !unknown.is_empty() {
        wire.put(&NegotiateProtocolVersion::new((3 << 16) | i32::from(minor), unknown));
    }
    Ok(Begun { user: options.user.clone(), database: options.database.clone(), options, minor })
}

/// Opens the session of a client that has proved who it is, and writes everything up to
/// `ReadyForQuery`.
pub async fn open<S: AsyncRead + AsyncWrite + Unpin + Send>(
    wire: &mut Wire<S>,
    server: &PgServer,
    begun: Begun,
    client: &Client,
    id: SessionId,
) -> Result<(Box<dyn ClientSession>, Bytes)> {
    let (options, minor) = (SessionOptions { id, encryption: client.encryption.clone(), ..begun.options }, begun.minor);
    let session = server.sessions().open(options, server.shared().clone()).await?;
    wire.put(&Authentication::Ok);
    for (name, value) in session.reported_settings() {
        wire.put(&ParameterStatus::new(name.to_string(), value));
    }
    let key = new_key(server.sessions(), if minor >= 2 { KEY_BYTES } else { 4 });
    let secret_key = match <[u8; 4]>::try_from(&key[..]) {
        Ok(four) => SecretKey::I32(i32::from_be_bytes(four)),
        Err(_) => SecretKey::Bytes(key.clone()),
    };
    wire.put(&BackendKeyData::new(meridian_sql::session::pid(id), secret_key));
    wire.ready(TransactionStatus::Idle);
    Ok((session, key))
}

fn new_key(sessions: &dyn SessionFactory, length: usize) -> Bytes {
    let mut key = Vec::with_capacity(length + 8);
    while key.len() < length {
        key.extend_from_slice(&sessions.random().to_be_bytes());
    }
    key.truncate(length);
    Bytes::from(key)
}

/// `-c name=value` and `--name=value`, as the startup parameter `options` holds them; a backslash
/// escapes a space.
fn command_line(options: &str) -> Result<Vec<(String, String)>> {
    let mut words = vec![String::new()];
    let mut chars = options.chars();
    while let Some(c) = chars.next() {
        let word = words.last_mut().expect("never empty");
        match c {
            '\\' => word.extend(chars.next()),
            c if c.is_whitespace() && !word.is_empty() => words.push(String::new()),
            c if c.is_whitespace() => {}
            c => word.push(c),
        }
    }
    let mut settings = Vec::new();
    let mut words = words.into_iter().filter(|w| !w.is_empty());
    while let Some(word) = words.next() {
        let setting = match word.as_str() {
            "-c" => words.next().unwrap_or_default(),
            w if w.starts_with("--") => w[2..].to_string(),
            w if w.starts_with("-c") => w[2..].to_string(),
            w => return Err(Error::sql("42601", format!("invalid command-line argument for server process: {w}"))),
        };
        let Some((name, value)) = setting.split_once('=') else {
            return Err(Error::sql("42601", format!("-c {setting} requires a value")));
        };
        settings.push((name.replace('-', "_"), value.to_string()));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::command_line;

    #[test]
    fn options_of_the_startup_message() {
        let settings = command_line(r"-c statement_timeout=5s  --search-path=a\ b -cwork_mem=1MB").unwrap();
        let expected = [("statement_timeout", "5s"), ("search_path", "a b"), ("work_mem", "1MB")];
        assert_eq!(settings, expected.map(|(n, v)| (n.to_string(), v.to_string())));
        assert!(command_line("-x").is_err() && command_line("-c").is_err());
    }
}
