//! Who is at the other end of a connection, and how that is known.
//!
//! Between the nodes of a cluster every connection is TLS 1.3 with certificates on both sides
//! ([`meridian_pki::tls`]): a peer is the node that its certificate names, whatever it says.
//! Operators' commands come with the certificate of a role, or over a socket of the machine that
//! only the node's own user and root can open. A process without a certificate may join, and
//! nothing else.
//!
//! A cluster that was started with `--insecure`, and the simulator, have none of that: a peer is
//! who it says it is.

use crate::local::lock::RwLock;
use crate::transport::admission::Admission;
use meridian_base::runtime::{Runtime, Stream};
use meridian_base::{NodeId, Result};
use meridian_pki::join::Binding;
use meridian_pki::tls::{self, Clock, Context, Peer, Tls, name_of};
use meridian_pki::{ClusterId, Moment, Rules};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Who has sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// This node: by its certificate, or, without TLS, by what it says.
    Node(NodeId),
    /// An operator's command, as this role.
    Role(String),
    /// An operator's command over a socket of this machine, which only the node's own user may
    /// open.
    Local,
    /// Without TLS: a process that is no member.
    Stranger,
}

impl Caller {
    /// The node; 0: it is none.
    pub fn node(&self) -> NodeId {
        match self {
            Caller::Node(node) => *node,
            Caller::Role(_) | Caller::Local | Caller::Stranger => NodeId(0),
        }
    }
}

impl std::fmt::Display for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Caller::Node(node) => write!(f, "node {node}"),
            Caller::Role(role) => write!(f, "role {role:?}"),
            Caller::Local => write!(f, "this machine"),
            Caller::Stranger => write!(f, "a process that is no member"),
        }
    }
}

/// How this process's connections are protected.
#[derive(Clone)]
pub enum Protection {
    /// Not at all.
    None,
    /// As a node's.
    Node(Arc<Keys>),
    /// As those of an operator's command.
    Operator(Arc<ClientConfig>),
}

/// An address of a socket of this machine begins so.
pub const LOCAL: &str = "unix:";

/// The certificates of a node; none before it has an identity.
pub struct Keys {
    tls: RwLock<Option<Arc<Tls>>>,
    revoked: RwLock<BTreeSet<NodeId>>,
    /// Members that have ended a connection because this node was decommissioned.
    told_revoked: RwLock<BTreeSet<NodeId>>,
    pub(crate) admission: Admission,
    pub(crate) rules: Rules,
}

/// A connection that the other side has opened.
pub(crate) enum Accepted {
    Peer(Box<dyn Stream>, Caller),
    Joiner(Box<dyn Stream>, Binding),
}

/// The time, as certificates know it.
pub(crate) fn clock_of(runtime: &Arc<dyn Runtime>) -> Clock {
    let runtime = runtime.clone();
    Arc::new(move || Moment::from_micros(runtime.physical_micros()))
}

/// Bytes that are read of a peer that was refused, so that it reads why.
const FAREWELL_BYTES: u64 = 64 << 10;
const FAREWELL: Duration = Duration::from_millis(300);

impl Keys {
    pub fn new(rules: Rules) -> Arc<Keys> {
        Arc::new(Keys {
            tls: RwLock::default(),
            revoked: RwLock::default(),
            told_revoked: RwLock::default(),
            admission: Admission::default(),
            rules,
        })
    }

    /// What certificates are verified with.
    pub fn context(self: &Arc<Self>, cluster: u128, runtime: &Arc<dyn Runtime>) -> Context {
        let keys = Arc::downgrade(self);
        let revoked = move |node: NodeId| keys.upgrade().is_some_and(|keys| keys.revoked.read().contains(&node));
        Context { cluster: ClusterId(cluster), clock: clock_of(runtime), revoked: Arc::new(revoked), rules: self.rules }
    }

    /// This process is a node from now on.
    pub fn set(&self, tls: Arc<Tls>) {
        *self.tls.write() = Some(tls);
    }

