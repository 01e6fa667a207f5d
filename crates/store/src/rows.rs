//! A map in the order of its keys, made for searches among very many of them.
//!
//! A search in a B-tree of small nodes compares some forty keys, which lie in twenty or thirty
//! lines of memory; with half a million rows, most of the time of a search was waiting for those.
//! Here the rows lie in *leaves* of up to [`LEAF_MAX`]. Beside them a leaf has their keys' *heads*,
//! the first bytes as a number, and a search by halves looks at those: the lines it waits for are a
//! handful. Which leaf it is, a small tree over the leaves says.

use meridian_base::key::Key;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The most rows of a leaf: an insertion moves half of them on average.
const LEAF_MAX: usize = 64;
/// A leaf with fewer joins a neighbour, if the two have at most [`JOINED_MAX`].
const LEAF_MIN: usize = 16;
const JOINED_MAX: usize = 48;

/// See the module's essay.
pub(crate) struct Rows<V> {
    /// By a bound: the keys of a leaf are not below it, and those of the leaf before it are. The
    /// leaf at the smallest key is always there.
    leaves: BTreeMap<Key, Leaf<V>>,
    len: usize,
}

struct Leaf<V> {
    /// Of each entry.
    heads: Vec<u128>,
    /// In the order of their keys.
    entries: Vec<(Key, V)>,
}

/// The first bytes of a key: of two keys, the smaller one's is not above the other's.
fn head(key: &[u8]) -> u128 {
    match key.first_chunk::<16>() {
        Some(first) => u128::from_be_bytes(*first),
        None => {
            let mut first = [0; 16];
            first[..key.len()].copy_from_slice(key);
            u128::from_be_bytes(first)
        }
    }
}

impl<V> Leaf<V> {
    fn new() -> Leaf<V> {
        Leaf { heads: Vec::new(), entries: Vec::new() }
    }

