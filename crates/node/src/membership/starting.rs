//! Replicas begin to run on this node: those it had, those it founds with others, and those that it
//! is sent.

use crate::catalog::ApplyHook;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::transport::replication::Replication;
use meridian_base::{Clock, Error, GroupId, NodeId, Result};
use meridian_placement::Survival;
use meridian_raft as raft;
use meridian_sql::catalog::Group;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The replica of a group on this node, made and started if there is none yet.
pub(crate) async fn ensure_replica(shared: &Arc<Shared>, group: GroupId) -> Result<Arc<Replica>> {
    if let Some(replica) = shared.groups.replica(group) {
        return Ok(replica);
    }
    let _making = shared.groups.making.lock().await;
    if let Some(replica) = shared.groups.replica(group) {
        return Ok(replica);
    }
    let is_catalog = group == GroupId::CATALOG;
    let is_global = shared.catalog.is_global(group);
    let own_clock = is_catalog || is_global;
    let clock = if own_clock { Arc::new(Clock::new(shared.clock.max_offset())) } else { shared.clock.clone() };
    let is_across_regions = is_catalog || shared.catalog.group(group).is_some_and(|g| is_across_regions(&g));
    // A new one takes dozens of syncs: not where others wait.
    let store = shared.groups.common.store.clone();
    shared.runtime.run_io("make-replica", move || store.group(group).map(drop)).await?;
    shared.groups.common.enter_pod()?;
    let hook: Option<Arc<dyn ApplyHook>> = if is_catalog { Some(shared.catalog.clone()) } else { None };
    let replica = Replica::new(group, &shared.groups.common, clock, hook, is_across_regions, is_global)?;
    let mut options = raft::GroupOptions::new(group, shared.me());
    options.founders = founders(shared, group);
    let is_empty = shared.groups.common.log.is_empty(group) && replica.is_empty();
    if is_empty && shared.directory.holdings.has(group) {
        let place = shared.runtime.disk().describe("");
        return Err(Error::fatal(format!("the replica of group {group} is gone from {place}, although this node had one"))
            .hint(crate::membership::identity::LOST_HINT));
    }
    if is_empty && !options.founders.is_empty() {
        raft::found(&shared.groups.common.log, group, &options.founders).await?;
        shared.directory.holdings.add(&shared.runtime, [group]).await?;
    }
    let timing = if is_across_regions { shared.groups.common.timing.across_regions() } else { shared.groups.common.timing };
    options.heartbeat = timing.heartbeat;
    options.election_timeout_min = timing.election_min;
    options.election_timeout_max = timing.election_max;
    options.promise = shared.groups.common.timing.promise(is_across_regions);
    let transport = Arc::new(Replication(shared.rpc.clone()));
    replica.start(options, transport, shared.clocks.watch_compared()).await?;
    shared.groups.insert(replica.clone());
    Ok(replica)
}

/// The voters that found a group, if this node is one of them and has not left the group since.
fn founders(shared: &Shared, group: GroupId) -> Vec<NodeId> {
    let founders = shared.catalog.group(group).map(|g| g.initial_voters).unwrap_or_default();
    match founders.contains(&shared.me()) && !shared.directory.departures.ever_left(group) {
        true => founders,
        false => Vec::new(),
    }
}

/// Starts replicas of groups that are founded with this node among their voters, as soon as the
/// catalog names them. Every founder begins with the same members, whatever it hears or does not
/// hear of the others; the first one stands for election at once, the others when an election
/// timeout has passed.
pub(crate) async fn start_groups(shared: Arc<Shared>) {
    let mut changed = shared.catalog.watch();
    let mut known = BTreeSet::new();
    loop {
        changed.borrow_and_update();
        for group in shared.catalog.groups() {
            if !founders(&shared, group.id).is_empty() && known.insert(group.id) {
                shared.spawn(found_group(shared.clone(), group.id));
            }
        }
        if changed.changed().await.is_err() {
            return;
        }
    }
}

/// Starts replicas whose groups the catalog on this node does not know, once it is up to date.
/// Those it does not know then are gone: their replicas leave in the usual way.
pub(crate) async fn start_unknown(shared: Arc<Shared>, groups: Vec<GroupId>) {
    const PATIENCE: Duration = Duration::from_secs(30);
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline && shared.freshness.catch_up().await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for group in groups {
        shared.spawn(start_in_the_end(shared.clone(), group));
    }
}

/// Each by itself: one that cannot be started keeps no other from it.
async fn start_in_the_end(shared: Arc<Shared>, group: GroupId) {
    let mut pause = FIRST_PAUSE;
    while let Err(e) = ensure_replica(&shared, group).await {
        wait_after(group, e, &mut pause).await;
    }
}

async fn found_group(shared: Arc<Shared>, group: GroupId) {
    let mut pause = FIRST_PAUSE;
    while let Err(e) = try_to_found(&shared, group).await {
        wait_after(group, e, &mut pause).await;
    }
}

/// A replica that cannot be started is tried again, for as long as it takes: a disk that is full
/// has room again one day, and nobody else starts the only replica of a group.
async fn wait_after(group: GroupId, e: Error, pause: &mut Duration) {
    tracing::warn!("the replica of group {group} cannot be started, and is tried again in {pause:?}: {e}");
    tokio::time::sleep(*pause).await;
    *pause = (*pause * 2).min(PAUSE_MAX);
}

async fn try_to_found(shared: &Arc<Shared>, group: GroupId) -> Result<()> {
    /// For whoever talked to this node before the catalog did.
    const FIRST_PATIENCE: Duration = Duration::from_secs(1);
    if founders(shared, group).is_empty() {
        return Ok(());
    }
    let replica = ensure_replica(shared, group).await?;
    if replica.raft().is_initialized() {
        return Ok(());
    }
    // It was made for a message of another founder, which should tell it the members next; but that
    // one may have died.
    tokio::time::sleep(FIRST_PATIENCE).await;
    match replica.raft().is_initialized() || founders(shared, group).is_empty() {
        true => Ok(()),
        false => restart(shared, &replica).await,
    }
}

/// Starts a replica again, from what it has on this node. Nothing to do if another one has taken
/// its place.
pub(crate) async fn restart(shared: &Arc<Shared>, replica: &Arc<Replica>) -> Result<()> {
    {
        let _making = shared.groups.making.lock().await;
        if !shared.groups.replica(replica.id).is_some_and(|now| Arc::ptr_eq(&now, replica)) {
            return Ok(());
        }
        tracing::info!("{}: the replica of {} starts again", shared.me(), replica.id);
        shared.groups.remove(replica.id);
        replica.raft().shutdown().await;
        replica.flush_now().await?;
        replica.retire();
    }
    ensure_replica(shared, replica.id).await.map(drop)
}

/// Whether the voters of a group are in several regions.
pub(crate) fn is_across_regions(group: &Group) -> bool {
    group.survival == Survival::Region
}
