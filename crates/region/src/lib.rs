//! The transaction engine of a replica group, as pure state machines: what happened and the time
//! come in, answers and records to log come out. No task, no clock, no socket, no disk; the caller
//! owns the lock and the waiting.
//!
//! # Two kinds of knowledge
//!
//! [`GroupState`] is what the group's *log* determines, the same on every replica: the ceiling of
//! the last lease, the closed timestamp, the watermark, the schema grant, the outcomes of recent
//! transactions, and which are prepared. [`Engine`] is what the group's *primary* adds in memory
//! for one term: who is certified and not yet durable, who wrote what lately, how far reads have
//! gone, who waits. Losing an engine loses speed and unacknowledged work; losing a state is
//! impossible, because it is the log.
//!
//! ```text
//!   gateway ──CommitRequest──▶ Engine::certify ──Append{at}──▶ batch ──▶ log ──durable──▶ store, GroupState::apply
//!                                  │   ▲                                                        │
//!                            Wait(ticket) └───────────── wakes ────────── Engine::applied ◀─────┘
//! ```
//!
//! [`Primary`] is what an engine does for a transaction: read the essay of [`primary`] next.
//!
//! # The rules, and where each is kept
//!
//! | rule | kept by |
//! | --- | --- |
//! | a commit timestamp is above everything issued, read or promised | `floor` in [`engine`] |
//! | nothing above an entry's `until` changed what it read, ranges and columns included | [`conflict_index`], the store below its low-water mark |
//! | what is in flight is waited for and never read | [`Engine::read_gate`], [`Engine::certify`] |
//! | a commit is idempotent by id, and a refusal is stable | the outcome table of [`state`], [`Certified::Done`] |
//! | a successor starts above the last ceiling, by waiting | [`Engine::start_wait`] |
//! | `closed` stays below what is certified and not in the log | [`Engine::closed_target`] |
//! | a transaction commits under the schema it planned with | [`Engine::certify`], [`Engine::grant`], [`schema_lease`] |
//! | what a prepared transaction has read or writes stays as it is until its outcome | [`reservations`], [`Engine::prepare`] |
//! | an outcome enters the log only when the clock is at its timestamp | [`Engine::decide`] |
//! | a read never misses what was acknowledged at a faster group's timestamp | [`decided`], [`ReadGate::MoveTo`] |
//! | votes, outcomes and their effects are functions of the log | [`GroupState`]'s tables, [`GroupState::effect`] |
//! | a delta of an escrow column takes no token that is not there, or that is offered | `shares` |
//! | a step of a site in a round of `majority` is one transaction, and the only one of its row | [`Engine::step_round`] |
//! | hot rows queue instead of aborting each other; advice only | [`queue`] |
//!
//! The laboratory breaks each of them with a [`PlantedBug`] ([`rules`]): so the simulator shows
//! that its checkers would notice.
//!
//! # How it is tested
//!
//! `tests/all`: random histories executed again in the order of their timestamps
//! (`serializability`, and `several` for transactions over three groups), the schema lease under
//! lost and repeated messages (`schema_lease`), scripts to read along (`golden/*.txt`), and the
//! state table of `docs/design/transaction-states.md` (`states`). Start with the golden scripts.
//!
//! This crate knows nothing about SQL, Raft, other groups, or how rows are stored: what it needs
//! from the store is the trait [`Versions`].

pub mod conflict_index;
pub mod decided;
pub mod engine;
mod held_ranges;
mod index_key;
mod moment;
pub mod primary;
pub mod queue;
pub mod recent;
mod reservations;
mod reserved;
pub mod rules;
pub mod schema_lease;
mod shares;
pub mod state;
pub mod versions;
pub mod waits;

pub use engine::{
    Ballot, Certified, Deciding, Engine, NotReady, Outlook, Preparation, ReadCheck, ReadGate, Refused, SchemaCheck, ShareLook,
    SiteStep, Snapshot, Turn,
};
pub use moment::Moment;
pub use primary::{First, Primary};
pub use queue::{Ended, Ending, Enqueued, IfBusy, Mode, Owner, Place, Queues};
pub use rules::{PlantedBug, Rules};
pub use schema_lease::{Action, Delays, Granted, SchemaLeases};
pub use state::{GroupState, Planned};
pub use versions::Versions;
pub use waits::{Ticket, WaitFor};
