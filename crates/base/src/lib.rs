//! The vocabulary that every layer of Meridian shares, and nothing that does anything by itself.
//!
//! * [`id`]: nodes, groups, transactions, log positions. Ids are types, never bare integers.
//! * [`time`]: hybrid-logical-clock timestamps and the rules a clock keeps.
//! * [`key`]: keys, ranges, and the order-preserving encoding of column values into them.
//! * [`txn`]: what a gateway sends to a primary: read entries, writes, commit requests, and what
//!   comes back.
//! * [`ballot`]: what the participants of a transaction over several groups say to each other.
//! * [`record`]: what a group's log contains.
//! * [`envelope`]: encoded values to which a field or a kind can be added; [`version`]: which of
//!   them may be written.
//! * [`rules`]: how crates declare the rules that the laboratory breaks one at a time.
//! * [`error`]: the error type, whose kind says what follows: retry, give up, or stop the node.
//! * [`invariants`]: whether structures are checked after every event.
//! * [`limits`]: every bound, with its reason.
//! * [`steady`]: a node's physical clock: the wall clock, less its steps.
//! * [`runtime`]: the only door to clocks, randomness, the network and the disk. A cluster whose
//!   nodes run on a simulated runtime is deterministic. [`workers`] says which threads must not
//!   wait for a disk.
//! * [`alarm`]: tasks whose panic must not go unnoticed.
//! * [`turn`] and [`migration`]: how long a task may keep those waiting that share its thread.
//!
//! This crate knows nothing about SQL, Raft, or how anything is stored.

pub mod alarm;
pub mod ballot;
pub mod envelope;
pub mod error;
pub mod escrow;
pub mod id;
pub mod invariants;
pub mod key;
pub mod limits;
pub mod migration;
pub mod parts;
pub mod record;
pub mod rules;
pub mod runtime;
pub mod steady;
pub mod time;
pub mod turn;
pub mod txn;
pub mod version;
pub mod workers;

pub use ballot::{BallotMessage, Fresh, Ledger, Peer, Prepare, Refusal, Standing, Vote};
pub use error::{Error, ErrorKind, Result};
pub use id::{DescriptorId, GroupId, LogPosition, NodeId, SessionId, TxnId};
pub use key::{Key, KeyRange, Target};
pub use steady::SteadyClock;
pub use time::{Clock, ClockWord, Timestamp};
pub use txn::{
    Change, ColumnMask, CommitOutcome, CommitRequest, Conflict, ConflictReason, GlobalReads, Mutation, ReadEntry, SchemaUse,
    SchemaVersion, Write,
};
