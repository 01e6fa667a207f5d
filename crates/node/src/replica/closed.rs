//! What a replica knows to be closed: no version appears at or below it any more, except those of
//! transactions that are already prepared in the log.
//!
//! Every log record carries its group's closed timestamp. While a group is idle, its primary
//! promises more beside the log (`crate::membership::promises`). A promise counts at a replica once
//! that has applied the log up to the entry it names.

use crate::replica::Replica;
use crate::transport::wire::ClosedPromise;
use meridian_base::limits::LEASE_AHEAD;
use meridian_base::{NodeId, Timestamp};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A lead above this is of no use: writers wait it out, and the lease has to be renewed before it
/// is used up.
pub(crate) const LEAD_MAX: Duration = Duration::from_millis(900);

impl Replica {
    /// What the primary of an idle group promises. While records are on their way to the log, these
    /// carry it.
    pub(crate) fn promise(&self) -> Option<ClosedPromise> {
        let mut core = self.core.lock();
        let (state, term) = self.leading(&mut core).ok()?;
        if !term.is_idle() || !self.lease_holds() {
            return None;
        }
        let closed = term.closed(state, self.physical());
        // Of GLOBAL groups, what is closed lies in the future.
        if let Some(settled) = term.engine.settled_when_idle(state, closed)
            && self.lead_micros.load(Ordering::Relaxed) == 0
        {
            self.fast.settled.store(settled.0, Ordering::Release);
        }
        Some(ClosedPromise { group: self.id, closed, index: state.applied().index })
    }

    /// No version will appear at or below it: garbage collection never passes it. A replica that
    /// lags still applies older versions, and what is prepared may commit at its vote.
    pub(crate) fn settled(&self) -> Timestamp {
        let core = self.core.lock();
        let prepared = core.state.prepared().map(|p| p.at).min();
        prepared.map_or(core.closed(), |at| at.prev().min(core.closed()))
    }

    /// A promise arrived. It counts if `from` is who leads the group, as far as this replica knows,
    /// and if it can have been made: a primary promises nothing above its ceiling. Another promise
    /// is dropped; the next one comes soon.
    pub(crate) fn promised(&self, from: NodeId, promise: &ClosedPromise) {
        let most = self.clock.now(self.physical()).plus(LEASE_AHEAD + LEAD_MAX + self.clock.max_offset());
        if self.raft().role().leader != Some(from) || promise.closed > most {
            return;
        }
        let mut core = self.core.lock();
        if promise.closed > core.promise.closed {
            core.promise = *promise;
        }
    }
}

impl crate::replica::Core {
    /// No version will appear here at or below it, except those of transactions that are prepared
    /// already.
    pub(crate) fn closed(&self) -> Timestamp {
        let kept = self.state.applied().index >= self.promise.index;
        let promised = if kept { self.promise.closed } else { Timestamp::MIN };
        self.state.closed().max(promised)
    }
}
