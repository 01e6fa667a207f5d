//! The engine of a group's primary for one term: certification, reads, and what the group's records
//! promise.
//!
//! # What it adds to the log's state
//!
//! [`GroupState`] is what everybody knows. The engine is what only the primary knows, in memory,
//! for the length of one term: which transactions are certified but not applied yet (*in flight*),
//! what was written lately ([`ConflictIndex`]), how far reads and promises have gone (the *floor*),
//! and who waits for what. All of it may be lost in a crash: in-flight transactions were
//! acknowledged to nobody, and a successor starts above everything the floor could have been,
//! because nothing was ever issued, read or promised above the ceiling that the log contains.
//!
//! # The life of a single-group transaction
//!
//! ```text
//!            certify            appended              applied
//!  Unknown ──────────▶ in flight ──────▶ in flight ──────────▶ Committed ──────▶ Forgotten
//!     │                    └─────────────────┴── lost ──▶ Unknown (or Committed:          id ≤ F
//!     └─▶ conflict, wait                                   the next term's log says)
//! ```
//!
//! Timestamps are issued in the order of certification, handed to the log in that order, and
//! applied in that order. So when a version of a single-group transaction is applied, nothing below
//! it is in flight; that is what makes [`Engine::read_only_snapshot`] free.
//!
//! # Transactions over several groups
//!
//! Their part is in [`several`]. A prepared transaction is a writer that does not end by itself,
//! and its version may appear below what is there already. So it is not in the conflict index but
//! in [`Reservations`] while it is prepared, and in [`Decided`] afterwards; every test here asks
//! all three.

mod pod;
mod promises;
mod reads;
mod rounds;
mod schema;
mod several;
mod tickets;
mod tokens;

pub use rounds::{Ballot, Outlook, SiteStep};
pub use several::{Deciding, Preparation, ReadCheck, Refused, Turn};

use tokens::Uncovered;

