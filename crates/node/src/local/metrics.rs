//! What a node counts, for `SHOW METRICS`: round trips of transactions that touch other regions,
//! reads of several groups, and what was waited for at its primaries.
//!
//! Counters start at zero with the process and only grow; `txn.remembered.…` tells what is there
//! now ([`crate::gateway::env`]). They say nothing of single transactions; `EXPLAIN ANALYZE` does.

use meridian_region::WaitFor;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Something that is counted by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Rounds of checks that end a transaction over several groups, or at replicas, which has only
    /// read.
    ReadRounds,
    ReadRoundsFailed,
    /// Read-only statements that reserved what they read, after rounds had failed.
    ReservingReads,
    /// A participant refused, or the values did not arrive.
    ReservingReadsRefused,
    /// The statement asked for something that was not reserved.
    ReservingReadsMissed,
    /// Attempts of transactions that touched other regions and did not commit.
    Aborted,
    /// Waits in a row's queue.
    QueueWaits,
    /// Circles of waits over several primaries.
    Deadlocks,
    /// Questions about GLOBAL rows that no replica in the region could answer, so that the primary
    /// was asked.
    GlobalReadsBehind,
    /// Commits and reads of GLOBAL rows that waited for the clock to reach them.
    CommitWaits,
    /// Rounds of redistribution of escrow columns that moved tokens: for a statement that was
    /// short.
    EscrowRounds,
    /// The same, ahead of need.
    EscrowRoundsAhead,
    /// Rounds that moved nothing.
    EscrowRoundsFruitless,
    /// Times that a round began anew, since a site had spent what it offered.
    EscrowRoundsRepeated,
    /// Steps at a host of a pod that waited for slots.
    PodWaits,
    /// Slots that this host gave to others.
    PodSlotsGiven,
    /// Transactions that this host committed through its ring.
    PodCommits,
    /// Hosts that have ended, and whose slots this one took as the leader.
    PodTakeovers,
    /// Unreachable indexes removed from replicas of this node ([`crate::upkeep::sweep`]).
    IndexesSwept,
    /// Indexes that replicas of this node have filled ([`crate::upkeep`]).
    IndexesFilled,
}

const COUNTERS: [(Counter, &str); 20] = [
    (Counter::ReadRounds, "txn.read_rounds"),
    (Counter::ReadRoundsFailed, "txn.read_rounds.failed"),
    (Counter::ReservingReads, "txn.reserving_reads"),
    (Counter::ReservingReadsRefused, "txn.reserving_reads.refused"),
    (Counter::ReservingReadsMissed, "txn.reserving_reads.missed"),
    (Counter::Aborted, "txn.regions.aborted"),
    (Counter::QueueWaits, "primary.waits.queue"),
    (Counter::Deadlocks, "txn.regions.deadlocks"),
    (Counter::GlobalReadsBehind, "txn.global.behind"),
    (Counter::CommitWaits, "txn.global.commit_waits"),
    (Counter::EscrowRounds, "escrow.rounds"),
    (Counter::EscrowRoundsAhead, "escrow.rounds.ahead"),
    (Counter::EscrowRoundsFruitless, "escrow.rounds.fruitless"),
    (Counter::EscrowRoundsRepeated, "escrow.rounds.repeated"),
    (Counter::PodWaits, "pod.waits"),
    (Counter::PodSlotsGiven, "pod.slots.given"),
    (Counter::PodCommits, "pod.commits"),
    (Counter::PodTakeovers, "pod.takeovers"),
    (Counter::IndexesSwept, "store.indexes.swept"),
    (Counter::IndexesFilled, "store.indexes.filled"),
];

/// Round trips from here on are counted together.
const ROUND_TRIPS_TOLD_APART: usize = 8;
const CAUSES: [&str; 5] = ["in_flight", "prepared", "clock", "lease", "grant"];

/// See the module's essay.
#[derive(Debug, Default)]
pub struct Metrics {
    counters: [AtomicU64; COUNTERS.len()],
    /// Committed transactions that touched other regions, by round trips one after the other: at
    /// the first attempt, and later.
    first: [AtomicU64; ROUND_TRIPS_TOLD_APART + 1],
    later: [AtomicU64; ROUND_TRIPS_TOLD_APART + 1],
    /// Waits at primaries of this node, by cause, and how long they took.
    waits: [AtomicU64; CAUSES.len()],
    waited_micros: [AtomicU64; CAUSES.len()],
}

impl Metrics {
    /// Counts one.
    pub fn add(&self, what: Counter) {
        self.counters[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts several.
    pub fn add_many(&self, what: Counter, count: u64) {
        self.counters[what as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// A transaction that touched other regions has committed. `attempts`: how many came before.
    pub(crate) fn committed(&self, attempts: u32, round_trips: u32) {
        let by_trips = if attempts == 0 { &self.first } else { &self.later };
        by_trips[(round_trips as usize).min(ROUND_TRIPS_TOLD_APART)].fetch_add(1, Ordering::Relaxed);
    }

    /// A request has waited at a primary.
    pub(crate) fn waited(&self, what: WaitFor, took: Duration) {
        let cause = match what {
            WaitFor::Applied(_) => 0,
            WaitFor::Outcome(_) => 1,
            WaitFor::Clock(_) => 2,
            WaitFor::Lease => 3,
            WaitFor::Grant => 4,
        };
        self.waits[cause].fetch_add(1, Ordering::Relaxed);
        self.waited_micros[cause].fetch_add(took.as_micros() as u64, Ordering::Relaxed);
    }

    /// Everything, by name.
    pub fn rows(&self) -> Vec<(String, u64)> {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut rows: Vec<(String, u64)> =
            COUNTERS.iter().map(|(c, name)| (name.to_string(), value(&self.counters[*c as usize]))).collect();
        for (when, by_trips) in [("first_attempt", &self.first), ("retried", &self.later)] {
            for (trips, count) in by_trips.iter().enumerate() {
                let more = if trips == ROUND_TRIPS_TOLD_APART { "_or_more" } else { "" };
                rows.push((format!("txn.regions.committed.{when}.round_trips_{trips}{more}"), value(count)));
            }
        }
        for (index, cause) in CAUSES.iter().enumerate() {
            rows.push((format!("primary.waits.{cause}"), value(&self.waits[index])));
            rows.push((format!("primary.waits.{cause}.micros"), value(&self.waited_micros[index])));
        }
        rows.sort();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_counted_has_its_own_row() {
        let metrics = Metrics::default();
        for (place, (counter, _)) in COUNTERS.iter().enumerate() {
            assert_eq!(*counter as usize, place, "{counter:?} stands in its place");
            metrics.add(*counter);
        }
        metrics.committed(0, 1);
        metrics.committed(3, 99);
        metrics.waited(WaitFor::Grant, Duration::from_micros(7));
        let rows = metrics.rows();
        let value = |name: &str| rows.iter().filter(|(n, _)| n == name).map(|(_, v)| *v).collect::<Vec<_>>();
        assert!(COUNTERS.iter().all(|(_, name)| value(name) == [1]));
        assert_eq!(value("txn.regions.committed.first_attempt.round_trips_1"), [1]);
        assert_eq!(value("txn.regions.committed.retried.round_trips_8_or_more"), [1]);
        assert_eq!((value("primary.waits.grant"), value("primary.waits.grant.micros")), (vec![1], vec![7]));
        assert_eq!(rows.iter().map(|(_, v)| v).sum::<u64>(), COUNTERS.len() as u64 + 2 + 1 + 7);
    }
}
