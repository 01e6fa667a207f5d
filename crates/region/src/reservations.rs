//! What prepared transactions hold: the keys they write, the keys and ranges they read.
//!
//! A prepared transaction does not end by itself and not in the order of timestamps, so its keys
//! are not in the conflict index but here, with the transaction's id, until its outcome is applied.
//! The group's state keeps one of these from the log, for readers at every replica; the engine
//! keeps one that also has what is certified and on its way into the log.
//!
//! Every node of an index costs time under the group's lock, so the keys of a large transaction are
//! in none: they are kept in order, and every test searches those of each large transaction. A key
//! that a transaction both reads and writes is held as written, which says more.

use crate::held_ranges::{HeldRanges, Hold};
use crate::index_key::IndexKey;
use meridian_base::record::Reserved;
use meridian_base::{ColumnMask, Key, KeyRange, Target, Timestamp, TxnId, Write};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included};

/// A transaction with more keys is large; where assertions are on, most that are simulated are.
const INDEXED_MAX: usize = if cfg!(debug_assertions) { 2 } else { 1_000 };

/// Keys in their order, and columns of each.
type Keys = Vec<(Key, ColumnMask)>;

/// What one transaction holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Footprint {
    /// Its vote.
    pub at: Timestamp,
    /// The keys that it reads and does not write.
    pub reads: Keys,
    pub ranges: Vec<KeyRange>,
    pub writes: Keys,
}

impl Footprint {
    fn is_large(&self) -> bool {
        self.reads.len() + self.writes.len() > INDEXED_MAX
    }
}

/// Whether some of these columns of the target are among the keys.
fn meets(keys: &Keys, target: &Target, columns: ColumnMask) -> bool {
    let from = keys.partition_point(|(key, _)| key < target.start());
    let mut inside = keys[from..].iter().take_while(|(key, _)| target.contains(key.as_bytes()));
    inside.any(|(_, of_key)| of_key.intersects(columns))
}

/// See the module's essay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reservations {
    /// The keys of large transactions are not here.
    writers: BTreeMap<IndexKey, Vec<Hold>>,
    /// Nor here.
    readers: BTreeMap<IndexKey, Vec<Hold>>,
    ranges: HeldRanges,
    large: BTreeSet<TxnId>,
    by_id: BTreeMap<TxnId, Footprint>,
    by_time: BTreeSet<(Timestamp, TxnId)>,
}

impl Reservations {
    /// A transaction prepared at `at` holds these; nothing changes if it does already.
    pub fn add(&mut self, id: TxnId, at: Timestamp, reads: &[Reserved], writes: &[Write]) {
        if self.by_id.contains_key(&id) {
            return;
        }
        let mut writes: Keys = writes.iter().map(|w| (w.key.clone(), w.columns)).collect();
        writes.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (mut keys, mut ranges) = (Keys::new(), Vec::new());
        for read in reads {
            match &read.target {
                Target::Key(key) if writes.binary_search_by(|(written, _)| written.cmp(key)).is_ok() => {}
                Target::Key(key) => keys.push((key.clone(), read.columns)),
                Target::Range(range) => {
                    self.ranges.add(range, Hold { id, at, columns: read.columns });
                    ranges.push(range.clone());
                }
            }
        }
        keys.sort_by(|(a, _), (b, _)| a.cmp(b));
        let footprint = Footprint { at, reads: keys, ranges, writes };
        if footprint.is_large() {
            self.large.insert(id);
        } else {
            let hold = |index: &mut BTreeMap<IndexKey, Vec<Hold>>, (key, columns): &(Key, ColumnMask)| {
                Hold { id, at, columns: *columns }.join(index.entry(IndexKey::new(key)).or_default());
            };
            footprint.writes.iter().for_each(|key| hold(&mut self.writers, key));
            footprint.reads.iter().for_each(|key| hold(&mut self.readers, key));
        }
        self.by_id.insert(id, footprint);
        self.by_time.insert((at, id));
    }

