//! The node's log: all groups in one sequence of segment files, one writer, one `fdatasync` per
//! batch.
//!
//! * [`frame`]: the bytes, and how recovery tells a torn write from damage.
//! * [`segment`]: files and their names.
//! * [`recover`]: reading everything at start.
//! * [`writer`]: the loop that makes it durable.
//! * [`entries`]: one group's entries in memory.
//!
//! A segment is freed when every group has purged what it has in it. Freed files are recycled
//! without being zeroed: rewriting allocated blocks needs no metadata, so `fdatasync` costs one
//! write. The votes and truncation points of all groups are repeated at the start of every segment,
//! and by the first batch after every start of the node, so an old segment is needed for its
//! entries only.
//!
//! A group that is idle keeps its last segment alive. When the log has grown beyond
//! [`LogOptions::segments_wanted_max`] the groups in the oldest segment are asked to purge up to
//! what their state machine has made durable; so a state machine must report progress
//! ([`crate::Group::set_truncatable`]) even if its group is idle.

mod entries;
mod frame;
mod recover;
mod segment;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use entries::LogEntry;
use entries::{Entries, Found, Place};
pub(crate) use frame::{EntryKind, Vote};

use meridian_base::alarm::alarmed;
use meridian_base::runtime::{LOG_THREAD, Runtime};
use meridian_base::{Error, GroupId, LogPosition, Result};
use parking_lot::Mutex;
use segment::{FIRST_FRAME, Segment, disk_error, segment_path};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{mpsc, oneshot, watch};
use writer::{Job, Work, Writer};

/// The thread of reads of entries that are not in memory any more.
const LOG_READ_THREAD: &str = "log-read";
/// The thread of work on snapshots.
pub(crate) const SNAPSHOT_THREAD: &str = "snapshot";

/// How a node's log is laid out.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The size of a segment file; [`meridian_base::limits::LOG_SEGMENT_BYTES`] unless a test wants
    /// small ones.
    pub segment_bytes: u64,
    /// How far ahead of its end a new file is filled with zeros, so that most writes change no
    /// metadata.
    pub prepare_bytes: u64,
    /// Recent entries that a group keeps in memory for its followers; older ones are read back from
    /// the files.
    pub cache_bytes_per_group: usize,
    /// Emptied segments kept for reuse; more are removed.
    pub spare_segments_max: usize,
    /// Above so many segments, groups are asked to purge more than they would by themselves.
    pub segments_wanted_max: usize,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            segment_bytes: meridian_base::limits::LOG_SEGMENT_BYTES,
            prepare_bytes: 4 << 20,
            cache_bytes_per_group: 16 << 20,
            spare_segments_max: 2,
            segments_wanted_max: 4,
        }
    }
}

/// Numbers about a node's log, for metrics and tests. Counters start at zero when the log is
/// opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LogStatus {
    /// Segment files in use, the one being written included.
    pub segments: usize,
    /// Emptied segment files kept for reuse.
    pub spare_segments: usize,
    /// Bytes of frames written.
    pub bytes_written: u64,
    /// Frames written.
    pub frames_written: u64,
    /// `fdatasync` calls that made frames durable.
    pub syncs: u64,
    /// Bytes handed to the writer and not yet durable; see
    /// [`meridian_base::limits::LOG_QUEUE_BYTES_MAX`].
    pub queued_bytes: usize,
}

#[derive(Default)]
struct Counters {
    bytes: AtomicU64,
    frames: AtomicU64,
    syncs: AtomicU64,
    spares: AtomicUsize,
}

/// What the log's handles and its writer share.
struct Shared {
    runtime: Arc<dyn Runtime>,
    options: LogOptions,
    groups: Mutex<BTreeMap<GroupId, Arc<GroupLog>>>,
    segments: Mutex<BTreeMap<u64, Arc<Segment>>>,
    queued_bytes: AtomicUsize,
    counters: Counters,
    failure: watch::Sender<Option<Error>>,
    waits_for_room: watch::Sender<bool>,
    /// Nobody wants to wait any more.
    closing: AtomicBool,
}

