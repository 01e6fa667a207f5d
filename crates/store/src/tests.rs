//! What must hold whatever happens between two looks of one call: a flush, a write, a collection or an import is put at
//! a chosen place of a read or of a flush.

use crate::backend::{Sink, Space, Spaces, View};
use crate::spaces;
use crate::{Backend, GroupStore, MemoryDisk, Options, ScanLimits, Store};
use bytes::Bytes;
use meridian_base::error::Result;
use meridian_base::id::{GroupId, LogPosition, NodeId, TxnId};
use meridian_base::key::{Key, KeyRange, Target};
use meridian_base::record::Committed;
use meridian_base::time::Timestamp;
use meridian_base::txn::{ColumnMask, Write};
use parking_lot::Mutex;
use std::sync::Arc;

type Action = Box<dyn FnOnce() + Send>;

/// Where something happens.
#[derive(Clone, Copy, PartialEq)]
enum Moment {
    AfterGet,
    BeforeView,
    BeforeWrite,
}

/// Spaces in which something happens once.
struct Meanwhile {
    spaces: Arc<dyn Spaces>,
    moment: Moment,
    action: Mutex<Option<Action>>,
}

impl Meanwhile {
    fn reach(&self, moment: Moment) {
        let action = if moment == self.moment { self.action.lock().take() } else { None };
        if let Some(action) = action {
            action();
        }
    }
    fn has_happened(&self) -> bool {
        self.action.lock().is_none()
    }
}

impl Spaces for Meanwhile {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        let found = self.spaces.get(space, key);
        self.reach(Moment::AfterGet);
        found
    }
    fn view(&self) -> Box<dyn View> {
        self.reach(Moment::BeforeView);
        self.spaces.view()
    }
    fn write(&self, rows: usize, fill: &mut dyn FnMut(&mut dyn Sink) -> Result<()>) -> Result<()> {
        self.reach(Moment::BeforeWrite);
        self.spaces.write(rows, fill)
    }
    fn describe(&self) -> String {
        self.spaces.describe()
    }
}

/// The next time that the group's spaces are used so, this happens.
fn meanwhile(group: &GroupStore, moment: Moment, action: impl FnOnce() + Send + 'static) -> Arc<Meanwhile> {
    let mut inner = group.inner.write();
    let spaces = inner.spaces.clone();
    let meanwhile = Arc::new(Meanwhile { spaces, moment, action: Mutex::new(Some(Box::new(action))) });
    inner.spaces = meanwhile.clone();
    meanwhile
}

fn open(disk: &MemoryDisk) -> (Store, Arc<GroupStore>) {
    let store = Store::open(Backend::Memory(disk.clone()), Options::default()).unwrap();
    let group = store.group(GroupId(7)).unwrap();
    (store, group)
}
fn key(i: u32) -> Key {
    Key::new(&[&[0, 0, 0, 1], &i.to_be_bytes()[..]].concat())
}
fn position(index: u64) -> LogPosition {
    LogPosition { index, term: 1 }
}
/// Applies an entry with one transaction; a value of `None` deletes.
fn apply(group: &GroupStore, index: u64, at: u64, writes: &[(u32, Option<&str>)]) {
    let value = |v: &Option<&str>| v.map(|v| Bytes::copy_from_slice(v.as_bytes()));
    let writes = writes.iter().map(|(i, v)| Write { key: key(*i), value: value(v), columns: ColumnMask::ALL }).collect();
    let id = TxnId { hlc: Timestamp(at), gateway: NodeId(1) };
    group.apply(position(index), &[Committed { id, at: Timestamp(at), writes }]).unwrap();
}
fn flush(group: &GroupStore) {
    group.cut(Bytes::new());
    assert!(group.flush_step().unwrap());
}
fn evict_all(group: &GroupStore) {
    while group.inner.write().table.evict(0, 0, &group.shared.totals) {}
}
/// The timestamp of the version that a reader sees.
fn seen(group: &GroupStore, i: u32, at: u64) -> Option<u64> {
    group.get(key(i).as_bytes(), Timestamp(at)).unwrap().map(|v| v.at.0)
}
fn newest(group: &GroupStore, i: u32) -> Option<u64> {
    seen(group, i, u64::MAX)
}

#[test]
fn what_a_reader_found_before_a_flush_is_not_taken_for_the_newest_after_it() {
    let (_store, group) = open(&MemoryDisk::new());
    apply(&group, 1, 10, &[(1, Some("old"))]);
    flush(&group);
    evict_all(&group);
    let writer = group.clone();
    let flushed = meanwhile(&group, Moment::AfterGet, move || {
        apply(&writer, 2, 20, &[(1, Some("new"))]);
        flush(&writer);
        evict_all(&writer);
    });
    assert_eq!(seen(&group, 1, 15), Some(10));
    assert!(flushed.has_happened());
    assert_eq!((newest(&group, 1), seen(&group, 1, 15)), (Some(20), Some(10)));
}

