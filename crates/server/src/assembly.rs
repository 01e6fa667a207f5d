//! A whole node of this machine: data directory, node, SQL server, and how they start and stop
//! together.

use crate::machine::MachineRuntime;
use crate::open_files;
use crate::pgwire::{PgServer, ServerOptions, refuse_while};
use crate::threads::{ProtocolThread, SessionThreads};
use meridian_base::runtime::Listener;
use meridian_base::{Error, NodeId, Result};
use meridian_node::{Attention, Backend, Links, Node, NodeConfig, Place, Sessions, cannot_listen, session};
use std::path::PathBuf;
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
    /// Allow addresses that other machines can reach, though nobody is authenticated yet.
    pub insecure: bool,
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
}

/// How long sessions may finish their transaction when the node stops.
const DRAIN: Duration = Duration::from_secs(5);

impl Server {
    /// Starts a node and serves clients.
    pub async fn start(config: ServerConfig) -> Result<Server> {
        for addr in [&config.listen, &config.sql_listen] {
            check_address(addr, config.insecure)?;
        }
        if config.advertise.is_none() && is_unspecified(&config.listen) {
            check_told_address(&config.listen, !config.join.is_empty())?;
        }
        let runtime = MachineRuntime::open(&config.data_dir).map_err(|e| Error::fatal(e.to_string()))?;
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
        node_config.founding_pause = config.founding_pause;
        node_config.links = config.links;
        node_config.max_offset = config.max_offset;
        node_config.gc_ttl = config.gc_ttl;
        node_config.room.kept_bytes = config.kept_free;
        if config.memory == Memory::Small {
            node_config.room.reserve_bytes = 4 << 20;
            node_config.log_options.segment_bytes = 8 << 20;
            node_config.store_options.cache_bytes_max = 32 << 20;
            node_config.store_options.block_cache_bytes_max = 8 << 20;
            node_config.store_options.dirty_bytes_max = 64 << 20;
        }
        let hindrance = node_config.hindrance.subscribe();
        let node = refuse_while(&listener, &hindrance, Node::start(Arc::new(runtime), node_config)).await?;
        let shared = session::Shared::new();
        node.set_sessions(Arc::new(Registry(shared.clone())));
        node.run_jobs(&shared, Attention::default());
        let files = open_files::raise_limit();
        let clients = open_files::clients_within(files, config.pg.max_connections);
        if clients < config.pg.max_connections {
            tracing::warn!("the process may open {files} files: at most {clients} clients, not {}", config.pg.max_connections);
        }
        let options = ServerOptions { max_connections: clients, ..config.pg };
        let pg = PgServer::new(node.sessions(), shared, options);
        let serving = pg.clone();
        tokio::spawn(async move { serving.serve(listener, config.threads).await });
        let addr = node.addr();
        Ok(Server { node, pg, addr, sql_addr })
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

/// Nobody is authenticated yet, so a node that other machines can reach must be asked for.
fn check_address(addr: &str, insecure: bool) -> Result<()> {
    let host = host(addr);
    let is_loopback = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if is_loopback || insecure {
        return Ok(());
    }
    Err(Error::fatal(format!("refusing to listen on {addr}: other machines could reach it and nobody is authenticated yet"))
        .hint("Listen on 127.0.0.1, or pass --insecure if the network is trusted."))
}

#[cfg(test)]
mod tests {
    use super::{check_address, check_told_address, is_unspecified};

    #[test]
    fn addresses_beyond_this_machine_need_the_flag() {
        for addr in ["127.0.0.1:1", "localhost:0", "[::1]:5", "127.8.9.1:7"] {
            assert!(check_address(addr, false).is_ok(), "{addr}");
        }
        for addr in ["0.0.0.0:1", "10.1.2.3:4", "example.org:5", "[::]:5", ":5432"] {
            assert!(check_address(addr, false).is_err(), "{addr}");
            assert!(check_address(addr, true).is_ok(), "{addr}");
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
