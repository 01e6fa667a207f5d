//! What the engine asks of the store, and nothing more, so that the engine is tested against a
//! model of it.

use bytes::Bytes;
use meridian_base::{ColumnMask, Key, KeyRange, Target, Timestamp};

/// The applied versions of a group.
pub trait Versions {
    /// The newest applied version of a key, tombstones included; `None` if there is none left.
    fn newest(&self, key: &Key) -> Option<Timestamp>;
    /// An applied version of the target above `after` that changed one of the columns, if there is
    /// one. Exact for every `after` at or above [`Versions::gc_threshold`]: *every* version above
    /// `after` counts, not only the newest one's mask.
    fn changed_after(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> Option<(Key, Timestamp)>;
    /// The newest applied versions of a range, without tombstones, in the order of keys. For the
    /// few keys of an escrow share.
    fn newest_values(&self, range: &KeyRange) -> Vec<(Key, Bytes)>;
    /// Versions that were not the newest at or below this may be gone.
    fn gc_threshold(&self) -> Timestamp;
}

impl<V: Versions + ?Sized> Versions for &V {
    fn newest(&self, key: &Key) -> Option<Timestamp> {
        (**self).newest(key)
    }
    fn changed_after(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> Option<(Key, Timestamp)> {
        (**self).changed_after(target, columns, after)
    }
    fn newest_values(&self, range: &KeyRange) -> Vec<(Key, Bytes)> {
        (**self).newest_values(range)
    }
    fn gc_threshold(&self) -> Timestamp {
        (**self).gc_threshold()
    }
}
