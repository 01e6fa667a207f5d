//! Deleting the keys of indexes that nobody can use any more.

use super::{options, pause};
use crate::env::{Environment, Locking, Scan, Transaction};
use crate::session::Shared;
use meridian_base::key::encode;
use meridian_base::{ColumnMask, GroupId, KeyRange, Result, SessionId, Write, limits};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Keys per transaction.
const BATCH_KEYS: usize = 1_000;
/// After each transaction the task sleeps for this many times as long as the transaction took. No
/// client waits for the task, and clients do wait for the disk that it writes to.
const REST: u32 = 3;
/// The longest rest: a page that took longer was kept waiting by something else.
const REST_MAX: Duration = Duration::from_millis(100);

/// Deletes in a task of its own: the statement is done without it. If the node stops first, the
/// keys stay, unreachable: index ids are never used again.
pub(crate) fn in_background<E: Environment>(
    env: &E,
    shared: &Arc<Shared>,
    group: GroupId,
    indexes: Vec<u32>,
    session: SessionId,
) {
    let (env, shared) = (env.clone(), shared.clone());
    tokio::spawn(async move {
        if let Err(e) = all(&env, &shared, group, &indexes, session).await {
            tracing::warn!(?indexes, error = %e, "keys of a dropped index could not be deleted");
        }
    });
}

/// Deletes them, one index after the other.
pub(super) async fn all<E: Environment>(
    env: &E,
    shared: &Shared,
    group: GroupId,
    indexes: &[u32],
    session: SessionId,
) -> Result<()> {
    for index in indexes {
        index_keys(env, shared, group, *index, session).await?;
    }
    Ok(())
}

async fn index_keys<E: Environment>(env: &E, shared: &Shared, group: GroupId, index: u32, session: SessionId) -> Result<()> {
    let mut prefix = Vec::with_capacity(4);
    encode::index(&mut prefix, index);
    let mut rest = Some(KeyRange::prefix(&prefix));
    let mut attempt = 0;
    while let Some(range) = rest.clone() {
        // They went with their group.
        if env.catalog().group_by_id(group).is_none() {
            return Ok(());
        }
        // One transaction and its rest at a time on a node: what others wait for one is little, and
        // six of them keep point reads waiting for a tenth of a second.
        let _turn = shared.discards.lock().await;
        let began = Instant::now();
        match page(env, group, range, session, attempt).await {
            Ok(next) => {
                rest = next;
                attempt = 0;
                if rest.is_some() {
                    tokio::time::sleep((began.elapsed() * REST).min(REST_MAX)).await;
                }
            }
            Err(e) if e.is_retry() && attempt < limits::RETRIES_MAX => {
                attempt += 1;
                pause(env, attempt).await;
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

async fn page<E: Environment>(
    env: &E,
    group: GroupId,
    range: KeyRange,
    session: SessionId,
    attempt: u32,
) -> Result<Option<KeyRange>> {
    let mut txn = env.begin(options(&env.catalog(), session, false, attempt));
    let scan = Scan {
        range: range.clone(),
        columns: ColumnMask::EXISTENCE,
        reverse: false,
        limit: Some(BATCH_KEYS),
        locking: Locking::None,
    };
    let found = txn.scan(group, scan).await?;
    let Some((last, _)) = found.rows.last().cloned() else {
        txn.rollback();
        return Ok(found.rest);
    };
    for (key, _) in found.rows {
        txn.write(group, Write { key, value: None, columns: ColumnMask::EXISTENCE })?;
    }
    txn.commit().await?;
    let rest = KeyRange::new(last.successor(), range.end);
    Ok((!rest.is_empty()).then_some(rest))
}
