//! A segment: the shared memory of one generation of a pod.
//!
//! A segment is made by the group's log leader (*L*), for one term of the group, and never used
//! again: the next generation is another file. The header says which generation, group and term it
//! is for, and where its parts lie. It is written once, with a checksum; the magic number is stored
//! last, so that a segment whose maker died is no segment.
//!
//! ```text
//! header   magic "MERIDPOD" | format u32 | crc u32 | generation u64 | term u64 | group u32 | hosts u32
//!          | ring u64 | feed u64 | chunk u64 | descriptors u32 | node chunks u32 | body chunks u32 | zeros u32 | length u64
//! ```

use crate::error::{Damaged, OpenError};
use crate::layout::{Layout, Sizes, header};
use crate::memory::{Mapping, Memory};
use meridian_base::{GroupId, Timestamp};
use std::path::Path;
use std::sync::Arc;

/// The format of segments. Hosts of a pod have the same.
pub const FORMAT: u32 = 1;

const MAGIC: u64 = u64::from_le_bytes(*b"MERIDPOD");

/// Bytes of the header that are written once.
const WRITTEN_ONCE: usize = 88;

/// What a segment was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose {
    /// Larger for every new segment of a pod. A host of an older generation sees that it is.
    pub generation: u64,
    /// The group whose rows its hosts share.
    pub group: GroupId,
    /// The term in which L leads the group's log.
    pub term: u64,
}

/// Shared memory with its layout: what all operations of this crate take. Cheap to clone if `M` is.
#[derive(Clone, Debug)]
pub struct Segment<M> {
    memory: M,
    layout: Layout,
    purpose: Purpose,
}

impl Segment<Arc<Mapping>> {
    /// Makes a file with an empty segment.
    ///
    /// # Errors
    ///
    /// If the file exists, if there is no room for it, or if the sizes are wrong.
    pub fn create_file(path: &Path, sizes: Sizes, purpose: Purpose) -> Result<Self, OpenError> {
        let layout = Layout::new(sizes)?;
        let memory = Mapping::create(path, layout.len())?;
        Segment::create(Arc::new(memory), sizes, purpose)
    }

    /// Maps a file with a segment.
    ///
    /// # Errors
    ///
    /// If there is no such file, or if [`Segment::open`] refuses what is in it.
    pub fn open_file(path: &Path) -> Result<Self, OpenError> {
        Segment::open(Arc::new(Mapping::open(path)?))
    }
}

impl<M: Memory> Segment<M> {
    /// Makes an empty segment of memory that is all zero.
    ///
    /// # Errors
    ///
    /// If the sizes are wrong, or if the memory is too small for them.
    pub fn create(memory: M, sizes: Sizes, purpose: Purpose) -> Result<Segment<M>, OpenError> {
        let layout = Layout::new(sizes)?;
        if memory.len() < layout.len() {
            return Err(OpenError::Sizes(format!("{} bytes are needed, there are {}", layout.len(), memory.len())));
        }
        let bytes = encode(&layout, purpose);
        memory.write(8, &bytes[8..]);
        memory.store(0, MAGIC);
        Ok(Segment { memory, layout, purpose })
    }

    /// Takes memory that another host has made a segment of.
    ///
    /// # Errors
    ///
    /// If it is no segment, has another format, or contradicts itself or the size of the memory. It
    /// never panics, whatever the memory holds.
    pub fn open(memory: M) -> Result<Segment<M>, OpenError> {
        if memory.len() < crate::layout::HEADER || memory.load(0) != MAGIC {
            return Err(OpenError::NotASegment);
        }
        let mut bytes = [0; WRITTEN_ONCE];
        memory.read(0, &mut bytes);
        let format = u32_at(&bytes, 8);
        if format != FORMAT {
            return Err(OpenError::Format(format));
        }
        if u32_at(&bytes, 12) != crc32c::crc32c(&bytes[16..]) {
            return Err(Damaged("the checksum of the header is wrong".into()).into());
        }
        let sizes = Sizes {
            hosts: u8::try_from(u32_at(&bytes, 36)).unwrap_or(u8::MAX),
            ring: u64_at(&bytes, 40),
            feed: u64_at(&bytes, 48),
            chunk: u64_at(&bytes, 56),
            descriptors: u32_at(&bytes, 64),
            node_chunks: u32_at(&bytes, 68),
            body_chunks: u32_at(&bytes, 72),
        };
        let layout = Layout::new(sizes)?;
        let said = u64_at(&bytes, 80);
        if said != layout.len() || memory.len() < said {
            let what = format!("its header says {said} bytes, its parts need {}, there are {}", layout.len(), memory.len());
            return Err(Damaged(what).into());
        }
        let purpose = Purpose { generation: u64_at(&bytes, 16), term: u64_at(&bytes, 24), group: GroupId(u32_at(&bytes, 32)) };
        Ok(Segment { memory, layout, purpose })
    }