use crate::conflict_index::{ConflictIndex, Touched};
use crate::decided::Decided;
use crate::reservations::Reservations;
use crate::rules::Rules;
use crate::shares::Shares;
use crate::state::{GroupState, Planned};
use crate::versions::Versions;
use crate::waits::{Ticket, WaitFor, Waits};
use meridian_base::escrow::Offer;
use meridian_base::limits::{CONFLICT_INDEX_ENTRIES_MAX, WRITES_INDEXED_MAX};
use meridian_base::record::{Outcome, Payload, Record, SchemaGrant};
use meridian_base::{
    Change, Clock, ColumnMask, CommitOutcome, CommitRequest, Conflict, ConflictReason, GroupId, Key, Ledger, Mutation, NodeId,
    ReadEntry, Standing, Target, Timestamp, TxnId, Write,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The answer to [`Engine::certify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certified {
    /// It passed and is in flight now, at this timestamp: append `Committed { id, at, writes }` to
    /// the next batch, in the order of these answers. Acknowledge it when [`Engine::applied`] has
    /// seen it.
    Append { at: Timestamp, writes: Vec<Write> },
    /// Something in flight or prepared, the clock or a grant must come first: certify again when
    /// the ticket wakes. It holds nothing meanwhile, except for a claim on what it reads at
    /// [`ReadEntry::AT_PREPARE`], which ends with [`Engine::give_up_claim`]. The caller bounds the
    /// wait; giving up is [`Engine::cancel`] and is not an outcome (see [`Certified::NotReady`]).
    Wait(Ticket),
    /// The answer, now: committed earlier under the same id, nothing to write and all reads
    /// current, forgotten, or in conflict. A conflict is *stable*: the same request never passes
    /// later, so a copy that was delayed in the network cannot commit what the gateway has retried
    /// under a new id.
    Done(CommitOutcome),
    /// Too few tokens are free for a delta, or the share is not there. That may change, so the
    /// refusal has to be in the log before a client is told of it: append `Refused` for the
    /// transaction, and certify again when the ticket wakes.
    Refuse(Ticket),
    /// What it read of GLOBAL rows is not known to hold for long enough: ask a replica again
    /// (`GlobalReads::hold_until`), then certify again. It holds nothing meanwhile.
    RecheckGlobal,
    /// This node cannot answer now. Not an outcome: nothing was written, but a copy of the request
    /// that is still on its way may commit later, so the gateway sends the *same id* again, or
    /// reports 40003.
    NotReady(NotReady),
}

/// Why a primary does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// The clock has not passed the predecessor's ceiling, or has passed this lease's: log
    /// [`Engine::renew_lease`]'s record if it gives one, and ask again when the ticket wakes.
    NeedLease(Ticket),
    /// The lease was given up, or the term has ended: ask the new primary.
    NotPrimary,
}

/// The answer to [`Engine::read_gate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadGate {
    /// Read the store at `s`; the entry's `until` is `s`.
    Ready,
    /// A writer at or below `s` is in flight or prepared, or the clock has not reached `s`: ask
    /// again when the ticket wakes.
    Wait(Ticket),
    /// There is a version above `s` that may have been acknowledged before this transaction began,
    /// because its timestamp came from another group's faster clock (counterexample 20): move the
    /// transaction's earlier entries here to this timestamp ([`Engine::move_forward`]) or restart,
    /// and ask again at it.
    MoveTo(Timestamp),
    /// `s` is below the garbage-collection threshold: the transaction restarts (40001).
    TooOld,
    /// As in [`Certified::NotReady`].
    NotReady(NotReady),
}

/// The answer to [`Engine::share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareLook {
    /// What is free; `None`: this site has no share of the row.
    Offer(Option<Offer>),
    /// Something in flight writes it: ask again when the ticket wakes.
    Wait(Ticket),
    /// As in [`Certified::NotReady`].
    NotReady(NotReady),
}

/// Where a transaction reads in this group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The design's `s`.
    pub at: Timestamp,
    /// Nothing at or below `at` is in flight or ever will be: reads need no [`Engine::read_gate`].
    pub settled: bool,
}

/// The answer to [`Engine::check_read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaCheck {
    /// Planned with what holds at that time.
    Passed,
    /// The gateway is ahead of the group, or the bound has passed: wait (bounded) for a grant.
    Wait(Ticket),
    /// A descriptor it used has changed, or `s` is below the version it planned with: plan again,
    /// with a new `s`.
    Changed(Conflict),
}

/// Versions of transactions over several groups that are remembered with their votes; below that
/// the store is asked.
const DECIDED_MAX: usize = CONFLICT_INDEX_ENTRIES_MAX / 4;

/// What a primary keeps in memory for the length of its term. See the module's essay.
#[derive(Clone, Debug)]
pub struct Engine {
    node: NodeId,
    group: GroupId,
    rules: Rules,
    index: ConflictIndex,
    /// Transactions with more writes are large ([`ConflictIndex::add_all`]).
    large_from: usize,
    /// Certified and not applied.
    in_flight: BTreeMap<Timestamp, TxnId>,
    in_flight_ids: BTreeMap<TxnId, Timestamp>,
    /// What prepared transactions hold, those on their way into the log included.
    held: Reservations,
    /// What those already keep from being written who wait for others and read at
    /// [`ReadEntry::AT_PREPARE`].
    claims: Reservations,
    /// Those of `held` that were prepared in this term and waited for nobody ([`Turn::Early`]).
    early: BTreeSet<TxnId>,
    /// Prepared here, and the record is not applied.
    preparing: BTreeMap<Timestamp, TxnId>,
    /// What escrow shares hold, and what is taken of them.
    shares: Shares,
    /// The refusal of a single-group transaction is on its way into the log.
    refusing: BTreeSet<TxnId>,
    /// The outcome is on its way into the log.
    deciding: BTreeSet<TxnId>,
    decided: Decided,
    /// Handed to the log up to here.
    appended: Timestamp,
    /// Nothing will be issued at or below it. Invariant: at or above everything this group's
    /// primaries ever issued, served a read at, or promised as closed.
    floor: Timestamp,
    /// The predecessor's ceiling: this term serves nothing until the clock has passed it.
    start_above: Timestamp,
    /// This term's ceiling, durable; `MIN` before the first.
    ceiling: Timestamp,
    /// A lease record of this term is on its way into the log.
    lease_asked: bool,
    /// The last grant handed to the log and not applied yet.
    grant_asked: Option<SchemaGrant>,
    /// The lease on the version before the present one. The catalog is at that version up to its
    /// bound, whatever came after.
    lease_before: Option<SchemaGrant>,
    phase: Phase,
    /// `None`: the group's only engine.
    pod: Option<pod::Pod>,
    waits: Waits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// The lease was given up: what is in flight ends, nothing begins.
    Ending,
    Over,
}

