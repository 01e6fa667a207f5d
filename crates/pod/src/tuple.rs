//! The words of a shared tuple (`docs/design/pod.md`).
//!
//! ```text
//!   0 lock           kind 8, host 8, descriptor 16, incarnation 32
//!   8 newest         timestamp of the newest committed version
//!  16 columns        what it changed
//!  24 older          the version before that
//!  32 older columns
//!  40 low            versions at or below: which columns they changed is not known
//!  48 body           line 38, valid at host 16, sequence 10
//!  56 identity       generation 32, checksum of the key 32
//!  64 pending body   of the transaction that has the lock
//!  72 head           slot 16, key length 16, height 8, zeros 8, second chance 16
//!  80 tower          the next node, by level
//!     key
//! ```
//!
//! # The lock
//!
//! Only who has the lock changes the other words, but for the body's «valid» bits. A free lock
//! keeps the name of its last holder. So two loads of a lock that give the same *free* word mean
//! that nobody had it in between: a host never locks twice under one incarnation of a descriptor.
//! What a reader loads between the two belongs together.
//!
//! A holder finishes in an order that a reader of a *locked* tuple relies on as well: `newest`
//! becomes `p` before the body changes. A reader that loads `newest`, the body, and the same
//! `newest` again has the body of that version.

use crate::error::Damaged;
use crate::memory::{LINE, Memory};
use crate::segment::Segment;
use crate::slots::Slot;
use bytes::Bytes;
use meridian_base::{ColumnMask, Timestamp};

pub(crate) const LOCK: u64 = 0;
pub(crate) const NEWEST: u64 = 8;
pub(crate) const COLUMNS: u64 = 16;
pub(crate) const OLDER: u64 = 24;
pub(crate) const OLDER_COLUMNS: u64 = 32;
pub(crate) const LOW: u64 = 40;
pub(crate) const BODY: u64 = 48;
pub(crate) const IDENTITY: u64 = 56;
pub(crate) const PENDING: u64 = 64;
pub(crate) const HEAD: u64 = 72;
pub(crate) const TOWER: u64 = 80;

/// A bit of the head.
const SECOND_CHANCE: u64 = 1 << 48;

/// Levels of the list at most.
pub(crate) const LEVELS: u8 = 12;

/// The largest key of a shared tuple. Rows with a larger one are reached by message.
pub const KEY_MAX: usize = 1024;

/// A place of a tuple in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub(crate) u64);

/// One use of a descriptor: a transaction, or a tuple's move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    pub host: u8,
    pub descriptor: u16,
    pub incarnation: u32,
}

/// What a lock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Free,
    /// A transaction writes the tuple.
    Transaction,
    /// Its owner takes it out.
    Moving,
    /// It is out; a host that finds it looks again.
    Dead,
}

/// The lock's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    pub kind: Kind,
    /// Who has it, or had it last.
    pub claim: Claim,
}

impl Lock {
    pub(crate) fn word(self) -> u64 {
        self.kind as u64
            | u64::from(self.claim.host) << 8
            | u64::from(self.claim.descriptor) << 16
            | u64::from(self.claim.incarnation) << 32
    }
    pub(crate) fn from_word(word: u64) -> Result<Lock, Damaged> {
        let kind = match word as u8 {
            0 => Kind::Free,
            1 => Kind::Transaction,
            2 => Kind::Moving,
            3 => Kind::Dead,
            other => return Err(Damaged(format!("a lock of kind {other}"))),
        };
        let claim = Claim { host: (word >> 8) as u8, descriptor: (word >> 16) as u16, incarnation: (word >> 32) as u32 };
        Ok(Lock { kind, claim })
    }
}

/// Where the bytes of a version are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Body {
    /// Nowhere: the tuple does not exist at that version.
    Absent,
    /// A block at this offset.
    At(u64),
}

/// The body's word: a block, which hosts may read it from their caches, and a number that tells two
/// uses of one block apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BodyWord {
    pub body: Body,
    pub valid: u16,
    pub sequence: u16,
}

const LINE_BITS: u64 = (1 << 38) - 1;
const ABSENT: u64 = 1;

impl Body {
    /// Never zero, which stands for «none is pending».
    pub(crate) fn line(self) -> u64 {
        match self {
            Body::Absent => ABSENT,
            Body::At(at) => at / LINE,
        }
    }
    pub(crate) fn from_line<M: Memory>(segment: &Segment<M>, line: u64) -> Result<Body, Damaged> {
        match line {
            ABSENT => Ok(Body::Absent),
            line => Ok(Body::At(segment.layout().body(line * LINE)?)),
        }
    }
}