    /// Where a key is, or would be.
    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let head = head(key);
        let (mut low, mut high) = (0, self.heads.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.heads[middle].cmp(&head).then_with(|| self.entries[middle].0.as_bytes().cmp(key)) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// The entries from `at` on, as another leaf.
    fn split_off(&mut self, at: usize) -> Leaf<V> {
        Leaf { heads: self.heads.split_off(at), entries: self.entries.split_off(at) }
    }

    fn append(&mut self, mut other: Leaf<V>) {
        self.heads.append(&mut other.heads);
        self.entries.append(&mut other.entries);
    }

    fn between(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> &[(Key, V)] {
        let place = |key: &[u8], is_behind: bool| match self.find(key) {
            Ok(at) => at + usize::from(is_behind),
            Err(at) => at,
        };
        let first = match low {
            Bound::Included(key) => place(key, false),
            Bound::Excluded(key) => place(key, true),
            Bound::Unbounded => 0,
        };
        let end = match high {
            Bound::Included(key) => place(key, true),
            Bound::Excluded(key) => place(key, false),
            Bound::Unbounded => self.entries.len(),
        };
        self.entries.get(first..end).unwrap_or_default()
    }
}

impl<V> Rows<V> {
    pub fn new() -> Rows<V> {
        Rows { leaves: BTreeMap::from([(Key::MIN, Leaf::new())]), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The leaf that a key is in, if it is anywhere.
    fn leaf(&self, key: &[u8]) -> (&Key, &Leaf<V>) {
        let mut up_to = self.leaves.range::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        up_to.next_back().expect("a leaf at the smallest key")
    }

    fn leaf_mut(&mut self, key: &[u8]) -> (&Key, &mut Leaf<V>) {
        let mut up_to = self.leaves.range_mut::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        up_to.next_back().expect("a leaf at the smallest key")
    }

    pub fn get(&self, key: &[u8]) -> Option<&V> {
        let (_, leaf) = self.leaf(key);
        leaf.find(key).ok().map(|at| &leaf.entries[at].1)
    }

    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut V> {
        let (_, leaf) = self.leaf_mut(key);
        leaf.find(key).ok().map(|at| &mut leaf.entries[at].1)
    }

    /// Adds a key that is not there. Panics if it is.
    pub fn insert(&mut self, key: Key, value: V) {
        self.len += 1;
        let (_, leaf) = self.leaf_mut(key.as_bytes());
        let Err(at) = leaf.find(key.as_bytes()) else { panic!("{key:?} is there already") };
        if leaf.entries.len() < LEAF_MAX {
            leaf.heads.insert(at, head(key.as_bytes()));
            leaf.entries.insert(at, (key, value));
            return;
        }
        // Keys that come in order leave full leaves behind.
        let from = if at == LEAF_MAX { LEAF_MAX } else { LEAF_MAX / 2 };
        let mut right = leaf.split_off(from);
        let of = if at >= from { (&mut right, at - from) } else { (leaf, at) };
        of.0.heads.insert(of.1, head(key.as_bytes()));
        of.0.entries.insert(of.1, (key, value));
        let (bound, _) = &right.entries[0];
        self.leaves.insert(bound.clone(), right);
    }

    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        let (bound, leaf) = self.leaf_mut(key);
        let at = leaf.find(key).ok()?;
        leaf.heads.remove(at);
        let (_, value) = leaf.entries.remove(at);
        if leaf.entries.len() < LEAF_MIN {
            let bound = bound.clone();
            self.join(&bound);
        }
        self.len -= 1;
        Some(value)
    }

    /// Lets a leaf with few rows join a neighbour; the left one of the two stays.
    fn join(&mut self, bound: &Key) {
        let len = |leaf: &Leaf<V>| leaf.entries.len();
        let own = len(&self.leaves[bound]);
        let next = self.leaves.range::<Key, _>((Bound::Excluded(bound), Bound::Unbounded)).next();
        let before = self.leaves.range::<Key, _>(..bound).next_back();
        let fits = |other: Option<(&Key, &Leaf<V>)>| {
            other.filter(|(_, leaf)| own + len(leaf) <= JOINED_MAX).map(|(bound, _)| bound.clone())
        };
        let (left, right) = match (fits(next), fits(before)) {
            (Some(next), _) => (bound.clone(), next),
            (None, Some(before)) => (before, bound.clone()),
            (None, None) => return,
        };
        let right = self.leaves.remove(&right).expect("a leaf that was found");
        self.leaves.get_mut(&left).expect("a leaf that was found").append(right);
    }

    /// The entries between two keys, in order.
    pub fn range<'r>(&'r self, low: Bound<&'r [u8]>, high: Bound<&'r [u8]>) -> impl DoubleEndedIterator<Item = (&'r Key, &'r V)> {
        let first = match low {
            Bound::Included(key) | Bound::Excluded(key) => self.leaf(key).0,
            Bound::Unbounded => &Key::MIN,
        };
        let last = match high {
            Bound::Included(key) | Bound::Excluded(key) if key < first.as_bytes() => Bound::Included(first.as_bytes()),
            Bound::Included(key) | Bound::Excluded(key) => Bound::Included(key),
            Bound::Unbounded => Bound::Unbounded,
        };
        let leaves = self.leaves.range::<[u8], _>((Bound::Included(first.as_bytes()), last));
        leaves.flat_map(move |(_, leaf)| leaf.between(low, high)).map(|(key, value)| (key, value))
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Key, &V)> {
        self.range(Bound::Unbounded, Bound::Unbounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Keys of several lengths, some of which share more than a head.
    fn key() -> impl Strategy<Value = Key> {
        let long = (0u8..4, 0u16..400).prop_map(|(a, b)| {
            let mut bytes = vec![a; 16];
            bytes.extend(b.to_be_bytes());
            Key::new(&bytes)
        });
        let short = prop::collection::vec(0u8..3, 0..6).prop_map(|bytes| Key::new(&bytes));
        let number = (0u32..3_000).prop_map(|n| Key::new(&[&[0, 0, 0, 1][..], &n.to_be_bytes()].concat()));
        prop_oneof![long, short, number]
    }

    fn check(rows: &Rows<u32>, model: &BTreeMap<Key, u32>) {
        assert_eq!(rows.len(), model.len());
        assert!(rows.iter().eq(model.iter()));
        assert!(rows.iter().rev().eq(model.iter().rev()));
        let bounds: Vec<&Key> = rows.leaves.keys().collect();
        assert!(bounds.is_sorted() && *bounds[0] == Key::MIN);
        for (bound, leaf) in &rows.leaves {
            assert!(leaf.entries.len() <= LEAF_MAX && leaf.heads.len() == leaf.entries.len());
            assert!(leaf.entries.iter().zip(&leaf.heads).all(|((key, _), h)| key >= bound && head(key.as_bytes()) == *h));
        }
        // Evictions leave no leaves behind that are nearly empty.
        assert!(rows.leaves.len() <= 2 + 2 * model.len() / LEAF_MIN, "{} leaves for {}", rows.leaves.len(), model.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_is_a_map_in_the_order_of_its_keys(
            steps in prop::collection::vec((key(), any::<u32>(), 0u8..10), 0..3_000),
            in_order in 0u32..500,
            ranges in prop::collection::vec((key(), key(), any::<bool>(), any::<bool>()), 20),
        ) {
            let (mut rows, mut model) = (Rows::new(), BTreeMap::new());
            for n in 0..in_order {
                let key = Key::new(&[&[0, 0, 0, 2][..], &n.to_be_bytes()].concat());
                rows.insert(key.clone(), n);
                model.insert(key, n);
            }
            for (step, (key, value, what)) in steps.into_iter().enumerate() {
                let bytes = key.as_bytes();
                prop_assert_eq!(rows.get(bytes), model.get(&key));
                match (what, rows.get_mut(bytes)) {
                    (0..4, _) => prop_assert_eq!(rows.remove(bytes), model.remove(&key)),
                    (_, Some(there)) => {
                        *there = value;
                        model.insert(key, value);
                    }
                    (_, None) => {
                        rows.insert(key.clone(), value);
                        model.insert(key, value);
                    }
                }
                if step % 500 == 0 {
                    check(&rows, &model);
                }
            }
            check(&rows, &model);
            for (a, b, with_low, with_high) in ranges {
                let (a, b) = if a <= b { (a, b) } else { (b, a) };
                let low = if with_low { Bound::Included(a.as_bytes()) } else { Bound::Excluded(a.as_bytes()) };
                let high = if with_high || a == b { Bound::Included(b.as_bytes()) } else { Bound::Excluded(b.as_bytes()) };
                prop_assert!(rows.range(low, high).eq(model.range::<[u8], _>((low, high))));
                prop_assert!(rows.range(low, high).rev().eq(model.range::<[u8], _>((low, high)).rev()));
                prop_assert!(rows.range(low, Bound::Unbounded).eq(model.range::<[u8], _>((low, Bound::Unbounded))));
            }
            for key in model.keys() {
                rows.remove(key.as_bytes());
            }
            check(&rows, &BTreeMap::new());
        }
    }
}
