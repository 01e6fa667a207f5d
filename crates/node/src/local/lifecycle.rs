//! Who this process is, what runs in its background, and how it ends.

use crate::local::tasks::Tasks;
use meridian_base::{Error, NodeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::sync::watch;

/// See the module.
pub struct Lifecycle {
    /// 0 until this process has an identity.
    id: AtomicU32,
    /// Differs from one run of the process to the next.
    pub(crate) incarnation: u64,
    /// It knows who it is, and takes messages for it.
    is_open: AtomicBool,
    stopping: watch::Sender<bool>,
    pub(crate) tasks: Arc<Tasks>,
}

impl Lifecycle {
    pub(crate) fn new(incarnation: u64, tasks: Arc<Tasks>) -> Arc<Lifecycle> {
        Arc::new(Lifecycle {
            id: AtomicU32::new(0),
            incarnation,
            is_open: AtomicBool::new(false),
            stopping: watch::Sender::new(false),
            tasks,
        })
    }

    /// This node's id.
    pub fn me(&self) -> NodeId {
        NodeId(self.id.load(Ordering::Relaxed))
    }

    /// From now on this node is this one.
    pub(crate) fn become_node(&self, node: NodeId) {
        self.id.store(node.0, Ordering::Release);
    }

    /// Whether messages for this node are taken.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Messages for this node are taken from now on.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    /// The node cannot go on. The first error is the one that is told.
    pub(crate) fn fail(&self, e: Error) {
        self.tasks.fail(e);
    }

    /// The error that this node cannot live with, once there is one.
    pub(crate) fn failure(&self) -> watch::Receiver<Option<Error>> {
        self.tasks.failure()
    }

    /// From now on the node stops.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Follows [`Lifecycle::is_stopping`].
    pub(crate) fn watch_stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Starts a task that ends with the node. The node fails when it panics.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// The same for what others count on in time.
    pub(crate) fn spawn_protocol(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_protocol(task);
    }
}
