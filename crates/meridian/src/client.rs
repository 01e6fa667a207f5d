//! Workloads over PostgreSQL's protocol: a driver behind `workload`'s client trait.

use async_trait::async_trait;
use futures::StreamExt;
use meridian_base::{Error, ErrorKind, Result};
use meridian_workload::client::{Client, Connector, Rows, Told, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{NoTls, SimpleQueryMessage, Statement};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The way to a server that is not a plain socket.
#[async_trait]
pub trait Dial: Send + Sync {
    /// A stream to the server at an address, after a handshake if there is one.
    async fn dial(&self, addr: &str) -> Result<Box<dyn Duplex>>;
    /// What to log in with there.
    fn password(&self, addr: &str) -> Option<String>;
}

/// Bytes both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

/// Connects to the nodes of each region in turn.
pub struct PgConnector {
    /// Region → `host:port`s. In order: the first region is where databases are created.
    regions: Vec<(String, Vec<String>)>,
    turns: BTreeMap<String, AtomicUsize>,
    user: String,
    knows_regions: bool,
    /// As in `-c name=value`, for every session.
    options: String,
    dial: Option<Arc<dyn Dial>>,
}

impl PgConnector {
    /// As `user`; a plain PostgreSQL does not know regions.
    pub fn new(regions: Vec<(String, Vec<String>)>, user: &str, knows_regions: bool) -> PgConnector {
        let turns = regions.iter().map(|(r, _)| (r.clone(), AtomicUsize::new(0))).collect();
        PgConnector { regions, turns, user: user.to_string(), knows_regions, options: String::new(), dial: None }
    }
    /// The same by another way than plain sockets.
    pub fn dialing(self, dial: Arc<dyn Dial>) -> PgConnector {
        PgConnector { dial: Some(dial), ..self }
    }
    /// To the same nodes, with a setting that every session begins with.
    pub fn with_setting(&self, name: &str, value: &str) -> PgConnector {
        let mut other = PgConnector::new(self.regions.clone(), &self.user, self.knows_regions);
        other.options = format!("{} -c {name}={value}", self.options).trim().to_string();
        other.dial = self.dial.clone();
        other
    }
}

#[async_trait]
impl Connector for PgConnector {
    fn regions(&self) -> Vec<String> {
        self.regions.iter().map(|(r, _)| r.clone()).collect()
    }
    fn knows_regions(&self) -> bool {
        self.knows_regions
    }
    async fn connect(&self, region: &str, database: &str) -> Result<Box<dyn Client>> {
        let found = self.regions.iter().find(|(r, _)| r == region);
        let (_, addrs) = found.ok_or_else(|| Error::sql("22023", format!("no node is known in region \"{region}\"")))?;
        let turn = self.turns[region].fetch_add(1, Ordering::Relaxed);
        let addr = &addrs[turn % addrs.len()];
        Ok(Box::new(PgClient::connect_with(addr, &self.user, database, &self.options, self.dial.as_deref()).await?))
    }
}

/// One connection.
pub struct PgClient {
    client: tokio_postgres::Client,
    /// Prepared statements, by text.
    prepared: HashMap<String, Statement>,
    told: Told,
}

impl PgClient {
    pub async fn connect(addr: &str, user: &str, database: &str) -> Result<PgClient> {
        PgClient::connect_with(addr, user, database, "", None).await
    }

    /// The same by another way than a plain socket.
    pub async fn dial(addr: &str, user: &str, database: &str, dial: &dyn Dial) -> Result<PgClient> {
        PgClient::connect_with(addr, user, database, "", Some(dial)).await
    }

    async fn connect_with(addr: &str, user: &str, database: &str, options: &str, dial: Option<&dyn Dial>) -> Result<PgClient> {
        let (host, port) = addr.rsplit_once(':').ok_or_else(|| Error::sql("08001", format!("not an address: {addr}")))?;
        let mut config = tokio_postgres::Config::new();
        config.host(host.trim_matches(['[', ']'])).port(port.parse().unwrap_or(0)).user(user).dbname(database);
        config.connect_timeout(CONNECT_TIMEOUT);
        if !options.is_empty() {
            config.options(options);
        }
        // The end of a connection shows in the next statement.
        let client = match dial {
            None => {
                let (client, connection) = config.connect(NoTls).await.map_err(|e| driver_error(&e))?;
                tokio::spawn(connection);
                client
            }
            Some(dial) => {
                if let Some(password) = dial.password(addr) {
                    config.password(password);
                }
                // The stream is what it is to be: the driver asks for no TLS in it.
                config.ssl_mode(SslMode::Disable);
                let connected = async {
                    let stream = dial.dial(addr).await?;
                    config.connect_raw(stream, NoTls).await.map_err(|e| driver_error(&e))
                };
                let late = |_| Error::new(ErrorKind::Unavailable, "08001", format!("{addr} does not answer"));
                let (client, connection) = tokio::time::timeout(CONNECT_TIMEOUT, connected).await.map_err(late)??;
                tokio::spawn(connection);
                client
            }
        };
        Ok(PgClient { client, prepared: HashMap::new(), told: Told::default() })
    }
}

#[async_trait]
impl Client for PgClient {
    async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Rows> {
        self.told = Told::default();
        let statement = match self.prepared.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.client.prepare(sql).await.map_err(|e| driver_error(&e))?;
                self.prepared.insert(sql.to_string(), statement.clone());
                statement
            }
        };
        let arguments = params.iter().zip(statement.params()).map(|(v, ty)| argument(v, ty)).collect::<Result<Vec<_>>>()?;
        let arguments = arguments.iter().map(|a| &**a as &(dyn ToSql + Sync));
        let mut stream = std::pin::pin!(self.client.query_raw(&statement, arguments).await.map_err(|e| driver_error(&e))?);
        let mut rows = Vec::new();
        while let Some(row) = stream.next().await {
            match row {
                Ok(row) => rows.push((0..row.len()).map(|i| value(&row, i)).collect::<Result<_>>()?),
                Err(e) => {
                    self.told = Told { rows: rows.len() as u64, tags: u64::from(stream.rows_affected().is_some()) };
                    return Err(driver_error(&e));
                }
            }
        }
        let affected = stream.rows_affected().unwrap_or(0);
        Ok(Rows { rows, affected })
    }

    async fn execute(&mut self, sql: &str) -> Result<Rows> {
        self.told = Told::default();
        let mut answer = Rows::default();
        let mut tags = 0;
        let mut stream = std::pin::pin!(self.client.simple_query_raw(sql).await.map_err(|e| driver_error(&e))?);
        while let Some(message) = stream.next().await {
            match message {
                Ok(SimpleQueryMessage::Row(row)) => answer
                    .rows
                    .push((0..row.len()).map(|i| row.get(i).map_or(Value::Null, |t| Value::Text(t.to_string()))).collect()),
                Ok(SimpleQueryMessage::CommandComplete(n)) => {
                    answer.affected = n;
                    tags += 1;
                }
                Ok(_) => {}
                Err(e) => {
                    self.told = Told { rows: answer.rows.len() as u64, tags };
                    return Err(driver_error(&e));
                }
            }
        }
        Ok(answer)
    }

    fn told_before_error(&self) -> Told {
        self.told
    }
}

