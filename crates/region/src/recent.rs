//! Recent writes for questions about ranges.
//!
//! Writes arrive in the order of their timestamps (nearly: versions that another engine certified
//! come late) and are kept in that order, in chunks. A question names a timestamp, and what is not
//! newer does not matter: for a reader of a moment ago that leaves the last few writes, which are
//! looked at one by one. Only a question that leaves more of a full chunk than [`LOOK_THROUGH_MAX`]
//! sorts that chunk by key, once. So a write costs nothing but its place, and a reader that began
//! long ago a binary search per chunk.

use crate::index_key::IndexKey;
use meridian_base::{ColumnMask, Timestamp};
use std::cell::OnceCell;

const CHUNK: usize = 2_048;
/// Looking through so many costs about as much as two binary searches in a cold chunk.
const LOOK_THROUGH_MAX: usize = 128;

#[derive(Clone, Debug)]
pub(crate) struct RecentWrite {
    pub(crate) key: IndexKey,
    pub(crate) columns: ColumnMask,
    pub(crate) at: Timestamp,
}

#[derive(Clone, Debug, Default)]
struct Chunk {
    /// Ascending by timestamp.
    writes: Vec<RecentWrite>,
    /// Positions in `writes`, ascending by key. Made when it is first needed, and the chunk is
    /// full.
    by_key: OnceCell<Box<[u16]>>,
}

/// See the module's essay.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentWrites {
    /// All full but the last.
    chunks: Vec<Chunk>,
}

impl RecentWrites {
    pub(crate) fn add(&mut self, key: IndexKey, columns: ColumnMask, at: Timestamp) {
        if self.chunks.last().is_none_or(|last| last.writes.len() == CHUNK) {
            self.chunks.push(Chunk::default());
        }
        let writes = &mut self.chunks.last_mut().expect("one was pushed").writes;
        let write = RecentWrite { key, columns, at };
        match writes.last() {
            Some(last) if last.at > at => writes.insert(writes.partition_point(|w| w.at <= at), write),
            _ => writes.push(write),
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.writes.len()).sum()
    }

    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
    }

    /// The writes above `after` in `start..end`, in no order that means anything.
    pub(crate) fn after<'a>(
        &'a self,
        start: &'a IndexKey,
        end: &'a IndexKey,
        after: Timestamp,
    ) -> impl Iterator<Item = &'a RecentWrite> {
        let inside = move |w: &&RecentWrite| w.at > after && w.key >= *start && w.key < *end;
        self.chunks.iter().rev().flat_map(move |chunk| {
            let newer = chunk.newer(after);
            let (look_through, by_key): (&[RecentWrite], &[u16]) = match newer.len() <= LOOK_THROUGH_MAX || !chunk.is_full() {
                true => (newer, &[]),
                false => (&[], chunk.between(start, end)),
            };
            look_through.iter().chain(by_key.iter().map(|at| &chunk.writes[usize::from(*at)])).filter(inside)
        })
    }
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.writes.len() == CHUNK
    }

    fn newer(&self, after: Timestamp) -> &[RecentWrite] {
        match self.writes.last() {
            Some(last) if last.at > after => &self.writes[self.writes.partition_point(|w| w.at <= after)..],
            _ => &[],
        }
    }

    /// Positions of the writes in `start..end`, of a full chunk.
    fn between(&self, start: &IndexKey, end: &IndexKey) -> &[u16] {
        assert!(self.is_full(), "what is added later would be missed");
        let by_key = self.by_key.get_or_init(|| {
            let mut positions: Vec<u16> = (0..self.writes.len() as u16).collect();
            positions.sort_by(|a, b| self.key(*a).cmp(self.key(*b)));
            positions.into()
        });
        let first = by_key.partition_point(|at| self.key(*at) < start);
        let count = by_key[first..].partition_point(|at| self.key(*at) < end);
        &by_key[first..first + count]
    }

    fn key(&self, position: u16) -> &IndexKey {
        &self.writes[usize::from(position)].key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::Key;
    use proptest::prelude::*;

    fn key(k: u8) -> IndexKey {
        IndexKey::new(&Key::new(&[k]))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn they_answer_like_the_list_of_all_writes(
            writes in prop::collection::vec((any::<u8>(), 0..3u64), 0..3 * CHUNK),
            questions in prop::collection::vec((any::<u8>(), any::<u8>(), 0..4 * CHUNK as u64), 1..20),
        ) {
            let mut recent = RecentWrites::default();
            let mut all = Vec::new();
            let mut now = 2;
            for (k, gap) in writes {
                // A gap of 0 is a version that comes late.
                now += gap;
                let at = Timestamp(if gap == 0 { now / 2 } else { now });
                recent.add(key(k), ColumnMask::ALL, at);
                all.push((k, at));
            }
            for (start, end, after) in questions {
                let after = Timestamp(after);
                let mut expected: Vec<_> =
                    all.iter().filter(|(k, at)| *k >= start && *k < end && *at > after).map(|(k, at)| (key(*k), *at)).collect();
                expected.sort();
                let (start, end) = (key(start), key(end));
                let mut found: Vec<_> = recent.after(&start, &end, after).map(|w| (w.key.clone(), w.at)).collect();
                found.sort();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
