//! What the group's records promise: closed timestamps, the watermark, and the lease.

use super::{Engine, Phase};
use crate::state::GroupState;
use meridian_base::limits::{LEASE_AHEAD, WATERMARK_LAG};
use meridian_base::record::Lease;
use meridian_base::{Clock, Timestamp};
use std::ops::Bound::{Excluded, Unbounded};

impl Engine {
    /// The closed timestamp to promise now: below every certified transaction that is not in the
    /// log, at most the ceiling. What is prepared *in the log* does not hold it back: the promise
    /// excepts those.
    pub fn closed_target(&mut self, state: &GroupState, clock: &Clock, physical_micros: u64) -> Timestamp {
        if !self.may_serve(clock, physical_micros) {
            return state.closed();
        }
        let mut closed = clock.now(physical_micros).min(self.ceiling);
        let not_in_the_log = (Excluded(self.appended), Unbounded);
        for (first, _) in
            self.in_flight.range(not_in_the_log).next().into_iter().chain(self.preparing.range(not_in_the_log).next())
        {
            closed = closed.min(first.prev());
        }
        let closed = closed.max(state.closed());
        assert!(closed <= self.ceiling, "{closed} would be promised above the ceiling {}", self.ceiling);
        self.raise_floor(closed, clock);
        closed
    }

    /// The watermark to write now: trails the clock by `WATERMARK_LAG` and stays below every id in
    /// flight.
    pub fn watermark(&self, state: &GroupState, clock: &Clock, physical_micros: u64) -> Timestamp {
        let mut f = clock.now(physical_micros).minus(WATERMARK_LAG);
        if let Some((first, _)) = self.in_flight_ids.first_key_value() {
            f = f.min(first.hlc.prev());
        }
        f.max(state.watermark())
    }

    /// A lease record to log, when less than half of `LEASE_AHEAD` remains and none is under way.
    pub fn renew_lease(&mut self, state: &GroupState, clock: &Clock, physical_micros: u64) -> Option<Lease> {
        let now = clock.now(physical_micros);
        if self.phase != Phase::Serving || self.lease_asked || self.ceiling.since(now) >= LEASE_AHEAD / 2 {
            return None;
        }
        self.lease_asked = true;
        Some(Lease { primary: self.node, ceiling: now.plus(LEASE_AHEAD).max(state.ceiling()) })
    }

    /// Gives the lease up, before leadership is transferred or the node stops: nothing is certified
    /// or read from here on. The record lowers the ceiling to what was really used, so that the
    /// successor need not wait. It is appended after every batch cut before; what is in flight goes
    /// on and may be acknowledged. Tickets wake when they would have, or by [`Engine::lost`].
    pub fn give_up_lease(&mut self, clock: &Clock, physical_micros: u64) -> Lease {
        if self.phase == Phase::Serving {
            self.phase = Phase::Ending;
        }
        Lease { primary: self.node, ceiling: self.floor.max(clock.now(physical_micros)) }
    }
}
