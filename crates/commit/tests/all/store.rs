//! A store that keeps every version in a list.

use bytes::Bytes;
use meridian_base::record::Committed;
use meridian_base::{ColumnMask, Key, KeyRange, Target, Timestamp};
use meridian_region::Versions;
use std::collections::BTreeMap;

/// Versions per key, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Store {
    keys: BTreeMap<Key, Vec<(Timestamp, Option<Bytes>)>>,
}

impl Store {
    pub fn apply(&mut self, txn: &Committed) {
        for write in &txn.writes {
            let versions = self.keys.entry(write.key.clone()).or_default();
            if !versions.iter().any(|(at, _)| *at == txn.at) {
                versions.push((txn.at, write.value.clone()));
                versions.sort_by_key(|(at, _)| *at);
            }
        }
    }
    pub fn versions(&self, key: &Key) -> &[(Timestamp, Option<Bytes>)] {
        self.keys.get(key).map_or(&[], Vec::as_slice)
    }
}

impl Versions for Store {
    fn newest(&self, key: &Key) -> Option<Timestamp> {
        self.versions(key).last().map(|(at, _)| *at)
    }
    fn changed_after(&self, target: &Target, _: ColumnMask, after: Timestamp) -> Option<(Key, Timestamp)> {
        let changed = self.keys.iter().filter(|(k, _)| target.contains(k.as_bytes()));
        changed.filter_map(|(k, v)| Some((k.clone(), v.last()?.0))).find(|(_, at)| *at > after)
    }
    fn newest_values(&self, range: &KeyRange) -> Vec<(Key, Bytes)> {
        let inside = self.keys.range(range.start.clone()..range.end.clone());
        inside.filter_map(|(k, versions)| Some((k.clone(), versions.last()?.1.clone()?))).collect()
    }
    fn gc_threshold(&self) -> Timestamp {
        Timestamp::MIN
    }
}
