//! Descriptors: what a host is doing to shared tuples, for everyone to see.
//!
//! A descriptor is for one transaction, or for one tuple's move, at a time; each use is an
//! *incarnation*. It is written by its host alone, and lists every tuple *before* its lock is
//! taken. So when the host has died, L finds all that it has left half done ([`crate::Repair`]).
//!
//! ```text
//!  0 state 8, zeros 24, incarnation 32      24 zeros, or 1 + the next descriptor with more places
//!  8 p; 0: none is drawn                    32 hosts that wait for the end: a bit each
//! 16 ring: 1 + the record's position;       40 tuples: 27 places; 0: none
//!    0: none was written
//! ```
//!
//! *The ring decides.* The record's position is stored before the ring's tail. If the position lies
//! before the tail, the transaction will be in the log; else it never was.

use crate::error::Damaged;
use crate::layout::DESCRIPTOR;
use crate::memory::Memory;
use crate::segment::Segment;
use crate::tuple::{Claim, Node};
use meridian_base::Timestamp;

const STATE: u64 = 0;
const P: u64 = 8;
const RING: u64 = 16;
const MORE: u64 = 24;
const WAITING: u64 = 32;
const PLACES: u64 = 40;

/// Tuples that one descriptor lists.
pub const PLACES_MAX: usize = ((DESCRIPTOR - PLACES) / 8) as usize;

const FREE: u64 = 0;
const IN_USE: u64 = 1;

/// A place of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    host: u8,
    number: u16,
    at: u64,
}

impl Place {
    pub fn new<M: Memory>(segment: &Segment<M>, host: u8, number: u16) -> Place {
        Place { host, number, at: segment.layout().descriptor(host, number) }
    }

    /// Which of its host's descriptors it is.
    pub fn number(self) -> u16 {
        self.number
    }

    /// The descriptor of a claim that was read from shared memory.
    pub fn of<M: Memory>(segment: &Segment<M>, claim: Claim) -> Result<Place, Damaged> {
        let sizes = segment.layout().sizes();
        match claim.host < sizes.hosts && u32::from(claim.descriptor) < sizes.descriptors {
            true => Ok(Place::new(segment, claim.host, claim.descriptor)),
            false => Err(Damaged(format!("a lock of descriptor {} of host {}", claim.descriptor, claim.host))),
        }
    }

    /// Begins the next incarnation: work on one's own block, of which nobody knows before the first
    /// lock names it. `more` is the next descriptor of the chain.
    pub fn begin<M: Memory>(self, segment: &Segment<M>, more: Option<u16>) -> Claim {
        let memory = segment.memory();
        let incarnation = ((memory.load(self.at + STATE) >> 32) as u32).wrapping_add(1);
        for field in (P..DESCRIPTOR).step_by(8) {
            memory.store(self.at + field, 0);
        }
        memory.store(self.at + MORE, more.map_or(0, |more| 1 + u64::from(more)));
        memory.store(self.at + STATE, IN_USE | u64::from(incarnation) << 32);
        Claim { host: self.host, descriptor: self.number, incarnation }
    }

    /// Ends the incarnation (one step). All of its locks are released.
    pub fn end<M: Memory>(self, segment: &Segment<M>, incarnation: u32) {
        segment.memory().store(self.at + STATE, FREE | u64::from(incarnation) << 32);
    }

    /// Rings the doorbells of the hosts that wait for the end (a step, and one for each). Comes
    /// after the end: a host that has set its bit later sees the end itself.
    pub fn wake<M: Memory>(self, segment: &Segment<M>) {
        let waiting = segment.memory().swap(self.at + WAITING, 0);
        (0..segment.hosts()).filter(|host| waiting >> host & 1 == 1).for_each(|host| segment.ring_doorbell(host));
    }

    /// The incarnation that is in use, if one is (one step).
    pub fn in_use<M: Memory>(self, segment: &Segment<M>) -> Option<u32> {
        let state = segment.memory().load(self.at + STATE);
        (state as u8 != FREE as u8).then_some((state >> 32) as u32)
    }

    /// Lists a tuple (one step).
    pub fn list<M: Memory>(self, segment: &Segment<M>, index: usize, node: Node) {
        assert!(index < PLACES_MAX, "place {index} of a descriptor");
        segment.memory().store(self.at + PLACES + 8 * index as u64, node.0);
    }

    /// A tuple that is listed (one step).
    pub fn listed<M: Memory>(self, segment: &Segment<M>, index: usize) -> Result<Option<Node>, Damaged> {
        match segment.memory().load(self.at + PLACES + 8 * index as u64) {
            0 => Ok(None),
            at => Ok(Some(Node(segment.layout().node(at)?))),
        }
    }

