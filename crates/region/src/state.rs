//! What a group's log determines: the same on every replica, whatever node applied it.

use crate::bugs::PlantedBugs;
use meridian_base::record::{Lease, Payload, SchemaGrant};
use meridian_base::{LogPosition, Result, Timestamp, TxnId};
use std::collections::BTreeMap;

/// Built by applying the log's payloads in order; flushed with the store and part of every snapshot.
#[derive(Clone, Debug, Default)]
pub struct GroupState {
    pub(crate) applied: LogPosition,
    pub(crate) closed: Timestamp,
    pub(crate) watermark: Timestamp,
    pub(crate) newest: Timestamp,
    pub(crate) lease: Option<Lease>,
    pub(crate) grant: SchemaGrant,
    pub(crate) outcomes: BTreeMap<TxnId, Timestamp>,
    pub(crate) bugs: PlantedBugs,
}

impl GroupState {
    /// An empty group's state, before its first log entry.
    pub fn new(bugs: PlantedBugs) -> GroupState {
        GroupState { bugs, ..GroupState::default() }
    }
    /// Applies one entry's payload. Idempotent: an entry at or below [`GroupState::applied`] changes nothing and gives `false`.
    pub fn apply(&mut self, position: LogPosition, payload: &Payload) -> bool {
        let _ = (position, payload);
        todo!()
    }
    /// Entries that are not payloads (membership, a term's first entry) move the position only.
    pub fn skip(&mut self, position: LogPosition) {
        let _ = position;
        todo!()
    }
    /// The last entry applied.
    pub fn applied(&self) -> LogPosition {
        self.applied
    }
    /// No version will appear at or below this, except those of transactions prepared already.
    pub fn closed(&self) -> Timestamp {
        self.closed
    }
    /// Ids at or below this (`F`) are settled; a commit with such an id is answered 40003 unless its outcome is still known.
    pub fn watermark(&self) -> Timestamp {
        self.watermark
    }
    /// The largest commit timestamp applied.
    pub fn newest(&self) -> Timestamp {
        self.newest
    }
    /// The last lease in the log.
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }
    /// The newest schema grant accepted; version 0 with bound 0 before the first.
    pub fn grant(&self) -> &SchemaGrant {
        &self.grant
    }
    /// What became of a transaction, if it committed here and is above the watermark.
    pub fn outcome(&self, id: TxnId) -> Option<Timestamp> {
        self.outcomes.get(&id).copied()
    }
    /// For the store's flush and for snapshots.
    pub fn encode(&self) -> Vec<u8> {
        todo!()
    }
    /// Reads what [`GroupState::encode`] wrote. Malformed bytes are an error, never a panic.
    pub fn decode(bytes: &[u8], bugs: PlantedBugs) -> Result<GroupState> {
        let _ = (bytes, bugs);
        todo!()
    }
}