impl Engine {
    /// The engine of a new term. The state must contain every entry of earlier terms. Until the
    /// clock has passed the last ceiling ([`Engine::start_wait`]) and a lease of this node is
    /// applied, every request is answered `NeedLease`.
    pub fn start(node: NodeId, group: GroupId, state: &GroupState, rules: Rules) -> Engine {
        let start_above = match rules.successors_wait_for_ceiling() {
            false => Timestamp::MIN,
            true => state.ceiling().max(state.closed()),
        };
        Engine {
            node,
            group,
            rules,
            index: ConflictIndex::new(state.newest(), CONFLICT_INDEX_ENTRIES_MAX, rules),
            large_from: WRITES_INDEXED_MAX,
            in_flight: BTreeMap::new(),
            in_flight_ids: BTreeMap::new(),
            held: state.reservations().clone(),
            claims: Reservations::default(),
            early: BTreeSet::new(),
            preparing: BTreeMap::new(),
            shares: Shares::new(state.prepared(), rules),
            refusing: BTreeSet::new(),
            deciding: BTreeSet::new(),
            decided: Decided::new(state.newest_outcome(), DECIDED_MAX),
            appended: Timestamp::MIN,
            floor: start_above.max(state.newest()),
            start_above,
            ceiling: Timestamp::MIN,
            lease_asked: false,
            grant_asked: None,
            lease_before: None,
            phase: Phase::Serving,
            pod: None,
            waits: Waits::default(),
        }
    }

    /// Begins again what [`Engine::used`] tells of another engine of the same term and process:
    /// nobody else can have led meanwhile, so the term need not wait for the ceiling, up to which
    /// it has used nothing.
    pub fn resumed(self, used: Timestamp, state: &GroupState) -> Engine {
        let start_above = used.max(state.closed()).max(state.newest());
        debug_assert!(start_above <= self.floor || !self.rules.are_all_kept(), "nothing was used above the ceiling");
        Engine { floor: start_above, start_above, ..self }
    }

    /// Everything that was issued, read, or promised as closed in this term, and before it, is at
    /// or below this.
    pub fn used(&self) -> Timestamp {
        self.floor
    }

    /// The same with another bound on what is remembered of recent writes than
    /// `CONFLICT_INDEX_ENTRIES_MAX`.
    pub fn with_index_limit(self, writes_max: usize) -> Engine {
        let index = ConflictIndex::new(self.index.low_water(), writes_max, self.rules);
        let decided = Decided::new(self.decided.low_water(), writes_max);
        Engine { index, decided, ..self }
    }

    /// The same with another number of writes from which on a transaction is large.
    pub fn with_large_from(self, writes: usize) -> Engine {
        Engine { large_from: writes, ..self }
    }

    /// The same with another number of late keys from which on an escrow share is folded.
    pub fn folding_from(self, late_keys: usize) -> Engine {
        Engine { shares: self.shares.folding_from(late_keys), ..self }
    }

