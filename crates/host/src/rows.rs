//! The rows that a host holds: every version that the log has brought here.

use bytes::Bytes;
use meridian_base::record::Committed;
use meridian_base::{ColumnMask, Key, KeyRange, Target, Timestamp};
use meridian_region::Versions;
use std::collections::BTreeMap;

/// What a host asks of its store, beside what its engine does.
pub trait Rows: Versions {
    /// The newest version of a key at or below `s`, tombstones included.
    fn get(&self, key: &Key, s: Timestamp) -> Option<Version>;
    /// The log has these versions. Those that are there already stay as they are.
    fn apply(&mut self, txn: &Committed);
}

/// A version of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub at: Timestamp,
    /// What it changed.
    pub columns: ColumnMask,
    /// `None`: deleted.
    pub value: Option<Bytes>,
}

/// Rows in memory: all versions of every key, ascending.
#[derive(Clone, Debug, Default)]
pub struct MemoryRows(BTreeMap<Key, Vec<Version>>);

impl MemoryRows {
    /// The keys of which there is a version.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.keys()
    }
}

impl Rows for MemoryRows {
    fn get(&self, key: &Key, s: Timestamp) -> Option<Version> {
        self.0.get(key)?.iter().rev().find(|version| version.at <= s).cloned()
    }

    fn apply(&mut self, txn: &Committed) {
        for write in &txn.writes {
            let versions = self.0.entry(write.key.clone()).or_default();
            let place = versions.partition_point(|version| version.at < txn.at);
            if versions.get(place).is_none_or(|version| version.at != txn.at) {
                versions.insert(place, Version { at: txn.at, columns: write.columns, value: write.value.clone() });
            }
        }
    }
}

impl Versions for MemoryRows {
    fn newest(&self, key: &Key) -> Option<Timestamp> {
        self.0.get(key)?.last().map(|version| version.at)
    }
    fn changed_after(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> Option<(Key, Timestamp)> {
        let changed = |(key, versions): (&Key, &Vec<Version>)| {
            let mut later = versions.iter().rev().take_while(|version| version.at > after);
            later.find(|version| version.columns.intersects(columns)).map(|version| (key.clone(), version.at))
        };
        match target {
            Target::Key(key) => self.0.get_key_value(key).and_then(changed),
            Target::Range(range) if range.is_empty() => None,
            Target::Range(range) => self.0.range(range.start.clone()..range.end.clone()).find_map(changed),
        }
    }
    fn newest_values(&self, range: &KeyRange) -> Vec<(Key, Bytes)> {
        let newest = |(key, versions): (&Key, &Vec<Version>)| Some((key.clone(), versions.last()?.value.clone()?));
        self.0.range(range.start.clone()..range.end.clone()).filter_map(newest).collect()
    }
    fn gc_threshold(&self) -> Timestamp {
        Timestamp::MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::{TxnId, Write};

    #[test]
    fn versions_come_in_any_order_and_once() {
        let mut rows = MemoryRows::default();
        let key = Key::new(b"k");
        for at in [5, 3, 5] {
            let value = Some(Bytes::copy_from_slice(&[at as u8]));
            let write = Write { key: key.clone(), value, columns: ColumnMask::column(at as u32) };
            rows.apply(&Committed { id: TxnId::default(), at: Timestamp(at), writes: vec![write] });
        }
        assert_eq!(rows.newest(&key), Some(Timestamp(5)));
        assert_eq!(rows.get(&key, Timestamp(4)).unwrap().at, Timestamp(3));
        assert_eq!(rows.get(&key, Timestamp(2)), None);
        let target = Target::Key(key);
        assert!(rows.changed_after(&target, ColumnMask::column(3), Timestamp(3)).is_none());
        assert!(rows.changed_after(&target, ColumnMask::column(3), Timestamp(2)).is_some());
    }
}
