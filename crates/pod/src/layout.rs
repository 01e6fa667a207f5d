//! Where everything lies in a segment (`docs/design/pod.md`).
//!
//! ```text
//! coherent   header 4 KiB | hosts: 512 bytes each | slots: 1,024 words | chunk table: 64 bytes a chunk
//!            | descriptors: 256 bytes each | node chunks
//! bulk       a ring a host | feed | body chunks
//! ```
//!
//! Every part begins at a line of its own. Words that different hosts write lie in different lines.

use crate::error::{Damaged, OpenError};
use crate::memory::LINE;

/// Slots of a pod: a key's slot says which host owns the key.
pub const SLOTS: u16 = 1024;

/// Hosts of a pod at most (PASHA, §2.1). The words of a tuple have a bit for each.
pub const HOSTS_MAX: u8 = 16;

/// Bytes of the header.
pub const HEADER: u64 = 4096;

/// Bytes of what a host says of itself.
pub(crate) const HOST_LINES: u64 = 8 * LINE;

/// Bytes of a descriptor.
pub(crate) const DESCRIPTOR: u64 = 256;

/// Bytes of a chunk's entry in the table.
pub(crate) const CHUNK_ENTRY: u64 = LINE;

/// The sizes of a segment's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Hosts that may be in the pod at a time, 1 to [`HOSTS_MAX`].
    pub hosts: u8,
    /// Bytes of each host's ring.
    pub ring: u64,
    /// Bytes of the feed.
    pub feed: u64,
    /// Descriptors of each host: transactions that it can commit at a time.
    pub descriptors: u32,
    /// Bytes of a chunk.
    pub chunk: u64,
    /// Chunks for the nodes of shared tuples.
    pub node_chunks: u32,
    /// Chunks for the bodies of shared tuples.
    pub body_chunks: u32,
}

impl Sizes {
    /// Those of the design: 256 MiB of coherent memory for about a million tuples.
    pub const DEFAULT: Sizes = Sizes {
        hosts: 16,
        ring: 16 << 20,
        feed: 16 << 20,
        descriptors: 1024,
        chunk: 1 << 20,
        node_chunks: 250,
        body_chunks: 1024,
    };

    /// Small ones, for tests.
    pub const SMALL: Sizes =
        Sizes { hosts: 2, ring: 4096, feed: 4096, descriptors: 4, chunk: 1024, node_chunks: 4, body_chunks: 4 };
}

/// The sizes and the offsets that follow from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    sizes: Sizes,
    hosts: u64,
    slots: u64,
    chunk_table: u64,
    descriptors: u64,
    nodes: u64,
    bulk: u64,
    feed: u64,
    bodies: u64,
    len: u64,
}

impl Layout {
    /// Of these sizes.
    ///
    /// # Errors
    ///
    /// If a size is out of its range, or if the sum is above 2^44 bytes.
    pub fn new(sizes: Sizes) -> Result<Layout, OpenError> {
        let refuse = |what: &str| Err(OpenError::Sizes(what.to_string()));
        if sizes.hosts == 0 || sizes.hosts > HOSTS_MAX {
            return refuse("1 to 16 hosts");
        }
        for bytes in [sizes.ring, sizes.feed, sizes.chunk] {
            if bytes < 512 || !bytes.is_power_of_two() || bytes > 1 << 40 {
                return refuse("rings, feed and chunks have a power of two of bytes, 512 at least");
            }
        }
        if sizes.descriptors == 0 || sizes.descriptors > 1 << 16 {
            return refuse("1 to 65,536 descriptors a host");
        }
        if sizes.node_chunks == 0 || sizes.body_chunks == 0 {
            return refuse("at least a chunk for nodes and one for bodies");
        }
        let count = u64::from(sizes.hosts);
        let mut next: u128 = HEADER.into();
        let mut part = |bytes: u128| {
            let at = next;
            next += bytes;
            u64::try_from(at).unwrap_or(u64::MAX)
        };
        let chunks = u128::from(sizes.node_chunks) + u128::from(sizes.body_chunks);
        let hosts = part((count * HOST_LINES).into());
        let slots = part((u64::from(SLOTS) * 8).into());
        let chunk_table = part(chunks * u128::from(CHUNK_ENTRY));
        let descriptors = part((count * u64::from(sizes.descriptors) * DESCRIPTOR).into());
        let nodes = part(u128::from(sizes.node_chunks) * u128::from(sizes.chunk));
        let bulk = part(u128::from(count) * u128::from(sizes.ring));
        let feed = part(sizes.feed.into());
        let bodies = part(u128::from(sizes.body_chunks) * u128::from(sizes.chunk));
        let len = part(0);
        if len > 1 << 44 {
            return refuse("16 TiB at most");
        }
        Ok(Layout { sizes, hosts, slots, chunk_table, descriptors, nodes, bulk, feed, bodies, len })
    }

