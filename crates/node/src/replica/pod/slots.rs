//! Slots of keys: what hosts of a pod hand to each other.
//!
//! A key's slot follows from its first column, so the rows of a warehouse or tenant have one slot
//! in all tables and indexes that begin with it. Keys do not say of which type their columns are,
//! so the column's end is what it would be of an integer if it looks like one that is not very
//! large, and otherwise where a text would end ([`column_len`]). Of anything else the first bytes
//! count. A range needs one slot if all of its keys begin with one column whose end is known; any
//! other range needs all.
//!
//! Keys of escrow shares have no slot: the log's leader serves them.

use meridian_base::record::Prepared;
use meridian_base::{Change, CommitRequest, Key, ReadEntry, Target, escrow};
use meridian_pod::{SLOTS, Slot};

/// Bytes of a key before the first column: its index's number.
const INDEX: usize = 4;
/// Bytes of a column that is a number; of one whose end is not known, at most as many count.
const NUMBER: usize = 9;
const WORDS: usize = SLOTS as usize / 64;
/// A larger transaction is the leader's: a ring has room for several.
pub(crate) const BYTES_MAX: usize = 1 << 20;

/// A set of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotSet([u64; WORDS]);

impl SlotSet {
    pub const NONE: SlotSet = SlotSet([0; WORDS]);
    pub const ALL: SlotSet = SlotSet([u64::MAX; WORDS]);

    pub fn insert(&mut self, slot: Slot) {
        self.0[usize::from(slot.0) / 64] |= 1 << (slot.0 % 64);
    }

    pub fn contains(&self, slot: Slot) -> bool {
        self.0[usize::from(slot.0) / 64] & 1 << (slot.0 % 64) != 0
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        Slot::all().filter(move |slot| self.contains(*slot))
    }

    fn add(&mut self, target: &Target) {
        match target {
            Target::Key(key) => self.add_key(key),
            Target::Range(range) => {
                if escrow::is_key(range.start.as_bytes()) {
                    return;
                }
                match fixed(&range.start, &range.end) {
                    Some(slot) => self.insert(slot),
                    None => *self = SlotSet::ALL,
                }
            }
        }
    }

    fn add_key(&mut self, key: &Key) {
        if let Some(slot) = of_key(key) {
            self.insert(slot);
        }
    }

    /// Of what is read.
    pub fn of_targets<'a>(targets: impl IntoIterator<Item = &'a Target>) -> SlotSet {
        let mut slots = SlotSet::NONE;
        targets.into_iter().for_each(|target| slots.add(target));
        slots
    }

    /// Of a slice of a transaction.
    pub fn of_request(request: &CommitRequest) -> SlotSet {
        let mut slots = SlotSet::of_targets(request.reads.iter().map(|entry| &entry.target));
        request.writes.iter().for_each(|write| slots.add_key(&write.key));
        slots
    }

    /// Of a slice that is in the log.
    pub fn of_prepared(prepared: &Prepared) -> SlotSet {
        let mut slots = SlotSet::of_targets(prepared.reads.iter().map(|read| &read.target));
        prepared.writes.iter().for_each(|write| slots.add_key(&write.key));
        slots
    }
}

/// The slot of a key, unless it is an escrow share's.
pub(crate) fn of_key(key: &Key) -> Option<Slot> {
    (!escrow::is_key(key.as_bytes())).then(|| slot_of(key.as_bytes()))
}

fn slot_of(key: &[u8]) -> Slot {
    let column = key.get(INDEX..).unwrap_or_default();
    Slot::of(&column[..column_len(column).unwrap_or(column.len().min(NUMBER))])
}

/// How long the first of some encoded columns is ([`meridian_base::key::encode`]), if bytes tell.
/// Whatever begins with a column of which this is known has it, too.
fn column_len(columns: &[u8]) -> Option<usize> {
    let (marker, value) = columns.split_first()?;
    let (high, end) = match marker {
        0x01 => (value.first()?, [0x00, 0x01]),
        // A descending column: its bytes are inverted.
        0xFE => (value.first()?, [0xFF, 0xFE]),
        _ => return None,
    };
    match high {
        0x7F | 0x80 => (columns.len() >= NUMBER).then_some(NUMBER),
        _ => value.windows(2).position(|pair| pair == end).map(|at| 1 + at + 2),
    }
}

/// The slot of all keys in a range, if they have the same.
fn fixed(start: &Key, end: &Key) -> Option<Slot> {
    let len = column_len(start.as_bytes().get(INDEX..)?)?;
    let prefix = &start.as_bytes()[..INDEX + len];
    let is_fixed = Key::new(prefix).prefix_end().is_some_and(|behind| *end <= behind);
    is_fixed.then(|| slot_of(prefix))
}

