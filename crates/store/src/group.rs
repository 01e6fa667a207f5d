//! The store of a node and of a group.

use crate::options::{Backend, Options};
use crate::snapshot::{Export, Import};
use crate::version::{Found, ScanLimits, ScanPage, Version};
use bytes::Bytes;
use meridian_base::error::Result;
use meridian_base::id::{GroupId, LogPosition};
use meridian_base::key::{Key, KeyRange, Target};
use meridian_base::record::Committed;
use meridian_base::time::Timestamp;
use meridian_base::txn::ColumnMask;
use std::sync::Arc;

/// A node's store. Clones are the same store.
#[derive(Clone)]
pub struct Store {}

impl Store {
    /// Opens what is there, or creates it. A folder of a newer version or a damaged one is refused with a fatal error that
    /// names it.
    pub fn open(_backend: Backend, _options: Options) -> Result<Store> {
        todo!()
    }
    /// The groups that have content here, in order.
    pub fn groups(&self) -> Vec<GroupId> {
        todo!()
    }
    /// Opens a group, or creates an empty one.
    pub fn group(&self, _id: GroupId) -> Result<Arc<GroupStore>> {
        todo!()
    }
    /// Removes a group and everything in it. Reads and writes of handles to it fail afterwards.
    pub fn drop_group(&self, _id: GroupId) -> Result<()> {
        todo!()
    }
    /// Bytes applied and not yet flushed, in all groups.
    pub fn dirty_bytes(&self) -> usize {
        todo!()
    }
    /// Whether commits should wait for flushes.
    pub fn over_budget(&self) -> bool {
        todo!()
    }
}

/// The versions of one group. Reads are synchronous and concurrent with the one applier and the one flusher.
pub struct GroupStore {}

impl GroupStore {
    /// Which group.
    pub fn id(&self) -> GroupId {
        todo!()
    }
    /// The last flushed position and the replica state flushed with it; `None` before the first flush. Right after opening,
    /// this is where the log's replay starts.
    pub fn recovered(&self) -> Option<(LogPosition, Bytes)> {
        todo!()
    }

    /// Applies one log entry's transactions. One caller at a time; replaying entries is harmless. When it returns, all
    /// versions are visible; [`GroupStore::applied_ts`] is raised last. An entry without transactions moves the position.
    pub fn apply(&self, _at: LogPosition, _txns: &[Committed]) -> Result<()> {
        todo!()
    }
    /// The position of the last entry applied.
    pub fn applied(&self) -> LogPosition {
        todo!()
    }
    /// The newest commit timestamp applied. A reader at it sees all of the entries applied.
    pub fn applied_ts(&self) -> Timestamp {
        todo!()
    }

    /// The newest version at or below `at`, tombstones included. Below [`GroupStore::gc_threshold`]: an error (72000).
    pub fn get(&self, _key: &[u8], _at: Timestamp) -> Result<Option<Version>> {
        todo!()
    }
    /// As [`GroupStore::get`], with the timestamp of the key's newest version.
    pub fn find(&self, _key: &[u8], _at: Timestamp) -> Result<Found> {
        todo!()
    }
    /// The newest version, tombstones included.
    pub fn newest(&self, _key: &[u8]) -> Result<Option<Version>> {
        todo!()
    }
    /// One page of the rows of a range as of `at`, from the start or, if `reverse`, from the end.
    pub fn scan(&self, _range: &KeyRange, _at: Timestamp, _reverse: bool, _limits: ScanLimits) -> Result<ScanPage> {
        todo!()
    }
    /// A version above `after` that changed any of `columns` in the target, if there is one. Exact: every version counts, not
    /// only each key's newest (counterexample 28), and tombstones do. Below [`GroupStore::gc_threshold`]: an error (72000).
    pub fn changed_after(&self, _target: &Target, _columns: ColumnMask, _after: Timestamp) -> Result<Option<(Key, Timestamp)>> {
        todo!()
    }

    /// Bytes of this group applied and not yet flushed.
    pub fn dirty_bytes(&self) -> usize {
        todo!()
    }
    /// Whether memory asks for a cut and a flush of this group now. (Time does too; that is the caller's.)
    pub fn wants_flush(&self) -> bool {
        todo!()
    }
    /// Called by the applier between two entries: what is applied so far, with this replica state, becomes the next unit to
    /// flush. A unit not yet taken up by [`GroupStore::flush_step`] is extended.
    pub fn cut(&self, _state: Bytes) {
        todo!()
    }
    /// Makes the pending cut durable; `false` if there was none. Blocks on the disk, but neither readers nor the applier.
    /// After an error the cut stays pending.
    pub fn flush_step(&self) -> Result<bool> {
        todo!()
    }
    /// What a crash cannot take away. The log may be truncated up to here.
    pub fn durable(&self) -> LogPosition {
        todo!()
    }

    /// The content as of the last flushed cut (cut and flush first for a newer one). An error before the first.
    pub fn export(&self) -> Result<Export> {
        todo!()
    }
    /// Starts taking in a snapshot, beside the group's present content.
    pub fn import(&self) -> Result<Import> {
        todo!()
    }

    /// From now on nothing below `threshold` can be read, and versions visible only below it may go. Durable when it
    /// returns; a smaller threshold than the present one does nothing.
    pub fn collect_garbage(&self, _threshold: Timestamp) -> Result<()> {
        todo!()
    }
    /// The smallest timestamp that can be read.
    pub fn gc_threshold(&self) -> Timestamp {
        todo!()
    }
}
