//! Reads at a replica that need not be the primary: what it knows at its closed timestamp, at once
//! and without a message; reads of the past (`AS OF SYSTEM TIME`), and of GLOBAL rows at present
//! time, at any replica that has got there.
//!
//! What is read at the closed timestamp is speculative. Each result says up to when it is known to
//! be the newest (`until`), and the transaction's certification decides. A transaction that is
//! prepared and not decided may put a version below the closed timestamp; a read passes it by, and
//! its `until` stays below what was prepared.

use crate::replica::Replica;
use crate::replica::errors::conflict_error;
use crate::replica::pages::{covered, page_limits};
use crate::transport::wire::{GlobalView, ReadOp, ReadResult, ReplicaAnswer, ReplicaView, WireLocking};
use meridian_base::{ColumnMask, Conflict, ConflictReason, Error, Key, KeyRange, ReadEntry, Result, Target, Timestamp};
use meridian_region::Planned;
use meridian_sql::env::{RowVisitor, Scan};
use std::time::Duration;
use tokio::time::Instant;

/// A replica that is further behind than this is cut off, or not a member any more: what it knows
/// would only be refused.
pub(crate) const LAG_MAX: Duration = Duration::from_secs(2);
/// How long a read of the past waits here at most, whatever the gateway wishes.
const PAST_PATIENCE_MAX: Duration = Duration::from_secs(5);
/// Closed timestamps move in such steps, or with the log.
const PAST_POLL: Duration = Duration::from_millis(5);

impl Replica {
    /// Several reads at one snapshot. `Unavailable` if the replica is not there yet: the gateway
    /// asks elsewhere.
    pub fn read_closed(&self, view: &ReplicaView, ops: &[ReadOp]) -> Result<ReplicaAnswer> {
        let closed = self.core.lock().closed();
        let snapshot = view.snapshot.unwrap_or(closed);
        let is_cut_off = self.clock.now(self.physical()).since(closed) > LAG_MAX;
        if snapshot > closed || closed < view.above || is_cut_off {
            return Err(Error::unavailable(format!("the replica of group {} here is behind", self.id)));
        }
        self.read_at(snapshot, ops)
    }

    /// Whether [`Replica::read_closed`] would answer who asks for this moment or a later one.
    pub fn is_closed_at(&self, above: Timestamp) -> bool {
        let closed = self.core.lock().closed();
        closed >= above && self.clock.now(self.physical()).since(closed) <= LAG_MAX
    }

    fn read_at(&self, snapshot: Timestamp, ops: &[ReadOp]) -> Result<ReplicaAnswer> {
        self.check_ops_not_owed(ops)?;
        let mut answer = ReplicaAnswer { snapshot, ..ReplicaAnswer::default() };
        for op in ops {
            let result = match op {
                ReadOp::Get { keys, columns, .. } => {
                    let (mut values, mut untils) = (Vec::with_capacity(keys.len()), Vec::with_capacity(keys.len()));
                    for key in keys {
                        untils.push(self.until(&Target::Key(key.clone()), *columns, snapshot));
                        let found = self.store.get(key.as_bytes(), snapshot)?;
                        answer.newest = answer.newest.max(found.as_ref().map_or(Timestamp::MIN, |v| v.at));
                        values.push(found.and_then(|v| v.value));
                    }
                    (ReadResult::Values(values), untils)
                }
                ReadOp::Scan { range, columns, reverse, limit, .. } => {
                    self.scan_closed(range, *columns, *reverse, *limit, snapshot, &mut answer.newest)?
                }
                ReadOp::Share { .. } | ReadOp::Reserve { .. } => return Err(Error::not_primary(self.id)),
            };
            answer.results.push(result);
        }
        Ok(answer)
    }

    /// Several reads at one moment of the past: nothing may appear at or below it any more. Waits
    /// for that, not longer than `patience`; then `Unavailable`, and the gateway asks elsewhere.
    /// 72000 if the versions of that time are collected.
    pub async fn read_past(&self, at: Timestamp, patience: Duration, ops: &[ReadOp]) -> Result<Vec<ReadResult>> {
        self.until_past(at, patience, ops).await?;
        Ok(self.read_at(at, ops)?.results.into_iter().map(|(result, _)| result).collect())
    }

    /// Shows a page of the past to a visitor; what is left of the range. Otherwise as
    /// [`Replica::read_past`].
    pub async fn visit_past(
        &self,
        at: Timestamp,
        patience: Duration,
        scan: &Scan,
        visitor: &mut dyn RowVisitor,
    ) -> Result<Option<KeyRange>> {
        let op = ReadOp::Scan {
            range: scan.range.clone(),
            columns: scan.columns | ColumnMask::EXISTENCE,
            reverse: scan.reverse,
            limit: None,
            locking: WireLocking::None,
        };
        self.until_past(at, patience, std::slice::from_ref(&op)).await?;
        self.check_not_owed(std::iter::once(scan.range.start.as_bytes()))?;
        let (limits, is_brief) = (page_limits(scan.limit), visitor.is_brief());
        self.store.visit(&scan.range, at, scan.reverse, limits, is_brief, &mut |key, _, value| visitor.row(key, value))
    }

    async fn until_past(&self, at: Timestamp, patience: Duration, ops: &[ReadOp]) -> Result<()> {
        let deadline = Instant::now() + patience.min(PAST_PATIENCE_MAX);
        while !ops.iter().all(|op| self.is_past(at, op)) {
            if Instant::now() >= deadline {
                return Err(self.behind());
            }
            tokio::time::sleep(PAST_POLL).await;
        }
        Ok(())
    }

