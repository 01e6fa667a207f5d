//! How simulated clients talk to simulated nodes: one JSON frame per statement, one per answer,
//! over a simulated stream.
//!
//! It stands where the PostgreSQL protocol stands in life. The client's half is a
//! [`meridian_workload::Client`], so a client survives its node, sees its connection break, and may
//! be left without knowing what came of its COMMIT.

use crate::world::net::{self, SimStream};
use crate::world::{Host, SimRuntime};
use async_trait::async_trait;
use meridian_base::{Error, ErrorKind, Result};
use meridian_workload::{Client, Connector, Rows, Told, Value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The port that nodes serve clients on.
pub const SQL_PORT: u16 = 5432;
/// Larger frames are refused.
const FRAME_BYTES_MAX: u32 = 64 << 20;

/// A node, as far as clients go.
pub trait Gateway: Send + Sync + 'static {
    type Session: SqlSession;
    /// A new session.
    fn open(&self, database: &str) -> impl Future<Output = Result<Self::Session>> + Send;
    /// Ends the process in good order.
    fn shut_down(&self) -> impl Future<Output = ()> + Send;
}

/// A session on a node.
pub trait SqlSession: Send + 'static {
    /// Runs one statement with its parameters.
    /// Runs one statement with its parameters. With an error: what the client was told before it.
    fn run(&mut self, sql: &str, params: &[Value]) -> impl Future<Output = Answer> + Send;
}

#[derive(Serialize, Deserialize)]
struct Statement {
    sql: String,
    params: Vec<Value>,
}

/// Rows, or an error with what came before it.
pub type Answer = std::result::Result<Rows, (Error, Told)>;

async fn write_frame(stream: &mut SimStream, message: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend(body);
    stream.write_all(&frame).await
}

/// The next frame; `None` when the other side closed the stream between two.
async fn read_frame<T: DeserializeOwned>(stream: &mut SimStream) -> io::Result<Option<T>> {
    let len = match stream.read_u32().await {
        Ok(len) => len,
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(e) => return Err(e),
    };
    if len > FRAME_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {len} bytes")));
    }
    let mut body = vec![0; len as usize];
    stream.read_exact(&mut body).await?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// Serves clients until the node is taken down.
pub async fn serve(runtime: SimRuntime, gateway: Arc<impl Gateway>) -> io::Result<()> {
    let listener = net::listen(runtime.host(), &format!("{}:{SQL_PORT}", runtime.host().name)).await?;
    loop {
        let (stream, _) = listener.accept_stream().await?;
        let gateway = gateway.clone();
        tokio::spawn(async move {
            // A broken stream ends the session; there is nobody left to tell.
            let _ = serve_one(stream, gateway).await;
        });
    }
}

async fn serve_one(mut stream: SimStream, gateway: Arc<impl Gateway>) -> io::Result<()> {
    let Some(database) = read_frame::<String>(&mut stream).await? else { return Ok(()) };
    let mut session = match gateway.open(&database).await {
        Ok(session) => session,
        Err(error) => return write_frame(&mut stream, &Answer::Err((error, Told::default()))).await,
    };
    write_frame(&mut stream, &Answer::Ok(Rows::default())).await?;
    while let Some(statement) = read_frame::<Statement>(&mut stream).await? {
        let answer: Answer = session.run(&statement.sql, &statement.params).await;
        write_frame(&mut stream, &answer).await?;
    }
    Ok(())
}

/// Connects clients on one machine to the nodes of a cluster.
pub struct SimConnector {
    host: Arc<Host>,
    /// Regions in the cluster's order, each with the names of its nodes.
    regions: Arc<Vec<(String, Vec<String>)>>,
    next: AtomicUsize,
    survives_region: bool,
}

impl SimConnector {
    /// For clients on `host`.
    pub fn new(host: Arc<Host>, regions: Arc<Vec<(String, Vec<String>)>>) -> SimConnector {
        SimConnector { host, regions, next: AtomicUsize::new(0), survives_region: false }
    }
    /// Databases are to survive the loss of a region.
    pub fn surviving_regions(self, survives_region: bool) -> SimConnector {
        SimConnector { survives_region, ..self }
    }
}

#[async_trait]
impl Connector for SimConnector {
    fn regions(&self) -> Vec<String> {
        self.regions.iter().map(|(region, _)| region.clone()).collect()
    }

    fn survives_region(&self) -> bool {
        self.survives_region
    }

    async fn connect(&self, region: &str, database: &str) -> Result<Box<dyn Client>> {
        let found = self.regions.iter().find(|(name, _)| name == region);
        let (_, nodes) = found.ok_or_else(|| Error::internal(format!("no region {region} in this cluster")))?;
        let is_there = |node: &&String| !self.host.world.host(node).is_some_and(|h| h.is_retired() || h.is_lost());
        let mut nodes: Vec<&String> = nodes.iter().filter(is_there).collect();
        if nodes.is_empty() {
            // The region is lost: its clients go elsewhere.
            nodes = self.regions.iter().flat_map(|(_, nodes)| nodes).filter(is_there).collect();
        }
        let node = nodes[self.next.fetch_add(1, Ordering::Relaxed) % nodes.len()];
        let stream = net::connect(&self.host, &format!("{node}:{SQL_PORT}")).await.map_err(lost)?;
        let mut client = SimClient { stream, told: Told::default() };
        client.exchange(&database).await?;
        Ok(Box::new(client))
    }
}

struct SimClient {
    stream: SimStream,
    told: Told,
}

fn lost(error: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "08006", format!("connection lost: {error}"))
}

impl SimClient {
    async fn exchange(&mut self, message: &(impl Serialize + Sync)) -> Result<Rows> {
        self.told = Told::default();
        write_frame(&mut self.stream, message).await.map_err(lost)?;
        let answer: Option<Answer> = read_frame(&mut self.stream).await.map_err(lost)?;
        let answer = answer.ok_or_else(|| lost(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the node")))?;
        answer.map_err(|(error, told)| {
            self.told = told;
            error
        })
    }
}

#[async_trait]
impl Client for SimClient {
    async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Rows> {
        self.exchange(&Statement { sql: sql.to_string(), params: params.to_vec() }).await
    }
    async fn execute(&mut self, sql: &str) -> Result<Rows> {
        self.query(sql, &[]).await
    }
    fn told_before_error(&self) -> Told {
        self.told
    }
}