    /// How long the physical clock still takes to pass the last ceiling. The primary
    /// waits; it never moves its clock there.
    pub fn start_wait(&self, physical_micros: u64) -> Duration {
        if Timestamp::from_micros(physical_micros) > self.start_above {
            return Duration::ZERO;
        }
        Duration::from_micros(self.start_above.micros() + 1 - physical_micros)
    }

    /// Whether an answer computed under this term's lease may still leave; asked when it leaves.
    /// The caller checks the real-time lease (quorum contact) as well.
    pub fn may_serve(&self, clock: &Clock, physical_micros: u64) -> bool {
        let now = clock.now(physical_micros);
        self.phase == Phase::Serving && now > self.start_above && now <= self.ceiling
    }

    fn ready(&mut self, now: Timestamp) -> Result<(), NotReady> {
        if self.phase != Phase::Serving {
            return Err(NotReady::NotPrimary);
        }
        if now <= self.start_above {
            return Err(NotReady::NeedLease(self.waits.issue(WaitFor::Clock(self.start_above))));
        }
        if now >= self.ceiling {
            return Err(NotReady::NeedLease(self.waits.issue(WaitFor::Lease)));
        }
        self.shares.expire(now);
        Ok(())
    }
}

// --- commits

impl Engine {
    /// Certifies a transaction. On [`Certified::Append`] it is
    /// in flight.
    pub fn certify<V: Versions>(
        &mut self,
        state: &GroupState,
        versions: &V,
        request: &CommitRequest,
        clock: &Clock,
        physical_micros: u64,
    ) -> Certified {
        let certified = self.certify_part(state, versions, request, clock, physical_micros);
        if let Certified::Append { at, writes } = &certified {
            self.push(request.id, *at, writes);
        }
        certified
    }

    /// The same, but [`Certified::Append`] does not put it in flight: for the part on own keys of a
    /// transaction with shared tuples of a pod, whose shared reads are validated after the draw. If
    /// they hold, [`Engine::push`] comes next, before anything else is asked of this engine.
    /// Without own writes the timestamp comes as [`Certified::Done`].
    pub fn certify_part<V: Versions>(
        &mut self,
        state: &GroupState,
        versions: &V,
        request: &CommitRequest,
        clock: &Clock,
        physical_micros: u64,
    ) -> Certified {
        if let Some(known) = self.known(state, request) {
            return known;
        }
        let now = clock.now(physical_micros);
        if let Err(why) = self.ready(now) {
            return Certified::NotReady(why);
        }
        match self.planned_with(state, &request.schema) {
            Planned::Current => {}
            Planned::Ahead => return Certified::Wait(self.waits.issue(WaitFor::Grant)),
            Planned::Stale => return Certified::Done(CommitOutcome::Conflict(schema_changed(request))),
        }
        if let Err(answer) = self.certify_reads(versions, &request.reads) {
            if matches!(answer, Certified::Wait(_)) {
                self.claim(request, now);
            }
            return answer;
        }
        if let Some((_, other)) = self.disturbed(request.id, &request.writes) {
            return Certified::Wait(self.waits.issue(WaitFor::Outcome(other)));
        }
        match self.check_deltas(versions, request) {
            Ok(()) => {}
            Err(Uncovered::InFlight(at)) => return Certified::Wait(self.waits.issue(WaitFor::Applied(at))),
            Err(Uncovered::Short(key)) if !self.rules.logs_refusals() => {
                return conflict(key, ConflictReason::Short);
            }
            Err(Uncovered::Short(_)) => {
                self.refusing.insert(request.id);
                return Certified::Refuse(self.waits.issue(WaitFor::Outcome(request.id)));
            }
        }
        let at = match self.draw(state, request, clock, physical_micros) {
            Ok(at) => at,
            Err(Undrawn::Wait(ticket)) => return Certified::Wait(ticket),
            Err(Undrawn::RecheckGlobal) => return Certified::RecheckGlobal,
            Err(Undrawn::NotReady(why)) => return Certified::NotReady(why),
        };
        if request.writes.is_empty() {
            // Its reads were current at `at`; nothing to append, and nothing to remember: asked
            // again, it is tested again.
            return Certified::Done(CommitOutcome::Committed(at));
        }
        let writes = self.shares.resolve(request.id, &request.writes, true);
        Certified::Append { at, writes }
    }

