//! Where the replicas of every group are, and what keeps them from being where they belong: `SHOW
//! RANGES`, and what a change of regions waits for.

use crate::membership::placement::wanted;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::transport::wire::{GroupStatus, Request, Response, Standing};
use meridian_base::{GroupId, NodeId};
use meridian_placement::Placement;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A node that takes longer is left out: what it leads is reported as without a primary.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

/// A replica that is closer to the end of the log than this has what it should have: under load it
/// is always a little behind.
const ENTRIES_BEHIND_MAX: u64 = 1_000;

/// The groups that this node leads.
pub(crate) fn led_here(shared: &Shared) -> Vec<GroupStatus> {
    shared.groups.all().iter().filter(|r| r.is_serving()).map(|r| status(shared, r)).collect()
}

/// The groups of the whole cluster that have a primary now.
pub(crate) async fn everywhere(shared: &Arc<Shared>) -> BTreeMap<GroupId, GroupStatus> {
    let others = shared.catalog.nodes().into_iter().filter(|n| n.id != shared.me() && shared.peers.is_live(n.id));
    let asked = others.map(|n| {
        let shared = shared.clone();
        async move { shared.rpc.call(n.id, Request::Groups, ASK_TIMEOUT).await }
    });
    let mut found: BTreeMap<GroupId, GroupStatus> = BTreeMap::new();
    for answer in futures::future::join_all(asked).await {
        if let Ok(Response::Groups(theirs)) = answer {
            found.extend(theirs.into_iter().map(|g| (g.group, g)));
        }
    }
    found.extend(led_here(shared).into_iter().map(|g| (g.group, g)));
    found
}

/// The voters of a group that no primary speaks for, as far as this node knows them, and why nobody
/// may be able to lead it.
pub(crate) fn without_primary(shared: &Shared, group: GroupId) -> (Vec<NodeId>, String) {
    let founders = || shared.catalog.group(group).map(|g| g.initial_voters).unwrap_or_default();
    let voters: Vec<NodeId> = match shared.groups.replica(group) {
        Some(replica) => replica.raft().members().voters.into_iter().collect(),
        None => founders(),
    };
    let nodes = shared.catalog.nodes();
    let lost: Vec<String> =
        nodes.iter().filter(|n| n.standing == Standing::Lost && voters.contains(&n.id)).map(|n| n.id.to_string()).collect();
    let why = match lost.len() * 2 >= voters.len() && !lost.is_empty() {
        true => format!(
            "no primary answers: of its {} voters {} lost their directories, and a majority must have theirs. It is served again when \
             enough of them are started with their directories",
            voters.len(),
            lost.join(" and ")
        ),
        false => "no primary answers".to_string(),
    };
    (voters, why)
}

fn status(shared: &Shared, replica: &Replica) -> GroupStatus {
    let members = replica.raft().members();
    let waits_for = wanted(shared, replica).and_then(|wanted| waits_for(shared, replica, &wanted));
    let (certifies_with, names) = replica.names(shared.catalog.newest().version);
    GroupStatus {
        group: replica.id,
        certifies_with,
        names,
        primary: shared.me(),
        is_changing: !members.are_settled(),
        voters: members.voters.into_iter().collect(),
        non_voters: members.learners.into_iter().collect(),
        waits_for,
        step: shared.steps.waits().filter(|_| replica.id == GroupId::CATALOG),
    }
}

/// The first reason why the group is not as placement wants it.
fn waits_for(shared: &Shared, replica: &Replica, wanted: &Placement) -> Option<String> {
    let members = replica.raft().members();
    let set = |nodes: &[NodeId]| nodes.iter().copied().collect::<BTreeSet<_>>();
    let (voters, learners) = (set(&wanted.voters), set(&wanted.non_voters));
    if voters.is_empty() {
        return Some("no live node in its home region".to_string());
    }
    let progress = replica.raft().progress();
    let last = replica.raft().last_position().index;
    let is_near = |index: u64| index + ENTRIES_BEHIND_MAX >= last;
    let present =
        |n: &NodeId| *n == shared.me() || progress.get(n).and_then(|p| p.matched).is_some_and(|matched| is_near(matched.index));
    for node in voters.union(&learners) {
        if !shared.peers.is_live(*node) {
            // It had its replica before, and is waited for by nobody.
            if members.voters.contains(node) || members.learners.contains(node) {
                continue;
            }
            return Some(format!("node {node} does not answer"));
        }
        if !present(node) {
            return Some(format!("node {node} does not have its replica yet"));
        }
    }
    if !members.are_settled() || members.voters != voters || members.learners != learners {
        return Some("its members are being changed".to_string());
    }
    let home = shared.catalog.group(replica.id)?.home;
    let nodes = shared.catalog.nodes();
    let is = |node: NodeId, standing: Standing| nodes.iter().any(|n| n.id == node && n.standing == standing);
    if let Some(node) = voters.union(&learners).find(|node| is(**node, Standing::Decommissioning)) {
        return Some(format!("node {node} is being decommissioned, and no other node may take its replica"));
    }
    if is(shared.me(), Standing::Draining) {
        return Some(format!("node {} is being drained, and no other voter can lead the group", shared.me()));
    }
    let region = |node: NodeId| nodes.iter().find(|n| n.id == node).map(|n| n.region.clone());
    let has_better = wanted.primaries.iter().any(|n| region(*n).as_ref() == Some(&home));
    (shared.peers.place.region != home && has_better).then(|| format!("its primary is not in region \"{home}\" yet"))
}