    /// The memory itself.
    pub fn memory(&self) -> &M {
        &self.memory
    }
    /// Where its parts lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
    /// What it was made for.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }
    /// The hosts that it has lines for.
    pub fn hosts(&self) -> u8 {
        self.layout.sizes().hosts
    }

    /// Whether the generation is over (one step), or a part of the memory lost. A host that sees it
    /// stops serving from this segment.
    pub fn is_over(&self) -> bool {
        self.memory.load(header::STATE) != 0 || self.memory.is_lost()
    }

    /// An error if a part of the memory is lost. Everything that decides, or that the log will
    /// have, calls it after its last look at the memory.
    pub(crate) fn is_there(&self) -> Result<(), Damaged> {
        match self.memory.is_lost() {
            true => Err(Damaged("a part of it is not there any more".into())),
            false => Ok(()),
        }
    }
    /// Ends the generation (one step).
    pub fn end(&self) {
        self.memory.store(header::STATE, 1);
    }

    /// The largest timestamp of what is durable in this term, votes included (one step). A fresh
    /// read-only transaction reads at this or above (P5).
    pub fn acked(&self) -> Timestamp {
        Timestamp(self.memory.load(header::ACKED))
    }
    /// L: a transaction at this timestamp, a vote or an outcome is durable (P3; one step). Comes
    /// before another host is told of it.
    pub fn raise_acked(&self, at: Timestamp) {
        self.memory.fetch_max(header::ACKED, at.0);
    }