    /// The node's certificates, once it has some.
    pub fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.read().clone()
    }

    /// The nodes that were decommissioned, from now on. Whether there is another one.
    pub(crate) fn revoke(&self, nodes: BTreeSet<NodeId>) -> bool {
        let mut revoked = self.revoked.write();
        let is_new = *revoked != nodes;
        *revoked = nodes;
        is_new
    }

    /// Members that have told this node that it was decommissioned.
    pub(crate) fn told_revoked(&self) -> BTreeSet<NodeId> {
        self.told_revoked.read().clone()
    }

    fn ready(&self) -> io::Result<Arc<Tls>> {
        self.tls().ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, "this process has no certificate yet"))
    }

    /// The handshake with a process that has connected.
    pub(crate) async fn accept(&self, stream: Box<dyn Stream>) -> io::Result<Accepted> {
        let tls = self.ready()?;
        let accepting = TlsAcceptor::from(tls.current().node_server.clone()).accept(stream).into_fallible();
        let stream = match accepting.await {
            Ok(stream) => stream,
            Err((e, stream)) => {
                let why = io::Error::new(io::ErrorKind::PermissionDenied, tls::explain(&e));
                let _ = tokio::time::timeout(FAREWELL, farewell(stream)).await;
                return Err(why);
            }
        };
        let (_, connection) = stream.get_ref();
        let peer = tls.peer(connection.peer_certificates(), connection.alpn_protocol());
        let peer = peer.map_err(|e| io::Error::new(io::ErrorKind::PermissionDenied, e.to_string()))?;
        match peer {
            Peer::Joiner => {
                let binding = Binding::export(connection).map_err(io::Error::other)?;
                Ok(Accepted::Joiner(Box::new(stream), binding))
            }
            Peer::Node(node) => Ok(Accepted::Peer(Box::new(stream), Caller::Node(node))),
            Peer::Role(role) => Ok(Accepted::Peer(Box::new(stream), Caller::Role(role))),
        }
    }

    /// A member has ended a connection like that.
    fn note(&self, by: NodeId, e: &io::Error) {
        if tls::is_told_revoked(e) && by != NodeId(0) {
            self.told_revoked.write().insert(by);
        }
    }
}

/// Lets the peer read the alert: a connection that is closed with bytes unread is reset.
async fn farewell(mut stream: Box<dyn Stream>) {
    let _ = stream.shutdown().await;
    let mut rest = stream.take(FAREWELL_BYTES);
    let mut bytes = [0; 1024];
    while rest.read(&mut bytes).await.is_ok_and(|n| n > 0) {}
}

impl Protection {
    /// The handshake with the node that was connected to; 0: any node of the cluster.
    pub(crate) async fn connect(&self, addr: &str, to: NodeId, stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        let config = match self {
            _ if addr.starts_with(LOCAL) => return Ok(stream),
            Protection::None => return Ok(stream),
            Protection::Node(keys) => keys.ready()?.current().node_client.clone(),
            Protection::Operator(config) => config.clone(),
        };
        let connected = TlsConnector::from(config).connect(name_of(to), stream).await;
        Ok(Box::new(connected.map_err(|e| self.explained(to, e))?))
    }

    /// Why a connection to a node has ended, as a sentence.
    pub(crate) fn explained(&self, to: NodeId, e: io::Error) -> io::Error {
        if let Protection::Node(keys) = self {
            keys.note(to, &e);
        }
        match self {
            Protection::None => e,
            _ => io::Error::new(e.kind(), tls::explain(&e)),
        }
    }

    /// The keys of a node.
    pub(crate) fn keys(&self) -> Option<&Arc<Keys>> {
        match self {
            Protection::Node(keys) => Some(keys),
            Protection::None | Protection::Operator(_) => None,
        }
    }

    /// Seals a request that another node passes on; `None` without TLS.
    pub(crate) fn seal(&self, to: NodeId, request: &[u8]) -> Result<Option<meridian_pki::seal::Seal>> {
        let Some(tls) = self.keys().and_then(|keys| keys.tls()) else { return Ok(None) };
        let sealed = tls.seal(to, request);
        sealed.map(Some).map_err(|e| meridian_base::Error::internal(format!("a request cannot be sealed: {e}")))
    }
}
