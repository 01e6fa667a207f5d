//! A whole node of this machine: data directory, node, SQL server, and how they start and stop
//! together.

use crate::files;
use crate::first_login;
use crate::machine::MachineRuntime;
use crate::machine_memory;
use crate::open_files;
use crate::pgwire::{LoginMode, PgServer, Security as Logins, ServerOptions, prepare, refuse_while};
use crate::threads::{ProtocolThread, SessionThreads};
use meridian_base::runtime::Listener;
use meridian_base::{Error, NodeId, Result};
use meridian_node::PodConfig;
use meridian_node::security::LOCAL;
use meridian_node::{Links, Node, NodeConfig, Place, Security, Sessions, cannot_listen};
use meridian_pod::FileDoor;
use meridian_sql::session::{self, Attention};
use meridian_store::Backend;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How a node is started.
#[derive(Clone)]
pub struct ServerConfig {
    pub place: Place,
    pub data_dir: PathBuf,
    /// `host:port` for other nodes.
    pub listen: String,
    /// `host:port` for clients.
    pub sql_listen: String,
    /// `host:port` that other nodes are told; see [`NodeConfig::advertise`].
    pub advertise: Option<String>,
    /// `host:port` that other nodes and clients are told for clients. `None`: where it listens.
    pub sql_advertise: Option<String>,
    /// Nodes of the cluster, this one among them or not; see [`NodeConfig::join`].
    pub join: Vec<String>,
    /// See [`NodeConfig::founding_pause`].
    pub founding_pause: Duration,
    /// The certificates of this node; `None`: nobody is authenticated, and only this machine can
    /// connect (`--insecure`).
    pub security: Option<Security>,
    /// The pod that this node is a host of.
    pub pod: Option<PodPlace>,
    /// Delays injected between nodes, for demonstrations.
    pub links: Option<Links>,
    /// How far two nodes' clocks may be apart; the same on all nodes of a cluster.
    pub max_offset: Duration,
    /// How long versions that were replaced are kept at least.
    pub gc_ttl: Duration,
    pub pg: ServerOptions,
    /// What sessions run on.
    pub threads: SessionThreads,
    /// What heartbeats and leases run on.
    pub protocol: ProtocolThread,
    /// Free bytes of the disk that writes leave alone; see
    /// [`meridian_node::RoomOptions::kept_bytes`].
    pub kept_free: Option<u64>,
    /// Sizes that a demonstration with many nodes in one process makes smaller.
    pub memory: Memory,
    /// Bytes that the statements of this node may hold together. `None`: a part of the machine's
    /// memory, or 256 MiB with [`Memory::Small`].
    pub statement_memory: Option<usize>,
    /// Bytes of rows, and of blocks of files, that are kept because they may be read again. `None`:
    /// a part of the machine's memory, or 40 MiB with [`Memory::Small`].
    pub cache: Option<usize>,
}

/// Which pod a node is a host of.
#[derive(Clone, Debug)]
pub struct PodPlace {
    /// The pod's name, for people.
    pub name: String,
    /// Where its memory is: files whose names begin with this path.
    pub memory: PathBuf,
}

/// How much memory and disk a node prepares to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The defaults of a server.
    Server,
    /// Small caches and log segments: many nodes share one process.
    Small,
}

/// A running node with its SQL server.
pub struct Server {
    node: Node,
    pg: PgServer,
    addr: String,
    sql_addr: String,
    /// Where the socket is for clients of this machine.
    socket_dir: Option<PathBuf>,
    threads: SessionThreads,
}

/// What the statements of one of many nodes in a process may hold together.
const SMALL_STATEMENTS: usize = 256 << 20;
/// The same of caches.
const SMALL_CACHE: usize = 40 << 20;
/// How long sessions may finish their transaction when the node stops.
const DRAIN: Duration = Duration::from_secs(5);

