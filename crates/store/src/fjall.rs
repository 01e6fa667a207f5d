//! The disk backend: one fjall database per node, two keyspaces per group, one keyspace of records.
//!
//! What is assumed of fjall (3.1):
//! - a batch reaches the memtables item by item in the order it was filled, so a reader that sees
//!   an item sees those before;
//! - dropping a range deletes the files that lie in it as a whole, and views that were taken before
//!   go on reading them;
//! - `persist(SyncAll)` makes every batch committed before durable; ingested files are durable when
//!   `finish` returns;
//! - a compaction filter sees whole entries and may destroy them. In `history` a copy of a
//!   destroyed entry may come back from a deeper level, which is harmless: it is the same bytes,
//!   and readers skip what is garbage. In `current`, where values are replaced, the verdict is a
//!   tombstone of fjall's own, which covers deeper copies;
//! - what `current_version`, `active_memtable` and `Table::range` say, which fjall does not promise
//!   ([`merging`]): its version is pinned for that, and a test compares it with `range`.
//!
//! fjall's journal is never synced for single rows: our log is the durability, and one sync ends a
//! whole flush.

use crate::backend::{Disk, RawRange, Sink, Space, Spaces, SpacesId, View, Visit};
use crate::codec::{self, Collectable, damaged};
use crate::manifest;
use crate::merge::{Entry, merge};
use ::fjall as db;
use bytes::Bytes;
use db::compaction::filter::{CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict};
use db::{AbstractTree, KeyspaceCreateOptions, PersistMode, Readable};
use meridian_base::error::{Error, Result};
use meridian_base::id::GroupId;
use meridian_base::workers;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

/// Rows per batch: large enough that the journal's lock is taken seldom, small enough that a batch
/// is a few hundred KiB.
const BATCH_ROWS: usize = 1_024;
/// fjall's threads for flushing and compaction. Of several, fjall keeps the first one free for
/// flushes: it takes a request to compact and sends it again, without a pause, for as long as
/// others compact. That is a whole core. One thread compacts and flushes in turn; the one flusher
/// may wait for it, behind memtables that hold what it wrote meanwhile.
const WORKER_THREADS: usize = 1;
const MARKER: &str = "meridian-store";
const RECORDS: &str = "records";
/// The file that says what damage was found.
const DAMAGED: &str = "damaged";

/// A node's database on disk.
pub(crate) struct FjallDisk {
    database: db::Database,
    records: db::Keyspace,
    path: PathBuf,
    collectable: Arc<CollectableByGroup>,
    ingest_rows_min: usize,
}

impl FjallDisk {
    /// Opens the folder or creates it.
    pub fn open(path: &Path, block_cache_bytes: usize, ingest_rows_min: usize) -> Result<FjallDisk> {
        check_marker(path)?;
        check_not_damaged(path)?;
        manifest::check(&path.join("data"))?;
        let collectable = Arc::new(CollectableByGroup::default());
        let assign = collectable.clone();
        let fail = |e| translate(path, "open", e);
        let database = db::Database::builder(path.join("data"))
            .cache_size(block_cache_bytes as u64)
            .manual_journal_persist(true)
            .worker_threads(WORKER_THREADS)
            .with_compaction_filter_factories(Arc::new(move |name| {
                let (id, space) = parse_keyspace_name(name)?;
                Some(Arc::new(GarbageFilterFactory { collectable: assign.of(id.group), space }))
            }))
            .open()
            .map_err(fail)?;
        // Made before all others. (What has no list of files counts as never made for fjall, which
        // deletes it.)
        if !database.keyspace_exists(RECORDS) && !database.list_keyspace_names().is_empty() {
            return Err(damaged(&path.display().to_string(), "its records are missing"));
        }
        let records = database.keyspace(RECORDS, KeyspaceCreateOptions::default).map_err(fail)?;
        Ok(FjallDisk { database, records, path: path.to_owned(), collectable, ingest_rows_min })
    }
    fn fail(&self, doing: &str) -> impl Fn(db::Error) -> Error {
        move |e| translate(&self.path, doing, e)
    }
}

