//! Fresh reads: where they take place, when they may be answered, when they may move.

use super::{Engine, NotReady, Phase, ReadGate, Snapshot, Touch};
use crate::moment::Moment;
use crate::state::GroupState;
use crate::versions::Versions;
use crate::waits::WaitFor;
use meridian_base::{Clock, ColumnMask, ReadEntry, SchemaUse, Target, Timestamp};

impl Engine {
    /// The snapshot of a transaction's first fresh read in this group: the clock, which is above
    /// everything acknowledged here before. `gateway_now` is the gateway's clock when the
    /// transaction began; it may be behind what was acknowledged by then, so nothing reads there
    /// unless a bug is planted (counterexample 20). Whether the primary is ready and the schema
    /// holds is asked afterwards, with [`Engine::check_read`] and [`Engine::read_gate`].
    pub fn fresh_snapshot(
        &mut self,
        state: &GroupState,
        gateway_now: Timestamp,
        clock: &Clock,
        physical_micros: u64,
    ) -> Snapshot {
        if !self.rules.snapshots_move() {
            return Snapshot { at: gateway_now, settled: false };
        }
        // At the start of a term the clock may still be below what was acknowledged; the gate waits
        // for it.
        Snapshot { at: clock.tick(physical_micros).max(self.floor).max(state.newest()), settled: false }
    }

    /// The snapshot of a read-only transaction that stays in this group: the newest timestamp
    /// applied or prepared. Whatever was acknowledged before it began is at or below that, or has a
    /// vote at or below it, for which the gate waits. Without anything prepared it waits for
    /// nothing. If the schema version it planned with is younger, the version's commit timestamp,
    /// which is not settled.
    pub fn read_only_snapshot(&self, state: &GroupState, schema: &SchemaUse) -> Snapshot {
        let settled = self.settled_through(state);
        let at = state.newest().max(self.held.last().unwrap_or_default()).max(self.schema_above(state, schema));
        Snapshot { at, settled: settled == Some(at) }
    }

    /// Whether a target may be read at `s`: raises the floor to `s`, and waits for the writers in
    /// flight or prepared at or below it.
    pub fn read_gate(&mut self, moment: &Moment<'_>, target: &Target, columns: ColumnMask, s: Timestamp) -> ReadGate {
        let Moment { state, versions, clock, .. } = *moment;
        let now = moment.now();
        if let Err(why) = self.ready(now) {
            return ReadGate::NotReady(why);
        }
        if s > self.ceiling {
            return ReadGate::NotReady(NotReady::NeedLease(self.waits.issue(WaitFor::Lease)));
        }
        if now < s {
            return ReadGate::Wait(self.waits.issue(WaitFor::Clock(s)));
        }
        // `s` may be old, but the answer leaves now: once the schema lease has ended, a step may
        // have been acknowledged.
        if now > self.schema_bound(state) && self.rules.certifies_schema_version() {
            return ReadGate::Wait(self.waits.issue(WaitFor::Grant));
        }
        if s < versions.gc_threshold() {
            return ReadGate::TooOld;
        }
        self.raise_floor(s, clock);
        if let Some(to) = self.missed(&versions, target, columns, s) {
            return ReadGate::MoveTo(to);
        }
        if let Some(id) = self.held_writer(target, columns, s) {
            return ReadGate::Wait(self.waits.issue(WaitFor::Outcome(id)));
        }
        let in_flight_before = self.in_flight.first_key_value().is_some_and(|(first, _)| *first <= s);
        if !in_flight_before || !self.rules.awaits_in_flight() {
            return ReadGate::Ready;
        }
        match self.index.last_in_flight(target, columns, s) {
            Some(at) => ReadGate::Wait(self.waits.issue(WaitFor::Applied(at))),
            None => ReadGate::Ready,
        }
    }

    /// Counterexample 20, second half: a version above `s` whose vote is at or below it, or not
    /// known any more.
    fn missed<V: Versions>(&self, versions: &V, target: &Target, columns: ColumnMask, s: Timestamp) -> Option<Timestamp> {
        if !self.rules.snapshots_move() {
            return None;
        }
        let known = self.decided.missed(target, columns, s);
        let forgotten = self.decided.low_water();
        if s < forgotten && versions.changed_after(target, columns, s).is_some() {
            return known.max(Some(forgotten));
        }
        known
    }

    /// Whether read entries may move forward to `s` (after waiting in a queue, or on
    /// [`ReadGate::MoveTo`]): only if nothing has touched them since their `until`, committed, in
    /// flight or prepared. If so, raises the floor to `s`, and the caller sets every `until` to
    /// `s`.
    pub fn move_forward<V: Versions>(&mut self, state: &GroupState, versions: &V, entries: &[ReadEntry], s: Timestamp) -> bool {
        if self.phase != Phase::Serving || s > self.ceiling {
            return false;
        }
        let idle = self.in_flight.is_empty() && self.held.is_empty();
        let untouched = |e: &ReadEntry| {
            let nothing_since = e.until >= s || (idle && e.until >= state.newest());
            nothing_since
                || match self.touched(versions, &e.target, e.columns, e.until) {
                    Touch::No => true,
                    // It commits at its vote or above: nothing at or below `s` if that is above it.
                    Touch::Prepared(_) => self.held_writer(&e.target, e.columns, s).is_none(),
                    _ => false,
                }
        };
        if !entries.iter().all(untouched) {
            return false;
        }
        self.floor = self.floor.max(s);
        true
    }
}
