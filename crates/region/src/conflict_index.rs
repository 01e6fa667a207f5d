//! The conflict index: who wrote what lately.
//!
//! From key to what certification asks about it: the newest timestamp *per column mask*. Every
//! version above the *low-water mark* is accounted for; below the mark the store answers, exactly.
//! So an entry with `until` at or above the mark never touches the store, and that is nearly all of
//! them: the mark trails the clock by as many writes as the index may hold.
//!
//! Per key it is enough to keep the newest timestamp of each mask: the question is always «is there
//! a version above `u` whose mask meets this one», and an older version with the same mask (or a
//! part of it) never changes the answer. It is *not* enough to keep the newest version's mask
//! (counterexample 28).
//!
//! Whether a version is *in flight* is not stored: the log applies in the order of timestamps, so a
//! version is in flight if and only if it is above `applied_through`. Releasing a transaction
//! therefore touches no key.
//!
//! # Two generations
//!
//! An ordered map would serve keys and ranges alike, at the price of three descents, mostly cache
//! misses, per key that is read, written, and forgotten again. Keys are nearly all of the traffic,
//! so they are hashed: [`Generation::slots`]. Ranges look into [`recent`](crate::recent), which has
//! the same writes in the order of time. Nothing is ever removed: when the young generation is
//! full, the old one goes, whole, and the mark rises to its last write.
//!
//! # Large transactions
//!
//! Of a transaction with very many writes only the stretches that they lie in are kept, one for
//! each index, and only while it is in flight ([`ConflictIndex::add_all`]): a reader of anything
//! there waits for it. Once it is applied, the mark rises to it, and the store answers, exactly.
//!
//! What prepared transactions hold (reservations of the multi-region commit) does not end in order,
//! so it is in [`Reservations`](crate::reservations::Reservations).

use crate::index_key::{IndexKey, KeyHashes};
use crate::recent::RecentWrites;
use crate::rules::Rules;
use meridian_base::{ColumnMask, Key, Target, Timestamp, Write};
use std::collections::HashMap;

/// See the module's essay.
#[derive(Clone, Debug)]
pub struct ConflictIndex {
    young: Generation,
    old: Generation,
    /// Invariant: at or below `applied_through`, where no other engine writes
    /// ([`Self::raise_low_water`]).
    low_water: Timestamp,
    /// Versions at or below it are committed, those above it in flight.
    applied_through: Timestamp,
    writes_max: usize,
    /// What large transactions in flight write.
    stretches: Vec<Stretch>,
    rules: Rules,
}

/// Where in an index a large transaction writes.
#[derive(Clone, Debug)]
struct Stretch {
    /// Both included.
    first: Key,
    last: Key,
    columns: ColumnMask,
    at: Timestamp,
}

impl Stretch {
    fn meets(&self, target: &Target, columns: ColumnMask) -> bool {
        let is_there = match target {
            Target::Key(key) => self.first <= *key && *key <= self.last,
            Target::Range(range) => !range.is_empty() && range.start <= self.last && self.first < range.end,
        };
        is_there && self.columns.intersects(columns)
    }
}

/// The writes of some time.
#[derive(Clone, Debug, Default)]
struct Generation {
    /// Never iterated: the order of a hash map means nothing.
    slots: HashMap<IndexKey, Slot, KeyHashes>,
    recent: RecentWrites,
    writes: usize,
    /// Every write of it is at or below this.
    newest: Timestamp,
}

/// What the index knows about a read entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// Nothing above the low-water mark touches it.
    No,
    /// A committed version above `after` changed what was read.
    Committed(Key, Timestamp),
    /// Writers in flight touch it; this is the last of them. It may hide a committed version whose
    /// columns it covers: who waits for it then finds the writer's own version, and the conflict.
    InFlight(Timestamp),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    /// `Timestamp::MIN`: there is none.
    at: Timestamp,
    columns: ColumnMask,
}

const NONE: Version = Version { at: Timestamp::MIN, columns: ColumnMask::NONE };

