//! L's end of all rings: what it takes from them, and what that promises.
//!
//! L copies entries from the hosts' rings into entries of the log. Between hosts these are not in
//! the order of timestamps. What L may *close* follows from the order inside of each ring: nothing
//! at or below the last timestamp that was taken from a ring can follow in it. So the closed
//! timestamp is the least of these, over all hosts (P2). An idle host promises its clock from time
//! to time, through its ring like everything else.
//!
//! | step | function |
//! | --- | --- |
//! | count a host, then let it draw | [`Rings::admit`] |
//! | load a tail, read what lies before it | [`Rings::take`] |
//! | say what is taken | [`Rings::taken`] |
//! | a host will never write again | [`Rings::fence`] |
//! | its ring is empty for ever | [`Rings::seal`] |
//!
//! A host counts from *before* it may draw: otherwise a timestamp that it draws now could lie below
//! one that L closes without it.

use crate::error::Damaged;
use crate::hosts::Phase;
use crate::layout::{header, host};
use crate::memory::Memory;
use crate::ring::{Entry, Place};
use crate::rules::Rules;
use crate::segment::Segment;
use meridian_base::Timestamp;

/// What L knows of a host's ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Taken {
    /// Its entries may still come: it was admitted and is not sealed.
    counts: bool,
    next: u64,
    /// Nothing at or below this follows.
    bound: Timestamp,
    /// The last schema grant that the host has acknowledged.
    grant: u64,
}

/// See the module's essay. L has one, for its term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rings {
    rules: Rules,
    hosts: Vec<Taken>,
}

impl Rings {
    /// Of a new segment: no host is in it.
    pub fn new<M: Memory>(segment: &Segment<M>, rules: Rules) -> Rings {
        let none = Taken { counts: false, next: 0, bound: Timestamp::MIN, grant: 0 };
        Rings { rules, hosts: vec![none; segment.hosts().into()] }
    }

    fn of(&mut self, host: u8) -> &mut Taken {
        &mut self.hosts[usize::from(host)]
    }

    /// A joining host has the rows of its slots: counts it, then makes it live (two steps). Whether
    /// it is live now.
    ///
    /// # Errors
    ///
    /// If the host's word is damaged.
    pub fn admit<M: Memory>(&mut self, segment: &Segment<M>, host: u8) -> Result<bool, Damaged> {
        let state = segment.host(host)?;
        if state.phase != Phase::Joining {
            return Ok(state.phase == Phase::Live);
        }
        let bound = segment.last_drawn();
        *self.of(host) = Taken { counts: true, bound, grant: 0, ..*self.of(host) };
        Ok(segment.change_phase(host, state, Phase::Live))
    }

    /// Takes what is in a host's ring: loads its tail (one step) and reads up to about `bytes_max`
    /// bytes of what lies before it.
    ///
    /// # Errors
    ///
    /// If what lies before the tail is no entry, or if a part of the memory is lost.
    pub fn take<M: Memory>(&mut self, segment: &Segment<M>, host: u8, bytes_max: u64) -> Result<Vec<(Place, Entry)>, Damaged> {
        let tail = segment.memory().load(segment.layout().host(host) + host::RING_TAIL);
        let begin = self.of(host).next;
        let mut entries = Vec::new();
        if begin < tail {
            segment.forget_entries(host, begin, tail);
        }
        while self.of(host).next < tail && self.of(host).next - begin < bytes_max {
            let (entry, place) = segment.entry_before(host, self.of(host).next, tail)?;
            let taken = self.of(host);
            taken.next = place.end;
            if let Some(at) = entry.ordered_at() {
                taken.bound = taken.bound.max(at);
            }
            if let Entry::GrantSeen(number) = entry {
                taken.grant = taken.grant.max(number);
            }
            entries.push((place, entry));
        }
        segment.is_there()?;
        Ok(entries)
    }

    /// Tells the host what was taken (one step). Comes after the entries are in a proposal: their
    /// bytes are needed no more, but by those that the feed will refer them to.
    pub fn taken<M: Memory>(&self, segment: &Segment<M>, host: u8) {
        let at = segment.layout().host(host) + host::RING_TAKEN;
        segment.memory().store(at, self.hosts[usize::from(host)].next);
    }

