//! The row table: a group's recent versions in memory.
//!
//! It is three things at once: the cache of hot rows, the
//! overlay of what is applied and not yet flushed, and the buffer that flushes are made from. That
//! works because of two invariants:
//!
//! - a row that is here contains its key's newest version;
//! - and every version between that one and the oldest one that is here.
//!
//! So a reader that finds a version at or below its timestamp is done, and one that does not looks
//! into the spaces for what is older than everything here. A key that is not here has all its
//! versions in the spaces.
//!
//! Each version carries the number of the flush *unit* it belongs to; 0 (*clean*) once it is
//! durable. Only rows that are entirely clean are evicted; those that end in a tombstone at once.
//!
//! As long as no row of an index was evicted, and the spaces were empty when the table was made,
//! what is not here of that index is nowhere: reads of it ask the spaces for old versions only.
//!
//! Filling the cache from the spaces races with a writer whose version is flushed and evicted in
//! between: what was read would then be taken for the newest. `epoch` is raised whenever dirty
//! versions become clean, before any of them can be evicted; who fills the cache compares it with
//! what it was before reading.

use crate::dead::Dead;
use crate::version::Version;
use bytes::Bytes;
use meridian_base::id::LogPosition;
use meridian_base::key::Key;
use meridian_base::time::Timestamp;
use meridian_base::txn::{ColumnMask, Write};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Clean versions that a row keeps: stale reads a moment below the newest version stay in memory.
const CLEAN_VERSIONS_MAX: usize = 3;
/// What a version costs beside its key's and its value's bytes.
const VERSION_OVERHEAD: usize = 96;
/// Rows that one call of [`Table::evict`] looks at, since it holds the table's lock.
pub(crate) const EVICT_STEPS: usize = 64;

/// The number of a flush unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unit(pub u64);

impl Unit {
    /// Already durable.
    pub const CLEAN: Unit = Unit(0);
}

/// A version in memory.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub at: Timestamp,
    pub columns: ColumnMask,
    pub value: Option<Bytes>,
    pub unit: Unit,
}

impl Slot {
    pub fn version(&self) -> Version {
        Version { at: self.at, columns: self.columns, value: self.value.clone() }
    }
    pub fn is_clean(&self) -> bool {
        self.unit == Unit::CLEAN
    }
    fn clean(v: Version) -> Slot {
        Slot { at: v.at, columns: v.columns, value: v.value, unit: Unit::CLEAN }
    }
    fn bytes(&self, key: &Key) -> usize {
        VERSION_OVERHEAD + key.as_bytes().len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// A key's recent versions.
#[derive(Debug)]
pub(crate) struct Row {
    newest: Slot,
    /// Newest first, all older than `newest`. Apart, so that a row of one version needs no second
    /// allocation. A row that everybody changes gathers thousands within a unit, and each new one
    /// comes to the front.
    older: VecDeque<Slot>,
    /// Read since the eviction hand came by last.
    used: AtomicBool,
}

impl Row {
    fn new(newest: Slot) -> Row {
        Row { newest, older: VecDeque::new(), used: AtomicBool::new(true) }
    }
    /// Newest first.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        std::iter::once(&self.newest).chain(&self.older)
    }
    pub fn oldest(&self) -> &Slot {
        self.older.back().unwrap_or(&self.newest)
    }
    /// Whether all of it is durable.
    pub fn is_clean(&self) -> bool {
        self.slots().all(Slot::is_clean)
    }
    /// The newest version at or below `at`; `None` if that is older than everything here.
    pub fn visible(&self, at: Timestamp) -> Option<&Slot> {
        if self.newest.at <= at {
            return Some(&self.newest);
        }
        self.older.get(self.older.partition_point(|slot| slot.at > at))
    }
    /// Tells the eviction hand that the row is in use.
    pub fn touch(&self) {
        // Read before write: a hot row's cache line stays shared between the cores.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }
    /// Puts a slot where it belongs; gives it back if that timestamp is here already. A key has one
    /// version at a timestamp: the one that is here must be the same (a log that is applied twice).
    /// Panics if it is another one, since one of the two would be lost.
    fn insert(&mut self, slot: Slot) -> Option<Slot> {
        if slot.at > self.newest.at {
            let before = std::mem::replace(&mut self.newest, slot);
            self.older.push_front(before);
            return None;
        }
        if slot.at == self.newest.at {
            check_same(slot.at, &slot.value, &self.newest.value);
            return Some(slot);
        }
        let i = self.older.partition_point(|s| s.at > slot.at);
        if let Some(there) = self.older.get(i).filter(|s| s.at == slot.at) {
            check_same(slot.at, &slot.value, &there.value);
            return Some(slot);
        }
        self.older.insert(i, slot);
        None
    }
}

/// Panics if two versions of a key at one timestamp differ.
fn check_same(at: Timestamp, one: &Option<Bytes>, other: &Option<Bytes>) {
    assert!(one == other, "a key has two versions at {at}");
}

/// What can be flushed: everything applied between two cuts.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    /// Versions of this unit and of earlier ones belong to it.
    pub unit: Unit,
    /// The keys it changed; neither sorted nor unique.
    pub keys: Vec<Key>,
    pub position: LogPosition,
    pub newest: Timestamp,
    /// The oldest version in it.
    pub oldest: Timestamp,
    pub state: Bytes,
}

/// Bytes of all groups of a store, by which they share its budgets.
#[derive(Default)]
pub(crate) struct Totals {
    pub dirty: AtomicUsize,
    pub clean: AtomicUsize,
}

/// What became of a version that was to be placed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It is here now, or was already.
    Yes,
    /// The spaces may have newer versions, or ones between: [`Table::place_loaded`] with them.
    Load,
}

