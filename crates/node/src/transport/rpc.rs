//! Connections between nodes: calls and answers over framed streams, many in flight on one
//! connection.
//!
//! A call that cannot be delivered, or is not answered in time, is `Unavailable`; whether it had an
//! effect is then unknown and the protocols above are built for that (commits are idempotent by id,
//! grants by number). Delays between regions are injected here, by the sender, in order, when a
//! [`Links`] says so: the kernel has no part in it.

mod serving;

use crate::local::lock::RwLock;
use crate::local::tasks::Tasks;
use crate::transport::backlog::{Backlog, FRAME_CAPACITY, Memory, Outgoing};
use crate::transport::frames::{self, ANSWER, CALL, take_header, write_loop};
use crate::transport::refusals::Refusals;
use crate::transport::security::{Caller, Protection};
use crate::transport::wire::{Hello, NodeRecord, PROTOCOL, Passed, Request, Response, Welcome};
use bytes::Bytes;
use futures::future::BoxFuture;
use meridian_base::runtime::Runtime;
use meridian_base::version::{ClusterVersion, Versions};
use meridian_base::{Clock, Error, GroupId, NodeId, Result, envelope, limits};
use meridian_pki::join::Binding;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::Instant;

/// A peer that does not complete the handshake in this time is treated as unreachable: several
/// times what two round trips take.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);
/// A connection on which nothing came for so long although something was asked is dropped, with
/// everything that waits on it: its node is gone without a word, or the way there is. Nodes ping
/// each other far more often, so one that lives answers something.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(2);
/// A connection that another node opened is closed when nothing was asked on it for so long. Who
/// lives pings every second.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// The largest frame of a sender without a node id: a process that joins, or a command. Their
/// messages are small, and a decoded message can take twenty times the memory of its bytes.
const STRANGER_FRAME_MAX: usize = 64 << 10;

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    pub region: String,
    pub zone: String,
}

/// What lies between places where the network has nothing: nodes on one machine that stand for a
/// cluster of several regions.
pub trait Between: Send + Sync {
    /// How long a message takes, one way.
    fn delay(&self, from: &Place, to: &Place) -> Duration;
    /// Whether nothing passes now. A connection on which something was lost stays silent until one
    /// of its ends gives it up.
    fn is_cut(&self, _from: &Place, _to: &Place) -> bool {
        false
    }
}

/// See [`Between`].
pub type Links = Arc<dyn Between>;

/// After how long a copy of a call arrives as well, for simulations: connections that break and
/// calls that are made again repeat messages, some of them late.
pub type Echoes = Arc<dyn Fn(&Request) -> Option<Duration> + Send + Sync>;

/// Answers other nodes' calls.
pub trait Handler: Send + Sync + 'static {
    fn handle(&self, from: Caller, request: Request) -> BoxFuture<'static, Response>;
    /// Answers a process without a certificate, at an address: [`meridian_pki::join`] has the
    /// messages.
    fn join(&self, addr: String, binding: Binding, ask: Vec<u8>) -> BoxFuture<'static, Vec<u8>>;
}

/// At most this many checks whether a node has moved run at once: each claim of an address makes
/// this node connect to it.
const FINDING_MAX: usize = 4;

/// The node's door to its peers.
pub struct Rpc {
    runtime: Arc<dyn Runtime>,
    clock: Arc<Clock>,
    versions: Versions,
    /// [`ClusterVersion`]: members whose programs are older are refused.
    cluster_version: AtomicU32,
    me: RwLock<Me>,
    peers: RwLock<BTreeMap<NodeId, Arc<Peer>>>,
    /// Nodes that are reached through others ([`crate::membership::reach`]).
    detours: RwLock<BTreeMap<NodeId, NodeId>>,
    links: Option<Links>,
    echoes: Option<Echoes>,
    protection: Protection,
    revoked: Revoked,
    /// Connections that others have opened, by number: whose, and how they are ended.
    served: Mutex<BTreeMap<u64, (NodeId, Arc<Notify>)>>,
    next_served: AtomicU64,
    /// The node's.
    pub(crate) tasks: Arc<Tasks>,
    refused: Refusals,
    /// The last member of a cluster that took this process, which has no identity, for a node of
    /// its own.
    claimed: Mutex<Option<(Instant, Claim)>>,
    /// Places for connections that others open.
    places: Arc<Semaphore>,
    /// What all connections keep in memory.
    memory: Memory,
    /// Held while this node looks whether another one has moved.
    finding: Semaphore,
    /// Messages of transactions to other regions, for the budget «0 cross-region messages on a
    /// local transaction's path».
    pub(crate) far_messages: AtomicU64,
}

