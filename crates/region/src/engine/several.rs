//! What the primary does for transactions over several groups: certify and reserve a slice, take an
//! outcome, check a read-only round.
//!
//! Who votes what, and what the outcome is, crate `commit` knows. Here is what it means for
//! timestamps and for others:
//!
//! * from [`Preparation::Append`] until its `Outcome` record is applied, the slice's keys and
//!   ranges are reserved: single-group transactions and fresh reads that meet them wait, other
//!   prepares are refused at once, so nobody waits in a circle; those that were refused before wait
//!   for those that were not ([`Turn`]);
//! * a *reserving read* has no writes and no values yet: they are read when it is prepared, and
//!   hold until its outcome. On hot data some transaction is always prepared, so it waits, and
//!   while it waits it keeps new writers away (its *claim*). Waits form no circle: a prepared
//!   writer never waited for a prepared transaction, and its Prepares elsewhere are refused by what
//!   the reader has reserved there;
//! * a transaction that sets the number of an escrow column reads its shares in the same way, and
//!   writes them. It waits for what is in flight, with a claim, and is refused by what is prepared;
//! * an outcome enters the log only when this group's clock is at or above its commit timestamp. So
//!   whatever is certified or read after that is above it, here and, since the timestamp is below
//!   the ceiling, under every successor.

use super::{Engine, NotReady, Phase, Planned, Touch, Uncovered, Undrawn, schema_changed};
use crate::state::GroupState;
use crate::versions::Versions;
use crate::waits::{Ticket, WaitFor};
use meridian_base::limits::FRESH_MAX;
use meridian_base::record::{Outcome, Reserved};
use meridian_base::{
    Clock, ColumnMask, CommitRequest, Conflict, ConflictReason, Key, KeyRange, Ledger, ReadEntry, Standing, Target, Timestamp,
    TxnId, Write,
};

/// The answer to [`Engine::prepare`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// It passed and its reservations are held, at this timestamp: append the `Prepared` record to
    /// the log before any later answer's record, with these writes. It is a vote when
    /// [`Engine::applied`] has seen it.
    Append { at: Timestamp, writes: Vec<Write> },
    /// Something in flight, the clock, a lease or a grant must come first; as in `Certified::Wait`.
    /// It holds nothing meanwhile, except for a claim on what it reads at `ReadEntry::AT_PREPARE`,
    /// which ends with a later answer or with [`Engine::give_up_claim`].
    Wait(Ticket),
    /// The vote is NO, once that is in the log. Then [`Engine::give_up_claim`].
    Refuse(Refused),
    /// The log knows this transaction, or it is on its way there: the vote is what that says.
    Known,
    /// As in `Certified::RecheckGlobal`.
    RecheckGlobal,
    /// As in `Certified::NotReady`.
    NotReady(NotReady),
}

/// Whether a transaction may be made to wait for others' outcomes
/// ([`meridian_base::Prepare::is_late`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is refused at once, and late ones wait for it.
    Early,
    /// It waits for early ones, and is refused for others.
    Late,
}

/// Why certification failed, and what the retry wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub conflict: Conflict,
    /// Keys that were read and have changed since (not all of them if there are very many). The
    /// newest version at the timestamp is what it should have read, and the timestamp the `until`
    /// of such a read: `base::Fresh` once the store is asked.
    pub stale: Vec<(Key, Timestamp)>,
}

/// The answer to [`Engine::decide`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deciding {
    /// The clock is there: append this record. Once per transaction and term.
    Log(Outcome),
    /// The clock must not be moved so far: ask again when the ticket wakes. The reservations stay.
    Wait(Ticket),
    /// It is decided already, or on its way into the log.
    Known,
    /// As in `Certified::NotReady`.
    NotReady(NotReady),
}

