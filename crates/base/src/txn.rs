//! What travels between a gateway and a group's primary: what was read, what is written, and what
//! came of it.

use crate::escrow::Late;
use crate::id::{DescriptorId, GroupId, TxnId};
use crate::key::{Key, Target};
use crate::time::Timestamp;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign};
use std::time::Duration;

/// The set of columns of a row that a read looked at or a write changed. Bit 0 is the row's
/// existence; bit `1 + ordinal` is a column; all columns from ordinal 62 on share bit 63, which is
/// coarse and safe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ColumnMask(pub u64);

impl ColumnMask {
    /// Nothing.
    pub const NONE: ColumnMask = ColumnMask(0);
    /// Whether the row exists.
    pub const EXISTENCE: ColumnMask = ColumnMask(1);
    /// Existence and every column.
    pub const ALL: ColumnMask = ColumnMask(u64::MAX);

    /// One column by its ordinal, without existence.
    pub const fn column(ordinal: u32) -> ColumnMask {
        let bit = if ordinal >= 62 { 63 } else { ordinal + 1 };
        ColumnMask(1 << bit)
    }
    /// Whether the two sets have anything in common.
    pub const fn intersects(self, other: ColumnMask) -> bool {
        self.0 & other.0 != 0
    }
    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
impl BitOr for ColumnMask {
    type Output = ColumnMask;
    fn bitor(self, o: ColumnMask) -> ColumnMask {
        ColumnMask(self.0 | o.0)
    }
}
impl BitOrAssign for ColumnMask {
    fn bitor_assign(&mut self, o: ColumnMask) {
        self.0 |= o.0;
    }
}
impl BitAnd for ColumnMask {
    type Output = ColumnMask;
    fn bitand(self, o: ColumnMask) -> ColumnMask {
        ColumnMask(self.0 & o.0)
    }
}
impl fmt::Debug for ColumnMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// «The value of these columns of this key or range was the newest at or below `until`» (the
/// design's `u`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadEntry {
    pub target: Target,
    pub columns: ColumnMask,
    pub until: Timestamp,
}

impl ReadEntry {
    /// The `until` of a read that is done when its Prepare is certified, and whose values come with
    /// the vote: a *reserving read*.
    /// Nothing is newer, so only writers in flight or prepared can be in its way.
    pub const AT_PREPARE: Timestamp = Timestamp::MAX;
}

/// A new version of a key: a whole row, or a tombstone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    pub key: Key,
    /// `None` deletes.
    pub value: Option<Bytes>,
    /// What changed. A write that did not read the row carries [`ColumnMask::ALL`]; insert and
    /// delete change existence.
    pub columns: ColumnMask,
}

/// What a gateway wants done to a key. A primary makes [`Write`]s of it, which the log holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    Delete,
    /// The whole row.
    Put(Bytes),
    /// The key is that of a share ([`crate::escrow`]), which is there: its contribution changes by
    /// this much. Blind: the primary knows what it is (`docs/design/escrow.md`, E4, E5).
    Add(i128),
    /// The key is that of a share of a known incarnation, to which this is added: its grants
    /// change, and its contribution may. A site that has none gets one.
    ///
    /// In a box: transactions keep millions of changes, and few are of this kind.
    Shift(Box<Late>),
    /// The key is that of a share, which keeps its number and its tokens and gets the transaction
    /// as its incarnation: no round of the one before goes on (`docs/design/majority.md`, E20). A
    /// site that has no share gets an empty one, unless it is where one is known to be.
    Renew {
        is_there: bool,
    },
}

impl Change {
    /// What the key holds afterwards, if that does not depend on what it holds before.
    pub fn value(&self) -> Option<&Bytes> {
        match self {
            Change::Put(value) => Some(value),
            Change::Delete | Change::Add(_) | Change::Shift(_) | Change::Renew { .. } => None,
        }
    }
    /// Whether it takes room.
    pub fn adds(&self) -> bool {
        !matches!(self, Change::Delete)
    }
}

/// A change of a key, on its way to the primary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mutation {
    pub key: Key,
    pub change: Change,
    /// As in [`Write::columns`].
    pub columns: ColumnMask,
}

impl Mutation {
    /// Its bytes on the way, about.
    pub fn bytes(&self) -> usize {
        self.key.as_bytes().len() + self.change.value().map_or(0, Bytes::len)
    }
    /// What the log holds of it, unless only the primary can say.
    pub fn resolved(&self) -> Option<Write> {
        let value = match &self.change {
            Change::Delete => None,
            Change::Put(value) => Some(value.clone()),
            Change::Add(_) | Change::Shift(_) | Change::Renew { .. } => return None,
        };
        Some(Write { key: self.key.clone(), value, columns: self.columns })
    }
}