    /// What it was made of.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }
    /// Bytes of the whole segment.
    pub fn len(&self) -> u64 {
        self.len
    }
    /// A segment always has a header.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// Bytes of the coherent part; what lies behind needs flushes and invalidations.
    pub fn coherent(&self) -> u64 {
        self.bulk
    }

    /// The host's first line.
    pub(crate) fn host(&self, host: u8) -> u64 {
        assert!(host < self.sizes.hosts, "host {host} of {}", self.sizes.hosts);
        self.hosts + u64::from(host) * HOST_LINES
    }
    pub(crate) fn slot(&self, slot: u16) -> u64 {
        assert!(slot < SLOTS, "slot {slot}");
        self.slots + u64::from(slot) * 8
    }
    pub(crate) fn ring(&self, host: u8) -> u64 {
        assert!(host < self.sizes.hosts, "host {host} of {}", self.sizes.hosts);
        self.bulk + u64::from(host) * self.sizes.ring
    }
    pub(crate) fn feed(&self) -> u64 {
        self.feed
    }
    pub(crate) fn descriptor(&self, host: u8, number: u16) -> u64 {
        assert!(host < self.sizes.hosts && u32::from(number) < self.sizes.descriptors, "descriptor {number} of host {host}");
        self.descriptors + (u64::from(host) * u64::from(self.sizes.descriptors) + u64::from(number)) * DESCRIPTOR
    }
    pub(crate) fn chunks(&self) -> u32 {
        self.sizes.node_chunks + self.sizes.body_chunks
    }
    /// The entry of a chunk in the table; those of node chunks come first.
    pub(crate) fn chunk_entry(&self, chunk: u32) -> u64 {
        assert!(chunk < self.chunks(), "chunk {chunk} of {}", self.chunks());
        self.chunk_table + u64::from(chunk) * CHUNK_ENTRY
    }
    /// Where a chunk's blocks lie.
    pub(crate) fn chunk(&self, chunk: u32) -> u64 {
        assert!(chunk < self.chunks(), "chunk {chunk} of {}", self.chunks());
        match chunk.checked_sub(self.sizes.node_chunks) {
            None => self.nodes + u64::from(chunk) * self.sizes.chunk,
            Some(body) => self.bodies + u64::from(body) * self.sizes.chunk,
        }
    }
    /// The chunk that a block lies in, if it lies in one.
    pub(crate) fn chunk_of(&self, at: u64) -> Option<u32> {
        let within = |from: u64, chunks: u32| {
            let chunk = at.checked_sub(from)? / self.sizes.chunk;
            u32::try_from(chunk).ok().filter(|chunk| *chunk < chunks)
        };
        let body = || Some(within(self.bodies, self.sizes.body_chunks)? + self.sizes.node_chunks);
        within(self.nodes, self.sizes.node_chunks).or_else(body)
    }
    /// Checks an offset that comes out of shared memory and should be that of a node.
    pub(crate) fn node(&self, at: u64) -> Result<u64, Damaged> {
        match self.chunk_of(at) {
            Some(chunk) if chunk < self.sizes.node_chunks && at.is_multiple_of(LINE) => Ok(at),
            _ => Err(Damaged(format!("{at:#x} is no place of a tuple"))),
        }
    }
    /// The same of a body.
    pub(crate) fn body(&self, at: u64) -> Result<u64, Damaged> {
        match self.chunk_of(at) {
            Some(chunk) if chunk >= self.sizes.node_chunks && at.is_multiple_of(LINE) => Ok(at),
            _ => Err(Damaged(format!("{at:#x} is no place of a body"))),
        }
    }
}