    /// What is to be as it is until the commit is kept from new writers while others in flight are
    /// waited for: on a hot row there is always one more. [`Engine::give_up_claim`] ends it.
    fn claim(&mut self, request: &CommitRequest, now: Timestamp) {
        let holds = request.reads.iter().filter(|e| e.until == ReadEntry::AT_PREPARE).cloned().collect::<Vec<_>>();
        if !holds.is_empty() {
            self.claims.add(request.id, now, &several::reserved(&holds), &[]);
        }
    }

    /// A transaction of this group alone, with its timestamp, is in flight.
    pub fn push(&mut self, id: TxnId, at: Timestamp, writes: &[Write]) {
        match writes.len() > self.large_from && self.pod.is_none() {
            true => self.index.add_all(writes, at),
            false => writes.iter().for_each(|write| self.index.add(&write.key, write.columns, at)),
        }
        self.in_flight.insert(at, id);
        self.in_flight_ids.insert(id, at);
    }

    /// Draws the timestamp of a slice that has passed all other tests.
    fn draw(
        &mut self,
        state: &GroupState,
        request: &CommitRequest,
        clock: &Clock,
        physical_micros: u64,
    ) -> Result<Timestamp, Undrawn> {
        // Above the version it read elsewhere, and above the step that made its schema version
        // (counterexamples 10, 31). The clock is never moved there: it may be a future-time
        // timestamp.
        let above = request.min_commit.max(self.schema_above(state, &request.schema));
        if clock.now(physical_micros) < above {
            return Err(Undrawn::Wait(self.waits.issue(WaitFor::Clock(above))));
        }
        clock.advance_to(self.floor.max(above).max(self.newest_of_others(state)));
        let at = clock.tick(physical_micros);
        if at > self.ceiling {
            return Err(Undrawn::NotReady(NotReady::NeedLease(self.waits.issue(WaitFor::Lease))));
        }
        if at > self.schema_bound(state) && !request.schema.is_certified_by_catalog {
            return Err(Undrawn::Wait(self.waits.issue(WaitFor::Grant)));
        }
        assert!(at > self.floor, "{at} is drawn, and {} was issued, read or promised", self.floor);
        assert!(at > state.newest() || !self.rules.releases_by_clock(), "{at} is drawn below a version");
        // What was read of GLOBAL rows has to hold up to the timestamp.
        let ahead = if self.rules.global_reads_cover_offset() { clock.max_offset() } else { Duration::ZERO };
        if !request.global.allow(at, ahead) {
            return Err(Undrawn::RecheckGlobal);
        }
        self.floor = at;
        Ok(at)
    }

    /// What the group already knows about a transaction (counterexample 6). An answer that the log
    /// gives needs no lease.
    fn known(&mut self, state: &GroupState, request: &CommitRequest) -> Option<Certified> {
        let id = request.id;
        if self.phase == Phase::Over || !self.rules.commits_are_idempotent() {
            return None;
        }
        if let Some(at) = self.in_flight_ids.get(&id) {
            return Some(Certified::Wait(self.waits.issue(WaitFor::Applied(*at))));
        }
        if self.refusing.contains(&id) {
            return Some(Certified::Wait(self.waits.issue(WaitFor::Outcome(id))));
        }
        if let Some(at) = state.outcome(id) {
            return Some(Certified::Done(CommitOutcome::Committed(at)));
        }
        if state.standing(id) == Standing::Refused {
            let is_refused = |w: &&Mutation| matches!(w.change, Change::Add(_) | Change::Shift(_) | Change::Renew { .. });
            let delta = request.writes.iter().find(is_refused);
            return Some(conflict(delta.map_or(Key::MIN, |w| w.key.clone()), ConflictReason::Short));
        }
        (id.hlc <= state.watermark()).then_some(Certified::Done(CommitOutcome::Forgotten))
    }

