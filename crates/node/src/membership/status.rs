//! What `meridian node status` shows, and which groups have primaries that were heard.

use crate::membership::peers::PRIMARY_HEARD_FOR;
use crate::membership::shared::Shared;
use crate::transport::wire::{GroupStatus, NodeStatus};
use meridian_base::GroupId;
use std::collections::{BTreeMap, BTreeSet};

impl Shared {
    /// The groups whose primary is here or said so in one of its last pings.
    pub(crate) fn groups_heard_of(&self) -> BTreeSet<GroupId> {
        let peers = self.peers.all.read();
        let recent = peers.values().filter(|p| p.heard.elapsed() < PRIMARY_HEARD_FOR);
        recent.flat_map(|p| &p.leads).chain(&self.groups.leads()).map(|(group, _)| *group).collect()
    }

    /// What `meridian node status` shows, given what the groups' primaries say.
    pub(crate) fn status(&self, groups: &BTreeMap<GroupId, GroupStatus>) -> Vec<NodeStatus> {
        let me = self.me();
        let peers = self.peers.all.read();
        self.catalog
            .nodes()
            .into_iter()
            .map(|node| {
                let peer = peers.get(&node.id);
                let leads = match peer {
                    Some(p) if node.id != me => p.leads.iter().map(|(g, _)| *g).collect(),
                    _ if node.id == me => self.groups.leads().into_iter().map(|(g, _)| g).collect(),
                    _ => Vec::new(),
                };
                let holds = match peer {
                    Some(p) if self.peers.is_live(node.id) => p.holds.clone(),
                    _ if node.id == me => self.groups.holds(),
                    // It cannot say: what others count on.
                    _ => groups.values().filter(|g| g.has(node.id)).map(|g| g.group).collect(),
                };
                let waits_for = |group: &GroupId| groups.get(group)?.waits_for.clone().map(|why| (*group, why));
                NodeStatus {
                    waits_for: holds.iter().filter_map(waits_for).collect(),
                    clock: None,
                    is_live: self.peers.is_live(node.id),
                    is_dead: self.peers.silence(node.id) >= self.peers.dead_after,
                    holds,
                    round_trip_micros: peer.map_or(0, |p| p.round_trip.as_micros() as u64),
                    clock_offset_micros: peer.map_or(0, |p| p.clock_offset_micros),
                    leads: if self.peers.is_live(node.id) { leads } else { Vec::new() },
                    node,
                }
            })
            .collect()
    }
}
