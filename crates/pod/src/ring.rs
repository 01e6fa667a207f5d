//! A host's ring: what it has certified, on its way into the log.
//!
//! Each host has a ring and is its only writer. Under its own lock it pushes [`Entry`]s in the
//! order of their timestamps. **The store of the tail decides (P1)**: what lies before the tail
//! will be in the log of this term, whatever becomes of the host; the rest never was. L copies
//! entries into the log ([`crate::Rings`]); when they are durable, all hosts read them here again,
//! by the references that the feed has ([`crate::feed`]). So a part of the ring is free when every
//! host has applied what lies in it.
//!
//! | step | function |
//! | --- | --- |
//! | look how far the others are | [`RingWriter::reclaim`] |
//! | write records behind the tail: own block | [`RingWriter::write`] |
//! | store the tail: the entries are decided | [`RingWriter::publish`] |
//!
//! A host that dies between the last two leaves a record that nobody will ever look at.

use crate::circle::{Circle, FRAME, NoRoom, record_len};
use crate::error::Damaged;
use crate::layout::{header, host};
use crate::memory::Memory;
use crate::rules::Rules;
use crate::segment::Segment;
use crate::slots::Slot;
use bytes::{Buf, Bytes};
use meridian_base::{NodeId, Timestamp, TxnId};
use std::collections::VecDeque;

const TRANSACTION: u8 = 1;
const PREPARED: u8 = 2;
const OUTCOME: u8 = 3;
const PROMISE: u8 = 4;
const GRANT: u8 = 5;

/// What a host tells the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A certified transaction of this group alone.
    Transaction(Logged),
    /// The group's vote for a transaction over several groups. L draws its timestamp as it pushes
    /// (P18).
    Prepared(Logged),
    /// What the votes came to. Its timestamp is another group's vote, and outside of the order.
    Outcome(Logged),
    /// Nothing at or below this timestamp will follow from this host.
    Promise(Timestamp),
    /// The host has seen the schema grant with this number and draws nothing above its bound.
    GrantSeen(u64),
}

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Logged {
    pub id: TxnId,
    pub at: Timestamp,
    /// The slots of the keys that it writes; who has none of them need not read the body.
    pub slots: Vec<Slot>,
    /// In the format of the log; this crate does not look into it.
    pub body: Bytes,
}

impl Entry {
    /// The timestamp that orders it in its ring.
    pub fn ordered_at(&self) -> Option<Timestamp> {
        match self {
            Entry::Transaction(logged) | Entry::Prepared(logged) => Some(logged.at),
            Entry::Promise(at) => Some(*at),
            Entry::Outcome(_) | Entry::GrantSeen(_) => None,
        }
    }

    /// The record, if it is one that the log will have.
    pub fn logged(&self) -> Option<&Logged> {
        match self {
            Entry::Transaction(logged) | Entry::Prepared(logged) | Entry::Outcome(logged) => Some(logged),
            Entry::Promise(_) | Entry::GrantSeen(_) => None,
        }
    }

    /// `kind u8 | zero u8 | slots u16 | gateway u32 | id u64 | at u64 | slot u16* | body`
    fn encode(&self) -> Vec<u8> {
        let (kind, logged, at) = match self {
            Entry::Transaction(logged) => (TRANSACTION, Some(logged), logged.at.0),
            Entry::Prepared(logged) => (PREPARED, Some(logged), logged.at.0),
            Entry::Outcome(logged) => (OUTCOME, Some(logged), logged.at.0),
            Entry::Promise(at) => (PROMISE, None, at.0),
            Entry::GrantSeen(number) => (GRANT, None, *number),
        };
        let (id, slots, body) =
            logged.map_or((TxnId::default(), &[][..], &[][..]), |logged| (logged.id, &logged.slots[..], &logged.body[..]));
        let mut bytes = Vec::with_capacity(24 + 2 * slots.len() + body.len());
        bytes.extend([kind, 0]);
        bytes.extend((slots.len() as u16).to_le_bytes());
        bytes.extend(id.gateway.0.to_le_bytes());
        bytes.extend(id.hlc.0.to_le_bytes());
        bytes.extend(at.to_le_bytes());
        slots.iter().for_each(|slot| bytes.extend(slot.0.to_le_bytes()));
        bytes.extend(body);
        bytes
    }