    /// What an entry of the log may close that holds all that was taken (P2). A step only with the
    /// planted bug.
    pub fn closed<M: Memory>(&self, segment: &Segment<M>) -> Timestamp {
        if !self.rules.closes_by_rings() {
            return segment.last_drawn();
        }
        self.hosts.iter().filter(|taken| taken.counts).map(|taken| taken.bound).min().unwrap_or(Timestamp::MIN)
    }

    /// Whether every host has acknowledged this schema grant or a later one: then the step that
    /// lowered it may go on (row 75).
    pub fn grant_is_seen(&self, number: u64) -> bool {
        !self.rules.awaits_grants_seen() || self.hosts.iter().filter(|taken| taken.counts).all(|taken| taken.grant >= number)
    }

    /// These entries are durable: raises `acked` (P3; one step). Comes before the feed, and before
    /// any answer.
    pub fn durable<'a, M: Memory>(&self, segment: &Segment<M>, entries: impl IntoIterator<Item = &'a Entry>) {
        let counts = |entry: &&Entry| self.rules.acks_votes() || !matches!(entry, Entry::Prepared(_));
        let newest = entries.into_iter().filter(counts).filter_map(Entry::logged).map(|logged| logged.at).max();
        if let Some(newest) = newest {
            segment.raise_acked(newest);
        }
    }

    /// The caller knows that a host will never write again (two steps).
    ///
    /// # Errors
    ///
    /// If the host's word is damaged.
    pub fn fence<M: Memory>(&self, segment: &Segment<M>, host: u8) -> Result<(), Damaged> {
        loop {
            let state = segment.host(host)?;
            let is_there = matches!(state.phase, Phase::Joining | Phase::Live | Phase::Leaving);
            if !is_there || segment.change_phase(host, state, Phase::Fenced) {
                return Ok(());
            }
        }
    }

    /// Whether everything in the ring of a fenced or leaving host has been taken. Then nothing of
    /// it will come, its promises hold nothing up any more, and its line is marked (three steps).
    ///
    /// # Errors
    ///
    /// If the host's word is damaged.
    pub fn seal<M: Memory>(&mut self, segment: &Segment<M>, host: u8) -> Result<bool, Damaged> {
        let state = segment.host(host)?;
        if state.phase == Phase::Sealed {
            return Ok(true);
        }
        if !matches!(state.phase, Phase::Fenced | Phase::Leaving) {
            return Ok(false);
        }
        let tail = segment.memory().load(segment.layout().host(host) + host::RING_TAIL);
        if self.of(host).next < tail && self.rules.drains_before_sealing() {
            return Ok(false);
        }
        self.of(host).counts = false;
        Ok(segment.change_phase(host, state, Phase::Sealed))
    }

    /// Another node may take the line of a sealed host (two steps). Comes after the host's slots
    /// have other owners and its descriptors are repaired.
    ///
    /// # Errors
    ///
    /// If the host's word is damaged.
    pub fn release<M: Memory>(&self, segment: &Segment<M>, host: u8) -> Result<bool, Damaged> {
        let state = segment.host(host)?;
        Ok(state.phase == Phase::Sealed && segment.change_phase(host, state, Phase::Free))
    }
}

/// The schema grant that hosts draw timestamps under.
impl<M: Memory> Segment<M> {
    /// The number and the bound of the newest grant (two steps): no transaction is certified above
    /// the bound. The number is loaded first, so the bound is of that grant or of a later one; a
    /// host acknowledges this number.
    pub fn grant(&self) -> (u64, Timestamp) {
        let number = self.memory().load(header::GRANT + 8);
        (number, Timestamp(self.memory().load(header::GRANT)))
    }