    /// Certifies the reads: nothing above an entry's `until` changed what it read, and nothing in
    /// flight is about to.
    fn certify_reads<V: Versions>(&mut self, versions: &V, reads: &[ReadEntry]) -> Result<(), Certified> {
        let mut wait_for = None;
        for entry in reads {
            match self.touched(versions, &entry.target, entry.columns, entry.until) {
                Touch::No => {}
                // A later entry may still be in conflict, which is the better answer: it needs no
                // wait.
                Touch::InFlight(at) => wait_for = wait_for.max(Some(WaitFor::Applied(at))),
                Touch::Prepared(id) => wait_for = wait_for.max(Some(WaitFor::Outcome(id))),
                Touch::Committed(key) => return Err(conflict(key, ConflictReason::ConcurrentWrite)),
                Touch::TooOld => return Err(conflict(entry.target.start().clone(), ConflictReason::BelowGcThreshold)),
            }
        }
        match wait_for {
            Some(WaitFor::Applied(_)) if !self.rules.awaits_in_flight() => Ok(()),
            Some(what) => Err(Certified::Wait(self.waits.issue(what))),
            None => Ok(()),
        }
    }

    /// The first write that conflicts with a prepared transaction's reads or writes, or with
    /// another transaction's claim to read, and that transaction. A transaction's own claim does
    /// not block it.
    fn disturbed(&self, by: TxnId, writes: &[Mutation]) -> Option<(Key, TxnId)> {
        if self.held.is_empty() && self.claims.is_empty() {
            return None;
        }
        let in_the_way = |w: &Mutation| Some((w.key.clone(), self.held.disturbed(&w.key, w.columns)?));
        let claimant = |w: &Mutation| self.claims.disturbed(&w.key, w.columns).filter(|id| *id != by);
        let claimed = |w: &Mutation| Some((w.key.clone(), claimant(w)?));
        let held = writes.iter().find_map(in_the_way).filter(|(_, id)| self.is_held(*id));
        held.or_else(|| writes.iter().find_map(claimed))
    }

    /// The first prepared writer at or below `through`.
    fn held_writer(&self, target: &Target, columns: ColumnMask, through: Timestamp) -> Option<TxnId> {
        self.held.writer(target, columns, through).map(|(id, _)| id).filter(|id| self.is_held(*id))
    }

    fn is_held(&self, id: TxnId) -> bool {
        self.rules.reserves_until_outcome() || self.preparing.values().any(|p| *p == id)
    }

    /// The one test behind certification and moving forward.
    fn touched<V: Versions>(&self, versions: &V, target: &Target, columns: ColumnMask, until: Timestamp) -> Touch {
        if until < versions.gc_threshold() && self.rules.refuses_below_gc() {
            return Touch::TooOld;
        }
        let in_flight = match self.index.touched(target, columns, until) {
            Touched::Committed(key, _) => return Touch::Committed(key),
            Touched::InFlight(at) => Some(at),
            Touched::No => None,
        };
        if let Some(key) = self.decided.changed_after(target, columns, until) {
            return Touch::Committed(key);
        }
        let skip_store = !self.rules.certifies_ranges() && matches!(target, Target::Range(_));
        if until < self.index.low_water().max(self.decided.low_water())
            && !skip_store
            && let Some((key, _)) = versions.changed_after(target, columns, until)
        {
            return Touch::Committed(key);
        }
        match (in_flight, self.held_writer(target, columns, Timestamp::MAX)) {
            (Some(at), _) => Touch::InFlight(at),
            (None, Some(id)) => Touch::Prepared(id),
            (None, None) => Touch::No,
        }
    }

