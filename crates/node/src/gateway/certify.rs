//! Certification at this node's primary, of what may have read GLOBAL rows.
//!
//! The engine knows nothing of GLOBAL rows: it compares the time up to which they were found to
//! hold with the timestamp that it draws. So what was read of them is looked at before each try
//! ([`crate::gateway::global`], «Certification»). All commits at a primary of this node come by
//! here: those of its own gateway, and those that other nodes ask for.

use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::replica::primary::WAIT_MAX;
use futures::future::BoxFuture;
use meridian_base::{CommitOutcome, CommitRequest, Conflict, Error, Refusal, Result, Timestamp, TxnId, limits};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What is found to hold should hold a little longer than it has to now: a timestamp is drawn with
/// it afterwards.
const MARGIN: Duration = Duration::from_millis(5);
/// Where something changes within the margin, only time tells whether it is too early.
const RECHECK_PAUSE: Duration = Duration::from_millis(1);

impl Shared {
    /// Certifies and commits a transaction of one group at its primary, here, with what it read of
    /// GLOBAL rows.
    pub(crate) async fn commit_at(&self, replica: &Replica, request: &CommitRequest) -> Result<CommitOutcome> {
        if request.global.entries.is_empty() {
            return replica.commit(request).await?.ok_or_else(|| Error::internal("there are no GLOBAL reads to look at again"));
        }
        let mut request = request.clone();
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let held = Box::pin(self.until_when(replica, &request)).await;
            request.global.hold_until = held.as_ref().map_or(Timestamp::MIN, |(hold_until, _)| *hold_until);
            // Asked in any case: it may have committed, by an earlier copy.
            if let Some(outcome) = replica.commit(&request).await? {
                return Ok(outcome);
            }
            // Another copy may be further than this one: what this one fails for decides nothing.
            let (_, conflict) = held.map_err(|e| if e.is_unavailable() { e } else { Error::unavailable(e.message()) })?;
            match conflict {
                // A later try certifies at a later time, so the conflict stays.
                Some(conflict) => return Ok(CommitOutcome::Conflict(conflict)),
                None if Instant::now() >= deadline => {
                    return Err(Error::unavailable(format!("GLOBAL rows are behind at the primary of group {}", replica.id)));
                }
                None => tokio::time::sleep(RECHECK_PAUSE).await,
            }
        }
    }

    /// Up to when a slice's GLOBAL reads hold, and if that is not long enough for this primary's
    /// clock, why.
    async fn until_when(&self, replica: &Replica, request: &CommitRequest) -> Result<(Timestamp, Option<Conflict>)> {
        let max_offset = match self.groups.common.rules.global_reads_cover_offset() {
            false => Duration::ZERO,
            true => self.clock.max_offset(),
        };
        let entries = &request.global.entries;
        let now = replica.clock.now(replica.physical());
        if let Ok(holds) = self.global_holds(entries, now.plus(max_offset).plus(MARGIN)).await? {
            return Ok((holds, None));
        }
        // It may be the margin alone.
        match self.global_holds(entries, now.plus(max_offset)).await? {
            Ok(holds) => Ok((holds, None)),
            Err(conflict) => Ok((Timestamp::MIN, Some(conflict))),
        }
    }

    /// Certifies a slice and votes. What is in its way is waited for, bounded (counterexample 17).
    pub(crate) fn certify_with_global_reads(self: Arc<Self>, replica: Arc<Replica>, id: TxnId) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let deadline = Instant::now() + limits::PREPARE_WAIT_MAX;
            loop {
                let Some(slice) = replica.slice_with_global_reads(id) else { break };
                let left = deadline.saturating_duration_since(Instant::now());
                let held = tokio::time::timeout(left, self.until_when(&replica, &slice)).await;
                let (hold_until, conflict) = match held {
                    Ok(Ok(held)) => held,
                    _ => (Timestamp::MIN, None),
                };
                if replica.certify_slice(id, hold_until, left).await {
                    return;
                }
                if conflict.is_some() || left.is_zero() {
                    return replica.refuse_slice(id, Refusal { conflict, fresh: Vec::new() });
                }
                tokio::time::sleep(RECHECK_PAUSE).await;
            }
            if !replica.certify_slice(id, Timestamp::MIN, limits::PREPARE_WAIT_MAX).await {
                replica.refuse_slice(id, Refusal::default());
            }
        })
    }
}
