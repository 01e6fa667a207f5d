//! A pod beside what it replaces, under one load (PASHA, CIDR 2025, §4).
//!
//! | side | what it is |
//! | --- | --- |
//! | pod | hosts of crate `host`: own rows at home, foreign ones as shared tuples |
//! | all shared | the same, every row a shared tuple |
//! | shared nothing | a group a host, and two-phase commit between groups, over TCP or over rings |
//!
//! All of them have the same [`Engine`], the same rows in memory, the same records in a log, and
//! the same workers: two a host, each of which waits for its transaction's answer and begins the
//! next.
//!
//! # Three figures
//!
//! *Counts* do not depend on a machine. *CPU* is measured here, for all that a side does, plus a
//! price for each message. *Simulated time* is what the paper's comparison is about: its workers
//! wait, so it is a ratio of waiting. Every piece of work takes its average CPU time and what its
//! operations on shared memory would take on a device ([`Prices`]); messages take their delay.
//!
//! [`Engine`]: meridian_region::Engine

mod events;
mod load;
mod memory;
mod nothing;
mod pod;

pub use load::Load;
pub use memory::Operations;

use std::time::Duration;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Pod,
    AllShared,
    NothingTcp,
    NothingRings,
}

impl Side {
    /// All of them.
    pub const ALL: [Side; 4] = [Side::Pod, Side::NothingTcp, Side::NothingRings, Side::AllShared];

    /// How it is called in a table.
    pub fn name(self) -> &'static str {
        match self {
            Side::Pod => "pod",
            Side::AllShared => "all shared",
            Side::NothingTcp => "2PC, TCP",
            Side::NothingRings => "2PC, rings",
        }
    }
}

/// What things cost that are not measured here.
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    /// A line between a cache and the device.
    pub line: Duration,
    /// Every further line of a block.
    pub next_line: Duration,
    /// A message's way.
    pub tcp: Duration,
    pub ring: Duration,
    /// CPU time of a message, half at each end.
    pub tcp_cpu: Duration,
    pub ring_cpu: Duration,
    /// The same in simulated time, where a host looks at its rings all the time.
    pub ring_cpu_polled: Duration,
    /// Until an entry of a log is durable.
    pub log: Duration,
}

impl Prices {
    /// A line of DRAM takes 100 ns here; the device takes 2.3 times that and has 58 % of the
    /// bandwidth (PASHA, §2.1). One-way delays are those of Tigon's network and of a ring; CPU
    /// times of messages are the design's measurements.
    pub const DEFAULT: Prices = Prices {
        line: Duration::from_nanos(230),
        next_line: Duration::from_nanos(6),
        tcp: Duration::from_micros(29),
        ring: Duration::from_micros(1),
        tcp_cpu: Duration::from_nanos(8_600),
        ring_cpu: Duration::from_nanos(4_000),
        ring_cpu_polled: Duration::from_nanos(500),
        log: Duration::ZERO,
    };

    fn memory(&self, operations: Operations) -> f64 {
        let blocks = operations.flushes + operations.invalidations;
        let more = operations.lines.saturating_sub(blocks);
        let line = self.line.as_nanos() as f64;
        (operations.transfers + blocks) as f64 * line + more as f64 * self.next_line.as_nanos() as f64
    }
}

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub load: Load,
    pub hosts: u8,
    /// Workers of a host.
    pub workers: u8,
    /// Transactions before anything is measured.
    pub warm_up: u64,
    pub transactions: u64,
    pub seed: u64,
    pub prices: Prices,
}

/// A kind of work, all of it.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub count: u64,
    pub cpu: Duration,
    pub operations: Operations,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub committed: u64,
    pub aborted: u64,
    /// In simulated time.
    pub time: Duration,
    pub messages: u64,
    pub message_bytes: u64,
    pub log_bytes: u64,
    pub operations: Operations,
    pub moved_in: u64,
    pub moved_out: u64,
    /// Of everything, messages included.
    pub cpu: Duration,
    pub kinds: Vec<Kind>,
}

impl Measured {
    /// Transactions in a second of simulated time.
    pub fn rate(&self) -> f64 {
        self.committed as f64 / self.time.as_secs_f64()
    }
    /// CPU time of a transaction, in microseconds.
    pub fn cpu_micros(&self) -> f64 {
        self.cpu.as_nanos() as f64 / 1e3 / self.committed as f64
    }
    /// A count by transaction.
    pub fn each(&self, count: u64) -> f64 {
        count as f64 / self.committed as f64
    }
}

fn kinds(meter: &events::Meter) -> Vec<Kind> {
    let kind = |(name, (count, cpu, operations)): (&&'static str, &(u64, f64, Operations))| Kind {
        name,
        count: *count,
        cpu: Duration::from_nanos(*cpu as u64),
        operations: *operations,
    };
    meter.kinds.iter().map(kind).collect()
}

/// Runs a load on a side.
///
/// # Panics
///
/// If a sum over all rows is not what the committed transactions have added: the side is wrong.
pub fn run(side: Side, run: &Run) -> Measured {
    match side {
        Side::Pod => pod::run(run, false),
        Side::AllShared => pod::run(run, true),
        Side::NothingTcp => nothing::run(run, true),
        Side::NothingRings => nothing::run(run, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each run compares the sums of all rows with what was committed.
    #[test]
    fn every_side_is_right_and_counts_what_it_should() {
        for load in [Load::Ycsb { cross: 0 }, Load::Ycsb { cross: 100 }, Load::Tpcc { new_orders: 60, payments: 90 }] {
            for side in Side::ALL {
                let hosts = Run { load, hosts: 3, workers: 2, warm_up: 200, transactions: 500, seed: 1, prices: Prices::DEFAULT };
                let measured = run(side, &hosts);
                let (each, name) = (|count| measured.each(count), format!("{}, {}", load.name(), side.name()));
                // An entry of the log may have several, at the beginning and at the end.
                assert!(measured.committed > 480, "{name}: {}", measured.committed);
                assert!(measured.rate() > 1_000.0 && each(measured.log_bytes) > 100.0, "{name}");
                let is_pod = matches!(side, Side::Pod | Side::AllShared);
                assert_eq!(measured.operations.words > 0, is_pod, "{name}");
                match (side, load) {
                    (_, Load::Ycsb { cross: 0 }) => assert_eq!(measured.messages, 0, "{name}"),
                    (Side::Pod | Side::AllShared, _) => assert!(each(measured.messages) <= 0.05, "{name}: {}", measured.messages),
                    _ => assert!(each(measured.messages) > 2.0, "{name}"),
                }
            }
        }
    }
}
