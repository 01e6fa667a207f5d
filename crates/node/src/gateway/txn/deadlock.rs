//! Deadlocks over several primaries.
//!
//! A primary sees a circle of waits in its own queues at once. One that leads over several
//! primaries is found by the transactions in it: who has waited for `deadlock_timeout` while it
//! holds entries elsewhere asks the primary who is ahead of it, their gateways where those wait,
//! the primaries there who is ahead of them, and so on (edge chasing: Chandy, Misra, Haas 1983). It
//! follows only transactions older than itself, so exactly the youngest that waits and holds at
//! different primaries finds a circle, and aborts (40P01); the older ones never do, so somebody
//! always gets through. Who gave way is as old as before when it tries again ([`super::ages`]), so
//! everybody does in the end.
//!
//! An answer that is lost only hides a circle until the next look. Edges are seen one after
//! another, so a circle that was never complete may be seen; that costs an attempt and nothing
//! else.

use crate::gateway::Gateway;
use crate::local::metrics::Counter;
use crate::membership::ask::Ask;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::transport::wire::{Request, Response};
use futures::future::join_all;
use meridian_base::{Error, ErrorKind, GroupId, NodeId, Result};
use meridian_region::Owner;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

const CALL_TIMEOUT: Duration = Duration::from_secs(6);

/// Where the transactions of a gateway wait, or are about to. A transaction that reads in several
/// groups at once may do so in several.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<BTreeMap<Owner, Vec<GroupId>>>);

impl Waiting {
    /// Of those asked for, the ones that wait, and where.
    pub fn of(&self, owners: &[Owner]) -> Vec<(Owner, Vec<GroupId>)> {
        let waiting = self.0.lock();
        owners.iter().filter_map(|owner| waiting.get(owner).map(|groups| (*owner, groups.clone()))).collect()
    }

    fn begin(&self, owner: Owner, group: GroupId) {
        self.0.lock().entry(owner).or_default().push(group);
    }

    fn end(&self, owner: Owner, group: GroupId) {
        let mut waiting = self.0.lock();
        let Some(groups) = waiting.get_mut(&owner) else { return };
        if let Some(at) = groups.iter().position(|g| *g == group) {
            groups.swap_remove(at);
        }
        if groups.is_empty() {
            waiting.remove(&owner);
        }
    }
}

/// A transaction that may come to wait in a group's queues while it holds or awaits entries
/// elsewhere.
pub(super) struct Watch {
    pub gateway: Arc<Gateway>,
    pub owner: Owner,
    pub group: GroupId,
    /// How long it waits before it looks for a circle.
    pub patience: Duration,
}

/// A question to a group's primary: everybody that a transaction waits for there.
struct AheadOf {
    group: GroupId,
    waiter: Owner,
}

impl Ask for AheadOf {
    type Answer = Vec<Owner>;
    const TIMEOUT: Duration = CALL_TIMEOUT;
    fn request(&self) -> Request {
        Request::AheadOf { group: self.group, waiter: self.waiter }
    }
    fn answer(response: Response) -> Option<Vec<Owner>> {
        if let Response::Owners(owners) = response { Some(owners) } else { None }
    }
    async fn here(&self, _: &Arc<Shared>, replica: &Arc<Replica>) -> Result<Vec<Owner>> {
        replica.ahead_of(self.waiter)
    }
}

struct Registered<'a>(&'a Watch);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.gateway.waiting.end(self.0.owner, self.0.group);
    }
}

/// The read's answer, or 40P01 if the transaction is the youngest of a circle. Dropping the read
/// leaves its place in the queue to the release that ends every transaction.
pub(super) async fn unless_deadlocked<T>(watch: Option<Watch>, mut read: Pin<&mut impl Future<Output = Result<T>>>) -> Result<T> {
    let Some(watch) = watch else { return read.await };
    // A row that no transaction holds is there at once.
    if let Poll::Ready(answer) = futures::poll!(read.as_mut()) {
        return answer;
    }
    watch.gateway.waiting.begin(watch.owner, watch.group);
    let _registered = Registered(&watch);
    tokio::select! {
        biased;
        answer = read => answer,
        e = Box::pin(watch.deadlock()) => Err(e),
    }
}

impl Watch {
    /// Ends when there is a circle of which this transaction is the youngest.
    async fn deadlock(&self) -> Error {
        loop {
            tokio::time::sleep(self.patience).await;
            if self.closes_circle().await {
                self.gateway.shared.groups.common.metrics.add(Counter::Deadlocks);
                return Error::new(ErrorKind::Retry, "40P01", "deadlock detected")
                    .detail("Transactions wait for each other's rows in several regions, and this one is the youngest of them.")
                    .hint("Run the transaction again.");
            }
        }
    }

    async fn closes_circle(&self) -> bool {
        let mut seen = BTreeSet::from([self.owner]);
        let mut todo = vec![(self.owner, self.group)];
        while let Some((waiter, group)) = todo.pop() {
            let ahead = self.ahead_of(waiter, group).await;
            if ahead.contains(&self.owner) {
                return true;
            }
            let mut by_gateway: BTreeMap<NodeId, Vec<Owner>> = BTreeMap::new();
            for owner in ahead {
                if owner.age() < self.owner.age() && seen.insert(owner) {
                    by_gateway.entry(owner.gateway).or_default().push(owner);
                }
            }
            let each = by_gateway.into_iter().map(|(gateway, owners)| self.waits_of(gateway, owners));
            for (owner, groups) in join_all(each).await.into_iter().flatten() {
                // Whom it waits for in this group is ahead of the waiter too.
                todo.extend(groups.into_iter().filter(|g| *g != group).map(|g| (owner, g)));
            }
        }
        false
    }

    /// Everybody that the waiter waits for at the group's primary, directly or through others.
    async fn ahead_of(&self, waiter: Owner, group: GroupId) -> Vec<Owner> {
        // One try: the next look finds the new primary.
        self.gateway.shared.try_primary(group, 0, &AheadOf { group, waiter }).await.unwrap_or_default()
    }

    async fn waits_of(&self, gateway: NodeId, owners: Vec<Owner>) -> Vec<(Owner, Vec<GroupId>)> {
        if gateway == self.gateway.shared.me() {
            return self.gateway.waiting.of(&owners);
        }
        match self.gateway.shared.rpc.call(gateway, Request::WaitsOf(owners), CALL_TIMEOUT).await {
            Ok(Response::WaitsOf(waits)) => waits,
            _ => Vec::new(),
        }
    }
}
