//! The bytes of a version, in memory that hardware does not keep coherent (`docs/design/pod.md`;
//! PASHA, §3.2).
//!
//! A body is written once, into a block of whole lines of its own (C1).
//!
//! * The writer stores, flushes, and *then* publishes the body's word, with its own bit alone (C2).
//! * A reader loads the word, and only *then*, if its bit is not set, invalidates (C3). It reads,
//!   and sets its bit by a comparison with the word that it has read (C4). With its bit set it
//!   reads what its cache has.
//! * A block that was written and is not published is flushed before it is free (C6): its dirty
//!   line would be written back later, over what the next use of the block holds.
//!
//! ```text
//! body = len u32 | crc u32 | bytes
//! ```

use crate::error::Damaged;
use crate::memory::Memory;
use crate::rules::Rules;
use crate::segment::Segment;
use crate::tuple::{BODY, Body, BodyWord, Node};
use bytes::Bytes;

const FRAME: u64 = 8;

/// Bytes of the block of a body.
pub fn body_bytes(len: usize) -> u64 {
    FRAME + len as u64
}

/// A body being written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BodyWrite {
    rules: Rules,
    at: u64,
    bytes: Bytes,
    step: u8,
}

impl BodyWrite {
    /// Into this block of the host's own.
    pub fn new(at: u64, bytes: Bytes, rules: Rules) -> BodyWrite {
        BodyWrite { rules, at, bytes, step: 0 }
    }

    /// The next step: it stores, then it flushes. `Some`: the body may be published.
    pub fn step<M: Memory>(&mut self, segment: &Segment<M>) -> Option<Body> {
        self.step += 1;
        match self.step {
            1 => {
                let mut block = (self.bytes.len() as u32).to_le_bytes().to_vec();
                block.extend(crc32c::crc32c(&self.bytes).to_le_bytes());
                block.extend(&self.bytes);
                segment.memory().write(self.at, &block);
                (!self.rules.flushes_before_publishing()).then_some(Body::At(self.at))
            }
            _ => {
                segment.memory().flush(self.at, body_bytes(self.bytes.len()));
                Some(Body::At(self.at))
            }
        }
    }

    /// The body will not be published: the block may be given back after this step (C6).
    pub fn abandon<M: Memory>(self, segment: &Segment<M>) -> u64 {
        if self.rules.flushes_before_freeing() {
            segment.memory().flush(self.at, body_bytes(self.bytes.len()));
        }
        self.at
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum At {
    Invalidate,
    Read,
    Mark(Bytes),
}

/// A body being read, by the word that a [`crate::Read`] has given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BodyRead {
    rules: Rules,
    host: u8,
    node: Node,
    word: BodyWord,
    at: At,
}

impl BodyRead {
    /// At this host.
    pub fn new(host: u8, node: Node, word: BodyWord, rules: Rules) -> BodyRead {
        let is_cached = word.is_valid_at(host) || !rules.invalidates();
        let at = if is_cached { At::Read } else { At::Invalidate };
        BodyRead { rules, host, node, word, at }
    }

    /// The next step. The bytes, once the host's bit is set; `None` inside: the version has none.
    ///
    /// # Errors
    ///
    /// If the block holds no body.
    pub fn step<M: Memory>(&mut self, segment: &Segment<M>) -> Result<Option<Option<Bytes>>, Damaged> {
        let Body::At(at) = self.word.body else { return Ok(Some(None)) };
        let memory = segment.memory();
        match &self.at {
            At::Invalidate => {
                // The length is not known before: the whole rest of the chunk could be it.
                memory.invalidate(at, FRAME);
                let len = self.frame(segment, at)?.0;
                memory.invalidate(at, body_bytes(len));
                self.at = At::Read;
            }
            At::Read => {
                let (len, crc) = self.frame(segment, at)?;
                let mut block = vec![0; FRAME as usize + len];
                memory.read(at, &mut block);
                let bytes = Bytes::from(block).slice(FRAME as usize..);
                if crc32c::crc32c(&bytes) != crc {
                    return Err(Damaged(format!("the body at {at:#x}")));
                }
                if self.word.is_valid_at(self.host) {
                    return Ok(Some(Some(bytes)));
                }
                self.at = At::Mark(bytes);
            }
            At::Mark(bytes) => {
                let bytes = bytes.clone();
                let read = self.word.word();
                let mine = BodyWord { valid: self.word.valid | 1 << self.host, ..self.word };
                let place = self.node.0 + BODY;
                if !self.rules.marks_by_exchange() {
                    let now = BodyWord::from_word(segment, memory.load(place))?;
                    memory.store(place, BodyWord { valid: now.valid | 1 << self.host, ..now }.word());
                } else {
                    // If the word is another one now, the next reader invalidates again.
                    let _ = memory.compare_exchange(place, read, mine.word());
                }
                return Ok(Some(Some(bytes)));
            }
        }
        Ok(None)
    }

    fn frame<M: Memory>(&self, segment: &Segment<M>, at: u64) -> Result<(usize, u32), Damaged> {
        let mut frame = [0; FRAME as usize];
        segment.memory().read(at, &mut frame);
        let len = u32::from_le_bytes(frame[..4].try_into().expect("four bytes")) as usize;
        let last = at + body_bytes(len) - 1;
        if len as u64 > segment.layout().sizes().chunk || segment.layout().chunk_of(last) != segment.layout().chunk_of(at) {
            return Err(Damaged(format!("the body at {at:#x} has {len} bytes")));
        }
        Ok((len, u32::from_le_bytes(frame[4..].try_into().expect("four bytes"))))
    }
}

/// L: a dead host's bit goes from a tuple's word, before another machine has its number (two steps,
/// again until nobody was faster; row 73).
///
/// # Errors
///
/// If the tuple is damaged.
pub fn clear_valid_bit<M: Memory>(segment: &Segment<M>, node: Node, host: u8, rules: Rules) -> Result<(), Damaged> {
    loop {
        let word = node.load(segment, BODY);
        let body = BodyWord::from_word(segment, word)?;
        if !body.is_valid_at(host) || !rules.clears_dead_bits() {
            return Ok(());
        }
        let cleared = BodyWord { valid: body.valid & !(1 << host), ..body };
        if segment.memory().compare_exchange(node.0 + BODY, word, cleared.word()).is_ok() {
            return Ok(());
        }
    }
}
