//! What all parts of a node share: who it is, its replicas, and where the primaries are.

use crate::catalog::CatalogCache;
use crate::gateway::txn::{Protocol, Tally};
use crate::local::lifecycle::Lifecycle;
use crate::local::lock::RwLock;
use crate::local::room::Left;
use crate::membership::freshness::Freshness;
use crate::replica::Replica;
use crate::replica::common::Common;
use crate::transport::rpc::{Place, Rpc};
use crate::transport::wire::{GroupStatus, NodeStatus, PreparedTransaction, Silence};
use meridian_base::runtime::Runtime;
use meridian_base::{Clock, DescriptorId, Error, GroupId, NodeId, Timestamp};
use meridian_sql::env::SessionRow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A node that has not answered for this long is not live: placement gives it nothing new, its
/// sessions' queue entries go.
pub const LIVENESS_TIMEOUT: Duration = Duration::from_secs(5);
/// A primary that said so as long ago is taken to be there still: two pings.
pub(crate) const PRIMARY_HEARD_FOR: Duration = Duration::from_millis(1_200);
/// A node that has not answered for this long is dead: its replicas are made anew elsewhere. A
/// restart takes less, and so does most of what happens to a machine's network; copying everything
/// a node holds is not done lightly.
pub const DEAD_AFTER_DEFAULT: Duration = Duration::from_secs(300);

/// The node behind sessions, calls and background tasks.
pub struct Shared {
    /// What its replicas have in common.
    pub(crate) common: Arc<Common>,
    /// Who it is, and how it ends.
    pub(crate) life: Arc<Lifecycle>,
    pub clock: Arc<Clock>,
    pub rpc: Arc<Rpc>,
    pub catalog: Arc<CatalogCache>,
    pub place: Place,
    /// Where other nodes connect.
    pub(crate) addr: String,
    pub(crate) replicas: RwLock<BTreeMap<GroupId, Arc<Replica>>>,
    /// Serializes the making of replicas.
    pub(crate) making_replica: tokio::sync::Mutex<()>,
    pub(crate) peers: RwLock<BTreeMap<NodeId, PeerState>>,
    leaders: RwLock<BTreeMap<GroupId, (NodeId, u64)>>,
    pub(crate) freshness: Freshness,
    pub(crate) clocks: crate::membership::offsets::Clocks,
    pub(crate) ddl: crate::catalog::steps::Inbox,
    /// What is newer than the replicas in this region.
    pub(crate) overlay: crate::gateway::txn::overlay::Overlay,
    /// Sessions that were refused because a replica was behind.
    pub(crate) refusals: crate::gateway::txn::stale::Refusals,
    pub(crate) ages: crate::gateway::txn::ages::Ages,
    /// Where its transactions wait for rows while they hold others elsewhere.
    pub(crate) waiting: crate::gateway::txn::deadlock::Waiting,
    /// What sessions read in attempts whose round failed.
    pub(crate) scripts: crate::gateway::txn::reserving::Scripts,
    /// Transactions of this gateway that wait for votes.
    pub(crate) ballots: crate::gateway::txn::Ballots,
    protocol: crate::gateway::txn::protocol::Choice,
    pub(crate) tally: parking_lot::Mutex<crate::gateway::txn::Tally>,
    /// See [`DEAD_AFTER_DEFAULT`].
    pub(crate) dead_after: Duration,
    /// Bounds what it passes on for others at once.
    pub(crate) relaying: tokio::sync::Semaphore,
    /// Groups that this node has left.
    pub(crate) departures: crate::membership::departures::Departures,
    /// Groups that this node holds a replica of, whatever its files say.
    pub(crate) holdings: crate::membership::holdings::Holdings,
    /// What this process answers while it has no identity.
    pub(crate) founding: crate::membership::pledges::Founding,
    /// A permit for each thread that computes for a session ([`crate::gateway::env`]). The others wait in
    /// line.
    pub(crate) computing: Arc<tokio::sync::Semaphore>,
    /// The sessions of this node, kept by `server`.
    pub sessions: RwLock<Option<Arc<dyn Sessions>>>,
    /// The last to be dropped: the data directory is let go when the store is closed.
    pub runtime: Arc<dyn Runtime>,
}

