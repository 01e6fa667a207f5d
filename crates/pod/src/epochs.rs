//! When a block that was taken out of shared memory may be used again (C5).
//!
//! There is a global epoch. A host says from which epoch on its operations have begun: none of its
//! operations in progress began before the epoch in its word. A block that was unlinked while the
//! epoch was `e` may be used again when every host says `e + 1` or later: an operation that begins
//! then began after the block was unlinked.
//!
//! All of a host's operations enter and leave here, under its own lock. *Entering is one step*: the
//! epoch is loaded and counted before another thread of the host can say a later one.

use crate::error::Damaged;
use crate::layout::{header, host};
use crate::memory::Memory;
use crate::rules::Rules;
use crate::segment::Segment;
use std::collections::BTreeMap;

/// A host's operations in progress, by the epoch in which they began.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Epochs {
    host: u8,
    inside: BTreeMap<u64, u32>,
}

impl Epochs {
    /// Of a host that has just joined.
    pub fn new(host: u8) -> Epochs {
        Epochs { host, inside: BTreeMap::new() }
    }

    /// An operation begins (one step). Its epoch is what [`Epochs::leave`] takes.
    pub fn enter<M: Memory>(&mut self, segment: &Segment<M>) -> u64 {
        let epoch = segment.memory().load(header::EPOCH);
        *self.inside.entry(epoch).or_insert(0) += 1;
        epoch
    }

    /// It has ended, and holds no place of a node or a body any more.
    ///
    /// # Panics
    ///
    /// If none is inside with this epoch.
    pub fn leave(&mut self, epoch: u64) {
        let count = self.inside.get_mut(&epoch).expect("who leaves has entered");
        *count -= 1;
        if *count == 0 {
            self.inside.remove(&epoch);
        }
    }

    /// Says how far the host is (two steps under the host's lock). Called from time to time, also
    /// by an idle host.
    pub fn announce<M: Memory>(&self, segment: &Segment<M>) {
        let epoch = segment.memory().load(header::EPOCH);
        let first = self.inside.first_key_value().map_or(epoch, |(first, _)| *first);
        segment.memory().store(segment.layout().host(self.host) + host::EPOCH, first);
    }
}

impl<M: Memory> Segment<M> {
    /// The epoch now (one step): that of a block which was unlinked before.
    pub fn epoch(&self) -> u64 {
        self.memory().load(header::EPOCH)
    }

    /// Begins the next epoch, if every host has seen this one. Any host may, from time to time.
    ///
    /// # Errors
    ///
    /// If a host's word is damaged.
    pub fn advance_epoch(&self) -> Result<(), Damaged> {
        let epoch = self.epoch();
        if self.epoch_passed()? >= epoch {
            // Another host may have been faster.
            let _ = self.memory().compare_exchange(header::EPOCH, epoch, epoch + 1);
        }
        Ok(())
    }

    /// No operation of any host began before this epoch. Two steps for each host.
    ///
    /// # Errors
    ///
    /// If a host's word is damaged.
    pub fn epoch_passed(&self) -> Result<u64, Damaged> {
        let mut passed = u64::MAX;
        for number in 0..self.hosts() {
            if self.host(number)?.follows_feed() {
                passed = passed.min(self.memory().load(self.layout().host(number) + host::EPOCH));
            }
        }
        Ok(passed)
    }

    /// Whether a block that was unlinked in `epoch` may be used again.
    ///
    /// # Errors
    ///
    /// If a host's word is damaged.
    pub fn may_reuse(&self, epoch: u64, rules: Rules) -> Result<bool, Damaged> {
        Ok(!rules.awaits_epochs() || self.epoch_passed()? > epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::PlantedBug;
    use crate::testing::heap;
    use meridian_base::NodeId;

    #[test]
    fn a_block_waits_for_who_was_inside() {
        let segment = heap();
        segment.join(NodeId(1)).unwrap();
        segment.join(NodeId(2)).unwrap();
        let mut hosts = [Epochs::new(0), Epochs::new(1)];
        let inside = hosts[1].enter(&segment);
        let unlinked = segment.epoch();
        for _ in 0..4 {
            hosts.iter().for_each(|host| host.announce(&segment));
            segment.advance_epoch().unwrap();
        }
        assert!(!segment.may_reuse(unlinked, Rules::ALL).unwrap());
        assert!(segment.may_reuse(unlinked, Rules::without(PlantedBug::ReusesAtOnce)).unwrap());
        hosts[1].leave(inside);
        hosts.iter().for_each(|host| host.announce(&segment));
        assert!(segment.may_reuse(unlinked, Rules::ALL).unwrap());
    }
}
