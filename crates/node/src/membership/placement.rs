//! Where replicas and leadership belong.
//!
//! A group's primary compares the group's members with what `placement` wants and changes them one
//! step at a time; it hands leadership to the home region when it finds itself elsewhere. A node
//! that is silent for a moment keeps its replicas; one that stays silent
//! ([`DEAD_AFTER_DEFAULT`](crate::membership::peers::DEAD_AFTER_DEFAULT)), is decommissioned, or
//! has lost its directory ([`Standing::Lost`]), loses them to others.

use crate::local::room::Left;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::transport::wire::{NodeRecord, Standing};
use meridian_base::{Error, GroupId, NodeId, Result};
use meridian_placement as placement;
use meridian_placement::{Health, Load, Placement, Policy};
use meridian_sql::catalog::{CatalogChange, Descriptor, Group};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const PLACEMENT_INTERVAL: Duration = Duration::from_millis(500);

/// A new voter that has not caught up by then is waited for in the next round; one that nobody has
/// heard of for as long is not waited for.
pub(crate) const CHANGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Leadership is not moved again within this time: a transfer that failed should not be repeated at
/// once.
const TRANSFER_PAUSE: Duration = Duration::from_secs(5);

/// A node hands at most one group over within this time because another node leads fewer: what
/// pings tell of that node has to show the last one before the next one follows.
const BALANCE_PAUSE: Duration = Duration::from_secs(10);

/// All nodes that belong to the cluster, as placement sees them.
pub(crate) fn placement_nodes(shared: &Shared) -> Vec<placement::Node> {
    let nodes = shared.catalog.nodes();
    let members = nodes.into_iter().filter(|n| n.standing != Standing::Decommissioned);
    let placed = |n: NodeRecord| {
        let (health, load) = (health(shared, &n), load(shared, n.id));
        placement::Node { id: n.id, region: n.region, zone: n.zone, health, load }
    };
    members.map(placed).collect()
}

/// What a node has to do, as its last ping told.
fn load(shared: &Shared, node: NodeId) -> Load {
    let load = |holds: &[GroupId], leads: &[(GroupId, u64)]| {
        let leads = leads.iter().filter(|(group, _)| *group != GroupId::CATALOG).count();
        Load { replicas: holds.len() as u32, leads: leads as u32 }
    };
    if node == shared.me() {
        return load(&shared.groups.holds(), &shared.groups.leads());
    }
    shared.peers.all.read().get(&node).map(|p| load(&p.holds, &p.leads)).unwrap_or_default()
}

/// Whether a node is a host of a pod. That one forms where its leader is.
fn is_host(shared: &Shared, node: NodeId) -> bool {
    match node == shared.me() {
        true => shared.groups.common.pod.get().is_some(),
        false => shared.peers.all.read().get(&node).is_some_and(|p| p.is_host),
    }
}

/// How well a node is: what the operator wants of it, and what pings tell.
fn health(shared: &Shared, node: &NodeRecord) -> Health {
    match node.standing {
        Standing::Decommissioning | Standing::Decommissioned | Standing::Lost => Health::Leaving,
        _ if shared.peers.silence(node.id) >= shared.peers.dead_after => Health::Leaving,
        Standing::Active if shared.peers.is_live(node.id) => Health::Live,
        Standing::Active | Standing::Draining => Health::Resting,
    }
}

/// What says where a group's replicas belong.
fn policy_of(group: &Group) -> Policy {
    Policy {
        group: group.id,
        home: group.home.clone(),
        regions: group.regions.iter().cloned().collect(),
        survival: group.placed_as(),
        secondary: group.secondary.clone(),
    }
}

/// New groups get the voters that found them, first the one that should be the primary.
pub(crate) fn choose_voters(shared: &Shared, change: &mut CatalogChange) -> Result<()> {
    let mut nodes = placement_nodes(shared);
    // No ping has told yet of groups that were made a moment ago.
    let heard_of = shared.groups_heard_of();
    for group in shared.catalog.groups().iter().filter(|g| !heard_of.contains(&g.id)) {
        count(&mut nodes, &group.initial_voters);
    }
    for d in &mut change.put {
        if let Descriptor::Group(g) = d
            && g.initial_voters.is_empty()
        {
            let placed = placement::found(&nodes, &policy_of(g));
            g.initial_voters = placed.voters;
            g.initial_voters.sort_by_key(|n| Some(n) != placed.primaries.first());
            if placed.primaries.is_empty() {
                return Err(Error::sql("55000", format!("region \"{}\" has no live node", g.home)));
            }
            count(&mut nodes, &g.initial_voters);
        }
    }
    Ok(())
}

