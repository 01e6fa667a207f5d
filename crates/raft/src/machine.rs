//! What a group's log is applied to, as the group sees it.

use bytes::Bytes;
use meridian_base::{LogPosition, Result};
use serde::{Deserialize, Serialize};

/// The group's members as of some log position, in a form only this crate reads. The state machine
/// stores it with its state (it arrives in [`AppliedEntry::membership`]) and gives it back in
/// [`Recovered`] and with its snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MembershipBlob(pub Bytes);

/// What a state machine holds durably when a node starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Everything up to here is reflected in the state; the log is applied from the next entry on.
    pub position: LogPosition,
    /// The last membership at or below `position`.
    pub membership: MembershipBlob,
}

/// One committed entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedEntry {
    pub position: LogPosition,
    /// What was proposed. Empty for the entries the protocol itself adds: a new leader's first one,
    /// and membership changes.
    pub payload: Bytes,
    /// Set on an entry that changes the membership: to be stored with the state, in the place of
    /// the one before.
    pub membership: Option<MembershipBlob>,
}

/// What a snapshot says about itself before its first chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// The last log entry the snapshot reflects.
    pub position: LogPosition,
    /// The membership as of `position`.
    pub membership: MembershipBlob,
}

/// What a group's log is applied to. All calls come from tasks of the group and block them, so they
/// should be quick.
///
/// After a restart the log is applied again from [`Recovered::position`] on, so applying must be
/// deterministic; entries at or below that position are not seen again.
pub trait StateMachine: Send + Sync + 'static {
    /// What is reflected durably; `None` for a new replica. Called once, when the group starts.
    fn recovered(&self) -> Option<Recovered>;
    /// Applies committed entries. Called in log order, one call at a time, never twice for one
    /// entry in the life of a process. An error ends the group: it stays stopped, and its proposals
    /// fail as [`crate::ProposeError::Stopped`].
    fn apply(&self, batch: Vec<AppliedEntry>) -> Result<()>;
    /// Whether it has taken entries that only count together with later ones: the next may take
    /// long, however small it is.
    fn owes(&self) -> bool {
        false
    }
    /// A consistent view of the state, to be read chunk by chunk while applying goes on: as applied
    /// so far; or, if it [owes](StateMachine::owes) something, from before that, and not from
    /// before what it has said to be durable. Cheap to take. Never called concurrently with
    /// [`StateMachine::apply`].
    fn export(&self) -> Result<Box<dyn SnapshotSource>>;
    /// Starts to replace the whole state by a snapshot. The old state stays in force until
    /// [`SnapshotSink::finish`]; a sink that is dropped without it leaves no trace. Two imports may
    /// be in progress for a moment; at most one is finished.
    fn import(&self, header: SnapshotHeader) -> Result<Box<dyn SnapshotSink>>;
}

/// A snapshot being read.
pub trait SnapshotSource: Send + 'static {
    fn header(&self) -> SnapshotHeader;
    /// The next chunk, at most [`crate::SNAPSHOT_CHUNK_BYTES_MAX`] long; `None` after the last.
    fn next_chunk(&mut self) -> Result<Option<Bytes>>;
}

/// A snapshot being written, chunk by chunk in the order they were read.
pub trait SnapshotSink: Send + 'static {
    fn write(&mut self, chunk: Bytes) -> Result<()>;
    /// Puts the snapshot in the place of the state, atomically and *durably*: after it returns, the
    /// log below the snapshot's position may be gone, so a crash must recover to that position or a
    /// later one. Not concurrent with [`StateMachine::apply`].
    fn finish(self: Box<Self>) -> Result<()>;
}
