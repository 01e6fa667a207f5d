//! A group's content as a stream of chunks: what a new replica, or one that fell behind, gets
//! before the log.
//!
//! ```text
//! chunk = "MSNP" | format u8 | kind u8 | number u64 | body | crc32c of all before u32
//! kinds: 1 head (an envelope), 2 entries, 3 tail (an envelope)
//! entry = space u8 | key len u32 | value len u32 | key | value        (as in the spaces, see crate::codec)
//! ```
//!
//! Integers are little-endian. The chunks are numbered from 0, so that a stream can be resumed. The
//! threshold of garbage collection is in the tail and not in the head, because collection goes on
//! while the export does.
//!
//! An import fills a pair of spaces of its own, which nothing refers to; the record that names it,
//! written when the tail has been seen, replaces the group's content in one durable step. What a
//! crash before that leaves is removed when the store is opened.

use crate::backend::{Space, Spaces, SpacesId, View};
use crate::codec::{self, GroupRecord};
use crate::group::GroupStore;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use meridian_base::envelope;
use meridian_base::error::{Error, Result};
use meridian_base::id::{GroupId, LogPosition};
use meridian_base::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

const MAGIC: &[u8; 4] = b"MSNP";
/// Magic, format, kind, number.
const HEADER: usize = 14;
const CRC: usize = 4;
/// A chunk of entries ends with the one that reaches this size.
const CHUNK_BYTES: usize = (1 << 20) - (64 << 10);

const KIND_HEAD: u8 = 1;
const KIND_ENTRIES: u8 = 2;
const KIND_TAIL: u8 = 3;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    group: GroupId,
    position: LogPosition,
    newest: Timestamp,
    bound: Timestamp,
    state: Bytes,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Tail {
    threshold: Timestamp,
}

#[derive(Debug, PartialEq)]
enum Body {
    Head(Head),
    /// Space, key, value.
    Entries(Vec<(Space, Bytes, Bytes)>),
    Tail(Tail),
}

fn start_chunk(kind: u8, number: u64) -> BytesMut {
    let mut out = BytesMut::with_capacity(CHUNK_BYTES / 16);
    out.put_slice(MAGIC);
    out.put_u8(codec::FORMAT as u8);
    out.put_u8(kind);
    out.put_u64_le(number);
    out
}

fn put_entry(out: &mut BytesMut, space: Space, key: &[u8], value: &[u8]) {
    out.put_u8(space as u8);
    out.put_u32_le(u32::try_from(key.len()).expect("keys are bounded by KEY_BYTES_MAX"));
    out.put_u32_le(u32::try_from(value.len()).expect("values are bounded by ROW_BYTES_MAX"));
    out.put_slice(key);
    out.put_slice(value);
}

fn end_chunk(mut out: BytesMut) -> Bytes {
    let crc = crc32c::crc32c(&out);
    out.put_u32_le(crc);
    out.freeze()
}

fn bad_chunk(what: &str) -> Error {
    Error::unavailable(format!("snapshot chunk refused: {what}"))
}

/// Reads a chunk: its number and its body.
fn decode_chunk(mut chunk: Bytes) -> Result<(u64, Body)> {
    if chunk.len() < HEADER + CRC || &chunk[..4] != MAGIC {
        return Err(bad_chunk("it is not one"));
    }
    let crc = chunk.split_off(chunk.len() - CRC).get_u32_le();
    if crc != crc32c::crc32c(&chunk) {
        return Err(bad_chunk("its checksum is wrong"));
    }
    chunk.advance(MAGIC.len());
    let format = chunk.get_u8();
    if u32::from(format) != codec::FORMAT {
        return Err(bad_chunk(&format!("it has format {format}, this program has {}", codec::FORMAT))
            .hint("Run the same version of meridian on all nodes, or upgrade this one."));
    }
    let kind = chunk.get_u8();
    let number = chunk.get_u64_le();
    let body = match kind {
        KIND_HEAD => Body::Head(envelope::decode(&chunk).map_err(|_| bad_chunk("its head cannot be read"))?),
        KIND_TAIL => Body::Tail(envelope::decode(&chunk).map_err(|_| bad_chunk("its tail cannot be read"))?),
        KIND_ENTRIES => Body::Entries(decode_entries(chunk).ok_or_else(|| bad_chunk("its entries cannot be read"))?),
        other => return Err(bad_chunk(&format!("unknown kind {other}"))),
    };
    Ok((number, body))
}