/// Adds a group to the load of those that found it.
fn count(nodes: &mut [placement::Node], founders: &[NodeId]) {
    for node in nodes {
        node.load.replicas += u32::from(founders.contains(&node.id));
        node.load.leads += u32::from(founders.first() == Some(&node.id));
    }
}

/// What the placement loop remembers of a group.
#[derive(Default)]
struct Care {
    /// A change of it is under way.
    busy: AtomicBool,
    /// When leadership was last moved.
    moved: Mutex<Option<Instant>>,
}

/// When this node last handed a group over because another node leads fewer.
struct Balance(Mutex<Instant>);

impl Balance {
    /// Whether it may do so now. Then the next time is later.
    fn take_turn(&self) -> bool {
        let mut last = self.0.lock();
        let is_due = last.elapsed() >= BALANCE_PAUSE;
        if is_due {
            *last = Instant::now();
        }
        is_due
    }
}

/// All but those that the operator takes out. A vote for the catalog is no place in a region that
/// nothing else can take: a smaller cluster has fewer of them, as if it had been founded so.
fn those_that_stay(shared: &Shared, nodes: &[placement::Node]) -> Vec<placement::Node> {
    let records = shared.catalog.nodes();
    let is_out = |id: NodeId| records.iter().any(|n| n.id == id && n.standing == Standing::Decommissioning);
    nodes.iter().filter(|n| !is_out(n.id)).cloned().collect()
}

/// Keeps the members of the groups that this node leads where placement wants them. Groups do not
/// wait for each other: one whose new member cannot be reached holds up nobody.
pub(crate) async fn placement_loop(shared: Arc<Shared>) {
    let mut cares: BTreeMap<GroupId, Arc<Care>> = BTreeMap::new();
    let balance = Arc::new(Balance(Mutex::new(Instant::now())));
    loop {
        tokio::time::sleep(PLACEMENT_INTERVAL).await;
        for replica in shared.groups.all() {
            if !replica.is_serving() {
                continue;
            }
            let care = cares.entry(replica.id).or_default().clone();
            if care.busy.swap(true, Ordering::AcqRel) {
                continue;
            }
            let (shared, balance) = (shared.clone(), balance.clone());
            shared.clone().spawn(async move {
                tend(&shared, &replica, &care, &balance).await;
                care.busy.store(false, Ordering::Release);
            });
        }
    }
}

async fn tend(shared: &Shared, replica: &Replica, care: &Care, balance: &Balance) {
    let Some(wanted) = wanted(shared, replica) else { return };
    keep_members(shared, replica, &wanted).await;
    let is_due = care.moved.lock().is_none_or(|moved| moved.elapsed() > TRANSFER_PAUSE);
    if is_due && move_leadership(shared, replica, &wanted, balance).await {
        *care.moved.lock() = Some(Instant::now());
    }
}

/// Where the replicas of a group that this node leads belong.
pub(crate) fn wanted(shared: &Shared, replica: &Replica) -> Option<Placement> {
    let nodes = placement_nodes(shared);
    let members = replica.raft().members();
    let current = Placement {
        voters: members.voters.into_iter().collect(),
        non_voters: members.learners.into_iter().collect(),
        primaries: Vec::new(),
    };
    if replica.id == GroupId::CATALOG {
        let mut wanted = placement::place_catalog(&those_that_stay(shared, &nodes), &current);
        // Every node plans from its own copy of the catalog.
        let is_lost = |id: NodeId| shared.catalog.nodes().iter().any(|n| n.id == id && n.standing == Standing::Lost);
        let others = nodes.iter().map(|n| n.id).filter(|n| !wanted.voters.contains(n) && !is_lost(*n));
        wanted.non_voters = others.collect();
        return Some(wanted);
    }
    let group = shared.catalog.group(replica.id)?;
    Some(placement::place(&nodes, &policy_of(&group), &current))
}

