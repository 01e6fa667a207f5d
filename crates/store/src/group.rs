//! The versions of one group: applying and flushing. Reading is in [`crate::read`], snapshots in
//! [`crate::snapshot`].
//!
//! # The life of a version
//!
//! 1. [`GroupStore::apply`] puts it into the row table, dirty. From then on it is visible.
//! 2. [`GroupStore::cut`], called between two log entries, makes everything applied so far one
//!    unit: with the log position and the replica's own state at that moment.
//! 3. [`GroupStore::flush_step`] writes the unit, sorted by key: the newest version of each key
//!    into `current`, what it replaces and what came in between into `history`, history first. One
//!    durable record with position and state ends it. A crash before that record leaves some of the
//!    unit's versions in the spaces and the old position in the record; the log is replayed from
//!    there, and since a version is (key, timestamp) → value for ever, writing it again changes
//!    nothing.
//! 4. The unit's versions become clean and may be evicted.
//!
//! # What a replay may meet
//!
//! After a crash in the middle of a flush the spaces may have versions *newer* than what is being
//! replayed. The row table must not hide them (its first invariant). So the flush writes down
//! beforehand how new its versions are (the *bound*), and a version at or below the bound whose key
//! is not in the row table is placed only after a look into the spaces. In normal operation
//! versions are newer than everything flushed, and applying never reads.
//!
//! # Locks
//!
//! `flushing` (one flush, import or drop at a time; held over disk writes) before `inner` (row
//! table; held for dozens of rows at most, never over a disk access) before `pending`.

use crate::backend::{Sink, Space, Spaces};
use crate::codec::{self, Collectable, GroupRecord, RecordKind};
use crate::spaces;
use crate::store::Shared;
use crate::table::{Cut, EVICT_STEPS, Placed, Slot, Table};
use crate::version::Version;
use bytes::Bytes;
use meridian_base::error::{Error, Result};
use meridian_base::id::{GroupId, LogPosition};
use meridian_base::invariants;
use meridian_base::key::Key;
use meridian_base::record::Committed;
use meridian_base::time::Timestamp;
use meridian_base::txn::Write;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows handled in one hold of the row table's lock.
pub(crate) const LOCK_ROWS: usize = 64;
/// Calls of the eviction hand after a cache fill: enough to keep up, few enough to go unnoticed.
pub(crate) const EVICT_CALLS_FILL: usize = 2;

/// The row table, and the spaces it stands before.
pub(crate) struct Inner {
    pub table: Table,
    pub spaces: Arc<dyn Spaces>,
}

/// What only the flusher knows.
pub(crate) struct Flushing {
    /// The bound that is recorded.
    pub bound: Timestamp,
    pub incarnation: u64,
    /// The group was dropped.
    pub retired: bool,
}

/// What only the collector knows.
#[derive(Default)]
struct Collecting {
    /// The group was dropped.
    retired: bool,
}

/// The versions of one group. Reads are synchronous and concurrent with the one applier and the one
/// flusher.
pub struct GroupStore {
    pub(crate) shared: Arc<Shared>,
    id: GroupId,
    pub(crate) inner: RwLock<Inner>,
    applied: Mutex<LogPosition>,
    applied_ts: AtomicU64,
    threshold: AtomicU64,
    pending: Mutex<Option<Cut>>,
    pub(crate) flushing: Mutex<Flushing>,
    /// The durable record.
    record: Mutex<Option<GroupRecord>>,
    /// One collection, import or drop at a time.
    collecting: Mutex<Collecting>,
    /// The oldest version in the cut being flushed.
    in_flush_oldest: AtomicU64,
    /// The `since` of the last sweep that got to its end.
    pub(crate) swept: Mutex<Timestamp>,
}