impl Disk for FjallDisk {
    fn records(&self) -> Result<BTreeMap<Vec<u8>, Bytes>> {
        let mut all = BTreeMap::new();
        for entry in self.records.iter() {
            let (name, content) = entry.into_inner().map_err(self.fail("read"))?;
            all.insert(name.to_vec(), Bytes::copy_from_slice(&content));
        }
        Ok(all)
    }
    fn put_records(&self, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()> {
        workers::assert_may_wait("the sync of a record");
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for (name, content) in changes {
            match content {
                Some(content) => batch.insert(&self.records, name.clone(), content.clone()),
                None => batch.remove(&self.records, name.clone()),
            }
        }
        batch.commit().map_err(self.fail("write"))
    }
    fn list_spaces(&self) -> Result<Vec<SpacesId>> {
        let names = self.database.list_keyspace_names();
        let mut ids: Vec<SpacesId> = names.iter().filter_map(|name| Some(parse_keyspace_name(name)?.0)).collect();
        ids.sort();
        ids.dedup();
        Ok(ids)
    }
    fn has_spaces(&self, id: SpacesId) -> bool {
        [Space::Current, Space::History].iter().all(|space| self.database.keyspace_exists(&keyspace_name(id, *space)))
    }
    fn open_spaces(&self, id: SpacesId) -> Result<Arc<dyn Spaces>> {
        workers::assert_may_wait("making a space");
        let open = |space| self.database.keyspace(&keyspace_name(id, space), KeyspaceCreateOptions::default);
        Ok(Arc::new(FjallSpaces {
            current: open(Space::Current).map_err(self.fail("open"))?,
            history: open(Space::History).map_err(self.fail("open"))?,
            database: self.database.clone(),
            path: self.path.clone(),
            ingest_rows_min: self.ingest_rows_min,
        }))
    }
    fn drop_spaces(&self, id: SpacesId) -> Result<()> {
        workers::assert_may_wait("the end of a space");
        for space in [Space::Current, Space::History] {
            let name = keyspace_name(id, space);
            if self.database.keyspace_exists(&name) {
                let handle = self.database.keyspace(&name, KeyspaceCreateOptions::default).map_err(self.fail("open"))?;
                self.database.delete_keyspace(handle).map_err(self.fail("delete from"))?;
            }
        }
        Ok(())
    }
    fn collect(&self, group: GroupId, what: Collectable) -> Result<()> {
        self.collectable.of(group).set(what);
        Ok(())
    }
}

fn keyspace_name(id: SpacesId, space: Space) -> String {
    let space = match space {
        Space::Current => "current",
        Space::History => "history",
    };
    format!("{id}-{space}")
}

fn parse_keyspace_name(name: &str) -> Option<(SpacesId, Space)> {
    let mut parts = name.strip_prefix('g')?.split('-');
    let group = GroupId(parts.next()?.parse().ok()?);
    let incarnation = parts.next()?.parse().ok()?;
    let space = match parts.next()? {
        "current" => Space::Current,
        "history" => Space::History,
        _ => return None,
    };
    Some((SpacesId { group, incarnation }, space))
}

struct FjallSpaces {
    database: db::Database,
    current: db::Keyspace,
    history: db::Keyspace,
    path: PathBuf,
    ingest_rows_min: usize,
}

impl FjallSpaces {
    fn keyspace(&self, space: Space) -> &db::Keyspace {
        match space {
            Space::Current => &self.current,
            Space::History => &self.history,
        }
    }
}

impl Spaces for FjallSpaces {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        let keyspace = self.keyspace(space);
        match keyspace.get(key) {
            Ok(found) => Ok(found.map(|value| Bytes::copy_from_slice(&value))),
            Err(e) => Err(unread(&self.path, keyspace, e)),
        }
    }
    fn view(&self) -> Box<dyn View> {
        Box::new(FjallView::new(&self.database, &self.current, &self.history, &self.path))
    }
    fn write(&self, rows: usize, fill: &mut dyn FnMut(&mut dyn Sink) -> Result<()>) -> Result<()> {
        workers::assert_may_wait("a flush");
        if rows >= self.ingest_rows_min {
            let fail = |e| translate(self.current.path(), "write", e);
            let mut current = self.current.start_ingestion().map_err(fail)?;
            let mut history = self.history.start_ingestion().map_err(fail)?;
            fill(&mut SinkFn(|space, key: &[u8], value: &[u8]| match space {
                Space::Current => current.write(key, value).map_err(fail),
                Space::History => history.write(key, value).map_err(fail),
            }))?;
            // History first: who finds the new current version must find the old one there.
            history.finish().map_err(fail)?;
            current.finish().map_err(fail)
        } else {
            let mut sink = BatchSink { spaces: self, batch: self.database.batch() };
            fill(&mut sink)?;
            sink.commit()
        }
    }
    fn erase(&self, space: Space, ranges: &[(Vec<u8>, Vec<u8>)], has_room: bool) -> Result<bool> {
        workers::assert_may_wait("the end of old versions");
        let keyspace = self.keyspace(space);
        let fail = |e| translate(keyspace.path(), "erase from", e);
        let tables = keyspace.table_count();
        for (start, end) in ranges {
            let range: RawRange = (Bound::Included(start), Bound::Excluded(end));
            // Files that have nothing else: nothing is written for them but the list of files.
            keyspace.tree.drop_range::<&[u8], _>(range).map_err(|e| fail(e.into()))?;
        }
        let mut erased = keyspace.table_count() != tables;
        let mut is_done = true;
        for (start, end) in ranges {
            let snapshot = self.database.snapshot();
            let mut left = snapshot.range(keyspace, start.clone()..end.clone());
            if !has_room {
                is_done &= left.next().is_none();
                continue;
            }
            let mut batch = self.database.batch();
            for entry in left {
                batch.remove(keyspace, entry.key().map_err(|e| unread(&self.path, keyspace, e))?);
                if batch.len() >= BATCH_ROWS {
                    std::mem::replace(&mut batch, self.database.batch()).commit().map_err(fail)?;
                }
                erased = true;
            }
            batch.commit().map_err(fail)?;
        }
        if erased && let Some((start, _)) = ranges.first() {
            // fjall deletes the files with its next flush; and its journals up to the newest entry
            // that is in a file, which may have gone. So there is a newer one.
            keyspace.remove(start.clone()).map_err(fail)?;
            keyspace.rotate_memtable().map_err(fail)?;
        }
        Ok(is_done)
    }
    fn describe(&self) -> String {
        self.current.path().display().to_string()
    }
    fn malformed(&self) -> Error {
        let e = damaged(&self.describe(), "an entry that cannot be read");
        mark_damaged(&self.path, &e);
        e
    }
}

