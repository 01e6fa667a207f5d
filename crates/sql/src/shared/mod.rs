//! What the sessions of one node share: who they are, and their plans.

mod changes;
mod company;
pub(crate) mod plans;
pub(crate) mod retry;
mod running;
pub(crate) mod sequences;

pub(crate) use changes::Changes;
pub(crate) use company::Company;
pub(crate) use running::Running;
pub(crate) use sequences::SessionSequences;

use crate::env::{SessionRow, pid};
use crate::exec::Interrupt;
use crate::exec::memory::MemoryPool;
use crate::parse::without_passwords;
use meridian_base::{DescriptorId, Error, Result, SessionId};
use parking_lot::Mutex;
use plans::PlanCache;
use sequences::DrawnBlocks;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

/// One per node. Give every session a clone of the `Arc`.
#[derive(Default)]
pub struct Shared {
    sessions: Mutex<BTreeMap<SessionId, Entry>>,
    pub(crate) plans: PlanCache,
    pub(crate) sequences: DrawnBlocks,
    row_ids: AtomicU64,
    /// The schema jobs that run on this node.
    pub(crate) jobs: Running,
    pub(crate) changes: Changes,
    /// What statements hold.
    pub(crate) memory: Arc<MemoryPool>,
    /// A planted bug: a statement's privileges are asked for once, when it runs first.
    checks_at_prepare_only: AtomicBool,
}

struct Entry {
    activity: Arc<Activity>,
    cancel: CancelHandle,
}

/// What a session does now. Its own lock, so that sessions do not meet at the node's.
pub(crate) struct Activity {
    row: Mutex<SessionRow>,
    /// How many requests the session has begun.
    requests: AtomicU64,
}

/// A statement's text as others see it: its beginning, and no passwords
/// (`track_activity_query_size`).
pub(crate) fn shown(query: &str) -> Cow<'_, str> {
    const BYTES_MAX: usize = 1024;
    let end = (0..=BYTES_MAX.min(query.len())).rev().find(|at| query.is_char_boundary(*at)).unwrap_or(0);
    without_passwords(&query[..end])
}

impl Activity {
    pub(crate) fn new(row: SessionRow) -> Arc<Activity> {
        Arc::new(Activity { row: Mutex::new(row), requests: AtomicU64::new(0) })
    }
    /// A request begins, whose text is [`shown`] so.
    pub(crate) fn running(&self, query: &str) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut row = self.row.lock();
        row.state = "active";
        row.query.clear();
        row.query.push_str(query);
    }
    /// A statement ended.
    pub(crate) fn resting(&self, state: &'static str) {
        self.row.lock().state = state;
    }
    pub(crate) fn set_application(&self, name: &str) {
        self.row.lock().application = name.to_string();
    }
}

