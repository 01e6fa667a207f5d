//! Segment files: their names, how a new one comes to be, and reading a frame back.
//!
//! `log/0000000000000007.log` is segment 7. `log/spare-0000000000000003` is a file kept for reuse:
//! it becomes a segment by getting a header, a sync, and then, atomically, a segment's name. So a
//! file with a segment's name always has a valid header.

use super::frame::{self, Content, SEGMENT_HEADER_BYTES, SegmentHeader};
use super::{LogEntry, Place};
use bytes::Bytes;
use meridian_base::runtime::{Disk, DiskFile};
use meridian_base::{Error, ErrorKind, GroupId, LogPosition, Result};
use std::io;

pub(super) const FOLDER: &str = "log";
/// What is done to a file, for messages.
pub(super) const SYNCING: &str = "syncing";
/// PostgreSQL's condition `disk_full`.
const DISK_FULL: &str = "53100";

pub(super) fn segment_path(segment: u64) -> String {
    format!("{FOLDER}/{segment:016}.log")
}

pub(super) fn spare_path(segment: u64) -> String {
    format!("{FOLDER}/spare-{segment:016}")
}

/// The number in a segment's file name.
pub(super) fn parse_segment_name(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

/// The number in a spare file's name.
pub(super) fn parse_spare_name(name: &str) -> Option<u64> {
    name.strip_prefix("spare-")?.parse().ok()
}

/// The error for an operation on a file of the log that failed.
pub(super) fn disk_error(disk: &dyn Disk, path: &str, doing: &str, e: &io::Error) -> Error {
    let what = format!("{doing} log file {} failed: {e}", disk.describe(path));
    // What a sync was about may be lost, whatever the reason: it is not tried again.
    if is_full(e) && doing != SYNCING {
        Error::new(ErrorKind::Fatal, DISK_FULL, what)
            .hint("The disk is full. Nothing acknowledged is lost; free some space and start the node again.")
    } else {
        Error::fatal(what)
    }
}

fn is_full(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::StorageFull || e.raw_os_error() == Some(libc::ENOSPC)
}

/// Whether the same may succeed at the same place once the disk has room.
pub(super) fn waits_for_room(e: &Error) -> bool {
    e.sqlstate() == DISK_FULL
}

/// A segment file in use.
pub(super) struct Segment {
    pub number: u64,
    pub file: Box<dyn DiskFile>,
}

impl Segment {
    /// Makes segment `number`, from the file of an old one if there is a spare.
    pub(super) async fn create(disk: &dyn Disk, number: u64, previous_end: u64, spare: Option<u64>) -> Result<Segment> {
        let from = spare_path(spare.unwrap_or(number));
        let fail = |doing: &str, e: io::Error| disk_error(disk, &from, doing, &e);
        let file = disk.open(&from, true).map_err(|e| fail("creating", e))?;
        let header = SegmentHeader { segment: number, previous_end }.encode();
        file.write_at(0, &header).map_err(|e| fail("writing", e))?;
        file.sync().await.map_err(|e| fail(SYNCING, e))?;
        let to = segment_path(number);
        disk.rename(&from, &to).map_err(|e| fail("renaming", e))?;
        let file = disk.open(&to, false).map_err(|e| disk_error(disk, &to, "opening", &e))?;
        Ok(Segment { number, file })
    }

    /// Reads back one entry of `group`, verifying it.
    pub(super) fn read_entry(&self, disk: &dyn Disk, group: GroupId, position: LogPosition, place: Place) -> Result<LogEntry> {
        let path = segment_path(self.number);
        let mut bytes = vec![0; (place.bytes as usize).next_multiple_of(8)];
        let read = read_full(&*self.file, place.offset, &mut bytes).map_err(|e| disk_error(disk, &path, "reading", &e))?;
        match frame::decode(&bytes[..read]) {
            Some(f) if f.segment == self.number && f.group == group => match f.content {
                Content::Entry { kind, position: p, body } if p == position => {
                    let start = frame::FRAME_HEADER_BYTES;
                    let end = start + body.len();
                    Ok(LogEntry { position, kind, body: Bytes::from(bytes).slice(start..end) })
                }
                _ => Err(damaged(disk, self.number, place.offset)),
            },
            _ => Err(damaged(disk, self.number, place.offset)),
        }
    }
}

/// The log was durable here once, and is not what was written any more.
pub(super) fn damaged(disk: &dyn Disk, segment: u64, offset: u64) -> Error {
    Error::fatal(format!("log file {} is damaged at offset {offset}", disk.describe(&segment_path(segment)))).hint(
        "The disk lost or changed data that was durable. Replace the disk, remove this node from the cluster, and add it again \
         with an empty data directory.",
    )
}

/// Reads until the buffer is full or the file ends.
pub(super) fn read_full(file: &dyn DiskFile, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(offset + done as u64, &mut buf[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Reads a whole file.
pub(super) fn read_file(disk: &dyn Disk, path: &str, file: &dyn DiskFile) -> Result<Vec<u8>> {
    let fail = |e: io::Error| disk_error(disk, path, "reading", &e);
    let mut bytes = vec![0; file.len().map_err(fail)? as usize];
    let read = read_full(file, 0, &mut bytes).map_err(fail)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Where a new segment's frames begin.
pub(super) const FIRST_FRAME: u64 = SEGMENT_HEADER_BYTES;

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::BoxFuture;
    use parking_lot::Mutex;
    use std::collections::VecDeque;

    /// Answers each read with the next of these.
    struct Reads(Mutex<VecDeque<io::Result<&'static [u8]>>>);

    impl DiskFile for Reads {
        fn read_at(&self, _: u64, buf: &mut [u8]) -> io::Result<usize> {
            let part = self.0.lock().pop_front().expect("no more reads")?;
            buf[..part.len()].copy_from_slice(part);
            Ok(part.len())
        }
        fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
            unreachable!("only reads")
        }
        fn sync(&self) -> BoxFuture<'_, io::Result<()>> {
            unreachable!("only reads")
        }
        fn len(&self) -> io::Result<u64> {
            unreachable!("only reads")
        }
        fn set_len(&self, _: u64) -> io::Result<()> {
            unreachable!("only reads")
        }
        fn allocate(&self, _: u64) -> io::Result<()> {
            unreachable!("only reads")
        }
    }

    /// A read gives part of what was asked for, or nothing yet; any other failure is told.
    #[test]
    fn a_buffer_is_filled_by_as_many_reads_as_it_takes() {
        let read = |reads: Vec<io::Result<&'static [u8]>>| {
            let (file, mut buf) = (Reads(Mutex::new(reads.into())), [0; 6]);
            let read = read_full(&file, 0, &mut buf).map_err(|e| e.kind());
            assert!(file.0.lock().is_empty(), "every read was needed");
            read.map(|n| buf[..n].to_vec())
        };
        let interrupted = || Err(io::ErrorKind::Interrupted.into());
        let broken = || Err(io::Error::other("the disk is broken"));
        assert_eq!(read(vec![Ok(b"abcdef")]), Ok(b"abcdef".to_vec()));
        assert_eq!(read(vec![interrupted(), Ok(b"ab"), interrupted(), Ok(b"cdef")]), Ok(b"abcdef".to_vec()));
        assert_eq!(read(vec![Ok(b"ab"), Ok(b"")]), Ok(b"ab".to_vec()), "the file ends");
        assert_eq!(read(vec![Ok(b"ab"), broken()]), Err(io::ErrorKind::Other));
    }
}