struct BatchSink<'a> {
    spaces: &'a FjallSpaces,
    batch: db::OwnedWriteBatch,
}

impl BatchSink<'_> {
    fn commit(&mut self) -> Result<()> {
        let full = std::mem::replace(&mut self.batch, self.spaces.database.batch());
        full.commit().map_err(|e| translate(self.spaces.current.path(), "write", e))
    }
}

impl Sink for BatchSink<'_> {
    fn put(&mut self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.insert(self.spaces.keyspace(space), key, value);
        if self.batch.len() >= BATCH_ROWS { self.commit() } else { Ok(()) }
    }
}

/// A sink that is a function: fjall does not export the name of its ingestion's type.
struct SinkFn<F>(F);

impl<F: FnMut(Space, &[u8], &[u8]) -> Result<()>> Sink for SinkFn<F> {
    fn put(&mut self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        (self.0)(space, key, value)
    }
}

struct FjallView {
    snapshot: db::Snapshot,
    current: db::Keyspace,
    history: db::Keyspace,
    path: PathBuf,
    /// Of `current`.
    merging: Option<Merging>,
}

impl FjallView {
    fn new(database: &db::Database, current: &db::Keyspace, history: &db::Keyspace, path: &Path) -> FjallView {
        let (snapshot, merging) = merging(&current.tree, || database.snapshot());
        FjallView { snapshot, current: current.clone(), history: history.clone(), path: path.to_owned(), merging }
    }
}

