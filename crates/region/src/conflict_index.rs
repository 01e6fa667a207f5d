//! The conflict index: who wrote what lately (design: certification, «State»).
//!
//! An ordered map from key to what certification asks about it: the newest committed timestamp *per column mask*, and the
//! writers in flight. Every version above the *low-water mark* is accounted for, and nothing else is; below the mark the
//! store answers, exactly. So an entry with `until` at or above the mark costs one map lookup and never touches the store,
//! and that is nearly all of them: the mark trails the clock by as many writes as the index may hold.
//!
//! Per key it is enough to keep the newest timestamp of each mask: the question is always «is there a version above `u`
//! whose mask meets this one», and an older version with the same mask (or a part of it) never changes the answer. It is *not*
//! enough to keep the newest version's mask (counterexample 28).
//!
//! `recent` lists the writes in the order of their timestamps. It says what to forget next, and it answers range checks with a
//! recent `until` without walking the range: few writes are younger than a young read.
//!
//! What prepared transactions hold (reservations of the multi-region commit) belongs into `Slot` beside the writers in
//! flight, and into a list of reserved ranges beside `slots`.

use crate::bugs::{PlantedBug, PlantedBugs};
use meridian_base::{ColumnMask, Key, Target, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Included};

/// Recent writes that a range check looks through before it walks the range itself.
const RECENT_STEPS_MAX: usize = 64;

/// See the module's essay.
#[derive(Debug)]
pub struct ConflictIndex {
    slots: BTreeMap<Key, Slot>,
    /// Invariant: ascending timestamps; one element per write above the low-water mark.
    recent: VecDeque<(Timestamp, Key)>,
    /// Invariant: below every writer in flight.
    low_water: Timestamp,
    /// Invariant: no writer in flight is at or below it (while no `commit` of its transaction is still to come).
    applied_through: Timestamp,
    writes_max: usize,
    bugs: PlantedBugs,
}

/// What the index knows about a read entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// Nothing above the low-water mark touches it.
    No,
    /// A committed version above `after` changed what was read.
    Committed(Key, Timestamp),
    /// No such version, but writers in flight touch it; this is the last of them.
    InFlight(Timestamp),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    /// `Timestamp::MIN`: there is none.
    at: Timestamp,
    columns: ColumnMask,
}

impl Version {
    const NONE: Version = Version { at: Timestamp::MIN, columns: ColumnMask::NONE };

    fn is_none(&self) -> bool {
        self.at == Timestamp::MIN
    }
}

/// One key. The first version of each kind is inline: most keys have one writer at a time and one mask.
#[derive(Debug)]
struct Slot {
    committed: Version,
    /// The oldest writer in flight.
    in_flight: Version,
    more: Option<Box<More>>,
}

#[derive(Debug, Default)]
struct More {
    /// Masks that `Slot::committed` does not cover.
    committed: Vec<Version>,
    /// Blind writes behind `Slot::in_flight`, ascending.
    in_flight: Vec<Version>,
}

impl Slot {
    const EMPTY: Slot = Slot { committed: Version::NONE, in_flight: Version::NONE, more: None };

    fn committed(&self) -> impl Iterator<Item = &Version> {
        std::iter::once(&self.committed).filter(|v| !v.is_none()).chain(self.more.iter().flat_map(|m| &m.committed))
    }
    fn in_flight(&self) -> impl Iterator<Item = &Version> {
        std::iter::once(&self.in_flight).filter(|v| !v.is_none()).chain(self.more.iter().flat_map(|m| &m.in_flight))
    }
    fn is_empty(&self) -> bool {
        self.committed.is_none() && self.in_flight.is_none() && self.more.is_none()
    }

    fn add_in_flight(&mut self, version: Version) {
        if self.in_flight.is_none() {
            self.in_flight = version;
        } else {
            self.more.get_or_insert_default().in_flight.push(version);
        }
    }
    fn remove_in_flight(&mut self, at: Timestamp) {
        if self.in_flight.at == at {
            self.in_flight = match &mut self.more {
                Some(more) if !more.in_flight.is_empty() => more.in_flight.remove(0),
                _ => Version::NONE,
            };
        } else if let Some(more) = &mut self.more {
            more.in_flight.retain(|v| v.at != at);
        }
        self.drop_empty_more();
    }
    /// Adds a version and drops those that it makes irrelevant: older, with no column of their own.
    fn add_committed(&mut self, new: Version) {
        let covered = |old: &Version| old.at <= new.at && old.columns.0 & !new.columns.0 == 0;
        if let Some(more) = &mut self.more {
            more.committed.retain(|v| !covered(v));
        }
        if self.committed.is_none() || covered(&self.committed) {
            self.committed = new;
        } else if !self.committed().any(|v| v.at >= new.at && new.columns.0 & !v.columns.0 == 0) {
            self.more.get_or_insert_default().committed.push(new);
        }
        self.drop_empty_more();
    }
    fn forget_committed(&mut self, through: Timestamp) {
        if let Some(more) = &mut self.more {
            more.committed.retain(|v| v.at > through);
        }
        if !self.committed.is_none() && self.committed.at <= through {
            self.committed = match &mut self.more {
                Some(more) => more.committed.pop().unwrap_or(Version::NONE),
                None => Version::NONE,
            };
        }
        self.drop_empty_more();
    }
    fn drop_empty_more(&mut self) {
        if self.more.as_ref().is_some_and(|m| m.committed.is_empty() && m.in_flight.is_empty()) {
            self.more = None;
        }
    }