/// See the module's essay.
pub(crate) struct Table {
    rows: BTreeMap<Key, Row>,
    /// Raised whenever dirty versions become clean, or the content is replaced.
    pub epoch: u64,
    /// No version above it is in the spaces.
    pub spaces_newest: Timestamp,
    /// The unit that versions applied now belong to.
    unit: Unit,
    /// Keys changed in `unit`; mostly unique.
    changed: Vec<Key>,
    /// The oldest version that was applied in `unit`: what a replay would begin with, whether or
    /// not the spaces have it already.
    unit_oldest: Timestamp,
    /// Where the eviction goes on.
    hand: Key,
    pub dirty_bytes: usize,
    clean_bytes: usize,
    /// The newest version in each index, by the first bytes of its keys; for an index that is not
    /// here, `newest_else`.
    newest_by_index: BTreeMap<[u8; 4], Timestamp>,
    newest_else: Timestamp,
    /// From when on this table has an index whole, by the first bytes of its keys; see
    /// [`Table::whole_from`].
    whole_by_index: BTreeMap<[u8; 4], Timestamp>,
    whole_else: Timestamp,
    /// The newest version of all.
    pub newest: Timestamp,
    /// Where readers need not look.
    pub dead: Dead,
}

impl Table {
    /// An empty table over spaces whose newest version is at most `spaces_newest`.
    pub fn new(spaces_newest: Timestamp) -> Table {
        Table {
            rows: BTreeMap::new(),
            epoch: 0,
            spaces_newest,
            unit: Unit(1),
            changed: Vec::new(),
            unit_oldest: Timestamp::MAX,
            hand: Key::MIN,
            dirty_bytes: 0,
            clean_bytes: 0,
            newest_by_index: BTreeMap::new(),
            newest_else: spaces_newest,
            whole_by_index: BTreeMap::new(),
            // Of what is in the spaces nothing is here yet.
            whole_else: if spaces_newest == Timestamp::MIN { Timestamp::MIN } else { Timestamp::MAX },
            newest: spaces_newest,
            dead: Dead::default(),
        }
    }
    /// Forgets everything, for other spaces. Units and epochs go on.
    pub fn reset(&mut self, spaces_newest: Timestamp, totals: &Totals) {
        totals.dirty.fetch_sub(self.dirty_bytes, Ordering::Relaxed);
        totals.clean.fetch_sub(self.clean_bytes, Ordering::Relaxed);
        let (epoch, unit) = (self.epoch + 1, Unit(self.unit.0 + 1));
        *self = Table { epoch, unit, ..Table::new(spaces_newest) };
    }

