//! What a transaction did in one group: what it read, and what it will write.

use crate::transport::wire::View;
use bytes::Bytes;
use meridian_base::escrow::{Free, Late};
use meridian_base::{Change, ColumnMask, GroupId, Key, KeyRange, Mutation, NodeId, ReadEntry, Target, Timestamp, TxnId};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};

/// A transaction that has read more than this looks whether it reads the same again: a subquery may
/// run for each of millions of rows.
const ENTRIES_MANY: usize = 1_024;

/// A transaction's slice of one group.
pub(super) struct Part {
    pub group: GroupId,
    /// The group holds GLOBAL tables.
    pub is_global: bool,
    /// The read entries, and where it reads at the group's primary.
    pub view: View,
    /// Where it reads at replicas that are not the primary.
    pub replica_snapshot: Option<Timestamp>,
    pub writes: BTreeMap<Key, Mutation>,
    /// Read, and kept as they are, when the commit is certified: of escrow shares that are set.
    pub held: Vec<KeyRange>,
    /// The primaries whose queues were asked for entries. They are given up there, whoever leads
    /// the group by then.
    pub queued_at: BTreeSet<NodeId>,
    /// The keys whose queues it has entered, as far as it knows.
    pub entries: BTreeSet<Key>,
    /// Tokens of escrow shares that the primary holds for the transaction, as far as it knows.
    pub reserved: BTreeMap<Key, Free>,
    /// Values fetched ahead with their `until`, at the present snapshot.
    pub prefetched: BTreeMap<Key, (Option<Bytes>, Timestamp)>,
    pub prefetched_columns: ColumnMask,
    /// Where in the read entries those beyond [`ENTRIES_MANY`] are, by a hash of what they are
    /// about.
    recorded: HashMap<u64, usize>,
}

impl Part {
    pub fn new(group: GroupId, view: View, is_global: bool) -> Part {
        Part {
            group,
            is_global,
            view,
            replica_snapshot: None,
            writes: BTreeMap::new(),
            held: Vec::new(),
            queued_at: BTreeSet::new(),
            entries: BTreeSet::new(),
            reserved: BTreeMap::new(),
            prefetched: BTreeMap::new(),
            prefetched_columns: ColumnMask::NONE,
            recorded: HashMap::new(),
        }
    }

    /// Remembers what was read, so that it is certified.
    pub fn record(&mut self, target: Target, columns: ColumnMask, until: Timestamp) {
        let entry = ReadEntry { target, columns: columns | ColumnMask::EXISTENCE, until };
        let entries = &mut self.view.entries;
        if entries.len() >= ENTRIES_MANY && until != ReadEntry::AT_PREPARE {
            let place = self.recorded.entry(hash_of(&entry)).or_insert(usize::MAX);
            // One that was read before says more: nothing has changed since then.
            let says_it = |e: &ReadEntry| e.target == entry.target && e.columns == entry.columns && e.until <= until;
            if entries.get(*place).is_some_and(says_it) {
                return;
            }
            *place = entries.len();
        }
        entries.push(entry);
    }

    /// What certification tests.
    pub fn reads(&self) -> Vec<ReadEntry> {
        // What is not written any more, after ROLLBACK TO, need not be kept.
        let held = self.held.iter().filter(|range| self.writes.contains_key(&range.start)).map(|range| ReadEntry {
            target: Target::Range(range.clone()),
            columns: ColumnMask::ALL,
            until: ReadEntry::AT_PREPARE,
        });
        self.view.entries.iter().cloned().chain(held).collect()
    }

    /// Whether it has read something of a range.
    pub fn has_read(&self, range: &KeyRange) -> bool {
        self.view.entries.iter().any(|entry| match &entry.target {
            Target::Key(key) => range.contains(key.as_bytes()),
            Target::Range(read) => read.overlaps(range),
        })
    }

    pub fn has_queued(&self) -> bool {
        !self.queued_at.is_empty()
    }

    /// Whether the group takes part in the commit. What was only read of GLOBAL rows is certified
    /// by those who do.
    pub fn takes_part(&self) -> bool {
        !self.writes.is_empty() || (!self.is_global && !self.view.entries.is_empty())
    }