/// Offsets in the header. Each is a line of its own.
pub(crate) mod header {
    use super::LINE;
    /// Whether the generation goes on.
    pub const STATE: u64 = 4 * LINE;
    pub const CLOCK: u64 = 5 * LINE;
    pub const ACKED: u64 = 6 * LINE;
    pub const CEILING: u64 = 7 * LINE;
    /// The bound of the schema grant, and behind it the grant's number.
    pub const GRANT: u64 = 8 * LINE;
    pub const FEED_TAIL: u64 = 9 * LINE;
    /// The epoch of reclamation.
    pub const EPOCH: u64 = 10 * LINE;
    /// The largest position of the log that a slot's last owner had applied when it gave it away.
    pub const GIVEN: u64 = 11 * LINE;
    /// The list of tuples: its first node, by level.
    pub const INDEX: u64 = 12 * LINE;
}

/// Offsets in a host's lines.
pub(crate) mod host {
    use super::LINE;
    /// State and epoch; written by whoever changes them, by comparison.
    pub const STATE: u64 = 0;
    /// Written by the host: it lives.
    pub const HEARTBEAT: u64 = LINE;
    /// Written by the host: a number that L echoes.
    pub const NONCE: u64 = LINE + 8;
    /// Written by L.
    pub const ECHO: u64 = 2 * LINE;
    /// Written by the host.
    pub const RING_TAIL: u64 = 3 * LINE;
    /// Written by L: the log has what lies before it.
    pub const RING_TAKEN: u64 = 4 * LINE;
    /// Written by the host: what it has applied.
    pub const FEED_POSITION: u64 = 5 * LINE;
    /// Written by the host: no operation of it began before this epoch.
    pub const EPOCH: u64 = 6 * LINE;
    /// Written by all: another host has something for this one.
    pub const DOORBELL: u64 = 7 * LINE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_behind_each_other_at_lines() {
        for sizes in [Sizes::SMALL, Sizes::DEFAULT] {
            let layout = Layout::new(sizes).unwrap();
            let last = sizes.hosts - 1;
            let parts = [
                layout.host(0),
                layout.host(last) + HOST_LINES,
                layout.slot(SLOTS - 1) + 8,
                layout.chunk_entry(layout.chunks() - 1) + CHUNK_ENTRY,
                layout.descriptor(last, (sizes.descriptors - 1) as u16) + DESCRIPTOR,
                layout.ring(0),
                layout.feed(),
                layout.chunk(layout.chunks() - 1),
                layout.len(),
            ];
            assert!(parts.is_sorted_by(|a, b| a < b), "{parts:?}");
            assert!(parts.iter().all(|at| at % LINE == 0), "{parts:?}");
            assert_eq!(layout.coherent(), layout.ring(0));
        }
        assert!(Layout::new(Sizes::DEFAULT).unwrap().coherent() < 260 << 20);
    }

    #[test]
    fn a_place_is_known_by_its_chunk() {
        let layout = Layout::new(Sizes::SMALL).unwrap();
        for chunk in 0..layout.chunks() {
            let at = layout.chunk(chunk);
            assert_eq!(layout.chunk_of(at + 64), Some(chunk));
            assert_eq!(layout.node(at + 64).is_ok(), chunk < 4);
            assert_eq!(layout.body(at + 64).is_ok(), chunk >= 4);
            assert!(layout.node(at + 8).is_err() && layout.body(at + 8).is_err());
        }
        assert_eq!(layout.chunk_of(layout.len()), None);
        assert_eq!(layout.chunk_of(0), None);
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        let wrong = [
            Sizes { hosts: 0, ..Sizes::SMALL },
            Sizes { hosts: 17, ..Sizes::SMALL },
            Sizes { ring: 1000, ..Sizes::SMALL },
            Sizes { feed: 64, ..Sizes::SMALL },
            Sizes { descriptors: 0, ..Sizes::SMALL },
            Sizes { node_chunks: 0, ..Sizes::SMALL },
            Sizes { chunk: 1 << 40, body_chunks: u32::MAX, ..Sizes::SMALL },
        ];
        for sizes in wrong {
            assert!(matches!(Layout::new(sizes), Err(OpenError::Sizes(_))), "{sizes:?}");
        }
    }
}