impl View for FjallView {
    fn scan(&self, space: Space, range: RawRange<'_>, reverse: bool, visit: Visit<'_>) -> Result<()> {
        let keyspace = match space {
            Space::Current => &self.current,
            Space::History => &self.history,
        };
        if let (Space::Current, false, Some(merging)) = (space, reverse, &self.merging) {
            return merging(range, visit).map_err(|e| unread(&self.path, keyspace, e));
        }
        let mut entries = self.snapshot.range::<&[u8], _>(keyspace, range);
        while let Some(entry) = if reverse { entries.next_back() } else { entries.next() } {
            let (key, value) = entry.into_inner().map_err(|e| unread(&self.path, keyspace, e))?;
            if visit(&key, &value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

/// Visits a range of a tree as of a snapshot, in the order of keys.
type Merging = Box<dyn Fn(RawRange<'_>, Visit<'_>) -> db::Result<()> + Send>;
type Source<'a> = Box<dyn Iterator<Item = db::Result<Entry<db::Slice>>> + 'a>;

/// A snapshot, and what reads a tree as of it: by merging its files and its memtable, which is what
/// fjall's own iterator does for about twice as much. `None` if the tree was just changing.
///
/// A snapshot sees what has a smaller number among what the tree consisted of when it was taken,
/// and not later: a compaction drops what newer entries hide. So that is looked at before and
/// after.
fn merging(tree: &db::AnyTree, take: impl FnOnce() -> db::Snapshot) -> (db::Snapshot, Option<Merging>) {
    let (active, version) = (tree.active_memtable(), tree.current_version());
    let snapshot = take();
    // None of them was ever the tree's before.
    let is_same = Arc::ptr_eq(&active, &tree.active_memtable()) && version.id() == tree.current_version().id();
    if !is_same || tree.sealed_memtable_count() > 0 || !matches!(tree, db::AnyTree::Standard(_)) {
        return (snapshot, None);
    }
    let below = snapshot.seqno();
    let merging: Merging = Box::new(move |range, visit| {
        // A table is read from the start of the range on, without an end: to look for that in a
        // block takes as long as to look for the start, and a lookup ends a few entries later.
        let from: Bound<db::Slice> = range.0.map(db::Slice::from);
        let mut sources: Vec<Source<'_>> = Vec::new();
        for run in version.iter_levels().flat_map(|level| level.iter()) {
            let Some((first, last)) = run.range_overlap_indexes::<&[u8], _>(&range) else { continue };
            let entries = (first..=last).flat_map(|at| run[at].range((from.clone(), Bound::Unbounded)));
            sources.push(Box::new(entries.map(|item| {
                let item = item?;
                let is_removed = item.is_tombstone();
                Ok(Entry { key: item.key.user_key, value: item.value, number: item.key.seqno, is_removed })
            })));
        }
        if let Some(some) = active.items.front() {
            // The type of these keys has no public name.
            let mut first = some.key().clone();
            (first.user_key, first.seqno) = match &from {
                Bound::Included(key) => (key.clone(), db::SeqNo::MAX),
                Bound::Excluded(key) => (key.clone(), 0),
                Bound::Unbounded => (db::Slice::from(&[][..]), db::SeqNo::MAX),
            };
            sources.push(Box::new(active.items.range(first..).map(|item| {
                let (key, value) = (item.key(), item.value().clone());
                Ok(Entry { key: key.user_key.clone(), value, number: key.seqno, is_removed: key.is_tombstone() })
            })));
        }
        merge(sources, below, range.1, visit)
    });
    (snapshot, Some(merging))
}

/// What may be collected from each group, shared with the makers of its compaction filters.
#[derive(Default)]
struct CollectableByGroup(Mutex<BTreeMap<GroupId, Arc<Allowed>>>);

impl CollectableByGroup {
    fn of(&self, group: GroupId) -> Arc<Allowed> {
        self.0.lock().entry(group).or_default().clone()
    }
}

/// A [`Collectable`] behind a lock. (The standard one: fjall wants `RefUnwindSafe`, which
/// parking_lot's is not.)
struct Allowed(std::sync::Mutex<Collectable>);

impl Default for Allowed {
    fn default() -> Allowed {
        Allowed(std::sync::Mutex::new(Collectable::NOTHING))
    }
}

impl Allowed {
    fn get(&self) -> Collectable {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn set(&self, what: Collectable) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }
}

struct GarbageFilterFactory {
    collectable: Arc<Allowed>,
    space: Space,
}

impl Factory for GarbageFilterFactory {
    fn name(&self) -> &str {
        "meridian garbage"
    }
    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(GarbageFilter { collectable: self.collectable.get(), space: self.space })
    }
}

struct GarbageFilter {
    collectable: Collectable,
    space: Space,
}

impl CompactionFilter for GarbageFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        Ok(match (self.collectable.contains(self.space, &item.value()?), self.space) {
            (false, _) => Verdict::Keep,
            (true, Space::History) => Verdict::Destroy,
            (true, Space::Current) => Verdict::Remove,
        })
    }
}

/// Refuses a folder that this program does not understand, and marks a new one.
fn check_marker(path: &Path) -> Result<()> {
    let marker = path.join(MARKER);
    let io = |e: std::io::Error| Error::fatal(format!("cannot open the store in {}: {e}", path.display()));
    match std::fs::read_to_string(&marker) {
        Ok(text) => match text.trim().strip_prefix("format ").and_then(|n| n.parse::<u32>().ok()) {
            Some(codec::FORMAT) => Ok(()),
            Some(newer) if newer > codec::FORMAT => Err(Error::fatal(format!(
                "the store in {} has format {newer}, which is newer than this program's ({})",
                path.display(),
                codec::FORMAT
            ))
            .hint("Start the version of meridian that wrote it, or a newer one.")),
            _ => Err(codec::damaged(&marker.display().to_string(), "it does not name a format")),
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            if path.join("data").exists() {
                return Err(codec::damaged(&path.display().to_string(), &format!("the file {MARKER} is missing")));
            }
            std::fs::create_dir_all(path).map_err(io)?;
            let unfinished = path.join(format!("{MARKER}.new"));
            let mut file = std::fs::File::create(&unfinished).map_err(io)?;
            writeln!(file, "format {}", codec::FORMAT).and_then(|()| file.sync_all()).map_err(io)?;
            std::fs::rename(&unfinished, &marker).map_err(io)?;
            std::fs::File::open(path).and_then(|folder| folder.sync_all()).map_err(io)
        }
        Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
            Err(codec::damaged(&marker.display().to_string(), "it is not a text"))
        }
        Err(e) => Err(io(e)),
    }
}