    /// Everything was read at the primary, at one snapshot: it is consistent and was the newest
    /// then.
    pub fn is_fresh(&self) -> bool {
        self.replica_snapshot.is_none()
    }

    /// A value that was fetched ahead.
    pub fn take_prefetched(&mut self, key: &Key, columns: ColumnMask) -> Option<Option<Bytes>> {
        if self.prefetched.is_empty() || self.prefetched_columns & columns != columns {
            return None;
        }
        let (value, until) = self.prefetched.get(key).cloned()?;
        self.record(Target::Key(key.clone()), columns, until);
        Some(value)
    }

    /// What a read of the key gives by the transaction's own write, if there is one and it says so:
    /// a delta does not.
    pub fn own(&self, key: &Key) -> Option<Option<Bytes>> {
        known(&self.writes.get(key)?.change)
    }

    /// What the transaction itself adds to a share that it has not written whole.
    pub fn added(&self, share: &Key) -> Late {
        match self.writes.get(share).map(|w| &w.change) {
            Some(Change::Add(delta)) => Late::delta(TxnId::default(), *delta),
            Some(Change::Shift(late)) => **late,
            Some(Change::Delete | Change::Put(_) | Change::Renew { .. }) | None => Late::delta(TxnId::default(), 0),
        }
    }

    /// The tokens that this takes, beside those that are held for the transaction.
    pub fn taken(&self, share: &Key) -> Free {
        let (down, up) = self.added(share).takes();
        let held = self.reserved.get(share).copied().unwrap_or_default();
        Free { down: down - held.down, up: up - held.up }
    }

    /// A page with the transaction's own writes in it.
    pub fn overlay(&self, rows: Vec<(Key, Bytes)>, covered: &KeyRange, reverse: bool) -> Vec<(Key, Bytes)> {
        if covered.is_empty() || self.writes.is_empty() {
            return rows;
        }
        let own = self.writes.range(covered.start.clone()..covered.end.clone());
        let own: Vec<_> = own.filter_map(|(k, w)| Some((k.clone(), known(&w.change)?))).collect();
        merged(rows, own.into_iter(), reverse)
    }
}

/// What the key holds after the change; `None`: that depends on what it held.
fn known(change: &Change) -> Option<Option<Bytes>> {
    match change {
        Change::Delete => Some(None),
        Change::Put(value) => Some(Some(value.clone())),
        Change::Add(_) | Change::Shift(_) | Change::Renew { .. } => None,
    }
}

/// Rows with others in their place; `None` removes.
pub(super) fn merged(
    rows: Vec<(Key, Bytes)>,
    newer: impl ExactSizeIterator<Item = (Key, Option<Bytes>)>,
    reverse: bool,
) -> Vec<(Key, Bytes)> {
    if newer.len() == 0 {
        return rows;
    }
    let mut all: BTreeMap<Key, Bytes> = rows.into_iter().collect();
    for (key, value) in newer {
        match value {
            Some(v) => all.insert(key, v),
            None => all.remove(&key),
        };
    }
    let rows = all.into_iter();
    if reverse { rows.rev().collect() } else { rows.collect() }
}

/// A range without some keys, which are in it and in order.
pub(super) fn without(range: &KeyRange, keys: impl Iterator<Item = Key>) -> Vec<KeyRange> {
    let mut pieces = Vec::new();
    let mut start = range.start.clone();
    for key in keys {
        let after = key.successor();
        pieces.push(KeyRange::new(start, key));
        start = after;
    }
    pieces.push(KeyRange::new(start, range.end.clone()));
    pieces.retain(|p| !p.is_empty());
    pieces
}

