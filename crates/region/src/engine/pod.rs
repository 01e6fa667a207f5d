//! An engine among several that certify the same group's transactions, each those on keys of its
//! own (`docs/design/pod.md`). All of them draw from one clock, and what each certifies goes into
//! the one log, in its own order; between engines the log is not in the order of timestamps.
//!
//! | what | who sees to it |
//! | --- | --- |
//! | every key that is asked about is this engine's at that moment | the caller, under its lock |
//! | what others wrote to a key before it came here is applied | the caller; then [`Engine::gained`] |
//! | what is read here at `s` is not written elsewhere below `s` later | the floor raises the shared clock |
//! | what others certified ends nothing here | [`Engine::applied`] looks for its own transactions only |
//!
//! A *host* is such an engine without the log's leadership. It certifies transactions of this group
//! alone. It has no reservations and no escrow shares: keys that either is on are the leader's.

use super::Engine;
use crate::state::GroupState;
use crate::waits::{Ticket, WaitFor};
use meridian_base::record::Committed;
use meridian_base::{Clock, ColumnMask, Key, Target, Timestamp};

/// What an engine knows of the pod that it is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pod {
    /// Another node leads the log.
    is_beside_leader: bool,
    /// The last lowering of the schema bound that is not applied here, and its number: obeyed
    /// before it is durable (counterexample 75).
    lowered: Option<(u64, Timestamp)>,
}

impl Engine {
    /// This engine leads, and is the pod's first: others follow. What it has used so far is pushed
    /// into the clock.
    pub fn lead_pod(&mut self, state: &GroupState, clock: &Clock) {
        assert!(clock.is_shared(), "the hosts of a pod have one clock");
        self.pod = Some(Pod { is_beside_leader: false, lowered: None });
        self.raise_to_others(state);
        clock.advance_to(self.floor);
    }

    /// This engine is a host's. The state contains the leader's first lease.
    pub fn join_pod(mut self, state: &GroupState, clock: &Clock) -> Engine {
        assert!(clock.is_shared(), "the hosts of a pod have one clock");
        self.pod = Some(Pod { is_beside_leader: true, lowered: None });
        // The clock is above all that was used before.
        (self.start_above, self.floor) = (Timestamp::MIN, state.newest().max(state.closed()));
        self.ceiling = state.ceiling();
        self.held = Default::default();
        self
    }

    /// Whether an own key may become a shared tuple: nothing on it is in flight (counterexample
    /// 47), nor reserved (56). The ticket wakes when that may have ended.
    ///
    /// # Errors
    ///
    /// What to wait for.
    pub fn may_be_shared(&mut self, key: &Key) -> Result<(), Ticket> {
        let target = Target::Key(key.clone());
        let in_flight = self.index.last_in_flight(&target, ColumnMask::ALL, Timestamp::MAX).map(WaitFor::Applied);
        let reserved = || self.held.disturbed(key, ColumnMask::ALL).map(WaitFor::Outcome);
        match in_flight.or_else(reserved) {
            Some(what) => Err(self.waits.issue(what)),
            None => Ok(()),
        }
    }

    /// A shared tuple is an own key again. Others have written it up to `newest`, which is applied
    /// here; the conflict index would count that as in flight (counterexample 78).
    pub fn came_home(&mut self, key: &Key, newest: Timestamp) {
        self.decided.add(key, ColumnMask::ALL, newest, newest);
    }

    /// Whether another node leads.
    pub(super) fn is_beside_leader(&self) -> bool {
        self.pod.is_some_and(|pod| pod.is_beside_leader)
    }

    /// Keys came from another engine, and everything that was written to them before is applied:
    /// the store is asked about it (counterexample 60).
    pub fn gained(&mut self, state: &GroupState) {
        self.index.raise_low_water(state.newest());
        // Their votes are not known here (counterexample 55).
        self.decided.raise_low_water(state.newest_outcome());
    }

    /// Others have used timestamps up to this.
    pub fn used_by_others(&mut self, through: Timestamp) {
        self.floor = self.floor.max(through);
    }

    /// Whether the vote of a transaction over several groups is on its way into the log.
    pub fn is_preparing(&self) -> bool {
        !self.preparing.is_empty()
    }

    /// The last transaction that was certified here and is not applied.
    pub fn last_in_flight(&self) -> Option<Timestamp> {
        self.in_flight.last_key_value().map(|(at, _)| *at)
    }

    /// Whether nothing is in flight that was certified at `through` or before.
    pub fn is_applied_through(&self, through: Timestamp) -> bool {
        self.in_flight.first_key_value().is_none_or(|(first, _)| *first > through)
    }

    /// The leader lowers the schema bound to this, by the grant with this number. It holds until
    /// that grant is applied.
    pub fn lower_schema_bound(&mut self, state: &GroupState, number: u64, bound: Timestamp) {
        let Some(pod) = &mut self.pod else { return };
        if number <= state.grant().seq {
            pod.lowered = None;
            return;
        }
        let still = pod.lowered.map_or(Timestamp::MAX, |(_, bound)| bound);
        pod.lowered = Some((number, bound.min(still)));
    }

    /// See [`Engine::lower_schema_bound`].
    pub(super) fn lowered_bound(&self) -> Timestamp {
        self.pod.and_then(|pod| pod.lowered).map_or(Timestamp::MAX, |(_, bound)| bound)
    }

    /// Nothing will be issued at or below `t`, which the clock has reached: here or, in a pod,
    /// anywhere.
    pub(super) fn raise_floor(&mut self, t: Timestamp, clock: &Clock) {
        self.floor = self.floor.max(t);
        if self.pod.is_some() {
            clock.advance_to(t);
        }
    }

    /// Other engines' versions are above the floor when they come.
    pub(super) fn raise_to_others(&mut self, state: &GroupState) {
        if self.pod.is_some() {
            self.floor = self.floor.max(state.newest()).max(state.closed());
        }
    }

    /// What a timestamp that is drawn has to be above on account of others.
    pub(super) fn newest_of_others(&self, state: &GroupState) -> Timestamp {
        if self.pod.is_some() { state.newest() } else { Timestamp::MIN }
    }

    /// Whether the transaction is one of this engine's: every one of the term is where there is no
    /// pod (counterexample 79).
    pub(super) fn certified_here(&self, txn: &Committed) -> bool {
        self.pod.is_none() || self.in_flight.get(&txn.at) == Some(&txn.id)
    }
}