#[test]
fn a_late_version_is_placed_below_what_was_flushed_while_it_was_looked_up() {
    let (_store, group) = open(&MemoryDisk::new());
    apply(&group, 1, 20, &[(1, Some("new"))]);
    group.cut(Bytes::new());
    let flusher = group.clone();
    let flushed = meanwhile(&group, Moment::AfterGet, move || {
        assert!(flusher.flush_step().unwrap());
        evict_all(&flusher);
    });
    apply(&group, 2, 15, &[(1, Some("late"))]);
    assert!(flushed.has_happened());
    assert_eq!((newest(&group, 1), seen(&group, 1, 19)), (Some(20), Some(15)));
    flush(&group);
    evict_all(&group);
    assert_eq!((newest(&group, 1), seen(&group, 1, 19)), (Some(20), Some(15)));
}

/// Versions 10 and 20 of a key, in the spaces; what stands between them is collected at a moment of a read.
fn collected(moment: Moment) -> Arc<GroupStore> {
    let (_store, group) = open(&MemoryDisk::new());
    apply(&group, 1, 10, &[(1, Some("old"))]);
    apply(&group, 2, 20, &[(1, Some("new"))]);
    flush(&group);
    evict_all(&group);
    let collector = group.clone();
    meanwhile(&group, moment, move || collector.collect_garbage(Timestamp(30)).unwrap());
    group
}

#[test]
fn a_read_under_which_versions_are_collected_is_refused() {
    let refused = |state: &str| assert_eq!(state, "72000");
    let group = collected(Moment::AfterGet);
    refused(group.get(key(1).as_bytes(), Timestamp(15)).unwrap_err().sqlstate());
    let group = collected(Moment::BeforeView);
    let range = KeyRange::prefix(&[0, 0, 0, 1]);
    refused(group.scan(&range, Timestamp(15), false, ScanLimits::default()).unwrap_err().sqlstate());
    for (target, moment) in [(Target::Key(key(1)), Moment::AfterGet), (Target::Range(range), Moment::BeforeView)] {
        let group = collected(moment);
        let changed = group.changed_between(&target, ColumnMask::ALL, Timestamp(5), Timestamp(15));
        refused(changed.unwrap_err().sqlstate());
    }
}

#[test]
fn a_page_does_not_mix_what_was_before_an_import_with_what_is_after_it() {
    let fill = |group: &GroupStore, value: &str| {
        let writes: Vec<_> = (0..600).map(|i| (i, Some(value))).collect();
        apply(group, 1, 10, &writes);
        flush(group);
    };
    let (_from, source) = open(&MemoryDisk::new());
    fill(&source, "imported");
    for reverse in [false, true] {
        let (_store, group) = open(&MemoryDisk::new());
        fill(&group, "replaced");
        let mut import = group.import().unwrap();
        for chunk in source.export().unwrap() {
            import.chunk(&chunk.unwrap()).unwrap();
        }
        let installed = meanwhile(&group, Moment::BeforeView, move || drop(import.finish().unwrap()));
        let limits = ScanLimits { rows: 1_000, ..ScanLimits::default() };
        let page = group.scan(&KeyRange::prefix(&[0, 0, 0, 1]), Timestamp(10), reverse, limits).unwrap();
        assert!(installed.has_happened());
        assert_eq!(page.rows.len(), 600);
        assert!(page.rows.iter().all(|(_, v)| v.value.as_deref() == Some(b"imported")));
    }
}

#[test]
fn a_cut_whose_flush_failed_is_flushed_with_the_one_that_was_made_meanwhile() {
    let disk = MemoryDisk::new();
    let (store, group) = open(&disk);
    apply(&group, 1, 10, &[(1, Some("first"))]);
    group.cut(Bytes::from_static(b"first"));
    let (applier, full) = (group.clone(), disk.clone());
    let cut = meanwhile(&group, Moment::BeforeWrite, move || {
        apply(&applier, 2, 20, &[(2, Some("second"))]);
        applier.cut(Bytes::from_static(b"second"));
        full.fail_writes_after(0);
    });
    assert!(group.flush_step().is_err());
    assert!(cut.has_happened());
    disk.heal();
    assert_eq!((group.durable(), newest(&group, 1), newest(&group, 2)), (LogPosition::default(), Some(10), Some(20)));
    assert!(group.flush_step().unwrap());
    assert_eq!(group.recovered(), Some((position(2), Bytes::from_static(b"second"))));
    assert_eq!((store.dirty_bytes(), group.flush_step().unwrap()), (0, false), "nothing is left behind");
    disk.crash(0);
    let (_store, group) = open(&disk);
    assert_eq!((newest(&group, 1), newest(&group, 2)), (Some(10), Some(20)));
}