/// Decommissioned nodes, where there are no certificates ([`Keys`](super::security::Keys)).
#[derive(Default)]
struct Revoked {
    nodes: RwLock<BTreeSet<NodeId>>,
    /// Members that have told this node that it is one of them.
    told: RwLock<BTreeSet<NodeId>>,
}

#[derive(Clone, Debug, Default)]
struct Me {
    cluster: u128,
    node: NodeId,
    place: Place,
    addr: String,
}

/// A member of a cluster takes this process for one, which it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub cluster: u128,
    /// Who, and where it listens.
    pub by: NodeId,
    pub addr: String,
    /// For which node; 0: for any.
    pub as_node: NodeId,
}

struct Peer {
    id: NodeId,
    since: Instant,
    /// Where the catalog says that it is, or the copy of its addresses
    /// ([`crate::membership::address_book`]).
    recorded: RwLock<String>,
    /// Where it was found instead ([`Rpc::find`]). The next address that is recorded takes its
    /// place.
    found: RwLock<Option<String>>,
    is_remote_region: AtomicBool,
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
}

impl Peer {
    fn addr(&self) -> String {
        self.found.read().clone().unwrap_or_else(|| self.recorded.read().clone())
    }
}

struct Connection {
    /// The node at the other end.
    to: NodeId,
    out: Backlog,
    waiting: Mutex<BTreeMap<u64, oneshot::Sender<Result<Response>>>>,
    next_call: AtomicU64,
    is_closed: AtomicBool,
    /// When something came last, or a part of a large frame went; in the future for as long as what
    /// went may be on its way.
    heard: Arc<Mutex<Instant>>,
    /// Ends the reader.
    closed: Notify,
    delay: Duration,
}

impl Connection {
    /// `false`: too much waits to be sent.
    fn send(&self, frame: Bytes, order: Option<GroupId>) -> bool {
        let at = (!self.delay.is_zero()).then(|| Instant::now() + self.delay);
        self.out.send(Outgoing { at, frame, order })
    }
    /// Whether nothing came since `since`, and that is too long ago.
    fn is_silent(&self, since: Instant) -> bool {
        Instant::now() >= (*self.heard.lock()).max(since) + SILENCE_MAX
    }
    fn close(&self, why: &Error) {
        self.is_closed.store(true, Ordering::Release);
        self.closed.notify_one();
        for (_, waiting) in std::mem::take(&mut *self.waiting.lock()) {
            let _ = waiting.send(Err(why.clone()));
        }
    }
}

fn unreachable(addr: &str, why: impl std::fmt::Display) -> Error {
    Error::unavailable(format!("node at {addr} cannot be reached")).detail(why.to_string())
}

impl Rpc {
    /// Those whom this port, or this node, has refused.
    pub(crate) fn refusals(&self) -> &Refusals {
        &self.refused
    }
    pub fn new(
        runtime: Arc<dyn Runtime>,
        clock: Arc<Clock>,
        versions: Versions,
        links: Option<Links>,
        echoes: Option<Echoes>,
    ) -> Arc<Rpc> {
        Rpc::protected(runtime, clock, versions, links, echoes, Protection::None)
    }

