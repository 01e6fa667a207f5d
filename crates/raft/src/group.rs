//! One replica of one group.

use crate::{NodeLog, StateMachine};
use bytes::Bytes;
use futures::future::BoxFuture;
use meridian_base::runtime::Runtime;
use meridian_base::{Error, GroupId, LogPosition, NodeId, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Carries this crate's messages between nodes. The receiving node gives `message` to [`Group::handle`] of the same group and
/// answers with what that returns. A call may fail, be delayed, repeated or answered late; the future may be dropped.
/// Messages are at most [`crate::SNAPSHOT_CHUNK_BYTES_MAX`] plus a small header, or one payload plus one.
pub trait Transport: Send + Sync + 'static {
    fn call(&self, to: NodeId, group: GroupId, message: Bytes) -> BoxFuture<'static, Result<Bytes>>;
}

/// How a replica behaves.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    pub group: GroupId,
    /// This node.
    pub node: NodeId,
    /// A leader contacts its followers this often.
    pub heartbeat: Duration,
    /// A follower that heard nothing for a random time in this range stands for election.
    pub election_timeout_min: Duration,
    pub election_timeout_max: Duration,
    /// How much of the election timeout a lease leaves unused, for clocks that run at different speeds.
    pub lease_margin: Duration,
    /// Entries kept below the truncation point, so that a replica that lags a little needs no snapshot.
    pub entries_kept: u64,
    /// Most entries in one message to a follower.
    pub entries_per_message_max: u64,
    /// Most payload bytes in one message to a follower; one larger payload travels alone.
    pub bytes_per_message_max: usize,
}

impl GroupOptions {
    /// Timeouts for voters a few milliseconds apart: elections settle well within 3 s.
    pub fn new(group: GroupId, node: NodeId) -> GroupOptions {
        GroupOptions {
            group,
            node,
            heartbeat: Duration::from_millis(150),
            election_timeout_min: Duration::from_millis(600),
            election_timeout_max: Duration::from_millis(1_200),
            lease_margin: Duration::from_millis(60),
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
    /// This replica leads in `term`. Entries of earlier terms may still be on their way to its state machine: when the first
    /// proposal of the term has been applied, everything before it has been too.
    pub is_leader: bool,
}

/// Who belongs to the group.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Members {
    /// During a change, the old and the new voters.
    pub voters: BTreeSet<NodeId>,
    pub learners: BTreeSet<NodeId>,
    /// A change of voters is not complete: both the old and the new ones must agree (joint consensus).
    pub joint: bool,
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
    /// Not appended anywhere and never will be: this replica does not lead.
    NotLeader { hint: Option<NodeId> },
    /// Leadership was lost after the entry was appended: it may or may not be committed by the successor.
    Dropped,
    /// The replica is shut down, or failed (then [`NodeLog::failure`] or the log tells why). The fate is unknown.
    Stopped,
}

impl fmt::Display for ProposeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProposeError::NotLeader { hint: Some(n) } => write!(f, "this replica does not lead the group; {n} may"),
            ProposeError::NotLeader { hint: None } => write!(f, "this replica does not lead the group"),
            ProposeError::Dropped => write!(f, "leadership was lost before the entry was known to be committed"),
            ProposeError::Stopped => write!(f, "the replica is stopped"),
        }
    }
}
impl std::error::Error for ProposeError {}

/// A proposal on its way. Resolves when the entry has been applied *here*. Dropping it does not take the proposal back.
pub struct ProposeTicket {
    _private: (),
}

impl Future for ProposeTicket {
    type Output = Result<LogPosition, ProposeError>;
    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        unimplemented!()
    }
}

/// A replica of a group. Cheap to clone; all clones are the same replica, which runs until [`Group::shutdown`].
#[derive(Clone)]
pub struct Group {
    _inner: Arc<()>,
}

