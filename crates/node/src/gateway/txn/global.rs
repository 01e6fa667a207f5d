//! GLOBAL rows in a transaction (`crate::gateway::global`): read at one snapshot `max_offset` ahead
//! of the clock, certified by the participants of the transaction wherever they are, and waited for
//! when they belong to the near future.
//!
//! | the transaction | what its GLOBAL entries take |
//! | --- | --- |
//! | reads GLOBAL rows only | nothing: all of them are at one snapshot |
//! | also reads others, and writes nothing | they are looked at again, up to `max_offset` above the time of its round |
//! | writes others | every participant certifies them on a replica of its own region; before that, this gateway's clock has passed them |
//! | writes GLOBAL rows of the same group | that group takes part and certifies them; the client is told when this gateway's clock has passed the commit |
//!
//! Rows that are to be written are read at the group's primary, if that is near or the transaction
//! was refused before: in the group's own time, ahead of everybody's clock.

use super::Txn;
use super::part::Part;
use super::reads::Found;
use crate::local::metrics::Counter;
use crate::transport::wire::{GlobalView, ReadOp};
use meridian_base::{Error, GlobalReads, GroupId, ReadEntry, Result, Timestamp};
use meridian_sql::env::Locking;
use std::time::Duration;

/// Where a transaction reads GLOBAL rows, and what it has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GlobalReading {
    /// The clock at the first read, and the snapshot.
    taken: Option<(Timestamp, Timestamp)>,
    /// The newest version read.
    pub newest: Timestamp,
    /// Something was read elsewhere than at the snapshot: at a primary, or from what this gateway
    /// has heard of since.
    pub is_mixed: bool,
    /// It writes GLOBAL rows: known when it commits.
    pub is_written: bool,
}

impl Txn {
    fn physical(&self) -> Timestamp {
        Timestamp::from_micros(self.gateway.shared.runtime.physical_micros())
    }

    /// Whether this read of a group takes place at the nearest replica at present time.
    pub(super) fn reads_global(&self, part: &Part, locking: Locking) -> bool {
        part.is_global && (locking == Locking::None || self.reads_at_replica(part.group, locking))
    }

    /// The clock and the snapshot of all reads of GLOBAL rows. Over values that are reserved at a
    /// commit timestamp: as of that.
    pub(super) fn global_snapshot(&mut self) -> Result<(Timestamp, Timestamp)> {
        if let Some(taken) = self.global.taken {
            return Ok(taken);
        }
        let now = match &self.reserved {
            Some(reserved) => reserved.at,
            None => self.gateway.shared.present()?,
        };
        let ahead = match self.gateway.shared.groups.common.rules.reads_uncertainty() {
            false => Duration::ZERO,
            true => self.gateway.shared.clock.max_offset(),
        };
        let taken = (now, now.plus(ahead).max(self.options.schema_committed_at));
        self.global.taken = Some(taken);
        Ok(taken)
    }

    /// One read of GLOBAL rows.
    pub(super) async fn ask_global(&mut self, at: usize, op: ReadOp) -> Result<Found> {
        let (now, snapshot) = self.global_snapshot()?;
        let view = GlobalView { now, at: snapshot, schema: self.schema.clone() };
        let group = self.parts[at].group;
        let (mut answer, round_trips) = match self.gateway.shared.read_global(group, &view, std::slice::from_ref(&op)).await {
            Ok(answered) => answered,
            Err(e) => return Err(self.note_failure(e)),
        };
        self.round_trips += round_trips;
        self.global.newest = self.global.newest.max(answer.newest);
        if self.options.read_only {
            // What a client is shown belongs to its past.
            self.await_global_reads().await;
        }
        answer.results.pop().ok_or_else(|| Error::internal("a node answered another question"))
    }

    /// A version was read, in this part, elsewhere than at the snapshot of GLOBAL rows.
    pub(super) fn note_newest(&mut self, at: usize, version: Timestamp) {
        if self.parts[at].is_global {
            self.global.newest = self.global.newest.max(version);
            self.global.is_mixed = true;
        } else {
            self.newest = self.newest.max(version);
        }
    }

    /// Waits until this node's clock has passed what was read of GLOBAL rows.
    pub(super) async fn await_global_reads(&self) {
        if self.gateway.shared.groups.common.rules.readers_wait() {
            self.await_clock(self.global.newest).await;
        }
    }

    /// Waits until this node's clock has passed the commit of GLOBAL rows.
    pub(super) async fn await_global_commit(&self, at: Timestamp) {
        if self.gateway.shared.groups.common.rules.writers_wait() {
            self.await_clock(at).await;
        }
    }

    /// The physical clock: what messages have moved the other one to may be ahead of everybody's.
    async fn await_clock(&self, at: Timestamp) {
        if self.physical() > at {
            return;
        }
        self.gateway.shared.groups.common.metrics.add(Counter::CommitWaits);
        while self.physical() <= at {
            tokio::time::sleep(at.since(self.physical()) + Duration::from_micros(100)).await;
        }
    }

    /// The read entries of GLOBAL groups that take no part in the commit.
    pub(super) fn global_entries(&self) -> Vec<(GroupId, Vec<ReadEntry>)> {
        self.global_parts().map(|p| (p.group, p.view.entries.clone())).collect()
    }

    pub(super) fn global_parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|p| p.is_global && !p.takes_part() && !p.view.entries.is_empty())
    }

    /// What every participant is to certify.
    pub(super) fn global_reads(&self) -> GlobalReads {
        GlobalReads { entries: self.global_entries(), hold_until: Timestamp::MIN }
    }

    /// At the end of a transaction that has only read: whether the GLOBAL rows it read are what
    /// they were, together with everything else as of `at` (counterexample 25).
    pub(super) async fn confirm_global(&self, at: Timestamp) -> Result<()> {
        let entries = self.global_entries();
        if entries.is_empty() || !self.gateway.shared.groups.common.rules.rechecks_global_reads() {
            return Ok(());
        }
        match self.gateway.shared.global_holds(&entries, at.plus(self.gateway.shared.clock.max_offset())).await? {
            Ok(_) => Ok(()),
            Err(conflict) => Err(self.explain(&conflict)),
        }
    }
}