/// One key. Two versions are inline: most keys have one mask, committed, and one writer in flight.
#[derive(Clone, Debug)]
struct Slot {
    inline: [Version; 2],
    /// Boxed, since it is rare and there are hundreds of thousands of slots: 8 bytes instead of 24.
    #[allow(clippy::box_collection)]
    more: Option<Box<Vec<Version>>>,
}

impl Slot {
    const EMPTY: Slot = Slot { inline: [NONE; 2], more: None };

    fn versions(&self) -> impl Iterator<Item = &Version> {
        self.inline.iter().filter(|v| v.at != Timestamp::MIN).chain(self.more.iter().flat_map(|m| m.iter()))
    }
    fn retain(&mut self, keep: impl Fn(&Version) -> bool) {
        for version in &mut self.inline {
            if !keep(version) {
                *version = NONE;
            }
        }
        if let Some(more) = &mut self.more {
            more.retain(&keep);
            if more.is_empty() {
                self.more = None;
            }
        }
    }

    /// Adds a version and drops those that it makes irrelevant: committed, older, and with no
    /// column of their own. One in flight stays: a reader below the new version must still wait for
    /// it.
    fn add(&mut self, new: Version, applied_through: Timestamp) {
        self.retain(|old| old.at > applied_through.min(new.at) || old.columns.0 & !new.columns.0 != 0);
        match self.inline.iter_mut().find(|v| v.at == Timestamp::MIN) {
            Some(free) => *free = new,
            None => self.more.get_or_insert_default().push(new),
        }
    }

    fn committed_after(&self, columns: ColumnMask, after: Timestamp, applied: Timestamp, rules: Rules) -> Option<Timestamp> {
        let committed = || self.versions().filter(|v| v.at <= applied);
        if !rules.compares_older_masks() {
            let newest = committed().max_by_key(|v| v.at)?;
            return (newest.at > after && newest.columns.intersects(columns)).then_some(newest.at);
        }
        committed().filter(|v| v.at > after && v.columns.intersects(columns)).map(|v| v.at).max()
    }
    fn last_in_flight(&self, columns: ColumnMask, applied: Timestamp, through: Timestamp) -> Option<Timestamp> {
        let in_flight = self.versions().filter(|v| v.at > applied && v.at <= through);
        in_flight.filter(|v| v.columns.intersects(columns)).map(|v| v.at).max()
    }
}

impl Generation {
    fn clear(&mut self) {
        self.slots.clear();
        self.recent.clear();
        (self.writes, self.newest) = (0, Timestamp::MIN);
    }
}

impl ConflictIndex {
    /// An empty index: the store holds every version at or below `low_water`, and no other exist.
    pub fn new(low_water: Timestamp, writes_max: usize, rules: Rules) -> ConflictIndex {
        let (young, old) = (Generation::default(), Generation::default());
        ConflictIndex { young, old, low_water, applied_through: low_water, writes_max, stretches: Vec::new(), rules }
    }