/// The registry of this node's client sessions.
pub trait Sessions: Send + Sync + 'static {
    fn list(&self) -> Vec<SessionRow>;
    fn cancel(&self, session: meridian_base::SessionId) -> bool;
    /// Forgets the numbers drawn of a sequence.
    fn forget_drawn(&self, sequence: DescriptorId);
}

/// What pings told of another node.
#[derive(Clone, Debug)]
pub(crate) struct PeerState {
    pub heard: Instant,
    /// When it last answered a ping of this node.
    pub answered: Instant,
    /// Whom it hears both ways.
    pub hears: Vec<NodeId>,
    pub round_trip: Duration,
    pub incarnation: u64,
    pub leads: Vec<(GroupId, u64)>,
    pub holds: Vec<GroupId>,
    /// How much room its disk has, and groups that it leads for which that is not enough.
    pub left: Left,
    pub full: BTreeMap<GroupId, Left>,
    /// Groups that it holds and that are lost, as far as it knows.
    pub lost: BTreeMap<GroupId, Silence>,
    /// The oldest moment that its transactions may still read.
    pub protected: Timestamp,
    /// Its physical clock minus this node's, as well as a round trip can tell, and how well that
    /// is.
    pub clock_offset_micros: i64,
}

/// How many threads at most compute for sessions at the same time: each request needs a thread of
/// its own, and a thousand clients may send large texts.
const COMPUTING_MAX: usize = 4;

/// Where a group's primary is, as far as this node knows.
pub(crate) enum Route {
    Local(Arc<Replica>),
    Remote(NodeId),
}

impl Shared {
    pub(crate) fn new(
        common: Arc<Common>,
        rpc: Arc<Rpc>,
        catalog: Arc<CatalogCache>,
        place: Place,
        addr: String,
        dead_after: Duration,
        departures: crate::membership::departures::Departures,
        holdings: crate::membership::holdings::Holdings,
    ) -> Arc<Shared> {
        Arc::new(Shared {
            life: common.life.clone(),
            runtime: common.runtime.clone(),
            clock: common.clock.clone(),
            common,
            rpc,
            catalog,
            place,
            addr,
            replicas: RwLock::default(),
            making_replica: tokio::sync::Mutex::new(()),
            peers: RwLock::default(),
            leaders: RwLock::default(),
            freshness: Freshness::new(),
            clocks: Default::default(),
            ddl: crate::catalog::steps::Inbox::default(),
            overlay: Default::default(),
            refusals: Default::default(),
            ages: Default::default(),
            waiting: Default::default(),
            scripts: Default::default(),
            ballots: Default::default(),
            protocol: Default::default(),
            tally: Default::default(),
            dead_after,
            relaying: tokio::sync::Semaphore::new(crate::membership::reach::RELAYED_MAX),
            departures,
            holdings,
            founding: Default::default(),
            computing: Arc::new(tokio::sync::Semaphore::new(COMPUTING_MAX)),
            sessions: RwLock::new(None),
        })
    }

    /// The node cannot go on. The first error is the one that is told.
    pub(crate) fn fail(&self, e: Error) {
        self.life.fail(e);
    }