impl From<Write> for Mutation {
    fn from(write: Write) -> Mutation {
        let change = write.value.map_or(Change::Delete, Change::Put);
        Mutation { key: write.key, change, columns: write.columns }
    }
}

/// The catalog's version number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct SchemaVersion(pub u64);

/// Which catalog a transaction planned with.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SchemaUse {
    pub version: SchemaVersion,
    /// The descriptors it used. If none of them changed since `version`, an older version passes.
    pub descriptors: Vec<DescriptorId>,
    /// The catalog takes part in the transaction, which changes the schema, and certifies that it
    /// is the one it was planned with: no lease is asked.
    pub is_certified_by_catalog: bool,
}

/// One transaction's slice for one group, with everything certification needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitRequest {
    pub id: TxnId,
    pub reads: Vec<ReadEntry>,
    /// At most one per key.
    pub writes: Vec<Mutation>,
    /// The largest version timestamp it read anywhere, its schema version's commit timestamp
    /// included.
    pub min_commit: Timestamp,
    pub schema: SchemaUse,
    /// What it read of GLOBAL groups that take no part in it. Everybody certifies all of it.
    pub global: GlobalReads,
}

impl CommitRequest {
    /// What its writes take on the way and in the log, about.
    pub fn bytes(&self) -> usize {
        self.writes.iter().map(Mutation::bytes).sum()
    }
}

/// Read entries of GLOBAL groups, which are certified by participants on replicas of their own
/// regions.
///
/// A GLOBAL group promises closed timestamps in the future, and whatever a replica tells of
/// versions below one holds for ever. So a participant's node asks a replica near it first, up to
/// when the entries hold; certification compares that with the timestamp it draws, and waits for
/// nothing while it holds a place.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GlobalReads {
    pub entries: Vec<(GroupId, Vec<ReadEntry>)>,
    /// No version at or below this changed what the entries read. Found by the participant's node,
    /// and never sent: nothing passes before it has been found.
    #[serde(skip)]
    pub hold_until: Timestamp,
}

impl GlobalReads {
    /// Whether a transaction with these entries may be prepared, or commit, at `at`: whatever
    /// another gateway may have acknowledged by then is at or below `at + max_offset`
    /// (counterexample 24).
    pub fn allow(&self, at: Timestamp, max_offset: Duration) -> bool {
        self.entries.is_empty() || at.plus(max_offset) <= self.hold_until
    }
}

impl CommitRequest {
    /// Whether it is a reserving read: without writes, and read when it is certified.
    pub fn is_reserving(&self) -> bool {
        self.writes.is_empty() && self.reads.iter().any(|e| e.until == ReadEntry::AT_PREPARE)
    }
}

/// What became of a commit. Final: asking again with the same id gives the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommitOutcome {
    /// Durable and applied, at this timestamp.
    Committed(Timestamp),
    /// Certification failed; nothing was written.
    Conflict(Conflict),
    /// The id is at or below the watermark and not in the outcome table: it may have committed long
    /// ago. 40003.
    Forgotten,
}

/// Why certification failed, for the error message and for the retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The key that conflicts, or the start of the range.
    pub key: Key,
    pub reason: ConflictReason,
}

/// The reason clause of 40001.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConflictReason {
    /// A version above the entry's `until` changed what was read.
    ConcurrentWrite,
    /// The same, where the read came from a replica.
    StaleRemoteRead,
    /// A prepared transaction holds it.
    ReservedByPrepared,
    /// The entry is older than what the group still remembers.
    BelowGcThreshold,
    /// The schema version used is not the group's, or its lease bound has passed.
    SchemaChanged,
    /// Another transaction has queued for the row, and this transaction has not.
    Locked,
    /// A site has fewer free tokens of an escrow column than the transaction takes, or no share of
    /// the row (`docs/design/escrow.md`, E6, E7). The only reason that may change, so a primary
    /// logs the refusal.
    Short,
}

impl fmt::Display for ConflictReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConflictReason::ConcurrentWrite => "concurrent write",
            ConflictReason::StaleRemoteRead => "stale remote read",
            ConflictReason::ReservedByPrepared => "reserved by a prepared transaction",
            ConflictReason::BelowGcThreshold => "read too long ago",
            ConflictReason::SchemaChanged => "schema changed",
            ConflictReason::Locked => "locked by another transaction",
            ConflictReason::Short => "too few tokens of an escrow column in this region",
        })
    }
}

// A transaction keeps millions of them.
const _: () = assert!(size_of::<Mutation>() <= 96);
