//! The engine of a group's primary for one term.

use crate::bugs::PlantedBugs;
use crate::state::GroupState;
use crate::versions::Versions;
use crate::waits::{Ticket, WaitFor};
use meridian_base::record::{Lease, Payload, SchemaGrant};
use meridian_base::{
    Clock, ColumnMask, CommitOutcome, CommitRequest, Conflict, GroupId, NodeId, ReadEntry, SchemaUse, Target, Timestamp,
};
use std::time::Duration;

/// The answer to [`Engine::certify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certified {
    /// It passed and is in flight now, at this timestamp: append `Committed { id, at, writes }` to the next batch, in the
    /// order of these answers. Acknowledge it when [`Engine::applied`] has seen it.
    Append { at: Timestamp },
    /// Something in flight, the clock or a grant must come first: certify again when the ticket wakes. It holds nothing
    /// meanwhile. The caller bounds the wait; giving up is [`Engine::cancel`] and is not an outcome (see [`NotReady`]).
    Wait(Ticket),
    /// The answer, now: committed earlier under the same id, nothing to write and all reads current, forgotten, or in
    /// conflict. A conflict is *stable*: the same request gets it again at any later time, so a duplicate that was delayed in
    /// the network cannot commit what the gateway has retried under a new id.
    Done(CommitOutcome),
    /// This node cannot answer now. Not an outcome: nothing was written, but a copy of the request that is still on its way
    /// may commit later, so the gateway sends the *same id* again, or reports 40003.
    NotReady(NotReady),
}

/// Why a primary does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// The clock has reached the lease's ceiling, or no lease of this term is durable yet: log [`Engine::renew_lease`]'s
    /// record and wait for this ticket.
    NeedLease(Ticket),
    /// The lease was given up, or the term has ended: ask the new primary.
    NotPrimary,
}

/// The answer to [`Engine::read_gate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadGate {
    /// Read the store at `s`; the entry's `until` is `s`.
    Ready,
    /// A writer at or below `s` is in flight, or the clock has not passed `s`: ask again when the ticket wakes.
    Wait(Ticket),
    /// `s` is below the garbage-collection threshold: the transaction restarts (40001), a stale read fails with a clear error.
    TooOld,
    /// As in [`Certified::NotReady`].
    NotReady(NotReady),
}

/// Where a transaction reads in this group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The design's `s`.
    pub at: Timestamp,
    /// Nothing at or below `at` is in flight or will ever be: reads need no [`Engine::read_gate`].
    pub settled: bool,
}

/// The answer to [`Engine::check_read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaCheck {
    /// Planned with the version that holds at that time.
    Passed,
    /// The gateway is ahead of the group, or the bound has passed: wait (bounded) for a grant.
    Wait(Ticket),
    /// A descriptor it used has changed: plan again with the new version (`SchemaChanged`).
    Changed(Conflict),
}

/// What a primary keeps in memory for the length of its term: who is in flight, what was written lately, whom to wake.
/// Everything it knows beyond [`GroupState`] may be lost.
#[derive(Debug)]
pub struct Engine {
    node: NodeId,
    group: GroupId,
    bugs: PlantedBugs,
}

impl Engine {
    /// The engine of a new term. The state must contain every entry of earlier terms. Until [`Engine::start_wait`] is over
    /// and a lease of this node is applied, every request is answered `NotReady`.
    pub fn start(node: NodeId, group: GroupId, state: &GroupState, bugs: PlantedBugs) -> Engine {
        let _ = state;
        Engine { node, group, bugs }
    }
    /// How long the physical clock still takes to pass the last ceiling (design: leases: it *waits*, it does not jump).
    /// Requests before that get [`NotReady::NeedLease`] with a ticket that wakes then.
    pub fn start_wait(&self, physical_micros: u64) -> Duration {
        let _ = (physical_micros, self.node, self.group, self.bugs);
        todo!()
    }

    // --- commits

    /// Certifies a transaction (design: certification at a primary, items 1, 2 and 4). On [`Certified::Append`] it is in flight.
    pub fn certify<V: Versions>(
        &mut self,
        state: &GroupState,
        versions: &V,
        request: &CommitRequest,
        clock: &Clock,
        physical_micros: u64,
    ) -> Certified {
        let _ = (state, versions, request, clock, physical_micros);
        todo!()
    }
    /// Everything in flight at or below `through` has been handed to the log, in order: closed timestamps may pass it.
    /// Called when a batch is cut, before its payload's [`Engine::closed_target`] is taken.
    pub fn appended(&mut self, through: Timestamp) {
        let _ = through;
        todo!()
    }
    /// A payload is durable, and applied to the store and to `state`: releases what it contains. The tickets to wake are added
    /// to `woken`. Called for every payload of the term, whoever wrote it.
    pub fn applied(&mut self, state: &GroupState, payload: &Payload, woken: &mut Vec<Ticket>) {
        let _ = (state, payload, woken);
        todo!()
    }
    /// An append failed, or leadership is lost: the term is over and the engine answers nothing any more. All tickets wake;
    /// what was in flight is answered 40003 unless a later primary knows it.
    pub fn lost(&mut self) -> Vec<Ticket> {
        todo!()
    }