    fn decode(mut bytes: Bytes) -> Option<Entry> {
        if bytes.len() < 24 {
            return None;
        }
        let kind = bytes.get_u8();
        bytes.advance(1);
        let count = usize::from(bytes.get_u16_le());
        let gateway = NodeId(bytes.get_u32_le());
        let id = TxnId { hlc: Timestamp(bytes.get_u64_le()), gateway };
        let at = bytes.get_u64_le();
        if bytes.len() < 2 * count {
            return None;
        }
        let slots = (0..count).map(|_| Slot(bytes.get_u16_le())).collect();
        let logged = Logged { id, at: Timestamp(at), slots, body: bytes };
        match kind {
            TRANSACTION => Some(Entry::Transaction(logged)),
            PREPARED => Some(Entry::Prepared(logged)),
            OUTCOME => Some(Entry::Outcome(logged)),
            PROMISE => Some(Entry::Promise(Timestamp(at))),
            GRANT => Some(Entry::GrantSeen(at)),
            _ => None,
        }
    }
}

/// Where an entry lies in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub host: u8,
    pub begin: u64,
    /// The position behind it.
    pub end: u64,
}

/// What a record of the ring waits for before its space is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Need {
    /// L takes it; nobody else reads it.
    Taken,
    /// The feed refers to it, at a position that is not known yet.
    Fed,
    /// Every host passes this position of the feed.
    Passed(u64),
}

/// The host's end of its ring. One for each host, under its lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RingWriter {
    host: u8,
    rules: Rules,
    /// What the tail's word holds.
    tail: u64,
    /// Where the next record goes.
    next: u64,
    /// What lies before this may be written over.
    free: u64,
    /// The ends of the records from `free` on, and what each waits for.
    needs: VecDeque<(u64, Need)>,
    last: Timestamp,
}

impl RingWriter {
    /// Of a host that has just joined. What its predecessor left in the ring stays until every host
    /// has passed it.
    pub fn new<M: Memory>(segment: &Segment<M>, host: u8, rules: Rules) -> RingWriter {
        let tail = segment.memory().load(segment.layout().host(host) + host::RING_TAIL);
        let passed = Need::Passed(segment.memory().load(header::FEED_TAIL));
        let free = tail.saturating_sub(segment.layout().sizes().ring);
        RingWriter { host, rules, tail, next: tail, free, needs: VecDeque::from([(tail, passed)]), last: Timestamp::MIN }
    }

    /// The largest timestamp that was pushed or promised.
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// Writes an entry behind the tail. It is not decided before [`RingWriter::publish`]; several
    /// may be written before that.
    ///
    /// # Errors
    ///
    /// [`NoRoom::Now`]: call [`RingWriter::reclaim`], and wait if that does not help.
    ///
    /// # Panics
    ///
    /// If the timestamp is not above that of the last transaction, or below a promise: the caller
    /// certifies, draws and pushes under one lock.
    pub fn write<M: Memory>(&mut self, segment: &Segment<M>, entry: &Entry) -> Result<Place, NoRoom> {
        let payload = entry.encode();
        let (size, len) = (segment.layout().sizes().ring, record_len(payload.len()));
        if len > size {
            return Err(NoRoom::Ever);
        }
        if self.next + len > self.free + size {
            return Err(NoRoom::Now);
        }
        if let Some(at) = entry.ordered_at() {
            let is_in_order = if matches!(entry, Entry::Promise(_)) { at >= self.last } else { at > self.last };
            assert!(is_in_order, "a ring is in the order of timestamps: {at} after {}", self.last);
            self.last = at;
        }
        let begin = self.next;
        self.next = circle(segment, self.host).write(segment.memory(), begin, &payload);
        self.needs.push_back((self.next, if entry.logged().is_some() { Need::Fed } else { Need::Taken }));
        Ok(Place { host: self.host, begin, end: self.next })
    }

    /// Stores the tail: what was written is decided (P1; one step).
    pub fn publish<M: Memory>(&mut self, segment: &Segment<M>) {
        self.tail = self.next;
        segment.memory().store(segment.layout().host(self.host) + host::RING_TAIL, self.tail);
    }

    /// Both, for one entry.
    ///
    /// # Errors
    ///
    /// As [`RingWriter::write`].
    pub fn push<M: Memory>(&mut self, segment: &Segment<M>, entry: &Entry) -> Result<Place, NoRoom> {
        let place = self.write(segment, entry)?;
        self.publish(segment);
        Ok(place)
    }

    /// The feed refers to an entry of this ring, in a record that ends at `fed`. The host calls it
    /// for all of its entries, in order, as it applies the feed.
    pub fn fed(&mut self, place: Place, fed: u64) {
        let need = self.needs.iter_mut().find(|(end, _)| *end == place.end);
        if let Some((_, need)) = need {
            *need = Need::Passed(fed);
        }
    }