    /// L: a grant is durable (two steps).
    pub fn set_grant(&self, number: u64, bound: Timestamp) {
        self.memory().store(header::GRANT, bound.0);
        self.memory().store(header::GRANT + 8, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Heap;
    use crate::ring::{Logged, RingWriter};
    use crate::rules::PlantedBug;
    use crate::testing::heap;
    use bytes::Bytes;
    use meridian_base::{NodeId, TxnId};

    fn entry(at: u64) -> Entry {
        Entry::Transaction(Logged { id: TxnId::default(), at: Timestamp(at), slots: vec![], body: Bytes::new() })
    }

    fn pod(rules: Rules) -> (Segment<Heap>, Rings, [RingWriter; 2]) {
        let segment = heap();
        let mut rings = Rings::new(&segment, rules);
        let writers = [0, 1].map(|host| {
            assert_eq!(segment.join(NodeId(1 + u32::from(host))).unwrap(), Some(host));
            assert!(rings.admit(&segment, host).unwrap());
            let mut writer = RingWriter::new(&segment, host, rules);
            writer.reclaim(&segment).unwrap();
            writer
        });
        (segment, rings, writers)
    }

    #[test]
    fn closed_is_the_least_of_what_was_taken() {
        let (segment, mut rings, [mut a, mut b]) = pod(Rules::ALL);
        a.push(&segment, &entry(5)).unwrap();
        b.push(&segment, &Entry::Promise(Timestamp(9))).unwrap();
        b.push(&segment, &entry(12)).unwrap();
        assert_eq!(rings.take(&segment, 1, 1).unwrap().len(), 1);
        assert_eq!(rings.closed(&segment), Timestamp(0), "host 0 may have anything in its ring");
        assert_eq!(rings.take(&segment, 0, u64::MAX).unwrap().len(), 1);
        assert_eq!(rings.closed(&segment), Timestamp(5));
        rings.fence(&segment, 0).unwrap();
        assert!(rings.seal(&segment, 0).unwrap());
        assert_eq!(rings.closed(&segment), Timestamp(9));
    }

    #[test]
    fn a_fenced_ring_is_drained_before_it_is_sealed() {
        let (segment, mut rings, [_, mut b]) = pod(Rules::ALL);
        b.push(&segment, &entry(5)).unwrap();
        b.write(&segment, &entry(6)).unwrap();
        assert!(!rings.seal(&segment, 1).unwrap(), "it lives");
        rings.fence(&segment, 1).unwrap();
        assert!(!rings.seal(&segment, 1).unwrap(), "it has an entry");
        assert_eq!(rings.take(&segment, 1, u64::MAX).unwrap().len(), 1, "what was not published never was");
        assert!(rings.seal(&segment, 1).unwrap());
        assert!(rings.release(&segment, 1).unwrap());
        assert_eq!(segment.join(NodeId(9)).unwrap(), Some(1));
        let (segment, mut rings, [_, mut b]) = pod(Rules::without(PlantedBug::SealedBeforeDrained));
        b.push(&segment, &entry(5)).unwrap();
        rings.fence(&segment, 1).unwrap();
        assert!(rings.seal(&segment, 1).unwrap(), "row 59: the entry at 5 is still to come");
    }

    /// Row 75. Host 1 certifies at 20 under the old grant after L has lowered the bound to 15.
    #[test]
    fn a_lowered_grant_counts_when_every_host_has_acknowledged_it() {
        for (rules, goes_on) in [(Rules::ALL, false), (Rules::without(PlantedBug::GrantNotAcknowledged), true)] {
            let (segment, mut rings, [mut a, mut b]) = pod(rules);
            segment.set_grant(4, Timestamp(30));
            let (_, seen_by_b) = segment.grant();
            segment.set_grant(5, Timestamp(15));
            let (number, bound) = segment.grant();
            assert_eq!((number, bound), (5, Timestamp(15)));
            a.push(&segment, &Entry::GrantSeen(number)).unwrap();
            rings.take(&segment, 0, u64::MAX).unwrap();
            rings.take(&segment, 1, u64::MAX).unwrap();
            assert_eq!(rings.grant_is_seen(5), goes_on, "the step goes on");
            assert!(Timestamp(20) <= seen_by_b);
            b.push(&segment, &entry(20)).unwrap();
            b.push(&segment, &Entry::GrantSeen(5)).unwrap();
            rings.take(&segment, 1, u64::MAX).unwrap();
            assert!(rings.grant_is_seen(5));
        }
    }

    /// Row 54, P3.
    #[test]
    fn a_durable_vote_raises_acked() {
        let vote = Logged { id: TxnId::default(), at: Timestamp(8), slots: vec![], body: Bytes::new() };
        for (rules, acked) in [(Rules::ALL, 8), (Rules::without(PlantedBug::VotesNotAcked), 0)] {
            let (segment, rings, _) = pod(rules);
            rings.durable(&segment, &[Entry::Prepared(vote.clone())]);
            assert_eq!(segment.acked(), Timestamp(acked));
        }
    }
}
