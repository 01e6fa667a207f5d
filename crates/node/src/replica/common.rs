//! Log, store, clock, metrics and configuration that the replicas of a node share.

use crate::local::lifecycle::Lifecycle;
use crate::local::metrics::Metrics;
use crate::local::protected::Protected;
use crate::local::room::Room;
use crate::local::timing::Timing;
use crate::replica::brought::Brought;
use crate::replica::outbox::Outbox;
use crate::replica::pod::{Pod, PodConfig};
use meridian_base::parts::LargeFrom;
use meridian_base::runtime::Runtime;
use meridian_base::{Clock, Result};
use meridian_raft::NodeLog;
use meridian_region::Rules;
use meridian_store::Store;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// See the module.
pub struct Common {
    /// Its queue is all groups'.
    pub(crate) log: NodeLog,
    /// Its budget is all groups'.
    pub(crate) store: Store,
    /// Something was cut and waits to be flushed.
    pub(crate) flusher: Notify,
    /// A replica owes an index.
    pub(crate) builder: Notify,
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
    pub(crate) large_from: LargeFrom,
    /// All programs of the cluster know parts of transactions.
    pub(crate) writes_parts: AtomicBool,
    /// Large transactions on their way to the node's primaries.
    pub(crate) brought: Brought,
    pub(crate) rules: Rules,
    /// Rules of the commit over several groups left out.
    pub(crate) ballot_rules: meridian_commit::Rules,
    pub(crate) life: Arc<Lifecycle>,
    /// The pod that this node is a host of, from its first replica on.
    pub(crate) pod: OnceLock<Arc<Pod>>,
    pub(crate) pod_config: Mutex<Option<PodConfig>>,
    /// The node's; some groups have a clock of their own.
    pub(crate) clock: Arc<Clock>,
    /// The last to be dropped: the data directory is let go when the store is closed.
    pub(crate) runtime: Arc<dyn Runtime>,
}

impl Common {
    /// Whether all programs of the cluster know parts of transactions.
    pub(crate) fn may_write_parts(&self) -> bool {
        self.writes_parts.load(Ordering::Acquire)
    }

    /// A transaction with more bytes goes into the log in parts.
    pub(crate) fn part_bytes(&self) -> usize {
        if self.may_write_parts() { self.large_from.part_bytes } else { usize::MAX }
    }

    /// The node, which has a number by now, becomes a host of its pod.
    pub(crate) fn enter_pod(&self) -> Result<()> {
        if let Some(config) = self.pod_config.lock().take() {
            let _ = self.pod.set(Arc::new(Pod::enter(config, self.life.me())?));
        }
        Ok(())
    }

    /// Whether the node's clock jumped ahead: known after it was read.
    pub(crate) fn has_clock_stepped(&self) -> bool {
        self.runtime.steady_clock().stepped().is_some()
    }
}