    /// Everything certified or prepared at or below `through` has been handed to the log, in order:
    /// closed timestamps may pass it. Called when a batch is cut, before its payload's
    /// [`Engine::closed_target`] is taken.
    pub fn appended(&mut self, through: Timestamp) {
        self.appended = self.appended.max(through);
    }

    /// A part of a transaction has been handed to the log, and is not the last: nothing may be
    /// closed for that.
    pub fn appended_part(&mut self, of: Timestamp) {
        if !self.rules.closes_with_last_part() {
            self.appended(of);
        }
    }

    /// A payload is durable, and applied to the store and to the group's state: releases what it
    /// contains. The tickets to wake are added to `woken`. Called for every payload of the term, in
    /// order.
    pub fn applied(&mut self, state: &GroupState, payload: &Payload, woken: &mut Vec<Ticket>) {
        for record in &payload.records {
            match record {
                Record::Batch(txns) => {
                    for txn in txns {
                        if !self.certified_here(txn) {
                            continue;
                        }
                        assert!(txn.at <= state.newest(), "applied to the state first");
                        self.release(txn.id, txn.at);
                        self.index.applied(txn.at);
                        self.shares.applied(txn);
                        self.waits.wake(WaitFor::Applied(txn.at), woken);
                    }
                }
                Record::Lease(lease) if self.is_beside_leader() => {
                    self.ceiling = lease.ceiling;
                    self.waits.wake(WaitFor::Lease, woken);
                }
                Record::Lease(lease) => {
                    assert_eq!(lease.primary, self.node, "a lease of another primary in this term");
                    if self.lease_asked && self.phase == Phase::Serving {
                        self.ceiling = lease.ceiling;
                        self.lease_asked = false;
                    }
                    self.waits.wake(WaitFor::Lease, woken);
                }
                Record::Schema(grant) => {
                    if self.grant_asked.as_ref().is_some_and(|asked| asked.seq <= grant.seq) {
                        self.grant_asked = None;
                    }
                    self.waits.wake(WaitFor::Grant, woken);
                }
                Record::Prepared(_) if self.is_beside_leader() => {}
                Record::Prepared(prepared) => {
                    self.preparing.remove(&prepared.at);
                    assert!(self.held.contains(prepared.id), "{} was certified here, in this term", prepared.id);
                }
                Record::Outcome(outcome) => self.outcome_applied(outcome, woken),
                Record::Refused(id) => {
                    if self.refusing.remove(id) {
                        self.waits.wake(WaitFor::Outcome(*id), woken);
                    }
                }
                Record::Settled(_) | Record::Build(_) | Record::Part(_) => {}
            }
        }
        self.raise_to_others(state);
    }

    /// The writes are visible, the reservations end.
    fn outcome_applied(&mut self, outcome: &Outcome, woken: &mut Vec<Ticket>) {
        self.deciding.remove(&outcome.id);
        self.early.remove(&outcome.id);
        let slice = self.held.remove(outcome.id);
        let keys = slice.iter().flat_map(|slice| slice.writes.iter().map(|(key, _)| key));
        self.shares.decided(outcome.id, outcome.at.is_some(), keys);
        if let Some(slice) = slice
            && let Some(at) = outcome.at
        {
            if self.rules.releases_by_clock() {
                self.floor = self.floor.max(at);
            }
            self.decided.add_all(&slice.writes, at, slice.at);
        }
        self.waits.wake(WaitFor::Outcome(outcome.id), woken);
    }

    /// Ends a transaction that was in flight. Every entry of the term was certified here, so there
    /// is one, and it is the first.
    fn release(&mut self, id: TxnId, at: Timestamp) {
        let (first, certified) =
            self.in_flight.pop_first().expect("a transaction is applied that was not certified in this term");
        assert!(first == at, "{at} is applied before {first}, which was certified earlier");
        assert_eq!(certified, id, "the log has another transaction at {at}");
        self.in_flight_ids.remove(&id);
    }

