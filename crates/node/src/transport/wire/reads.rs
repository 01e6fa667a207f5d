//! Reads between a gateway and a replica: what is asked, and what is found.

use bytes::Bytes;
use meridian_base::escrow::{Late, Offer};
use meridian_base::{ColumnMask, Key, KeyRange, ReadEntry, SchemaUse, SessionId, Timestamp};
use meridian_sql::env::Locking;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The transaction that reads, as the primary needs to know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct View {
    pub session: SessionId,
    pub began: Timestamp,
    /// Its age, for deadlocks: see [`Owner`].
    pub since: Timestamp,
    pub read_only: bool,
    /// Where it reads in this group; `None` at its first read there.
    pub snapshot: Option<Timestamp>,
    /// Nothing at or below the snapshot is in flight or ever will be.
    pub is_settled: bool,
    pub schema: SchemaUse,
    /// The commit timestamp of the schema version it uses; a fresh snapshot is not below it.
    pub schema_committed_at: Timestamp,
    pub lock_timeout: Option<Duration>,
    /// What it read in this group so far: a wait, or an uncertain version, may move the snapshot.
    pub entries: Vec<ReadEntry>,
    /// `entries` is all of it. If it is not, a read that would move the snapshot restarts the
    /// transaction.
    pub has_entries: bool,
    /// Rows that the read just made has left out because others had locked them (`SKIP LOCKED`):
    /// nothing was read of them, and nothing is certified.
    #[serde(skip)]
    pub skipped: Vec<Key>,
}

/// What a replica that is not the primary needs to know of the transaction that reads.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ReplicaView {
    /// Where it reads in this group; `None` at its first read there.
    pub snapshot: Option<Timestamp>,
    /// A snapshot below this is of no use: the schema version it planned with did not hold yet.
    pub above: Timestamp,
}

/// Where a transaction reads GLOBAL rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GlobalView {
    /// The gateway's clock: a version above it is uncertain.
    pub now: Timestamp,
    /// Everything at or below this is seen.
    pub at: Timestamp,
    pub schema: SchemaUse,
}

/// What a replica found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReplicaAnswer {
    /// Where the transaction reads in this group from now on.
    pub snapshot: Timestamp,
    /// The largest version timestamp read.
    pub newest: Timestamp,
    /// With each result the `until` of what it read: one for each key, or one for the page.
    pub results: Vec<(ReadResult, Vec<Timestamp>)>,
}

/// One read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ReadOp {
    Get {
        keys: Vec<Key>,
        columns: ColumnMask,
        locking: WireLocking,
    },
    Scan {
        range: KeyRange,
        columns: ColumnMask,
        reverse: bool,
        limit: Option<u64>,
        locking: WireLocking,
    },
    /// Enters the queue of an escrow share, beside other changes of it, and asks for its free
    /// tokens. For a site's primary only. From `ClusterVersion::ESCROW` on.
    Share {
        key: Key,
    },
    /// The same, and holds the tokens for the transaction that `late`, all that it adds to the
    /// share, takes. What is answered is offered to the transaction alone.
    Reserve {
        key: Key,
        late: Late,
    },
}

impl ReadOp {
    /// Prepares a second run of the read: see [`WireLocking::without_brief_wait`].
    pub fn repeat_without_brief_waits(&mut self) {
        if let ReadOp::Get { locking, .. } | ReadOp::Scan { locking, .. } = self {
            *locking = locking.without_brief_wait();
        }
    }
}

/// `sql::env::Locking`, on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireLocking {
    None,
    Exclusive(WireBusy),
    Shared(WireBusy),
    KeyKept(WireBusy),
    KeyShared(WireBusy),
}

/// What to do about a taken key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireBusy {
    Wait,
    Refuse,
    Skip,
    /// Wait for a moment, then go on without.
    Briefly,
}

impl WireLocking {
    /// The locking of a read that is made again. A brief wait happens once: the second run takes no
    /// entry in the queue. Other modes stay as they are.
    pub fn without_brief_wait(self) -> WireLocking {
        use WireLocking::{Exclusive, KeyKept, KeyShared, None, Shared};
        match self {
            None => None,
            Exclusive(busy) | Shared(busy) | KeyKept(busy) | KeyShared(busy) if busy == WireBusy::Briefly => None,
            waits => waits,
        }
    }
}

impl From<Locking> for WireLocking {
    fn from(l: Locking) -> WireLocking {
        use meridian_sql::env::OnLocked;
        let busy = |o| match o {
            OnLocked::Wait => WireBusy::Wait,
            OnLocked::NoWait => WireBusy::Refuse,
            OnLocked::Skip => WireBusy::Skip,
            OnLocked::Briefly => WireBusy::Briefly,
        };
        match l {
            Locking::None => WireLocking::None,
            Locking::Exclusive(o) => WireLocking::Exclusive(busy(o)),
            Locking::Shared(o) => WireLocking::Shared(busy(o)),
            Locking::KeyKept(o) => WireLocking::KeyKept(busy(o)),
            Locking::KeyShared(o) => WireLocking::KeyShared(busy(o)),
        }
    }
}

/// What reads found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReadAnswer {
    /// Where the transaction reads in this group from now on. If it moved, every entry's `until`
    /// moves along.
    pub snapshot: Timestamp,
    /// See [`View::is_settled`].
    pub is_settled: bool,
    /// The largest version timestamp read.
    pub newest: Timestamp,
    pub results: Vec<ReadResult>,
    /// See [`View::skipped`].
    pub skipped: Vec<Key>,
}

/// The answer to one [`ReadOp`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ReadResult {
    Values(Vec<Option<Bytes>>),
    Page {
        rows: Vec<(Key, Bytes)>,
        rest: Option<KeyRange>,
    },
    /// `None`: the site has no share of the row.
    Share(Option<Offer>),
}

/// The rows of everything that a reserving read has reserved at a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    Rows(Vec<(Key, Bytes)>),
    /// More than `limits::RESERVED_BYTES_MAX`.
    TooLarge,
}
