//! The keys of one side of a join, by which rows of the other side that have no partner are left
//! out where they are read, before more of them is decoded.

use super::Failed;
use super::decode::Batch;
use super::groups::{hash_of, hashes_of};
use crate::types::Datum;

/// Bits for each key: one row of sixteen without a partner passes.
const BITS_OF_KEY: usize = 16;
const BITS_MIN: usize = 1 << 10;
/// More keys than these are not worth it: their bits are in no cache.
pub(in crate::exec) const KEYS_MAX: usize = 1 << 20;

/// A filter of a scan's rows: whether their values in these places may be one of the keys.
#[derive(Debug)]
pub(in crate::exec) struct Partners {
    slots: Vec<usize>,
    bits: Vec<u64>,
}

impl Partners {
    /// With room for so many keys, which none is yet.
    pub(in crate::exec) fn with_room(slots: Vec<usize>, keys: usize) -> Partners {
        let bits = (keys * BITS_OF_KEY).next_power_of_two().max(BITS_MIN);
        Partners { slots, bits: vec![0; bits / 64] }
    }

    pub(in crate::exec) fn add(&mut self, key: &[Datum]) {
        let (word, bit) = self.place(hash_of(key));
        self.bits[word] |= bit;
    }

    /// What reads a column of these places.
    pub(in crate::exec) fn slots(&self) -> &[usize] {
        &self.slots
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        // The upper bits are those of a product.
        let at = (hash >> 32) as usize & (self.bits.len() * 64 - 1);
        (at / 64, 1 << (at % 64))
    }

    /// Leaves the rows selected that may have a partner.
    pub(super) fn narrow(&self, batch: &mut Batch<'_>) -> Result<(), Failed> {
        let keys = self.slots.iter().map(|slot| batch.slot(*slot)).collect::<Result<Vec<_>, _>>()?;
        let hashes = hashes_of(&keys, &batch.selected, batch.rows);
        drop(keys);
        let may_have = |row: &u32| {
            let (word, bit) = self.place(hashes[*row as usize]);
            self.bits[word] & bit != 0
        };
        batch.selected.retain(may_have);
        Ok(())
    }
}
