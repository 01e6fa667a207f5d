//! What a run measured: a latency histogram and counts per client region, operation, and whose rows
//! the operation touched.

use crate::histogram::Histogram;
use meridian_base::Error;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Whose rows an operation touched, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Locality {
    /// Rows homed in the client's own region.
    Own,
    /// Rows homed in another region.
    Other,
}

/// What a measurement belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatsKey {
    /// The client's region.
    pub region: String,
    /// The workload's name for the operation.
    pub operation: &'static str,
    pub locality: Locality,
}

/// The measurements of one key.
#[derive(Clone, Default)]
pub struct OperationStats {
    /// Of operations that succeeded, retries included: what a user waits.
    pub latency: Histogram,
    /// Attempts that ended in 40001 or 40P01 and were run again.
    pub retries: u64,
    /// Operations that failed for good.
    pub failures: u64,
    /// Operations whose outcome the client does not know.
    pub unknown: u64,
}

/// Shared by all workers of a run; cheap to clone.
#[derive(Clone, Default)]
pub struct Stats(Arc<Shared>);

#[derive(Default)]
struct Shared {
    operations: Mutex<BTreeMap<StatsKey, OperationStats>>,
    last_error: Mutex<Option<Error>>,
    happened: Mutex<BTreeMap<&'static str, u64>>,
}

impl Stats {
    /// Empty.
    pub fn new() -> Stats {
        Stats::default()
    }
    /// Counts a success.
    pub fn success(&self, key: &StatsKey, latency: Duration, retries: u32) {
        self.with(key, |s| {
            s.latency.record(latency);
            s.retries += u64::from(retries);
        });
    }
    /// Counts a failure.
    pub fn failure(&self, key: &StatsKey, retries: u32) {
        self.with(key, |s| {
            s.failures += 1;
            s.retries += u64::from(retries);
        });
    }
    /// Counts an operation without a known outcome.
    pub fn unknown(&self, key: &StatsKey, retries: u32) {
        self.with(key, |s| {
            s.unknown += 1;
            s.retries += u64::from(retries);
        });
    }
    /// Everything so far, ordered by key. A live table shows the difference of two snapshots, or
    /// one after [`Stats::take`].
    pub fn snapshot(&self) -> BTreeMap<StatsKey, OperationStats> {
        self.lock().clone()
    }
    /// Everything since the last `take`.
    pub fn take(&self) -> BTreeMap<StatsKey, OperationStats> {
        std::mem::take(&mut *self.lock())
    }
    /// Operations that succeeded so far, over all keys.
    pub fn successes(&self) -> u64 {
        self.lock().values().map(|s| s.latency.count()).sum()
    }

    /// Keeps an error, for whoever wonders why nothing goes on.
    pub fn note_error(&self, error: &Error) {
        *self.0.last_error.lock().expect("no panic while noting") = Some(error.clone());
    }
    /// The error noted last.
    pub fn last_error(&self) -> Option<Error> {
        self.0.last_error.lock().expect("no panic while noting").clone()
    }

    /// Counts something that a run is to have seen, by its name.
    pub fn note(&self, what: &'static str) {
        *self.0.happened.lock().expect("no panic while noting").entry(what).or_default() += 1;
    }
    /// How often each of these happened.
    pub fn happened(&self) -> BTreeMap<&'static str, u64> {
        self.0.happened.lock().expect("no panic while noting").clone()
    }

    fn with(&self, key: &StatsKey, change: impl FnOnce(&mut OperationStats)) {
        let mut all = self.lock();
        match all.get_mut(key) {
            Some(stats) => change(stats),
            None => change(all.entry(key.clone()).or_default()),
        }
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<StatsKey, OperationStats>> {
        self.0.operations.lock().expect("no panic while counting")
    }
}