    // --- reads

    /// The snapshot of a transaction's first fresh read in this group. `gateway_now` is the gateway's clock.
    pub fn fresh_snapshot(
        &mut self,
        state: &GroupState,
        gateway_now: Timestamp,
        clock: &Clock,
        physical_micros: u64,
    ) -> Snapshot {
        let _ = (state, gateway_now, clock, physical_micros);
        todo!()
    }
    /// The snapshot of a read-only transaction that stays in this group: the newest timestamp applied (design: fresh reads),
    /// or the schema version's commit timestamp if that is later.
    pub fn read_only_snapshot(&self, state: &GroupState, schema: &SchemaUse) -> Snapshot {
        let _ = (state, schema);
        todo!()
    }
    /// Whether a target may be read at `s`. Raises the floor below which nothing will be written any more to `s`.
    pub fn read_gate<V: Versions>(
        &mut self,
        state: &GroupState,
        versions: &V,
        target: &Target,
        columns: ColumnMask,
        s: Timestamp,
        clock: &Clock,
        physical_micros: u64,
    ) -> ReadGate {
        let _ = (state, versions, target, columns, s, clock, physical_micros);
        todo!()
    }
    /// Whether a read at `s` was planned with the right schema. Checked again after `s` has moved.
    pub fn check_read(&mut self, state: &GroupState, schema: &SchemaUse, s: Timestamp) -> SchemaCheck {
        let _ = (state, schema, s);
        todo!()
    }
    /// Whether read entries may move forward to `s` (after waiting in a queue): only if nothing has touched them since, in
    /// flight or committed. If so, raises the floor to `s`, and the caller sets every `until` to `s`.
    pub fn move_forward<V: Versions>(&mut self, state: &GroupState, versions: &V, entries: &[ReadEntry], s: Timestamp) -> bool {
        let _ = (state, versions, entries, s);
        todo!()
    }

    // --- what the group's records carry

    /// The closed timestamp to promise now: below every certified transaction that is not in the log, at most the ceiling.
    pub fn closed_target(&mut self, state: &GroupState, clock: &Clock, physical_micros: u64) -> Timestamp {
        let _ = (state, clock, physical_micros);
        todo!()
    }
    /// The watermark to write now: trails the clock by `WATERMARK_LAG` and stays below every id in flight.
    pub fn watermark(&self, state: &GroupState, clock: &Clock, physical_micros: u64) -> Timestamp {
        let _ = (state, clock, physical_micros);
        todo!()
    }
    /// A lease record to log, when less than half of `LEASE_AHEAD` remains and none is under way.
    pub fn renew_lease(&mut self, state: &GroupState, clock: &Clock, physical_micros: u64) -> Option<Lease> {
        let _ = (state, clock, physical_micros);
        todo!()
    }
    /// Gives the lease up, before leadership is transferred or the node stops: nothing is certified or read from here on. The
    /// record lowers the ceiling to what was really used, so that the successor need not wait. Commits in flight go on.
    pub fn give_up_lease(&mut self, clock: &Clock, physical_micros: u64) -> Lease {
        let _ = (clock, physical_micros);
        todo!()
    }

    // --- schema grants

    /// A grant from the catalog: the record to log, or `None` if it is not newer than what the log has or is about to have.
    /// A lowering (a bound below the present one) obeys at once; the record's bound may be above the one asked for, since it is
    /// never below a timestamp issued or a closed timestamp promised. The answer to the catalog is sent when the record is
    /// applied, with that bound.
    pub fn grant(&mut self, state: &GroupState, grant: &SchemaGrant) -> Option<SchemaGrant> {
        let _ = (state, grant);
        todo!()
    }

    // --- waits

    /// Wakes whoever waits for the clock.
    pub fn tick(&mut self, clock: &Clock, physical_micros: u64, woken: &mut Vec<Ticket>) {
        let _ = (clock, physical_micros, woken);
        todo!()
    }
    /// When [`Engine::tick`] has something to do.
    pub fn next_tick(&self) -> Option<Timestamp> {
        todo!()
    }
    /// What a ticket waits for.
    pub fn waits_for(&self, ticket: Ticket) -> Option<WaitFor> {
        let _ = ticket;
        todo!()
    }
    /// Whoever waited gave up.
    pub fn cancel(&mut self, ticket: Ticket) {
        let _ = ticket;
        todo!()
    }
}
