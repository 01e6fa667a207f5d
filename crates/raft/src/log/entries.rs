//! One group's part of the log, in memory: where every entry is, and the recent ones themselves.
//!
//! An entry enters when it is appended, before it is on disk: the leader sends it to its followers
//! while the local write is still under way. The writer later reports its place in a file, and from
//! then on its body may be evicted.

use super::frame::{EntryKind, Vote};
use bytes::Bytes;
use meridian_base::LogPosition;
use std::collections::VecDeque;

/// One entry of a group's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub position: LogPosition,
    pub kind: EntryKind,
    /// A payload or an encoded membership; empty for a blank entry.
    pub body: Bytes,
}

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub segment: u64,
    pub offset: u64,
    /// The frame without its padding.
    pub bytes: u32,
}

#[derive(Clone, Debug)]
struct Slot {
    term: u64,
    kind: EntryKind,
    /// `None` while the frame is queued.
    place: Option<Place>,
    /// `None` once evicted. Invariant: `place` or `body` is there.
    body: Option<Bytes>,
}

/// What a read finds: the entry, or where to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Here(LogEntry),
    OnDisk(LogPosition, Place),
}

impl Found {
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self, Found::Here(_))
    }
}

/// A group's entries, vote and truncation point.
#[derive(Debug)]
pub(super) struct Entries {
    pub vote: Option<Vote>,
    /// Entries up to here are gone. `index` 0: none.
    purged: LogPosition,
    /// The index of the first slot. Invariant once recovered: `purged.index + 1`.
    first: u64,
    slots: VecDeque<Slot>,
    cache_bytes_max: usize,
    cached_bytes: usize,
    /// Invariant: slots before this index have no body.
    cached_from: u64,
}

impl Entries {
    pub(super) fn new(cache_bytes_max: usize) -> Entries {
        Entries {
            vote: None,
            purged: LogPosition::default(),
            first: 1,
            slots: VecDeque::new(),
            cache_bytes_max,
            cached_bytes: 0,
            cached_from: 1,
        }
    }

    pub(super) fn purged(&self) -> LogPosition {
        self.purged
    }

    /// The last entry, or the truncation point if there is none above it.
    pub(super) fn last(&self) -> LogPosition {
        match self.slots.back() {
            Some(slot) => LogPosition { index: self.end() - 1, term: slot.term },
            None => self.purged,
        }
    }

    /// The index after the last slot.
    fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    fn slot(&self, index: u64) -> Option<&Slot> {
        self.slots.get(usize::try_from(index.checked_sub(self.first)?).ok()?)
    }

    /// Whether the entry is there.
    pub(super) fn has(&self, position: LogPosition) -> bool {
        self.slot(position.index).is_some_and(|slot| slot.term == position.term)
    }

    /// Appends behind the last entry.
    pub(super) fn append(&mut self, entry: &LogEntry) {
        assert_eq!(entry.position.index, self.last().index + 1, "a log grows without gaps");
        if self.slots.is_empty() {
            self.first = entry.position.index;
            self.cached_from = self.first;
        }
        self.push(entry, None);
    }

    fn push(&mut self, entry: &LogEntry, place: Option<Place>) {
        self.cached_bytes += entry.body.len();
        self.slots.push_back(Slot { term: entry.position.term, kind: entry.kind, place, body: Some(entry.body.clone()) });
    }