    /// The same, with protected connections.
    pub fn protected(
        runtime: Arc<dyn Runtime>,
        clock: Arc<Clock>,
        versions: Versions,
        links: Option<Links>,
        echoes: Option<Echoes>,
        protection: Protection,
    ) -> Arc<Rpc> {
        Arc::new(Rpc {
            tasks: Arc::new(Tasks::new(&runtime)),
            runtime,
            clock,
            versions,
            cluster_version: AtomicU32::new(ClusterVersion::FIRST.0),
            me: RwLock::default(),
            peers: RwLock::default(),
            detours: RwLock::default(),
            links,
            echoes,
            protection,
            revoked: Revoked::default(),
            served: Mutex::default(),
            next_served: AtomicU64::new(0),
            refused: Refusals::default(),
            claimed: Mutex::new(None),
            places: Arc::new(Semaphore::new(limits::RPC_CONNECTIONS_MAX)),
            finding: Semaphore::new(FINDING_MAX),
            memory: Memory::default(),
            far_messages: AtomicU64::new(0),
        })
    }

    /// Who this node is and where it listens, once it knows.
    pub fn identify(&self, cluster: u128, node: NodeId, place: Place, addr: &str) {
        *self.me.write() = Me { cluster, node, place, addr: addr.to_string() };
    }

    /// These nodes were decommissioned, and no others. Their connections end.
    pub(crate) fn revoke(&self, nodes: BTreeSet<NodeId>) {
        let is_new = match self.protection.keys() {
            Some(keys) => keys.revoke(nodes),
            None => std::mem::replace(&mut *self.revoked.nodes.write(), nodes.clone()) != nodes,
        };
        if !is_new {
            return;
        }
        let is_out = |node: NodeId| self.is_revoked(node);
        for (_, ended) in self.served.lock().values().filter(|(node, _)| is_out(*node)) {
            ended.notify_one();
        }
        for peer in self.peers.read().values().filter(|peer| is_out(peer.id)) {
            if let Some(connection) = peer.connection.try_lock().ok().and_then(|mut slot| slot.take()) {
                connection.close(&unreachable(&peer.addr(), "its node was decommissioned"));
            }
        }
    }

    /// Whether a node was decommissioned, so that nobody talks to it.
    fn is_revoked(&self, node: NodeId) -> bool {
        match self.protection.keys() {
            Some(keys) => keys.tls().is_some_and(|tls| !tls.still_admits(&meridian_pki::tls::Peer::Node(node))),
            None => self.revoked.nodes.read().contains(&node),
        }
    }

    /// Members that have told this node that it was decommissioned.
    pub(crate) fn told_revoked(&self) -> BTreeSet<NodeId> {
        let told = self.revoked.told.read().clone();
        told.into_iter().chain(self.protection.keys().into_iter().flat_map(|keys| keys.told_revoked())).collect()
    }

    /// Ends every connection, those of others as well: a node that is still trusted connects again.
    pub(crate) fn end_connections(&self) {
        self.served.lock().values().for_each(|(_, ended)| ended.notify_one());
        self.close_all("it has to show its certificate again");
    }

    /// The cluster is at this version.
    pub(crate) fn require(&self, version: ClusterVersion) {
        self.cluster_version.store(version.0, Ordering::Release);
    }

    /// What this program understands.
    pub fn versions(&self) -> Versions {
        self.versions
    }

    /// This node's cluster; 0: it is a member of none.
    pub(crate) fn cluster(&self) -> u128 {
        self.me.read().cluster
    }

    /// Who took this process for a member of a cluster less than `within` ago, while it was none.
    pub(crate) fn claimed(&self, within: Duration) -> Option<Claim> {
        self.claimed.lock().as_ref().filter(|(at, _)| at.elapsed() < within).map(|(_, claim)| claim.clone())
    }

    /// Learns (or corrects) where a node is.
    pub fn learn(&self, record: &NodeRecord) {
        let me = self.me.read();
        if record.id == me.node {
            return;
        }
        let is_remote = record.region != me.place.region;
        let mut peers = self.peers.write();
        let peer = peers.entry(record.id).or_insert_with(|| {
            Arc::new(Peer {
                id: record.id,
                since: Instant::now(),
                recorded: RwLock::new(record.addr.clone()),
                found: RwLock::default(),
                is_remote_region: AtomicBool::new(is_remote),
                connection: tokio::sync::Mutex::new(None),
            })
        });
        if *peer.recorded.read() != record.addr {
            *peer.recorded.write() = record.addr.clone();
            *peer.found.write() = None;
        }
        peer.is_remote_region.store(is_remote, Ordering::Relaxed);
    }

