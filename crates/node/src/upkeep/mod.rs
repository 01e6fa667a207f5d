//! What is done to the replicas on this node beside the log: flushing, garbage collection of old
//! versions and of whole indexes ([`sweep`]), and filling new ones ([`builds`]).

mod builds;
mod sweep;

use crate::membership::shared::Shared;
use crate::membership::space;
use meridian_base::alarm::alarmed;
use meridian_base::{GroupId, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Garbage that is held back for longer is worth a line in the log.
const HELD_BACK_LONG: Duration = Duration::from_secs(3_600);

/// Flushing and garbage collection, on a thread of their own.
pub(crate) fn start(shared: &Arc<Shared>, gc_ttl: Duration, gc_interval: Duration, protected_for_max: Duration) {
    let (of_node, shared) = (shared, shared.clone());
    let sweep_due = Arc::new(Notify::new());
    let sweeper = sweep_due.clone();
    let flushes = async move {
        let mut collected = shared.runtime.physical_micros();
        loop {
            shared.groups.common.flusher.notified().await;
            if shared.life.is_stopping() {
                return;
            }
            let now = shared.runtime.physical_micros();
            let is_gc_due = now.saturating_sub(collected) >= gc_interval.as_micros() as u64;
            let may_flush = space::may_flush(&shared);
            let may_collect = is_gc_due && (may_flush || space::may_collect(&shared));
            if !may_flush && !may_collect {
                continue;
            }
            if may_collect {
                collected = now;
            }
            for replica in shared.groups.all() {
                let mut done = if may_flush { replica.flush().map(|_| ()) } else { Ok(()) };
                if done.is_ok() && may_collect {
                    let settled = replica.settled().min(replica.builds_hold());
                    let kept_from = garbage_clock(&shared, protected_for_max).minus(gc_ttl);
                    done = replica.store.collect_garbage(kept_from.min(settled));
                }
                if let Err(e) = done
                    && !replica.is_retired()
                {
                    replica.fail(e);
                    return;
                }
            }
            uncache_unreached(&shared);
            if may_collect {
                sweeper.notify_one();
            }
        }
    };
    of_node.runtime.spawn_io("flush", Box::pin(alarmed(flushes, of_node.life.tasks.alarm())));
    let sweeps = sweep::keep(of_node.clone(), sweep_due);
    of_node.runtime.spawn_io("sweep", Box::pin(alarmed(sweeps, of_node.life.tasks.alarm())));
    let builds = builds::keep(of_node.clone());
    of_node.runtime.spawn_io("build", Box::pin(alarmed(builds, of_node.life.tasks.alarm())));
    let shared = of_node.clone();
    of_node.spawn(async move {
        let mut log_failure = shared.groups.common.log.failure();
        loop {
            tokio::select! {
                biased;
                changed = log_failure.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    if let Some(e) = log_failure.borrow_and_update().clone() {
                        shared.fail(e);
                    }
                }
                () = tokio::time::sleep(gc_interval) => shared.groups.common.flusher.notify_one(),
            }
        }
    });
}

/// Rows of indexes that only readers of the past still reach make room in the cache. (Those that
/// were not durable yet go after the next flush.)
fn uncache_unreached(shared: &Shared) {
    let reached = shared.catalog.newest().reaches();
    for replica in shared.groups.all().into_iter().filter(|r| r.id != GroupId::CATALOG) {
        replica.store.uncache(&|index| reached.contains(index));
    }
}

/// The moment from which garbage collection reckons the age of versions: the present, or what a
/// transaction protects, which it can for at most so long.
pub(crate) fn garbage_clock(shared: &Shared, protected_for_max: Duration) -> Timestamp {
    let now = Timestamp::from_micros(shared.runtime.physical_micros());
    let others = shared.peers.oldest_protected_elsewhere();
    let of_all = others.into_iter().chain([(shared.me(), shared.groups.common.protected.oldest())]);
    let Some((node, oldest)) = of_all.min_by_key(|(_, oldest)| *oldest) else { return now };
    let held_back = now.since(oldest);
    if held_back > HELD_BACK_LONG {
        tracing::info!("a transaction at {node} has kept old versions from garbage collection for {} s", held_back.as_secs());
    }
    oldest.clamp(now.minus(protected_for_max), now)
}
