//! The bytes of a segment file: its header and its frames. Pure functions.
//!
//! ```text
//! segment = header (64 bytes) | frame* | zeros, or frames of the file's earlier life
//! header  = magic 8 | format u32 | crc u32 | segment u64 | previous segment's end u64 | zeros
//! frame   = len u32 | crc u32 | segment u64 | batch u64 | index u64 | term u64 | group u32 | kind u8 | zeros 3 | body
//! ```
//!
//! Integers are little-endian; a frame is padded to 8 bytes (`len` does not count the padding); a
//! `crc` is CRC-32C over everything after it, and a header's over all of the header but the `crc`.
//! Two fields exist for recovery alone:
//!
//! * `segment` is the number of the segment the frame was written to. Files are recycled without
//!   being zeroed again, so a frame of the file's earlier life is intact; its number gives it away.
//! * `batch` is the offset at which the write that contained the frame began. A write starts only
//!   after the one before it is durable. So a valid frame whose batch begins *after* a damaged
//!   place proves that the place was durable once: the disk lost acknowledged data, and the log is
//!   refused. A valid frame of the *same* batch after the damage proves nothing (pages of one write
//!   reach the disk in any order): the batch was never acknowledged, and its rest is cut off.

use meridian_base::{GroupId, LogPosition, NodeId};

/// The version of the layout. A larger one is refused.
pub(super) const FORMAT: u32 = 1;
const MAGIC: &[u8; 8] = b"MERIDLOG";
/// Where a segment's first frame starts.
pub(super) const SEGMENT_HEADER_BYTES: u64 = 64;
/// A frame without its body.
pub(super) const FRAME_HEADER_BYTES: usize = 48;
const ALIGN: usize = 8;
/// No body is larger, which bounds what a damaged length makes recovery look at.
pub(super) const BODY_BYTES_MAX: usize = meridian_base::limits::RPC_FRAME_BYTES_MAX;

/// What a log entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A proposal.
    Payload,
    /// A new leader's first entry.
    Blank,
    /// A change of members; the body is opaque to the log.
    Membership,
}

/// The durable vote of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vote {
    pub term: u64,
    pub node: NodeId,
    /// The node is known to have won the election of `term`.
    pub committed: bool,
}

/// What one frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    /// An entry; it implies that no entry at or above its index existed before.
    Entry {
        kind: EntryKind,
        position: LogPosition,
        body: &'a [u8],
    },
    Vote(Vote),
    /// Entries above the index are removed.
    Truncate {
        after: u64,
    },
    /// Entries up to the position are removed, and those above it kept.
    Purge {
        upto: LogPosition,
    },
    /// The replica was removed from this node: nothing of the group's log counts any more, but its
    /// vote.
    Forget,
    /// The log was closed in good order. Written as a batch of its own, it vouches for the batch
    /// before.
    Close,
}

/// One frame as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub segment: u64,
    pub batch: u64,
    pub group: GroupId,
    pub content: Content<'a>,
    /// Bytes in the file, padding included.
    pub bytes: usize,
}

const KIND_PAYLOAD: u8 = 1;
const KIND_BLANK: u8 = 2;
const KIND_MEMBERSHIP: u8 = 3;
const KIND_VOTE: u8 = 4;
const KIND_TRUNCATE: u8 = 5;
const KIND_PURGE: u8 = 6;
const KIND_CLOSE: u8 = 7;
const KIND_FORGET: u8 = 8;

/// How many bytes a frame with such a body takes in the file.
pub(super) fn frame_bytes(body: usize) -> usize {
    (FRAME_HEADER_BYTES + body).next_multiple_of(ALIGN)
}