impl Server {
    /// Starts a node and serves clients.
    pub async fn start(config: ServerConfig) -> Result<Server> {
        let is_secure = config.security.is_some();
        if !is_secure {
            check_insecure_address(&config.listen)?;
            check_insecure_address(&config.sql_listen)?;
            for told in config.advertise.iter().chain(&config.sql_advertise) {
                check_insecure_address(told)?;
            }
        }
        if config.advertise.is_none() && is_unspecified(&config.listen) {
            check_told_address(&config.listen, !config.join.is_empty())?;
        }
        let founds = config.security.as_ref().is_some_and(|s| s.token.is_none()) && config.join.is_empty();
        let data_dir = config.data_dir.clone();
        let opened = files::beside(move || open(&data_dir, is_secure, founds)).await;
        let Opened { runtime, local } = opened.map_err(|e| Error::fatal(e.to_string()))??;
        let runtime = runtime.with_protocol(&config.protocol);
        // The SQL port is taken first: its number is told to other nodes.
        let sql_listen = &config.sql_listen;
        let listening = runtime.listen_for_clients(sql_listen).await;
        let listener = listening.map_err(|e| cannot_listen(sql_listen, "clients", "--sql-listen", &e))?;
        let own_sql_addr = listener.local_addr().map_err(|e| Error::fatal(e.to_string()))?;
        let sql_addr = config.sql_advertise.unwrap_or(own_sql_addr);
        let store = Backend::Fjall { path: config.data_dir.join("store") };
        let mut node_config = NodeConfig::new(config.place, &config.listen, &sql_addr, store);
        node_config.advertise = config.advertise;
        node_config.join = config.join;
        node_config.security = config.security;
        node_config.local = Some(local);
        node_config.founding_pause = config.founding_pause;
        node_config.pod = config.pod.map(|pod| PodConfig { name: pod.name, door: Arc::new(FileDoor::new(pod.memory)) });
        node_config.links = config.links;
        node_config.max_offset = config.max_offset;
        node_config.gc_ttl = config.gc_ttl;
        node_config.room.kept_bytes = config.kept_free;
        if config.memory == Memory::Small {
            node_config.room.reserve_bytes = 4 << 20;
            node_config.log_options.segment_bytes = 8 << 20;
            node_config.store_options.dirty_bytes_max = 64 << 20;
        }
        let cache = match (config.cache, config.memory) {
            (Some(bytes), _) => bytes,
            (None, Memory::Small) => SMALL_CACHE,
            (None, Memory::Server) => files::beside(machine_memory::for_caches).await.map_err(|e| Error::fatal(e.to_string()))?,
        };
        // A row by itself takes a few times as much room as in a block, and is found sooner; scans
        // read blocks.
        node_config.store_options.cache_bytes_max = cache / 2;
        node_config.store_options.block_cache_bytes_max = cache - cache / 2;
        let hindrance = node_config.hindrance.subscribe();
        let data_dir = runtime.data_dir().to_path_buf();
        let node = refuse_while(&listener, &hindrance, Node::start(Arc::new(runtime), node_config)).await?;
        let statement_memory = match (config.statement_memory, config.memory) {
            (Some(bytes), _) => bytes,
            (None, Memory::Small) => SMALL_STATEMENTS,
            (None, Memory::Server) => {
                files::beside(machine_memory::for_statements).await.map_err(|e| Error::fatal(e.to_string()))?
            }
        };
        let shared = session::Shared::with_memory(statement_memory);
        node.set_sessions(Arc::new(Registry(shared.clone())));
        node.run_jobs(&shared, Attention::default());
        first_login::complete(&node.sessions(), &shared, &data_dir).await?;
        let files = open_files::raise_limit();
        let clients = open_files::clients_within(files, config.pg.max_connections);
        if clients < config.pg.max_connections {
            tracing::warn!("the process may open {files} files: at most {clients} clients, not {}", config.pg.max_connections);
        }
        let security = match node.tls() {
            Some(tls) => Logins { tls: Some(tls), mode: LoginMode::Rules },
            None => config.pg.security.clone(),
        };
        let has_rules = security.mode == LoginMode::Rules;
        let options = ServerOptions { max_connections: clients, security, ..config.pg };
        if has_rules && let Err(e) = prepare(&*node.sessions()).await {
            tracing::warn!("answers for unknown users are not yet the same at every node: {e}");
        }
        let pg = PgServer::new(node.sessions(), shared, options);
        let serving = pg.clone();
        let threads = config.threads.clone();
        node.spawn(async move { serving.serve(listener, threads).await });
        let (told, line) = (data_dir.join(SQL_ADDR_FILE), sql_addr.clone());
        let written = files::beside(move || files::write_line(&told, &line)).await;
        written.flatten().map_err(|e| Error::fatal(e.to_string()))?;
        let addr = node.addr();
        let mut server = Server { node, pg, addr, sql_addr, socket_dir: None, threads: config.threads };
        if has_rules {
            server.serve_here(data_dir).await;
        }
        Ok(server)
    }