impl GroupStore {
    pub(crate) fn new(
        shared: Arc<Shared>,
        id: GroupId,
        spaces: Arc<dyn Spaces>,
        record: Option<GroupRecord>,
        bound: Timestamp,
        threshold: Timestamp,
    ) -> GroupStore {
        let newest = record.as_ref().map_or(Timestamp::MIN, |r| r.newest);
        GroupStore {
            shared,
            id,
            inner: RwLock::new(Inner { table: Table::new(bound.max(newest)), spaces }),
            applied: Mutex::new(record.as_ref().map_or(LogPosition::default(), |r| r.position)),
            applied_ts: AtomicU64::new(newest.0),
            threshold: AtomicU64::new(threshold.0),
            pending: Mutex::new(None),
            flushing: Mutex::new(Flushing { bound, incarnation: record.as_ref().map_or(1, |r| r.incarnation), retired: false }),
            record: Mutex::new(record),
            collecting: Mutex::default(),
            in_flush_oldest: AtomicU64::new(Timestamp::MAX.0),
            swept: Mutex::new(Timestamp::MIN),
        }
    }

    /// Which group.
    pub fn id(&self) -> GroupId {
        self.id
    }

    /// The last flushed position and the replica state flushed with it; `None` before the first
    /// flush. Right after opening, this is where the log's replay starts.
    pub fn recovered(&self) -> Option<(LogPosition, Bytes)> {
        self.record.lock().as_ref().map(|r| (r.position, r.state.clone()))
    }

    /// What a crash cannot take away. The log may be truncated up to here.
    pub fn durable(&self) -> LogPosition {
        self.record.lock().as_ref().map_or(LogPosition::default(), |r| r.position)
    }

    pub(crate) fn durable_record(&self) -> Option<GroupRecord> {
        self.record.lock().clone()
    }

    /// Applies one log entry's transactions. One caller at a time; replaying entries is harmless.
    /// When it returns, all versions are visible; [`GroupStore::applied_ts`] is raised last. An
    /// entry without transactions moves the position.
    pub fn apply(&self, at: LogPosition, txns: &[Committed]) -> Result<()> {
        let mut newest = Timestamp::MIN;
        for txn in txns {
            newest = newest.max(txn.at);
            for writes in txn.writes.chunks(LOCK_ROWS) {
                for write in self.place(writes, txn.at) {
                    self.load_and_place(write, txn.at)?;
                }
            }
        }
        let mut applied = self.applied.lock();
        *applied = at.max(*applied);
        self.applied_ts.fetch_max(newest.0, Ordering::AcqRel);
        Ok(())
    }