fn decode_entries(mut body: Bytes) -> Option<Vec<(Space, Bytes, Bytes)>> {
    let mut entries = Vec::new();
    while body.has_remaining() {
        if body.remaining() < 9 {
            return None;
        }
        let space = match body.get_u8() {
            0 => Space::Current,
            1 => Space::History,
            _ => return None,
        };
        let (key_len, value_len) = (body.get_u32_le() as usize, body.get_u32_le() as usize);
        if body.remaining() < key_len.checked_add(value_len)? {
            return None;
        }
        let (key, value) = (body.split_to(key_len), body.split_to(value_len));
        // What cannot be read must not be stored.
        match space {
            Space::Current => drop(codec::current(value.clone())?),
            Space::History => drop(codec::history(codec::split_history_key(&key)?.1, value.clone())?),
        }
        entries.push((space, key, value));
    }
    Some(entries)
}

impl GroupStore {
    /// The content as of the last flushed cut (cut and flush first for a newer one). An error
    /// before the first. Waits for a flush under way.
    pub fn export(self: &Arc<Self>) -> Result<Export> {
        let flushing = self.flushing.lock();
        self.check_not_retired(&flushing)?;
        let Some(record) = self.durable_record() else {
            return Err(Error::unavailable(format!("group {} has nothing flushed to export yet", self.id())));
        };
        let GroupRecord { position, newest, state, .. } = record;
        let head = Head { group: self.id(), position, newest, bound: flushing.bound.max(newest), state };
        let view = self.inner.read().spaces.view();
        Ok(Export { group: self.clone(), view, head, next: Next::Head, number: 0 })
    }

    /// Starts taking in a snapshot, beside the group's present content. An error if the group was
    /// dropped. Waits for a flush under way.
    pub fn import(self: &Arc<Self>) -> Result<Import> {
        let flushing = self.flushing.lock();
        self.check_not_retired(&flushing)?;
        let disk = &self.shared.disk;
        let of_group = disk.list_spaces()?.into_iter().filter(|id| id.group == self.id());
        let incarnation = of_group.map(|id| id.incarnation).max().unwrap_or(0) + 1;
        let id = SpacesId { group: self.id(), incarnation };
        let spaces = self.shared.open_spaces(id)?;
        Ok(Import { group: self.clone(), id, spaces, head: None, tail: None, taken: 0, finished: false })
    }
}

/// A group's content as of one flushed cut, as a sequence of chunks. Writers and readers of the
/// group go on meanwhile.
pub struct Export {
    group: Arc<GroupStore>,
    view: Box<dyn View>,
    head: Head,
    next: Next,
    number: u64,
}

/// Which chunk comes next.
enum Next {
    Head,
    /// Entries after this key.
    Entries(Space, Option<Vec<u8>>),
    Tail,
    Nothing,
}

impl Export {
    /// The position the content is as of: the log follows from there.
    pub fn position(&self) -> LogPosition {
        self.head.position
    }
    /// The replica state that was flushed with that position.
    pub fn state(&self) -> &Bytes {
        &self.head.state
    }

    fn entries(&mut self, space: Space, after: Option<Vec<u8>>) -> Result<Bytes> {
        let mut out = start_chunk(KIND_ENTRIES, self.number);
        let mut last = None;
        let low = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.view.scan(space, (low, Bound::Unbounded), false, &mut |key, value| {
            put_entry(&mut out, space, key, value);
            if out.len() < CHUNK_BYTES {
                return ControlFlow::Continue(());
            }
            last = Some(key.to_vec());
            ControlFlow::Break(())
        })?;
        self.next = match (last, space) {
            (Some(last), _) => Next::Entries(space, Some(last)),
            (None, Space::Current) => Next::Entries(Space::History, None),
            (None, Space::History) => Next::Tail,
        };
        Ok(end_chunk(out))
    }