    /// Starts a task that ends with the node.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.life.spawn(task);
    }

    /// The same for what others count on in time.
    pub(crate) fn spawn_protocol(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.life.spawn_protocol(task);
    }

    /// From now on this node is this one.
    pub(crate) fn set_identity(&self, identity: crate::membership::identity::Identity) {
        self.rpc.identify(identity.cluster, identity.node, self.place.clone(), &self.addr);
        self.life.become_node(identity.node);
    }

    /// This node's id.
    pub fn me(&self) -> NodeId {
        self.life.me()
    }

    /// How transactions that begin now read and commit over several regions.
    pub fn protocol(&self) -> Protocol {
        self.protocol.get()
    }

    /// Chooses that, for a bench. Every node of the cluster has to be told, while there are no
    /// transactions.
    pub fn use_protocol(&self, protocol: Protocol) {
        self.protocol.set(protocol);
    }

    /// What this gateway counted since the last call, of transactions that touched other regions.
    pub fn take_tally(&self) -> Tally {
        std::mem::take(&mut *self.tally.lock())
    }

    #[inline]
    pub(crate) fn replica(&self, group: GroupId) -> Option<Arc<Replica>> {
        self.replicas.read().get(&group).cloned()
    }

    pub(crate) fn all_replicas(&self) -> Vec<Arc<Replica>> {
        self.replicas.read().values().cloned().collect()
    }

    /// Of each group in which this node votes, how many others do, as far as it knows.
    pub fn voters_beside(&self) -> Vec<usize> {
        let me = self.me();
        let voters = self.all_replicas().into_iter().map(|replica| replica.raft().members().voters);
        voters.filter(|voters| voters.contains(&me)).map(|voters| voters.len() - 1).collect()
    }

    /// The groups this node serves as primary, with their terms.
    pub fn leads(&self) -> Vec<(GroupId, u64)> {
        self.all_replicas().iter().filter_map(|r| Some((r.id, r.serving_term()?))).collect()
    }

    /// The groups whose primary is here or said so in one of its last pings.
    pub(crate) fn groups_heard_of(&self) -> BTreeSet<GroupId> {
        let peers = self.peers.read();
        let recent = peers.values().filter(|p| p.heard.elapsed() < PRIMARY_HEARD_FOR);
        recent.flat_map(|p| &p.leads).chain(&self.leads()).map(|(group, _)| *group).collect()
    }

    /// The groups this node holds a replica of.
    pub(crate) fn holds(&self) -> Vec<GroupId> {
        self.replicas.read().keys().copied().collect()
    }

    /// Where to ask: this node, whoever is known to serve the group, whoever the log says leads;
    /// and if all that was wrong `attempt` times, the group's founders and this node's peers in
    /// turn.
    pub(crate) fn route(&self, group: GroupId, attempt: u32) -> Option<Route> {
        let replica = self.replica(group);
        if let Some(replica) = &replica
            && (replica.is_serving() || replica.leads_behind_promise())
        {
            return Some(Route::Local(replica.clone()));
        }
        let me = self.me();
        if let Some((node, _)) = self.leaders.read().get(&group)
            && *node != me
        {
            return Some(Route::Remote(*node));
        }
        if attempt.is_multiple_of(2)
            && let Some(leader) = replica.as_ref().and_then(|r| r.raft().role().leader)
            && leader != me
        {
            return Some(Route::Remote(leader));
        }
        let candidates: Vec<NodeId> = match replica {
            Some(r) => r.raft().members().voters.into_iter().collect(),
            None => self.catalog.group(group).map(|g| g.initial_voters).unwrap_or_default(),
        };
        let candidates: Vec<NodeId> = candidates.into_iter().filter(|n| *n != me).collect();
        (!candidates.is_empty()).then(|| Route::Remote(candidates[attempt as usize / 2 % candidates.len()]))
    }

    /// A node says it serves a group. The larger term wins.
    pub(crate) fn learn_leader(&self, group: GroupId, node: NodeId, term: u64) {
        if self.leaders.read().get(&group).is_some_and(|(n, t)| (*n == node && *t == term) || *t > term) {
            return;
        }
        self.leaders.write().insert(group, (node, term));
    }

    /// The replica on this node, if it is the group's primary and answers.
    #[inline]
    pub(crate) fn local_primary(&self, group: GroupId) -> Option<Arc<Replica>> {
        self.replica(group).filter(|r| r.is_serving())
    }

    /// Whether this node holds a replica of the group.
    pub(crate) fn is_held_here(&self, group: GroupId) -> bool {
        self.replicas.read().contains_key(&group)
    }

    /// Live nodes of this region, other than this one, that hold a replica of the group; the
    /// nearest first.
    pub(crate) fn replicas_near(&self, group: GroupId) -> Vec<NodeId> {
        let peers = self.peers.read();
        let near = peers
            .iter()
            .filter(|(node, p)| p.heard.elapsed() < LIVENESS_TIMEOUT && p.holds.contains(&group) && self.rpc.is_near(**node));
        let mut near: Vec<(Duration, NodeId)> = near.map(|(node, p)| (p.round_trip, *node)).collect();
        near.sort();
        near.into_iter().map(|(_, node)| node).collect()
    }

    /// Whether the group's primary is in this region; before it is known, whether its home is.
    pub(crate) fn is_primary_near(&self, group: GroupId) -> bool {
        match self.route(group, 0) {
            Some(Route::Local(_)) => true,
            _ => match self.leaders.read().get(&group) {
                Some((node, _)) => *node == self.me() || self.rpc.is_near(*node),
                None => self.catalog.group(group).is_none_or(|g| g.home == self.place.region),
            },
        }
    }

    /// The route was wrong; look again.
    pub(crate) fn forget_route(&self, group: GroupId) {
        self.leaders.write().remove(&group);
    }

    /// A node answered that it is not the primary.
    pub(crate) fn not_primary_there(&self, group: GroupId, asked: NodeId, hint: Option<NodeId>) -> Error {
        self.forget_route(group);
        if let Some(hint) = hint
            && hint != asked
            && hint != self.me()
        {
            self.learn_leader(group, hint, 0);
        }
        Error::not_primary(group)
    }

    /// Whether a node answered lately. This node is live.
    pub(crate) fn is_live(&self, node: NodeId) -> bool {
        node == self.me() || self.peers.read().get(&node).is_some_and(|p| p.heard.elapsed() < LIVENESS_TIMEOUT)
    }

    /// The oldest moment that transactions at each other node may still read. What a dead node had
    /// open is over.
    pub(crate) fn oldest_protected_elsewhere(&self) -> Vec<(NodeId, Timestamp)> {
        let peers = self.peers.read();
        peers.iter().filter(|(_, p)| p.heard.elapsed() < self.dead_after).map(|(node, p)| (*node, p.protected)).collect()
    }

    /// The measured round trip to a live node; zero for others.
    pub(crate) fn round_trip(&self, node: NodeId) -> Duration {
        let peers = self.peers.read();
        peers.get(&node).filter(|p| p.heard.elapsed() < LIVENESS_TIMEOUT).map_or(Duration::ZERO, |p| p.round_trip)
    }

    /// The largest round trip to a live node.
    pub(crate) fn largest_round_trip(&self) -> Duration {
        let peers = self.peers.read();
        peers.values().filter(|p| p.heard.elapsed() < LIVENESS_TIMEOUT).map(|p| p.round_trip).max().unwrap_or_default()
    }

    /// What is prepared at the groups that this node leads.
    pub(crate) fn transactions(&self) -> Vec<PreparedTransaction> {
        self.all_replicas().iter().flat_map(|r| r.transactions()).collect()
    }

    /// How much this node's replicas remember of transactions: prepared ones; votes and decisions
    /// that not every participant has acknowledged; commits that their clients may still ask for.
    pub(crate) fn remembered(&self) -> [usize; 3] {
        let each = self.all_replicas();
        each.iter().map(|r| r.remembered()).fold([0; 3], |sum, more| std::array::from_fn(|i| sum[i] + more[i]))
    }

    /// What `meridian node status` shows, given what the groups' primaries say.
    pub(crate) fn status(&self, groups: &BTreeMap<GroupId, GroupStatus>) -> Vec<NodeStatus> {
        let me = self.me();
        let peers = self.peers.read();
        self.catalog
            .nodes()
            .into_iter()
            .map(|node| {
                let peer = peers.get(&node.id);
                let leads = match peer {
                    Some(p) if node.id != me => p.leads.iter().map(|(g, _)| *g).collect(),
                    _ if node.id == me => self.leads().into_iter().map(|(g, _)| g).collect(),
                    _ => Vec::new(),
                };
                let holds = match peer {
                    Some(p) if self.is_live(node.id) => p.holds.clone(),
                    _ if node.id == me => self.holds(),
                    // It cannot say: what others count on.
                    _ => groups.values().filter(|g| g.has(node.id)).map(|g| g.group).collect(),
                };
                let waits_for = |group: &GroupId| groups.get(group)?.waits_for.clone().map(|why| (*group, why));
                NodeStatus {
                    waits_for: holds.iter().filter_map(waits_for).collect(),
                    clock: None,
                    is_live: self.is_live(node.id),
                    is_dead: self.silence(node.id) >= self.dead_after,
                    holds,
                    round_trip_micros: peer.map_or(0, |p| p.round_trip.as_micros() as u64),
                    clock_offset_micros: peer.map_or(0, |p| p.clock_offset_micros),
                    leads: if self.is_live(node.id) { leads } else { Vec::new() },
                    node,
                }
            })
            .collect()
    }
}
