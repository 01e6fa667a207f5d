//! The feed: what is durable, in the order of the log, for every host.
//!
//! L is its only writer. A record says what one entry of the group's log holds: its position, the
//! closed timestamp and the watermark, and its items: references to entries of rings, and bytes of
//! control records that came from L itself. Every host, L included, applies the feed in its order
//! (P4), takes what is in its slots, and then says how far it is. A host's part thus has the same
//! order as the log, whichever rings the transactions came through.
//!
//! A part of the feed is free when every host has passed it. If one does not, L waits; a host that
//! stops following is fenced, and then it does not count any more.

use crate::circle::{Circle, NoRoom, record_len};
use crate::error::Damaged;
use crate::layout::{header, host};
use crate::memory::Memory;
use crate::ring::Place;
use crate::segment::Segment;
use crate::slots::Slot;
use bytes::{Buf, Bytes};
use meridian_base::{LogPosition, NodeId, Timestamp, TxnId};

/// What an entry of the log holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FeedRecord {
    pub log: LogPosition,
    /// No version will appear at or below it, but for transactions that are prepared already.
    pub closed: Timestamp,
    /// The design's `F`.
    pub watermark: Timestamp,
    pub items: Vec<Item>,
}

/// A part of an entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// An entry of a ring.
    Entry(Reference),
    /// A control record, in the format of the log.
    Control(Bytes),
}

/// Which entry of a ring it is, and what a host needs to know if it does not read it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    pub place: Place,
    pub id: TxnId,
    pub at: Timestamp,
    pub slots: Vec<Slot>,
}

const ENTRY: u8 = 1;
const CONTROL: u8 = 2;

impl FeedRecord {
    /// ```text
    /// record  = index u64 | term u64 | closed u64 | watermark u64 | item*
    /// entry   = 1 u8 | host u8 | slots u16 | gateway u32 | id u64 | at u64 | begin u64 | end u64 | slot u16*
    /// control = 2 u8 | zeros 3 | len u32 | bytes
    /// ```
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32 + 48 * self.items.len());
        for word in [self.log.index, self.log.term, self.closed.0, self.watermark.0] {
            bytes.extend(word.to_le_bytes());
        }
        for item in &self.items {
            match item {
                Item::Entry(reference) => {
                    bytes.extend([ENTRY, reference.place.host]);
                    bytes.extend((reference.slots.len() as u16).to_le_bytes());
                    bytes.extend(reference.id.gateway.0.to_le_bytes());
                    for word in [reference.id.hlc.0, reference.at.0, reference.place.begin, reference.place.end] {
                        bytes.extend(word.to_le_bytes());
                    }
                    reference.slots.iter().for_each(|slot| bytes.extend(slot.0.to_le_bytes()));
                }
                Item::Control(control) => {
                    bytes.extend([CONTROL, 0, 0, 0]);
                    bytes.extend((control.len() as u32).to_le_bytes());
                    bytes.extend(control);
                }
            }
        }
        bytes
    }

    fn decode(mut bytes: Bytes) -> Option<FeedRecord> {
        if bytes.len() < 32 {
            return None;
        }
        let log = LogPosition { index: bytes.get_u64_le(), term: bytes.get_u64_le() };
        let (closed, watermark) = (Timestamp(bytes.get_u64_le()), Timestamp(bytes.get_u64_le()));
        let mut items = Vec::new();
        while !bytes.is_empty() {
            items.push(Item::decode(&mut bytes)?);
        }
        Some(FeedRecord { log, closed, watermark, items })
    }
}

impl Item {
    fn decode(bytes: &mut Bytes) -> Option<Item> {
        if bytes.len() < 8 {
            return None;
        }
        let (kind, host, count, word) = (bytes.get_u8(), bytes.get_u8(), usize::from(bytes.get_u16_le()), bytes.get_u32_le());
        match kind {
            ENTRY if bytes.len() >= 32 + 2 * count => {
                let id = TxnId { hlc: Timestamp(bytes.get_u64_le()), gateway: NodeId(word) };
                let at = Timestamp(bytes.get_u64_le());
                let place = Place { host, begin: bytes.get_u64_le(), end: bytes.get_u64_le() };
                let slots = (0..count).map(|_| Slot(bytes.get_u16_le())).collect();
                Some(Item::Entry(Reference { place, id, at, slots }))
            }
            CONTROL if bytes.len() >= word as usize => Some(Item::Control(bytes.split_to(word as usize))),
            _ => None,
        }
    }
}

/// L's end of the feed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FeedWriter {
    next: u64,
    /// Every host has passed this.
    passed: u64,
}

impl FeedWriter {
    /// Of a new segment.
    pub fn new() -> FeedWriter {
        FeedWriter { next: 0, passed: 0 }
    }

    /// Publishes what is durable: writes the record (own block), and stores the tail (one step).
    /// Gives the position behind it.
    ///
    /// # Errors
    ///
    /// [`NoRoom::Now`]: call [`FeedWriter::reclaim`], and wait if that does not help.
    pub fn publish<M: Memory>(&mut self, segment: &Segment<M>, record: &FeedRecord) -> Result<u64, NoRoom> {
        let payload = record.encode();
        let (size, len) = (segment.layout().sizes().feed, record_len(payload.len()));
        if len > size {
            return Err(NoRoom::Ever);
        }
        if self.next + len > self.passed + size {
            return Err(NoRoom::Now);
        }
        self.next = circle(segment).write(segment.memory(), self.next, &payload);
        segment.memory().store(header::FEED_TAIL, self.next);
        Ok(self.next)
    }

