//! Closed timestamps of idle groups.
//!
//! Every log record carries its group's closed timestamp. A group without traffic would fall behind
//! the clock, and with it everybody who reads at its replicas; so its primary says every
//! [`CLOSED_INTERVAL`] what it promises, in one message to each node for all groups it leads
//! ([`crate::replica::closed`]).

use crate::membership::peers::LIVENESS_TIMEOUT;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::replica::closed::LEAD_MAX;
use crate::transport::wire::{ClosedPromise, Request};
use meridian_base::limits::CLOSED_INTERVAL;
use meridian_base::{GroupId, NodeId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A promise is worth nothing once the next ones are there.
pub(crate) const PROMISE_TIMEOUT: Duration = Duration::from_secs(1);

/// Keeps promising for the groups that this node leads.
pub(crate) async fn promise_loop(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(CLOSED_INTERVAL).await;
        keep_leads(&shared);
        for (node, promises) in promises(&shared) {
            let rpc = shared.rpc.clone();
            shared.spawn_protocol(async move {
                // A promise that is lost is followed by a better one.
                let _ = rpc.call(node, Request::Closed(promises), PROMISE_TIMEOUT).await;
            });
        }
    }
}

/// How long more than measured a promise may take to every replica.
const LEAD_JITTER: Duration = Duration::from_millis(50);

/// A lead falls by this part of itself with every promise, and rises at once.
const LEAD_DECAY: u32 = 64;

/// Keeps the clocks of the GLOBAL groups on this node so far ahead that a promise of the primary's
/// is `max_offset` in the future when it reaches the farthest replica. Every replica that may
/// become the primary keeps that up to date.
fn keep_leads(shared: &Shared) {
    for replica in shared.groups.all().iter().filter(|r| r.is_global) {
        let before = Duration::from_micros(replica.lead_micros.load(Ordering::Relaxed));
        let lead = wanted_lead(shared, replica).max(before - before / LEAD_DECAY).min(LEAD_MAX);
        replica.lead_micros.store(lead.as_micros() as u64, Ordering::Relaxed);
    }
}

/// `max_offset`, the time a record takes to a quorum and from there to the farthest replica, the
/// time to the next promise, and some. And as much as other clocks are ahead of this one: who
/// reads, and who certifies what was read, reckons by those.
fn wanted_lead(shared: &Shared, replica: &Replica) -> Duration {
    let members = replica.raft().members();
    let mut to_voters: Vec<Duration> = members.voters.iter().map(|node| shared.peers.round_trip(*node)).collect();
    to_voters.sort();
    let quorum = to_voters.get(to_voters.len() / 2).copied().unwrap_or_default();
    let farthest =
        members.voters.union(&members.learners).map(|node| shared.peers.round_trip(*node) / 2).max().unwrap_or_default();
    shared.clock.max_offset() + clocks_ahead(shared) + quorum + farthest + CLOSED_INTERVAL + LEAD_JITTER
}

/// How far any clock in the cluster is ahead of this node's: by what pings have measured, and by
/// what has reached the logical clock.
fn clocks_ahead(shared: &Shared) -> Duration {
    let physical = shared.runtime.physical_micros();
    let peers = shared.peers.all.read();
    let live = peers.values().filter(|p| p.heard.elapsed() < LIVENESS_TIMEOUT);
    let measured = live.map(|p| p.clock_offset_micros).max().unwrap_or_default();
    let heard = shared.clock.now(physical).since(Timestamp::from_micros(physical));
    Duration::from_micros(measured.max(0) as u64).max(heard).min(shared.clock.max_offset())
}

fn promises(shared: &Shared) -> BTreeMap<NodeId, Vec<ClosedPromise>> {
    let mut by_node: BTreeMap<NodeId, Vec<ClosedPromise>> = BTreeMap::new();
    for replica in shared.groups.all() {
        if replica.id == GroupId::CATALOG || !replica.is_serving() {
            continue;
        }
        let Some(promise) = replica.promise() else { continue };
        // It counts here too: for who reads the past at the primary.
        replica.promised(shared.me(), &promise);
        let members = replica.raft().members();
        for node in members.voters.union(&members.learners) {
            if *node != shared.me() && shared.peers.is_live(*node) {
                by_node.entry(*node).or_default().push(promise);
            }
        }
    }
    by_node
}
