//! What nodes tell of themselves, of each other and of the groups that they lead.

use crate::local::room::Left;
use meridian_base::{GroupId, NodeId, SchemaVersion, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A node as the catalog knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    pub id: NodeId,
    pub addr: String,
    pub sql_addr: String,
    pub region: String,
    pub zone: String,
    pub standing: Standing,
}

/// What the operator wants of a node. Nodes that are only silent are judged by pings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Standing {
    #[default]
    Active,
    /// About to be stopped: it leads nothing and gets no new replicas, until it is started again.
    Draining,
    /// Its replicas move elsewhere.
    Decommissioning,
    /// It has none and is no member any more. For ever: a process with this identity refuses to
    /// serve.
    Decommissioned,
    /// Another node has its address. Its directory is taken for lost: its replicas move elsewhere
    /// at once, and when it has none it is decommissioned. If it starts again before that, with its
    /// directory, it is active again.
    Lost,
}

impl Standing {
    /// What `meridian node status` calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Active => "active",
            Standing::Draining => "draining",
            Standing::Decommissioning => "decommissioning",
            Standing::Decommissioned => "decommissioned",
            Standing::Lost => "lost",
        }
    }
}

/// Sent to every other node twice a second, and answered with the same: liveness, clocks, who leads
/// what.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ping {
    /// The sender's physical clock, unlike the frame's HLC.
    pub physical_micros: u64,
    /// Differs from one run of the sender's process to the next: the sessions of the run before are
    /// gone.
    pub incarnation: u64,
    /// Groups the sender is ready to serve as primary, with their terms.
    pub leads: Vec<(GroupId, u64)>,
    /// Groups the sender holds a replica of.
    pub holds: Vec<GroupId>,
    /// The newest version that may have been acknowledged, if a primary at the sender's knows.
    pub certified: Option<SchemaVersion>,
    /// The oldest moment that transactions at the sender may still read (see
    /// [`crate::local::protected`]).
    pub protected: Timestamp,
    /// Whom the sender hears both ways: they have answered it a moment ago.
    pub hears: Vec<NodeId>,
    /// How much room the sender's disk has.
    pub left: Left,
    /// Groups that the sender leads and that take no writes for want of room.
    pub full: Vec<(GroupId, Left)>,
    /// Groups that the sender holds a replica of and that are lost, as far as it knows (see
    /// [`crate::membership::reach`]).
    pub lost: Vec<(GroupId, Silence)>,
    /// The sender is a host of a pod: it leads groups rather than others do.
    #[serde(default)]
    pub is_host: bool,
}

/// Of which of a group's voters nothing is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// For how long too few have been heard to elect a primary.
    pub micros: u64,
    pub silent: u32,
    pub of: u32,
}

/// What a node's physical clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReport {
    pub physical_micros: u64,
    /// It is so much behind what this group was promised.
    pub behind: Option<(GroupId, u64)>,
    /// The wall clock was set back, or an operator moved this one ahead: it goes slowly until the
    /// wall clock is there.
    pub ahead_of_wall_micros: u64,
}

/// A line of `meridian node status`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeStatus {
    pub node: NodeRecord,
    pub is_live: bool,
    /// The node has been silent for so long that its replicas are made again on other nodes.
    pub is_dead: bool,
    /// Round trip to it from the node asked, in microseconds; 0 for itself.
    pub round_trip_micros: u64,
    /// How far its clock is ahead of that of the node asked, as well as half a round trip can tell,
    /// in microseconds.
    pub clock_offset_micros: i64,
    pub leads: Vec<GroupId>,
    /// Groups of which it holds a replica, as far as it said.
    pub holds: Vec<GroupId>,
    /// What keeps the replicas of those from being where they belong, as far as their primaries
    /// say.
    pub waits_for: BTreeMap<GroupId, String>,
    /// What its clock shows, if it answered.
    pub clock: Option<ClockReport>,
}

/// A group, as its primary sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    pub group: GroupId,
    pub primary: NodeId,
    pub voters: Vec<NodeId>,
    pub non_voters: Vec<NodeId>,
    /// A change of the members is not committed yet: the next leader may count other members.
    pub is_changing: bool,
    /// What keeps the replicas from being where they belong, if they are not.
    pub waits_for: Option<String>,
    /// The version of the catalog that it certifies with.
    pub certifies_with: SchemaVersion,
    /// See `commit::Participant::names`.
    pub names: Vec<GroupId>,
    /// Of the catalog's: what the schema step under way waits for.
    pub step: Option<StepWait>,
}

/// A schema step waits until the leases of groups that do not answer have run out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepWait {
    pub groups: Vec<GroupId>,
    /// It takes no longer than this.
    pub left: Duration,
}

impl GroupStatus {
    /// Whether the node is a member, or may be one.
    pub fn has(&self, node: NodeId) -> bool {
        self.is_changing || self.voters.contains(&node) || self.non_voters.contains(&node)
    }
}
