//! The shared memory of a *pod*: a few nodes of one zone, called hosts, that map the same memory
//! (PASHA, CIDR 2025; `docs/design/pod.md`).
//!
//! # What a pod is for
//!
//! A group's rows are divided among the hosts. Each host certifies transactions on its own rows
//! with its own engine, in its own memory. A transaction that touches another host's rows would
//! need messages and a two-phase commit; in a pod it reads and writes those rows, *shared tuples*,
//! in memory that all hosts see. It commits at one host.
//!
//! **A pod holds nothing durable.** The group's log is the truth. A pod forms when a host becomes
//! the log's leader (*L*), lives for that term, and may vanish at any time.
//!
//! ```text
//!      host 1                          shared memory                        host 0 = L
//!  ┌─────────────┐  draw p      ┌──────────────────────────┐
//!  │ engine of   │─────────────▶│ clock                    │◀──────────── draw p
//!  │ its slots   │  lock, read  │ tuples: words, bodies    │
//!  │             │─────────────▶│ descriptors              │
//!  │             │  push        │ ring of host 1           │── take ─▶ one entry of the log
//!  │             │─────────────▶│ ring of host 0           │── take ─▶     │ durable
//!  │             │◀─────────────│ feed, acked              │◀──────────────┘
//!  └─────────────┘ apply, answer└──────────────────────────┘
//! ```
//!
//! # Steps
//!
//! Every change of shared memory is a *step*: one atomic operation on a word, or work on a block
//! that no other host looks at. Longer operations are state machines ([`Commit`], [`Read`],
//! [`Insert`], [`Remove`], [`BodyRead`], [`MoveOut`], [`Repair`], …) whose `step` does one. A
//! server runs steps back to back. The tests run any host's next step, and let a host die between
//! any two, until no state is left that they have not seen.
//!
//! # The rules, and where each is kept
//!
//! | rule (`docs/design/pod.md`) | kept by |
//! | --- | --- |
//! | all hosts draw timestamps from one clock | [`Draw`] |
//! | the store of a ring's tail decides (P1) | [`RingWriter::publish`], [`Repair`] |
//! | nothing appears at or below what is closed (P2) | [`Rings::closed`], [`Rings::admit`] |
//! | `acked` covers everything durable, votes included (P3) | [`Rings::durable`] |
//! | hosts apply in the order of the log (P4) | [`FeedReader`] |
//! | locks come before the draw, validation after it (P7, P8) | [`Commit`] |
//! | readers wait for a lock without a timestamp, and for writers at or below the snapshot (P9, P10) | [`Read`] |
//! | blind writers wait, too (P11) | [`Commit`] |
//! | a tuple moves out locked (P14) | [`MoveOut`] |
//! | an insert is linked, locked, before the draw (P17) | [`Progress::Link`] |
//! | a dead host's ring is drained before its slots change hands (P19) | [`Rings::seal`] |
//! | publish after the flush, with one's own bit alone (C1, C2) | [`BodyWrite`], [`BodyWord`] |
//! | load the word, then invalidate, then read, then set the bit by comparison (C3, C4) | [`BodyRead`] |
//! | a block is used again when every host has passed an epoch (C5) | [`Epochs`], [`Allocator`] |
//! | an abandoned block is flushed, a dead host's waits for its machine (C6, C7) | [`BodyWrite::abandon`], [`Orphans`] |
//! | a host's lease runs from when it wrote the nonce | [`HostLease`] |
//!
//! The rules P5, P6, P12, P13, P15, P16, P18 and P20 are about what a host's engine and store know;
//! the caller keeps them, under its host's lock. The machines ask at the right moment:
//! [`Progress::Certify`] (P6), [`Moved::Check`] (P15).
//!
//! Tests break each of them with a [`PlantedBug`].
//!
//! # How it is tested
//!
//! `tests/all`: `explorer` runs every order of steps of a small system. `rings` does so with the
//! way into the log, `words` with transactions, moves, deaths and repair, `inserts` with ranges,
//! `index` with the list of tuples, `blocks` with allocation, `coherence` with bodies over caches
//! that prefetch and write back at any time. `processes` and `bank` kill a second process on a
//! mapped file; `threads` is the bank in one process, for Miri. Start with `words`.
//!
//! This crate knows nothing about SQL, Raft, sockets, certification or what a record means. It has
//! no task and reads no clock: times come in as arguments. The unsafe code is in
//! `memory/mapping.rs`, `memory/mapping/faults.rs` and `memory/device.rs`.

mod alloc;
mod body;
mod circle;
mod clock;
mod commit;
mod descriptor;
mod door;
mod epochs;
mod error;
mod feed;
mod figures;
mod hosts;
mod index;
mod layout;
mod lease;
pub mod memory;
mod moves;
mod read;
mod repair;
mod ring;
mod rings;
mod rules;
pub mod segment;
mod slots;
#[cfg(test)]
mod testing;
mod tuple;

pub use alloc::{Allocator, Area, Orphans, Refill, lines_of};
pub use body::{BodyRead, BodyWrite, body_bytes, clear_valid_bit};
pub use circle::NoRoom;
pub use clock::{Draw, SegmentClock};
pub use commit::{Commit, Progress, SharedRange, SharedRead, SharedWrite};
pub use descriptor::PLACES_MAX;
pub use door::{Door, FileDoor, Presence, SharedMemory};
pub use epochs::Epochs;
pub use error::{Damaged, OpenError};
pub use feed::{FeedReader, FeedRecord, FeedWriter, Item, Reference};
pub use figures::HostFigures;
pub use hosts::{HostState, Phase};
pub use index::{Find, Found, Insert, Inserted, Remove, Walk, Walked};
pub use layout::{HOSTS_MAX, Layout, SLOTS, Sizes};
pub use lease::HostLease;
pub use moves::{MoveOut, Moved};
pub use read::{Read, Reading};
pub use repair::{Repair, Repaired};
pub use ring::{Entry, Logged, Place, RingWriter, body_max, bytes_of_entry};
pub use rings::Rings;
pub use rules::{PlantedBug, Rules};
pub use segment::{Purpose, Segment};
pub use slots::{Hold, Holder, Slot};
pub use tuple::{Body, BodyWord, Claim, KEY_MAX, Kind, Lock, NewTuple, Node, height_of, node_bytes};
