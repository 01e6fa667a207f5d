//! A store that keeps every version in a list: the model of what the engine asks of the real one.

use bytes::Bytes;
use meridian_base::record::Committed;
use meridian_base::{ColumnMask, Key, KeyRange, Target, Timestamp};
use meridian_region::Versions;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Version {
    pub at: Timestamp,
    pub columns: ColumnMask,
    pub value: Option<Bytes>,
}

/// Versions per key, ascending.
#[derive(Clone, Debug, Default)]
pub struct Store {
    keys: BTreeMap<Key, Vec<Version>>,
    gc_threshold: Timestamp,
}

impl Store {
    pub fn apply(&mut self, txn: &Committed) {
        for write in &txn.writes {
            let versions = self.keys.entry(write.key.clone()).or_default();
            if versions.iter().any(|v| v.at == txn.at) {
                continue;
            }
            versions.push(Version { at: txn.at, columns: write.columns, value: write.value.clone() });
            versions.sort_by_key(|v| v.at);
        }
    }

    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.keys()
    }
    /// The newest version at or below `s`.
    pub fn get(&self, key: &Key, s: Timestamp) -> Option<&Version> {
        self.keys.get(key)?.iter().rev().find(|v| v.at <= s)
    }

    /// Drops what no read at or above `threshold` needs.
    pub fn collect(&mut self, threshold: Timestamp) {
        self.gc_threshold = self.gc_threshold.max(threshold);
        for versions in self.keys.values_mut() {
            let newest = versions.iter().filter(|v| v.at <= threshold).map(|v| v.at).max();
            versions.retain(|v| v.at > threshold || (Some(v.at) == newest && v.value.is_some()));
        }
    }
}

impl Versions for Store {
    fn newest(&self, key: &Key) -> Option<Timestamp> {
        self.keys.get(key)?.last().map(|v| v.at)
    }
    fn changed_after(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> Option<(Key, Timestamp)> {
        let keys = self.keys.iter().filter(|(k, _)| target.contains(k.as_bytes()));
        let changes = |(k, versions): (&Key, &Vec<Version>)| {
            let change = versions.iter().rev().find(|v| v.at > after && v.columns.intersects(columns))?;
            Some((k.clone(), change.at))
        };
        // Any of them may be told, not only the first.
        let changed: Vec<_> = keys.filter_map(changes).collect();
        changed.get(changed.len() / 2).cloned()
    }
    fn newest_values(&self, range: &KeyRange) -> Vec<(Key, Bytes)> {
        let inside = self.keys.range(range.start.clone()..range.end.clone());
        inside.filter_map(|(k, versions)| Some((k.clone(), versions.last()?.value.clone()?))).collect()
    }
    fn gc_threshold(&self) -> Timestamp {
        self.gc_threshold
    }
}
