//! Workloads: setup + load + work + check, over a client trait.
//!
//! The same code is the demo's traffic, the judge of real processes that are killed, and the
//! simulator's clients. This crate knows nothing about how a database is reached ([`client`]),
//! about what time it is ([`timer`]), or about which faults happen meanwhile. What a workload
//! claims is checked in one of two ways: by queries at the end ([`run::Workload::check`]), or by a
//! checker over the recorded [`history`] ([`checkers`]).
//!
//! * [`movr`]: the ride-sharing application of CockroachDB's multi-region paper, its tables homed
//!   in each region.
//! * [`bank`]: transfers, within a region and between regions; the sum is constant in every
//!   snapshot, and every acknowledged transfer is there exactly once.
//! * [`list_append`]: appends and reads of lists, single and by range, for the serializability
//!   checker.
//! * [`multi_region`]: SunStorm's microbenchmark: transactions over one or several regions, counted
//!   by number of regions.
//! * [`registers`]: reads, writes and compare-and-set per key, for the linearizability checker.
//! * [`inserts`]: names that everybody wants: one winner each.
//! * [`queue`]: a queue with a head and a tail: every item is taken once, in order.
//! * [`escrow`]: counters that all regions change at once, within bounds, each delta counted once.
//! * [`schema_steps`]: schema changes under load: they hold for everything that begins after them.
//! * [`social`]: a social network whose users follow, post, and read timelines, some over regions.
//! * [`tpcc`]: TPC-C, its warehouses homed in each region, with the standard's consistency
//!   conditions.
//! * [`ycsb`]: YCSB over regions, its table in every shape that a database over regions has for it.
//! * [`foreign`]: children inserted while their parents are deleted: no orphans.
//! * [`localities`]: tables change their locality and their database its regions: every row stays,
//!   once, where its region says.

pub mod bank;
pub mod checkers;
pub mod client;
pub mod escrow;
pub mod foreign;
pub mod histogram;
pub mod history;
pub mod inserts;
pub mod list_append;
pub mod localities;
pub mod movr;
pub mod multi_region;
pub mod queue;
pub mod registers;
pub mod run;
pub mod schema;
pub mod schema_steps;
pub mod session;
pub mod social;
pub mod stats;
pub mod timer;
pub mod tpcc;
pub mod ycsb;

pub use client::{Client, Connector, Rows, Told, Value};
pub use history::{History, Op, Outcome, Record};
pub use run::{Context, Progress, Verdict, Worker, Workload};
pub use session::{Attempted, RetryPolicy, Session};
pub use stats::{Locality, Stats, StatsKey};
pub use timer::{Stop, Timer, WallTimer};
