//! One machine: a clock that is wrong in its own way, a disk, and a process that may be dead.
//!
//! A process dies at any of its inputs and outputs: the driver arms a countdown, and when it runs
//! out the host is *doomed*. From then on nothing it does has any effect (writes are swallowed,
//! everything awaited waits for ever), until the driver notices and takes the process down. So a
//! crash falls between any two operations, not only between two ticks.

use super::World;
use super::disk::Platter;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;

/// A machine. It outlives its processes.
pub struct Host {
    pub world: Arc<World>,
    pub name: String,
    pub(super) platter: Mutex<Platter>,
    rng: Mutex<SmallRng>,
    /// What its clock shows too much (or, if negative, too little).
    clock_error_micros: AtomicI64,
    /// How much its clock gains in a second, and from when on; what it had gained before is part of
    /// its error.
    clock_drift_ppm: AtomicI64,
    drifts_since_micros: AtomicU64,
    /// The machine is suspended: nothing that it says leaves it and nothing reaches it.
    suspended: AtomicBool,
    /// What its clock shows while it is suspended, if that does not go on; 0: it goes on.
    stopped_clock_micros: AtomicU64,
    /// Who waits for the end of that.
    suspended_wakers: Mutex<Vec<Waker>>,
    /// Syncs say that they are done and make nothing durable.
    sync_lies: AtomicBool,
    doomed: AtomicBool,
    /// Operations until it is doomed; negative: not armed.
    countdown: AtomicI64,
    /// The process runs (or is believed to: a doomed one still counts).
    up: AtomicBool,
    /// The process has come up.
    started: AtomicBool,
    retired: AtomicBool,
    /// It will never be there again.
    lost: AtomicBool,
    /// Without power the machine does not even refuse connections.
    powered: AtomicBool,
    /// The process is told to stop.
    stop: Notify,
    /// The next sync fails.
    sync_fails: AtomicBool,
    sync_micros_min: AtomicU64,
    sync_micros_max: AtomicU64,
}

impl Host {
    pub(super) fn new(world: Arc<World>, name: &str, seed: u64) -> Arc<Host> {
        Arc::new(Host {
            world,
            name: name.to_string(),
            platter: Mutex::default(),
            rng: Mutex::new(SmallRng::seed_from_u64(seed ^ super::trace::hash_of(name.as_bytes()))),
            clock_error_micros: AtomicI64::new(0),
            clock_drift_ppm: AtomicI64::new(0),
            drifts_since_micros: AtomicU64::new(0),
            suspended: AtomicBool::new(false),
            stopped_clock_micros: AtomicU64::new(0),
            suspended_wakers: Mutex::default(),
            sync_lies: AtomicBool::new(false),
            doomed: AtomicBool::new(false),
            countdown: AtomicI64::new(-1),
            up: AtomicBool::new(false),
            started: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            powered: AtomicBool::new(true),
            stop: Notify::new(),
            sync_fails: AtomicBool::new(false),
            sync_micros_min: AtomicU64::new(200),
            sync_micros_max: AtomicU64::new(2_000),
        })
    }

    /// The machine's clock.
    pub fn clock_micros(&self) -> u64 {
        match self.stopped_clock_micros.load(Ordering::Relaxed) {
            0 => self.running_clock_micros(),
            stopped => stopped,
        }
    }
    fn running_clock_micros(&self) -> u64 {
        let elapsed = self.world.micros();
        let error = self.clock_error_micros.load(Ordering::Relaxed) + self.drifted_micros(elapsed);
        (super::EPOCH_MICROS + elapsed).saturating_add_signed(error)
    }
    fn drifted_micros(&self, elapsed: u64) -> i64 {
        let drifting = elapsed.saturating_sub(self.drifts_since_micros.load(Ordering::Relaxed));
        drifting as i64 * self.clock_drift_ppm.load(Ordering::Relaxed) / 1_000_000
    }
    /// The clock runs faster or slower from now on, by so much more than it did.
    pub fn change_speed(&self, by_ppm: i64, elapsed: Duration) {
        let elapsed = elapsed.as_micros() as u64;
        self.clock_error_micros.fetch_add(self.drifted_micros(elapsed), Ordering::Relaxed);
        self.drifts_since_micros.store(elapsed, Ordering::Relaxed);
        self.clock_drift_ppm.fetch_add(by_ppm, Ordering::Relaxed);
    }