    /// The next descriptor of the chain (one step).
    pub fn more<M: Memory>(self, segment: &Segment<M>) -> Result<Option<Place>, Damaged> {
        match segment.memory().load(self.at + MORE) {
            0 => Ok(None),
            more => {
                let descriptor = u16::try_from(more - 1).unwrap_or(u16::MAX);
                Place::of(segment, Claim { host: self.host, descriptor, incarnation: 0 }).map(Some)
            }
        }
    }

    /// Publishes the timestamp (P9; one step).
    pub fn set_p<M: Memory>(self, segment: &Segment<M>, p: Timestamp) {
        segment.memory().store(self.at + P, p.0);
    }
    /// The timestamp, if one is published (one step).
    pub fn p<M: Memory>(self, segment: &Segment<M>) -> Option<Timestamp> {
        Some(Timestamp(segment.memory().load(self.at + P))).filter(|p| *p != Timestamp::MIN)
    }

    /// Says where the record lies that the next store of the tail decides (one step).
    pub fn set_ring<M: Memory>(self, segment: &Segment<M>, position: u64) {
        segment.memory().store(self.at + RING, position + 1);
    }
    /// Where the record lies (one step).
    pub fn ring<M: Memory>(self, segment: &Segment<M>) -> Option<u64> {
        segment.memory().load(self.at + RING).checked_sub(1)
    }
}

impl<M: Memory> Segment<M> {
    /// Whether a claim has ended (one step): a host that waits for it may look again.
    ///
    /// # Errors
    ///
    /// If the claim names no descriptor.
    pub fn has_ended(&self, claim: Claim) -> Result<bool, Damaged> {
        Ok(Place::of(self, claim)?.in_use(self) != Some(claim.incarnation))
    }

    /// The host's doorbell will ring when a claim has ended (one step). Look at the doorbell
    /// before, and at [`Segment::has_ended`] afterwards; then sleep until the doorbell has changed.
    ///
    /// # Errors
    ///
    /// If the claim names no descriptor.
    pub fn wait_for(&self, claim: Claim, host: u8) -> Result<(), Damaged> {
        let place = Place::of(self, claim)?;
        self.memory().fetch_or(place.at + WAITING, 1 << host);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::heap;

    #[test]
    fn an_incarnation_begins_empty_and_ends() {
        let segment = heap();
        let place = Place::new(&segment, 1, 2);
        let first = place.begin(&segment, None);
        place.set_p(&segment, Timestamp(8));
        place.set_ring(&segment, 0);
        place.list(&segment, 0, Node(segment.layout().chunk(0)));
        assert_eq!((place.p(&segment), place.ring(&segment)), (Some(Timestamp(8)), Some(0)));
        assert!(!segment.has_ended(first).unwrap());
        place.end(&segment, first.incarnation);
        assert!(segment.has_ended(first).unwrap());
        let second = place.begin(&segment, Some(3));
        assert_eq!(second.incarnation, first.incarnation + 1);
        assert_eq!((place.p(&segment), place.ring(&segment)), (None, None));
        assert_eq!(place.listed(&segment, 0).unwrap(), None);
        assert_eq!(place.more(&segment).unwrap(), Some(Place::new(&segment, 1, 3)));
        assert!(segment.has_ended(first).unwrap() && !segment.has_ended(second).unwrap());
    }

    /// Whichever way the steps of the waiter and of the holder lie, the waiter sees the end or its
    /// doorbell rings.
    #[test]
    fn no_wait_is_forgotten() {
        for order in (0_u32..16).filter(|order| order.count_ones() == 2) {
            let segment = heap();
            let place = Place::new(&segment, 0, 1);
            let claim = place.begin(&segment, None);
            let before = segment.doorbell(1);
            let (mut holder, mut waiter, mut has_ended) = (0, 0, false);
            for step in 0..4 {
                match (order >> step & 1 == 1, holder, waiter) {
                    (true, 0, _) => place.end(&segment, claim.incarnation),
                    (true, _, _) => place.wake(&segment),
                    (false, _, 0) => segment.wait_for(claim, 1).unwrap(),
                    (false, _, _) => has_ended = segment.has_ended(claim).unwrap(),
                }
                holder += order >> step & 1;
                waiter += 1 - (order >> step & 1);
            }
            assert!(has_ended || segment.doorbell(1) != before, "order {order:04b}");
            assert_eq!(segment.doorbell(0), 0, "nobody else is woken");
        }
    }

    #[test]
    fn a_damaged_descriptor_is_an_error() {
        let segment = heap();
        let place = Place::new(&segment, 0, 0);
        place.begin(&segment, Some(900));
        assert!(place.more(&segment).is_err());
        place.list(&segment, 0, Node(64));
        assert!(place.listed(&segment, 0).is_err());
        assert!(segment.has_ended(Claim { host: 9, descriptor: 0, incarnation: 1 }).is_err());
    }
}
