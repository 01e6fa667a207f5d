//! The other nodes: who is there, and what they said in their pings.

use crate::local::lifecycle::Lifecycle;
use crate::local::lock::RwLock;
use crate::local::room::Left;
use crate::transport::rpc::{Place, Rpc};
use crate::transport::wire::{Passed, Request, Response, Silence};
use meridian_base::{Error, GroupId, NodeId, Result, Timestamp};
use meridian_pki::seal::Seal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A node that has not answered for this long is not live: placement gives it nothing new, its
/// sessions' queue entries go.
pub const LIVENESS_TIMEOUT: Duration = Duration::from_secs(5);
/// A primary that said so as long ago is taken to be there still: two pings.
pub(crate) const PRIMARY_HEARD_FOR: Duration = Duration::from_millis(1_200);
/// A node that has not answered for this long is dead: its replicas are made anew elsewhere. A
/// restart takes less, and so does most of what happens to a machine's network; copying everything
/// a node holds is not done lightly.
pub const DEAD_AFTER_DEFAULT: Duration = Duration::from_secs(300);
/// A node that has answered no ping for so long is not reached directly: two pings, and the longest
/// way there and back.
pub(crate) const LINK_SILENT: Duration = Duration::from_millis(1_300);
/// A group is lost when a quorum of its voters is silent for so long. An election needs a quorum
/// that lives, so this is not about failovers: it is the longest that a link or a machine may pause
/// without being given up.
pub(crate) const LOST_AFTER: Duration = Duration::from_secs(4);
/// Requests that a node passes on at once; more are refused, and their senders try again.
const RELAYED_MAX: usize = 512;
/// How long a node waits for the answer to one of them.
const RELAYED_FOR_MAX: Duration = Duration::from_secs(60);

/// What pings told of another node.
#[derive(Clone, Debug)]
pub(crate) struct PeerState {
    pub heard: Instant,
    /// When it last answered a ping of this node.
    pub answered: Instant,
    /// Whom it hears both ways.
    pub hears: Vec<NodeId>,
    pub round_trip: Duration,
    pub incarnation: u64,
    pub leads: Vec<(GroupId, u64)>,
    pub holds: Vec<GroupId>,
    /// How much room its disk has, and groups that it leads for which that is not enough.
    pub left: Left,
    pub full: BTreeMap<GroupId, Left>,
    /// Groups that it holds and that are lost, as far as it knows.
    pub lost: BTreeMap<GroupId, Silence>,
    /// It is a host of a pod.
    pub is_host: bool,
    /// The oldest moment that its transactions may still read.
    pub protected: Timestamp,
    /// Its physical clock minus this node's, as well as a round trip can tell, and how well that
    /// is.
    pub clock_offset_micros: i64,
}

/// See the module.
pub(crate) struct Peers {
    life: Arc<Lifecycle>,
    rpc: Arc<Rpc>,
    /// Where this node is.
    pub place: Place,
    /// Where other nodes connect to this one.
    pub addr: String,
    /// See [`DEAD_AFTER_DEFAULT`].
    pub dead_after: Duration,
    pub all: RwLock<BTreeMap<NodeId, PeerState>>,
    /// Bounds what this node passes on for others at once.
    relaying: tokio::sync::Semaphore,
}

impl Peers {
    pub(crate) fn new(life: Arc<Lifecycle>, rpc: Arc<Rpc>, place: Place, addr: String, dead_after: Duration) -> Peers {
        Peers { life, rpc, place, addr, dead_after, all: RwLock::default(), relaying: tokio::sync::Semaphore::new(RELAYED_MAX) }
    }

    /// Live nodes of this region, other than this one, that hold a replica of the group; the
    /// nearest first.
    pub(crate) fn replicas_near(&self, group: GroupId) -> Vec<NodeId> {
        let peers = self.all.read();
        let near = peers
            .iter()
            .filter(|(node, p)| p.heard.elapsed() < LIVENESS_TIMEOUT && p.holds.contains(&group) && self.rpc.is_near(**node));
        let mut near: Vec<(Duration, NodeId)> = near.map(|(node, p)| (p.round_trip, *node)).collect();
        near.sort();
        near.into_iter().map(|(_, node)| node).collect()
    }