    /// Serves clients of this machine on a socket in the data directory. Without it they come by
    /// TCP.
    async fn serve_here(&mut self, data_dir: PathBuf) {
        match self.serve_unix(&unix_socket(&data_dir, &self.sql_addr)).await {
            Ok(()) => self.socket_dir = Some(data_dir),
            Err(e) => tracing::warn!("no socket for clients of this machine: {}", e.message()),
        }
    }

    /// Where a client of this machine connects that runs as this process's user, without a
    /// password: the directory of a Unix socket, and the port that is part of its name. Where
    /// nobody is authenticated, the address of the port.
    pub fn local_sql_addr(&self) -> String {
        match (&self.socket_dir, self.sql_addr.rsplit_once(':')) {
            (Some(dir), Some((_, port))) => format!("{}:{port}", dir.display()),
            _ => self.sql_addr.clone(),
        }
    }
    /// Serves clients of this machine by a Unix socket as well: a file `.s.PGSQL.<port>`, which is
    /// replaced if it is there. The rules of login say who comes in; whoever runs this process
    /// does.
    pub async fn serve_unix(&self, path: &Path) -> Result<()> {
        let failed = |e: std::io::Error| Error::fatal(format!("cannot listen on {}: {e}", path.display()));
        let old = path.to_path_buf();
        files::beside(move || files::remove(&old)).await.flatten().map_err(failed)?;
        let listener = tokio::net::UnixListener::bind(path).map_err(failed)?;
        let serving = self.pg.clone();
        let threads = self.threads.clone();
        self.node.spawn(async move { serving.serve_unix(listener, threads).await });
        Ok(())
    }

    pub fn id(&self) -> NodeId {
        self.node.id()
    }
    /// Where other nodes connect.
    pub fn addr(&self) -> &str {
        &self.addr
    }
    /// Where clients connect.
    pub fn sql_addr(&self) -> &str {
        &self.sql_addr
    }
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Waits for the error that this node cannot live with.
    pub async fn failed(&self) -> Error {
        let mut failure = self.node.failure();
        match failure.wait_for(Option::is_some).await {
            Ok(e) => e.clone().expect("waited for"),
            Err(_) => Error::fatal("the node has stopped"),
        }
    }

    /// Lets sessions finish, hands leadership over, flushes, and stops.
    pub async fn shutdown(&self) {
        self.pg.shutdown(DRAIN).await;
        self.node.shutdown().await;
    }
}

/// A data directory that is held, with what its files say.
struct Opened {
    runtime: MachineRuntime,
    /// Where operators of this machine connect.
    local: String,
}

/// Opens a data directory for a start. It waits for the disk.
fn open(data_dir: &Path, is_secure: bool, founds: bool) -> Result<Opened> {
    if !is_secure {
        check_was_insecure(data_dir)?;
    }
    let runtime = MachineRuntime::open(data_dir).map_err(|e| Error::fatal(e.to_string()))?;
    if founds {
        first_login::prepare(data_dir)?;
    }
    let local = local_addr(data_dir);
    Ok(Opened { runtime, local })
}

struct Registry(Arc<session::Shared>);

impl Sessions for Registry {
    fn list(&self) -> Vec<meridian_sql::env::SessionRow> {
        self.0.sessions()
    }
    fn cancel(&self, session: meridian_base::SessionId) -> bool {
        self.0.cancel(session)
    }
    fn forget_drawn(&self, sequence: meridian_base::DescriptorId) {
        self.0.forget_drawn(sequence);
    }
}

/// The host of `host:port`.
fn host(addr: &str) -> &str {
    addr.rsplit_once(':').map_or(addr, |(host, _)| host).trim_matches(['[', ']'])
}