/// One group's part of the log.
struct GroupLog {
    id: GroupId,
    entries: Mutex<Entries>,
    /// The index up to which the group should purge to free the oldest segment.
    purge_wanted: watch::Sender<u64>,
}

impl GroupLog {
    fn new(id: GroupId, entries: Entries) -> Arc<GroupLog> {
        Arc::new(GroupLog { id, entries: Mutex::new(entries), purge_wanted: watch::Sender::new(0) })
    }
}

/// The log of all groups of a node, in the folder `log/` of its disk. Cheap to clone.
#[derive(Clone)]
pub struct NodeLog {
    shared: Arc<Shared>,
    queue: mpsc::UnboundedSender<Job>,
}

impl NodeLog {
    /// Whether the disk holds a log. Opening a log creates it, so a node that has run before has
    /// one.
    pub fn exists(runtime: &Arc<dyn Runtime>) -> Result<bool> {
        let disk = runtime.disk();
        let names = disk.list(segment::FOLDER).map_err(|e| disk_error(disk, segment::FOLDER, "listing", &e))?;
        Ok(names.iter().any(|n| segment::parse_segment_name(n).is_some()))
    }

    /// Opens the log, or makes an empty one. Reads and verifies every segment. What was being
    /// written when the node stopped (never acknowledged) is cut off, with a warning that names
    /// file and offset; damage before that, and a format newer than this program's, are refused
    /// with an [`meridian_base::ErrorKind::Fatal`] that names file and offset.
    pub async fn open(runtime: Arc<dyn Runtime>, options: LogOptions) -> Result<NodeLog> {
        let disk = runtime.disk();
        let recovered = recover::recover(disk, &options).await?;
        let mut segments = recovered.segments;
        let mut contents = recovered.contents;
        let mut spares = recovered.spares;
        let last = segments.last_key_value().map(|(_, s)| s.clone());
        let (current, tail) = match last {
            Some(last) if !recovered.torn => (last, recovered.end),
            other => {
                let number = other.map_or(1, |s| s.number + 1);
                let segment = Arc::new(Segment::create(disk, number, recovered.end, spares.pop()).await?);
                segments.insert(number, segment.clone());
                contents.insert(number, BTreeMap::new());
                (segment, FIRST_FRAME)
            }
        };
        let path = segment_path(current.number);
        let prepared = current.file.len().map_err(|e| disk_error(disk, &path, "reading", &e))?;
        let groups = recovered.groups.into_iter().map(|(id, entries)| (id, GroupLog::new(id, entries))).collect();
        let shared = Arc::new(Shared {
            runtime: runtime.clone(),
            options,
            groups: Mutex::new(groups),
            segments: Mutex::new(segments),
            queued_bytes: AtomicUsize::new(0),
            counters: Counters { spares: AtomicUsize::new(spares.len()), ..Counters::default() },
            failure: watch::Sender::new(None),
            waits_for_room: watch::Sender::new(false),
            closing: AtomicBool::new(false),
        });
        let (sender, queue) = mpsc::unbounded_channel();
        let marks = recovered.marks;
        let writer = Writer { shared: shared.clone(), queue, current, tail, prepared, marks, contents, spares, marks_due: true };
        let log = NodeLog { shared, queue: sender };
        let alarm = log.alarm("the writer of the log");
        runtime.spawn_io(LOG_THREAD, Box::pin(alarmed(writer.run(), alarm)));
        Ok(log)
    }

