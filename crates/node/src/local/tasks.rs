//! The node's background tasks, so that they end with it.
//!
//! A node that stops inside a living process (a test, a demonstration, a program that embeds it)
//! must leave nothing behind: a task that goes on keeps the node's parts alive, with them the
//! files, and the directory stays locked. So whatever a node starts it starts here, and
//! [`Tasks::stop`] ends all of it. What a task was in the middle of is cut off, as by a crash,
//! which everything on the disk is made for.
//!
//! No other task does the work of one that panics, and it may leave its node's state half changed.
//! So a panic is a failure of the node ([`Tasks::failure`]), which then stops.

use meridian_base::alarm::alarmed;
use meridian_base::runtime::{BoxFuture, Runtime};
use meridian_base::{Error, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// See the module.
pub(crate) struct Tasks {
    running: Mutex<Option<JoinSet<()>>>,
    /// The starter of a task may run elsewhere, and end before it.
    work: Handle,
    protocol: Handle,
    failure: watch::Sender<Option<Error>>,
}

impl Tasks {
    /// None yet.
    pub fn new(runtime: &Arc<dyn Runtime>) -> Tasks {
        Tasks {
            running: Mutex::new(Some(JoinSet::new())),
            work: runtime.work_scheduler(),
            protocol: runtime.protocol_scheduler(),
            failure: watch::Sender::new(None),
        }
    }

    /// None yet, all on the scheduler that this is called on.
    #[cfg(test)]
    pub fn here() -> Tasks {
        Tasks {
            running: Mutex::new(Some(JoinSet::new())),
            work: Handle::current(),
            protocol: Handle::current(),
            failure: watch::Sender::new(None),
        }
    }

    /// Starts a task; not any more once the node has stopped.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn_on(&self.work, Box::pin(task));
    }

    /// Starts a task that other nodes count on in time: heartbeats, leases, connections. It neither
    /// computes for long nor blocks.
    pub fn spawn_protocol(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn_on(&self.protocol, Box::pin(task));
    }

    /// One kind of task for the scheduler, whose code is compiled for each kind.
    fn spawn_on(&self, scheduler: &Handle, task: BoxFuture<'static, ()>) {
        if let Some(running) = &mut *self.running.lock() {
            // Those that have ended are forgotten.
            while running.try_join_next().is_some() {}
            running.spawn_on(alarmed(task, self.alarm()), scheduler);
        }
    }

    /// What the panic of a task of the node does.
    pub fn alarm(&self) -> impl FnOnce() + Send + 'static {
        let failure = self.failure.clone();
        move || fail(&failure, Error::fatal("a background task of the node panicked").detail("The lines before say where."))
    }

    /// The node cannot go on. The first error is the one that is told.
    pub fn fail(&self, e: Error) {
        fail(&self.failure, e);
    }

    /// The error that this node cannot live with, once there is one.
    pub fn failure(&self) -> watch::Receiver<Option<Error>> {
        self.failure.subscribe()
    }

    /// Runs a future where [`Tasks::spawn_protocol`] runs tasks, and with it whatever it starts.
    pub async fn on_protocol<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Result<T> {
        self.protocol.spawn(future).await.map_err(|e| Error::unavailable(format!("the node stops: {e}")))
    }

    /// Ends all tasks, and waits until they have let go of what they held. Not to be called from
    /// one of them.
    pub async fn stop(&self) {
        let running = self.running.lock().take();
        if let Some(mut running) = running {
            running.shutdown().await;
        }
    }
}

fn fail(failure: &watch::Sender<Option<Error>>, e: Error) {
    failure.send_if_modified(|f| f.is_none().then(|| *f = Some(e)).is_some());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn what_tasks_hold_is_let_go_when_they_are_stopped() {
        let (tasks, held) = (Tasks::here(), Arc::new(()));
        for _ in 0..3 {
            let held = held.clone();
            tasks.spawn(async move {
                std::future::pending::<()>().await;
                drop(held);
            });
        }
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&held), 4);
        tasks.stop().await;
        assert_eq!(Arc::strong_count(&held), 1);
        let late = held.clone();
        tasks.spawn(async move { drop(late) });
        assert_eq!(Arc::strong_count(&held), 1, "nothing is started any more");
    }
    #[tokio::test]
    async fn a_node_fails_when_one_of_its_tasks_panics() {
        for start in [Tasks::spawn as fn(&Tasks, BoxFuture<'static, ()>), Tasks::spawn_protocol] {
            let tasks = Tasks::here();
            start(&tasks, Box::pin(async {}));
            tokio::task::yield_now().await;
            assert!(tasks.failure().borrow().is_none());
            start(&tasks, Box::pin(async { panic!("planted") }));
            let mut failure = tasks.failure();
            let told = failure.wait_for(Option::is_some).await.expect("the tasks live").clone();
            assert!(told.is_some_and(|e| e.message().contains("panicked")));
            tasks.fail(Error::fatal("another"));
            assert!(tasks.failure().borrow().as_ref().is_some_and(|e| e.message().contains("panicked")), "the first is told");
        }
    }
}