/// Appends a frame to `out`.
pub(super) fn encode(out: &mut Vec<u8>, segment: u64, batch: u64, group: GroupId, content: Content<'_>) {
    let committed: [u8; 1];
    let (kind, index, term, body): (u8, u64, u64, &[u8]) = match content {
        Content::Entry { kind, position, body } => {
            let kind = match kind {
                EntryKind::Payload => KIND_PAYLOAD,
                EntryKind::Blank => KIND_BLANK,
                EntryKind::Membership => KIND_MEMBERSHIP,
            };
            (kind, position.index, position.term, body)
        }
        Content::Vote(v) => {
            committed = [u8::from(v.committed)];
            (KIND_VOTE, u64::from(v.node.0), v.term, &committed)
        }
        Content::Truncate { after } => (KIND_TRUNCATE, after, 0, &[]),
        Content::Purge { upto } => (KIND_PURGE, upto.index, upto.term, &[]),
        Content::Close => (KIND_CLOSE, 0, 0, &[]),
        Content::Forget => (KIND_FORGET, 0, 0, &[]),
    };
    assert!(body.len() <= BODY_BYTES_MAX, "a log entry of {} bytes", body.len());
    let start = out.len();
    out.extend_from_slice(&((FRAME_HEADER_BYTES + body.len()) as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&segment.to_le_bytes());
    out.extend_from_slice(&batch.to_le_bytes());
    out.extend_from_slice(&index.to_le_bytes());
    out.extend_from_slice(&term.to_le_bytes());
    out.extend_from_slice(&group.0.to_le_bytes());
    out.extend_from_slice(&[kind, 0, 0, 0]);
    out.extend_from_slice(body);
    let crc = crc32c::crc32c(&out[start + 8..]);
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
    out.resize(start + frame_bytes(body.len()), 0);
}

/// Reads the frame at the start of `bytes`; `None` if there is no intact one.
pub(super) fn decode(bytes: &[u8]) -> Option<Frame<'_>> {
    let header = bytes.get(..FRAME_HEADER_BYTES)?;
    let u32_at = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    let len = u32_at(0) as usize;
    if !(FRAME_HEADER_BYTES..=FRAME_HEADER_BYTES + BODY_BYTES_MAX).contains(&len) || header[45..48] != [0; 3] {
        return None;
    }
    let padded = len.next_multiple_of(ALIGN);
    let frame = bytes.get(..padded)?;
    if crc32c::crc32c(&frame[8..len]) != u32_at(4) {
        return None;
    }
    let (index, term, body) = (u64_at(24), u64_at(32), &frame[FRAME_HEADER_BYTES..len]);
    let position = LogPosition { index, term };
    let entry = |kind| Content::Entry { kind, position, body };
    let content = match header[44] {
        KIND_PAYLOAD => entry(EntryKind::Payload),
        KIND_BLANK => entry(EntryKind::Blank),
        KIND_MEMBERSHIP => entry(EntryKind::Membership),
        KIND_VOTE => {
            let node = NodeId(u32::try_from(index).ok()?);
            Content::Vote(Vote { term, node, committed: *body.first()? != 0 })
        }
        KIND_TRUNCATE => Content::Truncate { after: index },
        KIND_PURGE => Content::Purge { upto: position },
        KIND_CLOSE => Content::Close,
        KIND_FORGET => Content::Forget,
        _ => return None,
    };
    Some(Frame { segment: u64_at(8), batch: u64_at(16), group: GroupId(u32_at(40)), content, bytes: padded })
}

/// A segment file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub segment: u64,
    /// Where the segment before this one ends: recovery checks that nothing of it is missing. 0 for
    /// the first.
    pub previous_end: u64,
}

