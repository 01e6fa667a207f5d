//! The log's writer: one loop on a thread of its own. It takes everything that is queued, writes it
//! in one piece, syncs once, and reports to all who wait. While it syncs, the next batch gathers:
//! the slower the disk, the larger the batches, and no timer is needed (group commit).
//!
//! On a full disk the loop waits, and writes the same bytes at the same place again: nobody has
//! been told that they are durable, and nothing comes after them. The queue gathers meanwhile; its
//! bound is the callers' ([`meridian_base::limits::LOG_QUEUE_BYTES_MAX`]).

use super::frame::{self, Content, FRAME_HEADER_BYTES, Vote};
use super::recover::Marks;
use super::segment::{FIRST_FRAME, SYNCING, Segment, disk_error, segment_path, spare_path, waits_for_room};
use super::{GroupLog, LogEntry, Place, Shared};
use meridian_base::{Error, GroupId, LogPosition, Result};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;

/// Called with the fate of a job: durable, or the error that ended the log.
pub(super) type Done = Box<dyn FnOnce(Result<()>) + Send>;

/// What is to be written.
pub(super) enum Work {
    Entries(Vec<LogEntry>),
    Vote(Vote),
    Truncate {
        after: u64,
    },
    Purge {
        upto: LogPosition,
    },
    Forget,
    /// Ends the writer.
    Close,
}

/// One thing to write, for one group.
pub(super) struct Job {
    pub group: Arc<GroupLog>,
    pub work: Work,
    pub done: Done,
}

impl Work {
    /// Bytes in the file.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Work::Entries(entries) => entries.iter().map(|e| frame::frame_bytes(e.body.len())).sum(),
            Work::Vote(_) => frame::frame_bytes(1),
            Work::Truncate { .. } | Work::Purge { .. } | Work::Forget | Work::Close => FRAME_HEADER_BYTES,
        }
    }
}

/// Jobs taken from the queue at once: bounds the latency of the first of them, not throughput.
const JOBS_PER_BATCH_MAX: usize = 4_096;

/// How often a full disk is tried again.
const ROOM_INTERVAL: Duration = Duration::from_millis(50);

/// The writer's own state; nobody else writes to the segments.
pub(super) struct Writer {
    pub shared: Arc<Shared>,
    pub queue: mpsc::UnboundedReceiver<Job>,
    pub current: Arc<Segment>,
    /// Where the next batch begins.
    pub tail: u64,
    /// The file is zeros (or old frames) up to here, so that a write below changes no metadata and
    /// `fdatasync` writes data only.
    pub prepared: u64,
    pub marks: BTreeMap<GroupId, Marks>,
    pub contents: BTreeMap<u64, BTreeMap<GroupId, u64>>,
    pub spares: Vec<u64>,
    /// The next batch starts with all groups' marks: the current segment is new, or nobody knows
    /// whether it has them all, since the node stopped before. No segment is freed between.
    pub marks_due: bool,
}

/// A batch being put together.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    frames: u64,
    placed: Vec<(Arc<GroupLog>, LogPosition, Place)>,
    done: Vec<Done>,
    job_bytes: usize,
}

impl Writer {
    /// Runs until the log is closed or dropped, or a write fails.
    pub(super) async fn run(mut self) {
        let mut jobs = Vec::new();
        loop {
            if self.queue.recv_many(&mut jobs, JOBS_PER_BATCH_MAX).await == 0 {
                return;
            }
            let mut jobs: VecDeque<Job> = jobs.drain(..).collect();
            while !jobs.is_empty() {
                let closing = matches!(jobs[0].work, Work::Close);
                match self.write_batch(&mut jobs).await {
                    Ok(()) if closing => return self.refuse(jobs, Error::unavailable("the log is closed")).await,
                    Ok(()) => {}
                    Err(e) => {
                        tracing::error!("{e}");
                        self.shared.failure.send_replace(Some(e.clone()));
                        return self.refuse(jobs, e).await;
                    }
                }
            }
        }
    }

    /// Answers everything still to come with the error.
    async fn refuse(&mut self, mut jobs: VecDeque<Job>, error: Error) {
        loop {
            for job in jobs.drain(..) {
                self.shared.queued_bytes.fetch_sub(job.work.bytes(), Ordering::Relaxed);
                (job.done)(Err(error.clone()));
            }
            match self.queue.recv().await {
                Some(job) => jobs.push_back(job),
                None => return,
            }
        }
    }

