//! Reading the log at start.
//!
//! Segments are read in order and every frame is verified. A segment that is not the last must be
//! intact up to where its successor's header says it ends. In the last one, the first place without
//! an intact frame is the end, unless an intact frame behind it proves that the place was durable
//! (see [`super::frame`], `batch`).

use super::frame::{self, BadHeader, Content, FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader, Vote};
use super::segment::{self, FIRST_FRAME, FOLDER, Segment, damaged, disk_error, segment_path};
use super::{Entries, LogEntry, LogOptions, Place};
use bytes::Bytes;
use meridian_base::runtime::Disk;
use meridian_base::{Error, GroupId, LogPosition, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a group's small records last said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub vote: Option<Vote>,
    pub purged: LogPosition,
}

/// What start found.
pub(super) struct Recovered {
    pub groups: BTreeMap<GroupId, Entries>,
    pub marks: BTreeMap<GroupId, Marks>,
    pub segments: BTreeMap<u64, Arc<Segment>>,
    /// Per segment, the largest index of every group in it: when all are purged, the segment is
    /// free.
    pub contents: BTreeMap<u64, BTreeMap<GroupId, u64>>,
    pub spares: Vec<u64>,
    /// Where the last segment ends; 0 if there is no segment.
    pub end: u64,
    /// Writing must go on in a new segment, since remains of a torn write lie behind the end of the
    /// last one.
    pub torn: bool,
}

/// Reads and verifies the whole log. Changes nothing on disk but syncs the last segment: what a
/// process wrote without syncing before it died is taken over, so it must not vanish later.
pub(super) async fn recover(disk: &dyn Disk, options: &LogOptions) -> Result<Recovered> {
    let names = disk.list(FOLDER).map_err(|e| disk_error(disk, FOLDER, "listing", &e))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|n| segment::parse_segment_name(n)).collect();
    numbers.sort_unstable();
    for pair in numbers.windows(2) {
        if pair[1] != pair[0] + 1 {
            let missing = disk.describe(&segment_path(pair[0] + 1));
            return Err(Error::fatal(format!("log file {missing} is missing, but the one after it exists")));
        }
    }
    let mut out = Recovered {
        groups: BTreeMap::new(),
        marks: BTreeMap::new(),
        segments: BTreeMap::new(),
        contents: BTreeMap::new(),
        spares: names.iter().filter_map(|n| segment::parse_spare_name(n)).collect(),
        end: 0,
        torn: false,
    };
    let mut loaded: Option<(u64, Vec<u8>)> = None;
    for &number in &numbers {
        let (segment, header, bytes) = load(disk, number)?;
        if let Some((previous, previous_bytes)) = loaded.take() {
            scan(disk, options, previous, &previous_bytes, Some(header.previous_end), &mut out)?;
        }
        loaded = Some((number, bytes));
        out.segments.insert(number, Arc::new(segment));
    }
    if let Some((number, bytes)) = loaded {
        scan(disk, options, number, &bytes, None, &mut out)?;
        let file = &out.segments[&number].file;
        file.sync().await.map_err(|e| disk_error(disk, &segment_path(number), "syncing", &e))?;
    }
    for (group, entries) in &out.groups {
        if !entries.check_recovered() {
            return Err(Error::fatal(format!(
                "the log of group {group} in {} has a gap behind entry {}: a log file is missing",
                disk.describe(FOLDER),
                entries.purged()
            ))
            .hint(
                "Put the missing file back, or move the whole data directory away: a node with an empty \
                 directory joins as a new one and gets its replicas from the others.",
            ));
        }
    }
    Ok(out)
}

/// Opens a segment and reads it whole.
fn load(disk: &dyn Disk, number: u64) -> Result<(Segment, SegmentHeader, Vec<u8>)> {
    let path = segment_path(number);
    let file = disk.open(&path, false).map_err(|e| disk_error(disk, &path, "opening", &e))?;
    let bytes = segment::read_file(disk, &path, &*file)?;
    match SegmentHeader::decode(&bytes) {
        Ok(header) if header.segment == number => Ok((Segment { number, file }, header, bytes)),
        Ok(_) | Err(BadHeader::Damaged) => Err(damaged(disk, number, 0)),
        Err(BadHeader::NewerFormat(format)) => Err(Error::fatal(format!(
            "log file {} has format {format}, which is newer than this program's ({})",
            disk.describe(&path),
            frame::FORMAT
        ))
        .hint("Start the version of meridian that wrote this data directory, or a newer one.")),
    }
}