/// Whether a host may certify a transaction: no escrow shares, nothing that is reserved, and not
/// larger than its ring takes.
pub(crate) fn is_plain(request: &CommitRequest) -> bool {
    let is_read_plain =
        |entry: &ReadEntry| entry.until != ReadEntry::AT_PREPARE && !escrow::is_key(entry.target.start().as_bytes());
    request.bytes() + 32 * request.writes.len() <= BYTES_MAX
        && request.reads.iter().all(is_read_plain)
        && request
            .writes
            .iter()
            .all(|write| matches!(write.change, Change::Put(_) | Change::Delete) && !escrow::is_key(write.key.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::KeyRange;
    use meridian_base::key::encode;
    use proptest::prelude::*;

    fn key(index: u32, columns: &[i64]) -> Key {
        let mut bytes = Vec::new();
        encode::index(&mut bytes, index);
        columns.iter().for_each(|column| encode::i64(&mut bytes, *column));
        Key::new(&bytes)
    }

    fn of(target: Target) -> Vec<Slot> {
        SlotSet::of_targets([&target]).iter().collect()
    }

    #[test]
    fn rows_with_one_first_column_have_one_slot_in_all_indexes() {
        let slot = of(Target::Key(key(7, &[5, 1])));
        assert_eq!(slot.len(), 1);
        assert_eq!(slot, of(Target::Key(key(9, &[5, 8]))));
        assert_ne!(slot, of(Target::Key(key(7, &[6, 1]))));
    }

    /// What a range needs is at least what its keys need.
    #[test]
    fn a_range_has_one_slot_only_if_its_bounds_fix_the_first_column() {
        let prefix = key(7, &[5]);
        let whole = KeyRange::prefix(prefix.as_bytes());
        let part = KeyRange::new(key(7, &[5, 3]), key(7, &[5, 9]));
        let slot = of(Target::Key(key(7, &[5, 4])));
        assert_eq!(of(Target::Range(whole)), slot);
        assert_eq!(of(Target::Range(part)), slot);
        let wide = [
            KeyRange::prefix(&7_u32.to_be_bytes()),
            KeyRange::new(key(7, &[5, 3]), key(7, &[6])),
            KeyRange::new(key(7, &[5]), key(7, &[6, 1])),
        ];
        for range in &wide[..1] {
            assert_eq!(of(Target::Range(range.clone())).len(), usize::from(SLOTS), "{range:?}");
        }
        assert_eq!(of(Target::Range(wide[1].clone())), slot, "up to the next value, without it");
        assert_eq!(of(Target::Range(wide[2].clone())).len(), usize::from(SLOTS));
    }

    #[test]
    fn texts_that_begin_alike_have_slots_of_their_own() {
        let key = |text: String| {
            let mut bytes = 7_u32.to_be_bytes().to_vec();
            encode::bytes(&mut bytes, text.as_bytes());
            bytes
        };
        let all = (0..100).map(|n| of(Target::Key(Key::new(&key(format!("customer-{n:04}"))))));
        assert!(all.collect::<std::collections::BTreeSet<_>>().len() > 80);
        let prefix = key("tenant-a".into());
        let mut row = prefix.clone();
        encode::i64(&mut row, 3);
        assert_eq!(of(Target::Range(KeyRange::prefix(&prefix))), of(Target::Key(Key::new(&row))));
    }

    proptest! {
        /// What a range needs contains what each of its keys needs.
        #[test]
        fn a_key_of_a_range_has_a_slot_of_the_range(
            [mut a, mut b, key] in prop::array::uniform3(prop::collection::vec(prop::sample::select(vec![0, 1, 0x7F, 0x80, 0xFE, 0xFF]), 0..16)),
            shared in 0_usize..16,
        ) {
            let shared = key.len().min(shared);
            a.splice(..a.len().min(shared), key[..shared].iter().copied());
            b.splice(..b.len().min(shared), key[..shared].iter().copied());
            let [a, b, key] = [a, b, key].map(|columns| Key::new(&[&7_u32.to_be_bytes(), &columns[..]].concat()));
            let range = KeyRange::new(a.clone().min(b.clone()), a.max(b));
            if range.contains(key.as_bytes()) {
                let needed = SlotSet::of_targets([&Target::Range(range)]);
                prop_assert!(needed.contains(slot_of(key.as_bytes())));
            }
        }
    }

    #[test]
    fn short_keys_and_shares() {
        assert_eq!(of(Target::Key(Key::new(&[1]))).len(), 1);
        assert_eq!(of(Target::Range(KeyRange::new(Key::MIN, Key::new(&[9])))).len(), usize::from(SLOTS));
        assert_eq!(of(Target::Key(Key::new(&[0x80, 0, 0, 1, 1]))), []);
    }
}