    /// The group's ceiling (one step): no host uses a timestamp above it.
    pub fn ceiling(&self) -> Timestamp {
        Timestamp(self.memory.load(header::CEILING))
    }
    /// L: a lease with this ceiling is durable (one step).
    pub fn raise_ceiling(&self, ceiling: Timestamp) {
        self.memory.fetch_max(header::CEILING, ceiling.0);
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn encode(layout: &Layout, purpose: Purpose) -> [u8; WRITTEN_ONCE] {
    let sizes = layout.sizes();
    let mut bytes = Vec::with_capacity(WRITTEN_ONCE);
    bytes.extend(MAGIC.to_le_bytes());
    bytes.extend(FORMAT.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(purpose.generation.to_le_bytes());
    bytes.extend(purpose.term.to_le_bytes());
    bytes.extend(purpose.group.0.to_le_bytes());
    bytes.extend(u32::from(sizes.hosts).to_le_bytes());
    for size in [sizes.ring, sizes.feed, sizes.chunk] {
        bytes.extend(size.to_le_bytes());
    }
    for count in [sizes.descriptors, sizes.node_chunks, sizes.body_chunks, 0] {
        bytes.extend(count.to_le_bytes());
    }
    bytes.extend(layout.len().to_le_bytes());
    let mut bytes: [u8; WRITTEN_ONCE] = bytes.try_into().expect("the header's fields fill it");
    let crc = crc32c::crc32c(&bytes[16..]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{SLOTS, host};
    use crate::memory::Heap;

    const PURPOSE: Purpose = Purpose { generation: 3, group: GroupId(7), term: 9 };

    fn made() -> Heap {
        let len = Layout::new(Sizes::SMALL).unwrap().len();
        Segment::create(Heap::new(len), Sizes::SMALL, PURPOSE).unwrap().memory().clone()
    }

    #[test]
    fn what_was_made_is_opened() {
        let segment = Segment::open(made()).unwrap();
        assert_eq!((segment.purpose(), segment.layout().sizes()), (PURPOSE, &Sizes::SMALL));
        assert!(!segment.is_over());
        segment.end();
        assert!(segment.is_over());
    }

    /// A host of the same format finds everything where another one has put it. Whatever changes
    /// this needs another [`FORMAT`].
    #[test]
    fn a_segment_of_this_format_looks_like_this() {
        let mut header = [0; WRITTEN_ONCE];
        made().read(0, &mut header);
        let hex: String = header.iter().map(|b| format!("{b:02x}")).collect();
        let expected = concat!(
            "4d45524944504f4401000000cecb1b2403000000000000000900000000000000070000000200000000100000",
            "000000000010000000000000000400000000000004000000040000000400000000000000008e000000000000"
        );
        assert_eq!((FORMAT, hex.as_str()), (1, expected));
        let layout = Layout::new(Sizes::SMALL).unwrap();
        let (last, descriptor) = (layout.sizes().hosts - 1, (layout.sizes().descriptors - 1) as u16);
        let chunk = layout.chunks() - 1;
        let places = [
            layout.host(last),
            layout.slot(SLOTS - 1),
            layout.chunk_entry(chunk),
            layout.descriptor(last, descriptor),
            layout.ring(last),
            layout.feed(),
            layout.chunk(chunk),
            layout.len(),
        ];
        assert_eq!(places, [4_608, 13_304, 13_760, 15_616, 24_064, 28_160, 35_328, 36_352]);
        let in_header = [header::STATE, header::CLOCK, header::ACKED, header::CEILING, header::GRANT, header::FEED_TAIL];
        assert_eq!(in_header, [4, 5, 6, 7, 8, 9].map(|line| line * 64));
        assert_eq!([header::EPOCH, header::GIVEN, header::INDEX], [10, 11, 12].map(|line| line * 64));
        let of_host = [host::STATE, host::HEARTBEAT, host::NONCE, host::ECHO, host::RING_TAIL, host::RING_TAKEN];
        assert_eq!(of_host, [0, 64, 72, 128, 192, 256]);
        assert_eq!([host::FEED_POSITION, host::EPOCH, host::DOORBELL], [320, 384, 448]);
    }

    #[test]
    fn a_damaged_header_is_refused() {
        let bits: &[u32] = if cfg!(miri) { &[31] } else { &[0, 7, 31, 32, 63] };
        for at in 0..WRITTEN_ONCE as u64 / 8 {
            for bit in bits {
                let memory = made();
                memory.store(at * 8, memory.load(at * 8) ^ 1 << bit);
                assert!(Segment::open(memory).is_err(), "word {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn foreign_and_cut_memory_is_refused() {
        assert!(matches!(Segment::open(Heap::new(64)), Err(OpenError::NotASegment)));
        assert!(matches!(Segment::open(Heap::new(8192)), Err(OpenError::NotASegment)));
        let (whole, cut) = (made(), Heap::new(8192));
        let mut bytes = vec![0; 8192];
        whole.read(0, &mut bytes);
        cut.write(0, &bytes);
        assert!(matches!(Segment::open(cut), Err(OpenError::Damaged(_))));
        let unfinished = made();
        unfinished.store(0, 0);
        assert!(matches!(Segment::open(unfinished), Err(OpenError::NotASegment)));
        let newer = made();
        newer.store(8, newer.load(8) + 1);
        assert!(matches!(Segment::open(newer), Err(OpenError::Format(2))));
    }

    #[test]
    fn too_little_memory_is_refused() {
        assert!(matches!(Segment::create(Heap::new(8192), Sizes::SMALL, PURPOSE), Err(OpenError::Sizes(_))));
    }

    #[test]
    fn what_is_durable_only_grows() {
        let segment = Segment::open(made()).unwrap();
        segment.raise_acked(Timestamp(8));
        segment.raise_acked(Timestamp(5));
        segment.raise_ceiling(Timestamp(20));
        assert_eq!((segment.acked(), segment.ceiling()), (Timestamp(8), Timestamp(20)));
    }
}