    /// Looks how far L and the others are, and frees what they have passed. A step for each word
    /// that it loads; the order does not matter, since all of them only grow.
    ///
    /// # Errors
    ///
    /// If a host's word is damaged.
    pub fn reclaim<M: Memory>(&mut self, segment: &Segment<M>) -> Result<(), Damaged> {
        let taken = segment.memory().load(segment.layout().host(self.host) + host::RING_TAKEN);
        let passed = match self.rules.keeps_until_applied() {
            false => u64::MAX,
            true => segment.feed_passed()?,
        };
        while let Some((end, need)) = self.needs.front() {
            let is_free = match need {
                Need::Taken => *end <= taken,
                Need::Fed => !self.rules.keeps_until_applied() && *end <= taken,
                Need::Passed(fed) => *fed <= passed,
            };
            if !is_free {
                break;
            }
            self.free = *end;
            self.needs.pop_front();
        }
        Ok(())
    }
}

pub(crate) fn circle<M: Memory>(segment: &Segment<M>, host: u8) -> Circle {
    Circle { at: segment.layout().ring(host), size: segment.layout().sizes().ring }
}

impl<M: Memory> Segment<M> {
    /// Reads an entry of any host's ring by its place, which the feed tells.
    ///
    /// # Errors
    ///
    /// If what is there is no such entry.
    pub fn entry(&self, place: Place) -> Result<Entry, Damaged> {
        if place.host >= self.hosts() {
            return Err(Damaged(format!("an entry of host {}", place.host)));
        }
        self.forget_entries(place.host, place.begin, place.end);
        self.entry_before(place.host, place.begin, place.end).map(|(entry, _)| entry)
    }

    /// Comes before [`Segment::entry_before`] reads entries between these positions: once for all
    /// of them, since a device is slow to begin.
    pub(crate) fn forget_entries(&self, host: u8, begin: u64, end: u64) {
        circle(self, host).invalidate(self.memory(), begin, end);
    }

    /// Reads the entry at a position of a ring, which ends at or before `end`.
    pub(crate) fn entry_before(&self, host: u8, begin: u64, end: u64) -> Result<(Entry, Place), Damaged> {
        let (payload, behind) = circle(self, host).read_again(self.memory(), begin, end)?;
        let entry = Entry::decode(payload).ok_or_else(|| Damaged(format!("the entry at {begin} of host {host}'s ring")))?;
        Ok((entry, Place { host, begin, end: behind }))
    }
}

/// Bytes of a ring that an entry with so many slots and bytes of body takes.
pub fn bytes_of_entry(slots: usize, body: usize) -> u64 {
    record_len(24 + 2 * slots + body)
}

/// The largest body of an entry in a ring of this size.
pub fn body_max(ring: u64, slots: usize) -> u64 {
    ring.saturating_sub((FRAME + 24 + 2 * slots) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::heap;
    use proptest::prelude::*;

    fn entries() -> impl Strategy<Value = Entry> {
        let logged = (any::<u64>(), any::<u32>(), any::<u64>(), prop::collection::vec(0_u16..1024, 0..4), any::<Vec<u8>>());
        let logged = logged.prop_map(|(hlc, gateway, at, slots, body)| Logged {
            id: TxnId { hlc: Timestamp(hlc), gateway: NodeId(gateway) },
            at: Timestamp(at),
            slots: slots.into_iter().map(Slot).collect(),
            body: body.into(),
        });
        (0..5, logged).prop_map(|(kind, logged)| match kind {
            0 => Entry::Transaction(logged),
            1 => Entry::Prepared(logged),
            2 => Entry::Outcome(logged),
            3 => Entry::Promise(logged.at),
            _ => Entry::GrantSeen(logged.at.0),
        })
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(entry in entries()) {
            prop_assert_eq!(Entry::decode(entry.encode().into()), Some(entry));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
            let _ = Entry::decode(bytes.into());
        }
    }

    #[test]
    #[should_panic(expected = "order of timestamps")]
    fn a_timestamp_at_a_promise_is_refused() {
        let segment = heap();
        let mut ring = RingWriter::new(&segment, 0, Rules::ALL);
        ring.reclaim(&segment).unwrap();
        ring.push(&segment, &Entry::Promise(Timestamp(7))).unwrap();
        let logged = Logged { id: TxnId::default(), at: Timestamp(7), slots: vec![], body: Bytes::new() };
        let _ = ring.push(&segment, &Entry::Transaction(logged));
    }

    #[test]
    fn a_body_has_a_bound() {
        let segment = heap();
        let mut ring = RingWriter::new(&segment, 0, Rules::ALL);
        ring.reclaim(&segment).unwrap();
        let most = body_max(segment.layout().sizes().ring, 1) as usize;
        let entry = |len| Logged { id: TxnId::default(), at: Timestamp(1), slots: vec![Slot(1)], body: vec![0; len].into() };
        assert_eq!(ring.write(&segment, &Entry::Transaction(entry(most + 1))), Err(NoRoom::Ever));
        assert!(ring.write(&segment, &Entry::Transaction(entry(most))).is_ok());
        assert_eq!(bytes_of_entry(1, most), segment.layout().sizes().ring);
    }
}