/// Of what an entry is about.
fn hash_of(entry: &ReadEntry) -> u64 {
    let mut hasher = DefaultHasher::new();
    match &entry.target {
        Target::Key(key) => key.as_bytes().hash(&mut hasher),
        Target::Range(range) => (range.start.as_bytes(), range.end.as_bytes()).hash(&mut hasher),
    }
    entry.columns.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::pages::covered;
    use meridian_base::SessionId;
    use proptest::prelude::*;

    fn key(b: u8) -> Key {
        Key::new(&[b])
    }
    fn part() -> Part {
        let view = View {
            session: SessionId(1),
            began: Timestamp(1),
            since: Timestamp(1),
            read_only: false,
            snapshot: None,
            is_settled: false,
            schema: Default::default(),
            schema_committed_at: Timestamp::MIN,
            lock_timeout: None,
            entries: Vec::new(),
            has_entries: true,
            skipped: Vec::new(),
        };
        Part::new(GroupId(100), view, false)
    }

    #[test]
    fn what_is_read_again_and_again_is_kept_once() {
        let mut part = part();
        let read = |part: &mut Part, n: u64, at: u64| {
            part.record(Target::Key(Key::from(n.to_be_bytes().to_vec())), ColumnMask(2), Timestamp(at));
        };
        for n in 0..2 * ENTRIES_MANY as u64 {
            read(&mut part, n, 5);
        }
        for _ in 0..10 {
            (0..2 * ENTRIES_MANY as u64).for_each(|n| read(&mut part, n, 5));
        }
        // Those of the beginning once more, when they were read again.
        assert_eq!(part.view.entries.len(), 3 * ENTRIES_MANY);
        // A later read of the same is said by the earlier one, an earlier one by none.
        read(&mut part, 2_000, 6);
        assert_eq!(part.view.entries.len(), 3 * ENTRIES_MANY);
        read(&mut part, 2_000, 4);
        assert_eq!(part.view.entries.len(), 3 * ENTRIES_MANY + 1);
    }

    proptest! {
        /// Reading page by page with own writes on top gives what a single map would.
        #[test]
        fn pages_with_own_writes_are_the_whole_range(
            stored in prop::collection::btree_map(0u8..40, any::<u8>(), 0..30),
            own in prop::collection::btree_map(0u8..40, prop::option::of(any::<u8>()), 0..10),
            page_rows in 1usize..7,
            reverse: bool,
        ) {
            let mut part = part();
            part.writes = own.iter().map(|(k, v)| {
                let change = v.map_or(Change::Delete, |v| Change::Put(Bytes::from(vec![v])));
                (key(*k), Mutation { key: key(*k), change, columns: ColumnMask::ALL })
            }).collect();
            let mut expected = stored.clone();
            for (k, v) in &own {
                match v { Some(v) => { expected.insert(*k, *v); } None => { expected.remove(k); } }
            }
            let mut expected: Vec<(Key, Bytes)> = expected.into_iter().map(|(k, v)| (key(k), Bytes::from(vec![v]))).collect();
            if reverse { expected.reverse(); }

            let mut range = Some(KeyRange::new(key(0), key(40)));
            let mut got = Vec::new();
            while let Some(r) = range {
                let mut inside: Vec<(Key, Bytes)> = stored.iter().map(|(k, v)| (key(*k), Bytes::from(vec![*v])))
                    .filter(|(k, _)| r.contains(k.as_bytes())).collect();
                if reverse { inside.reverse(); }
                let page: Vec<_> = inside.iter().take(page_rows).cloned().collect();
                let rest = (inside.len() > page.len()).then(|| {
                    let last = page.last().expect("a page of a longer range has rows").0.clone();
                    if reverse { KeyRange::new(r.start.clone(), last) } else { KeyRange::new(last.successor(), r.end.clone()) }
                });
                got.extend(part.overlay(page, &covered(&r, rest.as_ref(), reverse), reverse));
                range = rest;
            }
            prop_assert_eq!(got, expected);
        }

        /// The pieces of a range and the keys taken out of it make the range again.
        #[test]
        fn a_range_without_keys_misses_nothing_else(taken in prop::collection::btree_set(3u8..20, 0..6)) {
            let range = KeyRange::new(key(3), key(20));
            let pieces = without(&range, taken.iter().map(|b| key(*b)));
            for b in 0u8..25 {
                let inside = pieces.iter().filter(|p| p.contains(key(b).as_bytes())).count();
                prop_assert_eq!(inside, usize::from((3..20).contains(&b) && !taken.contains(&b)), "{}", b);
            }
        }
    }
}
