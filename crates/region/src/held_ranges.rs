//! The ranges that transactions hold, for the question which of them contain a key.
//!
//! Most ranges meet no other: one per row, and equal for all who read that row. So they are kept in
//! *levels*, each an ordered map of ranges none of which meets another. In a level a key is in the
//! range that starts last at or before it, or in none. Equal ranges share one entry. A new range
//! goes to the first level with room for it, so there is one level as long as no two different
//! ranges meet, and one for each where all meet each other. A question costs a descent per level.
//!
//! Which level a range is in depends on what was held when it came. What is held does not, and it
//! is what equality compares.

use crate::index_key::IndexKey;
use meridian_base::{ColumnMask, KeyRange, Timestamp, TxnId};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// One transaction's hold on a key or range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hold {
    pub(crate) id: TxnId,
    pub(crate) at: Timestamp,
    pub(crate) columns: ColumnMask,
}

impl Hold {
    /// In the order of votes, so that what is held is the same however it came about: from the log
    /// or from a snapshot.
    pub(crate) fn join(self, holds: &mut Vec<Hold>) {
        let order = |hold: &Hold| (hold.at, hold.id, hold.columns.0);
        let place = holds.partition_point(|h| order(h) <= order(&self));
        holds.insert(place, self);
    }

    /// The transaction's holds end. Gives whether none are left.
    pub(crate) fn leave(id: TxnId, holds: &mut Vec<Hold>) -> bool {
        holds.retain(|hold| hold.id != id);
        holds.is_empty()
    }

    /// The earliest of some of these columns.
    pub(crate) fn earliest(holds: &[Hold], columns: ColumnMask) -> Option<&Hold> {
        holds.iter().find(|hold| hold.columns.intersects(columns))
    }
}

/// The holds on one range, which starts where the level's map says.
#[derive(Clone, Debug)]
struct Held {
    end: IndexKey,
    /// In the order of votes.
    holds: Vec<Hold>,
}

/// By start.
type Level = BTreeMap<IndexKey, Held>;

/// See the module's essay.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldRanges {
    levels: Vec<Level>,
}

impl HeldRanges {
    /// An empty range holds nothing.
    pub(crate) fn add(&mut self, range: &KeyRange, hold: Hold) {
        let Some((start, end)) = bounds(range) else { return };
        let has_room = |level: &Level| level.range(..&end).next_back().is_none_or(|(_, last)| last.end <= start);
        let own = self.level_of(&start, &end).or_else(|| self.levels.iter().position(has_room));
        let own = own.unwrap_or_else(|| {
            self.levels.push(Level::new());
            self.levels.len() - 1
        });
        let held = self.levels[own].entry(start).or_insert_with(|| Held { end, holds: Vec::new() });
        hold.join(&mut held.holds);
    }

    /// Whatever the transaction holds on this very range ends.
    pub(crate) fn remove(&mut self, range: &KeyRange, id: TxnId) {
        let Some((start, end)) = bounds(range) else { return };
        let Some(own) = self.level_of(&start, &end) else { return };
        let level = &mut self.levels[own];
        if let Entry::Occupied(mut held) = level.entry(start)
            && Hold::leave(id, &mut held.get_mut().holds)
        {
            held.remove();
        }
        if level.is_empty() {
            self.levels.remove(own);
        }
    }

    /// The earliest hold of some of these columns on a range that contains the key.
    pub(crate) fn earliest(&self, key: &IndexKey, columns: ColumnMask) -> Option<&Hold> {
        let around = self.levels.iter().filter_map(|level| level.range(..=key).next_back());
        let around = around.map(|(_, held)| held).filter(|held| *key < held.end);
        around.filter_map(|held| Hold::earliest(&held.holds, columns)).min_by_key(|hold| (hold.at, hold.id))
    }

    /// How many holds there are.
    pub(crate) fn len(&self) -> usize {
        self.levels.iter().flat_map(Level::values).map(|held| held.holds.len()).sum()
    }

    /// No two ranges of a level meet, no two ranges are equal, and nothing is kept that holds
    /// nothing.
    pub(crate) fn invariant_levels(&self) {
        for level in &self.levels {
            assert!(!level.is_empty(), "a level without ranges");
            for (start, held) in level {
                assert!(*start < held.end, "an empty range at {start:?}");
                assert!(!held.holds.is_empty(), "nobody holds the range at {start:?}");
            }
            for ((_, held), (next, _)) in level.iter().zip(level.iter().skip(1)) {
                assert!(held.end <= *next, "the range at {next:?} meets the one before it");
            }
        }
        let sorted = self.sorted();
        assert!(sorted.windows(2).all(|two| (two[0].0, two[0].1) < (two[1].0, two[1].1)), "a range has two entries");
    }

    fn level_of(&self, start: &IndexKey, end: &IndexKey) -> Option<usize> {
        self.levels.iter().position(|level| level.get(start).is_some_and(|held| held.end == *end))
    }

    /// Every range with its holds, by start and end.
    fn sorted(&self) -> Vec<(&IndexKey, &IndexKey, &[Hold])> {
        let mut all: Vec<_> = self.levels.iter().flatten().map(|(start, held)| (start, &held.end, &held.holds[..])).collect();
        all.sort_by_key(|(start, end, _)| (*start, *end));
        all
    }
}

impl PartialEq for HeldRanges {
    fn eq(&self, other: &HeldRanges) -> bool {
        self.sorted() == other.sorted()
    }
}