    /// What ends the log when a task panics that acknowledges or uses it.
    pub(crate) fn alarm(&self, of: &'static str) -> impl FnOnce() + Send + 'static {
        let shared = self.shared.clone();
        move || {
            let e = Error::fatal(format!("{of} panicked")).detail("The lines before say where.");
            shared.failure.send_if_modified(|f| f.is_none().then(|| *f = Some(e)).is_some());
        }
    }

    /// Whether the log has nothing of a group: no entry, and none that was purged.
    pub fn is_empty(&self, group: GroupId) -> bool {
        let known = self.shared.groups.lock().get(&group).cloned();
        known.is_none_or(|known| {
            let entries = known.entries.lock();
            entries.last() == LogPosition::default() && entries.purged() == LogPosition::default()
        })
    }

    /// Groups that have anything in this log, in order.
    pub fn groups(&self) -> Vec<GroupId> {
        self.shared.groups.lock().keys().copied().collect()
    }

    /// Numbers for metrics and tests.
    pub fn status(&self) -> LogStatus {
        let c = &self.shared.counters;
        LogStatus {
            segments: self.shared.segments.lock().len(),
            spare_segments: c.spares.load(Ordering::Relaxed),
            bytes_written: c.bytes.load(Ordering::Relaxed),
            frames_written: c.frames.load(Ordering::Relaxed),
            syncs: c.syncs.load(Ordering::Relaxed),
            queued_bytes: self.queued_bytes(),
        }
    }

    /// Bytes handed to the writer and not yet durable. Above
    /// [`meridian_base::limits::LOG_QUEUE_BYTES_MAX`], commits should wait.
    pub fn queued_bytes(&self) -> usize {
        self.shared.queued_bytes.load(Ordering::Relaxed)
    }

    /// The error that ended writing, once there is one: a failed write or sync. From then on
    /// nothing is acknowledged; the node should stop. A failed `fdatasync` is never tried again,
    /// since the kernel may have dropped the dirty pages; a write that a full disk refuses is
    /// ([`NodeLog::waits_for_room`]).
    pub fn failure(&self) -> watch::Receiver<Option<Error>> {
        self.shared.failure.subscribe()
    }

    /// Whether the writer waits for room on the disk. What is handed to it meanwhile is neither
    /// durable nor refused.
    pub fn waits_for_room(&self) -> watch::Receiver<bool> {
        self.shared.waits_for_room.subscribe()
    }

    /// Forgets a group whose replica was shut down and removed from this node; all but its vote,
    /// which it must not give again. Durable when the future says so; the files' space is freed
    /// with the segments.
    pub async fn forget(&self, id: GroupId) -> Result<()> {
        let group = self.shared.groups.lock().get(&id).cloned();
        let Some(group) = group else { return Ok(()) };
        let done = {
            // Under the lock also while queueing, as with appends.
            let mut entries = group.entries.lock();
            entries.forget();
            self.submit(&group, Work::Forget)
        };
        done.await
    }

    /// Waits until everything queued is durable, marks the log as closed in good order, and ends
    /// the writer. Later appends fail. Shut the groups down first. On a full disk it does not wait:
    /// what is queued fails.
    pub async fn close(&self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        let group = GroupLog::new(GroupId(0), Entries::new(0));
        // The answer only says that there is nothing more to wait for: if the log has failed,
        // `failure` told so.
        let _ = self.submit(&group, Work::Close).await;
    }

    /// The handle through which one replica uses the log.
    pub(crate) fn group(&self, id: GroupId) -> GroupHandle {
        let cache = self.shared.options.cache_bytes_per_group;
        let mut groups = self.shared.groups.lock();
        let group = groups.entry(id).or_insert_with(|| GroupLog::new(id, Entries::new(cache))).clone();
        GroupHandle { log: self.clone(), group }
    }

    fn enqueue(&self, group: &Arc<GroupLog>, work: Work, done: writer::Done) {
        self.shared.queued_bytes.fetch_add(work.bytes(), Ordering::Relaxed);
        if let Err(refused) = self.queue.send(Job { group: group.clone(), work, done }) {
            self.shared.queued_bytes.fetch_sub(refused.0.work.bytes(), Ordering::Relaxed);
            (refused.0.done)(Err(Error::unavailable("the log is closed")));
        }
    }

    fn submit(&self, group: &Arc<GroupLog>, work: Work) -> impl Future<Output = Result<()>> + Send + use<> {
        let (send, receive) = oneshot::channel();
        self.enqueue(group, work, Box::new(move |result| drop(send.send(result))));
        async move { receive.await.unwrap_or_else(|_| Err(Error::unavailable("the log is closed"))) }
    }
}

/// One replica's view of the log.
#[derive(Clone)]
pub(crate) struct GroupHandle {
    log: NodeLog,
    group: Arc<GroupLog>,
}

impl GroupHandle {
    pub(crate) fn vote(&self) -> Option<Vote> {
        self.group.entries.lock().vote
    }

