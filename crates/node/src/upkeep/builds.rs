//! Pays what replicas on this node owe ([`crate::replica::builds`]): fills new indexes from the
//! rows that are here, beside the log.
//!
//! The rows as of the build's timestamp are read page by page; their entries are sorted in runs of
//! bounded size, and each run is ingested as versions at that timestamp
//! ([`GroupStore::ingest`](meridian_store::GroupStore::ingest)). A run that is ingested twice,
//! after a restart or because others are at it too, changes nothing. All of it is on a thread of
//! its own.

use crate::local::metrics::Counter;
use crate::membership::shared::Shared;
use crate::membership::space;
use crate::replica::Replica;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use meridian_base::record::Build;
use meridian_base::{Error, GroupId, Key, KeyRange, Result};
use meridian_sql::catalog::{Index, IndexState};
use meridian_sql::exec::IndexEntries;
use meridian_store::ScanLimits;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// A run of entries has so many bytes. More of them make the LSM tree merge more.
const RUN_BYTES: usize = 32 << 20;
/// What an entry takes in memory beside its key and its value.
const ENTRY_OVERHEAD: usize = 96;
/// How often what cannot begin yet is looked at again.
const LOOK: Duration = Duration::from_millis(5);
/// The same after an error, of what waits for garbage collection, and of whether there is more.
const PAUSE: Duration = Duration::from_secs(1);
/// After so many pages of rows, a few milliseconds' work, others have a turn: they share the cores,
/// and locks of the store.
const TURN_PAGES: usize = 8;
const TURN: Duration = Duration::from_millis(1);

/// Indexes that are filled at once, each with a run of its own in memory: the index of a small
/// table does not wait for that of a large one.
const AT_ONCE: usize = 4;

/// Pays for as long as the node runs.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let mut stopping = shared.life.watch_stopping();
    let places = Semaphore::new(AT_ONCE);
    let mut paying = FuturesUnordered::new();
    let mut begun: Vec<(GroupId, Build)> = Vec::new();
    loop {
        for replica in shared.groups.all().into_iter().filter(|r| r.id != GroupId::CATALOG) {
            for build in replica.owed() {
                let it = (replica.id, build);
                if !begun.contains(&it) {
                    begun.push(it.clone());
                    paying.push(pay(&shared, replica.clone(), it, &places));
                }
            }
        }
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => return,
            () = shared.groups.common.builder.notified() => {}
            Some(ended) = paying.next() => begun.retain(|it| *it != ended),
            // Replicas that have just started say nothing of what they owe.
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// Tries until the replica owes an index no more.
async fn pay(shared: &Arc<Shared>, replica: Arc<Replica>, it: (GroupId, Build), places: &Semaphore) -> (GroupId, Build) {
    let build = &it.1;
    while !shared.life.is_stopping() && !replica.is_retired() && replica.owed().contains(build) {
        let pause = match try_to_pay(shared, &replica, build, places).await {
            Ok(None) => continue,
            Ok(Some(pause)) => pause,
            Err(_) if replica.is_retired() || shared.life.is_stopping() => continue,
            Err(e) if e.is_unavailable() => LOOK,
            Err(e) => {
                tracing::warn!("index {} cannot be filled in group {}: {e}", build.index, replica.id);
                PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
    it
}

/// Tells the replicas here which of the indexes that they owe others may read: a new primary waits
/// for no other.
fn note_what_is_read(shared: &Shared) {
    let catalog = shared.catalog.newest();
    for replica in shared.groups.all() {
        for build in replica.owed().iter().filter(|build| build.version <= catalog.version) {
            let table = catalog.table_by_id(build.table);
            let is_it = |i: &Index| i.id == build.index && i.state == IndexState::Public;
            replica.note_owed_is_read(build, table.is_some_and(|table| table.indexes.iter().any(is_it)));
        }
    }
}

/// Fills an index, if that may begin; otherwise says when to look again.
async fn try_to_pay(shared: &Arc<Shared>, replica: &Arc<Replica>, build: &Build, places: &Semaphore) -> Result<Option<Duration>> {
    note_what_is_read(shared);
    let catalog = shared.catalog.newest();
    if catalog.version < build.version || !space::may_flush(shared) {
        return Ok(Some(LOOK));
    }
    let incarnation = replica.store.incarnation();
    let Some(entries) = IndexEntries::new(&catalog, build.table, build.index)? else {
        // It was taken back, or dropped since.
        if !replica.is_forgotten(build, catalog.committed_at) {
            return Ok(Some(PAUSE));
        }
        replica.built(build, incarnation, None)?;
        return Ok(None);
    };
    if !replica.may_build(build) {
        return Ok(Some(LOOK));
    }
    let Ok(_place) = places.try_acquire() else { return Ok(Some(LOOK)) };
    let is_unique = fill(shared, replica, build, incarnation, &entries).await?;
    replica.built(build, incarnation, Some(is_unique))?;
    shared.groups.common.metrics.add(Counter::IndexesFilled);
    tracing::debug!("filled index {} in group {} as of {}", build.index, replica.id, build.at);
    Ok(None)
}

/// Whether no two rows have the same entry.
async fn fill(
    shared: &Arc<Shared>,
    replica: &Arc<Replica>,
    build: &Build,
    incarnation: u64,
    entries: &IndexEntries,
) -> Result<bool> {
    let mut left = Some(KeyRange::prefix(&build.source.to_be_bytes()));
    let mut is_unique = true;
    let mut run: Vec<(Key, Bytes)> = Vec::new();
    let (mut bytes, mut pages) = (0, 0);
    while let Some(range) = left.take() {
        let mut failure = None;
        let limits = ScanLimits::default();
        left = replica.store.visit(&range, build.at, false, limits, false, &mut |_, _, row| {
            match entries.entry(&Bytes::copy_from_slice(row)) {
                Ok(Some(entry)) => {
                    bytes += entry.key.as_bytes().len() + entry.value.len() + ENTRY_OVERHEAD;
                    run.push((entry.key, entry.value));
                }
                Ok(None) => {}
                Err(e) => failure = Some(e),
            }
            if failure.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if let Some(e) = failure {
            return Err(e);
        }
        if shared.life.is_stopping() || replica.is_retired() {
            return Err(Error::unavailable("the node stops"));
        }
        pages += 1;
        if pages % TURN_PAGES == 0 {
            note_what_is_read(shared);
            tokio::time::sleep(TURN).await;
        }
        if bytes >= RUN_BYTES || left.is_none() {
            is_unique &= ingest(replica, build, incarnation, std::mem::take(&mut run))?;
            bytes = 0;
        }
    }
    Ok(is_unique)
}

/// Whether each entry is one row's, as far as this run and the ones before tell.
fn ingest(replica: &Replica, build: &Build, incarnation: u64, mut run: Vec<(Key, Bytes)>) -> Result<bool> {
    run.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let before = run.len();
    run.dedup_by(|a, b| a.0 == b.0);
    let is_alone = replica.store.ingest(incarnation, build.at, &run)?;
    Ok(run.len() == before && is_alone)
}
