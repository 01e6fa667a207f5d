//! Forecasts of many rows, computed where no statement waits for them.
//!
//! Callers put a [`Job`] for a row after each of its epochs, and look for the forecast later: until
//! it is there they have none, and after the deadline they have the random walk's. Neither call
//! waits for a forecaster, however long that takes.
//!
//! *One at a time.* There is one thread, started by [`Worker::start`]; without it, jobs are done by
//! whoever calls [`Worker::run_next`]. A simulation does that, and so stays deterministic.
//!
//! *Bounded.* At most [`Limits::queue`] rows wait, each with its newest job: a job takes the place
//! of an older one of its row. At most [`Limits::rows`] rows have a forecaster or a forecast in
//! memory; the row that was used least recently goes. Each row is computed at most once for an
//! epoch.
//!
//! *A forecaster that does not return* keeps the thread: no code can stop it from outside. All rows
//! then have the random walk, with [`Fallback::TooSlow`] for its row and [`Fallback::Overloaded`]
//! for the others. When it does return it rests, as [`Guarded`] says.

use crate::forecaster::{Forecaster, HISTORY_MAX, Season};
use crate::guarded::{Fallback, Forecast, Guarded, Judgement, PATIENCE};
use crate::kind::Kind;
use crate::recent::Recent;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A clock that does not go backwards, since any moment.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Makes forecasters: [`Kind::forecaster`], or another one in tests.
type Make = Arc<dyn Fn(Kind, Season) -> Option<Box<dyn Forecaster>> + Send + Sync>;

/// What bounds a worker.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Jobs that wait.
    pub queue: usize,
    /// Rows whose forecaster and forecast are kept.
    pub rows: usize,
    /// How long after a job was put its forecast is still of use. A forecaster that takes longer
    /// than that by itself rests.
    pub deadline: Duration,
}

impl Default for Limits {
    /// Room for a thousand busy rows: 50 MB with the largest forecaster and epochs of five minutes,
    /// 100 MB with the shortest epochs.
    fn default() -> Self {
        Self { queue: 256, rows: 1_000, deadline: PATIENCE }
    }
}

/// A row whose epoch has ended.
#[derive(Clone, Debug)]
pub struct Job {
    /// The row and its pool of tokens, in any encoding.
    pub row: Vec<u8>,
    /// The forecaster to ask.
    pub kind: Kind,
    /// After how many epochs demand repeats itself.
    pub season: Season,
    /// The number of the epoch that has ended. It grows by one with each epoch.
    pub epoch: u64,
    /// The demand of the epochs up to this one, oldest first. Of more than [`HISTORY_MAX`] the
    /// newest are used.
    pub past: Vec<f64>,
}

/// Where the forecast of a row's newest epoch is.
struct Asked {
    epoch: u64,
    /// When the job was put.
    at: Duration,
    /// What to say if the forecast is not there in time.
    random_walk: Forecast,
    state: State,
}

enum State {
    Queued(Job),
    Running,
    Done(Forecast, Judgement),
}

/// What callers touch. It is locked for moments only.
struct Desk {
    asked: Recent<Asked>,
    /// Rows whose state is `Queued`, and some that were forgotten since.
    queue: VecDeque<Vec<u8>>,
}

/// The forecaster of a row, and of what kind it is.
struct Model {
    kind: Kind,
    season: Season,
    guarded: Guarded,
}

struct Shared {
    limits: Limits,
    clock: Clock,
    make: Make,
    desk: Mutex<Desk>,
    has_work: Condvar,
    /// Locked while a job runs, so that they run one at a time.
    models: Mutex<Recent<Model>>,
}

/// Computes forecasts. Clones are handles of the same worker.
#[derive(Clone)]
pub struct Worker {
    shared: Arc<Shared>,
}

/// The thread of a worker. It ends after its present job when this is dropped; nobody waits for it.
#[must_use = "the thread ends when this is dropped"]
pub struct Running {
    shared: Arc<Shared>,
    is_stopped: Arc<AtomicBool>,
}

impl Worker {
    /// One without a thread: jobs are done by [`Worker::run_next`], or after [`Worker::start`].
    pub fn new(limits: Limits, clock: Clock) -> Self {
        Self::with(limits, clock, Kind::forecaster)
    }