    /// Takes an entry found on disk at start. It replaces everything at or above its index. The
    /// first one may lie above the truncation point known so far: the segments before it were
    /// dropped because a purge that stands further on in the log covers the gap.
    /// [`Entries::check_recovered`] holds the result to that.
    pub(super) fn recover(&mut self, entry: &LogEntry, place: Place) -> Result<(), &'static str> {
        let index = entry.position.index;
        if index <= self.purged.index {
            return Ok(());
        }
        self.truncate(index - 1);
        if self.slots.is_empty() {
            self.first = index;
            self.cached_from = index;
        } else if index != self.end() {
            return Err("entries are missing before it");
        }
        self.push(entry, Some(place));
        self.evict();
        Ok(())
    }

    /// Whether what was recovered is a log without gaps.
    pub(super) fn check_recovered(&self) -> bool {
        self.slots.is_empty() || self.first == self.purged.index + 1
    }

    /// Removes entries above `after`.
    pub(super) fn truncate(&mut self, after: u64) {
        while self.end() > self.first && self.end() - 1 > after {
            let slot = self.slots.pop_back().expect("not empty");
            self.cached_bytes -= slot.body.map_or(0, |b| b.len());
        }
        self.cached_from = self.cached_from.min(self.end());
    }

    /// Removes entries up to `upto`. A point beyond the end empties the log, which continues behind
    /// it.
    pub(super) fn purge(&mut self, upto: LogPosition) {
        if upto.index <= self.purged.index {
            return;
        }
        while self.first <= upto.index {
            let Some(slot) = self.slots.pop_front() else { break };
            self.cached_bytes -= slot.body.map_or(0, |b| b.len());
            self.first += 1;
        }
        self.purged = upto;
        if self.slots.is_empty() {
            self.first = upto.index + 1;
        }
        self.cached_from = self.cached_from.max(self.first);
    }

    /// Removes everything but the vote: the log begins anew.
    pub(super) fn forget(&mut self) {
        *self = Entries { vote: self.vote, ..Entries::new(self.cache_bytes_max) };
    }

    /// The entry's frame is durable at `place`.
    pub(super) fn placed(&mut self, position: LogPosition, place: Place) {
        let Some(at) = position.index.checked_sub(self.first) else { return };
        let Some(slot) = self.slots.get_mut(at as usize) else { return };
        if slot.term == position.term {
            slot.place = Some(place);
        }
    }

    /// Drops the oldest bodies above the budget that are on disk.
    pub(super) fn evict(&mut self) {
        while self.cached_bytes > self.cache_bytes_max && self.cached_from < self.end() {
            let slot = &mut self.slots[(self.cached_from - self.first) as usize];
            if slot.place.is_none() {
                return;
            }
            self.cached_bytes -= slot.body.take().map_or(0, |b| b.len());
            self.cached_from += 1;
        }
    }

    /// The entries from `from` up to, not including, `to`; fewer at the end of the log, or above
    /// `bytes_max` (but at least one).
    pub(super) fn read(&self, from: u64, to: u64, bytes_max: usize) -> Vec<Found> {
        let mut found = vec![];
        let mut bytes = 0;
        for index in from.max(self.first)..to.min(self.end()) {
            let slot = self.slot(index).expect("within the log");
            let position = LogPosition { index, term: slot.term };
            let (size, item) = match (&slot.body, slot.place) {
                (Some(body), _) => (body.len(), Found::Here(LogEntry { position, kind: slot.kind, body: body.clone() })),
                (None, Some(place)) => (place.bytes as usize, Found::OnDisk(position, place)),
                (None, None) => unreachable!("an entry is in memory or on disk"),
            };
            bytes += size;
            if bytes > bytes_max && !found.is_empty() {
                break;
            }
            found.push(item);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn entry(index: u64, term: u64, bytes: usize) -> LogEntry {
        let body = Bytes::from(vec![term as u8; bytes]);
        LogEntry { position: LogPosition { index, term }, kind: EntryKind::Payload, body }
    }
    fn place(index: u64, bytes: usize) -> Place {
        Place { segment: 1, offset: index, bytes: bytes as u32 }
    }

    impl Entries {
        fn invariant(&self) {
            let cached: usize = self.slots.iter().map(|s| s.body.as_ref().map_or(0, Bytes::len)).sum();
            assert_eq!(cached, self.cached_bytes, "what is in memory is counted");
            assert_eq!(self.first, self.purged.index + 1);
            for (index, slot) in (self.first..).zip(&self.slots) {
                assert!(slot.place.is_some() || slot.body.is_some(), "{index} is somewhere");
                assert!(index >= self.cached_from || slot.body.is_none(), "{index} is below what is in memory");
            }
            assert!((self.first..=self.end()).contains(&self.cached_from));
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Append(usize),
        /// So many of those that were appended and not placed yet, and perhaps are gone by now.
        Placed(usize),
        Truncate(u64),
        Purge(u64),
        Read(u64, u64, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..60usize).prop_map(Step::Append),
            3 => (1..4usize).prop_map(Step::Placed),
            1 => (0..30u64).prop_map(Step::Truncate),
            1 => (0..40u64).prop_map(Step::Purge),
            3 => (0..30u64, 0..40u64, 0..200usize).prop_map(|(from, to, bytes)| Step::Read(from, to, bytes)),
        ]
    }

    proptest! {
        /// Bodies are dropped once they are on disk, the oldest first, and no more than the budget
        /// stays of those.
        #[test]
        fn entries_are_in_memory_or_where_they_were_written(steps in prop::collection::vec(step(), 0..60)) {
            let (mut entries, mut model, mut queued) = (Entries::new(100), BTreeMap::new(), VecDeque::new());
            let (mut purged, mut term) = (0, 1);
            for step in steps {
                let last = entries.last().index;
                match step {
                    Step::Append(bytes) => {
                        let new = entry(last + 1, term, bytes);
                        entries.append(&new);
                        queued.push_back((new.position, place(last + 1 + 1_000 * term, bytes)));
                        model.insert(last + 1, new);
                    }
                    Step::Placed(n) => {
                        for (position, place) in queued.drain(..n.min(queued.len())) {
                            entries.placed(position, place);
                            entries.evict();
                        }
                        let evictable = entries.slots.iter().find(|s| s.body.is_some()).is_some_and(|s| s.place.is_some());
                        prop_assert!(entries.cached_bytes <= 100 || !evictable);
                    }
                    Step::Truncate(after) => {
                        let after = after.max(purged);
                        entries.truncate(after);
                        model.split_off(&(after + 1));
                        term += 1;
                    }
                    Step::Purge(upto) => {
                        let of = model.get(&upto).map_or(term, |e: &LogEntry| e.position.term);
                        entries.purge(LogPosition { index: upto, term: of });
                        if upto > purged {
                            purged = upto;
                            model = model.split_off(&(upto + 1));
                            prop_assert_eq!(entries.purged(), LogPosition { index: upto, term: of });
                        }
                    }
                    Step::Read(from, to, bytes_max) => {
                        let found = entries.read(from, to, bytes_max);
                        let mut bytes = 0;
                        let expected: Vec<&LogEntry> = model
                            .range(from..to.max(from))
                            .map(|(_, e)| e)
                            .enumerate()
                            .take_while(|(n, e)| {
                                bytes += e.body.len();
                                *n == 0 || bytes <= bytes_max
                            })
                            .map(|(_, e)| e)
                            .collect();
                        prop_assert_eq!(found.len(), expected.len());
                        for (found, expected) in found.iter().zip(expected) {
                            match found {
                                Found::Here(e) => prop_assert_eq!(e, expected),
                                Found::OnDisk(position, at) => {
                                    prop_assert_eq!(*position, expected.position);
                                    let index = position.index + 1_000 * position.term;
                                    prop_assert_eq!(*at, place(index, expected.body.len()));
                                }
                            }
                        }
                    }
                }
                entries.invariant();
                prop_assert_eq!(entries.last().index, model.last_key_value().map_or(purged, |(i, _)| *i));
            }
        }
    }

    #[test]
    fn what_is_found_at_start_has_no_gaps_and_nothing_that_was_purged() {
        let mut entries = Entries::new(10);
        entries.purge(LogPosition { index: 5, term: 1 });
        for index in [4, 5] {
            entries.recover(&entry(index, 1, 8), place(index, 8)).unwrap();
        }
        assert_eq!(entries.last().index, 5);
        for index in [6, 7, 8] {
            entries.recover(&entry(index, 1, 8), place(index, 8)).unwrap();
        }
        assert!(entries.recover(&entry(10, 1, 8), place(10, 8)).is_err(), "9 is missing");
        // What was written later takes the place of what was there, and of all behind it.
        entries.recover(&entry(7, 2, 8), place(1_007, 8)).unwrap();
        assert_eq!(entries.last(), LogPosition { index: 7, term: 2 });
        assert!(entries.check_recovered() && entries.cached_bytes <= 10);
        entries.invariant();
    }

    /// The frame of an entry that was truncated may become durable after another one has taken its
    /// index.
    #[test]
    fn a_place_counts_for_the_entry_that_was_written_there() {
        let mut entries = Entries::new(0);
        let (old, new) = (entry(1, 1, 8), entry(1, 2, 8));
        entries.append(&old);
        entries.truncate(0);
        entries.append(&new);
        entries.placed(old.position, place(7, 8));
        entries.evict();
        assert_eq!(entries.read(1, 2, 100), [Found::Here(new.clone())]);
        entries.placed(new.position, place(9, 8));
        entries.evict();
        assert_eq!(entries.read(1, 2, 100), [Found::OnDisk(new.position, place(9, 8))]);
    }
}