    /// The transaction has ended; gives what it held.
    pub fn remove(&mut self, id: TxnId) -> Option<Footprint> {
        let footprint = self.by_id.remove(&id)?;
        self.by_time.remove(&(footprint.at, id));
        if !self.large.remove(&id) {
            footprint.writes.iter().for_each(|(key, _)| release(&mut self.writers, key, id));
            footprint.reads.iter().for_each(|(key, _)| release(&mut self.readers, key, id));
        }
        footprint.ranges.iter().for_each(|range| self.ranges.remove(range, id));
        Some(footprint)
    }

    /// The earliest prepared writer at or below `through` of these columns of the target.
    pub fn writer(&self, target: &Target, columns: ColumnMask, through: Timestamp) -> Option<(TxnId, Timestamp)> {
        if self.by_time.first().is_none_or(|(first, _)| *first > through) {
            return None;
        }
        let meets = |hold: &&Hold| hold.at <= through && hold.columns.intersects(columns);
        let earliest = |holds: &[Hold]| holds.iter().filter(meets).map(|h| (h.at, h.id)).min();
        let found = match target {
            Target::Key(key) => self.writers.get(&IndexKey::new(key)).and_then(|holds| earliest(holds)),
            Target::Range(range) if range.is_empty() => None,
            Target::Range(range) => {
                let (start, end) = (IndexKey::new(&range.start), IndexKey::new(&range.end));
                let inside = self.writers.range((Included(&start), Excluded(&end)));
                inside.filter_map(|(_, holds)| earliest(holds)).min()
            }
        };
        let large = self.large.iter().map(|id| (self.by_id[id].at, *id));
        let large = large.filter(|(at, id)| *at <= through && self::meets(&self.by_id[id].writes, target, columns)).min();
        found.into_iter().chain(large).min().map(|(at, id)| (id, at))
    }

    /// A prepared transaction that a write of these columns of the key would disturb: it writes the
    /// key, or has read what the write changes.
    pub fn disturbed(&self, key: &Key, columns: ColumnMask) -> Option<TxnId> {
        if self.by_id.is_empty() {
            return None;
        }
        let index_key = IndexKey::new(key);
        if let Some(hold) = self.writers.get(&index_key).and_then(|holds| holds.first()) {
            return Some(hold.id);
        }
        if !self.large.is_empty() {
            let target = Target::Key(key.clone());
            let meets = |id: &&TxnId| {
                let Footprint { reads, writes, .. } = &self.by_id[*id];
                self::meets(writes, &target, ColumnMask::ALL) || self::meets(reads, &target, columns)
            };
            if let Some(id) = self.large.iter().find(meets) {
                return Some(*id);
            }
        }
        let reader = self.readers.get(&index_key).and_then(|holds| Hold::earliest(holds, columns));
        let covering = || self.ranges.earliest(&index_key, columns);
        reader.or_else(covering).map(|hold| hold.id)
    }

    /// The latest vote among those that hold something.
    pub fn last(&self) -> Option<Timestamp> {
        self.by_time.last().map(|(at, _)| *at)
    }
    /// The indexes say what the transactions hold, and nothing else.
    pub fn invariant_indexes(&self) {
        assert_eq!(self.by_id.len(), self.by_time.len());
        let (mut writers, mut readers, mut ranges) = (0, 0, 0);
        for (id, footprint) in &self.by_id {
            assert!(self.by_time.contains(&(footprint.at, *id)), "{id} is not in the order of votes");
            for keys in [&footprint.reads, &footprint.writes] {
                assert!(keys.is_sorted_by(|(a, _), (b, _)| a <= b), "the keys of {id} are in order");
            }
            assert_eq!(self.large.contains(id), footprint.is_large(), "{id} is large by its keys");
            ranges += footprint.ranges.iter().filter(|range| !range.is_empty()).count();
            if !footprint.is_large() {
                (writers, readers) = (writers + footprint.writes.len(), readers + footprint.reads.len());
            }
        }
        let holds = |map: &BTreeMap<IndexKey, Vec<Hold>>| map.values().map(Vec::len).sum::<usize>();
        assert_eq!((holds(&self.writers), holds(&self.readers), self.ranges.len()), (writers, readers, ranges));
        self.ranges.invariant_levels();
    }

    /// How many transactions hold something.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }
    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
    /// Whether this transaction holds something.
    pub fn contains(&self, id: TxnId) -> bool {
        self.by_id.contains_key(&id)
    }
}

