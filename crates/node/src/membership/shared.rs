//! What the rooms below have to offer, for those above: who this node is, its replicas, who else is
//! there, and the catalog. Each field is a service of its own, which knows nothing of this one.

use crate::catalog::CatalogCache;
use crate::catalog::steps::Inbox;
use crate::local::lifecycle::Lifecycle;
use crate::membership::certificates::Certificates;
use crate::membership::directory::Directory;
use crate::membership::freshness::Freshness;
use crate::membership::identity::Identity;
use crate::membership::offsets::Clocks;
use crate::membership::peers::Peers;
use crate::replica::groups::Groups;
use crate::transport::rpc::Rpc;
use meridian_base::runtime::Runtime;
use meridian_base::{Clock, Error, NodeId};
use std::sync::Arc;

/// The node behind sessions, calls and background tasks.
pub(crate) struct Shared {
    /// Who it is, and how it ends.
    pub(crate) life: Arc<Lifecycle>,
    pub(crate) clock: Arc<Clock>,
    /// The way to other nodes.
    pub(crate) rpc: Arc<Rpc>,
    pub(crate) catalog: Arc<CatalogCache>,
    /// Its replicas, and where the primaries are.
    pub(crate) groups: Arc<Groups>,
    /// Who else is there.
    pub(crate) peers: Peers,
    /// Whether the copy of the catalog may be planned with.
    pub(crate) freshness: Freshness,
    /// How far other clocks are from this node's.
    pub(crate) clocks: Clocks,
    /// Calls for the coordinator of schema steps.
    pub(crate) steps: Inbox,
    /// What its files say.
    pub(crate) directory: Directory,
    /// What it shows others, and how it knows them; `None`: nothing (`--insecure`).
    pub(crate) certificates: Option<Arc<Certificates>>,
    /// The last to be dropped: the data directory is let go when the store is closed.
    pub(crate) runtime: Arc<dyn Runtime>,
}

impl Shared {
    pub(crate) fn new(
        rpc: Arc<Rpc>,
        catalog: Arc<CatalogCache>,
        groups: Arc<Groups>,
        peers: Peers,
        directory: Directory,
        certificates: Option<Arc<Certificates>>,
    ) -> Arc<Shared> {
        let common = &groups.common;
        Arc::new(Shared {
            life: common.life.clone(),
            clock: common.clock.clone(),
            runtime: common.runtime.clone(),
            rpc,
            freshness: Freshness::new(catalog.clone(), groups.clone()),
            catalog,
            groups,
            peers,
            clocks: Default::default(),
            steps: Default::default(),
            directory,
            certificates,
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
    pub(crate) fn set_identity(&self, identity: Identity) {
        self.rpc.identify(identity.cluster, identity.node, self.peers.place.clone(), &self.peers.addr);
        self.life.become_node(identity.node);
    }

    /// This node's id.
    pub(crate) fn me(&self) -> NodeId {
        self.life.me()
    }
}