    /// One whose forecasters are made by `make`.
    pub fn with(
        limits: Limits,
        clock: Clock,
        make: impl Fn(Kind, Season) -> Option<Box<dyn Forecaster>> + Send + Sync + 'static,
    ) -> Self {
        let desk = Desk { asked: Recent::new(limits.rows), queue: VecDeque::new() };
        let shared = Shared {
            limits,
            clock,
            make: Arc::new(make),
            desk: Mutex::new(desk),
            has_work: Condvar::new(),
            models: Mutex::new(Recent::new(limits.rows)),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Starts the thread that does the jobs.
    pub fn start(&self) -> io::Result<Running> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (worker, of_thread) = (self.clone(), is_stopped.clone());
        let thread = std::thread::Builder::new().name("forecasts".into());
        thread.spawn(move || worker.run(&of_thread))?;
        Ok(Running { shared: self.shared.clone(), is_stopped })
    }

    /// Asks for the forecast of the epoch after the job's. A job for an epoch that was asked for
    /// already, or for an earlier one, changes nothing. If too many wait, the forecast is the
    /// random walk's at once.
    pub fn put(&self, mut job: Job) {
        job.past.drain(..job.past.len().saturating_sub(HISTORY_MAX));
        let (row, epoch, at) = (job.row.clone(), job.epoch, (self.shared.clock)());
        let desk = &mut *self.shared.desk.lock();
        let before = desk.asked.get(&row);
        if before.is_some_and(|a| a.epoch >= epoch) {
            return;
        }
        let has_place = before.is_some_and(|a| matches!(a.state, State::Queued(_)));
        let random_walk = Forecast::random_walk(&job.past, Fallback::Overloaded);
        let state = if job.kind == Kind::None {
            State::Done(Forecast::NONE, Judgement::default())
        } else if has_place || desk.queue.len() < self.shared.limits.queue {
            State::Queued(job)
        } else {
            State::Done(random_walk, Judgement::default())
        };
        if !has_place && matches!(state, State::Queued(_)) {
            desk.queue.push_back(row.clone());
            self.shared.has_work.notify_one();
        }
        desk.asked.put(row, Asked { epoch, at, random_walk, state });
    }

    /// The forecast of the epoch after `epoch`. `None`: there is none yet, or the row was not asked
    /// about after that epoch, or is forgotten.
    pub fn forecast(&self, row: &[u8], epoch: u64) -> Option<Forecast> {
        let now = (self.shared.clock)();
        let desk = self.shared.desk.lock();
        let asked = desk.asked.get(row).filter(|a| a.epoch == epoch)?;
        let late = |why| {
            let is_late = now.saturating_sub(asked.at) >= self.shared.limits.deadline;
            is_late.then_some(Forecast { fallback: Some(why), ..asked.random_walk })
        };
        match asked.state {
            State::Done(forecast, _) => Some(forecast),
            State::Running => late(Fallback::TooSlow),
            State::Queued(_) => late(Fallback::Overloaded),
        }
    }

    /// How good the row's forecaster was up to `epoch`, if its forecast is there.
    pub fn judgement(&self, row: &[u8], epoch: u64) -> Option<Judgement> {
        match self.shared.desk.lock().asked.get(row).filter(|a| a.epoch == epoch)?.state {
            State::Done(_, judgement) => Some(judgement),
            State::Running | State::Queued(_) => None,
        }
    }

    /// Does the job that has waited for longest; false if there is none. A job that is past its
    /// deadline is done, too: its forecaster learns from it, and is judged.
    pub fn run_next(&self) -> bool {
        let mut models = self.shared.models.lock();
        let Some((job, at, late)) = self.next_job() else { return false };
        let (kind, season) = (job.kind, job.season);
        let held = models.take(&job.row).filter(|m| (m.kind, m.season) == (kind, season));
        let mut model = held.unwrap_or_else(|| {
            let make = self.shared.make.clone();
            let guarded = Guarded::with(move || make(kind, season), season, self.shared.limits.deadline);
            Model { kind, season, guarded }
        });
        model.guarded.catch_up(job.epoch, &job.past);
        let forecast = model.guarded.forecast(&*self.shared.clock);
        let is_late = (self.shared.clock)().saturating_sub(at) >= self.shared.limits.deadline;
        // Whoever has seen the random walk in its stead goes on seeing it.
        let forecast = if is_late && forecast.fallback.is_none() { late } else { forecast };
        let judgement = model.guarded.judgement();
        models.put(job.row.clone(), model);
        let mut desk = self.shared.desk.lock();
        if let Some(asked) = desk.asked.get_mut(&job.row).filter(|a| a.epoch == job.epoch) {
            asked.state = State::Done(forecast, judgement);
        }
        true
    }

    /// Takes a job from the queue: when it was put, and what is said if it comes too late.
    fn next_job(&self) -> Option<(Job, Duration, Forecast)> {
        let desk = &mut *self.shared.desk.lock();
        while let Some(row) = desk.queue.pop_front() {
            let Some(asked) = desk.asked.get_mut(&row) else { continue };
            match std::mem::replace(&mut asked.state, State::Running) {
                State::Queued(job) => return Some((job, asked.at, asked.random_walk)),
                other => asked.state = other,
            }
        }
        None
    }

    fn run(&self, is_stopped: &AtomicBool) {
        while !is_stopped.load(Ordering::Acquire) {
            if self.run_next() {
                continue;
            }
            let mut desk = self.shared.desk.lock();
            // Both change under the lock: no notification is missed.
            if desk.queue.is_empty() && !is_stopped.load(Ordering::Acquire) {
                self.shared.has_work.wait(&mut desk);
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _desk = self.shared.desk.lock();
        self.is_stopped.store(true, Ordering::Release);
        self.shared.has_work.notify_all();
    }
}