/// The answer to [`Engine::read_round`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadCheck {
    /// Every entry is the newest at `t`, and nothing will appear at or below it.
    Passed,
    /// A writer is in flight or prepared, or the clock must come first.
    Wait(Ticket),
    /// Something has changed.
    Refuse(Refused),
    /// As in `Certified::NotReady`.
    NotReady(NotReady),
}

/// Why the clock is not there.
enum Unreached {
    Wait(Ticket),
    NotReady(NotReady),
}

pub(super) fn reserved(reads: &[ReadEntry]) -> Vec<Reserved> {
    reads.iter().map(|e| Reserved { target: e.target.clone(), columns: e.columns }).collect()
}

impl Engine {
    /// Certifies a slice and reserves what it reads and
    /// writes.
    pub fn prepare<V: Versions>(
        &mut self,
        state: &GroupState,
        versions: &V,
        request: &CommitRequest,
        turn: Turn,
        clock: &Clock,
        physical_micros: u64,
    ) -> Preparation {
        let is_new = matches!(state.standing(request.id), Standing::Unknown | Standing::Forgotten);
        if !is_new || self.held.contains(request.id) {
            return Preparation::Known;
        }
        let now = clock.now(physical_micros);
        if let Err(why) = self.ready(now) {
            return Preparation::NotReady(why);
        }
        match self.planned_with(state, &request.schema) {
            Planned::Current => {}
            Planned::Ahead => return Preparation::Wait(self.waits.issue(WaitFor::Grant)),
            Planned::Stale => {
                return Preparation::Refuse(Refused { conflict: schema_changed(request), stale: Vec::new() });
            }
        }
        let is_reserving = request.is_reserving();
        let mut in_flight = None;
        let mut reserved_by_other = None;
        let mut outcome = None;
        for entry in &request.reads {
            match self.touched(versions, &entry.target, entry.columns, entry.until) {
                Touch::No => {}
                Touch::InFlight(at) => in_flight = in_flight.max(Some(at)),
                Touch::Prepared(id) if is_reserving || self.waits_for_its(turn, id) => outcome = Some(id),
                Touch::Prepared(_) => reserved_by_other = reserved_by_other.or(Some(entry.target.start().clone())),
                Touch::Committed(_) | Touch::TooOld => {
                    return Preparation::Refuse(self.refused(state, versions, &request.reads, now, clock));
                }
            }
        }
        match self.disturbed(request.id, &request.writes) {
            Some((_, id)) if self.waits_for_its(turn, id) => outcome = Some(id),
            Some((key, _)) => reserved_by_other = reserved_by_other.or(Some(key)),
            None => {}
        }
        let uncovered = match self.check_deltas(versions, request) {
            Ok(()) => None,
            Err(Uncovered::InFlight(at)) => return Preparation::Wait(self.waits.issue(WaitFor::Applied(at))),
            Err(Uncovered::Short(key)) => Some(Conflict { key, reason: ConflictReason::Short }),
        };
        if let Some(conflict) = uncovered {
            return Preparation::Refuse(Refused { conflict, stale: Vec::new() });
        }
        if let Some(key) = reserved_by_other {
            let conflict = Conflict { key, reason: ConflictReason::ReservedByPrepared };
            return Preparation::Refuse(Refused { conflict, stale: Vec::new() });
        }
        let in_the_way = in_flight.filter(|_| self.rules.awaits_in_flight()).map(WaitFor::Applied);
        if let Some(what) = in_the_way.or(outcome.map(WaitFor::Outcome)) {
            self.claim(request, now);
            return Preparation::Wait(self.waits.issue(what));
        }
        match self.draw(state, request, clock, physical_micros) {
            Ok(at) => {
                self.claims.remove(request.id);
                let holds_nothing = is_reserving && !self.rules.reserving_reads_hold();
                let reads = if holds_nothing { Vec::new() } else { reserved(&request.reads) };
                let writes = self.shares.resolve(request.id, &request.writes, false);
                self.held.add(request.id, at, &reads, &writes);
                self.preparing.insert(at, request.id);
                if turn == Turn::Early && !is_reserving {
                    self.early.insert(request.id);
                }
                Preparation::Append { at, writes }
            }
            Err(Undrawn::Wait(ticket)) => Preparation::Wait(ticket),
            Err(Undrawn::RecheckGlobal) => Preparation::RecheckGlobal,
            Err(Undrawn::NotReady(why)) => Preparation::NotReady(why),
        }
    }