    /// Writes as many jobs as fit the segment (at least one), and makes them durable. After an
    /// error those that were not begun are still in `jobs`.
    async fn write_batch(&mut self, jobs: &mut VecDeque<Job>) -> Result<()> {
        let first = jobs[0].work.bytes() as u64;
        if self.tail > FIRST_FRAME && self.tail + first > self.shared.options.segment_bytes {
            self.roll_with_room().await?;
        }
        let mut batch = Batch::default();
        if self.marks_due {
            self.encode_marks(&mut batch);
        }
        while let Some(job) = jobs.front() {
            let end = self.tail + (batch.bytes.len() + job.work.bytes()) as u64;
            let closing = matches!(job.work, Work::Close);
            if !batch.done.is_empty() && (closing || end > self.shared.options.segment_bytes) {
                break;
            }
            let job = jobs.pop_front().expect("looked at above");
            self.encode_job(&mut batch, job);
            if closing {
                break;
            }
        }
        let bytes = std::mem::take(&mut batch.bytes);
        let result = self.persist_with_room(&bytes, batch.frames).await;
        self.shared.queued_bytes.fetch_sub(batch.job_bytes, Ordering::Relaxed);
        if result.is_ok() {
            self.marks_due = false;
            self.tail += bytes.len() as u64;
            for (group, position, place) in batch.placed {
                let mut entries = group.entries.lock();
                entries.placed(position, place);
                entries.evict();
            }
        }
        for done in batch.done {
            done(result.clone());
        }
        result?;
        self.release().await
    }

    async fn persist_with_room(&mut self, bytes: &[u8], frames: u64) -> Result<()> {
        loop {
            let written = self.persist(bytes, frames).await;
            if self.is_worth_another_try(&written).await {
                continue;
            }
            return written;
        }
    }

    async fn roll_with_room(&mut self) -> Result<()> {
        loop {
            let rolled = self.roll().await;
            if self.is_worth_another_try(&rolled).await {
                continue;
            }
            return rolled;
        }
    }

    /// After a full disk's refusal, when it is time to try again; unless somebody wants the log to
    /// end.
    async fn is_worth_another_try(&self, result: &Result<()>) -> bool {
        let waits = match result {
            Err(e) if waits_for_room(e) => {
                if !*self.shared.waits_for_room.borrow() {
                    tracing::warn!("{e}; the log goes on as soon as there is room");
                }
                !self.shared.closing.load(Ordering::Relaxed) && !self.queue.is_closed()
            }
            _ => false,
        };
        self.shared.waits_for_room.send_if_modified(|w| std::mem::replace(w, waits) != waits);
        if waits {
            tokio::time::sleep(ROOM_INTERVAL).await;
        }
        waits
    }

