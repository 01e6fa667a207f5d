//! Closed timestamps of idle groups (design: replication, «Closed timestamps»).
//!
//! Every log record carries its group's closed timestamp. A group without traffic would fall behind the clock, and with it
//! everybody who reads at its replicas; so its primary says every [`CLOSED_INTERVAL`] what it promises, in one message to each
//! node for all groups it leads. A promise counts at a replica once that has applied the log up to the entry it names.

use crate::replica::Replica;
use crate::shared::Shared;
use crate::wire::{ClosedPromise, Request};
use meridian_base::limits::CLOSED_INTERVAL;
use meridian_base::runtime::Runtime;
use meridian_base::{GroupId, NodeId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A promise is worth nothing once the next ones are there.
const PROMISE_TIMEOUT: Duration = Duration::from_secs(1);

/// Keeps promising for the groups that this node leads.
pub(crate) async fn promise_loop<R: Runtime>(shared: Arc<Shared<R>>) {
    let mut stopping = shared.stopping.subscribe();
    loop {
        tokio::select! {
            () = tokio::time::sleep(CLOSED_INTERVAL) => {}
            _ = stopping.wait_for(|s| *s) => return,
        }
        for (node, promises) in promises(&shared) {
            let rpc = shared.rpc.clone();
            tokio::spawn(async move {
                // A promise that is lost is followed by a better one.
                let _ = rpc.call(node, Request::Closed(promises), PROMISE_TIMEOUT).await;
            });
        }
    }
}

fn promises<R: Runtime>(shared: &Shared<R>) -> BTreeMap<NodeId, Vec<ClosedPromise>> {
    let mut by_node: BTreeMap<NodeId, Vec<ClosedPromise>> = BTreeMap::new();
    for replica in shared.all_replicas() {
        if replica.id == GroupId::CATALOG || !replica.is_serving() {
            continue;
        }
        let Some(promise) = replica.promise() else { continue };
        // It counts here too: for who reads the past at the primary.
        replica.promised(&promise);
        let members = replica.raft().members();
        for node in members.voters.union(&members.learners) {
            if *node != shared.me() && shared.is_live(*node) {
                by_node.entry(*node).or_default().push(promise);
            }
        }
    }
    by_node
}

impl<R: Runtime> Replica<R> {
    /// What the primary of an idle group promises. While records are on their way to the log, these carry it.
    fn promise(&self) -> Option<ClosedPromise> {
        let mut core = self.core.lock();
        let core = &mut *core;
        if !core.is_idle() || !self.raft().lease_valid() {
            return None;
        }
        let engine = core.engine.as_mut()?;
        let closed = engine.closed_target(&core.state, &self.clock, self.physical());
        Some(ClosedPromise { group: self.id, closed, index: core.state.applied().index })
    }

    /// No version will appear at or below it: garbage collection never passes it. A replica that lags still applies older
    /// versions, and what is prepared may commit at its vote.
    pub(crate) fn settled(&self) -> Timestamp {
        let core = self.core.lock();
        let prepared = core.state.prepared().map(|p| p.at).min();
        prepared.map_or(core.closed(), |at| at.prev().min(core.closed()))
    }

    /// A primary's promise arrived.
    pub(crate) fn promised(&self, promise: &ClosedPromise) {
        let mut core = self.core.lock();
        if promise.closed > core.promise.closed {
            core.promise = *promise;
        }
    }
}

impl crate::replica::Core {
    /// No version will appear here at or below it, except those of transactions that are prepared already.
    pub(crate) fn closed(&self) -> Timestamp {
        let kept = self.state.applied().index >= self.promise.index;
        let promised = if kept { self.promise.closed } else { Timestamp::MIN };
        self.state.closed().max(promised)
    }
}