    /// How many rows are here.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    pub fn row(&self, key: &[u8]) -> Option<&Row> {
        self.rows.get(key)
    }
    /// Whether these keys are in order and no row is between the first and the last of them: new
    /// rows often come so. Two searches instead of one for each key.
    pub fn is_gap(&self, keys: &[Key]) -> bool {
        let [first, .., last] = keys else { return false };
        keys.is_sorted() && {
            let (low, high) = (Bound::Included(first.as_bytes()), Bound::Included(last.as_bytes()));
            self.rows.range::<[u8], _>((low, high)).next().is_none()
        }
    }
    /// The rows between two keys; `reverse` from the end.
    pub fn range(&self, low: Bound<&[u8]>, high: Bound<&[u8]>, reverse: bool) -> impl Iterator<Item = (&Key, &Row)> {
        let mut range = self.rows.range::<[u8], _>((low, high));
        std::iter::from_fn(move || if reverse { range.next_back() } else { range.next() })
    }

    /// The newest version that any key of the index of `key` may have.
    pub fn newest_in_index(&self, key: &[u8]) -> Timestamp {
        let index = key.first_chunk::<4>().and_then(|index| self.newest_by_index.get(index));
        index.copied().unwrap_or(self.newest_else)
    }

    /// For the index of `key`: no key that is not here has had a row since. [`Timestamp::MAX`] if
    /// nothing is known, because rows were evicted, or were in the spaces before this table was.
    pub fn whole_from(&self, key: &[u8]) -> Timestamp {
        let index = key.first_chunk::<4>().and_then(|index| self.whole_by_index.get(index));
        index.map_or(self.whole_else, |from| self.whole_else.max(*from))
    }
    /// Whether a key that is not here has no version at all.
    pub fn has_never_held(&self, key: &[u8]) -> bool {
        self.whole_from(key) == Timestamp::MIN
    }
    /// A row leaves the table, while the spaces have it.
    fn forget(&mut self, key: &Key) -> usize {
        let Some(row) = self.rows.remove(key) else { return 0 };
        let from = match row.newest.value {
            Some(_) => Timestamp::MAX,
            None => row.newest.at,
        };
        let of_index = match key.as_bytes().first_chunk::<4>() {
            Some(index) => self.whole_by_index.entry(*index).or_insert(from),
            None => &mut self.whole_else,
        };
        *of_index = from.max(*of_index);
        row.slots().map(|s| s.bytes(key)).sum()
    }

    fn raise_newest(&mut self, key: &[u8], at: Timestamp) {
        self.newest = at.max(self.newest);
        let newest_else = self.newest_else;
        match key.first_chunk::<4>() {
            Some(index) => {
                let newest = self.newest_by_index.entry(*index).or_insert(newest_else);
                *newest = at.max(*newest);
            }
            // Keys without an index id do not occur outside tests.
            None => self.newest_else = at.max(newest_else),
        }
    }

    /// Applies a write without looking into the spaces, if that is possible.
    pub fn place(&mut self, write: &Write, at: Timestamp, totals: &Totals) -> Placed {
        if write.value.is_some() {
            self.dead.put(&write.key);
        }
        let slot = Slot { at, columns: write.columns, value: write.value.clone(), unit: self.unit };
        let bytes = slot.bytes(&write.key);
        let first_in_unit;
        match self.rows.entry(write.key.clone()) {
            Entry::Vacant(_) if at <= self.spaces_newest => return Placed::Load,
            Entry::Vacant(v) => {
                v.insert(Row::new(slot));
                first_in_unit = true;
            }
            Entry::Occupied(o) => {
                let row = o.into_mut();
                if at < row.oldest().at {
                    return Placed::Load;
                }
                first_in_unit = row.newest.unit != self.unit;
                if row.insert(slot).is_some() {
                    self.unit_oldest = at.min(self.unit_oldest);
                    return Placed::Yes;
                }
            }
        }
        self.placed_dirty(&write.key, at, bytes, first_in_unit, totals);
        Placed::Yes
    }

    fn placed_dirty(&mut self, key: &Key, at: Timestamp, bytes: usize, first_in_unit: bool, totals: &Totals) {
        if first_in_unit {
            self.changed.push(key.clone());
        }
        self.unit_oldest = at.min(self.unit_oldest);
        self.dirty_bytes += bytes;
        totals.dirty.fetch_add(bytes, Ordering::Relaxed);
        self.raise_newest(key.as_bytes(), at);
    }

    /// Applies a write, given every version of its key in the spaces at or above `at`, newest
    /// first. `epoch` is what it was before they were read; `false` if that is no longer so, and
    /// they have to be read again.
    pub fn place_loaded(&mut self, write: &Write, at: Timestamp, loaded: &[Version], epoch: u64, totals: &Totals) -> bool {
        if epoch != self.epoch {
            return false;
        }
        // A reader may have come since it was tried without them.
        if write.value.is_some() {
            self.dead.put(&write.key);
        }
        // Found there or not: it may have to be replayed once more.
        self.unit_oldest = at.min(self.unit_oldest);
        for version in loaded {
            self.insert_clean(write.key.clone(), version.clone(), totals);
        }
        if let Some(there) = loaded.last().filter(|v| v.at == at) {
            // A replay: it is in the spaces already.
            check_same(at, &write.value, &there.value);
            return true;
        }
        let slot = Slot { at, columns: write.columns, value: write.value.clone(), unit: self.unit };
        let bytes = slot.bytes(&write.key);
        let refused = match self.rows.entry(write.key.clone()) {
            Entry::Occupied(o) => o.into_mut().insert(slot),
            Entry::Vacant(v) => {
                v.insert(Row::new(slot));
                None
            }
        };
        if refused.is_none() {
            self.placed_dirty(&write.key, at, bytes, true, totals);
        }
        true
    }

    fn insert_clean(&mut self, key: Key, version: Version, totals: &Totals) {
        let slot = Slot::clean(version);
        let bytes = slot.bytes(&key);
        let refused = match self.rows.entry(key) {
            Entry::Occupied(o) => o.into_mut().insert(slot),
            Entry::Vacant(v) => {
                v.insert(Row::new(slot));
                None
            }
        };
        if refused.is_none() {
            self.clean_bytes += bytes;
            totals.clean.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Remembers a key's newest version, read from the spaces when the epoch was `epoch`, unless
    /// the key is here already.
    pub fn fill(&mut self, key: &[u8], newest: &Version, epoch: u64, totals: &Totals) {
        if epoch != self.epoch {
            return;
        }
        if !self.rows.contains_key(key) {
            self.insert_clean(Key::new(key), newest.clone(), totals);
        }
    }

    /// Versions at `at` of the index of `key` are about to be written to the spaces: what is not
    /// here of the index may be there.
    pub fn expect(&mut self, key: &[u8], at: Timestamp) {
        self.spaces_newest = at.max(self.spaces_newest);
        self.raise_newest(key, at);
        self.dead.forget();
        match key.first_chunk::<4>() {
            Some(index) => _ = self.whole_by_index.insert(*index, Timestamp::MAX),
            None => self.whole_else = Timestamp::MAX,
        }
    }

    /// The spaces have these entries, which are in order, as versions at `at`. Rows that have older
    /// versions get theirs, so that none is missing in between.
    pub fn insert_between(&mut self, entries: &[(Key, Bytes)], at: Timestamp, totals: &Totals) {
        let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else { return };
        let stretch = (Bound::Included(first.as_bytes()), Bound::Included(last.as_bytes()));
        let needs = |row: &Row| row.oldest().at < at && row.slots().all(|slot| slot.at != at);
        let rows = self.rows.range::<[u8], _>(stretch).filter(|(_, row)| needs(row));
        let places = rows.filter_map(|(key, _)| entries.binary_search_by(|(of, _)| of.cmp(key)).ok());
        for place in places.collect::<Vec<_>>() {
            let (key, value) = &entries[place];
            let version = Version { at, columns: ColumnMask::ALL, value: Some(value.clone()) };
            self.insert_clean(key.clone(), version, totals);
        }
    }

    /// Ends the present unit. What it changed joins `pending`.
    pub fn cut(&mut self, position: LogPosition, newest: Timestamp, state: Bytes, pending: &mut Option<Cut>) {
        let mut keys = std::mem::take(&mut self.changed);
        let mut oldest = std::mem::replace(&mut self.unit_oldest, Timestamp::MAX);
        if let Some(before) = pending.take() {
            oldest = before.oldest.min(oldest);
            let mut all = before.keys;
            all.append(&mut keys);
            keys = all;
        }
        *pending = Some(Cut { unit: self.unit, keys, position, newest, oldest, state });
        self.unit = Unit(self.unit.0 + 1);
    }

    /// Rows are in the order of their timestamps, and the sums are what they are sums of.
    pub fn invariant_rows(&self) {
        let (mut dirty, mut clean) = (0, 0);
        for (key, row) in &self.rows {
            let older = row.slots().skip(1);
            for (newer, older) in row.slots().zip(older) {
                assert!(newer.at > older.at, "{key:?} has {} above {}", newer.at, older.at);
                // What is durable is older than what is not: flushes take all versions up to a
                // unit.
                assert!(!newer.is_clean() || older.is_clean() || older.at <= self.spaces_newest, "{key:?} was flushed in part");
            }
            for slot in row.slots() {
                assert!(slot.unit <= self.unit && slot.at <= self.newest, "{key:?} has a version of the future");
                *(if slot.is_clean() { &mut clean } else { &mut dirty }) += slot.bytes(key);
            }
        }
        assert_eq!((dirty, clean), (self.dirty_bytes, self.clean_bytes), "bytes of dirty and of clean versions");
    }

    /// The oldest version applied since the last cut.
    pub fn oldest_uncut(&self) -> Timestamp {
        self.unit_oldest
    }

    /// The versions of a key up to a unit, newest first: what is in the spaces already, and what is
    /// to be flushed. Newer units stand above them.
    pub fn slots_of_unit(&self, key: &Key, unit: Unit) -> Vec<Slot> {
        self.rows.get(key).map_or(Vec::new(), |row| row.slots().filter(|s| s.unit <= unit).cloned().collect())
    }

    /// The spaces have a unit: its versions of these keys become clean. The caller raised the
    /// epoch.
    pub fn mark_clean(&mut self, keys: &[Key], unit: Unit, totals: &Totals) {
        for key in keys {
            let row = self.rows.get_mut(key).expect("a row with dirty versions is not evicted");
            let mut moved = 0;
            for slot in std::iter::once(&mut row.newest).chain(&mut row.older) {
                if !slot.is_clean() && slot.unit <= unit {
                    slot.unit = Unit::CLEAN;
                    moved += slot.bytes(key);
                    // A value from the log is a slice of its whole frame, which would stay in
                    // memory with it.
                    slot.value = slot.value.as_ref().map(|v| Bytes::copy_from_slice(v));
                }
            }
            let mut dropped = 0;
            while row.older.len() >= CLEAN_VERSIONS_MAX && row.older.back().is_some_and(Slot::is_clean) {
                dropped += row.older.pop_back().map_or(0, |s| s.bytes(key));
            }
            row.older.shrink_to_fit();
            // What was deleted would take the place of rows that are there.
            if row.newest.value.is_none() && row.is_clean() {
                dropped += self.forget(key);
            }
            self.dirty_bytes -= moved;
            totals.dirty.fetch_sub(moved, Ordering::Relaxed);
            self.clean_bytes = self.clean_bytes + moved - dropped;
            totals.clean.fetch_add(moved, Ordering::Relaxed);
            totals.clean.fetch_sub(dropped, Ordering::Relaxed);
        }
    }

    /// Rows that are entirely clean leave the table.
    fn forget_clean(&mut self, keys: &[Key], totals: &Totals) {
        let bytes = keys.iter().map(|key| self.forget(key)).sum();
        self.clean_bytes -= bytes;
        totals.clean.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Looks at the index of the first row at or behind `from`: if it is not `reached`, its next
    /// `rows` rows leave the table, as far as they are clean. Returns where to go on.
    pub fn forget_unreached(&mut self, from: &Key, reached: &dyn Fn(u32) -> bool, rows: usize, totals: &Totals) -> Option<Key> {
        let behind = (Bound::Included(from.as_bytes()), Bound::Unbounded);
        let (first, _) = self.rows.range::<[u8], _>(behind).next()?;
        // Keys without an index id do not occur outside tests.
        let index = first.as_bytes().first_chunk::<4>()?;
        let end = Key::new(index).prefix_end()?;
        if reached(u32::from_be_bytes(*index)) {
            return Some(end);
        }
        let of_index = (Bound::Included(from.as_bytes()), Bound::Excluded(end.as_bytes()));
        let next: Vec<(&Key, &Row)> = self.rows.range::<[u8], _>(of_index).take(rows).collect();
        let go_on = next.last().filter(|_| next.len() == rows).map_or(end.clone(), |(key, _)| key.successor());
        let clean: Vec<Key> = next.into_iter().filter(|(_, row)| row.is_clean()).map(|(key, _)| key.clone()).collect();
        self.forget_clean(&clean, totals);
        Some(go_on)
    }

    /// Removes some clean rows that were not read lately, if this table has more than `share` and
    /// the store more than `max` bytes of them. Returns whether more should go.
    pub fn evict(&mut self, max: usize, share: usize, totals: &Totals) -> bool {
        let over = |table: &Table| table.clean_bytes > share && totals.clean.load(Ordering::Relaxed) > max;
        if !over(self) {
            return false;
        }
        let mut steps = 0;
        let mut victims = Vec::new();
        for (key, row) in self.rows.range::<[u8], _>((Bound::Excluded(self.hand.as_bytes()), Bound::Unbounded)).take(EVICT_STEPS)
        {
            steps += 1;
            let used = row.used.swap(false, Ordering::Relaxed);
            if !used && row.is_clean() {
                victims.push(key.clone());
            }
            if steps == EVICT_STEPS {
                self.hand = key.clone();
            }
        }
        if steps < EVICT_STEPS {
            self.hand = Key::MIN;
        }
        self.forget_clean(&victims, totals);
        over(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(i: u8) -> Key {
        Key::new(&[0, 0, 0, 1, i])
    }
    fn write(i: u8) -> Write {
        Write { key: key(i), value: Some(Bytes::from_static(b"value")), columns: ColumnMask::ALL }
    }
    fn version(at: u64) -> Version {
        Version { at: Timestamp(at), columns: ColumnMask::ALL, value: None }
    }
    /// Cuts, and pretends that the unit was written.
    fn flush(table: &mut Table, totals: &Totals) {
        let mut pending = None;
        table.cut(LogPosition::default(), table.newest, Bytes::new(), &mut pending);
        let cut = pending.expect("just cut");
        table.spaces_newest = cut.newest;
        table.epoch += 1;
        table.mark_clean(&cut.keys, cut.unit, totals);
    }

    #[test]
    fn what_was_read_before_a_flush_does_not_fill_the_cache_after_it() {
        let (mut table, totals) = (Table::new(Timestamp(5)), Totals::default());
        let epoch = table.epoch;
        // A reader has just read version 5 from the spaces. Meanwhile:
        assert_eq!(table.place(&write(1), Timestamp(6), &totals), Placed::Yes);
        flush(&mut table, &totals);
        while table.evict(0, 0, &totals) {}
        assert!(table.row(key(1).as_bytes()).is_none(), "evicted");
        table.fill(key(1).as_bytes(), &version(5), epoch, &totals);
        assert!(table.row(key(1).as_bytes()).is_none(), "5 is not the newest version any more");
        assert!(!table.place_loaded(&write(1), Timestamp(4), &[version(5)], epoch, &totals));
        table.fill(key(1).as_bytes(), &version(6), table.epoch, &totals);
        assert_eq!(table.row(key(1).as_bytes()).map(|row| row.newest.at), Some(Timestamp(6)));
    }

    #[test]
    fn a_log_that_is_applied_twice_changes_nothing() {
        let (mut table, totals) = (Table::new(Timestamp::MIN), Totals::default());
        for at in [6, 7, 6, 7] {
            assert_eq!(table.place(&write(1), Timestamp(at), &totals), Placed::Yes);
        }
        assert_eq!(table.row(key(1).as_bytes()).map(|row| row.slots().count()), Some(2));
    }

    #[test]
    #[should_panic(expected = "two versions")]
    fn another_value_at_the_newest_timestamp_stops_the_process() {
        let (mut table, totals) = (Table::new(Timestamp::MIN), Totals::default());
        table.place(&write(1), Timestamp(6), &totals);
        table.place(&Write { value: None, ..write(1) }, Timestamp(6), &totals);
    }

    #[test]
    #[should_panic(expected = "two versions")]
    fn another_value_at_an_older_timestamp_stops_the_process() {
        let (mut table, totals) = (Table::new(Timestamp::MIN), Totals::default());
        table.place(&write(1), Timestamp(6), &totals);
        table.place(&write(1), Timestamp(7), &totals);
        table.place(&Write { value: None, ..write(1) }, Timestamp(6), &totals);
    }

    #[test]
    #[should_panic(expected = "two versions")]
    fn another_value_than_the_flushed_one_stops_the_process() {
        let (mut table, totals) = (Table::new(Timestamp(5)), Totals::default());
        let epoch = table.epoch;
        table.place_loaded(&write(1), Timestamp(5), &[version(5)], epoch, &totals);
    }

    #[test]
    fn eviction_leaves_dirty_rows_and_counts_every_byte() {
        let (mut table, totals) = (Table::new(Timestamp::MIN), Totals::default());
        for i in 0..200 {
            table.place(&write(i), Timestamp(10 + u64::from(i)), &totals);
        }
        flush(&mut table, &totals);
        for i in 0..50 {
            table.place(&write(i), Timestamp(300 + u64::from(i)), &totals);
        }
        while table.evict(0, 0, &totals) && table.rows.len() > 50 {}
        assert_eq!(table.rows.len(), 50);
        assert!(table.rows.values().all(|row| !row.newest.is_clean()));
        flush(&mut table, &totals);
        assert_eq!((table.dirty_bytes, totals.dirty.load(Ordering::Relaxed)), (0, 0));
        while table.evict(0, 0, &totals) {}
        assert_eq!((table.clean_bytes, totals.clean.load(Ordering::Relaxed)), (0, 0));
        assert!(table.rows.is_empty());
    }

    #[test]
    fn what_was_deleted_leaves_the_table_when_it_is_flushed_and_not_before() {
        let (mut table, totals) = (Table::new(Timestamp::MIN), Totals::default());
        let deleted = |i: u8| Write { value: None, ..write(i) };
        for i in 0..3 {
            table.place(&write(i), Timestamp(10), &totals);
        }
        flush(&mut table, &totals);
        (0..2).for_each(|i| assert_eq!(table.place(&deleted(i), Timestamp(20), &totals), Placed::Yes));
        assert_eq!(table.rows.len(), 3);
        flush(&mut table, &totals);
        assert_eq!(table.rows.keys().collect::<Vec<_>>(), [&key(2)]);
        // Deleted, flushed as such, and there again by then: the newest version is a dirty one.
        table.place(&deleted(2), Timestamp(30), &totals);
        let mut pending = None;
        table.cut(LogPosition::default(), table.newest, Bytes::new(), &mut pending);
        let cut = pending.expect("just cut");
        table.place(&write(2), Timestamp(40), &totals);
        table.mark_clean(&cut.keys, cut.unit, &totals);
        assert_eq!(table.row(key(2).as_bytes()).map(|row| row.slots().count()), Some(3));
        assert_eq!((table.rows.len(), table.clean_bytes), (1, totals.clean.load(Ordering::Relaxed)));
    }

    #[test]
    fn the_hand_passes_rows_that_cannot_go_and_begins_again_at_the_end() {
        let (mut table, totals) = (Table::new(Timestamp::MIN), Totals::default());
        (0..200).for_each(|i| _ = table.place(&write(i), Timestamp(10), &totals));
        flush(&mut table, &totals);
        // More than one call looks at, before those that may go.
        (0..100).for_each(|i| _ = table.place(&write(i), Timestamp(20), &totals));
        let calls = 200 / EVICT_STEPS + 1;
        (0..2 * calls).for_each(|_| _ = table.evict(0, 0, &totals));
        assert_eq!(table.rows.len(), 100);
        flush(&mut table, &totals);
        (0..2 * calls).for_each(|_| _ = table.evict(0, 0, &totals));
        assert!(table.rows.is_empty());
    }

    #[test]
    fn nothing_is_evicted_before_both_the_share_and_the_budget_are_exceeded() {
        let (mut table, totals) = (Table::new(Timestamp::MIN), Totals::default());
        (0..10).for_each(|i| _ = table.place(&write(i), Timestamp(10), &totals));
        flush(&mut table, &totals);
        let bytes = table.clean_bytes;
        for _ in 0..3 {
            assert!(!table.evict(bytes, 0, &totals) && !table.evict(0, bytes, &totals));
        }
        assert_eq!(table.rows.len(), 10);
        assert!(table.evict(bytes - 1, bytes - 1, &totals), "all are new, and more should go");
        assert!(!table.evict(bytes - 1, bytes - 1, &totals));
        assert!(table.rows.len() < 10);
    }

    #[test]
    fn an_index_is_here_whole_until_a_row_of_it_is_evicted() {
        let (mut table, totals) = (Table::new(Timestamp::MIN), Totals::default());
        (0..3).for_each(|i| _ = table.place(&write(i), Timestamp(10), &totals));
        let other = Key::new(&[0, 0, 0, 2, 1]);
        table.place(&Write { key: other.clone(), ..write(0) }, Timestamp(10), &totals);
        flush(&mut table, &totals);
        let from = |table: &Table| (table.whole_from(key(9).as_bytes()), table.whole_from(other.as_bytes()));
        assert_eq!(from(&table), (Timestamp::MIN, Timestamp::MIN));
        // A row that was deleted is gone for those who read later.
        table.place(&Write { value: None, ..write(1) }, Timestamp(20), &totals);
        flush(&mut table, &totals);
        assert_eq!(from(&table), (Timestamp(20), Timestamp::MIN));
        assert!(table.has_never_held(other.as_bytes()) && !table.has_never_held(key(1).as_bytes()));
        while table.evict(0, 0, &totals) {}
        assert!(table.rows.is_empty());
        assert_eq!(from(&table), (Timestamp::MAX, Timestamp::MAX));
        // What is in the spaces that a table is made over was never here.
        table.reset(Timestamp(5), &totals);
        assert_eq!(from(&table), (Timestamp::MAX, Timestamp::MAX));
        table.reset(Timestamp::MIN, &totals);
        assert_eq!(from(&table), (Timestamp::MIN, Timestamp::MIN));
    }

    #[test]
    fn rows_of_indexes_that_nobody_reaches_leave_the_table_once_they_are_clean() {
        let (mut table, totals) = (Table::new(Timestamp::MIN), Totals::default());
        let of_index = |index: u8, i: u8| Key::new(&[0, 0, 0, index, i]);
        let all = || [1, 2, 3, 5].into_iter().flat_map(|index| (0..5).map(move |i| (index, i)));
        all().for_each(|(index, i)| _ = table.place(&Write { key: of_index(index, i), ..write(0) }, Timestamp(10), &totals));
        // Two rows a step, so that an index takes several.
        let forget = |table: &mut Table| {
            let mut from = Some(Key::MIN);
            while let Some(key) = from {
                from = table.forget_unreached(&key, &|index| index == 1 || index == 3, 2, &totals);
            }
        };
        forget(&mut table);
        assert_eq!(table.rows.len(), 20, "nothing is durable");
        flush(&mut table, &totals);
        table.place(&Write { key: of_index(5, 3), ..write(0) }, Timestamp(20), &totals);
        forget(&mut table);
        let left: Vec<Key> = all().map(|(index, i)| of_index(index, i)).filter(|key| table.rows.contains_key(key)).collect();
        let expected = [1, 3].into_iter().flat_map(|index| (0..5).map(move |i| (index, i))).chain([(5, 3)]);
        assert_eq!(left, expected.map(|(index, i)| of_index(index, i)).collect::<Vec<_>>());
        assert_eq!(table.clean_bytes, totals.clean.load(Ordering::Relaxed));
        table.invariant_rows();
        assert_eq!(table.whole_from(of_index(1, 9).as_bytes()), Timestamp::MIN);
        assert_eq!(table.whole_from(of_index(2, 9).as_bytes()), Timestamp::MAX);
    }

    #[test]
    fn a_row_keeps_three_clean_versions() {
        let (mut table, totals) = (Table::new(Timestamp::MIN), Totals::default());
        (1..=5).for_each(|at| _ = table.place(&write(1), Timestamp(at), &totals));
        flush(&mut table, &totals);
        let slots = |table: &Table| table.row(key(1).as_bytes()).unwrap().slots().map(|s| s.at.0).collect::<Vec<_>>();
        assert_eq!(slots(&table), [5, 4, 3]);
        table.invariant_rows();
        // Those that are not durable stay all.
        (6..=9).for_each(|at| _ = table.place(&write(1), Timestamp(at), &totals));
        assert_eq!(slots(&table), [9, 8, 7, 6, 5, 4, 3]);
        table.invariant_rows();
    }

    #[test]
    fn a_table_over_other_spaces_begins_with_nothing() {
        let (mut table, totals) = (Table::new(Timestamp::MIN), Totals::default());
        (1..=3).for_each(|i| _ = table.place(&write(i), Timestamp(10), &totals));
        flush(&mut table, &totals);
        (1..=2).for_each(|i| _ = table.place(&write(i), Timestamp(20), &totals));
        let (epoch, unit) = (table.epoch, table.unit);
        table.reset(Timestamp(5), &totals);
        assert_eq!((totals.dirty.load(Ordering::Relaxed), totals.clean.load(Ordering::Relaxed)), (0, 0));
        assert_eq!((table.len(), table.dirty_bytes, table.newest, table.spaces_newest), (0, 0, Timestamp(5), Timestamp(5)));
        assert!(table.epoch > epoch && table.unit > unit);
        table.fill(key(1).as_bytes(), &version(10), epoch, &totals);
        assert!(table.row(key(1).as_bytes()).is_none(), "it was read from the spaces before");
        // A cut begins with nothing, too.
        let mut pending = None;
        table.cut(LogPosition::default(), table.newest, Bytes::new(), &mut pending);
        assert!(pending.is_some_and(|cut| cut.keys.is_empty() && cut.oldest == Timestamp::MAX));
    }
}
