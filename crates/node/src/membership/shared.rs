//! What all parts of a node share: who it is, its replicas, and where the primaries are.

use crate::catalog::CatalogCache;
use crate::local::lifecycle::Lifecycle;
use crate::membership::freshness::Freshness;
use crate::membership::peers::Peers;
use crate::replica::common::Common;
use crate::replica::groups::Groups;
use crate::transport::rpc::{Place, Rpc};
use meridian_base::runtime::Runtime;
use meridian_base::{Clock, Error, NodeId};
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
    /// Groups that this node has left.
    pub(crate) departures: crate::membership::departures::Departures,
    /// Groups that this node holds a replica of, whatever its files say.
    pub(crate) holdings: crate::membership::holdings::Holdings,
    /// What this process answers while it has no identity.
    pub(crate) founding: crate::membership::pledges::Founding,
    /// The last to be dropped: the data directory is let go when the store is closed.
    pub runtime: Arc<dyn Runtime>,
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
            departures,
            holdings,
            founding: Default::default(),
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
}
