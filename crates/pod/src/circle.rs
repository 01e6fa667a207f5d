//! Records in a circle of bytes: what rings and the feed are made of.
//!
//! A *position* counts bytes from the circle's beginning of time and only grows; its place is the
//! position modulo the circle's size. Records begin at multiples of 8 and may go around the end.
//!
//! ```text
//! record = len u32 (all of it) | crc u32 (of what follows) | position u64 | payload | zeros up to a multiple of 8
//! ```
//!
//! The position tells a record from what an earlier lap has left at the same place.

use crate::error::Damaged;
use crate::memory::Memory;
use bytes::Bytes;

/// Bytes of a record before its payload.
pub(crate) const FRAME: usize = 16;

/// Why a record cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// Others have to pass what is there first: try again.
    Now,
    /// It is larger than the circle.
    Ever,
}

/// A circle of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Circle {
    pub at: u64,
    pub size: u64,
}

/// Bytes that a record with a payload of this length takes.
pub(crate) fn record_len(payload: usize) -> u64 {
    (FRAME + payload).next_multiple_of(8) as u64
}

impl Circle {
    /// Runs `visit` with each piece of the circle that these positions cover, and where it lies in
    /// the bytes: one, or two around the end.
    fn pieces(self, position: u64, len: usize, mut visit: impl FnMut(u64, std::ops::Range<usize>)) {
        let place = position % self.size;
        let first = len.min((self.size - place) as usize);
        visit(self.at + place, 0..first);
        if first < len {
            visit(self.at, first..len);
        }
    }

    /// Writes a record and flushes it: work on one's own block. Gives the position behind it.
    pub fn write<M: Memory>(self, memory: &M, position: u64, payload: &[u8]) -> u64 {
        let mut bytes = Vec::with_capacity(FRAME + payload.len());
        bytes.extend(((FRAME + payload.len()) as u32).to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(position.to_le_bytes());
        bytes.extend(payload);
        let crc = crc32c::crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        self.pieces(position, bytes.len(), |at, part| {
            memory.write(at, &bytes[part.clone()]);
            memory.flush(at, part.len() as u64);
        });
        position + bytes.len() as u64
    }

    /// Forgets what is cached of what lies between two positions: then its records are read with
    /// [`Circle::read_again`].
    pub fn invalidate<M: Memory>(self, memory: &M, from: u64, to: u64) {
        if let Ok(len) = usize::try_from(to.saturating_sub(from).min(self.size)) {
            self.pieces(from, len, |at, part| memory.invalidate(at, part.len() as u64));
        }
    }

    /// Reads the record at a position, which ends at or before `end`. Gives its payload and the
    /// position behind it.
    pub fn read<M: Memory>(self, memory: &M, position: u64, end: u64) -> Result<(Bytes, u64), Damaged> {
        self.read_with(memory, position, end, true)
    }

    /// The same of what was invalidated since its writer flushed it.
    pub fn read_again<M: Memory>(self, memory: &M, position: u64, end: u64) -> Result<(Bytes, u64), Damaged> {
        self.read_with(memory, position, end, false)
    }

    fn read_with<M: Memory>(self, memory: &M, position: u64, end: u64, is_stale: bool) -> Result<(Bytes, u64), Damaged> {
        let damaged = |what: &str| Damaged(format!("the record at {position} of the circle at {:#x} {what}", self.at));
        let room = end.checked_sub(position).ok_or_else(|| damaged("lies behind the end"))?;
        if room < FRAME as u64 || room > self.size || !position.is_multiple_of(8) {
            return Err(damaged("has no place"));
        }
        let frame = self.bytes(memory, position, FRAME, is_stale);
        let len = u32::from_le_bytes(frame[..4].try_into().expect("four bytes")) as usize;
        if len < FRAME || len.next_multiple_of(8) as u64 > room {
            return Err(damaged("has an impossible length"));
        }
        let bytes = self.bytes(memory, position, len, is_stale);
        if bytes[8..16] != position.to_le_bytes() {
            return Err(damaged("is another one"));
        }
        if bytes[4..8] != crc32c::crc32c(&bytes[8..]).to_le_bytes() {
            return Err(damaged("has a wrong checksum"));
        }
        Ok((Bytes::from(bytes).slice(FRAME..), position + len.next_multiple_of(8) as u64))
    }

    fn bytes<M: Memory>(self, memory: &M, position: u64, len: usize, is_stale: bool) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.pieces(position, len, |at, part| {
            if is_stale {
                memory.invalidate(at, part.len() as u64);
            }
            memory.read(at, &mut bytes[part]);
        });
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Heap;
    use proptest::prelude::*;

    const CIRCLE: Circle = Circle { at: 64, size: 512 };

    proptest! {
        #[test]
        fn records_go_around_the_end(lens in prop::collection::vec(0_usize..480, 1..40)) {
            let memory = Heap::new(1024);
            let mut position = 0;
            for (i, len) in lens.into_iter().enumerate() {
                let payload = vec![i as u8; len];
                let end = CIRCLE.write(&memory, position, &payload);
                prop_assert_eq!(end, position + record_len(len));
                let read = CIRCLE.read(&memory, position, end).unwrap();
                prop_assert_eq!(read, (Bytes::from(payload), end));
                position = end;
            }
            prop_assert_eq!((memory.load(56), memory.load(64 + 512)), (0, 0), "nothing outside is written");
        }

        #[test]
        fn damage_is_found_and_never_panics(flips in prop::collection::vec((0_u64..8, 0_u32..64), 1..5), end in 0_u64..2048) {
            let memory = Heap::new(1024);
            let whole = CIRCLE.write(&memory, 480, b"forty bytes of payload, or almost so: 40");
            for (word, bit) in flips {
                let at = CIRCLE.at + (480 + word * 8) % 512;
                memory.store(at, memory.load(at) ^ 1 << bit);
            }
            if let Ok((payload, _)) = CIRCLE.read(&memory, 480, whole) {
                prop_assert_eq!(&payload[..], b"forty bytes of payload, or almost so: 40");
            }
            let _ = CIRCLE.read(&memory, 480, end);
            let _ = CIRCLE.read(&memory, end, whole);
        }
    }

    #[test]
    fn what_an_earlier_lap_has_left_is_no_record() {
        let memory = Heap::new(1024);
        let end = CIRCLE.write(&memory, 0, b"first lap");
        assert!(CIRCLE.read(&memory, 0, end).is_ok());
        assert!(CIRCLE.read(&memory, 512, 512 + end).is_err());
    }
}