    /// Below this, ask the store as well.
    pub fn low_water(&self) -> Timestamp {
        self.low_water
    }
    /// Below this, too, the store has to be asked from now on: others have written there. Writes
    /// that are known stay known.
    pub fn raise_low_water(&mut self, through: Timestamp) {
        self.low_water = self.low_water.max(through);
    }
    /// How many writes it knows.
    pub fn len(&self) -> usize {
        self.young.writes + self.old.writes
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A certified transaction writes the key: in flight until [`ConflictIndex::applied`] passes
    /// `at`. Timestamps never decrease from call to call, except those of versions that another
    /// engine certified.
    pub fn add(&mut self, key: &Key, columns: ColumnMask, at: Timestamp) {
        if at <= self.low_water {
            return;
        }
        self.turn_if_full();
        let key = IndexKey::new(key);
        self.young.recent.add(key.clone(), columns, at);
        self.young.slots.entry(key).or_insert(Slot::EMPTY).add(Version { at, columns }, self.applied_through);
        self.young.newest = self.young.newest.max(at);
        self.young.writes += 1;
    }

    /// Every write that it knows one by one is at or below this.
    fn newest(&self) -> Timestamp {
        self.young.newest.max(self.old.newest)
    }

    /// The same for all writes of a large transaction.
    pub fn add_all(&mut self, writes: &[Write], at: Timestamp) {
        let mut stretches: Vec<Stretch> = Vec::new();
        for Write { key, columns, .. } in writes {
            let index = key.as_bytes().first_chunk::<4>();
            let is_of_index = |stretch: &&mut Stretch| stretch.first.as_bytes().first_chunk::<4>() == index;
            // In the order of their keys, mostly: the index is the one of the write before.
            match stretches.iter_mut().rev().find(is_of_index) {
                Some(stretch) => {
                    stretch.columns |= *columns;
                    if *key > stretch.last {
                        stretch.last = key.clone();
                    } else if *key < stretch.first {
                        stretch.first = key.clone();
                    }
                }
                None => stretches.push(Stretch { first: key.clone(), last: key.clone(), columns: *columns, at }),
            }
        }
        if self.rules.keeps_stretches() {
            self.stretches.append(&mut stretches);
        }
    }

    /// Every transaction at or below `through` is applied to the store.
    pub fn applied(&mut self, through: Timestamp) {
        self.applied_through = self.applied_through.max(through);
        let ended = self.stretches.extract_if(.., |stretch| stretch.at <= self.applied_through);
        if let Some(mark) = ended.map(|stretch| stretch.at).max() {
            self.raise_low_water(mark);
        }
    }

    /// The last large transaction in flight at or below `through` that may write there.
    fn stretch(&self, target: &Target, columns: ColumnMask, through: Timestamp) -> Option<Timestamp> {
        if matches!(target, Target::Range(_)) && !self.rules.certifies_ranges() {
            return None;
        }
        let meets = |s: &&Stretch| s.at <= through && s.meets(target, columns);
        self.stretches.iter().filter(meets).map(|s| s.at).max()
    }

    /// Forgets the old generation when the young one is full, but never a writer in flight: those
    /// are bounded by what the log may hold, not here.
    fn turn_if_full(&mut self) {
        if self.young.writes < self.writes_max / 2 || self.old.newest > self.applied_through {
            return;
        }
        self.low_water = self.low_water.max(self.old.newest);
        self.old.clear();
        std::mem::swap(&mut self.young, &mut self.old);
    }

    /// What has touched these columns of the target since `after`.
    pub fn touched(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> Touched {
        // Most transactions have read after the last write.
        if self.stretches.is_empty() && self.newest() <= after.min(self.applied_through) {
            return Touched::No;
        }
        match (self.touched_one_by_one(target, columns, after), self.stretch(target, columns, Timestamp::MAX)) {
            (Touched::No, Some(at)) => Touched::InFlight(at),
            (Touched::InFlight(before), Some(at)) => Touched::InFlight(before.max(at)),
            (touched, _) => touched,
        }
    }

    fn touched_one_by_one(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> Touched {
        let applied = self.applied_through;
        match target {
            Target::Key(key) => {
                let (mut committed, mut in_flight) = (None, None);
                for slot in self.slots(key) {
                    committed = committed.max(slot.committed_after(columns, after, applied, self.rules));
                    in_flight = in_flight.max(slot.last_in_flight(columns, applied, Timestamp::MAX));
                }
                match (committed, in_flight) {
                    (Some(at), _) => Touched::Committed(key.clone(), at),
                    (None, Some(at)) => Touched::InFlight(at),
                    (None, None) => Touched::No,
                }
            }
            Target::Range(_) if !self.rules.certifies_ranges() => Touched::No,
            Target::Range(range) => {
                let (start, end) = (IndexKey::new(&range.start), IndexKey::new(&range.end));
                let mut in_flight = None;
                let writes = [&self.young, &self.old].into_iter().flat_map(|g| g.recent.after(&start, &end, after.min(applied)));
                for write in writes.filter(|w| w.columns.intersects(columns)) {
                    if write.at > applied {
                        in_flight = in_flight.max(Some(write.at));
                    } else {
                        // What is applied is above the smaller of both, so it is above `after`.
                        return Touched::Committed(write.key.to_key(), write.at);
                    }
                }
                in_flight.map_or(Touched::No, Touched::InFlight)
            }
        }
    }

    /// The last writer in flight at or below `through` that touches these columns of the target.
    pub fn last_in_flight(&self, target: &Target, columns: ColumnMask, through: Timestamp) -> Option<Timestamp> {
        let applied = self.applied_through;
        let one = match target {
            Target::Key(key) => self.slots(key).filter_map(|slot| slot.last_in_flight(columns, applied, through)).max(),
            Target::Range(_) if !self.rules.certifies_ranges() => None,
            Target::Range(range) => {
                let (start, end) = (IndexKey::new(&range.start), IndexKey::new(&range.end));
                let writes = [&self.young, &self.old].into_iter().flat_map(|g| g.recent.after(&start, &end, applied));
                writes.filter(|w| w.at <= through && w.columns.intersects(columns)).map(|w| w.at).max()
            }
        };
        one.max(self.stretch(target, columns, through))
    }

    /// What both generations know of a key.
    fn slots(&self, key: &Key) -> impl Iterator<Item = &Slot> {
        let key = IndexKey::new(key);
        [&self.young, &self.old].map(|g| g.slots.get(&key)).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::PlantedBug;
    use meridian_base::KeyRange;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const COLUMNS: u64 = 4;

    fn key(k: u8) -> Key {
        Key::new(&[k])
    }
    fn range(a: u8, b: u8) -> Target {
        Target::Range(KeyRange::new(key(a), key(b)))
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write { keys: Vec<(u8, u64)>, gap: u64, is_large: bool },
        Apply,
        Ask { from: u8, to: Option<u8>, columns: u64, back: u64 },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let mask = 1..(1u64 << COLUMNS);
        let write = (prop::collection::vec((0..6u8, mask.clone()), 1..4), 1..3u64, prop::bool::weighted(0.2))
            .prop_map(|(keys, gap, is_large)| Step::Write { keys, gap, is_large });
        let ask = (0..6u8, prop::option::of(0..8u8), mask, 0..40u64).prop_map(|(from, to, columns, back)| Step::Ask {
            from,
            to,
            columns,
            back,
        });
        prop::collection::vec(prop_oneof![2 => write, 2 => Just(Step::Apply), 3 => ask], 1..150)
    }

    /// Every write that ever was: the naive index.
    #[derive(Default)]
    struct Model {
        writes: Vec<(Timestamp, Key, ColumnMask)>,
        /// Of large transactions: what lies between the first and the last key.
        large: Vec<(Timestamp, Key, ColumnMask)>,
        applied: Timestamp,
    }

    impl Model {
        fn touched(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> (bool, Option<Timestamp>) {
            let hit = |w: &&(Timestamp, Key, ColumnMask)| target.contains(w.1.as_bytes()) && w.2.intersects(columns);
            let committed = self.writes.iter().filter(hit).any(|w| w.0 > after && w.0 <= self.applied);
            let in_flight = self.writes.iter().chain(&self.large).filter(hit).filter(|w| w.0 > self.applied);
            (committed, in_flight.map(|w| w.0).max())
        }
    }

    fn run(writes_max: usize, steps: Vec<Step>) -> Result<(), TestCaseError> {
        let mut index = ConflictIndex::new(Timestamp::MIN, writes_max, Rules::ALL);
        let mut model = Model::default();
        let mut queue: VecDeque<(Timestamp, Vec<(u8, u64)>)> = VecDeque::new();
        let mut now = Timestamp(1);
        // A generation is not turned while the older one is in flight.
        let mut in_flight_max = 0;
        for step in steps {
            match step {
                Step::Write { mut keys, gap, is_large } => {
                    keys.sort();
                    keys.dedup_by_key(|k| k.0);
                    now = Timestamp(now.0 + gap);
                    let write = |(k, c): &(u8, u64)| Write { key: key(*k), value: None, columns: ColumnMask(*c) };
                    let writes: Vec<Write> = keys.iter().map(write).collect();
                    if is_large {
                        index.add_all(&writes, now);
                        let columns = ColumnMask(keys.iter().fold(0, |all, (_, c)| all | c));
                        let stretch = keys[0].0..=keys[keys.len() - 1].0;
                        model.large.extend(stretch.map(|k| (now, key(k), columns)));
                        queue.push_back((now, Vec::new()));
                        continue;
                    }
                    for write in writes {
                        index.add(&write.key, write.columns, now);
                        model.writes.push((now, write.key, write.columns));
                    }
                    queue.push_back((now, keys));
                }
                Step::Apply => {
                    let Some((at, _)) = queue.pop_front() else { continue };
                    index.applied(at);
                    model.applied = at;
                }
                Step::Ask { from, to, columns, back } => {
                    let target = to.map_or(Target::Key(key(from)), |to| range(from, to));
                    let columns = ColumnMask(columns);
                    // Below the mark the store answers; the index is exact at or above it.
                    let after = Timestamp(now.0.saturating_sub(back)).max(index.low_water());
                    let (committed, in_flight) = model.touched(&target, columns, after);
                    match index.touched(&target, columns, after) {
                        Touched::Committed(k, at) => {
                            prop_assert!(committed && at > after && target.contains(k.as_bytes()));
                        }
                        Touched::InFlight(at) => prop_assert_eq!(in_flight, Some(at)),
                        Touched::No => prop_assert_eq!((committed, in_flight), (false, None)),
                    }
                    prop_assert_eq!(index.last_in_flight(&target, columns, Timestamp::MAX), in_flight);
                }
            }
            let in_flight: usize = queue.iter().map(|(_, keys)| keys.len()).sum();
            in_flight_max = in_flight_max.max(in_flight);
            prop_assert!(index.len() <= writes_max + 2 * in_flight_max + 6, "{} writes kept", index.len());
            prop_assert!(index.low_water() <= model.applied);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]
        #[test]
        fn it_answers_like_the_list_of_all_writes(writes_max in 1..120usize, steps in steps()) {
            run(writes_max, steps)?;
        }
    }

    #[test]
    fn every_version_above_counts_and_not_only_the_newest_mask() {
        let (a, b) = (ColumnMask::column(0), ColumnMask::column(1));
        for bug in [false, true] {
            let rules = if bug { Rules::without(PlantedBug::NewestMaskOnly) } else { Rules::ALL };
            let mut index = ConflictIndex::new(Timestamp::MIN, 10, rules);
            for (at, columns) in [(5, a), (6, b)] {
                index.add(&key(1), columns, Timestamp(at));
                index.applied(Timestamp(at));
            }
            let found = index.touched(&Target::Key(key(1)), a, Timestamp(4));
            assert_eq!(found == Touched::Committed(key(1), Timestamp(5)), !bug, "counterexample 28");
        }
    }

    /// Versions that another engine certified may come late; no more is forgotten for that, and
    /// nothing counts as forgotten that is not in the store.
    #[test]
    fn the_mark_only_rises_and_covers_all_that_is_forgotten() {
        let mut index = ConflictIndex::new(Timestamp(100), 4, Rules::ALL);
        let (mut marks, mut added) = (Vec::new(), Vec::new());
        for at in [120, 110, 130, 125, 150, 140, 160] {
            index.add(&key(at as u8), ColumnMask::ALL, Timestamp(at));
            index.applied(Timestamp(at));
            marks.push(index.low_water().0);
            added.push(at);
            // Above the mark each of them is known, and committed.
            for known in added.iter().filter(|known| **known > index.low_water().0) {
                let (written, after) = (key(*known as u8), index.low_water().max(Timestamp(known - 1)));
                let touched = index.touched(&Target::Key(written.clone()), ColumnMask::ALL, after);
                assert_eq!(touched, Touched::Committed(written, Timestamp(*known)), "after {at}");
            }
        }
        assert_eq!(marks, [100, 100, 100, 100, 120, 120, 130]);
    }

    #[test]
    fn it_forgets_what_is_old_and_keeps_what_is_recent() {
        let mut index = ConflictIndex::new(Timestamp::MIN, 1_000, Rules::ALL);
        for n in 1..50_000u64 {
            // Spread over the key space, each key once.
            let key = Key::new(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
            index.add(&key, ColumnMask::ALL, Timestamp(n));
            index.applied(Timestamp(n));
            assert!(index.len() <= 1_000 && n - index.low_water().0 <= 1_000, "{} writes", index.len());
            assert_eq!(index.young.recent.len() + index.old.recent.len(), index.len());
        }
        assert!(index.len() >= 500);
    }
}