    /// One write, one sync.
    async fn persist(&mut self, bytes: &[u8], frames: u64) -> Result<()> {
        let disk = self.shared.runtime.disk();
        let path = segment_path(self.current.number);
        let end = self.tail + bytes.len() as u64;
        if end > self.prepared {
            let ahead = (end + self.shared.options.prepare_bytes).min(self.shared.options.segment_bytes).max(end);
            let zeros = vec![0; (ahead - end) as usize];
            let is_prepared = match self.current.file.write_at(end, &zeros).map_err(|e| disk_error(disk, &path, "writing", &e)) {
                // There may be room for what counts.
                Err(e) if waits_for_room(&e) => false,
                other => other.map(|()| true)?,
            };
            self.prepared = if is_prepared { ahead } else { end };
        }
        let written = self.current.file.write_at(self.tail, bytes);
        if written.is_err() {
            self.prepared = self.tail;
        }
        written.map_err(|e| disk_error(disk, &path, "writing", &e))?;
        self.current.file.sync().await.map_err(|e| disk_error(disk, &path, SYNCING, &e))?;
        let c = &self.shared.counters;
        c.syncs.fetch_add(1, Ordering::Relaxed);
        c.frames.fetch_add(frames, Ordering::Relaxed);
        c.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn encode_frame(&self, batch: &mut Batch, group: GroupId, content: Content<'_>) -> Place {
        let start = batch.bytes.len();
        frame::encode(&mut batch.bytes, self.current.number, self.tail, group, content);
        batch.frames += 1;
        let body = if let Content::Entry { body, .. } = content { body.len() } else { 0 };
        Place { segment: self.current.number, offset: self.tail + start as u64, bytes: (FRAME_HEADER_BYTES + body) as u32 }
    }

    /// Repeats every group's vote and truncation point, so that older segments are needed for
    /// entries only.
    fn encode_marks(&self, batch: &mut Batch) {
        for (group, marks) in &self.marks {
            if let Some(vote) = marks.vote {
                self.encode_frame(batch, *group, Content::Vote(vote));
            }
            if marks.purged.index > 0 {
                self.encode_frame(batch, *group, Content::Purge { upto: marks.purged });
            }
        }
    }

    fn encode_job(&mut self, batch: &mut Batch, job: Job) {
        let group = job.group.id;
        batch.job_bytes += job.work.bytes();
        match &job.work {
            Work::Entries(entries) => {
                for e in entries {
                    let content = Content::Entry { kind: e.kind, position: e.position, body: &e.body };
                    let place = self.encode_frame(batch, group, content);
                    batch.placed.push((job.group.clone(), e.position, place));
                    let largest = self.contents.entry(self.current.number).or_default().entry(group).or_default();
                    *largest = (*largest).max(e.position.index);
                }
            }
            Work::Vote(vote) => {
                self.encode_frame(batch, group, Content::Vote(*vote));
                self.marks.entry(group).or_default().vote = Some(*vote);
            }
            Work::Truncate { after } => {
                self.encode_frame(batch, group, Content::Truncate { after: *after });
            }
            Work::Purge { upto } => {
                self.encode_frame(batch, group, Content::Purge { upto: *upto });
                let purged = &mut self.marks.entry(group).or_default().purged;
                *purged = (*purged).max(*upto);
            }
            Work::Forget => {
                self.encode_frame(batch, group, Content::Forget);
                self.marks.entry(group).or_default().purged = LogPosition::default();
                for groups in self.contents.values_mut() {
                    groups.remove(&group);
                }
            }
            Work::Close => {
                self.encode_frame(batch, group, Content::Close);
            }
        }
        batch.done.push(job.done);
    }

    /// Goes on in a new segment.
    async fn roll(&mut self) -> Result<()> {
        let disk = self.shared.runtime.disk();
        let spare = self.spares.last().copied();
        let segment = Segment::create(disk, self.current.number + 1, self.tail, spare).await?;
        self.spares.pop();
        let path = segment_path(segment.number);
        self.prepared = segment.file.len().map_err(|e| disk_error(disk, &path, "reading", &e))?;
        self.tail = FIRST_FRAME;
        self.marks_due = true;
        self.current = Arc::new(segment);
        self.shared.segments.lock().insert(self.current.number, self.current.clone());
        self.contents.entry(self.current.number).or_default();
        self.shared.counters.spares.store(self.spares.len(), Ordering::Relaxed);
        self.ask_for_purges();
        Ok(())
    }

    /// Tells the groups that keep the oldest segment alive how far they must purge to free it, if
    /// the log is long.
    fn ask_for_purges(&self) {
        if self.contents.len() <= self.shared.options.segments_wanted_max {
            return;
        }
        let (_, contents) = self.contents.first_key_value().expect("the current segment, at least");
        let groups = self.shared.groups.lock();
        for (id, largest) in contents {
            if let Some(group) = groups.get(id) {
                group.purge_wanted.send_if_modified(|w| *largest > std::mem::replace(w, (*w).max(*largest)));
            }
        }
    }

    /// Frees the oldest segments that hold no entry any more. Only the oldest: a later one may hold
    /// the truncation of an entry that an earlier one still shows.
    async fn release(&mut self) -> Result<()> {
        while let Some((&number, contents)) = self.contents.first_key_value() {
            let purged = |group: &GroupId| self.marks.get(group).map_or(0, |m| m.purged.index);
            if number == self.current.number || contents.iter().any(|(g, largest)| purged(g) < *largest) {
                return Ok(());
            }
            self.contents.remove(&number);
            self.shared.segments.lock().remove(&number);
            let disk = self.shared.runtime.disk();
            let path = segment_path(number);
            if self.spares.len() < self.shared.options.spare_segments_max {
                disk.rename(&path, &spare_path(number)).map_err(|e| disk_error(disk, &path, "renaming", &e))?;
                self.spares.push(number);
            } else {
                disk.remove(&path).map_err(|e| disk_error(disk, &path, "removing", &e))?;
                disk.sync_folder(super::segment::FOLDER).map_err(|e| disk_error(disk, &path, "removing", &e))?;
            }
            self.shared.counters.spares.store(self.spares.len(), Ordering::Relaxed);
        }
        Ok(())
    }
}