    fn waits_for_its(&self, turn: Turn, id: TxnId) -> bool {
        turn == Turn::Late && self.early.contains(&id)
    }

    /// The vote is NO: transactions that wait for what this one has claimed go on. The tickets to
    /// wake are added to `woken`.
    pub fn give_up_claim(&mut self, id: TxnId, woken: &mut Vec<Ticket>) {
        if self.claims.remove(id).is_some() {
            self.waits.wake(WaitFor::Outcome(id), woken);
        }
    }

    /// The outcome of a prepared transaction is known, by its votes: the record to log, once the
    /// clock is at the commit timestamp. Where another group's clock is, the messages of that one
    /// have moved this clock; a future-time timestamp, which a transaction that writes GLOBAL rows
    /// has, is waited for.
    pub fn decide(
        &mut self,
        state: &GroupState,
        id: TxnId,
        at: Option<Timestamp>,
        clock: &Clock,
        physical_micros: u64,
    ) -> Deciding {
        if self.phase != Phase::Serving {
            return Deciding::NotReady(NotReady::NotPrimary);
        }
        if !matches!(state.standing(id), Standing::Prepared(_)) || self.deciding.contains(&id) {
            return Deciding::Known;
        }
        if let Some(at) = at {
            match self.reach(at, clock, physical_micros) {
                Ok(()) => {}
                Err(Unreached::Wait(_)) if !self.rules.releases_by_clock() => {}
                Err(Unreached::Wait(ticket)) => return Deciding::Wait(ticket),
                Err(Unreached::NotReady(why)) => return Deciding::NotReady(why),
            }
        }
        self.deciding.insert(id);
        Deciding::Log(Outcome { id, at })
    }

    /// Nothing will be issued at or below `t` any more, once the clock is there. No clock is ever
    /// moved to a timestamp: it may be a future-time one.
    fn reach(&mut self, t: Timestamp, clock: &Clock, physical_micros: u64) -> Result<(), Unreached> {
        let now = clock.now(physical_micros);
        self.ready(now).map_err(Unreached::NotReady)?;
        if t > now {
            return Err(Unreached::Wait(self.waits.issue(WaitFor::Clock(t))));
        }
        self.raise_floor(t, clock);
        Ok(())
    }

    /// One group's part of a fresh read-only transaction over several: every entry is still the
    /// newest, with nothing in flight or prepared that touches it, and from here on nothing appears
    /// at or below `t`, the largest of the gateway's clock and every version read. Nothing is
    /// logged or held. The schema is checked with [`Engine::check_read`] at `t`.
    pub fn read_round<V: Versions>(
        &mut self,
        state: &GroupState,
        versions: &V,
        entries: &[ReadEntry],
        t: Timestamp,
        clock: &Clock,
        physical_micros: u64,
    ) -> ReadCheck {
        let now = clock.now(physical_micros);
        if let Err(why) = self.ready(now) {
            return ReadCheck::NotReady(why);
        }
        let mut wait_for = None;
        for entry in entries {
            match self.touched(versions, &entry.target, entry.columns, entry.until) {
                Touch::No => {}
                Touch::InFlight(at) => wait_for = Some(WaitFor::Applied(at)),
                Touch::Prepared(id) => wait_for = Some(WaitFor::Outcome(id)),
                Touch::Committed(_) | Touch::TooOld => {
                    return ReadCheck::Refuse(self.refused(state, versions, entries, now, clock));
                }
            }
        }
        if let Some(what) = wait_for
            && self.rules.rounds_see_writers()
        {
            return ReadCheck::Wait(self.waits.issue(what));
        }
        match self.reach(t, clock, physical_micros) {
            Ok(()) => ReadCheck::Passed,
            Err(Unreached::Wait(ticket)) => ReadCheck::Wait(ticket),
            Err(Unreached::NotReady(why)) => ReadCheck::NotReady(why),
        }
    }

