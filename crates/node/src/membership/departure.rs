//! Replicas that leave this node: the group is gone, or has other members now.
//!
//! A replica may be deleted only if no majority of any configuration needs what it knows. Two
//! things could make it needed again:
//!
//! * The group's primary adds this node once more, just now. So the replica first stops listening,
//!   *then* asks the primary whether it is a member, and goes only after a no: whoever is added
//!   later is added empty.
//! * A voter of old, which slept through the change of members, wakes up and stands for election in
//!   the configuration it remembers. Those who left that configuration know better, but not once
//!   they have deleted what they knew: an empty log votes for anybody, and two majorities would
//!   lead the group. So every departure is written down, with the end of the log that was deleted,
//!   and for that group this node votes for nobody until its log is as long again.
//!
//! A node that departed does not found the group again either, although the group's descriptor may
//! still name it as a founder.
//!
//! The record is the file `departures`. It is written before anything is deleted, so a crash in
//! between is made good at the next start.

use crate::membership::departures::Departure;
use crate::membership::placement::successor;
use crate::membership::shared::Shared;
use crate::membership::starting::ensure_replica;
use crate::membership::starting::{is_across_regions, restart};
use crate::replica::Replica;
use crate::replica::groups::Route;
use crate::transport::wire::{Request, Response};
use bytes::Bytes;
use meridian_base::{Error, GroupId, NodeId, Result};
use meridian_raft as raft;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How often a node looks for replicas that may go.
const INTERVAL: Duration = Duration::from_secs(3);
/// A replica younger than this may belong to a group that the catalog here has not heard of yet.
const AGE_MIN: Duration = Duration::from_secs(8);
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

impl Shared {
    /// The replica that a message of the consensus protocol is for. A node learns that it is to
    /// hold a replica by being talked to.
    pub(crate) async fn addressed(self: &Arc<Self>, group: GroupId, from: NodeId, message: &Bytes) -> Result<Arc<Replica>> {
        if self.directory.departures.going.lock().contains(&group) {
            return Err(Error::unavailable(format!("the replica of group {group} is leaving this node")));
        }
        let claim = raft::Group::claim(message)?;
        if let Some(claim) = claim {
            self.check_claim(claim, from)?;
        }
        let Some(departure) = self.directory.departures.get(group) else {
            if group != GroupId::CATALOG && self.groups.replica(group).is_none() && self.catalog.group(group).is_none() {
                // What the replica is to be depends on the group's descriptor.
                return Err(Error::unavailable(format!("group {group} is not known here yet")));
            }
            return ensure_replica(self, group).await;
        };
        let is_vote = matches!(claim, Some(raft::Claim::Stands(_)));
        let refused = || Error::unavailable(format!("this node left group {group} and does not vote"));
        if !departure.is_back {
            // A group that is gone has nothing to say.
            if is_vote || self.catalog.group(group).is_none() {
                return Err(refused());
            }
            self.directory.departures.set(&self.runtime, group, Departure { is_back: true, ..departure }).await?;
        }
        let replica = ensure_replica(self, group).await?;
        if is_vote && replica.raft().last_position().index < departure.last {
            return Err(refused());
        }
        Ok(replica)
    }

    /// Refuses a candidate or a leader that is not the sender, and one that the newest catalog does
    /// not list. While this node's catalog may be old, it may lack a new node; then only the first
    /// rule is applied.
    fn check_claim(&self, claim: raft::Claim, from: NodeId) -> Result<()> {
        let node = claim.node();
        let is_unknown = !self.rpc.knows(node) && node != self.me() && self.freshness.is_fresh();
        if node != from || is_unknown {
            let role = if matches!(claim, raft::Claim::Stands(_)) { "candidate" } else { "leader" };
            return Err(Error::unavailable(format!("node {node} is no {role}")));
        }
        Ok(())
    }
}

/// Makes good what a crash cut short. The groups that this node holds no replica of, whatever its
/// files say.
pub(crate) async fn finish(shared: &Arc<Shared>) -> Result<BTreeSet<GroupId>> {
    let left = shared.directory.departures.left();
    for group in &left {
        forget(shared, *group).await?;
    }
    Ok(left)
}