#[test]
fn a_cut_whose_flush_failed_alone_is_flushed_with_the_next_one() {
    let disk = MemoryDisk::new();
    let (store, group) = open(&disk);
    apply(&group, 1, 10, &[(1, Some("first"))]);
    group.cut(Bytes::new());
    disk.fail_writes_after(0);
    assert!(group.flush_step().is_err());
    disk.heal();
    apply(&group, 2, 20, &[(2, Some("second"))]);
    flush(&group);
    assert_eq!((group.durable(), store.dirty_bytes(), group.flush_step().unwrap()), (position(2), 0, false));
    disk.crash(0);
    let (_store, group) = open(&disk);
    assert_eq!((newest(&group, 1), newest(&group, 2)), (Some(10), Some(20)));
}

/// A group whose key 1 was deleted at 25, flushed, and then got a version at 20 that is not flushed yet.
fn deleted_and_written_late(disk: &MemoryDisk) -> Arc<GroupStore> {
    let (_store, group) = open(disk);
    apply(&group, 1, 25, &[(1, None)]);
    flush(&group);
    apply(&group, 2, 20, &[(1, Some("late"))]);
    group
}

/// The node dies, and replays what was not durable: the deleted row stays away.
fn replayed(disk: &MemoryDisk) {
    disk.crash(0);
    let (_store, group) = open(disk);
    assert_eq!(group.durable(), position(1));
    apply(&group, 2, 20, &[(1, Some("late"))]);
    let found = group.get(key(1).as_bytes(), Timestamp(50)).unwrap();
    assert!(found.as_ref().is_none_or(|v| v.value.is_none()), "{found:?}");
}

fn has_tombstone(group: &GroupStore) -> bool {
    let spaces = group.inner.read().spaces.clone();
    spaces::current(&*spaces, key(1).as_bytes()).unwrap().is_some()
}

#[test]
fn a_tombstone_stays_until_nothing_below_it_can_be_replayed() {
    // What was applied, and not cut.
    let disk = MemoryDisk::new();
    deleted_and_written_late(&disk).collect_garbage(Timestamp(40)).unwrap();
    replayed(&disk);
    // Cut, not flushed; once more with a later cut.
    for again in [false, true] {
        let disk = MemoryDisk::new();
        let group = deleted_and_written_late(&disk);
        group.cut(Bytes::new());
        if again {
            apply(&group, 3, 50, &[(2, Some("x"))]);
            group.cut(Bytes::new());
        }
        group.collect_garbage(Timestamp(40)).unwrap();
        replayed(&disk);
    }
    // In a flush.
    let disk = MemoryDisk::new();
    let group = deleted_and_written_late(&disk);
    group.cut(Bytes::new());
    let (collector, full) = (group.clone(), disk.clone());
    meanwhile(&group, Moment::BeforeWrite, move || {
        collector.collect_garbage(Timestamp(40)).unwrap();
        full.fail_writes_after(0);
    });
    assert!(group.flush_step().is_err());
    disk.heal();
    replayed(&disk);
    // In a cut whose flush failed, under a later one or above an earlier one.
    let disk = MemoryDisk::new();
    let group = deleted_and_written_late(&disk);
    group.cut(Bytes::new());
    let (applier, full) = (group.clone(), disk.clone());
    meanwhile(&group, Moment::BeforeWrite, move || {
        apply(&applier, 3, 50, &[(2, Some("x"))]);
        applier.cut(Bytes::new());
        full.fail_writes_after(0);
    });
    assert!(group.flush_step().is_err());
    disk.heal();
    group.collect_garbage(Timestamp(40)).unwrap();
    replayed(&disk);
    let disk = MemoryDisk::new();
    let (_store, group) = open(&disk);
    apply(&group, 1, 25, &[(1, None)]);
    flush(&group);
    apply(&group, 2, 30, &[(2, Some("x"))]);
    group.cut(Bytes::new());
    let (applier, full) = (group.clone(), disk.clone());
    meanwhile(&group, Moment::BeforeWrite, move || {
        apply(&applier, 3, 20, &[(1, Some("late"))]);
        applier.cut(Bytes::new());
        full.fail_writes_after(0);
    });
    assert!(group.flush_step().is_err());
    disk.heal();
    group.collect_garbage(Timestamp(40)).unwrap();
    replayed(&disk);
}

#[test]
fn a_tombstone_goes_once_what_is_below_it_is_durable() {
    let disk = MemoryDisk::new();
    let group = deleted_and_written_late(&disk);
    flush(&group);
    group.collect_garbage(Timestamp(24)).unwrap();
    assert!(has_tombstone(&group), "it is above the threshold");
    group.collect_garbage(Timestamp(40)).unwrap();
    assert!(!has_tombstone(&group));
    assert_eq!(newest(&group, 1), None);
}