impl BodyWord {
    pub(crate) fn word(self) -> u64 {
        self.body.line() | u64::from(self.valid) << 38 | u64::from(self.sequence) << 54
    }
    pub(crate) fn from_word<M: Memory>(segment: &Segment<M>, word: u64) -> Result<BodyWord, Damaged> {
        let body = Body::from_line(segment, word & LINE_BITS)?;
        Ok(BodyWord { body, valid: (word >> 38) as u16, sequence: (word >> 54) as u16 })
    }
    pub(crate) fn is_valid_at(self, host: u8) -> bool {
        self.valid >> host & 1 == 1
    }
    /// The word of the next version: valid at its writer's host alone (C2), unless `keep` says that
    /// other hosts' bits stay.
    pub(crate) fn next(self, body: Body, host: u8, keep: bool) -> BodyWord {
        let valid = 1 << host | if keep { self.valid } else { 0 };
        BodyWord { body, valid, sequence: (self.sequence + 1) & 0x3ff }
    }
}

/// What a tuple begins with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewTuple {
    pub key: Bytes,
    pub slot: Slot,
    /// The newest committed version; [`Timestamp::MIN`] and [`Body::Absent`] for a key that has
    /// none.
    pub newest: Timestamp,
    pub columns: ColumnMask,
    /// What older versions changed is not known.
    pub body: Body,
    /// The host that wrote the body's block.
    pub written_at: u8,
    /// Free, or of the transaction that inserts it (P17).
    pub lock: Option<Claim>,
    /// The body that this transaction writes.
    pub pending: Option<Body>,
}

/// Levels of a new node: each one more with probability 1/4, from random bits.
pub fn height_of(random: u64) -> u8 {
    (1 + (random.trailing_zeros() / 2) as u8).min(LEVELS)
}

/// Bytes of a node.
pub fn node_bytes(key: usize, height: u8) -> u64 {
    TOWER + 8 * u64::from(height) + key as u64
}

impl NewTuple {
    /// Writes the words into a block that nobody else sees yet: work on one's own block. The
    /// generation grows first, so that a hint to the block's last use is known to be old.
    ///
    /// # Panics
    ///
    /// If the key is longer than [`KEY_MAX`].
    pub fn write<M: Memory>(&self, segment: &Segment<M>, at: u64, height: u8) -> Node {
        assert!(self.key.len() <= KEY_MAX && (1..=LEVELS).contains(&height), "a node of {} levels", height);
        let memory = segment.memory();
        let generation = (memory.load(at + IDENTITY) as u32).wrapping_add(1);
        memory.store(at + IDENTITY, u64::from(generation) | u64::from(crc32c::crc32c(&self.key)) << 32);
        let lock = match self.lock {
            None => 0,
            Some(claim) => Lock { kind: Kind::Transaction, claim }.word(),
        };
        let body = BodyWord { body: self.body, valid: 1 << self.written_at, sequence: 0 };
        memory.store(at + LOCK, lock);
        memory.store(at + NEWEST, self.newest.0);
        memory.store(at + COLUMNS, self.columns.0);
        memory.store(at + OLDER, self.newest.0);
        memory.store(at + OLDER_COLUMNS, self.columns.0);
        memory.store(at + LOW, self.newest.0.saturating_sub(1));
        memory.store(at + BODY, body.word());
        memory.store(at + PENDING, self.pending.map_or(0, Body::line));
        let head = u64::from(self.slot.0) | (self.key.len() as u64) << 16 | u64::from(height) << 32;
        memory.store(at + HEAD, head);
        for level in 0..height {
            memory.store(at + TOWER + 8 * u64::from(level), 0);
        }
        memory.write(at + TOWER + 8 * u64::from(height), &self.key);
        Node(at)
    }
}

impl<M: Memory> Segment<M> {
    /// The node that a block will be ([`NewTuple::write`]).
    ///
    /// # Errors
    ///
    /// If no tuple may lie there.
    pub fn node_at(&self, block: u64) -> Result<Node, Damaged> {
        self.layout().node(block).map(Node)
    }
}

