//! What transactions over one number of regions measured.

use crate::histogram::Histogram;
use crate::session::Attempted;
use meridian_base::Error;
use std::collections::BTreeMap;
use std::time::Duration;

/// Different aborts that are told apart; the rest are counted together, so that a reason with a
/// number in it cannot fill the memory.
const ABORTS_MAX: usize = 64;

/// Why a transaction was aborted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Abort {
    pub sqlstate: String,
    /// What the message says after its last colon, or all of it.
    pub reason: String,
}

impl Abort {
    fn of(error: &Error) -> Abort {
        let reason = error.message().rsplit(": ").next().unwrap_or_default();
        Abort { sqlstate: error.sqlstate().to_string(), reason: reason.to_string() }
    }
}

/// The measurements of one number of regions.
#[derive(Clone, Default)]
pub struct Measured {
    /// Of the transactions that committed.
    pub latency: Histogram,
    /// How many ended without effect, by cause.
    pub aborts: BTreeMap<Abort, u64>,
    /// How many ended without a known outcome.
    pub unknown: u64,
}

impl Measured {
    /// How many committed.
    pub fn committed(&self) -> u64 {
        self.latency.count()
    }
    /// How many ended without effect.
    pub fn aborted(&self) -> u64 {
        self.aborts.values().sum()
    }
    /// The share of the transactions with a known outcome that ended without effect; `None` if
    /// there are none.
    pub fn abort_share(&self) -> Option<f64> {
        let known = self.committed() + self.aborted();
        (known > 0).then(|| self.aborted() as f64 / known as f64)
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Measured) {
        self.latency.merge(&other.latency);
        self.unknown += other.unknown;
        for (abort, count) in &other.aborts {
            *self.aborts.entry(abort.clone()).or_default() += count;
        }
    }

    pub(super) fn note(&mut self, took: Duration, attempted: &Attempted<()>) {
        match attempted {
            Attempted::Committed(()) => self.latency.record(took),
            Attempted::Unknown(..) => self.unknown += 1,
            Attempted::Failed(error) => {
                let mut abort = Abort::of(error);
                if self.aborts.len() >= ABORTS_MAX && !self.aborts.contains_key(&abort) {
                    abort = Abort { reason: "other".to_string(), ..abort };
                }
                *self.aborts.entry(abort).or_default() += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(message: String) -> Attempted<()> {
        Attempted::Failed(Error::retry(message))
    }

    #[test]
    fn aborts_are_counted_by_sqlstate_and_reason() {
        let mut measured = Measured::default();
        assert_eq!(measured.abort_share(), None);
        measured.note(Duration::from_millis(3), &Attempted::Committed(()));
        measured.note(Duration::ZERO, &failed("could not serialize access: concurrent write".to_string()));
        measured.note(Duration::ZERO, &failed("could not serialize access to table \"t\": concurrent write".to_string()));
        measured.note(Duration::ZERO, &Attempted::Failed(Error::unavailable("nobody leads")));
        measured.note(Duration::ZERO, &Attempted::Unknown(Error::unknown_outcome("who knows"), None));
        assert_eq!((measured.committed(), measured.aborted(), measured.unknown), (1, 3, 1));
        assert_eq!(measured.abort_share(), Some(0.75));
        let concurrent = Abort { sqlstate: "40001".to_string(), reason: "concurrent write".to_string() };
        assert_eq!(measured.aborts.get(&concurrent), Some(&2));
        assert!(measured.aborts.keys().any(|abort| abort.reason == "nobody leads"));
    }

    #[test]
    fn reasons_without_end_are_counted_together() {
        let mut measured = Measured::default();
        (0..1_000).for_each(|n| measured.note(Duration::ZERO, &failed(format!("no answer within {n} ms"))));
        assert_eq!(measured.aborts.len(), ABORTS_MAX + 1);
        assert_eq!(measured.aborted(), 1_000);
    }
}
