//! What the sessions of one node share: who they are, and their plans.

use crate::env::SessionRow;
use meridian_base::SessionId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::Notify;

/// One per node. Give every session a clone of the `Arc`.
#[derive(Default)]
pub struct Shared {
    sessions: Mutex<BTreeMap<SessionId, Entry>>,
}

struct Entry {
    activity: Arc<Activity>,
    cancel: CancelHandle,
}

/// What a session does now. Its own lock, so that sessions do not meet at the node's.
pub(crate) struct Activity(Mutex<SessionRow>);

impl Activity {
    pub(crate) fn new(row: SessionRow) -> Arc<Activity> {
        Arc::new(Activity(Mutex::new(row)))
    }
    /// A statement begins or ends.
    pub(crate) fn set(&self, state: &'static str, query: Option<&str>) {
        let mut row = self.0.lock();
        row.state = state;
        if let Some(query) = query {
            row.query.clear();
            row.query.push_str(query);
        }
    }
    pub(crate) fn set_application(&self, name: &str) {
        self.0.lock().application = name.to_string();
    }
}

impl Shared {
    pub fn new() -> Arc<Shared> {
        Arc::new(Shared::default())
    }
    /// What every session does now: for `Environment::sessions`.
    pub fn sessions(&self) -> Vec<SessionRow> {
        self.sessions.lock().values().map(|e| e.activity.0.lock().clone()).collect()
    }
    /// Cancels the running statement of a session: for `Environment::cancel`. Whether there is such a session.
    pub fn cancel(&self, session: SessionId) -> bool {
        match self.sessions.lock().get(&session) {
            Some(entry) => {
                entry.cancel.cancel();
                true
            }
            None => false,
        }
    }
    pub(crate) fn register(&self, session: SessionId, activity: Arc<Activity>, cancel: CancelHandle) {
        self.sessions.lock().insert(session, Entry { activity, cancel });
    }
    pub(crate) fn unregister(&self, session: SessionId) {
        self.sessions.lock().remove(&session);
    }
}

/// Interrupts a session from outside. Cheap to clone.
#[derive(Clone, Default)]
pub struct CancelHandle(Arc<CancelState>);

#[derive(Default)]
struct CancelState {
    reason: AtomicU8,
    wake: Notify,
}

/// Why a session is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// 57014: the statement ends, the session goes on.
    Cancel,
    /// 57P01: the session ends.
    Terminate,
}

impl CancelHandle {
    /// Ends the statement that runs now with 57014. Does nothing between statements.
    pub fn cancel(&self) {
        // A termination is never weakened to a cancel.
        let _ = self.0.reason.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire);
        self.0.wake.notify_waiters();
    }
    /// Ends the statement that runs now, and the session, with 57P01.
    pub fn terminate(&self) {
        self.0.reason.store(2, Ordering::Release);
        self.0.wake.notify_waiters();
    }
    /// What was asked for and not yet taken notice of.
    pub fn interrupt(&self) -> Option<Interrupt> {
        match self.0.reason.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Interrupt::Cancel),
            _ => Some(Interrupt::Terminate),
        }
    }
    /// A new statement begins: a cancel that came between statements is forgotten, a termination is not.
    pub(crate) fn rearm(&self) {
        if self.0.reason.load(Ordering::Relaxed) == 1 {
            let _ = self.0.reason.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Acquire);
        }
    }
    /// Waits until something is asked for.
    pub async fn interrupted(&self) -> Interrupt {
        loop {
            let woken = self.0.wake.notified();
            if let Some(reason) = self.interrupt() {
                return reason;
            }
            woken.await;
        }
    }
}