/// Refuses a folder in which damage was found when it was read.
fn check_not_damaged(path: &Path) -> Result<()> {
    let file = path.join(DAMAGED);
    match std::fs::read_to_string(&file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        found => {
            let found = found.unwrap_or_default();
            Err(codec::damaged(&path.display().to_string(), "an earlier start could not read it").detail(found.trim()).hint(
                format!(
                    "Start the node with an empty directory: it is a new one, and the others replace the old one. \
                 To start from the damaged files all the same, remove {}.",
                    file.display()
                ),
            ))
        }
    }
}

/// The error of a read. Damage is there at the next start too; an error of the disk need not be. A
/// lack of file handles says nothing about the disk: this read fails, and the node goes on.
fn unread(path: &Path, keyspace: &db::Keyspace, e: db::Error) -> Error {
    use db::{Error as E, LsmError};
    if let E::Io(lack) | E::Storage(LsmError::Io(lack)) = &e
        && matches!(lack.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
    {
        return Error::sql("53000", format!("cannot read the store in {}: {lack}", keyspace.path().display()))
            .hint("Let the process open more files (ulimit -n), or allow fewer clients (--max-connections).");
    }
    let is_lasting = !matches!(e, E::Io(_) | E::Storage(LsmError::Io(_)) | E::KeyspaceDeleted | E::Poisoned | E::Locked);
    let e = translate(keyspace.path(), "read", e);
    if is_lasting {
        mark_damaged(path, &e);
    }
    e
}

/// Lets the next start refuse a folder. If that fails, the next start may find the damage again.
fn mark_damaged(path: &Path, why: &Error) {
    if let Err(e) = std::fs::write(path.join(DAMAGED), format!("{}\n", why.message())) {
        tracing::warn!("the store in {} could not be marked as damaged: {e}", path.display());
    }
}

/// Says what was attempted where, and what is wrong.
fn translate(path: &Path, doing: &str, e: db::Error) -> Error {
    let place = path.display().to_string();
    match e {
        db::Error::Io(e) | db::Error::Storage(db::LsmError::Io(e)) => {
            Error::fatal(format!("cannot {doing} the store in {place}: {e}"))
        }
        db::Error::Locked => Error::fatal(format!("the store in {place} is in use by another process")),
        db::Error::Poisoned => {
            Error::fatal(format!("cannot {doing} the store in {place}: a write or a compaction failed before")).hint(
                "Restart the node: it replays its log. If that happens again, a file is damaged: start the node with an \
                 empty directory, and the others replace the old one.",
            )
        }
        // The node is well: only this group is gone.
        db::Error::KeyspaceDeleted => Error::retry(format!("cannot {doing} the store in {place}: the group was dropped")),
        db::Error::InvalidVersion(Some(v)) => Error::fatal(format!("the store in {place} was written by another version: {v:?}"))
            .hint("Start the version of meridian that wrote it, or a newer one."),
        db::Error::Storage(db::LsmError::ChecksumMismatch { .. }) => {
            codec::damaged(&place, "a block does not have the checksum it was written with")
        }
        db::Error::Storage(db::LsmError::Unrecoverable) | db::Error::Unrecoverable => {
            codec::damaged(&place, "a file is missing or cannot be read")
        }
        db::Error::Storage(e) => codec::damaged(&place, &format!("a table cannot be read ({e:?})")),
        other => codec::damaged(&place, &format!("a file cannot be read ({other:?})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Version;
    use meridian_base::time::Timestamp;
    use meridian_base::txn::ColumnMask;
    use proptest::prelude::*;

    #[test]
    fn a_compaction_drops_garbage_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let disk = FjallDisk::open(folder.path(), 1 << 20, 1).unwrap();
        let id = SpacesId { group: GroupId(1), incarnation: 1 };
        let spaces = disk.open_spaces(id).unwrap();
        let version = |at, value: Option<&'static str>| Version {
            at: Timestamp(at),
            columns: ColumnMask::ALL,
            value: value.map(|v| Bytes::from_static(v.as_bytes())),
        };
        let mut value = Vec::new();
        // Twice, so that there is something below the newest copies.
        for _ in 0..2 {
            spaces
                .write(10, &mut |sink| {
                    for (key, until) in [(b"a", 10), (b"b", 11)] {
                        codec::put_history(&mut value, &version(5, Some("old")), Timestamp(until));
                        sink.put(Space::History, &codec::history_key(key, Timestamp(5)), &value)?;
                    }
                    for (key, v) in [(b"a", version(8, None)), (b"b", version(9, None)), (b"c", version(3, Some("row")))] {
                        codec::put_current(&mut value, &v);
                        sink.put(Space::Current, key, &value)?;
                    }
                    Ok(())
                })
                .unwrap();
        }
        disk.collect(id.group, Collectable { replaced: Timestamp(10), tombstones: Timestamp(8) }).unwrap();
        for space in [Space::Current, Space::History] {
            let keyspace = disk.database.keyspace(&keyspace_name(id, space), KeyspaceCreateOptions::default).unwrap();
            keyspace.tree.major_compact(64 << 20, disk.database.seqno()).unwrap();
        }
        let keys = |space| {
            let mut keys = Vec::new();
            spaces
                .view()
                .scan(space, (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded), false, &mut |key, _| {
                    keys.push(key.to_vec());
                    ControlFlow::Continue(())
                })
                .unwrap();
            keys
        };
        assert_eq!(keys(Space::Current), [b"b", b"c"]);
        assert_eq!(keys(Space::History), [codec::history_key(b"b", Timestamp(5))]);
    }

    /// What happens to a keyspace.
    #[derive(Clone, Debug)]
    enum Step {
        /// Through the memtable, or as a file of its own.
        Write(Vec<u8>, bool),
        Remove(u8),
        Flush,
        Compact,
        /// A view is taken, which is compared at the end.
        View,
    }

    fn step() -> impl Strategy<Value = Step> {
        let keys = prop::collection::btree_set(0_u8..40, 1..12).prop_map(|keys| keys.into_iter().collect::<Vec<_>>());
        prop_oneof![
            4 => (keys, any::<bool>()).prop_map(|(keys, is_file)| Step::Write(keys, is_file)),
            2 => (0_u8..40).prop_map(Step::Remove),
            1 => Just(Step::Flush),
            1 => Just(Step::Compact),
            2 => Just(Step::View),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn merging_the_tables_gives_what_fjall_gives(
            steps in prop::collection::vec(step(), 1..30),
            ranges in prop::collection::vec((0_u8..42, 0_u8..42, 0_u8..9), 6),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let disk = FjallDisk::open(folder.path(), 1 << 20, 1).unwrap();
            let open = |name| disk.database.keyspace(name, KeyspaceCreateOptions::default).unwrap();
            let (current, history) = (open("g1-1-current"), open("g1-1-history"));
            let view = || FjallView::new(&disk.database, &current, &history, folder.path());
            let mut views = Vec::new();
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Write(keys, true) => {
                        let mut file = current.start_ingestion().unwrap();
                        keys.iter().for_each(|key| file.write([*key], [n as u8]).unwrap());
                        file.finish().unwrap();
                    }
                    Step::Write(keys, false) => keys.iter().for_each(|key| current.insert([*key], [n as u8]).unwrap()),
                    Step::Remove(key) => current.remove([key]).unwrap(),
                    Step::Flush => current.rotate_memtable_and_wait().unwrap(),
                    Step::Compact => current.major_compact().unwrap(),
                    Step::View => views.push(view()),
                }
            }
            views.push(view());
            let bound = |key: &'static [u8], kind: u8| match kind {
                0 => Bound::Included(key),
                1 => Bound::Excluded(key),
                _ => Bound::Unbounded,
            };
            for (low, high, kinds) in ranges {
                let [low, high] = [low.min(high), low.max(high)].map(|key| &*Vec::leak(vec![key]));
                let range = (bound(low, kinds / 3), bound(high, kinds % 3));
                if low == high && range.0 != Bound::Included(low) {
                    continue;
                }
                for view in &views {
                    let mut merged = Vec::new();
                    let Some(merging) = &view.merging else { continue };
                    merging(range, &mut |key, value| {
                        merged.push((key.to_vec(), value.to_vec()));
                        ControlFlow::Continue(())
                    })
                    .unwrap();
                    let theirs = view.snapshot.range::<&[u8], _>(&current, range).map(|entry| entry.into_inner().unwrap());
                    let theirs: Vec<_> = theirs.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
                    prop_assert_eq!(merged, theirs, "{:?}", range);
                }
            }
        }
    }

    #[test]
    fn names_of_keyspaces_read_back() {
        let id = SpacesId { group: GroupId(12), incarnation: 34 };
        for space in [Space::Current, Space::History] {
            assert_eq!(parse_keyspace_name(&keyspace_name(id, space)), Some((id, space)));
        }
        for other in [RECORDS, "g1", "g1-x-current", "g1-1-else", ""] {
            assert_eq!(parse_keyspace_name(other), None);
        }
    }
}