/// Whether an address names every interface of the machine, and so no place to connect to.
fn is_unspecified(addr: &str) -> bool {
    host(addr).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_unspecified())
}

/// A node that listens on every interface has to say which address reaches it. One that is alone
/// needs no address until another node joins it.
fn check_told_address(listen: &str, has_others: bool) -> Result<()> {
    if has_others {
        return Err(Error::fatal(format!("--listen {listen} is no address that other nodes can connect to"))
            .hint("Say in --advertise which address of this machine the others reach it at."));
    }
    tracing::warn!("--listen {listen} is no address that other nodes can connect to: for nodes to join, say --advertise");
    Ok(())
}

/// The directory of a node's certificates, in its data directory, unless another one is given.
pub fn certs_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("certs")
}

/// Where a client of the node of a data directory connects; `None`: it has not been started yet.
pub fn sql_addr_in(data_dir: &Path) -> Option<String> {
    files::text(&data_dir.join(SQL_ADDR_FILE))
}

/// Where clients connect, for commands of this machine.
const SQL_ADDR_FILE: &str = "sql.addr";

/// The socket of a data directory's node, named as PostgreSQL names its own.
fn unix_socket(dir: &Path, sql_addr: &str) -> PathBuf {
    let port = sql_addr.rsplit_once(':').map_or("", |(_, port)| port);
    dir.join(format!(".s.PGSQL.{port}"))
}

/// Where a client of this machine connects to the node of a data directory that has been started
/// with certificates, as [`Server::local_sql_addr`] tells it; `None`: by TCP alone.
pub fn local_sql_addr_in(data_dir: &Path) -> Option<String> {
    let addr = sql_addr_in(data_dir)?;
    let dir = files::from_root(data_dir);
    let (_, port) = addr.rsplit_once(':')?;
    files::exists(&unix_socket(&dir, &addr)).then(|| format!("{}:{port}", dir.display()))
}

/// Where operators of this machine connect to the node of a data directory.
pub fn local_addr(data_dir: &Path) -> String {
    let dir = files::from_root(data_dir);
    format!("{LOCAL}{}", dir.join("node.sock").display())
}

/// Whether only this machine can connect to an address.
fn is_loopback(addr: &str) -> bool {
    let host = host(addr);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Without certificates nobody is authenticated, so no other machine may connect.
fn check_insecure_address(addr: &str) -> Result<()> {
    if is_loopback(addr) {
        return Ok(());
    }
    Err(Error::fatal(format!(
        "refusing to be reached at {addr} with --insecure: other machines could reach it, and nobody is authenticated"
    ))
    .hint("Use 127.0.0.1, or start without --insecure."))
}

/// A node of a secure cluster is not started without its certificates.
fn check_was_insecure(data_dir: &Path) -> Result<()> {
    let certs = certs_dir(data_dir);
    match files::exists(&certs.join("node.crt")) {
        false => Ok(()),
        true => Err(Error::fatal(format!("{} is the directory of a secure node", data_dir.display()))
            .detail(format!("Its certificates are in {}.", certs.display()))
            .hint("Start it without --insecure.")),
    }
}

#[cfg(test)]
mod tests {
    use super::{check_insecure_address, check_told_address, is_unspecified};

    #[test]
    fn nobody_else_reaches_what_is_not_secure() {
        for addr in ["127.0.0.1:1", "localhost:0", "[::1]:5", "127.8.9.1:7"] {
            assert!(check_insecure_address(addr).is_ok(), "{addr}");
        }
        for addr in ["0.0.0.0:1", "10.1.2.3:4", "example.org:5", "[::]:5", ":5432"] {
            assert!(check_insecure_address(addr).is_err(), "{addr}");
        }
    }

    #[test]
    fn every_interface_is_no_address_to_tell_others() {
        for (addr, is_any) in [("0.0.0.0:1", true), ("[::]:5", true), ("127.0.0.1:1", false), ("db1:5", false)] {
            assert_eq!(is_unspecified(addr), is_any, "{addr}");
        }
        assert!(check_told_address("0.0.0.0:1", false).is_ok());
        assert!(check_told_address("0.0.0.0:1", true).is_err());
    }
}
