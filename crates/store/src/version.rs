//! A version, and what reads return.

use bytes::Bytes;
use meridian_base::key::{Key, KeyRange};
use meridian_base::time::Timestamp;
use meridian_base::txn::ColumnMask;

/// One version of a key: a whole row, or a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The commit timestamp.
    pub at: Timestamp,
    /// What the write changed.
    pub columns: ColumnMask,
    /// `None` is a tombstone.
    pub value: Option<Bytes>,
}

/// How much one page of a scan may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimits {
    /// At most this many rows; at least one.
    pub rows: usize,
    /// The page ends with the row that reaches this many bytes of keys and values.
    pub bytes: usize,
}

impl Default for ScanLimits {
    fn default() -> ScanLimits {
        ScanLimits { rows: 1_024, bytes: 1 << 20 }
    }
}

/// One page of a scan.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ScanPage {
    /// Rows in the order of the scan, without tombstones.
    pub rows: Vec<(Key, Version)>,
    /// What is left to scan, with the same direction; `None` at the end. A page may be empty and
    /// still have a rest (it looked at as many deleted rows as it may look at).
    pub rest: Option<KeyRange>,
}