impl Shared {
    /// The next `unique_rowid()`: the time in units of 10 µs, then the node in 15 bits. It runs
    /// ahead of the clock while rows come faster than that.
    pub(crate) fn unique_rowid(&self, node: u32, now_micros: u64) -> i64 {
        const NODE_BITS: u32 = 15;
        self.row_ids.fetch_max(now_micros / 10, Ordering::Relaxed);
        let tick = self.row_ids.fetch_add(1, Ordering::Relaxed);
        ((tick << NODE_BITS) | u64::from(node & ((1 << NODE_BITS) - 1))) as i64
    }
    pub fn new() -> Arc<Shared> {
        Arc::new(Shared::default())
    }
    /// One whose statements may hold so many bytes together.
    pub fn with_memory(bytes: usize) -> Arc<Shared> {
        Arc::new(Shared { memory: Arc::new(MemoryPool::of(bytes)), ..Shared::default() })
    }
    /// Leaves a rule out, to see that somebody notices: privileges are asked for once.
    #[doc(hidden)]
    pub fn plant_checks_at_prepare_only(&self) {
        self.checks_at_prepare_only.store(true, Ordering::Relaxed);
    }
    pub(crate) fn checks_at_prepare_only(&self) -> bool {
        self.checks_at_prepare_only.load(Ordering::Relaxed)
    }
    /// What every session does now: for `Environment::sessions`.
    pub fn sessions(&self) -> Vec<SessionRow> {
        self.sessions.lock().values().map(|e| e.activity.row.lock().clone()).collect()
    }
    /// How many requests the present sessions have begun. It changes whenever a session does
    /// something, begins or ends.
    pub(crate) fn requests(&self) -> (usize, u64) {
        let sessions = self.sessions.lock();
        (sessions.len(), sessions.values().map(|e| e.activity.requests.load(Ordering::Relaxed)).sum())
    }
    /// Cancels the running statement of a session: for `Environment::cancel`. Whether there is such
    /// a session.
    pub fn cancel(&self, session: SessionId) -> bool {
        match self.sessions.lock().get(&session) {
            Some(entry) => {
                entry.cancel.cancel();
                true
            }
            None => false,
        }
    }
    /// Forgets the numbers drawn of a sequence: for `Environment::forget_drawn`, on every node.
    pub fn forget_drawn(&self, sequence: DescriptorId) {
        self.sequences.forget(sequence);
    }
    /// Cancels what a session runs, or ends the session, by the number that clients know it by.
    /// `None`: there is no such session; `Some(true)`: it is told to end, for the first time.
    pub(crate) fn stop(&self, number: i32, ends: bool) -> Option<bool> {
        let sessions = self.sessions.lock();
        let (_, entry) = sessions.iter().find(|(id, _)| pid(**id) == number)?;
        let was_ending = entry.cancel.is_terminated();
        match ends {
            true => entry.cancel.terminate(),
            false => entry.cancel.cancel(),
        }
        Some(ends && !was_ending)
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

struct CancelState {
    /// What a running statement looks at.
    button: Interrupt,
    /// When `statement_timeout` will have passed, in microseconds since 1970.
    deadline_micros: AtomicU64,
    /// The session ends; never taken back.
    terminated: AtomicBool,
    wake: Notify,
}

impl Default for CancelState {
    fn default() -> CancelState {
        CancelState {
            button: Interrupt::default(),
            deadline_micros: AtomicU64::new(u64::MAX),
            terminated: AtomicBool::default(),
            wake: Notify::default(),
        }
    }
}

impl CancelHandle {
    /// When `statement_timeout` will have passed.
    pub(crate) fn set_deadline(&self, micros: u64) {
        self.0.deadline_micros.store(micros, Ordering::Release);
    }
    /// As `check`, for what computes for long without a pause: the timer of `statement_timeout`
    /// cannot run meanwhile.
    pub(crate) fn check_at(&self, now_micros: u64) -> Result<()> {
        if now_micros >= self.0.deadline_micros.load(Ordering::Acquire) {
            self.time_out();
        }
        self.check()
    }
    /// Ends the statement that runs now with 57014. Does nothing between statements.
    pub fn cancel(&self) {
        if !self.is_terminated() {
            self.0.button.cancel();
            self.0.wake.notify_waiters();
        }
    }
    /// Ends the statement that runs now, and the session, with 57P01.
    pub fn terminate(&self) {
        self.0.terminated.store(true, Ordering::Release);
        self.0.button.terminate();
        self.0.wake.notify_waiters();
    }
    /// Whether the session is to end.
    pub fn is_terminated(&self) -> bool {
        self.0.terminated.load(Ordering::Acquire)
    }
    /// `statement_timeout` has passed.
    pub(crate) fn time_out(&self) {
        if !self.is_terminated() {
            self.0.button.time_out();
            self.0.wake.notify_waiters();
        }
    }
    /// The error that ends the running statement, if it is to end.
    pub fn check(&self) -> Result<()> {
        self.0.button.check()
    }
    pub(crate) fn button(&self) -> &Interrupt {
        &self.0.button
    }
    /// A new statement begins: a cancel that came between statements is forgotten, a termination is
    /// not.
    pub(crate) fn rearm(&self) {
        if self.check().is_err() && !self.is_terminated() {
            self.0.button.reset();
            if self.is_terminated() {
                self.0.button.terminate();
            }
        }
    }
    /// Waits until the session is to end.
    pub async fn terminated(&self) {
        loop {
            let woken = self.0.wake.notified();
            if self.is_terminated() {
                return;
            }
            woken.await;
        }
    }
    /// Waits until the running statement is to end, and why.
    pub async fn interrupted(&self) -> Error {
        loop {
            let woken = self.0.wake.notified();
            if let Err(reason) = self.check() {
                return reason;
            }
            woken.await;
        }
    }
}
