//! Where replicas go: node localities and a policy in, voters, non-voters and preferred primaries out. Pure functions.

use meridian_base::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A node as placement sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Node {
    pub id: NodeId,
    pub region: String,
    pub zone: String,
    /// Answers heartbeats. A dead node keeps its replicas where there is no better place, and never gets new ones.
    pub live: bool,
}

/// What must survive (`ALTER DATABASE … SURVIVE … FAILURE`), or that data must stay at home (`PLACEMENT RESTRICTED`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Survival {
    Zone,
    Region,
    /// Zone survival without non-voters outside the home region.
    Restricted,
}

/// The placement policy of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Policy {
    pub home: String,
    /// The database's regions, the home region included.
    pub regions: BTreeSet<String>,
    pub survival: Survival,
}

/// Where a group's replicas are.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Placement {
    /// Sorted. Vote on log entries.
    pub voters: Vec<NodeId>,
    /// Sorted. Receive the log asynchronously.
    pub non_voters: Vec<NodeId>,
    /// Live voters in the home region first, best first: leadership is transferred to the first one that is up to date.
    pub primaries: Vec<NodeId>,
}

/// Places a group's replicas, keeping what `current` has wherever that is as good.
pub fn place(nodes: &[Node], policy: &Policy, current: &Placement) -> Placement {
    let _ = (nodes, policy, current);
    todo!()
}

/// Places the catalog: voters over zones in one region, over regions as soon as there are three; a learner on every other node's
/// region.
pub fn place_catalog(nodes: &[Node], current: &Placement) -> Placement {
    let _ = (nodes, current);
    todo!()
}