    /// The other nodes.
    pub(crate) fn known(&self) -> Vec<NodeId> {
        self.peers.read().keys().copied().collect()
    }

    /// Whether a node is known here.
    pub fn knows(&self, node: NodeId) -> bool {
        self.peers.read().contains_key(&node)
    }

    /// Since when a node is known here.
    pub fn known_since(&self, node: NodeId) -> Option<Instant> {
        self.peers.read().get(&node).map(|p| p.since)
    }

    /// Whether a node is known and in this node's region.
    pub fn is_near(&self, node: NodeId) -> bool {
        self.peers.read().get(&node).is_some_and(|p| !p.is_remote_region.load(Ordering::Relaxed))
    }

    /// Asks a node that this one knows.
    pub fn call(self: &Arc<Self>, to: NodeId, request: Request, timeout: Duration) -> BoxFuture<'_, Result<Response>> {
        if let Some(after) = self.echoes.as_ref().and_then(|echo| echo(&request)) {
            let (rpc, copy) = (self.clone(), request.clone());
            self.tasks.spawn(async move {
                tokio::time::sleep(after).await;
                // Whoever asked has had an answer.
                let _ = rpc.call_once(to, copy, timeout).await;
            });
        }
        // The future of a call is on the heap: it has 3 KB, and the futures of nearly all
        // statements contain one.
        Box::pin(self.call_once(to, request, timeout))
    }

    async fn call_once(self: &Arc<Self>, to: NodeId, request: Request, timeout: Duration) -> Result<Response> {
        match self.way(to) {
            Some(through) if request.may_be_relayed() => {
                let request = Passed::new(&request)?;
                let seal = self.protection.seal(to, request.bytes())?;
                let relay = Request::Relay { to, patience: timeout, request, seal };
                self.call_directly(through, relay, timeout).await
            }
            _ => self.call_directly(to, request, timeout).await,
        }
    }

    fn way(&self, to: NodeId) -> Option<NodeId> {
        self.detours.read().get(&to).copied()
    }

    /// From now on a node is called through another one, or directly again. What waits for an
    /// answer on a way that is given up waits in vain: it is told so, and asks again.
    pub(crate) fn set_detour(&self, to: NodeId, through: Option<NodeId>) {
        if self.way(to) == through {
            return;
        }
        let before = match through {
            Some(through) => self.detours.write().insert(to, through),
            None => self.detours.write().remove(&to),
        };
        tracing::info!("node {to} is reached {}", through.map_or("directly again".into(), |n| format!("through node {n}")));
        let peer = self.peers.read().get(&to).cloned();
        if before.is_none()
            && let Some(peer) = peer
            && let Some(connection) = peer.connection.try_lock().ok().and_then(|mut slot| slot.take())
        {
            connection.close(&unreachable(&peer.addr(), "it does not answer"));
        }
    }

    /// Asks a node without a detour.
    pub(crate) async fn call_directly(self: &Arc<Self>, to: NodeId, request: Request, timeout: Duration) -> Result<Response> {
        let peer = self.peers.read().get(&to).cloned();
        let peer = peer.ok_or_else(|| Error::unavailable(format!("node {to} is not known here")))?;
        if peer.is_remote_region.load(Ordering::Relaxed) && request.is_of_transaction() {
            self.far_messages.fetch_add(1, Ordering::Relaxed);
        }
        let addr = peer.addr();
        let deadline = Instant::now() + timeout;
        let connection = self.connected(&peer, &addr, deadline).await?;
        let sent = Instant::now();
        let ask = self.ask(&connection, &addr, request, deadline);
        tokio::pin!(ask);
        loop {
            // Looked at again when it is due at the earliest.
            let due = (*connection.heard.lock()).max(sent) + SILENCE_MAX;
            tokio::select! {
                biased;
                answer = &mut ask => return answer,
                () = tokio::time::sleep_until(due) => {
                    if connection.is_silent(sent) {
                        connection.close(&unreachable(&addr, "nothing was heard of it"));
                    }
                }
            }
        }
    }

    /// Whether there is a connection to a node, or can be. If not, nothing that is sent to it now
    /// is ever delivered.
    pub async fn reach(self: &Arc<Self>, to: NodeId, timeout: Duration) -> Result<()> {
        let to = self.way(to).unwrap_or(to);
        let peer = self.peers.read().get(&to).cloned();
        let peer = peer.ok_or_else(|| Error::unavailable(format!("node {to} is not known here")))?;
        let addr = peer.addr();
        self.connected(&peer, &addr, Instant::now() + timeout).await.map(drop)
    }

    async fn connected(self: &Arc<Self>, peer: &Peer, addr: &str, deadline: Instant) -> Result<Arc<Connection>> {
        let Ok(mut slot) = tokio::time::timeout_at(deadline, peer.connection.lock()).await else {
            return Err(unreachable(addr, "timed out"));
        };
        match &*slot {
            Some(c) if !c.is_closed.load(Ordering::Acquire) => Ok(c.clone()),
            _ => {
                let c = Box::pin(self.connect(addr, peer.id)).await?;
                *slot = Some(c.clone());
                Ok(c)
            }
        }
    }

    /// Whether a node answers at an address.
    pub(crate) async fn is_at(self: &Arc<Self>, node: NodeId, addr: &str) -> bool {
        match self.connect(addr, node).await {
            Ok(connection) => {
                connection.close(&unreachable(addr, "closed"));
                true
            }
            Err(_) => false,
        }
    }

    /// Which node of this cluster answers at an address; 0: a process that is no member yet.
    pub(crate) async fn who_is_at(self: &Arc<Self>, addr: &str) -> Result<NodeId> {
        let connection = self.connect(addr, NodeId(0)).await?;
        connection.close(&unreachable(addr, "closed"));
        Ok(connection.to)
    }

    /// Whether a member that this node knows says that it is at another address than the one where
    /// it is called.
    fn is_elsewhere(&self, node: NodeId, addr: &str) -> bool {
        let peer = self.peers.read().get(&node).cloned();
        !addr.is_empty() && peer.is_some_and(|peer| peer.addr() != addr)
    }

    /// Whether a node was found at another address than this one.
    pub(crate) fn has_left(&self, node: NodeId, addr: &str) -> bool {
        let peer = self.peers.read().get(&node).cloned();
        peer.is_some_and(|peer| peer.found.read().as_ref().is_some_and(|found| found != addr))
    }

    /// Calls a node at another address from now on, if it answers there and nobody answers for it
    /// where it was called so far. When all nodes of a cluster have moved, no catalog says where
    /// they are, and this is how they meet again.
    pub(crate) async fn find(self: &Arc<Self>, node: NodeId, addr: &str) {
        let Ok(_one) = self.finding.try_acquire() else { return };
        if !self.is_elsewhere(node, addr) {
            return;
        }
        let Some(peer) = self.peers.read().get(&node).cloned() else { return };
        let before = peer.addr();
        if self.is_at(node, &before).await || !self.is_at(node, addr).await {
            return;
        }
        tracing::info!("node {node} answers at {addr}, and no more at {before}");
        let is_recorded = *peer.recorded.read() == addr;
        *peer.found.write() = (!is_recorded).then(|| addr.to_string());
    }

    /// Asks the node that listens at an address: for joining, and for the status.
    pub async fn call_addr(self: &Arc<Self>, addr: &str, request: Request, timeout: Duration) -> Result<Response> {
        let connection = self.connect(addr, NodeId(0)).await?;
        let answer = self.ask(&connection, addr, request, Instant::now() + timeout).await;
        connection.close(&unreachable(addr, "closed"));
        answer
    }

    async fn ask(&self, c: &Connection, addr: &str, request: Request, deadline: Instant) -> Result<Response> {
        let call = c.next_call.fetch_add(1, Ordering::Relaxed);
        let (tx, rx) = oneshot::channel();
        c.waiting.lock().insert(call, tx);
        let frame = self.frame(CALL, call, &request);
        if !frame.as_ref().is_ok_and(|frame| c.send(frame.clone(), request.order())) {
            c.waiting.lock().remove(&call);
            frame?;
            return Err(unreachable(addr, "too much waits to be sent to it"));
        }
        if c.is_closed.load(Ordering::Acquire) {
            c.waiting.lock().remove(&call);
            return Err(unreachable(addr, "connection closed"));
        }
        match tokio::time::timeout_at(deadline, rx).await {
            Ok(Ok(Ok(Response::Error(e)))) => Err(e),
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(unreachable(addr, "connection closed")),
            Err(_) => {
                c.waiting.lock().remove(&call);
                Err(unreachable(addr, "no answer in time"))
            }
        }
    }

    fn frame<T: serde::Serialize>(&self, kind: u8, call: u64, body: &T) -> Result<Bytes> {
        let clock = self.clock.now(self.runtime.physical_micros());
        let frame = frames::frame(kind, call, clock, FRAME_CAPACITY, |writer| postcard::to_io(body, writer).map(drop))
            .map_err(|e| Error::internal(format!("a message does not encode: {e}")))?;
        let len = frame.len() - 4;
        if len > limits::RPC_FRAME_BYTES_MAX {
            return Err(Error::sql("54000", "message between nodes too large")
                .detail(format!("{len} bytes; the limit is {}", limits::RPC_FRAME_BYTES_MAX)));
        }
        Ok(frame)
    }

    /// Connects to a node, or with 0 to any node that listens there.
    async fn connect(self: &Arc<Self>, addr: &str, to: NodeId) -> Result<Arc<Connection>> {
        let me = self.me.read().clone();
        let handshake = async {
            let stream = self.runtime.connect(addr).await.map_err(|e| unreachable(addr, e))?;
            let mut stream = self.protection.connect(addr, to, stream).await.map_err(|e| unreachable(addr, e))?;
            let hello = Hello {
                protocol: PROTOCOL,
                cluster: me.cluster,
                node: me.node,
                region: me.place.region.clone(),
                zone: me.place.zone.clone(),
                to,
                addr: me.addr.clone(),
                versions: self.versions,
            };
            let explained = |e: io::Error| unreachable(addr, self.protection.explained(to, e));
            write_plain(&mut stream, &hello).await.map_err(explained)?;
            let welcome: Welcome = read_plain(&mut stream).await.map_err(explained)?;
            Ok((stream, welcome))
        };
        let (stream, welcome) =
            tokio::time::timeout(CONNECT_TIMEOUT, handshake).await.map_err(|_| unreachable(addr, "timed out"))??;
        let (node, there) = match welcome {
            Welcome::Accepted { node, .. } | Welcome::Elsewhere(node) if to != NodeId(0) && node != to => {
                let is = if node == NodeId(0) { "no member of a cluster".to_string() } else { format!("node {node}") };
                return Err(unreachable(addr, format!("who answers there is {is}, and not node {to}")));
            }
            Welcome::Accepted { versions, .. } if !versions.meet(&self.versions) => {
                return Err(Error::new(meridian_base::ErrorKind::Fatal, "08004", strange_program(self.versions, versions)));
            }
            Welcome::Accepted { node, region, zone, versions: _ } => (node, Place { region, zone }),
            Welcome::Elsewhere(_) => return Err(unreachable(addr, "it takes itself for somebody else")),
            Welcome::Revoked => {
                if to != NodeId(0) {
                    self.revoked.told.write().insert(to);
                }
                let why = "this node was decommissioned";
                return Err(Error::new(meridian_base::ErrorKind::Fatal, "08004", why));
            }
            Welcome::Refused(why) => return Err(Error::new(meridian_base::ErrorKind::Fatal, "08004", why)),
        };
        let delay = self.delay_to(&me.place, &there);
        let passes = self.passage(me.place, there);
        if !passes() {
            return Err(unreachable(addr, "timed out"));
        }
        let (read, write) = tokio::io::split(stream);
        let (out, outgoing, account) = self.memory.backlog();
        let heard = Arc::new(Mutex::new(Instant::now()));
        let connection = Arc::new(Connection {
            to: node,
            out,
            waiting: Mutex::default(),
            next_call: AtomicU64::new(1),
            is_closed: AtomicBool::new(false),
            heard: heard.clone(),
            closed: Notify::new(),
            delay,
        });
        self.tasks.spawn_protocol(write_loop(self.runtime.clone(), write, outgoing, account, Some(heard), passes));
        let (rpc, c, addr) = (self.clone(), connection.clone(), addr.to_string());
        self.tasks.spawn_protocol(async move {
            let why = tokio::select! {
                biased;
                why = rpc.read_answers(read, &c) => why,
                () = c.closed.notified() => "closed".into(),
            };
            c.close(&unreachable(&addr, why));
        });
        Ok(connection)
    }

    /// Ends all calls that still wait for an answer.
    pub(crate) fn disconnect(&self) {
        self.close_all("this node stops");
    }

    fn close_all(&self, why: &str) {
        for peer in self.peers.read().values() {
            if let Some(connection) = peer.connection.try_lock().ok().and_then(|mut slot| slot.take()) {
                connection.close(&unreachable(&peer.addr(), why));
            }
        }
    }

    fn delay_to(&self, from: &Place, to: &Place) -> Duration {
        // Whoever has no place (a node that joins, a status command) is not delayed.
        match &self.links {
            Some(links) if !from.region.is_empty() && !to.region.is_empty() => links.delay(from, to),
            _ => Duration::ZERO,
        }
    }

    /// What a writer asks before it sends something.
    fn passage(&self, from: Place, to: Place) -> impl Fn() -> bool + Send + 'static {
        let links = self.links.clone();
        move || links.as_ref().is_none_or(|links| !links.is_cut(&from, &to))
    }

    async fn read_answers<S: AsyncRead + Unpin>(&self, stream: S, c: &Connection) -> String {
        let mut frames = frames::Reader::new(stream, &self.memory, Some(&c.heard));
        loop {
            match frames.next().await {
                Ok(Some(mut frame)) => {
                    let (kind, call, hlc) = take_header(&mut frame);
                    let followed = self.clock.observe(hlc, self.runtime.physical_micros());
                    if kind != ANSWER {
                        return format!("unexpected frame of kind {kind}");
                    }
                    let answer = envelope::decode(&frame).map_err(|e| Error::internal(format!("malformed answer: {e}")));
                    if let Err(e) = followed
                        && !answer.as_ref().is_ok_and(Response::needs_no_clock)
                    {
                        return format!("its clock is {} ms ahead of this node's", e.ahead_by.as_millis());
                    }
                    if let Some(waiting) = c.waiting.lock().remove(&call) {
                        let _ = waiting.send(answer);
                    }
                }
                Ok(None) => return "connection closed".into(),
                Err(e) => return e.to_string(),
            }
        }
    }
}