    fn committed_after(&self, columns: ColumnMask, after: Timestamp, bugs: PlantedBugs) -> Option<Timestamp> {
        if bugs.has(PlantedBug::NewestMaskOnly) {
            let newest = self.committed().max_by_key(|v| v.at)?;
            return (newest.at > after && newest.columns.intersects(columns)).then_some(newest.at);
        }
        self.committed().filter(|v| v.at > after && v.columns.intersects(columns)).map(|v| v.at).max()
    }
    fn last_in_flight(&self, columns: ColumnMask, through: Timestamp) -> Option<Timestamp> {
        self.in_flight().filter(|v| v.at <= through && v.columns.intersects(columns)).map(|v| v.at).max()
    }
}

impl ConflictIndex {
    /// An empty index: the store holds every version at or below `low_water`, and no other exist.
    pub fn new(low_water: Timestamp, writes_max: usize, bugs: PlantedBugs) -> ConflictIndex {
        ConflictIndex { slots: BTreeMap::new(), recent: VecDeque::new(), low_water, applied_through: low_water, writes_max, bugs }
    }

    /// Below this, ask the store as well.
    pub fn low_water(&self) -> Timestamp {
        self.low_water
    }
    /// How many writes are above the low-water mark.
    pub fn len(&self) -> usize {
        self.recent.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.recent.is_empty()
    }

    /// A certified transaction writes the key. Timestamps never decrease from call to call.
    pub fn add_in_flight(&mut self, key: &Key, columns: ColumnMask, at: Timestamp) {
        debug_assert!(self.recent.back().is_none_or(|(last, _)| *last <= at), "timestamps are issued in order");
        self.slots.entry(key.clone()).or_insert(Slot::EMPTY).add_in_flight(Version { at, columns });
        self.recent.push_back((at, key.clone()));
    }

    /// The write is applied to the store: in flight no more, and committed.
    pub fn commit(&mut self, key: &Key, columns: ColumnMask, at: Timestamp) {
        self.applied_through = self.applied_through.max(at);
        let Some(slot) = self.slots.get_mut(key) else {
            return self.add_foreign(key, columns, at);
        };
        let known = slot.in_flight().any(|v| v.at == at);
        if !known {
            return self.add_foreign(key, columns, at);
        }
        slot.remove_in_flight(at);
        slot.add_committed(Version { at, columns });
        self.trim();
    }

    /// A version that this engine did not certify.
    fn add_foreign(&mut self, key: &Key, columns: ColumnMask, at: Timestamp) {
        if at <= self.low_water {
            return;
        }
        self.slots.entry(key.clone()).or_insert(Slot::EMPTY).add_committed(Version { at, columns });
        let place = self.recent.partition_point(|(t, _)| *t <= at);
        self.recent.insert(place, (at, key.clone()));
        self.trim();
    }

    /// Raises the low-water mark until the index is small enough, but never to a writer in flight: those are bounded by what
    /// the log may hold, not here.
    fn trim(&mut self) {
        while self.recent.len() > self.writes_max {
            let (at, key) = self.recent.front().expect("longer than its bound");
            if let Some(slot) = self.slots.get_mut(key) {
                if slot.in_flight().any(|v| v.at == *at) {
                    return;
                }
                slot.forget_committed(*at);
                if slot.is_empty() {
                    self.slots.remove(key);
                }
            }
            self.low_water = *at;
            self.recent.pop_front();
        }
    }