    /// Places writes in one hold of the lock; returns those that need a look into the spaces first.
    fn place<'a>(&self, writes: &'a [Write], at: Timestamp) -> Vec<&'a Write> {
        let mut inner = self.inner.write();
        writes.iter().filter(|write| inner.table.place(write, at, &self.shared.totals) == Placed::Load).collect()
    }

    fn load_and_place(&self, write: &Write, at: Timestamp) -> Result<()> {
        let key = write.key.as_bytes();
        loop {
            let (spaces, epoch) = self.spaces_and_epoch();
            let view = spaces.view();
            let newest = spaces::current(&*spaces, key)?;
            let loaded = spaces::between(&*spaces, &*view, key, newest, at.prev(), Timestamp::MAX)?;
            // Fails only if a flush ended meanwhile, so this ends.
            if self.inner.write().table.place_loaded(write, at, &loaded, epoch, &self.shared.totals) {
                return Ok(());
            }
        }
    }

    pub(crate) fn spaces_and_epoch(&self) -> (Arc<dyn Spaces>, u64) {
        let inner = self.inner.read();
        (inner.spaces.clone(), inner.table.epoch)
    }

    /// The position of the last entry applied.
    pub fn applied(&self) -> LogPosition {
        *self.applied.lock()
    }

    /// The newest commit timestamp applied. A reader at it sees all of the entries applied.
    pub fn applied_ts(&self) -> Timestamp {
        Timestamp(self.applied_ts.load(Ordering::Acquire))
    }

    /// Bytes of this group applied and not yet flushed.
    pub fn dirty_bytes(&self) -> usize {
        self.inner.read().table.dirty_bytes
    }

    /// Whether memory asks for a cut and a flush of this group now. (Time does too; that is the
    /// caller's.)
    pub fn wants_flush(&self) -> bool {
        let dirty = self.shared.totals.dirty.load(Ordering::Relaxed);
        dirty >= self.shared.options.dirty_bytes_max / 2 && self.dirty_bytes() > 0
    }

    /// Called by the applier between two entries: what is applied so far, with this replica state,
    /// becomes the next unit to flush. A unit not yet taken up by [`GroupStore::flush_step`] is
    /// extended.
    pub fn cut(&self, state: Bytes) {
        let (position, newest) = (self.applied(), self.applied_ts());
        let mut inner = self.inner.write();
        if invariants::are_looked_at() {
            inner.table.invariant_rows();
        }
        inner.table.cut(position, newest, state, &mut self.pending.lock());
    }

    /// Makes the pending cut durable; `false` if there was none. Blocks on the disk, but neither
    /// readers nor the applier. After an error the cut stays pending.
    pub fn flush_step(&self) -> Result<bool> {
        let mut flushing = self.flushing.lock();
        self.check_not_retired(&flushing)?;
        let mut cut = {
            let mut pending = self.pending.lock();
            let Some(cut) = pending.take() else { return Ok(false) };
            self.in_flush_oldest.store(cut.oldest.0, Ordering::Release);
            cut
        };
        cut.keys.sort();
        cut.keys.dedup();
        let flushed = self.flush(&mut flushing, &cut);
        if flushed.is_err() {
            self.put_back(cut);
        }
        self.in_flush_oldest.store(Timestamp::MAX.0, Ordering::Release);
        // A flush makes many rows clean at once. Two rounds over all rows: one may find each of
        // them just used.
        let calls = 2 + 2 * self.inner.read().table.len() / EVICT_STEPS;
        self.evict(calls);
        flushed.map(|()| true)
    }

    fn flush(&self, flushing: &mut Flushing, cut: &Cut) -> Result<()> {
        let spaces = {
            let mut inner = self.inner.write();
            inner.table.spaces_newest = inner.table.spaces_newest.max(cut.newest);
            inner.spaces.clone()
        };
        self.raise_bound(flushing, cut.newest)?;
        if !cut.keys.is_empty() {
            spaces.write(cut.keys.len(), &mut |sink| self.write_unit(&*spaces, cut, sink))?;
        }
        let record = GroupRecord {
            incarnation: flushing.incarnation,
            position: cut.position,
            newest: cut.newest,
            state: cut.state.clone(),
        };
        let name = codec::record_name(RecordKind::Group, self.id);
        self.shared.disk.put_records(&[(name, Some(codec::put_record(&record)))])?;
        self.inner.write().table.epoch += 1;
        for keys in cut.keys.chunks(LOCK_ROWS) {
            self.inner.write().table.mark_clean(keys, cut.unit, &self.shared.totals);
        }
        *self.record.lock() = Some(record);
        Ok(())
    }

    /// Versions up to `newest` are about to be written to the spaces. Durable when it returns.
    pub(crate) fn raise_bound(&self, flushing: &mut Flushing, newest: Timestamp) -> Result<()> {
        if flushing.bound < newest {
            let name = codec::record_name(RecordKind::Bound, self.id);
            self.shared.disk.put_records(&[(name, Some(codec::put_record(&newest)))])?;
            flushing.bound = newest;
        }
        Ok(())
    }

    fn write_unit(&self, spaces: &dyn Spaces, cut: &Cut, sink: &mut dyn Sink) -> Result<()> {
        let mut out = RowWriter { sink, key: Vec::new(), value: Vec::new() };
        for keys in cut.keys.chunks(LOCK_ROWS) {
            let rows: Vec<(&Key, Vec<Slot>)> = {
                let inner = self.inner.read();
                keys.iter().map(|key| (key, inner.table.slots_of_unit(key, cut.unit))).collect()
            };
            // What `current` has of them, where the row table does not know.
            let unknown = |(_, slots): &&(&Key, Vec<Slot>)| !slots.iter().any(Slot::is_clean);
            let asked: Vec<&[u8]> = rows.iter().filter(unknown).map(|(key, _)| key.as_bytes()).collect();
            let mut there = spaces::current_of_many(spaces, &*spaces.view(), &asked)?.into_iter().peekable();
            let mut place = 0;
            for row @ (key, slots) in &rows {
                let mut before = None;
                if unknown(&row) {
                    before = there.next_if(|(at, _)| *at == place).map(|(_, version)| version);
                    place += 1;
                }
                write_row(key.as_bytes(), slots, before, &mut out)?;
            }
        }
        Ok(())
    }

    /// A flush failed: its cut is pending again, under a newer one if there is one.
    fn put_back(&self, cut: Cut) {
        let mut pending = self.pending.lock();
        match &mut *pending {
            Some(newer) => {
                newer.keys.extend(cut.keys);
                newer.oldest = cut.oldest.min(newer.oldest);
            }
            None => *pending = Some(cut),
        }
    }

    /// Moves the eviction hand up to so often, releasing the lock in between.
    pub(crate) fn evict(&self, calls: usize) {
        let max = self.shared.options.cache_bytes_max;
        let share = max / self.shared.groups.load(Ordering::Relaxed).max(1);
        for _ in 0..calls {
            if !self.inner.write().table.evict(max, share, &self.shared.totals) {
                return;
            }
        }
    }

    /// Rows of indexes that are not `reached` leave the cache, as far as they are durable: who
    /// reads the past finds them on disk. Otherwise they would take the place of others until the
    /// cache is full: a load into a table that gets its primary key afterwards leaves all of its
    /// rows so.
    pub fn uncache(&self, reached: &dyn Fn(u32) -> bool) {
        let mut from = Some(Key::MIN);
        while let Some(key) = from {
            from = self.inner.write().table.forget_unreached(&key, reached, LOCK_ROWS, &self.shared.totals);
        }
    }

    /// Whether the cache is at most three quarters full after `bytes` more.
    pub(crate) fn has_much_room(&self, bytes: usize) -> bool {
        self.shared.totals.clean.load(Ordering::Relaxed) + bytes <= self.shared.options.cache_bytes_max / 4 * 3
    }

    pub(crate) fn check_not_retired(&self, flushing: &Flushing) -> Result<()> {
        if flushing.retired { Err(self.dropped()) } else { Ok(()) }
    }
    fn dropped(&self) -> Error {
        Error::unavailable(format!("group {} was dropped from this node", self.id))
    }

    /// The group is being dropped: its records go, and nothing is written any more.
    pub(crate) fn retire(&self) -> Result<()> {
        let mut flushing = self.flushing.lock();
        let mut collecting = self.collecting.lock();
        self.shared.disk.put_records(&RecordKind::ALL.map(|kind| (codec::record_name(kind, self.id), None)))?;
        flushing.retired = true;
        collecting.retired = true;
        self.pending.lock().take();
        let mut inner = self.inner.write();
        // What it had is in the spaces until they go.
        let newest = inner.table.newest;
        inner.table.reset(newest, &self.shared.totals);
        Ok(())
    }

    /// Other spaces, of which nothing is above `bound`, take the place of the present ones:
    /// durably, then for readers.
    pub(crate) fn install(
        &self,
        flushing: &mut Flushing,
        spaces: Arc<dyn Spaces>,
        record: GroupRecord,
        bound: Timestamp,
        threshold: Timestamp,
    ) -> Result<()> {
        let _collecting = self.collecting.lock();
        let threshold = threshold.max(self.gc_threshold());
        let change = |kind, content| (codec::record_name(kind, self.id), Some(content));
        self.shared.disk.put_records(&[
            change(RecordKind::Group, codec::put_record(&record)),
            change(RecordKind::Bound, codec::put_record(&bound)),
            change(RecordKind::Threshold, codec::put_record(&threshold)),
        ])?;
        flushing.incarnation = record.incarnation;
        flushing.bound = bound;
        {
            let mut inner = self.inner.write();
            self.pending.lock().take();
            inner.table.reset(bound, &self.shared.totals);
            inner.spaces = spaces;
            *self.swept.lock() = Timestamp::MIN;
            // Raised in the same breath: a reader of the new content must not read below what it
            // has.
            self.threshold.store(threshold.0, Ordering::Release);
        }
        *self.applied.lock() = record.position;
        self.applied_ts.store(record.newest.0, Ordering::Release);
        *self.record.lock() = Some(record);
        self.shared.disk.collect(self.id, Collectable { replaced: threshold, ..Collectable::NOTHING })
    }

    /// From now on nothing below `threshold` can be read, and versions visible only below it may
    /// go. Durable when it returns; a smaller threshold than the present one does nothing. An error
    /// if the group was dropped.
    ///
    /// The caller promises that no log entry after [`GroupStore::applied`] has a version at or
    /// below `threshold`: it is at or below a closed timestamp, and no prepared transaction is
    /// below it.
    pub fn collect_garbage(&self, threshold: Timestamp) -> Result<()> {
        let collecting = self.collecting.lock();
        if collecting.retired {
            // A group that is made again under this id has a threshold of its own.
            return Err(self.dropped());
        }
        if threshold <= self.gc_threshold() {
            return Ok(());
        }
        // Durable first: nothing goes before a restarted node would refuse to read it.
        let name = codec::record_name(RecordKind::Threshold, self.id);
        self.shared.disk.put_records(&[(name, Some(codec::put_record(&threshold)))])?;
        self.threshold.store(threshold.0, Ordering::Release);
        // What is not flushed may be replayed, and must find the tombstones that are newer (see
        // `Collectable`).
        let tombstones = threshold.min(self.oldest_unflushed().prev());
        self.shared.disk.collect(self.id, Collectable { replaced: threshold, tombstones })
    }

    /// The timestamp of the oldest version that is not flushed.
    pub(crate) fn oldest_unflushed(&self) -> Timestamp {
        let inner = self.inner.read();
        // Both in one hold of the lock: a cut whose flush fails goes from the one to the other.
        let pending = self.pending.lock();
        let in_flush = Timestamp(self.in_flush_oldest.load(Ordering::Acquire));
        inner.table.oldest_uncut().min(pending.as_ref().map_or(Timestamp::MAX, |cut| cut.oldest)).min(in_flush)
    }

    /// The smallest timestamp that can be read.
    pub fn gc_threshold(&self) -> Timestamp {
        Timestamp(self.threshold.load(Ordering::Acquire))
    }
}

