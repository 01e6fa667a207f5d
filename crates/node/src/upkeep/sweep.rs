//! Garbage collection of whole indexes: mark and sweep.
//!
//! A schema change that drops, truncates or moves a table, or gives up an index or a transaction
//! block, only removes index ids from the catalog. The keys of these indexes stay in the store.
//! Each node determines which indexes are unreachable, and removes them from its own replicas:
//!
//! - *Mark.* The catalog names indexes: of tables and sequences, at all stages of a schema change,
//!   and those that transaction blocks have reserved
//!   ([`Catalog::reaches`](meridian_sql::catalog::Catalog::reaches)). An id that was drawn and is
//!   not named any more never is again. So one version of the catalog is enough to know that an
//!   index is dead from that version on.
//! - *Sweep.* The version is the one at this node's garbage threshold of the catalog's group: older
//!   ones cannot be read, and a statement that uses this one or a newer one reaches no dead index.
//!   A group's replica is swept when its own threshold has passed the time of that version
//!   ([`GroupStore::sweep`](meridian_store::GroupStore::sweep)): everything that was written to a
//!   dead index is then applied, and can be read no more.
//!
//! A node that was down meanwhile, or got a group by a snapshot, finds the same at its next sweep.

use crate::local::metrics::Counter;
use crate::membership::shared::Shared;
use crate::membership::space;
use meridian_base::GroupId;
use meridian_store::Swept;
use std::sync::Arc;
use tokio::sync::Notify;

/// Sweeps whenever garbage was collected, for as long as the node runs.
pub(crate) async fn keep(shared: Arc<Shared>, due: Arc<Notify>) {
    let mut stopping = shared.life.watch_stopping();
    loop {
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => return,
            () = due.notified() => sweep(&shared),
        }
    }
}

fn sweep(shared: &Shared) {
    let Some(of_catalog) = shared.groups.replica(GroupId::CATALOG) else { return };
    // The cluster is not founded yet, or the threshold has moved on: the next sweep will know.
    let Ok(catalog) = shared.catalog.past(&of_catalog.store, of_catalog.store.gc_threshold()) else { return };
    let has_room = space::fits(shared);
    let reached = catalog.reaches();
    for replica in shared.groups.all().into_iter().filter(|r| r.id != GroupId::CATALOG) {
        match replica.store.sweep(catalog.committed_at, &|index| reached.contains(index), has_room) {
            Ok(Swept::All(indexes)) if !indexes.is_empty() => {
                indexes.iter().for_each(|_| shared.groups.common.metrics.add(Counter::IndexesSwept));
                tracing::info!(group = replica.id.0, ?indexes, "removed indexes that nobody can reach");
            }
            Ok(_) => {}
            Err(e) if replica.is_retired() || e.is_retry() => tracing::debug!("a sweep of {} was broken off: {e}", replica.id),
            Err(e) => tracing::warn!("group {} could not be swept: {e}", replica.id),
        }
    }
}