impl Group {
    /// Starts the replica: recovers from the log and the state machine, and joins the group if it has members.
    pub async fn start<R: Runtime>(
        _options: GroupOptions,
        _log: NodeLog<R>,
        _machine: Arc<dyn StateMachine>,
        _transport: Arc<dyn Transport>,
        _runtime: R,
    ) -> Result<Group> {
        unimplemented!()
    }
    /// The group this is a replica of.
    pub fn id(&self) -> GroupId {
        unimplemented!()
    }
    /// Founds the group with these voters. Idempotent: does nothing if this replica already knows members. Several founding
    /// nodes may call it, with the same set. Nodes that join later must not.
    pub async fn initialize(&self, _voters: BTreeSet<NodeId>) -> Result<()> {
        unimplemented!()
    }
    /// Whether this replica knows the group's members (it was initialized, or a leader contacted it).
    pub fn is_initialized(&self) -> bool {
        unimplemented!()
    }
    /// Answers a message that a peer sent through its [`Transport`]. Malformed bytes are an error.
    pub fn handle(&self, _message: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        unimplemented!()
    }
    /// Appends a payload to the log, if this replica leads. Never blocks and never waits. The order of calls is the order in
    /// the log; many may be in flight. A leader that loses its leadership resolves everything in flight as
    /// [`ProposeError::Dropped`].
    pub fn propose(&self, _payload: Bytes) -> Result<ProposeTicket, ProposeError> {
        unimplemented!()
    }
    /// Who leads.
    pub fn role(&self) -> Role {
        unimplemented!()
    }
    /// Follows [`Group::role`].
    pub fn watch_role(&self) -> watch::Receiver<Role> {
        unimplemented!()
    }
    /// Until when no other replica can have become leader: a quorum acknowledged this leader less than
    /// `election_timeout_min - lease_margin` before. `None` if this replica does not lead, has not heard from a quorum, or is
    /// giving its leadership away. A few atomic loads.
    pub fn lease_until(&self) -> Option<Instant> {
        unimplemented!()
    }
    /// Whether [`Group::lease_until`] is in the future. Always true for the leader of a group of one voter.
    pub fn lease_valid(&self) -> bool {
        unimplemented!()
    }
    /// Gives the lease up, waits until `to` has the whole log, and makes it stand for election. Returns when another replica
    /// leads, or with an error when that did not happen within two election timeouts (then this replica stays leader, in a
    /// new term).
    pub async fn transfer_leadership(&self, _to: NodeId) -> Result<()> {
        unimplemented!()
    }
    /// Asks for leadership: the current leader, if one is known, to transfer it here; otherwise stands for election. Returns
    /// when this replica leads, or with an error.
    pub async fn campaign(&self) -> Result<()> {
        unimplemented!()
    }
    /// Makes the members exactly these, through joint consensus; only on the leader. New members first catch up as learners.
    /// Returns when the change is committed.
    pub async fn change_members(&self, _voters: BTreeSet<NodeId>, _learners: BTreeSet<NodeId>) -> Result<()> {
        unimplemented!()
    }
    /// Who belongs to the group, as this replica knows it.
    pub fn members(&self) -> Members {
        unimplemented!()
    }
    /// How far every other replica is; empty unless this one leads.
    pub fn progress(&self) -> BTreeMap<NodeId, Progress> {
        unimplemented!()
    }
    /// The last entry of this replica's log.
    pub fn last_position(&self) -> LogPosition {
        unimplemented!()
    }
    /// The last entry this replica knows to be committed.
    pub fn committed(&self) -> LogPosition {
        unimplemented!()
    }
    /// The last entry given to the state machine.
    pub fn applied(&self) -> LogPosition {
        unimplemented!()
    }
    /// Tells that the state machine holds everything up to `position` durably: the log up to there, less
    /// [`GroupOptions::entries_kept`], may be dropped. Followers that still need it get a snapshot.
    pub fn set_truncatable(&self, _position: LogPosition) {
        unimplemented!()
    }
    /// The error that stopped this replica, if one did.
    pub fn failure(&self) -> Option<Error> {
        unimplemented!()
    }
    /// Stops the replica and waits until none of its tasks uses the state machine any more.
    pub async fn shutdown(&self) {
        unimplemented!()
    }
}
