//! One host of a pod (PASHA, CIDR 2025; `docs/design/pod.md`): what its engine and its rows know,
//! and what the pod's shared memory holds, put together.
//!
//! # What a host does
//!
//! A host certifies transactions on the rows of its own slots with its own [`Engine`]. What its
//! transactions touch of other hosts' rows, it asks their owners once to move in; from then on it
//! reads and writes these *shared tuples* in memory, and commits at one place, without a message.
//!
//! ```text
//!  clients          host                                       shared memory
//!  ───────▶ transactions ─┬─ own rows ──▶ engine, rows
//!           (reading,     ├─ tuples ───────────────────────────▶ words, bodies
//!            committing)  └─ record ───────────────────────────▶ ring ──┐
//!  others                                                               │ L: take, propose,
//!  ───────▶ jobs (moving): in, out, old versions               feed ◀───┘    publish (leading)
//!           following: feed ──▶ state, rows, engine; then tuples are released, clients answered
//! ```
//!
//! # Steps
//!
//! Everything is a step of a [`Task`]: one operation on shared memory, or work on what only this
//! host looks at. [`Host::tasks`] tells which have one to do. A server runs them back to back. A
//! simulator runs any host's next one, and lets a host die between two ([`Host::is_gone`]).
//! Clients' requests and other hosts' messages come in; answers, messages and entries for the log
//! come out ([`Action`]).
//!
//! *The host's lock* is a value here ([`Host::tasks`] leaves out what has to wait for it): a server
//! has a mutex. It is held from certification to the store of the ring's tail, and while a tuple
//! moves.
//!
//! # The rules, and where each is kept
//!
//! | rule | kept by |
//! | --- | --- |
//! | P4: hosts apply in the order of the log | `following` |
//! | P5: a read-only snapshot is at or above `acked` | `reading` |
//! | P6: under the host's lock, a commit looks again where its own keys are | `committing` |
//! | P12, P13: nothing moves in that is in flight or reserved at home | [`Engine::may_be_shared`] |
//! | P15: a tuple moves out when the own rows have its newest version | `moving` |
//! | P19: a dead host's slots are taken when its ring's last entry is applied | `takeover` |
//! | P20: what was written to them before is asked of the rows | [`Engine::gained`] |
//! | a commit that is sent again is answered by the log | [`GroupState::outcome`], under the lock |
//!
//! This crate knows nothing about SQL, Raft, sockets or where rows are stored ([`Rows`]).
//!
//! [`Engine`]: meridian_region::Engine
//! [`Engine::may_be_shared`]: meridian_region::Engine::may_be_shared
//! [`Engine::gained`]: meridian_region::Engine::gained
//! [`GroupState::outcome`]: meridian_region::GroupState::outcome

mod committing;
mod following;
mod host;
mod leading;
mod message;
mod moving;
mod reading;
mod rows;
mod takeover;
mod txn;

pub use host::{Config, Counts, Host, Task};
pub use message::{Action, Answer, LogEntry, Message, Request};
pub use rows::{MemoryRows, Rows, Version};
