//! Who is alive, and who leads what.
//!
//! Every node pings every other one twice a second.

use crate::local::room::Left;
use crate::membership::clocks;
use crate::membership::peers::{LIVENESS_TIMEOUT, PeerState};
use crate::membership::revoking;
use crate::membership::shared::Shared;
use crate::transport::wire::{NodeRecord, Ping, Request, Response, Standing};
use meridian_base::{Error, GroupId, NodeId, SchemaVersion, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) const PING_INTERVAL: Duration = Duration::from_millis(500);
pub(crate) const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// A ping that fails sooner was refused, not lost.
const PING_REFUSED: Duration = Duration::from_secs(1);

/// A node that was decommissioned has nothing to do in the cluster any more.
fn stop_if_decommissioned(shared: &Shared) {
    let is_out = |n: &NodeRecord| n.id == shared.me() && n.standing == Standing::Decommissioned;
    if shared.catalog.nodes().iter().any(is_out) || revoking::is_told_revoked(shared) {
        let me = shared.me();
        let e = Error::fatal(format!("this node ({me}) was decommissioned: it is no member of the cluster any more"))
            .hint("To add it again, start it with an empty data directory.");
        shared.fail(e);
    }
}

/// Keeps pinging everybody: the nodes that the catalog lists, and those that this node knows
/// otherwise, from before a restart for instance. Until the catalog has come these are all; a node
/// whose clock is wrong is told so by their answers alone, and its catalog may be waiting for that.
pub(crate) async fn ping_loop(shared: Arc<Shared>) {
    loop {
        stop_if_decommissioned(&shared);
        let listed = shared.catalog.nodes();
        for node in shared.rpc.known().into_iter().filter(|known| listed.iter().all(|node| node.id != *known)) {
            let shared = shared.clone();
            shared.clone().spawn_protocol(async move { ping(&shared, node).await });
        }
        for node in listed {
            if node.id == shared.me() {
                continue;
            }
            if node.standing == Standing::Decommissioned {
                continue;
            }
            shared.rpc.learn(&node);
            // Another node is there. If it comes back it says so.
            if node.standing == Standing::Lost {
                continue;
            }
            let shared = shared.clone();
            shared.clone().spawn_protocol(async move { ping(&shared, node.id).await });
        }
        clocks::stop_if_off(&shared);
        clocks::say_behind(&shared);
        crate::membership::doubt::look(&shared);
        tokio::time::sleep(PING_INTERVAL).await;
    }
}

async fn ping(shared: &Arc<Shared>, node: NodeId) {
    let sent = Instant::now();
    let Ok(Response::Pong(pong)) = shared.rpc.call(node, Request::Ping(own_ping(shared)), PING_TIMEOUT).await else {
        lost_contact(shared, node);
        if sent.elapsed() < PING_REFUSED {
            // Perhaps because one of the two clocks is wrong: which one, the others' tell.
            clocks::ask(shared, node).await;
        }
        return;
    };
    let round_trip = sent.elapsed();
    if let Some(version) = pong.certified {
        shared.freshness.confirmed(version, sent);
    }
    let offset = shared.clocks.measure(&shared.runtime, node, pong.physical_micros, sent);
    hear(shared, node, pong, Some((round_trip, offset)));
}

/// What this node tells others.
pub(crate) fn own_ping(shared: &Shared) -> Ping {
    Ping {
        physical_micros: shared.runtime.physical_micros(),
        incarnation: shared.life.incarnation,
        leads: shared.groups.leads(),
        holds: shared.groups.holds(),
        certified: shared.freshness.certified_schema(),
        protected: shared.groups.common.protected.oldest(),
        hears: shared.peers.hears(),
        left: shared.groups.common.room.left(),
        full: shared.groups.common.room.groups(),
        lost: shared.lost_groups(),
        is_host: shared.groups.common.pod.get().is_some(),
    }
}

/// Whether what a node says of itself is heard: it is known here, by the catalog, by who let this
/// node in, or from before a restart, and is a member still. One that has just joined is heard when
/// its record has come.
fn is_heard(shared: &Shared, node: NodeId) -> bool {
    let is_out = |n: &NodeRecord| n.id == node && n.standing == Standing::Decommissioned;
    node != shared.me() && shared.rpc.knows(node) && !shared.catalog.nodes().iter().any(is_out)
}

/// A ping or its answer arrived. What it says of groups that this node does not know is left out.
pub(crate) fn hear(shared: &Shared, node: NodeId, mut ping: Ping, measured: Option<(Duration, i64)>) {
    if !is_heard(shared, node) {
        return;
    }
    // Before the catalog has come nothing is known of any group.
    if shared.catalog.newest().version > SchemaVersion(0) {
        let groups: BTreeSet<GroupId> = shared.catalog.groups().into_iter().map(|g| g.id).chain([GroupId::CATALOG]).collect();
        ping.leads.retain(|(group, _)| groups.contains(group));
        ping.holds.retain(|group| groups.contains(group));
        ping.lost.retain(|(group, _)| groups.contains(group));
        ping.full.retain(|(group, _)| groups.contains(group));
    }
    ping.hears.retain(|other| *other == shared.me() || shared.rpc.knows(*other));
    for (group, term) in &ping.leads {
        shared.groups.learn_leader(*group, node, *term);
    }
    let known = shared.peers.all.read().get(&node).map(|p| p.incarnation);
    if known.is_some_and(|k| k != ping.incarnation) {
        // It was restarted: what its old sessions held in wait queues is given to others.
        shared.groups.all().iter().for_each(|r| r.release_gateway(node));
    }
    let mut peers = shared.peers.all.write();
    let peer = peers.entry(node).or_insert_with(|| PeerState {
        heard: Instant::now(),
        answered: Instant::now(),
        hears: Vec::new(),
        round_trip: Duration::ZERO,
        incarnation: ping.incarnation,
        leads: Vec::new(),
        holds: Vec::new(),
        left: Left::Plenty,
        full: BTreeMap::new(),
        lost: BTreeMap::new(),
        is_host: false,
        protected: Timestamp::MAX,
        clock_offset_micros: 0,
    });
    peer.heard = Instant::now();
    peer.incarnation = ping.incarnation;
    peer.leads = ping.leads;
    peer.holds = ping.holds;
    peer.protected = ping.protected;
    peer.hears = ping.hears;
    peer.is_host = ping.is_host;
    peer.left = ping.left;
    peer.full = ping.full.into_iter().collect();
    peer.lost = ping.lost.into_iter().collect();
    if !peer.full.is_empty() {
        shared.groups.common.room.heard_of_one();
    }
    if let Some((round_trip, offset)) = measured {
        peer.answered = Instant::now();
        peer.round_trip = round_trip;
        peer.clock_offset_micros = offset;
    }
}

fn lost_contact(shared: &Shared, node: NodeId) {
    // One that a third node hears may be served through that.
    if shared.peers.all.read().contains_key(&node) && shared.peers.silence(node) >= LIVENESS_TIMEOUT {
        // Its sessions cannot be heard of: what they hold in wait queues is given to others.
        shared.groups.all().iter().for_each(|r| r.release_gateway(node));
    }
}