impl Node {
    pub(crate) fn load<M: Memory>(self, segment: &Segment<M>, field: u64) -> u64 {
        segment.memory().load(self.0 + field)
    }
    pub(crate) fn store<M: Memory>(self, segment: &Segment<M>, field: u64, value: u64) {
        segment.memory().store(self.0 + field, value);
    }
    pub(crate) fn lock<M: Memory>(self, segment: &Segment<M>) -> Result<Lock, Damaged> {
        Lock::from_word(self.load(segment, LOCK))
    }
    pub(crate) fn tower(self, level: u8) -> u64 {
        self.0 + TOWER + 8 * u64::from(level)
    }
    /// What does not change while the tuple is in the list: slot, key length, height.
    fn head<M: Memory>(self, segment: &Segment<M>) -> Result<(Slot, usize, u8), Damaged> {
        let head = self.load(segment, HEAD);
        let (slot, key, height) = (head as u16, (head >> 16) as u16 as usize, (head >> 32) as u8);
        let is_possible = key <= KEY_MAX && (1..=LEVELS).contains(&height) && slot < crate::layout::SLOTS;
        let ends_in = segment.layout().chunk_of(self.0 + node_bytes(key, height) - 1);
        if !is_possible || ends_in != segment.layout().chunk_of(self.0) {
            return Err(Damaged(format!("the tuple at {:#x}", self.0)));
        }
        Ok((Slot(slot), key, height))
    }
    /// Its offset in shared memory, which is that of its block.
    pub fn place(self) -> u64 {
        self.0
    }
    /// Its slot.
    ///
    /// # Errors
    ///
    /// If there is no tuple.
    pub fn slot<M: Memory>(self, segment: &Segment<M>) -> Result<Slot, Damaged> {
        Ok(self.head(segment)?.0)
    }
    /// Its key. The checksum tells a tuple from what was there before.
    ///
    /// # Errors
    ///
    /// If there is no tuple.
    pub fn key<M: Memory>(self, segment: &Segment<M>) -> Result<Bytes, Damaged> {
        let (_, len, height) = self.head(segment)?;
        let mut key = vec![0; len];
        segment.memory().read(self.tower(height), &mut key);
        match self.load(segment, IDENTITY) >> 32 == u64::from(crc32c::crc32c(&key)) {
            true => Ok(key.into()),
            false => Err(Damaged(format!("the key of the tuple at {:#x}", self.0))),
        }
    }
    /// How often its block has become a tuple (one step). Who knows a tuple from an earlier
    /// operation looks first that it is not removed ([`Node::is_removed`]), then that the
    /// generation is the same: then it was in the list when the first look took place, and stays a
    /// tuple for as long as the operation lasts.
    pub fn generation<M: Memory>(self, segment: &Segment<M>) -> u32 {
        self.load(segment, IDENTITY) as u32
    }
    /// Its owner is not to move it out at the next opportunity (a step, two if it was not used
    /// lately).
    pub fn use_again<M: Memory>(self, segment: &Segment<M>) {
        if self.load(segment, HEAD) & SECOND_CHANCE == 0 {
            segment.memory().fetch_or(self.0 + HEAD, SECOND_CHANCE);
        }
    }
    /// Whether it was used since this was last asked (two steps). A use in between may be
    /// forgotten.
    pub fn take_chance<M: Memory>(self, segment: &Segment<M>) -> bool {
        let head = self.load(segment, HEAD);
        let was_used = head & SECOND_CHANCE != 0;
        if was_used {
            self.store(segment, HEAD, head & !SECOND_CHANCE);
        }
        was_used
    }
    /// Its newest version (one step).
    pub fn newest<M: Memory>(self, segment: &Segment<M>) -> Timestamp {
        Timestamp(self.load(segment, NEWEST))
    }
}

/// Whether a version above `until` changed one of these columns, from a tuple's words as they were
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Versions {
    pub newest: u64,
    pub columns: u64,
    pub older: u64,
    pub older_columns: u64,
    pub low: u64,
}

impl Versions {
    pub fn changed_after(&self, until: Timestamp, columns: ColumnMask) -> bool {
        let by = |at: u64, changed: u64| at > until.0 && changed & columns.0 != 0;
        by(self.newest, self.columns) || by(self.older, self.older_columns) || self.low > until.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::heap;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_are_read_back(kind in 0_u8..4, host: u8, descriptor: u16, incarnation: u32, valid: u16, sequence in 0_u16..1024) {
            let word = u64::from(kind) | u64::from(host) << 8 | u64::from(descriptor) << 16 | u64::from(incarnation) << 32;
            prop_assert_eq!(Lock::from_word(word).unwrap().word(), word);
            let segment = heap();
            for body in [Body::Absent, Body::At(segment.layout().chunk(5))] {
                let word = BodyWord { body, valid, sequence };
                prop_assert_eq!(BodyWord::from_word(&segment, word.word()).unwrap(), word);
            }
        }

        /// With two remembered versions and a bound below, no change is missed.
        #[test]
        fn no_change_is_missed(versions in prop::collection::vec((1_u64..6, 1_u64..4), 1..6), until in 0_u64..20, columns in 1_u64..4) {
            let (mut at, mut words, mut changed) = (0, Versions::default(), false);
            for (gap, changes) in versions {
                at += gap;
                changed |= at > until && changes & columns != 0;
                words = Versions {
                    newest: at,
                    columns: changes,
                    older: words.newest,
                    older_columns: words.columns,
                    low: words.older,
                };
            }
            prop_assert!(words.changed_after(Timestamp(until), ColumnMask(columns)) || !changed);
        }
    }

    #[test]
    fn what_was_written_is_a_tuple() {
        let segment = heap();
        let tuple = NewTuple {
            key: Bytes::from_static(b"a key"),
            slot: Slot(9),
            newest: Timestamp(4),
            columns: ColumnMask::ALL,
            body: Body::Absent,
            written_at: 1,
            lock: None,
            pending: None,
        };
        let node = tuple.write(&segment, segment.layout().chunk(0), 3);
        assert_eq!((node.key(&segment).unwrap(), node.slot(&segment).unwrap()), (tuple.key.clone(), Slot(9)));
        assert_eq!(node.lock(&segment).unwrap().kind, Kind::Free);
        let generation = node.generation(&segment);
        tuple.write(&segment, node.0, 1);
        assert_eq!(node.generation(&segment), generation + 1);
        node.store(&segment, HEAD, u64::MAX);
        assert!(node.key(&segment).is_err());
        assert_eq!((height_of(1), height_of(4), height_of(0)), (1, 2, LEVELS));
    }
}