    /// What holds between two events of a term.
    pub fn invariant_engine(&self, state: &GroupState) {
        if self.phase == Phase::Over || !self.rules.are_all_kept() {
            return;
        }
        assert_eq!(self.in_flight.len(), self.in_flight_ids.len());
        for (at, id) in &self.in_flight {
            assert_eq!(self.in_flight_ids.get(id), Some(at), "{id} is in flight at one timestamp");
            assert!(*at > state.closed() || *at <= self.appended, "{id} is in flight at {at}, which is closed");
            assert!(*at <= self.floor && *at <= self.ceiling, "{id} is in flight at {at}, above what is issued");
        }
        // What is held is what the log has prepared and what is on its way there.
        for id in self.preparing.values() {
            assert!(self.held.contains(*id), "{id} is on its way into the log and holds nothing");
        }
        let of_log = || state.prepared().filter(|_| !self.is_beside_leader());
        for prepared in of_log() {
            assert!(self.held.contains(prepared.id), "{} is prepared and holds nothing here", prepared.id);
        }
        let logged = of_log().filter(|p| !self.preparing.contains_key(&p.at)).count();
        assert_eq!(self.held.len(), logged + self.preparing.len(), "what is held is prepared, or about to be");
        assert!(self.early.iter().all(|id| self.held.contains(*id)), "who waited for nobody holds something");
        for id in &self.deciding {
            let is_prepared = state.prepared().any(|p| p.id == *id);
            assert!(is_prepared, "the outcome of {id} is on its way into the log, and {id} is not prepared");
        }
        // Nothing is issued below what was issued, applied or promised.
        assert!(self.floor >= state.newest(), "the floor {} is below a version at {}", self.floor, state.newest());
        assert!(self.floor >= state.closed(), "the floor {} is below what is closed, {}", self.floor, state.closed());
        assert!(self.appended <= self.floor, "handed to the log before it was issued");
        let is_ours = self.ceiling == Timestamp::MIN || self.phase != Phase::Serving;
        assert!(is_ours || self.ceiling == state.ceiling(), "the ceiling is the log's, {}", state.ceiling());
        assert!(self.index.low_water() <= state.newest().max(self.start_above), "the conflict index forgot what is in flight");
        self.held.invariant_indexes();
        self.claims.invariant_indexes();
        self.shares.invariant();
    }

    /// An append failed, or leadership is lost: the term is over and the engine answers nothing any
    /// more. All tickets wake; what was in flight is answered 40003 unless a later primary knows
    /// it.
    pub fn lost(&mut self) -> Vec<Ticket> {
        self.phase = Phase::Over;
        self.waits.wake_all()
    }

    /// Certified and not applied yet, in the order of their timestamps.
    pub fn in_flight(&self) -> impl Iterator<Item = (TxnId, Timestamp)> + '_ {
        self.in_flight.iter().map(|(at, id)| (*id, *at))
    }
}

/// Why there is no timestamp yet.
enum Undrawn {
    Wait(Ticket),
    RecheckGlobal,
    NotReady(NotReady),
}

enum Touch {
    No,
    InFlight(Timestamp),
    /// A prepared transaction writes it, and nothing in flight does.
    Prepared(TxnId),
    Committed(Key),
    TooOld,
}

fn conflict(key: Key, reason: ConflictReason) -> Certified {
    Certified::Done(CommitOutcome::Conflict(Conflict { key, reason }))
}

/// The place of a schema conflict is what the transaction was about to do first.
fn schema_changed(request: &CommitRequest) -> Conflict {
    let write = request.writes.first().map(|w| w.key.clone());
    let key = write.or_else(|| request.reads.first().map(|r| r.target.start().clone())).unwrap_or(Key::MIN);
    Conflict { key, reason: ConflictReason::SchemaChanged }
}