/// A driver's error with the server's SQLSTATE; 08006 if there is no server any more.
pub fn driver_error(e: &tokio_postgres::Error) -> Error {
    let Some(db) = e.as_db_error() else {
        let state = if e.is_closed() { "08006" } else { "08001" };
        let why = std::error::Error::source(e).map_or(String::new(), |why| format!(": {why}"));
        return Error::new(ErrorKind::Unavailable, state, format!("{e}{why}"));
    };
    let kind = match db.code().code() {
        "40001" | "40P01" => ErrorKind::Retry,
        "40003" => ErrorKind::Unknown,
        state if state.starts_with("08") || state.starts_with("57P") => ErrorKind::Unavailable,
        _ => ErrorKind::Statement,
    };
    let mut error = Error::new(kind, db.code().code(), db.message());
    if let Some(detail) = db.detail() {
        error = error.detail(detail);
    }
    if let Some(hint) = db.hint() {
        error = error.hint(hint);
    }
    error
}

type Argument = Box<dyn ToSql + Sync + Send>;

fn argument(value: &Value, ty: &Type) -> Result<Argument> {
    Ok(match (value, ty) {
        (Value::Null, _) => Box::new(Option::<Text>::None),
        (Value::Bool(b), _) => Box::new(*b),
        (Value::Int(i), &Type::INT2) => Box::new(i16::try_from(*i).map_err(|_| out_of_range(*i, ty))?),
        (Value::Int(i), &Type::INT4) => Box::new(i32::try_from(*i).map_err(|_| out_of_range(*i, ty))?),
        (Value::Int(i), &Type::INT8) => Box::new(*i),
        (Value::Float(f), &Type::FLOAT4) => Box::new(*f as f32),
        (Value::Float(f), &Type::FLOAT8) => Box::new(*f),
        (Value::Int(i), &Type::FLOAT8) => Box::new(*i as f64),
        (other, _) => Box::new(Text(other.to_string())),
    })
}

