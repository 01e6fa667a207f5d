//! Campaigns: many seeds, each in a process of its own.
//!
//! * [`options`]: what a run may be told; everything else it draws from its seed.
//! * [`run`]: one seed from start to verdict.
//! * [`report`]: what it says at the end.
//! * [`many`]: many seeds, and what all of them together promise.
//! * [`cli`]: the command line.

pub mod cli;
pub mod many;
pub mod options;
pub mod report;
pub mod run;
mod scenario;

pub use cli::main;
pub use options::Options;
pub use report::Report;
pub use run::run_seed;