/// Programs that have no version in common would misread each other.
fn strange_program(caller: Versions, called: Versions) -> String {
    format!("the program that calls understands cluster versions {caller}, the one that is called {called}: none in common")
}

const GREETING_BYTES_MAX: usize = 4096;

async fn write_plain<S: AsyncWrite + Unpin, T: serde::Serialize>(stream: &mut S, value: &T) -> io::Result<()> {
    write_message(stream, &envelope::encode(value)).await
}

async fn read_plain<S: AsyncRead + Unpin, T: serde::de::DeserializeOwned>(stream: &mut S) -> io::Result<T> {
    envelope::decode(&read_body(stream).await?).map_err(io::Error::other)
}

async fn read_body<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Bytes> {
    read_message(stream, GREETING_BYTES_MAX).await
}

/// Writes a message with its length before it.
pub(crate) async fn write_message<S: AsyncWrite + Unpin>(stream: &mut S, message: &[u8]) -> io::Result<()> {
    stream.write_all(&[&(message.len() as u32).to_be_bytes(), message].concat()).await?;
    stream.flush().await
}

/// Reads one of at most `most` bytes.
pub(crate) async fn read_message<S: AsyncRead + Unpin>(stream: &mut S, most: usize) -> io::Result<Bytes> {
    let len = stream.read_u32().await? as usize;
    if len > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "this is not a Meridian node"));
    }
    let mut body = vec![0; len];
    stream.read_exact(&mut body).await?;
    Ok(body.into())
}
