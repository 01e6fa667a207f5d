//! Stretches of keys without rows.
//!
//! A queue deletes at the head of its index and inserts at the end. What was deleted stays until it
//! is collected, and every reader of the head would look at each such key again. So who has passed
//! many of them notes the stretch, and later readers go on behind it.
//!
//! A stretch is noted under the row table's lock, by a reader at or above the newest version of the
//! index: nothing newer is in it then. A row that is written into it afterwards, under the same
//! lock, cuts it off.

use meridian_base::key::Key;
use meridian_base::time::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

/// A shorter stretch is not worth the room.
pub(crate) const KEYS_MIN: usize = if cfg!(test) { 3 } else { 32 };
/// Beyond as many the first one is forgotten.
const STRETCHES_MAX: usize = 256;

/// The stretches of a row table.
#[derive(Default)]
pub(crate) struct Dead {
    by_start: Mutex<BTreeMap<Key, Stretch>>,
    /// There are some: most tables have none, and are asked often.
    is_any: AtomicBool,
}

struct Stretch {
    /// The first key behind it.
    end: Key,
    /// Who reads at or above it sees no row in it.
    from: Timestamp,
}

impl Dead {
    /// The first key behind the stretch that a reader's next key lies in.
    pub fn end_of(&self, key: &[u8], at: Timestamp) -> Option<Key> {
        if !self.is_any.load(Ordering::Relaxed) {
            return None;
        }
        let by_start = self.by_start.lock();
        let (_, stretch) = by_start.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        (stretch.from <= at && key < stretch.end.as_bytes()).then(|| stretch.end.clone())
    }

    /// Nobody at or above `from` sees a row from `start` to before `end`.
    pub fn note(&self, start: &Key, end: &Key, from: Timestamp) {
        debug_assert!(start < end, "a stretch has keys");
        let mut by_start = self.by_start.lock();
        let (mut start, mut whole) = (start.clone(), Stretch { end: end.clone(), from });
        // Those that it meets become one with it.
        while let Some((of, met)) = by_start.range::<Key, _>(..=&whole.end).next_back()
            && met.end >= start
        {
            let of = of.clone();
            let met = by_start.remove(&of).expect("just seen");
            whole = Stretch { end: met.end.max(whole.end), from: met.from.max(whole.from) };
            start = of.min(start);
        }
        by_start.insert(start, whole);
        if by_start.len() > STRETCHES_MAX {
            by_start.pop_first();
        }
        self.is_any.store(true, Ordering::Relaxed);
    }

    /// There is a row now.
    pub fn put(&self, key: &Key) {
        if !self.is_any.load(Ordering::Relaxed) {
            return;
        }
        let mut by_start = self.by_start.lock();
        let Some((start, stretch)) = by_start.range_mut::<Key, _>(..=key).next_back().filter(|(_, stretch)| *key < stretch.end)
        else {
            return;
        };
        match start == key {
            true => _ = by_start.remove(key),
            false => stretch.end = key.clone(),
        }
        self.is_any.store(!by_start.is_empty(), Ordering::Relaxed);
    }

    /// Nothing is known any more.
    pub fn forget(&self) {
        self.by_start.lock().clear();
        self.is_any.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> Key {
        Key::new(&[n])
    }
    fn ends(dead: &Dead, at: u64) -> Vec<u8> {
        (0..20).map(|n| dead.end_of(&[n], Timestamp(at)).map_or(0, |end| end.as_bytes()[0])).collect()
    }

    #[test]
    fn stretches_that_meet_are_one_and_rows_cut_them_off() {
        let dead = Dead::default();
        dead.note(&key(2), &key(5), Timestamp(10));
        dead.note(&key(8), &key(10), Timestamp(30));
        assert_eq!(ends(&dead, 10), [0, 0, 5, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ends(&dead, 30)[8..11], [10, 10, 0]);
        dead.note(&key(5), &key(9), Timestamp(20));
        assert_eq!(ends(&dead, 29), [0; 20]);
        assert_eq!(ends(&dead, 30)[1..11], [0, 10, 10, 10, 10, 10, 10, 10, 10, 0]);
        dead.put(&key(7));
        assert_eq!(ends(&dead, 30)[1..11], [0, 7, 7, 7, 7, 7, 0, 0, 0, 0]);
        dead.put(&key(2));
        assert_eq!(ends(&dead, 90), [0; 20]);
        assert!(!dead.is_any.load(Ordering::Relaxed));
        for n in 0..=u16::MAX {
            dead.note(&Key::new(&(2 * n).to_be_bytes()), &Key::new(&(2 * n + 1).to_be_bytes()), Timestamp(1));
            if n == 1_000 {
                break;
            }
        }
        assert_eq!(dead.by_start.lock().len(), STRETCHES_MAX);
        dead.forget();
        assert_eq!(ends(&dead, 90), [0; 20]);
    }
}
