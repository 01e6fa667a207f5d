//! Export and import of a group's content.

use bytes::Bytes;
use meridian_base::error::Result;
use meridian_base::id::LogPosition;

/// A group's content as of one flushed cut, as a sequence of chunks. Writers and readers of the group go on meanwhile.
pub struct Export {}

impl Export {
    /// The position the content is as of: the log follows from there.
    pub fn position(&self) -> LogPosition {
        todo!()
    }
    /// The replica state that was flushed with that position.
    pub fn state(&self) -> &Bytes {
        todo!()
    }
}

impl Iterator for Export {
    /// A chunk of about 1 MiB at most (one huge row may exceed it). Send them in order.
    type Item = Result<Bytes>;
    fn next(&mut self) -> Option<Result<Bytes>> {
        todo!()
    }
}

/// A snapshot on its way in. Nothing of it is seen by readers before [`Import::finish`]; dropping it discards it.
pub struct Import {}

impl Import {
    /// Takes the next chunk. The same chunk again (a resumed stream) is ignored; a gap or damage is an error and the
    /// import can go on with the right chunk.
    pub fn chunk(&mut self, _bytes: &[u8]) -> Result<()> {
        todo!()
    }
    /// How many chunks have been taken: a resumed stream goes on from there.
    pub fn chunks_taken(&self) -> u64 {
        todo!()
    }
    /// Replaces the group's content, at once for readers and across a crash. Durable when it returns. The caller sees to
    /// it that nothing is applied meanwhile. Returns the snapshot's position and replica state.
    pub fn finish(self) -> Result<(LogPosition, Bytes)> {
        todo!()
    }
}
