//! How a replica is configured, and what it tells about itself.

use bytes::Bytes;
use futures::future::BoxFuture;
use meridian_base::{GroupId, LogPosition, NodeId, Result};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// Carries this crate's messages between nodes. The receiving node gives the bytes to
/// [`crate::Group::handle`] of the same group and answers with what that returns. A call may fail,
/// be delayed, repeated or answered late; the future may be dropped. Messages are at most
/// [`crate::SNAPSHOT_CHUNK_BYTES_MAX`] plus a small header, or one payload plus one.
pub trait Transport: Send + Sync + 'static {
    fn call(&self, to: NodeId, group: GroupId, message: Message) -> BoxFuture<'static, Result<Bytes>>;
}

/// What a replica says to another one.
#[derive(Clone, Debug)]
pub struct Message {
    pub bytes: Bytes,
    /// It should arrive after the ordered messages of the same group that were sent to the same
    /// node before it: it follows on their entries. Others (heartbeats, votes, parts of snapshots)
    /// may overtake, and should not wait behind what is large.
    pub is_ordered: bool,
}

/// What the sender of a message says it is ([`crate::Group::claim`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It stands for election.
    Stands(NodeId),
    /// It leads.
    Leads(NodeId),
}

impl Claim {
    /// Who claims it.
    pub fn node(self) -> NodeId {
        match self {
            Claim::Stands(node) | Claim::Leads(node) => node,
        }
    }
}

/// How a replica behaves.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    pub group: GroupId,
    /// This node.
    pub node: NodeId,
    /// The voters that found the group, if this node is one of them: the one that is to lead first,
    /// then the others. Each founder begins its log with them by itself, so that any majority of
    /// founders is a group, whoever of them dies how soon. Empty for a replica that joins a group.
    /// Not looked at once the replica knows the group's members.
    pub founders: Vec<NodeId>,
    /// A leader contacts its followers this often. It should be longer than a round trip between
    /// voters: a new leader is acknowledged by answers that come within it. (A learner farther away
    /// is kept up by the entries themselves.)
    pub heartbeat: Duration,
    /// A follower that heard nothing for `election_timeout_max` plus a random time in this range
    /// stands for election. The second part keeps candidates apart: the range should be wider than
    /// an election takes.
    pub election_timeout_min: Duration,
    pub election_timeout_max: Duration,
    /// A voter that has accepted a message of the leader votes for nobody else for so long,
    /// restarts included: what the leader's lease rests on. At most `election_timeout_max`.
    pub promise: Duration,
    /// How long a call to a peer may take, except heartbeats. Longer than the largest round trip
    /// plus the time a message of `bytes_per_message_max` needs.
    pub rpc_timeout: Duration,
    /// How much of the promise a lease leaves unused, for clocks that run at different speeds.
    pub lease_margin: Duration,
    /// Entries kept below the truncation point, so that a replica that lags a little needs no
    /// snapshot.
    pub entries_kept: u64,
    /// Most entries in one message to a follower.
    pub entries_per_message_max: u64,
    /// Most payload bytes in one message to a follower; one larger payload travels alone.
    pub bytes_per_message_max: usize,
}

impl GroupOptions {
    /// Timeouts for voters a few milliseconds apart: after a leader's death the next one is elected
    /// 1.4 to 1.8 s later, unless votes are split.
    pub fn new(group: GroupId, node: NodeId) -> GroupOptions {
        GroupOptions {
            group,
            node,
            founders: Vec::new(),
            heartbeat: Duration::from_millis(100),
            election_timeout_min: Duration::from_millis(500),
            election_timeout_max: Duration::from_millis(900),
            promise: Duration::from_millis(500),
            rpc_timeout: Duration::from_millis(2_000),
            lease_margin: Duration::from_millis(50),
            entries_kept: 4_096,
            entries_per_message_max: 512,
            bytes_per_message_max: 4 << 20,
        }
    }
}

/// Who leads, as this replica knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Role {
    pub term: u64,
    pub leader: Option<NodeId>,
    /// This replica leads in `term`, and a quorum has acknowledged it. Entries of earlier terms may
    /// still be on their way to its state machine: when the first proposal of the term has been
    /// applied, everything before it has been too.
    pub is_leader: bool,
}

/// Who belongs to the group.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Members {
    /// During a change, the old and the new voters.
    pub voters: BTreeSet<NodeId>,
    pub learners: BTreeSet<NodeId>,
    /// A change of voters is not complete: both the old and the new ones must agree (joint
    /// consensus).
    pub joint: bool,
    /// This replica knows that the log entry with these members is committed. Before that, the next
    /// leader may count other members.
    pub committed: bool,
}

impl Members {
    /// Whether no change is under way.
    pub fn are_settled(&self) -> bool {
        !self.joint && self.committed
    }
}

/// How far a replica is, as the leader knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Its log agrees with the leader's up to here; `None` before the first contact.
    pub matched: Option<LogPosition>,
}

/// Why a proposal was not (known to be) applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposeError {
    /// Not appended anywhere and never will be: this replica does not lead, or a leader without a
    /// quorum's recent acknowledgement refuses what it could not commit.
    NotLeader { hint: Option<NodeId> },
    /// Leadership was lost after the entry was appended: it may or may not be committed by the
    /// successor.
    Dropped,
    /// Not appended: too many proposals are queued. The same proposal may be made again later.
    Overloaded,
    /// The replica is shut down, or failed (then [`crate::NodeLog::failure`] or the log tells why).
    /// The fate is unknown.
    Stopped,
}

impl fmt::Display for ProposeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProposeError::NotLeader { hint: Some(n) } => write!(f, "this replica does not lead the group; {n} may"),
            ProposeError::NotLeader { hint: None } => write!(f, "this replica does not lead the group"),
            ProposeError::Dropped => write!(f, "leadership was lost before the entry was known to be committed"),
            ProposeError::Overloaded => write!(f, "too many proposals are queued"),
            ProposeError::Stopped => write!(f, "the replica is stopped"),
        }
    }
}
impl std::error::Error for ProposeError {}
