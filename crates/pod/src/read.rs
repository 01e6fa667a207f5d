//! A read of a shared tuple at a snapshot, step by step (`docs/design/pod.md`).
//!
//! | the tuple is | the read |
//! | --- | --- |
//! | free | gets the body, if `newest` is at or below `s` |
//! | locked, no timestamp published | waits (P9): it may be at or below `s` |
//! | locked, `p` at or below `s` | waits until it is durable (P10) |
//! | locked, `p` above `s` | gets the body that is committed |
//! | dead | looks where the key is now |
//!
//! If `newest` is above `s`, a read-write transaction moves its snapshot or restarts; a read-only
//! one reads its version in the owner's store, once that has the newest.
//!
//! The reader loads lock, `newest`, body, then `newest` and lock again ([`crate::tuple`] says why
//! that is enough). The body's bytes are read by [`crate::BodyRead`] afterwards.

use crate::descriptor::Place;
use crate::error::Damaged;
use crate::memory::Memory;
use crate::rules::Rules;
use crate::segment::Segment;
use crate::tuple::{BODY, BodyWord, Claim, Kind, LOCK, Lock, NEWEST, Node};
use meridian_base::Timestamp;

/// What a read has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// The next step.
    More,
    /// A writer may be at or below the snapshot: wait for it, and begin again.
    Wait(Claim),
    /// The newest version is above the snapshot.
    Newer(Timestamp),
    /// The tuple has left shared memory.
    Gone,
    /// The newest version, at or below the snapshot.
    Version { newest: Timestamp, body: BodyWord },
}

/// A read under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Read {
    rules: Rules,
    node: Node,
    s: Timestamp,
    word: u8,
    lock: u64,
    newest: u64,
    body: u64,
}

impl Read {
    /// Of a tuple at snapshot `s`.
    pub fn new(node: Node, s: Timestamp, rules: Rules) -> Read {
        Read { rules, node, s, word: 0, lock: 0, newest: 0, body: 0 }
    }

    /// The next step: one load.
    ///
    /// # Errors
    ///
    /// If shared memory holds what no host writes.
    pub fn step<M: Memory>(&mut self, segment: &Segment<M>) -> Result<Reading, Damaged> {
        match self.word {
            0 => {
                let lock = self.node.lock(segment)?;
                self.lock = lock.word();
                match lock.kind {
                    Kind::Dead => return Ok(Reading::Gone),
                    Kind::Moving => return Ok(Reading::Wait(lock.claim)),
                    Kind::Free => self.word = 3,
                    Kind::Transaction if !self.rules.awaits_writers() => self.word = 3,
                    Kind::Transaction => self.word = 1,
                }
                return Ok(Reading::More);
            }
            1 => {
                let claim = Lock::from_word(self.lock)?.claim;
                self.newest = Place::of(segment, claim)?.p(segment).map_or(0, |p| p.0);
            }
            2 => {
                // The descriptor may have been used again since: then so was the lock.
                let claim = Lock::from_word(self.lock)?.claim;
                if self.node.load(segment, LOCK) != self.lock {
                    return Ok(self.again());
                }
                let is_unpublished = self.newest == 0 && self.rules.awaits_publication();
                if is_unpublished || self.newest != 0 && self.newest <= self.s.0 {
                    return Ok(Reading::Wait(claim));
                }
            }
            3 => {
                self.newest = self.node.load(segment, NEWEST);
                if self.newest > self.s.0 {
                    return Ok(Reading::Newer(Timestamp(self.newest)));
                }
            }
            4 => self.body = self.node.load(segment, BODY),
            5 if !self.rules.loads_again() => return self.version(segment),
            5 => {
                if self.node.load(segment, NEWEST) != self.newest {
                    return Ok(self.again());
                }
            }
            _ => {
                if self.node.load(segment, LOCK) != self.lock {
                    return Ok(self.again());
                }
                return self.version(segment);
            }
        }
        self.word += 1;
        Ok(Reading::More)
    }

    fn again(&mut self) -> Reading {
        *self = Read::new(self.node, self.s, self.rules);
        Reading::More
    }

    fn version<M: Memory>(&self, segment: &Segment<M>) -> Result<Reading, Damaged> {
        let body = BodyWord::from_word(segment, self.body)?;
        Ok(Reading::Version { newest: Timestamp(self.newest), body })
    }
}