    fn chunk(&mut self) -> Result<Option<Bytes>> {
        let chunk = match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Head => {
                let mut out = start_chunk(KIND_HEAD, self.number);
                out.put_slice(&codec::put_record(&self.head));
                self.next = Next::Entries(Space::Current, None);
                end_chunk(out)
            }
            Next::Entries(space, after) => self.entries(space, after)?,
            Next::Tail => {
                let mut out = start_chunk(KIND_TAIL, self.number);
                out.put_slice(&codec::put_record(&Tail { threshold: self.group.gc_threshold() }));
                end_chunk(out)
            }
            Next::Nothing => return Ok(None),
        };
        self.number += 1;
        Ok(Some(chunk))
    }
}

impl Iterator for Export {
    /// A chunk of about 1 MiB at most (one huge row may exceed it). Send them in order. Nothing
    /// follows an error.
    type Item = Result<Bytes>;
    fn next(&mut self) -> Option<Result<Bytes>> {
        self.chunk().transpose()
    }
}

/// A snapshot on its way in. Nothing of it is seen by readers before [`Import::finish`]; dropping
/// it discards it.
pub struct Import {
    group: Arc<GroupStore>,
    id: SpacesId,
    spaces: Arc<dyn Spaces>,
    head: Option<Head>,
    tail: Option<Tail>,
    taken: u64,
    finished: bool,
}

impl Import {
    /// Takes the next chunk. The same chunk again (a resumed stream) is ignored; a gap or damage is
    /// an error and the import can go on with the right chunk.
    pub fn chunk(&mut self, bytes: &[u8]) -> Result<()> {
        let (number, body) = decode_chunk(Bytes::copy_from_slice(bytes))?;
        self.group.check_not_retired(&self.group.flushing.lock())?;
        if number < self.taken {
            return Ok(());
        }
        if number > self.taken || self.tail.is_some() || (self.head.is_none() != matches!(body, Body::Head(_))) {
            return Err(bad_chunk(&format!("it is number {number}, expected is {}", self.taken)));
        }
        match body {
            Body::Head(head) if head.group == self.id.group => self.head = Some(head),
            Body::Head(head) => return Err(bad_chunk(&format!("it is of group {}, not {}", head.group, self.id.group))),
            Body::Entries(entries) => self
                .spaces
                .write(0, &mut |sink| entries.iter().try_for_each(|(space, key, value)| sink.put(*space, key, value)))?,
            Body::Tail(tail) => self.tail = Some(tail),
        }
        self.taken += 1;
        Ok(())
    }

    /// How many chunks have been taken: a resumed stream goes on from there.
    pub fn chunks_taken(&self) -> u64 {
        self.taken
    }

    /// Whether the last chunk has been taken.
    pub fn is_complete(&self) -> bool {
        self.tail.is_some()
    }

