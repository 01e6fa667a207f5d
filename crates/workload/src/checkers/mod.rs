//! Checkers: independent judges of what clients saw.
//!
//! They know nothing about Meridian. Their input is a history recorded by clients
//! ([`crate::history`]), their output the anomalies it contains, each with the
//! transactions that show it. Every class that a checker claims to find is planted in its tests,
//! and on histories of a really serial execution it must be silent: a checker that cannot fail, or
//! that cries wolf, is worth nothing.
//!
//! * [`list_append`]: strict serializability from list-append histories, by cycles in the
//!   dependency graph.
//! * [`linearizability`]: registers, by search for an order of operations.
//! * [`balances`]: snapshots of accounts whose sum must not change.
//! * [`promise`]: what the circumstances of a run leave open.

pub mod anomaly;
pub mod balances;
pub mod cycles;
#[cfg(test)]
mod generate;
pub mod graph;
pub mod linearizability;
pub mod list_append;
pub mod promise;

pub use anomaly::{Anomaly, Kind};
pub use promise::Promise;