    /// Looks how far the hosts are. Two steps for each.
    ///
    /// # Errors
    ///
    /// If a host's word is damaged.
    pub fn reclaim<M: Memory>(&mut self, segment: &Segment<M>) -> Result<(), Damaged> {
        self.passed = segment.feed_passed()?.min(self.next);
        Ok(())
    }
}

impl Default for FeedWriter {
    fn default() -> FeedWriter {
        FeedWriter::new()
    }
}

/// A host's end of the feed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FeedReader {
    host: u8,
    next: u64,
}

impl FeedReader {
    /// Of a host that has just joined: from where [`Segment::join`] found the feed's end. Its part
    /// has to hold at least what the feed said before that.
    pub fn new<M: Memory>(segment: &Segment<M>, host: u8) -> FeedReader {
        FeedReader { host, next: segment.memory().load(segment.layout().host(host) + host::FEED_POSITION) }
    }

    /// Behind the last record that it gave.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// The next record, if there is one: loads the tail (one step), and reads what lies before it.
    /// The second part is the position behind the record.
    ///
    /// # Errors
    ///
    /// If what lies before the tail is no record.
    pub fn next<M: Memory>(&mut self, segment: &Segment<M>) -> Result<Option<(FeedRecord, u64)>, Damaged> {
        let tail = segment.memory().load(header::FEED_TAIL);
        if self.next == tail {
            return Ok(None);
        }
        let (payload, end) = circle(segment).read(segment.memory(), self.next, tail)?;
        let record = FeedRecord::decode(payload).ok_or_else(|| Damaged(format!("the record at {} of the feed", self.next)))?;
        self.next = end;
        Ok(Some((record, end)))
    }

    /// The host has applied all that [`FeedReader::next`] gave, and reads nothing of it any more
    /// (one step).
    pub fn passed<M: Memory>(&self, segment: &Segment<M>) {
        segment.memory().store(segment.layout().host(self.host) + host::FEED_POSITION, self.next);
    }
}

fn circle<M: Memory>(segment: &Segment<M>) -> Circle {
    Circle { at: segment.layout().feed(), size: segment.layout().sizes().feed }
}

impl<M: Memory> Segment<M> {
    /// The position of the feed that every host which follows it has passed; the largest number if
    /// none does. Two steps for each host.
    ///
    /// # Errors
    ///
    /// If a host's word is damaged.
    pub fn feed_passed(&self) -> Result<u64, Damaged> {
        let mut passed = u64::MAX;
        for number in 0..self.hosts() {
            if self.host(number)?.follows_feed() {
                passed = passed.min(self.memory().load(self.layout().host(number) + host::FEED_POSITION));
            }
        }
        Ok(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::heap;
    use proptest::prelude::*;

    fn record(items: Vec<Item>) -> FeedRecord {
        let log = LogPosition { index: 5, term: 2 };
        FeedRecord { log, closed: Timestamp(40), watermark: Timestamp(30), items }
    }

    fn reference(begin: u64, slots: Vec<Slot>) -> Item {
        let place = Place { host: 1, begin, end: begin + 80 };
        let id = TxnId { hlc: Timestamp(9), gateway: NodeId(3) };
        Item::Entry(Reference { place, id, at: Timestamp(50), slots })
    }

    #[test]
    fn a_host_that_joins_late_begins_at_the_end() {
        let segment = heap();
        let mut writer = FeedWriter::new();
        assert_eq!(segment.join(NodeId(1)).unwrap(), Some(0));
        let mut first = FeedReader::new(&segment, 0);
        let one = record(vec![reference(0, vec![Slot(7)]), Item::Control(Bytes::from_static(b"lease"))]);
        writer.publish(&segment, &one).unwrap();
        assert_eq!(segment.join(NodeId(2)).unwrap(), Some(1));
        let mut second = FeedReader::new(&segment, 1);
        let two = record(vec![]);
        let end = writer.publish(&segment, &two).unwrap();
        assert_eq!(first.next(&segment).unwrap().map(|(record, _)| record), Some(one));
        assert_eq!(first.next(&segment).unwrap(), Some((two.clone(), end)));
        assert_eq!(first.next(&segment).unwrap(), None);
        assert_eq!(second.next(&segment).unwrap(), Some((two, end)));
    }

    #[test]
    fn the_slowest_host_holds_the_feed_up() {
        let segment = heap();
        let mut writer = FeedWriter::new();
        segment.join(NodeId(1)).unwrap();
        segment.join(NodeId(2)).unwrap();
        let mut readers = [FeedReader::new(&segment, 0), FeedReader::new(&segment, 1)];
        let full = record(vec![Item::Control(vec![1; 1000].into())]);
        while writer.publish(&segment, &full).is_ok() {}
        readers[0].next(&segment).unwrap();
        readers[0].passed(&segment);
        writer.reclaim(&segment).unwrap();
        assert_eq!(writer.publish(&segment, &full), Err(NoRoom::Now), "host 1 has passed nothing");
        let state = segment.host(1).unwrap();
        assert!(segment.change_phase(1, state, crate::hosts::Phase::Fenced));
        writer.reclaim(&segment).unwrap();
        assert!(writer.publish(&segment, &full).is_ok(), "it does not count any more");
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(begins in prop::collection::vec(any::<u32>(), 0..5), control in any::<Vec<u8>>()) {
            let mut items: Vec<Item> = begins.iter().map(|b| reference(u64::from(*b), vec![Slot(1); *b as usize % 3])).collect();
            items.push(Item::Control(control.into()));
            let record = record(items);
            prop_assert_eq!(FeedRecord::decode(record.encode().into()), Some(record));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
            let _ = FeedRecord::decode(bytes.into());
        }
    }
}