/// Writes versions as the spaces want them.
pub(crate) struct RowWriter<'a> {
    pub sink: &'a mut dyn Sink,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

impl RowWriter<'_> {
    pub(crate) fn current(&mut self, key: &[u8], version: &Version) -> Result<()> {
        codec::put_current(&mut self.value, version);
        self.sink.put(Space::Current, key, &self.value)
    }
    pub(crate) fn history(&mut self, key: &[u8], version: &Version, until: Timestamp) -> Result<()> {
        codec::put_history_key(&mut self.key, key, version.at);
        codec::put_history(&mut self.value, version, until);
        self.sink.put(Space::History, &self.key, &self.value)
    }
}

/// Merges a key's versions of a unit into the spaces. `slots` are those of the row table, newest
/// first: the unit's own and clean ones, without a gap. `there`: what `current` has, if none of
/// them is clean.
fn write_row(key: &[u8], slots: &[Slot], there: Option<Version>, out: &mut RowWriter) -> Result<()> {
    let Some(newest) = slots.first() else { return Ok(()) };
    // The version that `current` has now: the newest clean one here, else whatever is there. (After
    // a flush that failed half-way it may be one of the unit's; then what it replaced is in
    // `history` already.)
    let first_clean = slots.iter().position(Slot::is_clean);
    let mut until = Timestamp::MAX;
    for (i, slot) in slots.iter().enumerate() {
        let replaced_now = first_clean == Some(i);
        if i > 0 && (replaced_now || !slot.is_clean()) {
            out.history(key, &slot.version(), until)?;
        }
        until = slot.at;
    }
    if first_clean.is_none()
        && let Some(before) = there
        && before.at < until
    {
        out.history(key, &before, until)?;
    }
    if newest.is_clean() { Ok(()) } else { out.current(key, &newest.version()) }
}