/// A primary that is to lose its vote keeps it until it has handed leadership over
/// ([`move_leadership`]): a leader that removes itself leaves the group to an election.
async fn keep_members(shared: &Shared, replica: &Replica, wanted: &Placement) {
    let members = replica.raft().members();
    let mut voters: BTreeSet<NodeId> = wanted.voters.iter().copied().collect();
    let mut learners: BTreeSet<NodeId> = wanted.non_voters.iter().copied().collect();
    if voters.is_empty() {
        return;
    }
    if voters.insert(shared.me()) {
        learners.remove(&shared.me());
    }
    // A change that was given up halfway (joint) is made again; this node leads, so nobody else is
    // making one.
    if !members.joint && members.voters == voters && members.learners == learners {
        return;
    }
    // Voters that live elsewhere may be all that is left of a region that is lost: they keep their
    // votes until the others have a majority that lives.
    let live = voters.iter().filter(|n| **n == shared.me() || shared.peers.is_live(**n)).count();
    let is_majority = live * 2 > voters.len();
    if !members.joint && members.voters != voters && !is_majority {
        return;
    }
    // A non-voter that is to vote may be gone for good, and its region may have no other place for
    // its replica. It is a voter that is gone then, as if it had been one before.
    let is_absent = |n: &NodeId| is_majority && shared.peers.silence(*n) >= CHANGE_TIMEOUT;
    let absent: BTreeSet<NodeId> = voters.iter().copied().filter(is_absent).collect();
    tracing::info!("{}: members become {voters:?} with learners {learners:?}", replica.id);
    let change = replica.raft().change_members(voters, learners, &absent);
    match tokio::time::timeout(CHANGE_TIMEOUT, change).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => tracing::info!("{}: the change of members is tried again: {e}", replica.id),
        Err(_) => tracing::info!("{}: the change of members takes long", replica.id),
    }
}

/// Hands leadership to a better primary: one whose disk has room, and of those one in the home
/// region, or else in the secondary one, or any if this node is none, and of those a host of a pod;
/// or to one that is as good and leads fewer groups. Returns whether it tried.
async fn move_leadership(shared: &Shared, replica: &Replica, wanted: &Placement, balance: &Balance) -> bool {
    let group = shared.catalog.group(replica.id);
    let nodes = shared.catalog.nodes();
    let rank = |node: NodeId| {
        let region = nodes.iter().find(|n| n.id == node).map(|n| n.region.as_str());
        let is_elsewhere = |wished: Option<&str>| wished.is_some() && wished != region;
        let (home, secondary) = group.as_ref().map_or((None, None), |g| (Some(g.home.as_str()), g.secondary.as_deref()));
        let is_full = shared.left_at(node) > Left::Plenty;
        let is_outside = replica.may_have_pod() && !is_host(shared, node);
        (is_full, !wanted.primaries.contains(&node), is_elsewhere(home), is_elsewhere(secondary), is_outside)
    };
    let mine = rank(shared.me());
    let progress = replica.raft().progress();
    let last = replica.raft().last_position().index;
    let voters = replica.raft().members().voters;
    let is_ready = |n: &NodeId| {
        let is_up_to_date = progress.get(n).and_then(|p| p.matched).is_some_and(|m| m.index + 64 >= last);
        voters.contains(n) && shared.peers.is_live(*n) && is_up_to_date
    };
    let better = wanted.primaries.iter().find(|n| rank(**n) < mine && is_ready(n));
    let leads = |node: NodeId| load(shared, node).leads;
    let leads_fewer = |n: &&NodeId| {
        let is_as_good = **n != shared.me() && rank(**n) == mine && is_ready(n);
        is_as_good && placement::should_hand_over(leads(shared.me()), leads(**n))
    };
    // Only schema changes use the catalog's primary: it is no load.
    let evens_out = || {
        let is_of_rows = replica.id != GroupId::CATALOG;
        wanted.primaries.iter().find(leads_fewer).filter(|_| is_of_rows && balance.take_turn())
    };
    let Some(to) = better.or_else(evens_out).copied() else { return false };
    tracing::info!("{}: leadership goes to {to}", replica.id);
    if let Err(e) = replica.transfer(to).await {
        tracing::info!("{}: the transfer to {to} failed: {e}", replica.id);
    }
    true
}

/// The live voter that is furthest, in this region if there is one.
pub(crate) fn successor(shared: &Shared, replica: &Replica) -> Option<NodeId> {
    let voters = replica.raft().members().voters;
    let progress = replica.raft().progress();
    let nodes = shared.catalog.nodes();
    let region = |n: NodeId| nodes.iter().find(|r| r.id == n).is_some_and(|r| r.region == shared.peers.place.region);
    let others = voters.into_iter().filter(|n| *n != shared.me() && shared.peers.is_live(*n));
    others.max_by_key(|n| (region(*n), progress.get(n).and_then(|p| p.matched), std::cmp::Reverse(*n)))
}