    /// Whether a node answered lately. This node is live.
    pub(crate) fn is_live(&self, node: NodeId) -> bool {
        node == self.life.me() || self.all.read().get(&node).is_some_and(|p| p.heard.elapsed() < LIVENESS_TIMEOUT)
    }

    /// The oldest moment that transactions at each other node may still read. What a dead node had
    /// open is over.
    pub(crate) fn oldest_protected_elsewhere(&self) -> Vec<(NodeId, Timestamp)> {
        let peers = self.all.read();
        peers.iter().filter(|(_, p)| p.heard.elapsed() < self.dead_after).map(|(node, p)| (*node, p.protected)).collect()
    }

    /// The measured round trip to a live node; zero for others.
    pub(crate) fn round_trip(&self, node: NodeId) -> Duration {
        let peers = self.all.read();
        peers.get(&node).filter(|p| p.heard.elapsed() < LIVENESS_TIMEOUT).map_or(Duration::ZERO, |p| p.round_trip)
    }

    /// The largest round trip to a live node.
    pub(crate) fn largest_round_trip(&self) -> Duration {
        let peers = self.all.read();
        peers.values().filter(|p| p.heard.elapsed() < LIVENESS_TIMEOUT).map(|p| p.round_trip).max().unwrap_or_default()
    }

    /// Whom this node hears both ways.
    pub(crate) fn hears(&self) -> Vec<NodeId> {
        let peers = self.all.read();
        peers.iter().filter(|(_, p)| p.answered.elapsed() < LINK_SILENT).map(|(node, _)| *node).collect()
    }

    /// The nearest node through which another one can be reached, if it cannot be reached directly.
    pub(crate) fn detour(&self, to: NodeId) -> Option<NodeId> {
        let known = self.rpc.known_since(to)?;
        let peers = self.all.read();
        let answered = peers.get(&to).map_or(known, |p| p.answered);
        if answered.elapsed() < LINK_SILENT {
            return None;
        }
        let may = peers.iter().filter(|(node, p)| **node != to && p.answered.elapsed() < LINK_SILENT && p.hears.contains(&to));
        may.min_by_key(|(node, p)| (p.round_trip, **node)).map(|(node, _)| *node)
    }

    /// How long no node that this one hears has heard of another one; at most since that one is
    /// known here. This node hears itself.
    pub(crate) fn silence(&self, node: NodeId) -> Duration {
        if node == self.life.me() {
            return Duration::ZERO;
        }
        let Some(known) = self.rpc.known_since(node) else { return Duration::ZERO };
        let peers = self.all.read();
        let directly = peers.get(&node).map_or(known, |p| p.heard);
        let through = peers.values().filter(|p| p.hears.contains(&node)).map(|p| p.heard).max();
        through.map_or(directly, |heard| heard.max(directly)).elapsed()
    }

    /// Of which of these nodes nothing is heard, and for how long of fewer than `quorum`.
    pub(crate) fn silence_of(&self, nodes: &BTreeSet<NodeId>, quorum: usize) -> Silence {
        let mut silences: Vec<Duration> = nodes.iter().map(|n| self.silence(*n)).collect();
        silences.sort();
        let silent = silences.iter().filter(|s| **s >= LOST_AFTER).count() as u32;
        let micros = silences.get(quorum - 1).map_or(0, |s| s.as_micros() as u64);
        Silence { micros, silent, of: nodes.len() as u32 }
    }

    /// Passes a request on to a node that its sender does not reach.
    pub(crate) async fn relay(
        &self,
        from: NodeId,
        to: NodeId,
        patience: Duration,
        request: Passed,
        seal: Option<Seal>,
    ) -> Result<Response> {
        if from == NodeId(0) {
            return Err(Error::unavailable("only members' requests are passed on"));
        }
        let Ok(_passing) = self.relaying.try_acquire() else {
            return Err(Error::unavailable("too many requests are being passed on"));
        };
        // Directly: two nodes that take each other for the way would pass it to and fro.
        self.rpc.call_directly(to, Request::Relayed { from, request, seal }, patience.min(RELAYED_FOR_MAX)).await
    }
}