fn out_of_range(i: i64, ty: &Type) -> Error {
    Error::sql("22003", format!("{i} is out of range for {ty}"))
}

/// A value in text format, of whatever type the server expects.
#[derive(Debug)]
struct Text(String);

impl ToSql for Text {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut tokio_postgres::types::private::BytesMut,
    ) -> std::result::Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(tokio_postgres::types::IsNull::No)
    }
    fn accepts(_: &Type) -> bool {
        true
    }
    fn encode_format(&self, _: &Type) -> tokio_postgres::types::Format {
        tokio_postgres::types::Format::Text
    }
    tokio_postgres::types::to_sql_checked!();
}

/// A UUID in its text form.
struct Uuid(String);

impl FromSql<'_> for Uuid {
    fn from_sql(_: &Type, raw: &[u8]) -> std::result::Result<Uuid, Box<dyn std::error::Error + Sync + Send>> {
        let bytes: [u8; 16] = raw.try_into()?;
        let hex = format!("{:032x}", u128::from_be_bytes(bytes));
        Ok(Uuid(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])))
    }
    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }
}

fn value(row: &tokio_postgres::Row, i: usize) -> Result<Value> {
    let failed = |e: tokio_postgres::Error| Error::internal(format!("column {i}: {e}"));
    Ok(match *row.columns()[i].type_() {
        Type::BOOL => row.try_get::<_, Option<bool>>(i).map_err(failed)?.map_or(Value::Null, Value::Bool),
        Type::INT2 => row.try_get::<_, Option<i16>>(i).map_err(failed)?.map_or(Value::Null, |v| Value::Int(v.into())),
        Type::INT4 => row.try_get::<_, Option<i32>>(i).map_err(failed)?.map_or(Value::Null, |v| Value::Int(v.into())),
        Type::INT8 => row.try_get::<_, Option<i64>>(i).map_err(failed)?.map_or(Value::Null, Value::Int),
        Type::FLOAT4 => row.try_get::<_, Option<f32>>(i).map_err(failed)?.map_or(Value::Null, |v| Value::Float(v.into())),
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(i).map_err(failed)?.map_or(Value::Null, Value::Float),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN => {
            row.try_get::<_, Option<String>>(i).map_err(failed)?.map_or(Value::Null, Value::Text)
        }
        Type::UUID => row.try_get::<_, Option<Uuid>>(i).map_err(failed)?.map_or(Value::Null, |u| Value::Text(u.0)),
        ref other => return Err(Error::unsupported(format!("workloads do not read columns of type {other}"))),
    })
}
