//! Meridian's ordered store: the committed versions of every group on a node, readable at any
//! timestamp down to the threshold of garbage collection.
//!
//! ```text
//!            apply ─► row table ──cut, flush_step──► spaces: current, history      (per group)
//!                        ▲  │                          │
//!        get, scan, changed_after ◄────────────────────┘
//! ```
//!
//! A version is (key, commit timestamp) → row or tombstone, for ever: applying one twice is
//! harmless, and everything here leans on that. The log is the durability. The store writes behind,
//! in units that end at a log position, and says ([`GroupStore::durable`]) from where the log is
//! needed again after a crash.
//!
//! Where to read on: [`group`] for the life of a version and the locks, [`table`] for the row table
//! and its invariants, [`read`] for how the two are read together, [`codec`] for the bytes,
//! [`snapshot`] for moving a group to another node, [`sweep`] for removing whole indexes,
//! [`ingest`] for what a new index gets without the log.
//!
//! This crate knows nothing about Raft, transactions in progress, schemas, or time.

mod backend;
mod codec;
mod dead;
mod fjall;
mod group;
mod ingest;
mod manifest;
mod memory;
mod merge;
mod options;
mod read;
mod snapshot;
mod spaces;
mod store;
mod sweep;
mod table;
#[cfg(test)]
mod tests;
mod version;
mod watched;

pub use group::GroupStore;
pub use memory::MemoryDisk;
pub use options::{Backend, Options};
pub use snapshot::{Export, Import};
pub use store::Store;
pub use sweep::Swept;
pub use version::{ScanLimits, ScanPage, Version};