    /// What has touched these columns of the target since `after`.
    pub fn touched(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> Touched {
        let mut last_in_flight = None;
        let committed = self.look(target, after, |key, slot| {
            last_in_flight = last_in_flight.max(slot.last_in_flight(columns, Timestamp::MAX));
            slot.committed_after(columns, after, self.bugs).map(|at| (key.clone(), at))
        });
        match (committed, last_in_flight) {
            (Some((key, at)), _) => Touched::Committed(key, at),
            (None, Some(at)) => Touched::InFlight(at),
            (None, None) => Touched::No,
        }
    }

    /// The last writer in flight at or below `through` that touches these columns of the target.
    pub fn last_in_flight(&self, target: &Target, columns: ColumnMask, through: Timestamp) -> Option<Timestamp> {
        let mut last = None;
        self.look::<()>(target, Timestamp::MAX, |_, slot| {
            last = last.max(slot.last_in_flight(columns, through));
            None
        });
        last
    }

    /// Shows the slots of a target that may have changed since `after`, until `f` finds something.
    fn look<T>(&self, target: &Target, after: Timestamp, mut f: impl FnMut(&Key, &Slot) -> Option<T>) -> Option<T> {
        let range = match target {
            Target::Key(key) => return self.slots.get(key).and_then(|slot| f(key, slot)),
            Target::Range(_) if self.bugs.has(PlantedBug::SkipRangeCheck) => return None,
            Target::Range(range) if range.is_empty() => return None,
            Target::Range(range) => range,
        };
        let newest_unseen = match self.recent.len().checked_sub(RECENT_STEPS_MAX + 1) {
            Some(i) => self.recent[i].0,
            None => Timestamp::MIN,
        };
        // Writers in flight count whatever `after` is; they are above `applied_through`, since the log applies in order.
        if newest_unseen <= after.min(self.applied_through) {
            let steps = self.recent.iter().rev().take(RECENT_STEPS_MAX);
            return steps
                .filter(|(_, key)| range.contains(key.as_bytes()))
                .find_map(|(_, key)| self.slots.get(key).and_then(|slot| f(key, slot)));
        }
        self.slots.range::<Key, _>((Included(&range.start), Excluded(&range.end))).find_map(|(key, slot)| f(key, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::KeyRange;
    use proptest::prelude::*;

    const COLUMNS: u64 = 4;

    fn key(k: u8) -> Key {
        Key::new(&[k])
    }
    fn range(a: u8, b: u8) -> Target {
        Target::Range(KeyRange::new(key(a), key(b)))
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write { keys: Vec<(u8, u64)>, gap: u64 },
        Apply,
        Ask { from: u8, to: Option<u8>, columns: u64, back: u64 },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let mask = 1..(1u64 << COLUMNS);
        let write =
            (prop::collection::vec((0..6u8, mask.clone()), 1..4), 1..3u64).prop_map(|(keys, gap)| Step::Write { keys, gap });
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
        applied: Timestamp,
    }

    impl Model {
        fn touched(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> (bool, Option<Timestamp>) {
            let hit = |w: &&(Timestamp, Key, ColumnMask)| target.contains(w.1.as_bytes()) && w.2.intersects(columns);
            let committed = self.writes.iter().filter(hit).any(|w| w.0 > after && w.0 <= self.applied);
            let in_flight = self.writes.iter().filter(hit).filter(|w| w.0 > self.applied).map(|w| w.0).max();
            (committed, in_flight)
        }
    }

    fn run(writes_max: usize, steps: Vec<Step>) -> Result<(), TestCaseError> {
        let mut index = ConflictIndex::new(Timestamp::MIN, writes_max, PlantedBugs::NONE);
        let mut model = Model::default();
        let mut queue: VecDeque<(Timestamp, Vec<(u8, u64)>)> = VecDeque::new();
        let mut now = Timestamp(1);
        for step in steps {
            match step {
                Step::Write { mut keys, gap } => {
                    keys.sort();
                    keys.dedup_by_key(|k| k.0);
                    now = Timestamp(now.0 + gap);
                    for (k, c) in &keys {
                        index.add_in_flight(&key(*k), ColumnMask(*c), now);
                        model.writes.push((now, key(*k), ColumnMask(*c)));
                    }
                    queue.push_back((now, keys));
                }
                Step::Apply => {
                    let Some((at, keys)) = queue.pop_front() else { continue };
                    for (k, c) in keys {
                        index.commit(&key(k), ColumnMask(c), at);
                    }
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
                        Touched::InFlight(at) => prop_assert_eq!((committed, in_flight), (false, Some(at))),
                        Touched::No => prop_assert_eq!((committed, in_flight), (false, None)),
                    }
                    prop_assert_eq!(index.last_in_flight(&target, columns, Timestamp::MAX), in_flight);
                }
            }
            let in_flight: usize = queue.iter().map(|(_, keys)| keys.len()).sum();
            prop_assert!(index.len() <= writes_max + in_flight + 3, "{} writes kept", index.len());
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
            let bugs = if bug { PlantedBugs::only(PlantedBug::NewestMaskOnly) } else { PlantedBugs::NONE };
            let mut index = ConflictIndex::new(Timestamp::MIN, 10, bugs);
            for (at, columns) in [(5, a), (6, b)] {
                index.add_in_flight(&key(1), columns, Timestamp(at));
                index.commit(&key(1), columns, Timestamp(at));
            }
            let found = index.touched(&Target::Key(key(1)), a, Timestamp(4));
            assert_eq!(found == Touched::Committed(key(1), Timestamp(5)), !bug, "counterexample 28");
        }
    }
}