    /// Explains why these entries do not hold any more. The floor goes to `now`, so that what the
    /// retry is told stays true.
    fn refused<V: Versions>(
        &mut self,
        state: &GroupState,
        versions: &V,
        entries: &[ReadEntry],
        now: Timestamp,
        clock: &Clock,
    ) -> Refused {
        self.raise_floor(now, clock);
        let now = match self.in_flight.first_key_value() {
            Some((first, _)) => now.min(first.prev()),
            None => now.max(state.newest()),
        };
        let mut conflict = None;
        let mut stale: Vec<(Key, Timestamp)> = Vec::new();
        for entry in entries {
            if entry.until < versions.gc_threshold() {
                let key = entry.target.start().clone();
                conflict = conflict.or(Some(Conflict { key, reason: ConflictReason::BelowGcThreshold }));
                continue;
            }
            let mut left = vec![entry.target.clone()];
            while let Some(target) = left.pop().filter(|_| stale.len() < FRESH_MAX) {
                let Some((key, _)) = versions.changed_after(&target, entry.columns, entry.until) else { continue };
                if let Target::Range(range) = target {
                    left.push(Target::Range(KeyRange::new(key.successor(), range.end)));
                    left.push(Target::Range(KeyRange::new(range.start, key.clone())));
                }
                conflict = conflict.or_else(|| Some(Conflict { key: key.clone(), reason: ConflictReason::ConcurrentWrite }));
                // What holds it may be on its way into the log still, so the state would not do.
                let writer = self.held.writer(&Target::Key(key.clone()), ColumnMask::ALL, now);
                let until = writer.map_or(now, |(_, vote)| vote.prev());
                if !stale.iter().any(|(k, _)| *k == key) {
                    stale.push((key, until));
                }
            }
        }
        let key = entries.first().map_or(Key::MIN, |e| e.target.start().clone());
        let conflict = conflict.unwrap_or(Conflict { key, reason: ConflictReason::ConcurrentWrite });
        Refused { conflict, stale }
    }

    /// Nothing at or below this timestamp is in flight or prepared, or ever will be, and whatever
    /// has been acknowledged so far is at or below it: the snapshot of a read-only transaction that
    /// needs no [`Engine::read_gate`]. `None` while something is certified, prepared, or decided
    /// below what is in flight. For a reader without the lock the caller keeps it where it can be
    /// read *in one load*, and sets it anew under the lock after every [`Engine::applied`],
    /// [`Engine::prepare`] and at the end of the term.
    pub fn settled_through(&self, state: &GroupState) -> Option<Timestamp> {
        let newest = state.newest();
        let is_settled = self.pod.is_none()
            && self.held.is_empty()
            && self.in_flight.first_key_value().is_none_or(|(first, _)| *first > newest);
        is_settled.then_some(newest)
    }

    /// The same for a group in which nothing happens, right after it has promised `closed`: nothing
    /// will appear at or below that either. Without it such a snapshot would get as old as the last
    /// write.
    pub fn settled_when_idle(&self, state: &GroupState, closed: Timestamp) -> Option<Timestamp> {
        (self.pod.is_none() && self.in_flight.is_empty() && self.held.is_empty()).then_some(state.newest().max(closed))
    }

    /// Transactions that hold reservations here, those on their way into the log and those that
    /// wait included.
    pub fn held_len(&self) -> usize {
        self.held.len() + self.claims.len()
    }
}