    /// Replaces the group's content, at once for readers and across a crash. Durable when it
    /// returns. The caller sees to it that nothing is applied meanwhile. Returns the snapshot's
    /// position and replica state.
    pub fn finish(mut self) -> Result<(LogPosition, Bytes)> {
        let (Some(head), Some(tail)) = (self.head.take(), self.tail.take()) else {
            return Err(Error::unavailable(format!("the snapshot of group {} is not complete", self.id.group)));
        };
        let group = self.group.clone();
        let mut flushing = group.flushing.lock();
        group.check_not_retired(&flushing)?;
        let replaced = SpacesId { incarnation: flushing.incarnation, ..self.id };
        let record = GroupRecord {
            incarnation: self.id.incarnation,
            position: head.position,
            newest: head.newest,
            state: head.state.clone(),
        };
        group.install(&mut flushing, self.spaces.clone(), record, head.bound, tail.threshold)?;
        self.finished = true;
        if let Err(e) = group.shared.disk.drop_spaces(replaced) {
            // It is removed when the store is opened next.
            tracing::warn!("replaced spaces {replaced} stay for now: {e}");
        }
        Ok((head.position, head.state))
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let flushing = self.group.flushing.lock();
        // Of a dropped group, all spaces go with it: these may be those of its successor.
        if !flushing.retired
            && let Err(e) = self.group.shared.disk.drop_spaces(self.id)
        {
            tracing::warn!("unfinished import {} stays for now: {e}", self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Version;
    use meridian_base::id::{NodeId, TxnId};
    use meridian_base::key::Key;
    use meridian_base::record::Committed;
    use meridian_base::txn::{ColumnMask, Write};
    use proptest::prelude::*;

    #[test]
    fn what_was_written_is_read() {
        let mut fixtures =
            meridian_fixtures::Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/snapshots.txt"));
        fixtures.value::<Head>("head");
        fixtures.value::<Tail>("tail");
        let head = Head {
            group: GroupId(2),
            position: LogPosition { index: 9, term: 3 },
            newest: Timestamp(8),
            bound: Timestamp(7),
            state: Bytes::from_static(b"state"),
        };
        let (mut newest, mut older, mut entries) = (Vec::new(), Vec::new(), BytesMut::new());
        let version = Version { at: Timestamp(7), columns: ColumnMask(5), value: Some(Bytes::from_static(b"value")) };
        codec::put_current(&mut newest, &version);
        codec::put_history(&mut older, &version, Timestamp(9));
        put_entry(&mut entries, Space::Current, b"key", &newest);
        put_entry(&mut entries, Space::History, &codec::history_key(b"key", Timestamp(7)), &older);
        let tail = Tail { threshold: Timestamp(6) };
        for (name, kind, number, body) in [
            ("chunk head", KIND_HEAD, 0, envelope::encode(&head)),
            ("chunk entries", KIND_ENTRIES, 1, entries.to_vec()),
            ("chunk tail", KIND_TAIL, 2, envelope::encode(&tail)),
        ] {
            fixtures.bytes(name, &chunk_of(kind, number, &body), |bytes| {
                let (number, body) = decode_chunk(Bytes::copy_from_slice(bytes)).map_err(|e| e.to_string())?;
                let (kind, again) = match &body {
                    Body::Head(head) => (KIND_HEAD, envelope::encode(head)),
                    Body::Tail(tail) => (KIND_TAIL, envelope::encode(tail)),
                    Body::Entries(entries) => {
                        let mut out = BytesMut::new();
                        entries.iter().for_each(|(space, key, value)| put_entry(&mut out, *space, key, value));
                        (KIND_ENTRIES, out.to_vec())
                    }
                };
                Ok((format!("{number}: {body:?}"), chunk_of(kind, number, &again).to_vec()))
            });
        }
        fixtures.finish();
    }

    fn chunk_of(kind: u8, number: u64, body: &[u8]) -> Bytes {
        let mut out = start_chunk(kind, number);
        out.put_slice(body);
        end_chunk(out)
    }

    proptest! {
        #[test]
        fn no_bytes_panic_the_decoder(bytes: Vec<u8>, kind in 0u8..5, number: u64) {
            let _ = decode_chunk(Bytes::from(bytes.clone()));
            // With a right checksum, so that the body's decoder is reached.
            let _ = decode_chunk(chunk_of(kind, number, &bytes));
        }
        #[test]
        fn a_flipped_bit_is_noticed(number: u64, threshold: u64, at: prop::sample::Index, bit in 0u8..8) {
            let chunk = chunk_of(KIND_TAIL, number, &codec::put_record(&Tail { threshold: Timestamp(threshold) }));
            prop_assert_eq!(decode_chunk(chunk.clone()).unwrap(), (number, Body::Tail(Tail { threshold: Timestamp(threshold) })));
            let mut damaged = chunk.to_vec();
            let i = at.index(damaged.len());
            damaged[i] ^= 1 << bit;
            prop_assert!(decode_chunk(Bytes::from(damaged)).is_err());
        }
        #[test]
        fn damaged_entries_with_a_right_checksum_do_not_panic(key: Vec<u8>, value: Vec<u8>, at: prop::sample::Index, with: u8) {
            let mut body = BytesMut::new();
            put_entry(&mut body, Space::Current, &key, &value);
            put_entry(&mut body, Space::History, &codec::history_key(&key, Timestamp(7)), &value);
            let i = at.index(body.len());
            body[i] ^= with;
            let _ = decode_chunk(chunk_of(KIND_ENTRIES, 0, &body));
        }
    }

    #[test]
    fn a_chunk_of_something_else_is_refused() {
        let refused = |chunk: Bytes, why: &str| {
            let e = decode_chunk(chunk).expect_err(why);
            assert!(e.message().contains(why), "{e}");
        };
        let tail = codec::put_record(&Tail { threshold: Timestamp(1) });
        // Each with a right checksum.
        let changed = |at: usize, with: u8| {
            let mut chunk = BytesMut::from(&chunk_of(KIND_TAIL, 0, &tail)[..]);
            chunk.truncate(chunk.len() - CRC);
            chunk[at] = with;
            end_chunk(chunk)
        };
        assert!(decode_chunk(changed(0, MAGIC[0])).is_ok());
        refused(changed(0, b'X'), "it is not one");
        refused(changed(4, 2), "it has format 2");
        refused(changed(5, 9), "unknown kind 9");
        // An unknown space, a length that is cut off, a key that is, and a value that cannot be
        // read.
        for entries in [&b"?12345678"[..], b"\0\x01\0\0\0", b"\0\x02\0\0\0\0\0\0\0k", b"\0\0\0\0\0\x01\0\0\0v"] {
            refused(chunk_of(KIND_ENTRIES, 0, entries), "its entries cannot be read");
        }
        refused(chunk_of(KIND_HEAD, 0, b""), "its head cannot be read");
        refused(Bytes::from_static(MAGIC), "it is not one");
    }

    #[test]
    fn a_stream_begins_with_its_one_head() {
        let store = crate::Store::open(crate::Backend::Memory(crate::MemoryDisk::new()), crate::Options::default()).unwrap();
        let group = store.group(GroupId(7)).unwrap();
        let (position, newest) = (LogPosition::default(), Timestamp::MIN);
        let head = codec::put_record(&Head { group: GroupId(7), position, newest, bound: newest, state: Bytes::new() });
        let tail = codec::put_record(&Tail { threshold: Timestamp::MIN });
        let mut import = group.import().unwrap();
        assert!(import.chunk(&chunk_of(KIND_TAIL, 0, &tail)).is_err());
        assert!(import.chunk(&chunk_of(KIND_ENTRIES, 0, b"")).is_err());
        import.chunk(&chunk_of(KIND_HEAD, 0, &head)).unwrap();
        assert!(import.chunk(&chunk_of(KIND_HEAD, 1, &head)).is_err());
        import.chunk(&chunk_of(KIND_TAIL, 1, &tail)).unwrap();
        assert!(import.chunk(&chunk_of(KIND_TAIL, 2, &tail)).is_err());
        assert_eq!((import.chunks_taken(), import.is_complete()), (2, true));
        import.finish().unwrap();
    }

    #[test]
    fn a_chunk_ends_with_the_entry_that_reaches_its_size() {
        let store = crate::Store::open(crate::Backend::Memory(crate::MemoryDisk::new()), crate::Options::default()).unwrap();
        let group = store.group(GroupId(7)).unwrap();
        // Space, two lengths, a key of eight bytes, and what stands before a value: two of them
        // fill a chunk.
        let value = Bytes::from(vec![7; (CHUNK_BYTES - HEADER) / 2 - (1 + 4 + 4 + 8 + 17)]);
        let write = |i: u64| Write { key: Key::new(&i.to_be_bytes()), value: Some(value.clone()), columns: ColumnMask::ALL };
        let id = TxnId { hlc: Timestamp(10), gateway: NodeId(1) };
        let txn = Committed { id, at: Timestamp(10), writes: (1..=3).map(write).collect() };
        group.apply(LogPosition { index: 1, term: 1 }, &[txn]).unwrap();
        group.cut(Bytes::new());
        group.flush_step().unwrap();
        let entries = group.export().unwrap().filter_map(|chunk| match decode_chunk(chunk.unwrap()).unwrap().1 {
            Body::Entries(entries) => Some(entries.len()),
            _ => None,
        });
        assert_eq!(entries.collect::<Vec<_>>(), [2, 1, 0]);
    }
}
