//! A workload is setup + load + work + check; whoever runs it brings the connections, the clock and
//! the tasks.
//!
//! A harness calls [`Workload::setup`] once, spawns [`Workload::worker`] as often as it likes (one
//! per client, on any task or simulated host), asks everybody to stop, waits for the workers, and
//! then calls [`Workload::check`], which judges what a client can see. Histories recorded by the
//! workers are judged by checkers elsewhere.

use crate::client::Connector;
use crate::history::History;
use crate::session::{Attempted, RetryPolicy, Session, Statements};
use crate::stats::{Locality, Stats, StatsKey};
use crate::timer::{Stop, Timer};
use async_trait::async_trait;
use futures::future::BoxFuture;
use meridian_base::{Error, Result};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::time::Duration;

/// What every part of a run shares. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub connector: Arc<dyn Connector>,
    pub timer: Arc<dyn Timer>,
    pub stop: Stop,
    pub history: History,
    pub stats: Stats,
    pub retry: RetryPolicy,
    /// All of a run's choices follow from it.
    pub seed: u64,
}

impl Context {
    /// A context with nothing measured yet and the default retry policy.
    pub fn new(connector: Arc<dyn Connector>, timer: Arc<dyn Timer>, seed: u64) -> Context {
        Context {
            connector,
            timer,
            stop: Stop::new(),
            history: History::new(),
            stats: Stats::new(),
            retry: RetryPolicy::default(),
            seed,
        }
    }
    /// A session of a client in `region`.
    pub fn session(&self, region: &str, database: &str) -> Session {
        Session::new(self, region, database, self.retry)
    }
    /// What is wrong at the end: what the workload finds, and what clients were told and nobody
    /// stands for. Harnesses ask this, not [`Workload::check`].
    pub async fn verdict(&self, workload: &dyn Workload) -> Result<Verdict> {
        let mut verdict = workload.check(self).await?;
        verdict.violations.extend(self.history.untrue());
        Ok(verdict)
    }
    /// Randomness for one part of the run: the same for the same seed and purpose.
    pub fn rng(&self, purpose: u64) -> SmallRng {
        SmallRng::seed_from_u64(self.seed ^ purpose.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }
}

/// One client of a run.
#[derive(Clone, Debug)]
pub struct Worker {
    /// From 0 on, unique in the run.
    pub id: u32,
    /// The region it connects in.
    pub region: String,
}

/// How far loading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub rows_done: u64,
    pub rows_total: u64,
}

/// What a check found. Empty: nothing is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// One sentence per violated promise, with the rows that show it.
    pub violations: Vec<String>,
    /// What was looked at, so that a check that saw nothing is not mistaken for one that passed.
    pub examined: u64,
}

impl Verdict {
    /// Notes a violation unless `holds`.
    pub fn expect(&mut self, holds: bool, violation: impl FnOnce() -> String) {
        self.examined += 1;
        if !holds {
            self.violations.push(violation());
        }
    }
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }
}

/// A workload with a checkable answer.
#[async_trait]
pub trait Workload: Send + Sync {
    /// A word for tables and command lines.
    fn name(&self) -> &'static str;

    /// Creates its database and tables and loads its rows. `progress` is called after every batch.
    /// Statements whose outcome is unknown are run again, so setting up survives a node's death.
    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()>;

    /// Works until the context says stop. Errors of the database are part of the job and are
    /// counted; `Err` means that the worker cannot go on, which no fault of the cluster should
    /// cause.
    async fn worker(&self, context: &Context, worker: Worker) -> Result<()>;

    /// Judges the final state. Called when no worker runs any more and the cluster is well again.
    async fn check(&self, context: &Context) -> Result<Verdict>;
}

/// Runs a transaction that only reads until it is answered: for final checks, when the cluster may
/// still be electing. Gives up after a minute without an answer, which is itself a finding.
pub(crate) async fn until_answered<T, F>(context: &Context, session: &mut Session, mut body: F) -> Result<T>
where
    F: for<'c> FnMut(&'c mut Statements<'_>) -> BoxFuture<'c, Result<T>>,
{
    const TRIES_MAX: u32 = 60;
    let mut rng = context.rng(u64::MAX);
    for tries in 1.. {
        let error = match session.transaction(&mut rng, &mut body).await {
            Attempted::Committed(value) => return Ok(value),
            Attempted::Failed(error) | Attempted::Unknown(error, _) => error,
        };
        context.stats.note_error(&error);
        if tries == TRIES_MAX || is_own_fault(&error) {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    unreachable!("the loop ends by returning")
}

/// What a worker does about an error: it rests and goes on, unless the statement itself is wrong,
/// which no fault explains.
pub(crate) async fn rest_after(error: &Error, rest: Duration) -> Result<()> {
    if is_own_fault(error) {
        return Err(error.clone());
    }
    tokio::time::sleep(rest).await;
    Ok(())
}

/// Syntax, unknown names, types, unsupported features: the workload's fault, or a bug that must not
/// pass as «unavailable».
fn is_own_fault(error: &Error) -> bool {
    matches!(&error.sqlstate()[..2], "42" | "0A" | "22" | "26" | "34" | "3D" | "3F" | "XX")
}

/// How long a transaction stays open for no reason: most do not, some for up to `longest`. Only its
/// first attempt should: one that is too slow would be so again.
pub(crate) fn draw_pause(longest: Duration, rng: &mut SmallRng) -> Duration {
    if longest.is_zero() || rng.random_bool(0.7) {
        return Duration::ZERO;
    }
    Duration::from_millis(rng.random_range(1..=longest.as_millis().max(1) as u64))
}

/// The region whose rows an operation touches: mostly the client's own.
pub(crate) fn pick_region<'r>(regions: &'r [String], own: &'r str, other_share: f64, rng: &mut SmallRng) -> (&'r str, Locality) {
    let others: Vec<&String> = regions.iter().filter(|r| *r != own).collect();
    if others.is_empty() || !rng.random_bool(other_share) {
        return (own, Locality::Own);
    }
    (others[rng.random_range(0..others.len())], Locality::Other)
}

/// True with this probability. An impossible thing draws nothing, so that a share of 0 leaves all
/// other choices of a seed as they were before the share existed.
pub(crate) fn chance(share: f64, rng: &mut SmallRng) -> bool {
    share > 0.0 && rng.random_bool(share)
}

/// Whose rows they are, seen from a client's region.
pub(crate) fn locality_of(home: &str, client: &str) -> Locality {
    if home == client { Locality::Own } else { Locality::Other }
}

/// Counts how an operation ended and says whether the worker goes on: a worker stops only at its
/// own faults.
pub(crate) async fn account<T>(
    context: &Context,
    session: &mut Session,
    key: &StatsKey,
    started: u64,
    attempted: &Attempted<T>,
) -> Result<()> {
    const REST: Duration = Duration::from_millis(50);
    let retries = session.take_retries();
    match attempted {
        Attempted::Committed(_) => {
            let took = Duration::from_micros(context.timer.now_micros() - started);
            context.stats.success(key, took, retries);
            Ok(())
        }
        Attempted::Failed(error) => {
            context.stats.note_error(error);
            context.stats.failure(key, retries);
            rest_after(error, REST).await
        }
        Attempted::Unknown(..) => {
            context.stats.unknown(key, retries);
            tokio::time::sleep(REST).await;
            Ok(())
        }
    }
}