    /// Suspends the machine, as a virtual machine is that another one pushes aside: what it has in
    /// hand goes on when it wakes, and its clock shows then how late it is. Its tasks still run,
    /// since the simulator cannot stop them, but whatever they wait for from outside does not come
    /// and whatever they say does not leave. With `clock` their time stands still too, as if all of
    /// that had happened at once just before.
    pub fn suspend(&self, clock: bool) {
        if clock {
            self.stopped_clock_micros.store(self.running_clock_micros(), Ordering::Relaxed);
        }
        self.suspended.store(true, Ordering::Relaxed);
    }
    /// It goes on.
    pub fn resume(&self) {
        self.stopped_clock_micros.store(0, Ordering::Relaxed);
        self.suspended.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.suspended_wakers.lock()).into_iter().for_each(Waker::wake);
    }
    /// Whether it is suspended; who asks is woken when it is not any more.
    pub(super) fn is_suspended(&self, waker: &Waker) -> bool {
        let is_suspended = self.suspended.load(Ordering::Relaxed);
        if is_suspended {
            self.suspended_wakers.lock().push(waker.clone());
        }
        is_suspended
    }
    /// Ends when the machine is not suspended (any more).
    pub(super) async fn awake(&self) {
        std::future::poll_fn(|cx| if self.is_suspended(cx.waker()) { Poll::Pending } else { Poll::Ready(()) }).await
    }

    /// From now on syncs say that they are done, and make nothing durable.
    pub fn lie_about_syncs(&self, lies: bool) {
        self.sync_lies.store(lies, Ordering::Relaxed);
    }
    pub(super) fn lies_about_syncs(&self) -> bool {
        self.sync_lies.load(Ordering::Relaxed)
    }
    /// Sets how wrong the clock is from the start.
    pub fn set_clock(&self, error_micros: i64, drift_ppm: i64) {
        self.clock_error_micros.store(error_micros, Ordering::Relaxed);
        self.clock_drift_ppm.store(drift_ppm, Ordering::Relaxed);
    }
    /// The clock's error now.
    pub fn clock_error_micros(&self) -> i64 {
        self.clock_error_micros.load(Ordering::Relaxed)
    }
    /// Lets the clock jump.
    pub fn jump_clock(&self, by_micros: i64) {
        self.clock_error_micros.fetch_add(by_micros, Ordering::Relaxed);
    }
    /// A random number of this machine.
    pub fn random(&self) -> u64 {
        self.rng.lock().random()
    }
    /// A random number of this machine, for decisions of the simulator about it.
    pub(super) fn with_rng<T>(&self, draw: impl FnOnce(&mut SmallRng) -> T) -> T {
        draw(&mut self.rng.lock())
    }

    /// How long a sync takes, between these.
    pub fn set_sync_time(&self, min: Duration, max: Duration) {
        self.sync_micros_min.store(min.as_micros() as u64, Ordering::Relaxed);
        self.sync_micros_max.store(max.as_micros() as u64, Ordering::Relaxed);
    }
    pub(super) fn draw_sync_time(&self) -> Duration {
        let (min, max) = (self.sync_micros_min.load(Ordering::Relaxed), self.sync_micros_max.load(Ordering::Relaxed));
        Duration::from_micros(self.with_rng(|rng| rng.random_range(min..=max)))
    }

    /// Tells the process to stop in good order, if it has come up; otherwise it hears of it when it
    /// has.
    pub fn stop(&self) {
        self.stop.notify_one();
    }
    /// Resolves when the process is told to.
    pub async fn told_to_stop(&self) {
        self.stop.notified().await;
    }
    /// The next sync fails, and makes nothing durable.
    pub fn fail_next_sync(&self) {
        self.sync_fails.store(true, Ordering::Relaxed);
    }
    pub(super) fn sync_fails_now(&self) -> bool {
        self.sync_fails.swap(false, Ordering::Relaxed)
    }

    /// The process dies at its `operations`th operation from now.
    pub fn arm(&self, operations: u32) {
        self.countdown.store(i64::from(operations), Ordering::Relaxed);
    }
    /// Counts an operation; whether the process is doomed, so that it must have no effect.
    pub fn operate(&self) -> bool {
        if self.countdown.load(Ordering::Relaxed) >= 0 && self.countdown.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.doomed.store(true, Ordering::Relaxed);
            self.world.coverage.hit("crash at an operation");
        }
        self.is_doomed()
    }
    /// Whether the process has died and was not taken down yet.
    pub fn is_doomed(&self) -> bool {
        self.doomed.load(Ordering::Relaxed)
    }
    /// The driver takes the process down. Destructors that run now have no effect on the disk.
    pub fn mark_down(&self, powered: bool) {
        self.doomed.store(true, Ordering::Relaxed);
        self.up.store(false, Ordering::Relaxed);
        self.started.store(false, Ordering::Relaxed);
        self.powered.store(powered, Ordering::Relaxed);
        // Nobody is left to be woken.
        self.suspended_wakers.lock().clear();
        self.suspended.store(false, Ordering::Relaxed);
        self.stopped_clock_micros.store(0, Ordering::Relaxed);
    }
    /// The driver is about to start a process.
    pub fn mark_up(&self) {
        self.countdown.store(-1, Ordering::Relaxed);
        self.doomed.store(false, Ordering::Relaxed);
        self.powered.store(true, Ordering::Relaxed);
        self.up.store(true, Ordering::Relaxed);
    }
    /// The process says that it has come up.
    pub fn mark_started(&self) {
        self.started.store(true, Ordering::Relaxed);
        self.event("started", 0);
    }
    /// Its process is no member of the cluster any more, and clients are told of it no longer.
    pub fn mark_retired(&self) {
        self.retired.store(true, Ordering::Relaxed);
        self.event("retired", 0);
    }
    /// The machine is gone for good, and clients are told of it no longer.
    pub fn mark_lost(&self) {
        self.lost.store(true, Ordering::Relaxed);
        self.event("lost", 0);
    }
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }
    /// Whether a process has come up since the machine was last down.
    pub fn has_started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }
    /// Whether a process runs.
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }
    /// Whether the machine would refuse a connection to a process that is not there.
    pub fn is_powered(&self) -> bool {
        self.powered.load(Ordering::Relaxed)
    }
    /// Notes an event on this machine.
    pub fn event(&self, what: &str, number: u64) {
        self.world.trace.event(self.world.micros(), &self.name, what, number);
    }
}