    /// The truncation point and the last entry.
    pub(crate) fn bounds(&self) -> (LogPosition, LogPosition) {
        let entries = self.group.entries.lock();
        (entries.purged(), entries.last())
    }

    /// Follows the index up to which the log would like this group to purge.
    pub(crate) fn purge_wanted(&self) -> watch::Receiver<u64> {
        self.group.purge_wanted.subscribe()
    }

    /// Appends entries; readable at once, durable when `done` says so.
    pub(crate) fn append(&self, new: Vec<LogEntry>, done: impl FnOnce(Result<()>) + Send + 'static) {
        // Under the lock also while queueing: the order of frames must be the order of changes in
        // memory.
        let mut entries = self.group.entries.lock();
        for entry in &new {
            entries.append(entry);
        }
        self.log.enqueue(&self.group, Work::Entries(new), Box::new(done));
    }

    /// Records the vote; durable when the future says so.
    pub(crate) fn save_vote(&self, vote: Vote) -> impl Future<Output = Result<()>> + Send + use<> {
        let mut entries = self.group.entries.lock();
        entries.vote = Some(vote);
        self.log.submit(&self.group, Work::Vote(vote))
    }

    /// Removes entries above `after`. Need not be waited for: whatever is appended later is durable
    /// later.
    pub(crate) fn truncate(&self, after: u64) {
        let mut entries = self.group.entries.lock();
        entries.truncate(after);
        self.log.enqueue(&self.group, Work::Truncate { after }, Box::new(drop));
    }

    /// Removes entries up to `upto`.
    pub(crate) fn purge(&self, upto: LogPosition) {
        let mut entries = self.group.entries.lock();
        entries.purge(upto);
        self.log.enqueue(&self.group, Work::Purge { upto }, Box::new(drop));
    }

    /// The entries from `from` up to, not including, `to`; fewer at the end of the log, or above
    /// `bytes_max` (but at least one). Those that are in memory are there at once; a thread of its
    /// own reads others back from their files. Entries that are purged meanwhile end the answer.
    pub(crate) async fn read(&self, from: u64, to: u64, bytes_max: usize) -> Result<Vec<LogEntry>> {
        let found = self.group.entries.lock().read(from, to, bytes_max);
        let (shared, group) = (self.log.shared.clone(), self.group.clone());
        if found.iter().all(Found::is_in_memory) {
            return shared.load(&group, found);
        }
        self.log.shared.runtime.run_io(LOG_READ_THREAD, move || shared.load(&group, found)).await
    }
}

impl Shared {
    /// What was found, read from the files where it is there, up to the first entry that the group
    /// does not have any more.
    fn load(&self, group: &GroupLog, found: Vec<Found>) -> Result<Vec<LogEntry>> {
        let mut entries = Vec::with_capacity(found.len());
        for found in found {
            let (position, place) = match found {
                Found::Here(entry) => {
                    entries.push(entry);
                    continue;
                }
                Found::OnDisk(position, place) => (position, place),
            };
            let segment = self.segments.lock().get(&place.segment).cloned();
            let loaded = match segment {
                Some(segment) => segment.read_entry(self.runtime.disk(), group.id, position, place),
                None => Err(Error::fatal(format!("entry {position} of group {} is in a file that was freed", group.id))),
            };
            match loaded {
                Ok(entry) => entries.push(entry),
                // Its file may be in use for something else by now.
                Err(_) if !group.entries.lock().has(position) => break,
                Err(e) => return Err(e),
            }
        }
        Ok(entries)
    }
}
