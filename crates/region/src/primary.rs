//! What a group's primary does for transactions: the interface between this crate, which decides,
//! and `node`, which has the log, the store and the sockets.
//!
//! | step of a transaction | asked | what the caller does with the answer |
//! | --- | --- | --- |
//! | it begins to read in this group | [`snapshot`](Primary::snapshot), [`schema`](Primary::schema) | reads there |
//! | it reads a target | [`gate`](Primary::gate) | reads the store, waits, or moves the snapshot |
//! | what it has read is to hold at a later snapshot | [`forward`](Primary::forward) | moves the snapshot, or gives up |
//! | it commits in this group alone | [`certify`](Primary::certify) | hands the writes to the log |
//! | it commits in several groups | [`prepare`](Primary::prepare) | hands the vote to the log |
//! | all votes are known | [`decide`](Primary::decide) | hands the outcome to the log |
//! | it only read, in several groups | [`check`](Primary::check) | tells the gateway |
//! | a payload leaves for the log | [`promise`](Primary::promise) | closes up to this timestamp in it |
//! | a payload is applied | [`applied`](Primary::applied) | wakes who waits, tells who committed |
//!
//! A caller has one lock around the state, the engine and what it does with an answer, and applies
//! payloads in the order in which it has handed them to the log. An answer that names a
//! [`Ticket`](crate::Ticket) is asked for again when the ticket is woken.
//!
//! [`Engine`] is a primary. Its other functions are the term's (lease, start and end), the schema
//! lease's, and those of escrow shares and their rounds; they are about no transaction.
//!
//! # What else may be one
//!
//! *A host of a pod*: the hosts of a group that only divide its keys have an engine each, which
//! draws from one clock ([`Engine::join_pod`]); the caller asks the one that has the keys. Where
//! hosts share tuples, certification falls into two halves with the shared ones between
//! ([`Engine::certify_part`], [`Engine::push`]; crate `host`); a primary over both is asked here,
//! too, and answers with a ticket while shared memory keeps it waiting.
//!
//! *Escrow columns*: a delta comes as a [`Change::Add`](meridian_base::Change::Add) in a request
//! and leaves as a `Put` of the whole share in [`Certified::Append`], or in
//! [`Preparation::Append`] as a late key. Tokens that are missing are a refusal with the reason
//! [`Short`](meridian_base::ConflictReason::Short), never a wait.

use crate::engine::{Certified, Deciding, Engine, Preparation, ReadCheck, ReadGate, SchemaCheck, Snapshot, Turn};
use crate::moment::Moment;
use crate::state::GroupState;
use crate::waits::Ticket;
use meridian_base::record::Payload;
use meridian_base::{Clock, ColumnMask, CommitRequest, ReadEntry, SchemaUse, Target, Timestamp, TxnId};

/// How a transaction's snapshot in a group is chosen.
#[derive(Clone, Copy, Debug)]
pub enum First<'a> {
    /// It may write. Its gateway's clock when it began.
    Fresh(Timestamp),
    /// It only reads, in this group alone. What it planned with.
    ReadOnly(&'a SchemaUse),
}

/// See the module's essay.
pub trait Primary {
    /// Where a transaction reads in this group.
    fn snapshot(&mut self, now: &Moment<'_>, first: First<'_>) -> Snapshot;

    /// Whether what a transaction planned with holds at a timestamp.
    fn schema(&mut self, now: &Moment<'_>, schema: &SchemaUse, at: Timestamp) -> SchemaCheck;

    /// Whether columns of a target may be read at a snapshot.
    fn gate(&mut self, now: &Moment<'_>, target: &Target, columns: ColumnMask, at: Timestamp) -> ReadGate;

    /// Whether what was read is the same at a later snapshot, `to`.
    fn forward(&mut self, now: &Moment<'_>, entries: &[ReadEntry], to: Timestamp) -> bool;

    /// Certifies a transaction of this group alone. On [`Certified::Append`] it is in flight, and
    /// its writes have to be the next in the log. Asked again with the same id, the answer is the
    /// same.
    fn certify(&mut self, now: &Moment<'_>, request: &CommitRequest) -> Certified;

    /// Certifies this group's slice of a transaction over several, and reserves what it reads and
    /// writes.
    fn prepare(&mut self, now: &Moment<'_>, request: &CommitRequest, turn: Turn) -> Preparation;

    /// All votes are known: the record of the outcome, when the clock is there. `at`: the commit
    /// timestamp; `None` aborts.
    fn decide(&mut self, now: &Moment<'_>, id: TxnId, at: Option<Timestamp>) -> Deciding;

    /// Whether everything that was read is still the newest at a timestamp, for transactions that
    /// only read.
    fn check(&mut self, now: &Moment<'_>, entries: &[ReadEntry], at: Timestamp) -> ReadCheck;

    /// The timestamp at or below which nothing follows what is certified by now.
    fn promise(&mut self, state: &GroupState, clock: &Clock, physical_micros: u64) -> Timestamp;

    /// A payload is applied, to `state` as well. The tickets to wake are added to `woken`.
    fn applied(&mut self, state: &GroupState, payload: &Payload, woken: &mut Vec<Ticket>);
}

impl Primary for Engine {
    fn snapshot(&mut self, now: &Moment<'_>, first: First<'_>) -> Snapshot {
        match first {
            First::Fresh(began) => self.fresh_snapshot(now.state, began, now.clock, now.physical_micros),
            First::ReadOnly(schema) => self.read_only_snapshot(now.state, schema),
        }
    }

    fn schema(&mut self, now: &Moment<'_>, schema: &SchemaUse, at: Timestamp) -> SchemaCheck {
        self.check_read(now.state, schema, at)
    }

    fn gate(&mut self, now: &Moment<'_>, target: &Target, columns: ColumnMask, at: Timestamp) -> ReadGate {
        self.read_gate(now, target, columns, at)
    }

    fn forward(&mut self, now: &Moment<'_>, entries: &[ReadEntry], to: Timestamp) -> bool {
        self.move_forward(now.state, &now.versions, entries, to)
    }

    fn certify(&mut self, now: &Moment<'_>, request: &CommitRequest) -> Certified {
        Engine::certify(self, now.state, &now.versions, request, now.clock, now.physical_micros)
    }

    fn prepare(&mut self, now: &Moment<'_>, request: &CommitRequest, turn: Turn) -> Preparation {
        Engine::prepare(self, now.state, &now.versions, request, turn, now.clock, now.physical_micros)
    }

    fn decide(&mut self, now: &Moment<'_>, id: TxnId, at: Option<Timestamp>) -> Deciding {
        Engine::decide(self, now.state, id, at, now.clock, now.physical_micros)
    }

    fn check(&mut self, now: &Moment<'_>, entries: &[ReadEntry], at: Timestamp) -> ReadCheck {
        self.read_round(now.state, &now.versions, entries, at, now.clock, now.physical_micros)
    }

    fn promise(&mut self, state: &GroupState, clock: &Clock, physical_micros: u64) -> Timestamp {
        self.closed_target(state, clock, physical_micros)
    }

    fn applied(&mut self, state: &GroupState, payload: &Payload, woken: &mut Vec<Ticket>) {
        Engine::applied(self, state, payload, woken)
    }
}