/// Why a header was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadHeader {
    Damaged,
    NewerFormat(u32),
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES as usize] {
        let mut out = [0; SEGMENT_HEADER_BYTES as usize];
        out[..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        out[16..24].copy_from_slice(&self.segment.to_le_bytes());
        out[24..32].copy_from_slice(&self.previous_end.to_le_bytes());
        let crc = header_crc(&out);
        out[12..16].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<SegmentHeader, BadHeader> {
        let bytes = bytes.get(..SEGMENT_HEADER_BYTES as usize).ok_or(BadHeader::Damaged)?;
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if &bytes[..8] != MAGIC || u32_at(12) != header_crc(bytes) || u32_at(8) == 0 {
            return Err(BadHeader::Damaged);
        }
        if u32_at(8) > FORMAT {
            return Err(BadHeader::NewerFormat(u32_at(8)));
        }
        Ok(SegmentHeader { segment: u64_at(16), previous_end: u64_at(24) })
    }
}

/// Over everything but the checksum itself.
fn header_crc(header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn content(kind: u8, index: u64, term: u64, body: &[u8]) -> Content<'_> {
        let position = LogPosition { index, term };
        match kind {
            0 => Content::Entry { kind: EntryKind::Payload, position, body },
            1 => Content::Entry { kind: EntryKind::Blank, position, body },
            2 => Content::Entry { kind: EntryKind::Membership, position, body },
            3 => Content::Vote(Vote { term, node: NodeId(index as u32), committed: index.is_multiple_of(2) }),
            4 => Content::Truncate { after: index },
            5 => Content::Purge { upto: position },
            6 => Content::Forget,
            _ => Content::Close,
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let mut fixtures = meridian_fixtures::Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/log.txt"));
        for kind in 0..8 {
            let mut out = Vec::new();
            encode(&mut out, 3, 4_096, GroupId(5), content(kind, 9, 2, b"body"));
            fixtures.bytes(&format!("frame {}", out[44]), &out, |bytes| {
                let frame = decode(bytes).ok_or("no frame")?;
                let mut again = Vec::new();
                encode(&mut again, frame.segment, frame.batch, frame.group, frame.content);
                Ok((format!("{frame:?}"), again))
            });
        }
        fixtures.bytes("header", &SegmentHeader { segment: 3, previous_end: 4_096 }.encode(), |bytes| {
            let header = SegmentHeader::decode(bytes).map_err(|e| format!("{e:?}"))?;
            Ok((format!("{header:?}"), header.encode().to_vec()))
        });
        fixtures.finish();
    }

    proptest! {
        #[test]
        fn a_frame_is_read_back(kind in 0..8u8, group: u32, index: u64, term: u64, body: Vec<u8>, segment: u64, batch: u64) {
            let mut out = vec![];
            let content = content(kind, index, term, &body);
            encode(&mut out, segment, batch, GroupId(group), content);
            prop_assert_eq!(out.len() % ALIGN, 0);
            let frame = decode(&out).unwrap();
            prop_assert_eq!(frame, Frame { segment, batch, group: GroupId(group), content, bytes: out.len() });
        }
        #[test]
        fn a_flipped_bit_is_noticed(index: u64, body: Vec<u8>, at: prop::sample::Index, bit in 0..8u8) {
            let mut out = vec![];
            let content = content(0, index, 3, &body);
            encode(&mut out, 1, 64, GroupId(2), content);
            let at = at.index(FRAME_HEADER_BYTES + body.len());
            out[at] ^= 1 << bit;
            prop_assert_eq!(decode(&out), None);
        }
        #[test]
        fn no_bytes_panic_the_decoder(bytes: Vec<u8>) {
            let _ = decode(&bytes);
            let _ = SegmentHeader::decode(&bytes);
        }
        #[test]
        fn a_flipped_bit_in_a_header_is_noticed(segment: u64, previous_end: u64, at in 0..64usize, bit in 0..8u8) {
            let header = SegmentHeader { segment, previous_end };
            let mut bytes = header.encode();
            prop_assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(SegmentHeader::decode(&bytes), Err(BadHeader::Damaged));
        }
    }

    /// With the right checksum, as only a program writes it that this one does not understand.
    #[test]
    fn what_has_a_checksum_and_is_something_else_is_not_taken_for_ours() {
        let header = SegmentHeader { segment: 1, previous_end: 0 };
        for (at, value) in [(0, b'X'), (7, 0), (8, 0)] {
            let mut bytes = header.encode();
            bytes[at] = value;
            let crc = header_crc(&bytes);
            bytes[12..16].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(SegmentHeader::decode(&bytes), Err(BadHeader::Damaged), "byte {at}");
        }
        for at in 45..48 {
            let mut bytes = Vec::new();
            encode(&mut bytes, 1, 64, GroupId(2), Content::Truncate { after: 3 });
            assert!(decode(&bytes).is_some());
            bytes[at] = 1;
            let crc = crc32c::crc32c(&bytes[8..]);
            bytes[4..8].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(decode(&bytes), None, "byte {at}");
        }
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let mut bytes = SegmentHeader { segment: 1, previous_end: 0 }.encode();
        bytes[8] = FORMAT as u8 + 1;
        let crc = header_crc(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Err(BadHeader::NewerFormat(FORMAT + 1)));
    }
}
