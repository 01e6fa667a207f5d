//! The only place that knows the consensus library: its types, and the four things it needs from
//! us.
//!
//! * [`runtime`]: tasks, timers and random numbers.
//! * [`storage`]: its log, on the node's log.
//! * [`machine`]: its state machine, on a [`crate::StateMachine`].
//! * [`members`]: the members of a group, in the log and with the state.
//! * [`network`] and [`message`]: its messages, over a [`crate::Transport`].
//! * [`lease`]: how long no other replica can have become leader.
//!
//! The library counts log entries from 0, Meridian from 1 (0 is «before the first»):
//! [`to_position`] and [`to_log_id`].

pub(crate) mod lease;
pub(crate) mod machine;
pub(crate) mod members;
pub(crate) mod message;
pub(crate) mod network;
pub(crate) mod runtime;
pub(crate) mod storage;

use crate::log::{EntryKind, LogEntry};
use crate::ticket::Reply;
use bytes::Bytes;
use meridian_base::{Error, LogPosition, Result};
use openraft::vote::RaftLeaderId;
use openraft::{EmptyNode, EntryPayload, OptionalSend, impls};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The library's types for Meridian's groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Types;

impl openraft::RaftTypeConfig for Types {
    type D = Payload;
    type R = ();
    type NodeId = u32;
    type Node = EmptyNode;
    type Term = u64;
    type LeaderId = impls::leader_id_std::LeaderId<u64, u32>;
    type Vote = impls::Vote<Self::LeaderId>;
    type Payload = EntryPayload<Payload, u32, EmptyNode>;
    type Entry = impls::Entry<<Self::LeaderId as RaftLeaderId>::Committed, Self::Payload>;
    type AsyncRuntime = runtime::TokioSeeded;
    type Responder<T>
        = Reply<T>
    where
        T: OptionalSend + 'static;
    type Batch<T>
        = impls::InlineBatch<T>
    where
        T: OptionalSend + 'static;
    type ErrorSource = impls::BoxedErrorSource;
}

pub(crate) type Raft = openraft::Raft<Types, machine::Machine>;
pub(crate) type LogId = openraft::type_config::alias::LogIdOf<Types>;
pub(crate) type LeaderId = openraft::type_config::alias::LeaderIdOf<Types>;
pub(crate) type CommittedLeaderId = openraft::type_config::alias::CommittedLeaderIdOf<Types>;
pub(crate) type Vote = openraft::type_config::alias::VoteOf<Types>;
pub(crate) type Entry = openraft::type_config::alias::EntryOf<Types>;
pub(crate) type Membership = openraft::Membership<u32, EmptyNode>;
pub(crate) type StoredMembership = openraft::type_config::alias::StoredMembershipOf<Types>;
pub(crate) type SnapshotMeta = openraft::type_config::alias::SnapshotMetaOf<Types>;

/// What is proposed: opaque bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Payload(pub Bytes);

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(crate) fn to_position(id: &LogId) -> LogPosition {
    LogPosition { index: id.index + 1, term: id.leader_id.term }
}

pub(crate) fn option_to_position(id: Option<&LogId>) -> LogPosition {
    id.map(to_position).unwrap_or_default()
}

/// `None` for the position before the first entry.
pub(crate) fn to_log_id(position: LogPosition) -> Option<LogId> {
    let index = position.index.checked_sub(1)?;
    Some(LogId { leader_id: CommittedLeaderId::new(position.term), index })
}

pub(crate) fn to_log_entry(entry: &Entry) -> LogEntry {
    let (kind, body) = match &entry.payload {
        EntryPayload::Blank => (EntryKind::Blank, Bytes::new()),
        EntryPayload::Normal(payload) => (EntryKind::Payload, payload.0.clone()),
        EntryPayload::Membership(m) => (EntryKind::Membership, members::encode(m)),
    };
    LogEntry { position: to_position(&entry.log_id), kind, body }
}

pub(crate) fn from_log_entry(entry: LogEntry) -> Result<Entry> {
    let log_id = to_log_id(entry.position).ok_or_else(|| Error::fatal("malformed log entry: index 0"))?;
    let payload = match entry.kind {
        EntryKind::Blank => EntryPayload::Blank,
        EntryKind::Payload => EntryPayload::Normal(Payload(entry.body)),
        EntryKind::Membership => EntryPayload::Membership(members::decode(&entry.body)?),
    };
    Ok(Entry { log_id, payload })
}
