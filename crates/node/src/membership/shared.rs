//! What all parts of a node share: who it is, its replicas, and where the primaries are.

use crate::catalog::CatalogCache;
use crate::gateway::txn::{Protocol, Tally};
use crate::local::lifecycle::Lifecycle;
use crate::local::lock::RwLock;
use crate::membership::freshness::Freshness;
use crate::membership::peers::Peers;
use crate::replica::common::Common;
use crate::replica::groups::Groups;
use crate::transport::rpc::{Place, Rpc};
use meridian_base::runtime::Runtime;
use meridian_base::{Clock, DescriptorId, Error, NodeId};
use meridian_sql::env::SessionRow;
use std::sync::Arc;
use std::time::Duration;

/// The node behind sessions, calls and background tasks.
pub struct Shared {
    /// Who it is, and how it ends.
    pub(crate) life: Arc<Lifecycle>,
    pub clock: Arc<Clock>,
    pub rpc: Arc<Rpc>,
    pub catalog: Arc<CatalogCache>,
    pub(crate) groups: Arc<Groups>,
    pub(crate) peers: Peers,
    pub(crate) freshness: Freshness,
    pub(crate) clocks: crate::membership::offsets::Clocks,
    /// Calls for the coordinator of schema steps.
    pub(crate) steps: crate::catalog::steps::Inbox,
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

/// How many threads at most compute for sessions at the same time: each request needs a thread of
/// its own, and a thousand clients may send large texts.
const COMPUTING_MAX: usize = 4;

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
        let groups = Groups::new(common.clone(), rpc.clone(), catalog.clone(), place.clone());
        Arc::new(Shared {
            life: common.life.clone(),
            runtime: common.runtime.clone(),
            clock: common.clock.clone(),
            peers: Peers::new(common.life.clone(), rpc.clone(), place, addr, dead_after),
            rpc,
            freshness: Freshness::new(catalog.clone(), groups.clone()),
            groups,
            catalog,
            clocks: Default::default(),
            steps: Default::default(),
            overlay: Default::default(),
            refusals: Default::default(),
            ages: Default::default(),
            waiting: Default::default(),
            scripts: Default::default(),
            ballots: Default::default(),
            protocol: Default::default(),
            tally: Default::default(),
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
        self.rpc.identify(identity.cluster, identity.node, self.peers.place.clone(), &self.peers.addr);
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
}
