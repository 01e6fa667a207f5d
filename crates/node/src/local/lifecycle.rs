//! Who this process is, what runs in its background, and how it ends.

use crate::local::tasks::Tasks;
use meridian_base::{Error, NodeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::sync::watch;
use tokio::time::Instant;

/// See the module.
pub struct Lifecycle {
    /// 0 until this process has an identity.
    id: AtomicU32,
    /// Differs from one run of the process to the next.
    pub(crate) incarnation: u64,
    /// When this process began to listen for others.
    pub(crate) started: Instant,
    /// It knows who it is, and takes messages for it.
    is_open: AtomicBool,
    failure: watch::Sender<Option<Error>>,
    stopping: watch::Sender<bool>,
    pub(crate) tasks: Arc<Tasks>,
}

impl Lifecycle {
    pub(crate) fn new(incarnation: u64, tasks: Arc<Tasks>) -> Arc<Lifecycle> {
        Arc::new(Lifecycle {
            id: AtomicU32::new(0),
            incarnation,
            started: Instant::now(),
            is_open: AtomicBool::new(false),
            failure: watch::Sender::new(None),
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
        fail(&self.failure, e);
    }

    /// The error that this node cannot live with, once there is one.
    pub(crate) fn failure(&self) -> watch::Receiver<Option<Error>> {
        self.failure.subscribe()
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

    /// Starts a task that ends with the node. The node fails when the task panics, because no other
    /// task does its work.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.needed(task));
    }

    /// The same for what others count on in time.
    pub(crate) fn spawn_protocol(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_protocol(self.needed(task));
    }

    /// A task that the node cannot do without: it fails when the task panics.
    pub(crate) fn needed(&self, task: impl Future<Output = ()> + Send + 'static) -> impl Future<Output = ()> + Send + 'static {
        let alarm = Alarm(self.failure.clone());
        async move {
            let _alarm = alarm;
            task.await;
        }
    }
}

/// Tells the node when it is dropped by a panic.
struct Alarm(watch::Sender<Option<Error>>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let e = Error::fatal("a background task of the node panicked").detail("The lines before say where.");
            fail(&self.0, e);
        }
    }
}

/// The first error is the one that is told.
fn fail(failure: &watch::Sender<Option<Error>>, e: Error) {
    failure.send_if_modified(|f| f.is_none().then(|| *f = Some(e)).is_some());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_node_fails_when_a_task_that_it_needs_panics() {
        let life = |tasks| Lifecycle::new(1, Arc::new(tasks));
        let of_node = life(Tasks::here());
        of_node.spawn(async {});
        of_node.spawn_protocol(async {});
        tokio::task::yield_now().await;
        assert!(of_node.failure().borrow().is_none());
        of_node.spawn(async { panic!("planted") });
        let mut failure = of_node.failure();
        let told = failure.wait_for(Option::is_some).await.expect("the node lives").clone();
        assert!(told.is_some_and(|e| e.message().contains("panicked")));
    }
}
