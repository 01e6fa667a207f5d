//! Recent versions written by transactions over several groups, with their votes.
//!
//! Such a version may appear *below* versions that are there already (of other keys): its timestamp
//! is the largest of several groups' votes, and it becomes visible when the outcome is in the log.
//! So it cannot be in the conflict index, for which «applied» is one timestamp. And a read has to
//! know the vote `p` beside the commit timestamp `c`: one that takes place at `s` with `p <= s < c`
//! may have begun after the transaction was acknowledged, and must move to `c` (counterexample 20).
//! A version of a single-group transaction has `p = c` and never needs that.
//!
//! Every such version above the *low-water mark* is here. Below the mark the store answers, and the
//! vote is unknown.

use crate::index_key::IndexKey;
use meridian_base::{ColumnMask, Key, Target, Timestamp};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

#[derive(Clone, Copy, Debug)]
struct Version {
    at: Timestamp,
    vote: Timestamp,
    columns: ColumnMask,
}

/// See the module's essay.
#[derive(Clone, Debug)]
pub struct Decided {
    keys: BTreeMap<IndexKey, Vec<Version>>,
    order: BTreeMap<Timestamp, Vec<IndexKey>>,
    len: usize,
    len_max: usize,
    low_water: Timestamp,
}

impl Decided {
    /// Empty: the store holds every such version at or below `low_water`, and no other exist.
    pub fn new(low_water: Timestamp, len_max: usize) -> Decided {
        Decided { keys: BTreeMap::new(), order: BTreeMap::new(), len: 0, len_max, low_water }
    }

    /// Below this, ask the store as well.
    pub fn low_water(&self) -> Timestamp {
        self.low_water
    }
    /// Below this, too, the store has to be asked from now on.
    pub fn raise_low_water(&mut self, through: Timestamp) {
        self.low_water = self.low_water.max(through);
    }
    /// How many versions are here.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The versions of a transaction became visible. What would push most others out is left to the
    /// store.
    pub fn add_all(&mut self, writes: &[(Key, ColumnMask)], at: Timestamp, vote: Timestamp) {
        if writes.len() > self.len_max / 4 {
            return self.raise_low_water(at);
        }
        writes.iter().for_each(|(key, columns)| self.add(key, *columns, at, vote));
    }

    /// A version became visible.
    pub fn add(&mut self, key: &Key, columns: ColumnMask, at: Timestamp, vote: Timestamp) {
        if at <= self.low_water {
            return;
        }
        let key = IndexKey::new(key);
        self.order.entry(at).or_default().push(key.clone());
        self.keys.entry(key).or_default().push(Version { at, vote, columns });
        self.len += 1;
        while self.len > self.len_max {
            let Some((at, keys)) = self.order.pop_first() else { break };
            self.low_water = self.low_water.max(at);
            self.len -= keys.len();
            for key in keys {
                let Some(versions) = self.keys.get_mut(&key) else { continue };
                versions.retain(|v| v.at > at);
                if versions.is_empty() {
                    self.keys.remove(&key);
                }
            }
        }
    }

    /// A version above `after` that changed one of these columns of the target.
    pub fn changed_after(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> Option<Key> {
        self.look(target, after, |v| v.columns.intersects(columns)).map(|(key, _)| key)
    }

    /// The last version above `s` of these columns of the target whose vote is at or below `s`: a
    /// read at `s` would miss what may have been acknowledged before it began.
    pub fn missed(&self, target: &Target, columns: ColumnMask, s: Timestamp) -> Option<Timestamp> {
        let (mut last, mut found) = (s, None);
        while let Some((_, at)) = self.look(target, last, |v| v.vote <= s && v.columns.intersects(columns)) {
            (last, found) = (at, Some(at));
        }
        found
    }

    fn look(&self, target: &Target, after: Timestamp, accept: impl Fn(&Version) -> bool) -> Option<(Key, Timestamp)> {
        let (last, _) = self.order.last_key_value()?;
        if *last <= after {
            return None;
        }
        let of = |key: &IndexKey| {
            let versions = self.keys.get(key)?;
            versions.iter().find(|v| v.at > after && accept(v)).map(|v| (key.to_key(), v.at))
        };
        let (start, end) = match target {
            Target::Key(key) => return of(&IndexKey::new(key)),
            Target::Range(range) => (IndexKey::new(&range.start), IndexKey::new(&range.end)),
        };
        let recent = self.order.range((Excluded(after), Unbounded)).rev().flat_map(|(_, keys)| keys);
        recent.filter(|key| **key >= start && **key < end).find_map(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::KeyRange;
    use proptest::prelude::*;

    fn key(k: u8) -> Key {
        Key::new(&[k])
    }

    proptest! {
        #[test]
        fn it_answers_like_the_list_of_all_versions(
            versions in prop::collection::vec((0..5u8, 1..8u64, 1..40u64, 0..10u64), 0..40),
            len_max in 1..30usize,
            asked in (0..5u8, prop::option::of(0..7u8), 1..8u64, 0..45u64),
        ) {
            let mut decided = Decided::new(Timestamp::MIN, len_max);
            let mut model = Vec::new();
            for (k, columns, at, before) in versions {
                let (at, vote) = (Timestamp(at), Timestamp(at.saturating_sub(before)));
                if model.iter().any(|(key, _, t, _)| *key == k && *t == at) { continue }
                match before % 2 {
                    0 => decided.add(&key(k), ColumnMask(columns), at, vote),
                    _ => decided.add_all(&[(key(k), ColumnMask(columns))], at, vote),
                }
                model.push((k, ColumnMask(columns), at, vote));
                prop_assert!(decided.len() <= len_max);
                let held: usize = decided.keys.values().map(Vec::len).sum();
                let ordered: usize = decided.order.values().map(Vec::len).sum();
                prop_assert_eq!((held, ordered), (decided.len(), decided.len()), "what is in memory is counted");
                prop_assert!(decided.keys.values().all(|versions| !versions.is_empty()));
            }
            let (from, to, columns, after) = asked;
            let (columns, after) = (ColumnMask(columns), Timestamp(after).max(decided.low_water()));
            let target = to.map_or(Target::Key(key(from)), |to| Target::Range(KeyRange::new(key(from), key(to))));
            let hits = || model.iter().filter(|(k, c, at, _)| target.contains(&[*k]) && c.intersects(columns) && *at > after);
            let changed = decided.changed_after(&target, columns, after);
            prop_assert_eq!(changed.is_some(), hits().count() > 0);
            prop_assert!(changed.is_none_or(|k| hits().any(|h| key(h.0) == k)));
            let missed = hits().filter(|(.., vote)| *vote <= after).map(|(_, _, at, _)| *at).max();
            prop_assert_eq!(decided.missed(&target, columns, after), missed);
        }
    }
}
