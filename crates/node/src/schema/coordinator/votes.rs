//! How long the participants of a transaction that commits with a schema step work for their votes.
//!
//! While they do, the schema leases of all groups are lowered, and a lease that ends meanwhile
//! makes everybody wait for the next one. So the bound that a step leaves them goes by the size of
//! the transaction, and by what the last large ones took here.

use crate::transport::wire::Slice;
use std::time::Duration;

/// Of a write or a read, beside its bytes: what is looked up and kept for it.
const ENTRY_BYTES: usize = 100;
/// Less work says more of messages and disks than of work.
const MEASURED_FROM: usize = 200_000;
/// Nanoseconds for a byte of work, before anything was measured: about what a small machine needs.
const FIRST_RATE: f64 = 40.0;
/// The slowest rate that is believed: others are held up, or a participant cannot be reached.
const SLOWEST_RATE: f64 = 600.0;
/// What may come on top: others work, too.
const MARGIN: f64 = 1.5;

pub(super) struct Votes {
    /// Nanoseconds for a byte of work: as slow as the slowest of the latest transactions.
    rate: f64,
}

impl Default for Votes {
    fn default() -> Votes {
        Votes { rate: FIRST_RATE }
    }
}

/// The work that slices make for their participants, in bytes.
pub(super) fn work(slices: &[Slice]) -> usize {
    let of_slice = |slice: &Slice| {
        let writes = slice.request.writes.iter().map(|m| m.bytes() + ENTRY_BYTES);
        writes.sum::<usize>() + slice.request.reads.len() * ENTRY_BYTES
    };
    slices.iter().map(of_slice).sum()
}

impl Votes {
    /// How long these slices' participants will work.
    pub(super) fn expected(&self, slices: &[Slice]) -> Duration {
        Duration::from_nanos((work(slices) as f64 * self.rate * MARGIN) as u64)
    }

    /// A transaction of this much work took so long.
    pub(super) fn took(&mut self, work: usize, time: Duration) {
        if work < MEASURED_FROM {
            return;
        }
        let rate = time.as_nanos() as f64 / work as f64;
        self.rate = rate.max(self.rate * 7.0 / 8.0).min(SLOWEST_RATE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_ballot_is_remembered_for_a_while() {
        let mut votes = Votes::default();
        votes.took(1_000_000, Duration::from_millis(300));
        assert_eq!(votes.rate, 300.0);
        votes.took(1_000, Duration::from_secs(1));
        assert_eq!(votes.rate, 300.0, "small ones say nothing");
        for _ in 0..40 {
            votes.took(1_000_000, Duration::from_millis(20));
        }
        assert_eq!(votes.rate, 20.0);
        votes.took(1_000_000, Duration::from_secs(20));
        assert_eq!(votes.rate, SLOWEST_RATE);
    }
}