/// Takes the frames of one segment. `end` is where it must end; `None` for the last one, whose end
/// is to be found.
fn scan(disk: &dyn Disk, options: &LogOptions, number: u64, bytes: &[u8], end: Option<u64>, out: &mut Recovered) -> Result<()> {
    out.contents.entry(number).or_default();
    let mut at = FIRST_FRAME as usize;
    while end.is_none_or(|end| (at as u64) < end) {
        let Some(frame) = bytes.get(at..).and_then(frame::decode).filter(|f| f.segment == number) else { break };
        take(options, number, at as u64, &frame, out).map_err(|why| damaged(disk, number, at as u64).detail(why))?;
        at += frame.bytes;
    }
    match end {
        Some(end) if at as u64 != end => return Err(damaged(disk, number, at as u64)),
        Some(_) => {}
        None => {
            out.torn = judge_tail(disk, number, bytes, at)?;
            out.end = at as u64;
        }
    }
    Ok(())
}

/// What follows the last intact frame: nothing, the remains of a write that was never acknowledged
/// (`true`), or proof of damage.
fn judge_tail(disk: &dyn Disk, number: u64, bytes: &[u8], at: usize) -> Result<bool> {
    let mut torn = false;
    let mut next = at;
    while next + FRAME_HEADER_BYTES <= bytes.len() {
        if let Some(frame) = frame::decode(&bytes[next..]) {
            if frame.segment == number {
                if frame.batch > at as u64 {
                    return Err(damaged(disk, number, at as u64));
                }
                torn = true;
            }
            next += frame.bytes;
        } else {
            next += 8;
        }
    }
    let started = bytes.get(at..at + 16).is_some_and(|head| {
        // An intact frame of the file's earlier life is what the end of a recycled segment looks
        // like.
        head[..8] != [0; 8] && frame::decode(&bytes[at..]).is_none() && head[8..16] == number.to_le_bytes()
    });
    if torn || started {
        tracing::warn!(
            file = disk.describe(&segment_path(number)),
            offset = at,
            "the log ends in an incomplete write, as a crash leaves one; it is cut off"
        );
        return Ok(true);
    }
    // Anything else than zeros and whole old frames may be the first pages of a torn write: do not
    // write around it.
    Ok(bytes.get(at..(at + FRAME_HEADER_BYTES).min(bytes.len())).is_some_and(|head| head.iter().any(|b| *b != 0)))
}

/// Applies one frame to what is known.
fn take(
    options: &LogOptions,
    number: u64,
    offset: u64,
    frame: &frame::Frame<'_>,
    out: &mut Recovered,
) -> Result<(), &'static str> {
    if matches!(frame.content, Content::Close) {
        return Ok(());
    }
    let entries = out.groups.entry(frame.group).or_insert_with(|| Entries::new(options.cache_bytes_per_group));
    let marks = out.marks.entry(frame.group).or_default();
    match frame.content {
        Content::Entry { kind, position, body } => {
            let place = Place { segment: number, offset, bytes: (FRAME_HEADER_BYTES + body.len()) as u32 };
            entries.recover(&LogEntry { position, kind, body: Bytes::copy_from_slice(body) }, place)?;
            let largest = out.contents.entry(number).or_default().entry(frame.group).or_default();
            *largest = (*largest).max(position.index);
        }
        Content::Vote(vote) => {
            entries.vote = Some(vote);
            marks.vote = Some(vote);
        }
        Content::Truncate { after } => entries.truncate(after),
        Content::Purge { upto } => {
            entries.purge(upto);
            marks.purged = entries.purged();
        }
        Content::Forget => {
            entries.forget();
            marks.purged = LogPosition::default();
            for groups in out.contents.values_mut() {
                groups.remove(&frame.group);
            }
        }
        Content::Close => unreachable!("handled above"),
    }
    Ok(())
}

const _: () = assert!(SEGMENT_HEADER_BYTES.is_multiple_of(8));
