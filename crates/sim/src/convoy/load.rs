//! S-DUR's microbenchmark (§5.1): transactions that read and write two rows, arriving by chance;
//! and what is measured.

use super::Config;
use super::network::{Micros, PARTITIONS};
use meridian_workload::histogram::Histogram;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

/// Before it nothing is measured, and after the last measured arrival others go on arriving for as
/// long, so that what ends by the arrival of others ends.
const MARGIN: Duration = Duration::from_secs(1);

/// A row: its partition, and its number in it.
pub(super) type Row = (usize, u32);

/// A transaction that a client wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub number: u64,
    /// The partition beside the client.
    pub home: usize,
    /// Read, then written. The first one is at home.
    pub rows: [Row; 2],
    pub begun: Micros,
}

impl Request {
    pub fn is_global(&self) -> bool {
        self.rows[0].0 != self.rows[1].0
    }
    /// The rows in one partition.
    pub fn rows_in(&self, partition: usize) -> impl Iterator<Item = u32> + '_ {
        self.rows.iter().filter(move |row| row.0 == partition).map(|row| row.1)
    }
    /// Ascending.
    pub fn partitions(&self) -> impl Iterator<Item = usize> + '_ {
        (0..PARTITIONS).filter(|p| self.rows.iter().any(|row| row.0 == *p))
    }
}

/// What was measured.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Measured {
    /// Of local transactions that committed, from the client's request to its answer.
    pub local: Histogram,
    /// Of global ones.
    pub global: Histogram,
    pub aborted: u64,
    /// What had not ended when the run did.
    pub unfinished: u64,
}

impl Measured {
    /// How many ended.
    pub fn ended(&self) -> u64 {
        self.local.count() + self.global.count() + self.aborted
    }
}

/// Arrivals, and who has been answered.
pub(super) struct Load {
    config: Config,
    rng: SmallRng,
    requests: u64,
    measured: Measured,
}

impl Load {
    pub fn new(config: &Config) -> Load {
        Load { config: config.clone(), rng: SmallRng::seed_from_u64(config.seed), requests: 0, measured: Measured::default() }
    }

    /// When the run ends.
    pub fn end(&self) -> Micros {
        (self.config.time + 2 * MARGIN).as_micros() as Micros
    }

    fn is_measured(&self, request: &Request) -> bool {
        let from = MARGIN.as_micros() as Micros;
        (from..from + self.config.time.as_micros() as Micros).contains(&request.begun)
    }

    /// The time to the next arrival at a partition.
    pub fn pause(&mut self) -> Micros {
        (-self.rng.random::<f64>().max(1e-9).ln() * 1e6 / self.config.rate) as Micros
    }

    /// A client beside a partition wants something.
    pub fn request(&mut self, home: usize, now: Micros) -> Request {
        let is_global = self.config.global_share > 0.0 && self.rng.random_bool(self.config.global_share);
        let first = self.rng.random_range(0..self.config.rows);
        // Another row, wherever it is.
        let second = (first + self.rng.random_range(1..self.config.rows)) % self.config.rows;
        let other = if is_global { (home + 1) % PARTITIONS } else { home };
        self.requests += 1;
        let request = Request { number: self.requests, home, rows: [(home, first), (other, second)], begun: now };
        self.measured.unfinished += u64::from(self.is_measured(&request));
        request
    }

    /// The client has the answer.
    pub fn answered(&mut self, request: &Request, committed: bool, now: Micros) {
        if !self.is_measured(request) {
            return;
        }
        self.measured.unfinished -= 1;
        let took = Duration::from_micros(now - request.begun);
        match (committed, request.is_global()) {
            (true, false) => self.measured.local.record(took),
            (true, true) => self.measured.global.record(took),
            (false, _) => self.measured.aborted += 1,
        }
    }

    pub fn measured(self) -> Measured {
        self.measured
    }
}
