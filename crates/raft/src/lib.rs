//! A group's replicated log, and the file that holds the logs of all groups of a node.
//!
//! A node opens one [`NodeLog`] (one sequence of segment files, one writer, one `fdatasync` for
//! everything that is queued) and starts a [`Group`] per replica group on it. A group takes opaque
//! payloads in ([`Group::propose`]), makes them durable on a quorum of its voters, and hands them
//! in log order to a [`StateMachine`]. It tells who leads ([`Role`]), whether a quorum still
//! follows ([`Group::lease_valid`]), who belongs to the group ([`Members`]), and moves a lagging or
//! new replica forward by a snapshot of the state machine.
//!
//! The consensus protocol is the library `openraft`, wrapped completely: none of its types leaves
//! this crate, so it can be replaced (`docs/dependencies.md`, `openraft`). Messages between
//! nodes are opaque bytes that the caller carries ([`Transport`], [`Group::handle`]).
//!
//! This crate knows nothing about transactions, timestamps, or what a payload means.

mod consensus;
mod group;
mod incoming;
mod log;
mod machine;
mod options;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod ticket;
mod watch;

pub use group::{Group, found};
pub use log::{LogOptions, LogStatus, NodeLog};
pub use machine::{AppliedEntry, MembershipBlob, Recovered, SnapshotHeader, SnapshotSink, SnapshotSource, StateMachine};
pub use options::{Claim, GroupOptions, Members, Message, Progress, ProposeError, Role, Transport};
pub use ticket::ProposeTicket;

/// A chunk of a snapshot is at most this long; a message between nodes that carries one is slightly
/// longer.
pub const SNAPSHOT_CHUNK_BYTES_MAX: usize = 4 << 20;