    /// Whether what a read sees at that time is final: it is closed, and nothing prepared below it
    /// writes there.
    fn is_past(&self, at: Timestamp, op: &ReadOp) -> bool {
        let core = self.core.lock();
        let is_free = |target: Target, columns: ColumnMask| core.state.replica_read(&target, columns, at) >= at;
        core.closed() >= at
            && match op {
                ReadOp::Get { keys, columns, .. } => keys.iter().all(|key| is_free(Target::Key(key.clone()), *columns)),
                ReadOp::Scan { range, columns, .. } => is_free(Target::Range(range.clone()), *columns),
                ReadOp::Share { .. } | ReadOp::Reserve { .. } => true,
            }
    }

    /// Several reads of GLOBAL rows (`crate::gateway::global`). Waits until nothing may appear at
    /// or below the snapshot any more, not longer than `patience`; then `Unavailable`, and the
    /// gateway asks elsewhere.
    pub(crate) async fn read_global(&self, view: &GlobalView, patience: Duration, ops: &[ReadOp]) -> Result<ReplicaAnswer> {
        let deadline = Instant::now() + patience.min(PAST_PATIENCE_MAX);
        while !self.may_read_global(view, ops)? {
            if Instant::now() >= deadline {
                return Err(self.behind());
            }
            tokio::time::sleep(PAST_POLL).await;
        }
        let mut answer = self.read_at(view.at, ops)?;
        for (op, (result, _)) in ops.iter().zip(&answer.results) {
            if let (ReadOp::Scan { range, reverse, .. }, ReadResult::Page { rest, .. }) = (op, result) {
                let covered = Target::Range(covered(range, rest.as_ref(), *reverse));
                // Rows that are gone say nothing of themselves.
                let mut last = view.now.max(answer.newest);
                while let Some((_, at)) = self.store.changed_between(&covered, ColumnMask::ALL, last, view.at)? {
                    last = at;
                    answer.newest = at;
                }
            }
        }
        Ok(answer)
    }

    /// Whether what is read now is final, and was planned with the schema of its time. The group's
    /// grant is looked at in what this replica has applied: a bound that is lowered is never below
    /// what was promised as closed before, and what is promised later comes after it in the log.
    fn may_read_global(&self, view: &GlobalView, ops: &[ReadOp]) -> Result<bool> {
        {
            let core = self.core.lock();
            match core.state.planned_with(&view.schema) {
                Planned::Current => {}
                Planned::Ahead => return Ok(false),
                Planned::Stale => {
                    return Err(conflict_error(&Conflict { key: Key::MIN, reason: ConflictReason::SchemaChanged }));
                }
            }
            if view.at > core.state.grant().bound {
                return Ok(false);
            }
        }
        Ok(!self.common.rules.global_reads_are_closed() || ops.iter().all(|op| self.is_past(view.at, op)))
    }

    /// Up to when these entries hold, at least `needed`: no version above an entry's `until` and at
    /// or below that changes what it has read, and none will. Or what does so by `needed`. Waits
    /// until that is known, not longer than `patience`; then `Unavailable`.
    pub(crate) async fn holds(
        &self,
        entries: &[ReadEntry],
        needed: Timestamp,
        patience: Duration,
    ) -> Result<std::result::Result<Timestamp, Conflict>> {
        let deadline = Instant::now() + patience.min(PAST_PATIENCE_MAX);
        let mut known = self.known_until(entries);
        while known < needed {
            if Instant::now() >= deadline {
                return Err(self.behind());
            }
            tokio::time::sleep(PAST_POLL).await;
            known = self.known_until(entries);
        }
        self.check_not_owed(entries.iter().map(|entry| entry.target.start().as_bytes()))?;
        for entry in entries {
            if entry.until < self.store.gc_threshold() {
                let key = entry.target.start().clone();
                return Ok(Err(Conflict { key, reason: ConflictReason::BelowGcThreshold }));
            }
            if self.store.changed_between(&entry.target, entry.columns, entry.until, known)?.is_none() {
                continue;
            }
            // Perhaps only later than anybody has to know.
            known = needed;
            if let Some((key, _)) = self.store.changed_between(&entry.target, entry.columns, entry.until, needed)? {
                return Ok(Err(Conflict { key, reason: ConflictReason::ConcurrentWrite }));
            }
        }
        Ok(Ok(known))
    }

    /// What this replica knows of the entries' targets is final up to here.
    fn known_until(&self, entries: &[ReadEntry]) -> Timestamp {
        let core = self.core.lock();
        let closed = core.closed();
        if !self.common.rules.global_reads_end_at_prepared() {
            return closed;
        }
        entries.iter().map(|e| core.state.replica_read(&e.target, e.columns, closed)).min().unwrap_or(closed)
    }

    fn behind(&self) -> Error {
        Error::unavailable(format!("the replica of group {} on node {} is behind", self.id, self.node))
    }

    fn scan_closed(
        &self,
        range: &KeyRange,
        columns: ColumnMask,
        reverse: bool,
        limit: Option<u64>,
        snapshot: Timestamp,
        newest: &mut Timestamp,
    ) -> Result<(ReadResult, Vec<Timestamp>)> {
        let until = self.until(&Target::Range(range.clone()), columns, snapshot);
        let page = self.store.scan(range, snapshot, reverse, page_limits(limit.map(|limit| limit as usize)))?;
        let mut rows = Vec::with_capacity(page.rows.len());
        for (key, version) in page.rows {
            *newest = (*newest).max(version.at);
            rows.extend(version.value.map(|value| (key, value)));
        }
        Ok((ReadResult::Page { rows, rest: page.rest }, vec![until]))
    }

    /// Up to when what is read at `snapshot` is known to be the newest.
    fn until(&self, target: &Target, columns: ColumnMask, snapshot: Timestamp) -> Timestamp {
        self.core.lock().state.replica_read(target, columns, snapshot)
    }
}