/// Start and end of a range that contains something.
fn bounds(range: &KeyRange) -> Option<(IndexKey, IndexKey)> {
    (!range.is_empty()).then(|| (IndexKey::new(&range.start), IndexKey::new(&range.end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::{Key, NodeId};
    use proptest::prelude::*;

    fn key(k: u8) -> Key {
        Key::new(&[k])
    }
    fn range(start: u8, end: u8) -> KeyRange {
        KeyRange::new(key(start), key(end))
    }
    fn hold(n: u64, columns: u64) -> Hold {
        // Votes are not in the order of ids.
        Hold { id: TxnId { hlc: Timestamp(n), gateway: NodeId(1) }, at: Timestamp(n * 7 % 5), columns: ColumnMask(columns) }
    }
    fn of(holds: &[(KeyRange, Hold)]) -> HeldRanges {
        let mut held = HeldRanges::default();
        holds.iter().for_each(|(range, hold)| held.add(range, *hold));
        held
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add(KeyRange, Hold),
        Remove(KeyRange, TxnId),
        /// Whichever is there, so that much is removed.
        RemoveOne(prop::sample::Index),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Few keys and few ids: ranges nest, overlap, touch, are equal, empty and the wrong way
        // round, and a transaction holds the same one twice.
        let any_range = || (0..9u8, 0..9u8).prop_map(|(start, end)| range(start, end));
        let any_hold = || (0..8u64, 1..8u64).prop_map(|(n, columns)| hold(n, columns));
        let step = prop_oneof![
            4 => (any_range(), any_hold()).prop_map(|(range, hold)| Step::Add(range, hold)),
            1 => (any_range(), any_hold()).prop_map(|(range, hold)| Step::Remove(range, hold.id)),
            2 => any::<prop::sample::Index>().prop_map(Step::RemoveOne),
        ];
        prop::collection::vec(step, 0..40)
    }

    proptest! {
        #[test]
        fn they_answer_like_the_list_of_all_holds(steps in steps(), columns in 1..8u64) {
            let (mut held, mut list) = (HeldRanges::default(), Vec::<(KeyRange, Hold)>::new());
            let columns = ColumnMask(columns);
            for step in steps {
                held.invariant_levels();
                let (range, id) = match step {
                    Step::Add(range, hold) => {
                        held.add(&range, hold);
                        if !range.is_empty() {
                            list.push((range, hold));
                        }
                        continue;
                    }
                    Step::Remove(range, id) => (range, id),
                    Step::RemoveOne(_) if list.is_empty() => continue,
                    Step::RemoveOne(which) => {
                        let (range, hold) = which.get(&list);
                        (range.clone(), hold.id)
                    }
                };
                held.remove(&range, id);
                list.retain(|(r, hold)| *r != range || hold.id != id);
            }
            held.invariant_levels();
            prop_assert_eq!(held.len(), list.len());
            for k in 0..10 {
                let contains = |(range, hold): &&(KeyRange, Hold)| range.contains(&[k]) && hold.columns.intersects(columns);
                let earliest = list.iter().filter(contains).map(|(_, hold)| (hold.at, hold.id)).min();
                let found = held.earliest(&IndexKey::new(&key(k)), columns);
                prop_assert_eq!(found.map(|hold| (hold.at, hold.id)), earliest);
                prop_assert!(found.is_none_or(|hold| hold.columns.intersects(columns)));
            }
        }

        #[test]
        fn equality_is_about_what_is_held(
            (list, shuffled) in prop::collection::vec((0..6u8, 1..4u8, 0..4u64, 1..4u64), 1..12).prop_flat_map(|list| {
                let list: Vec<_> = list.into_iter().map(|(k, len, n, columns)| (range(k, k + len), hold(n, columns))).collect();
                (Just(list.clone()), Just(list).prop_shuffle())
            }),
            gone in prop::collection::vec((0..9u8, 0..9u8), 0..6),
        ) {
            // What came and went meanwhile may have moved the others to another level.
            let passing = hold(99, 1);
            let mut held = HeldRanges::default();
            gone.iter().for_each(|(start, end)| held.add(&range(*start, *end), passing));
            list.iter().for_each(|(range, hold)| held.add(range, *hold));
            gone.iter().for_each(|(start, end)| held.remove(&range(*start, *end), passing.id));
            prop_assert_eq!(&held, &of(&shuffled));
            prop_assert_ne!(&held, &of(&shuffled[1..]));
            let (last, hold) = &shuffled[0];
            let others = shuffled[1..].iter().cloned();
            let longer = range(last.start.as_bytes()[0], last.end.as_bytes()[0] + 1);
            prop_assert_ne!(&held, &of(&others.chain([(longer, *hold)]).collect::<Vec<_>>()));
            for (range, hold) in &shuffled {
                held.remove(range, hold.id);
            }
            prop_assert_eq!(held.levels.len(), 0);
        }
    }

    #[test]
    fn only_ranges_that_meet_need_levels() {
        let mut held = HeldRanges::default();
        // Towards smaller keys and towards larger ones.
        for n in (0..100).rev().chain(100..200) {
            held.add(&range(n, n + 1), hold(1, 1));
            held.add(&range(n, n + 1), hold(2, 1));
            held.add(&range(n, n), hold(3, 1));
        }
        assert_eq!((held.levels.len(), held.len()), (1, 400));
        held.add(&range(0, 9), hold(4, 1));
        held.add(&range(9, 200), hold(4, 1));
        assert_eq!(held.levels.len(), 2);
        held.add(&range(8, 10), hold(5, 1));
        assert_eq!(held.levels.len(), 3);
        held.invariant_levels();
        held.remove(&range(0, 9), hold(4, 1).id);
        held.remove(&range(9, 200), hold(4, 1).id);
        assert_eq!(held.levels.len(), 2);
    }
}
