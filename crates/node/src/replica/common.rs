//! What all replicas of a node have in common.

use crate::local::lifecycle::Lifecycle;
use crate::local::metrics::Metrics;
use crate::local::protected::Protected;
use crate::local::room::Room;
use crate::local::timing::Timing;
use crate::replica::outbox::Outbox;
use meridian_base::Clock;
use meridian_base::runtime::Runtime;
use meridian_raft::NodeLog;
use meridian_region::PlantedBugs;
use meridian_store::Store;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::Notify;

/// See the module.
pub struct Common {
    /// Its queue is all groups'.
    pub(crate) log: NodeLog,
    /// Its budget is all groups'.
    pub(crate) store: Store,
    /// Something was cut and waits to be flushed.
    pub(crate) flusher: Notify,
    pub(crate) outbox: Arc<Outbox>,
    /// How much room the node's disk has.
    pub(crate) room: Room,
    /// What this node's transactions may still read.
    pub(crate) protected: Arc<Protected>,
    /// What this node counts.
    pub(crate) metrics: Arc<Metrics>,
    /// The largest round trip to a live node, in microseconds.
    pub(crate) farthest_micros: AtomicU64,
    /// How long elections take.
    pub(crate) timing: Timing,
    pub(crate) bugs: PlantedBugs,
    /// Rules of the commit over several groups left out.
    pub(crate) ballot_bugs: meridian_commit::PlantedBugs,
    pub(crate) life: Arc<Lifecycle>,
    /// The node's; some groups have a clock of their own.
    pub(crate) clock: Arc<Clock>,
    /// The last to be dropped: the data directory is let go when the store is closed.
    pub(crate) runtime: Arc<dyn Runtime>,
}

impl Common {
    /// Whether the node's clock jumped ahead: known after it was read.
    pub(crate) fn has_clock_stepped(&self) -> bool {
        self.runtime.steady_clock().stepped().is_some()
    }
}