fn release(map: &mut BTreeMap<IndexKey, Vec<Hold>>, key: &Key, id: TxnId) {
    if let Entry::Occupied(mut holds) = map.entry(IndexKey::new(key))
        && Hold::leave(id, holds.get_mut())
    {
        holds.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::{KeyRange, NodeId};
    use proptest::prelude::*;

    fn key(k: u8) -> Key {
        Key::new(&[k])
    }
    fn target(from: u8, to: Option<u8>) -> Target {
        to.map_or(Target::Key(key(from)), |to| Target::Range(KeyRange::new(key(from), key(to))))
    }
    fn txn(n: u64) -> TxnId {
        TxnId { hlc: Timestamp(n), gateway: NodeId(1) }
    }

    type Slice = (u64, Vec<(u8, Option<u8>, u64)>, Vec<(u8, u64)>);

    fn slices() -> impl Strategy<Value = Vec<Slice>> {
        let read = (0..6u8, prop::option::of(0..8u8), 1..8u64);
        let slice = (1..50u64, prop::collection::vec(read, 0..4), prop::collection::vec((0..6u8, 1..8u64), 0..4));
        prop::collection::vec(slice, 0..6)
    }

    proptest! {
        #[test]
        fn it_answers_like_the_list_of_slices(
            slices in slices(),
            gone in prop::collection::vec(any::<bool>(), 6),
            from in 0..6u8, to in prop::option::of(0..8u8), columns in 1..8u64, through in 0..60u64,
        ) {
            let mut held = Reservations::default();
            let mut model = Vec::new();
            for (n, (at, reads, writes)) in slices.iter().enumerate() {
                let reads: Vec<_> = reads.iter().map(|(f, t, c)| Reserved { target: target(*f, *t), columns: ColumnMask(*c) }).collect();
                let mut writes: Vec<_> = writes.iter().map(|(k, c)| Write { key: key(*k), value: None, columns: ColumnMask(*c) }).collect();
                writes.sort_by(|a, b| a.key.cmp(&b.key));
                writes.dedup_by(|a, b| a.key == b.key);
                held.add(txn(n as u64), Timestamp(*at), &reads, &writes);
                model.push((txn(n as u64), Timestamp(*at), reads, writes));
            }
            for (n, gone) in gone.iter().enumerate() {
                prop_assert_eq!(*gone && held.remove(txn(n as u64)).is_some(), *gone && n < slices.len());
            }
            model.retain(|(id, ..)| !gone[id.hlc.0 as usize]);
            held.invariant_indexes();
            let mut later_first = Reservations::default();
            model.iter().rev().for_each(|(id, at, reads, writes)| later_first.add(*id, *at, reads, writes));
            prop_assert_eq!(&later_first, &held);
            let (asked, columns, through) = (target(from, to), ColumnMask(columns), Timestamp(through));
            let writes = |t: &(TxnId, Timestamp, Vec<Reserved>, Vec<Write>)| {
                t.1 <= through && t.3.iter().any(|w| asked.contains(w.key.as_bytes()) && w.columns.intersects(columns))
            };
            let first = model.iter().filter(|t| writes(t)).map(|t| t.1).min();
            prop_assert_eq!(held.writer(&asked, columns, through).map(|(_, at)| at), first);
            let disturbs = |t: &&(TxnId, Timestamp, Vec<Reserved>, Vec<Write>)| {
                t.3.iter().any(|w| w.key == key(from))
                    || t.2.iter().any(|r| r.target.contains(key(from).as_bytes()) && r.columns.intersects(columns))
            };
            let disturbed: Vec<_> = model.iter().filter(disturbs).map(|t| t.0).collect();
            let found = held.disturbed(&key(from), columns);
            prop_assert_eq!(found.is_some(), !disturbed.is_empty());
            prop_assert!(found.is_none_or(|id| disturbed.contains(&id)));
            prop_assert_eq!(held.last(), model.iter().map(|t| t.1).max());
            for (id, ..) in &model { held.remove(*id); }
            prop_assert_eq!(held, Reservations::default());
        }
    }
}