/// Deletes what there is of a replica that has left.
async fn forget(shared: &Arc<Shared>, group: GroupId) -> Result<()> {
    let store = shared.groups.common.store.clone();
    shared.runtime.run_io("drop-replica", move || store.drop_group(group)).await?;
    shared.groups.common.log.forget(group).await?;
    shared.directory.holdings.remove(&shared.runtime, group).await
}

/// Keeps looking for replicas that belong here no more, or run with the wrong timing.
pub(crate) async fn departure_loop(shared: Arc<Shared>) {
    let mut mistimed: BTreeMap<GroupId, u32> = BTreeMap::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Err(e) = note_holdings(&shared).await {
            shared.fail(e);
            return;
        }
        for replica in shared.groups.all().into_iter().filter(|r| r.id != GroupId::CATALOG) {
            let done = match replica.made.elapsed() > AGE_MIN && is_superfluous(&shared, replica.id).await {
                true => depart(&shared, &replica).await,
                false => keep_timing(&shared, &replica, &mut mistimed).await,
            };
            if let Err(e) = done {
                replica.fail(e);
                return;
            }
        }
    }
}

/// Replicas that were made for a message of their group's primary have something by now.
async fn note_holdings(shared: &Arc<Shared>) -> Result<()> {
    let _making = shared.groups.making.lock().await;
    let replicas = shared.groups.all();
    let filled = replicas.iter().filter(|r| r.raft().last_position().index > 0).map(|r| r.id);
    shared.directory.holdings.add(&shared.runtime, filled).await
}

/// Whether the group is gone, or its primary says that this node is no member.
async fn is_superfluous(shared: &Arc<Shared>, group: GroupId) -> bool {
    if shared.catalog.group(group).is_none() {
        // Only a copy of the catalog that was confirmed after the replica was made knows that.
        return shared.freshness.is_fresh() && shared.catalog.group(group).is_none();
    }
    match shared.groups.route(group, 0) {
        Some(Route::Remote(primary)) => {
            let answer = shared.rpc.call(primary, Request::IsMember { group }, ASK_TIMEOUT).await;
            matches!(answer, Ok(Response::IsMember(false)))
        }
        _ => false,
    }
}

/// Deletes a replica, unless it has become a member after all.
async fn depart(shared: &Arc<Shared>, replica: &Arc<Replica>) -> Result<()> {
    let group = replica.id;
    shared.directory.departures.going.lock().insert(group);
    let done = match is_superfluous(shared, group).await {
        true => delete(shared, replica).await,
        false => Ok(()),
    };
    shared.directory.departures.going.lock().remove(&group);
    done
}

async fn delete(shared: &Arc<Shared>, replica: &Arc<Replica>) -> Result<()> {
    let group = replica.id;
    let _making = shared.groups.making.lock().await;
    let before = shared.directory.departures.get(group).map_or(0, |d| d.last);
    let last = replica.raft().last_position().index.max(before);
    tracing::info!("{}: the replica of {group} leaves", shared.me());
    replica.retire();
    shared.groups.remove(group);
    replica.raft().shutdown().await;
    shared.directory.departures.set(&shared.runtime, group, Departure { last, is_back: false }).await?;
    forget(shared, group).await
}

/// A group whose voters are in several regions wants longer timeouts, and its survival goal may
/// have changed. Followers start again at once; the primary hands over first, when they had the
/// time.
async fn keep_timing(shared: &Arc<Shared>, replica: &Arc<Replica>, mistimed: &mut BTreeMap<GroupId, u32>) -> Result<()> {
    const ROUNDS_FOR_FOLLOWERS: u32 = 2;
    let Some(group) = shared.catalog.group(replica.id) else { return Ok(()) };
    if is_across_regions(&group) == replica.is_across_regions {
        mistimed.remove(&replica.id);
        return Ok(());
    }
    if replica.raft().role().is_leader {
        let rounds = mistimed.entry(replica.id).or_default();
        *rounds += 1;
        let is_alone = replica.raft().members().voters.len() == 1;
        if *rounds <= ROUNDS_FOR_FOLLOWERS && !is_alone {
            return Ok(());
        }
        if let Some(to) = successor(shared, replica)
            && let Err(e) = replica.transfer(to).await
        {
            tracing::info!("{}: leadership was not handed over: {e}", replica.id);
            return Ok(());
        }
    }
    restart(shared, replica).await
}
