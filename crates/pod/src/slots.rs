//! Which host owns which keys.
//!
//! A key's *slot* is a hash of its first column, the same for all tables and indexes. So the rows
//! of one warehouse or tenant have one owner. The slot's word names the host that certifies
//! transactions on these keys.
//!
//! A slot changes hands in three steps of its word: its owner marks it [`Hold::Leaving`] and
//! certifies nothing in it any more; when what is in flight or reserved there has ended and the new
//! owner has applied as much (row 61), the word names the new owner.

use crate::error::Damaged;
use crate::layout::{SLOTS, header};
use crate::memory::Memory;
use crate::segment::Segment;

/// A slot: 0 to 1,023.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

impl Slot {
    /// That of a key, from the bytes of its first column.
    pub fn of(first_column: &[u8]) -> Slot {
        Slot((crc32c::crc32c(first_column) % u32::from(SLOTS)) as u16)
    }
    /// All of them.
    pub fn all() -> impl Iterator<Item = Slot> {
        (0..SLOTS).map(Slot)
    }
}

/// What the owner does with a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// Nobody serves it yet.
    Free,
    /// The owner serves it.
    Owned,
    /// The owner certifies nothing in it any more.
    Leaving,
}

/// The content of a slot's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    pub hold: Hold,
    /// Meaningless if the slot is free.
    pub host: u8,
    /// The host that asks for it, if one does.
    pub wanted: Option<u8>,
    /// How often the word has changed.
    pub version: u32,
}

impl Holder {
    fn word(self) -> u64 {
        let wanted = self.wanted.map_or(0, |host| u64::from(host) + 1);
        self.hold as u64 | u64::from(self.host) << 8 | wanted << 16 | u64::from(self.version) << 32
    }
    fn from_word(word: u64) -> Result<Holder, Damaged> {
        let hold = match word as u8 {
            0 => Hold::Free,
            1 => Hold::Owned,
            2 => Hold::Leaving,
            other => return Err(Damaged(format!("a slot with state {other}"))),
        };
        Ok(Holder { hold, host: (word >> 8) as u8, wanted: ((word >> 16) as u8).checked_sub(1), version: (word >> 32) as u32 })
    }
    /// What follows it in the word; who asked for it has to ask the new owner.
    pub fn next(self, hold: Hold, host: u8) -> Holder {
        Holder { hold, host, wanted: None, version: self.version.wrapping_add(1) }
    }
}

impl<M: Memory> Segment<M> {
    /// Who has a slot (one step).
    ///
    /// # Errors
    ///
    /// If the word is none that a host writes.
    pub fn holder(&self, slot: Slot) -> Result<Holder, Damaged> {
        let holder = Holder::from_word(self.memory().load(self.layout().slot(slot.0)))?;
        match holder.host < self.hosts() {
            true => Ok(holder),
            false => Err(Damaged(format!("slot {} belongs to host {}", slot.0, holder.host))),
        }
    }

    /// Asks the owner for a slot, if nobody has changed the word since `from` was read (one step).
    /// Another host that asks later is not heard before the slot has changed hands.
    pub fn want_slot(&self, slot: Slot, from: Holder, host: u8) -> bool {
        let next = Holder { wanted: Some(host), version: from.version.wrapping_add(1), ..from };
        self.memory().compare_exchange(self.layout().slot(slot.0), from.word(), next.word()).is_ok()
    }

    /// Who gives slots away has applied the log up to this position (one step): it comes before the
    /// change of their words. Their new owner applies as much before it serves them.
    pub fn raise_given(&self, index: u64) {
        self.memory().fetch_max(header::GIVEN, index);
    }
    /// See [`Segment::raise_given`] (one step).
    pub fn given(&self) -> u64 {
        self.memory().load(header::GIVEN)
    }

    /// Changes who has a slot, if nobody has changed it since `from` was read (one step).
    pub fn change_holder(&self, slot: Slot, from: Holder, hold: Hold, host: u8) -> bool {
        let next = from.next(hold, host);
        self.memory().compare_exchange(self.layout().slot(slot.0), from.word(), next.word()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::heap;

    #[test]
    #[cfg_attr(miri, ignore = "hashes of 102,400 keys take too long")]
    fn slots_are_spread_evenly() {
        let mut count = vec![0; SLOTS.into()];
        for warehouse in 0..102_400_u32 {
            count[usize::from(Slot::of(&warehouse.to_be_bytes()).0)] += 1;
        }
        let (least, most) = (count.iter().min().unwrap(), count.iter().max().unwrap());
        assert!(*least > 50 && *most < 200, "100 keys a slot: {least} to {most}");
    }

    #[test]
    fn a_slot_changes_hands_once() {
        let segment = heap();
        let slot = Slot(5);
        let free = segment.holder(slot).unwrap();
        assert_eq!(free.hold, Hold::Free);
        assert!(segment.change_holder(slot, free, Hold::Owned, 1));
        assert!(!segment.change_holder(slot, free, Hold::Owned, 0), "it has changed since");
        let held = segment.holder(slot).unwrap();
        assert_eq!((held.hold, held.host, held.version), (Hold::Owned, 1, 1));
    }

    #[test]
    fn a_wish_is_heard_once_and_ends_with_the_change() {
        let segment = heap();
        let slot = Slot(9);
        let free = segment.holder(slot).unwrap();
        assert!(segment.change_holder(slot, free, Hold::Owned, 0));
        let held = segment.holder(slot).unwrap();
        assert!(segment.want_slot(slot, held, 1));
        assert!(!segment.want_slot(slot, held, 0), "the word has changed");
        let wanted = segment.holder(slot).unwrap();
        assert_eq!((wanted.hold, wanted.host, wanted.wanted), (Hold::Owned, 0, Some(1)));
        segment.raise_given(7);
        assert!(segment.change_holder(slot, wanted, Hold::Owned, 1));
        assert_eq!((segment.holder(slot).unwrap().wanted, segment.given()), (None, 7));
    }

    #[test]
    fn a_damaged_word_is_an_error() {
        let segment = heap();
        segment.memory().store(segment.layout().slot(3), 9);
        assert!(segment.holder(Slot(3)).is_err());
        segment.memory().store(segment.layout().slot(3), 1 | 77 << 8);
        assert!(segment.holder(Slot(3)).is_err());
    }
}
