//! Deltas of escrow columns and the tokens that they need (`docs/design/escrow.md`, E4 to E7, and
//! «Fold»). What is known of a share is [`crate::shares`]'s.

use super::{Engine, NotReady, ShareLook, Undrawn};
use crate::shares;
use crate::state::GroupState;
use crate::versions::Versions;
use crate::waits::WaitFor;
use meridian_base::escrow::{Demand, Free, Late};
use meridian_base::limits::TOKENS_RESERVED_MAX;
use meridian_base::{
    Change, Clock, ColumnMask, CommitRequest, GlobalReads, Key, Mutation, SchemaUse, Target, Timestamp, TxnId, Write, escrow,
};

/// Why a delta does not pass now.
pub(super) enum Uncovered {
    /// The share is about to be written otherwise.
    InFlight(Timestamp),
    /// It is not there, or has too few free tokens.
    Short(Key),
}

impl Engine {
    /// Whether every delta finds a share that covers it.
    pub(super) fn check_deltas<V: Versions>(&mut self, versions: &V, request: &CommitRequest) -> Result<(), Uncovered> {
        // All of them are held until the writes are made.
        self.shares.make_room(request.writes.iter().filter(|w| escrow::is_key(w.key.as_bytes())).count());
        for mutation in &request.writes {
            let is_known = matches!(mutation.change, Change::Add(_) | Change::Shift(_) | Change::Renew { .. });
            // A deleted share takes its late keys along.
            let ends = matches!(mutation.change, Change::Delete) && escrow::is_key(mutation.key.as_bytes());
            if !is_known && !ends {
                continue;
            }
            self.hold_share(versions, &mutation.key).map_err(Uncovered::InFlight)?;
            if is_known && !self.shares.covers(request.id, &mutation.key, &mutation.change) {
                return Err(Uncovered::Short(mutation.key.clone()));
            }
        }
        Ok(())
    }

    /// Has a share in memory, if there is one. The error is the last transaction in flight that may
    /// change it otherwise than by deltas.
    pub(super) fn hold_share<V: Versions>(&mut self, versions: &V, share: &Key) -> Result<(), Timestamp> {
        if !self.shares.is_held(share) {
            let range = Target::Range(shares::of_site(share));
            if let Some(at) = self.index.last_in_flight(&range, ColumnMask::ALL, Timestamp::MAX) {
                return Err(at);
            }
            self.shares.load(versions, share);
        }
        Ok(())
    }

    /// How far a share's number may go by deltas of this site, as far as is known now; a statement
    /// asks before it answers.
    pub fn share<V: Versions>(&mut self, versions: &V, share: &Key, clock: &Clock, physical_micros: u64) -> ShareLook {
        if let Err(why) = self.ready(clock.now(physical_micros)) {
            return ShareLook::NotReady(why);
        }
        self.shares.make_room(1);
        match self.hold_share(versions, share) {
            Err(at) => ShareLook::Wait(self.waits.issue(WaitFor::Applied(at))),
            Ok(()) => ShareLook::Offer(self.shares.offer(share)),
        }
    }

    /// The same for a transaction: what `late`, all that it adds to the share, takes is held for it
    /// for a while, if it is there. What is offered includes that, and what was held before.
    pub fn reserve_tokens<V: Versions>(
        &mut self,
        versions: &V,
        (id, share, late): (TxnId, &Key, &Late),
        clock: &Clock,
        physical_micros: u64,
    ) -> ShareLook {
        match self.share(versions, share, clock, physical_micros) {
            ShareLook::Offer(_) => {
                let until = clock.now(physical_micros).plus(TOKENS_RESERVED_MAX);
                ShareLook::Offer(self.shares.reserve(id, share, late, until))
            }
            look => look,
        }
    }

    /// A transaction has ended here, or ends without having committed.
    pub fn release_tokens(&mut self, id: TxnId) {
        self.shares.release_reserved(id);
    }

    /// The tokens of an escrow share that is in use.
    pub fn free(&self, share: &Key) -> Option<Free> {
        self.shares.is_held(share).then(|| self.shares.free(share)).flatten()
    }

    /// A forecast of what an escrow share will need: its site says so when it is asked for an
    /// offer.
    pub fn expect(&mut self, share: &Key, wanted: Free) {
        self.shares.expect(share, wanted);
    }

    /// What deltas needed of each escrow share that is in use, since this was last asked for.
    pub fn take_demands(&mut self) -> Vec<(Key, Demand)> {
        self.shares.take_demands()
    }

    /// The escrow shares that have gathered many late keys: [`Engine::fold`] them.
    pub fn take_ripe(&mut self) -> Vec<Key> {
        self.shares.take_ripe()
    }

    /// The transaction that adds late keys to their share, which changes no number: append
    /// `Committed` with this id, as after [`Engine::certify`]. `None`: there are none to add, or a
    /// prepared transaction has read the share.
    pub fn fold(
        &mut self,
        state: &GroupState,
        id: TxnId,
        share: &Key,
        clock: &Clock,
        physical_micros: u64,
    ) -> Option<(Timestamp, Vec<Write>)> {
        self.ready(clock.now(physical_micros)).ok()?;
        let folded = self.shares.foldable(share, state.watermark());
        if folded.is_empty() {
            return None;
        }
        let at = self.draw_own(state, id, share, Timestamp::MIN, clock, physical_micros)?;
        let writes = self.shares.fold(share, &folded);
        self.push(id, at, &writes);
        Some((at, writes))
    }

    /// Draws the timestamp, above another one, of a transaction of the primary's own that writes a
    /// share and changes no number. `None`: not now; a prepared transaction has read it or writes
    /// it.
    pub(super) fn draw_own(
        &mut self,
        state: &GroupState,
        id: TxnId,
        share: &Key,
        above: Timestamp,
        clock: &Clock,
        physical_micros: u64,
    ) -> Option<Timestamp> {
        let range = [Mutation { key: share.clone(), change: Change::Delete, columns: ColumnMask::ALL }];
        if self.disturbed(id, &range).is_some() {
            return None;
        }
        let schema = SchemaUse { version: state.grant().version, ..SchemaUse::default() };
        let request = CommitRequest {
            id,
            reads: Vec::new(),
            writes: Vec::new(),
            min_commit: above,
            schema,
            global: GlobalReads::default(),
        };
        match self.draw(state, &request, clock, physical_micros) {
            Ok(at) => Some(at),
            Err(Undrawn::Wait(ticket) | Undrawn::NotReady(NotReady::NeedLease(ticket))) => {
                self.waits.cancel(ticket);
                None
            }
            Err(Undrawn::RecheckGlobal | Undrawn::NotReady(NotReady::NotPrimary)) => None,
        }
    }
}
