//! What a run says at the end.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// One seed's result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub seed: u64,
    pub workload: String,
    /// Regions × zones.
    pub shape: String,
    /// The hash of everything that happened, and how many events that were.
    pub trace: u64,
    pub events: u64,
    /// Operations that clients completed, gave up, and know nothing about.
    pub succeeded: u64,
    pub failed: u64,
    pub unknown: u64,
    /// Simulated time.
    pub seconds: u64,
    /// What is wrong; empty if nothing is.
    pub violations: Vec<String>,
    /// How many of the violations say that the run came to no end, or never got anywhere.
    pub unfinished: usize,
    /// How often each fault and rare path happened.
    pub coverage: BTreeMap<String, u64>,
}

/// Longest text of one violation that is kept: a list may be long, and the first part says enough.
const VIOLATION_CHARS_MAX: usize = 600;
const VIOLATIONS_MAX: usize = 20;

impl Report {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }
    /// Whether an answer was wrong, or an assertion failed. A run that hangs fails too, but shows
    /// no such thing.
    pub fn shows_wrong(&self) -> bool {
        self.violations.len() > self.unfinished
    }
    /// Notes that the run, or a part of it, came to no end.
    pub fn does_not_end(&mut self, what: impl fmt::Display) {
        let before = self.violations.len();
        self.violate(what);
        self.unfinished += self.violations.len() - before;
    }
    /// Notes something that is wrong.
    pub fn violate(&mut self, what: impl fmt::Display) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(what.to_string().chars().take(VIOLATION_CHARS_MAX).collect());
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { seed, workload, shape, trace, events, succeeded, failed, unknown, seconds, .. } = self;
        let verdict = if self.is_ok() { "ok" } else { "FAILED" };
        writeln!(
            f,
            "seed {seed}: {verdict}; {workload} on {shape}, {seconds} s simulated, {succeeded} operations ({failed} failed, \
             {unknown} unknown), trace {trace:016x} of {events} events"
        )?;
        for violation in &self.violations {
            writeln!(f, "  {violation}")?;
        }
        let counts: Vec<String> = self.coverage.iter().map(|(what, count)| format!("{what} {count}")).collect();
        write!(f, "  happened: {}", counts.join(", "))
    }
}
