//! What must hold whatever happens between two looks of one call: a flush, a write, a collection or
//! an import is put at a chosen place of a read or of a flush.

use crate::backend::{Sink, Space, Spaces, View};
use crate::codec;
use crate::spaces;
use crate::{Backend, GroupStore, MemoryDisk, Options, ScanLimits, Store};
use bytes::Bytes;
use meridian_base::error::{ErrorKind, Result};
use meridian_base::id::{GroupId, LogPosition, NodeId, TxnId};
use meridian_base::invariants;
use meridian_base::key::{Key, KeyRange, Target};
use meridian_base::record::Committed;
use meridian_base::time::Timestamp;
use meridian_base::txn::{ColumnMask, Write};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
    fn erase(&self, space: Space, ranges: &[(Vec<u8>, Vec<u8>)], has_room: bool) -> Result<bool> {
        self.spaces.erase(space, ranges, has_room)
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
    invariants::look();
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

/// Versions 10 and 20 of a key, in the spaces; what stands between them is collected at a moment of
/// a read.
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
fn a_scan_sees_a_late_version_below_one_that_is_durable() {
    let (_store, group) = open(&MemoryDisk::new());
    apply(&group, 1, 20, &[(1, Some("new")), (2, Some("elsewhere"))]);
    flush(&group);
    apply(&group, 2, 15, &[(1, Some("late"))]);
    // The index is not whole any more, so that the spaces are read, and the row above them. That
    // row cannot go, so there is always more to evict.
    (0..4).for_each(|_| _ = group.inner.write().table.evict(0, 0, &group.shared.totals));
    assert_eq!(group.inner.read().table.len(), 1);
    let range = KeyRange::prefix(&[0, 0, 0, 1]);
    let seen = |at: u64| {
        let page = group.scan(&range, Timestamp(at), false, ScanLimits::default()).unwrap();
        page.rows.into_iter().map(|(key, version)| (key, version.at.0)).collect::<Vec<_>>()
    };
    assert_eq!(seen(19), [(key(1), 15)]);
    assert_eq!(seen(20), [(key(1), 20), (key(2), 20)]);
}

#[test]
fn a_page_does_not_mix_what_was_before_an_import_with_what_is_after_it() {
    // More than one step looks at.
    const ROWS: u32 = 2_500;
    let fill = |group: &GroupStore, value: &str| {
        let writes: Vec<_> = (0..ROWS).map(|i| (i, Some(value))).collect();
        apply(group, 1, 10, &writes);
        flush(group);
    };
    let (_from, source) = open(&MemoryDisk::new());
    fill(&source, "imported");
    for reverse in [false, true] {
        let (_store, group) = open(&MemoryDisk::new());
        fill(&group, "replaced");
        // Some of it is in the spaces alone, so that they are looked at.
        let is_whole = |group: &GroupStore| group.inner.read().table.len() == ROWS as usize;
        while is_whole(&group) {
            group.inner.write().table.evict(0, 0, &group.shared.totals);
        }
        let mut import = group.import().unwrap();
        for chunk in source.export().unwrap() {
            import.chunk(&chunk.unwrap()).unwrap();
        }
        let installed = meanwhile(&group, Moment::BeforeView, move || drop(import.finish().unwrap()));
        let limits = ScanLimits { rows: 10_000, ..ScanLimits::default() };
        let (mut rows, mut pages) = (0, Vec::new());
        let mut left = Some(KeyRange::prefix(&[0, 0, 0, 1]));
        while let Some(range) = left {
            let page = group.scan(&range, Timestamp(10), reverse, limits).unwrap();
            rows += page.rows.len() as u32;
            pages.push(page.rows.into_iter().map(|(_, v)| v.value).collect::<BTreeSet<_>>());
            left = page.rest;
        }
        assert!(installed.has_happened());
        assert_eq!(rows, ROWS);
        let of = |value: &'static str| BTreeSet::from([Some(Bytes::from_static(value.as_bytes()))]);
        assert_eq!(pages, [of("replaced"), of("imported")], "the page during which it was installed ends there");
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

/// A group whose key 1 was deleted at 25, flushed, and then got a version at 20 that is not flushed
/// yet.
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
    // What was applied, and not cut; once more with a newer version after it.
    for again in [false, true] {
        let disk = MemoryDisk::new();
        let group = deleted_and_written_late(&disk);
        if again {
            apply(&group, 3, 50, &[(2, Some("x"))]);
        }
        group.collect_garbage(Timestamp(40)).unwrap();
        replayed(&disk);
    }
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
    // Cut below an earlier cut.
    let disk = MemoryDisk::new();
    let (_store, group) = open(&disk);
    apply(&group, 1, 25, &[(1, None)]);
    flush(&group);
    apply(&group, 2, 50, &[(2, Some("x"))]);
    group.cut(Bytes::new());
    apply(&group, 3, 20, &[(1, Some("late"))]);
    group.cut(Bytes::new());
    group.collect_garbage(Timestamp(40)).unwrap();
    replayed(&disk);
    // Applied before another late one, which is not as old.
    let disk = MemoryDisk::new();
    let (_store, group) = open(&disk);
    apply(&group, 1, 25, &[(1, None)]);
    apply(&group, 1, 30, &[(2, Some("x"))]);
    flush(&group);
    apply(&group, 2, 20, &[(1, Some("late"))]);
    apply(&group, 3, 26, &[(2, Some("late"))]);
    group.collect_garbage(Timestamp(40)).unwrap();
    replayed(&disk);
    // Applied between a cut and the end of its flush, to a row that is in memory.
    let disk = MemoryDisk::new();
    let (_store, group) = open(&disk);
    apply(&group, 1, 25, &[(1, None)]);
    flush(&group);
    apply(&group, 1, 15, &[(1, Some("late"))]);
    group.cut(Bytes::new());
    apply(&group, 2, 20, &[(1, Some("late"))]);
    assert!(group.flush_step().unwrap());
    group.collect_garbage(Timestamp(40)).unwrap();
    replayed(&disk);
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

/// What a replay finds in the spaces is replayed once more after the next crash, and must find the
/// tombstone above it then.
#[test]
fn a_tombstone_stays_above_what_a_replay_found() {
    let disk = MemoryDisk::new();
    let (_store, group) = open(&disk);
    let first = |group: &GroupStore| {
        apply(group, 2, 20, &[(1, Some("x")), (2, Some("x"))]);
        apply(group, 2, 40, &[(1, None)]);
    };
    let second = |group: &GroupStore| {
        apply(group, 3, 30, &[(1, Some("late"))]);
        apply(group, 3, 45, &[(2, Some("y"))]);
    };
    apply(&group, 1, 10, &[(3, Some("x"))]);
    flush(&group);
    first(&group);
    second(&group);
    group.cut(Bytes::new());
    disk.fail_writes_after(6); // The bound, three versions of history, two current ones.
    assert!(group.flush_step().is_err());
    disk.heal();
    disk.crash(5);
    let (_store, group) = open(&disk);
    first(&group);
    flush(&group);
    second(&group);
    assert_eq!(group.dirty_bytes(), 0, "it is there already");
    group.collect_garbage(Timestamp(50)).unwrap();
    disk.crash(0);
    let (_store, group) = open(&disk);
    assert_eq!(group.durable(), position(2));
    second(&group);
    let found = group.get(key(1).as_bytes(), Timestamp(60)).unwrap();
    assert!(found.as_ref().is_none_or(|v| v.value.is_none()), "{found:?}");
}

#[test]
fn what_a_replay_finds_is_not_flushed_again() {
    let disk = MemoryDisk::new();
    let (_store, group) = open(&disk);
    apply(&group, 1, 10, &[(1, Some("x"))]);
    flush(&group);
    apply(&group, 2, 20, &[(2, Some("y"))]);
    group.cut(Bytes::new());
    disk.fail_writes_after(2); // The bound and the version.
    assert!(group.flush_step().is_err());
    disk.heal();
    disk.crash(1);
    let (_store, group) = open(&disk);
    assert_eq!(group.durable(), position(1));
    apply(&group, 2, 20, &[(2, Some("y"))]);
    assert_eq!((newest(&group, 2), group.dirty_bytes()), (Some(20), 0));
}

/// After a flush that broke off, the spaces are newer than what is replayed. They are so until the
/// replay has passed them, however often it is flushed and begun again.
#[test]
fn a_flush_in_the_middle_of_a_replay_does_not_forget_how_new_the_spaces_are() {
    let disk = MemoryDisk::new();
    let (_store, group) = open(&disk);
    let entry = |group: &GroupStore, n: u64| apply(group, n, n * 10, &[(if n <= 2 { 1 } else { 2 }, Some("x"))]);
    entry(&group, 1);
    flush(&group);
    (2..=4).for_each(|n| entry(&group, n));
    group.cut(Bytes::new());
    disk.fail_writes_after(5); // The bound, two versions of history, two current ones.
    assert!(group.flush_step().is_err());
    disk.heal();
    disk.crash(4);
    let (_store, group) = open(&disk);
    entry(&group, 2);
    flush(&group);
    entry(&group, 3);
    assert_eq!(newest(&group, 2), Some(40));
    disk.crash(0);
    let (_store, group) = open(&disk);
    assert_eq!(group.durable(), position(2));
    entry(&group, 3);
    assert_eq!((newest(&group, 2), group.applied_ts()), (Some(40), Timestamp(30)));
}

#[test]
fn an_entry_that_is_applied_again_does_not_take_the_position_back() {
    let (_store, group) = open(&MemoryDisk::new());
    (1..=3).for_each(|n| apply(&group, n, n * 10, &[(1, Some("x"))]));
    apply(&group, 2, 20, &[(1, Some("x"))]);
    assert_eq!((group.applied(), group.applied_ts(), newest(&group, 1)), (position(3), Timestamp(30), Some(30)));
}

#[test]
fn a_threshold_that_is_not_larger_writes_nothing() {
    let disk = MemoryDisk::new();
    let (_store, group) = open(&disk);
    group.collect_garbage(Timestamp(20)).unwrap();
    disk.fail_writes_after(0);
    group.collect_garbage(Timestamp(20)).unwrap();
    group.collect_garbage(Timestamp(10)).unwrap();
    assert!(group.collect_garbage(Timestamp(21)).is_err());
    assert_eq!(group.gc_threshold(), Timestamp(20), "it is not in force before it is durable");
}

/// What `history` has of a key: timestamp and until, newest first.
fn history(group: &GroupStore, i: u32) -> Vec<(u64, u64)> {
    let view = group.inner.read().spaces.view();
    let (low, high) =
        (codec::history_key(key(i).as_bytes(), Timestamp::MAX), codec::history_key(key(i).as_bytes(), Timestamp::MIN));
    let mut found = Vec::new();
    view.scan(Space::History, (Bound::Included(&low), Bound::Included(&high)), false, &mut |key, value| {
        let at = codec::split_history_key(key).unwrap().1;
        found.push((at.0, codec::current_at(value).unwrap().0));
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

#[test]
fn history_has_what_was_replaced_with_the_time_of_that_and_nothing_else() {
    let disk = MemoryDisk::new();
    let (_store, group) = open(&disk);
    apply(&group, 1, 10, &[(1, Some("x"))]);
    flush(&group);
    assert_eq!(history(&group, 1), []);
    apply(&group, 2, 20, &[(1, Some("x"))]);
    apply(&group, 3, 30, &[(1, None)]);
    flush(&group);
    assert_eq!(history(&group, 1), [(20, 30), (10, 20)]);
    apply(&group, 4, 15, &[(1, Some("late"))]);
    flush(&group);
    // `until` may be later than the truth: 10 was written with 20 before 15 came.
    assert_eq!(history(&group, 1), [(20, 30), (15, 20), (10, 20)]);
    // A flush that broke off after `current` was written, and is repeated.
    apply(&group, 5, 40, &[(1, Some("x"))]);
    apply(&group, 6, 50, &[(1, Some("x"))]);
    evict_all(&group);
    group.cut(Bytes::new());
    disk.fail_writes_after(4);
    assert!(group.flush_step().is_err());
    disk.heal();
    let all = [(40, 50), (30, 40), (20, 30), (15, 20), (10, 20)];
    assert_eq!(history(&group, 1), all);
    assert!(group.flush_step().unwrap());
    assert_eq!((newest(&group, 1), &history(&group, 1)[..]), (Some(50), &all[..]));
    // One of a single version.
    evict_all(&group);
    apply(&group, 7, 60, &[(1, Some("x"))]);
    group.cut(Bytes::new());
    disk.fail_writes_after(3);
    assert!(group.flush_step().is_err());
    disk.heal();
    assert!(group.flush_step().unwrap());
    assert_eq!((newest(&group, 1), &history(&group, 1)[..]), (Some(60), &[&[(50, 60)], &all[..]].concat()[..]));
}

#[test]
fn an_entry_that_cannot_be_read_is_an_error() {
    let (_store, group) = open(&MemoryDisk::new());
    apply(&group, 1, 10, &[(1, Some("old"))]);
    apply(&group, 2, 20, &[(1, Some("new"))]);
    flush(&group);
    evict_all(&group);
    let spaces = group.inner.read().spaces.clone();
    spaces.write(1, &mut |sink| sink.put(Space::History, &codec::history_key(key(1).as_bytes(), Timestamp(10)), b"?")).unwrap();
    assert_eq!(newest(&group, 1), Some(20));
    let range = KeyRange::prefix(&[0, 0, 0, 1]);
    let old = Timestamp(15);
    assert_eq!(group.get(key(1).as_bytes(), old).unwrap_err().kind(), ErrorKind::Fatal);
    assert_eq!(group.scan(&range, old, false, ScanLimits::default()).unwrap_err().kind(), ErrorKind::Fatal);
    let changed = |target| group.changed_between(&target, ColumnMask::ALL, Timestamp(5), old).unwrap_err().kind();
    assert_eq!((changed(Target::Key(key(1))), changed(Target::Range(range))), (ErrorKind::Fatal, ErrorKind::Fatal));
}

#[test]
fn a_page_ends_with_the_row_that_reaches_the_limit() {
    let (_store, group) = open(&MemoryDisk::new());
    let writes: Vec<_> = (0..5).map(|i| (i, Some("ab"))).collect();
    apply(&group, 1, 10, &writes);
    let rows = |rows, bytes, reverse| {
        let page = group.scan(&KeyRange::prefix(&[0, 0, 0, 1]), Timestamp(10), reverse, ScanLimits { rows, bytes }).unwrap();
        (page.rows.len(), page.rest.map(|rest| (rest.contains(key(0).as_bytes()), rest.contains(key(4).as_bytes()))))
    };
    for flushed in [false, true] {
        if flushed {
            flush(&group);
            evict_all(&group);
        }
        // Ten bytes a row.
        assert_eq!(rows(9, 20, false), (2, Some((false, true))));
        assert_eq!(rows(9, 21, false), (3, Some((false, true))));
        assert_eq!(rows(9, 20, true), (2, Some((true, false))));
        assert_eq!(rows(2, 99, false), (2, Some((false, true))));
        assert_eq!(rows(9, 99, false), (5, None));
    }
}

#[test]
fn a_change_is_found_in_keys_without_an_index_too() {
    let (_store, group) = open(&MemoryDisk::new());
    let short = Key::new(b"k");
    let change = |n: u64, at: u64, key: &Key| {
        let write = Write { key: key.clone(), value: None, columns: ColumnMask::ALL };
        let id = TxnId { hlc: Timestamp(at), gateway: NodeId(1) };
        group.apply(position(n), &[Committed { id, at: Timestamp(at), writes: vec![write] }]).unwrap();
    };
    let changed =
        |target: Target, after| group.changed_after(&target, ColumnMask::ALL, Timestamp(after)).unwrap().map(|(_, at)| at.0);
    change(1, 20, &short);
    change(2, 10, &Key::new(b"j"));
    change(3, 15, &key(1));
    assert_eq!((changed(Target::Key(short.clone()), 19), changed(Target::Key(short.clone()), 20)), (Some(20), None));
    let all = KeyRange::new(Key::MIN, Key::new(&[0xFF; 8]));
    assert_eq!((changed(Target::Range(all.clone()), 19), changed(Target::Range(all), 20)), (Some(20), None));
    // A late version does not make its index older than it is.
    change(4, 30, &key(2));
    change(5, 25, &key(1));
    assert_eq!(
        (changed(Target::Key(key(2)), 29), changed(Target::Range(KeyRange::prefix(&[0, 0, 0, 1])), 29)),
        (Some(30), Some(30))
    );
    change(6, 29, &short);
    change(7, 28, &Key::new(b"j"));
    assert_eq!(changed(Target::Key(short), 28), Some(29));
}

fn cached(store: &Store) -> usize {
    store.shared.totals.clean.load(Ordering::Relaxed)
}
/// A store whose cache holds so many bytes, and groups of it.
fn with_cache(bytes: usize, groups: u32) -> (Store, Vec<Arc<GroupStore>>) {
    let options = Options { cache_bytes_max: bytes, ..Options::default() };
    let store = Store::open(Backend::Memory(MemoryDisk::new()), options).unwrap();
    let groups = (1..=groups).map(|id| store.group(GroupId(id)).unwrap()).collect();
    (store, groups)
}

#[test]
fn the_cache_stays_within_its_budget() {
    let rows = |from: u32| (from..from + 200).map(|i| (i, Some("value"))).collect::<Vec<_>>();
    let (store, groups) = with_cache(5_000, 1);
    apply(&groups[0], 1, 10, &rows(0));
    flush(&groups[0]);
    assert!((1..=5_000).contains(&cached(&store)), "after a flush: {}", cached(&store));
    for i in 0..200 {
        assert_eq!(newest(&groups[0], i), Some(10));
        assert!(cached(&store) <= 5_200, "after reads: {}", cached(&store));
    }
    // Two groups of which each has more than its half, and none more than all.
    let (store, groups) = with_cache(30_000, 2);
    for group in &groups {
        apply(group, 1, 10, &rows(0));
        flush(group);
    }
    groups.iter().for_each(|group| flush(group));
    assert!(cached(&store) <= 30_000, "{}", cached(&store));
}

#[test]
fn rows_that_are_read_stay_in_the_cache() {
    let (store, groups) = with_cache(1 << 20, 1);
    let group = &groups[0];
    apply(group, 1, 10, &(0..10).map(|i| (i, Some("value"))).collect::<Vec<_>>());
    flush(group);
    let has = |i: u32| group.inner.read().table.row(key(i).as_bytes()).is_some();
    let hand = || group.inner.write().table.evict(0, 0, &store.shared.totals);
    hand(); // All were new.
    newest(group, 3);
    hand();
    assert_eq!((0..10).filter(|i| has(*i)).collect::<Vec<_>>(), [3]);
    // What is read from the spaces is there again, and is new for one round.
    newest(group, 5);
    assert!(has(5));
    newest(group, 3);
    hand();
    assert!(has(3) && has(5));
    hand();
    assert!(!has(3) && !has(5));
    assert_eq!(cached(&store), 0);
}

#[test]
fn rows_of_an_index_that_is_no_longer_reached_leave_the_cache_and_can_be_read() {
    let (store, groups) = with_cache(1 << 20, 1);
    let group = &groups[0];
    let rows: Vec<_> = (0..200).map(|i| (i, Some("value"))).collect();
    let index = u32::from_be_bytes(key(0).as_bytes()[..4].try_into().unwrap());
    apply(group, 1, 10, &rows);
    group.uncache(&|_| false);
    assert_eq!(group.inner.read().table.len(), 200, "nothing is durable");
    flush(group);
    group.uncache(&|reached| reached == index);
    assert_eq!(group.inner.read().table.len(), 200);
    apply(group, 2, 20, &[(7, Some("new"))]);
    group.uncache(&|_| false);
    assert_eq!(group.inner.read().table.len(), 1, "one is not durable");
    assert!((0..200).all(|i| newest(group, i) == Some(if i == 7 { 20 } else { 10 })));
    assert_eq!(seen(group, 7, 15), Some(10));
    flush(group);
    group.uncache(&|_| false);
    assert_eq!((group.inner.read().table.len(), cached(&store)), (0, 0));
    assert!((0..200).all(|i| newest(group, i) == Some(if i == 7 { 20 } else { 10 })));
}

#[test]
fn rows_behind_one_that_is_read_come_along_while_there_is_room() {
    let rows: Vec<_> = (0..200).map(|i| (i, Some("value"))).collect();
    let read_one = |budget: usize, at: u32| {
        let (store, groups) = with_cache(budget, 1);
        apply(&groups[0], 1, 10, &rows);
        apply(&groups[0], 2, 20, &[(52, None)]);
        flush(&groups[0]);
        while cached(&store) > 0 {
            groups[0].inner.write().table.evict(0, 0, &store.shared.totals);
        }
        assert_eq!(newest(&groups[0], at), Some(10));
        let has = |i: &u32| groups[0].inner.read().table.row(key(*i).as_bytes()).is_some();
        let there: Vec<u32> = (0..200).filter(has).collect();
        // What came along is what the spaces have.
        for i in 0..200 {
            assert_eq!(newest(&groups[0], i), Some(if i == 52 { 20 } else { 10 }));
        }
        there
    };
    assert_eq!(read_one(1 << 20, 50), (50..=82).collect::<Vec<_>>());
    assert_eq!(read_one(1 << 20, 198), [198, 199]);
    assert_eq!(read_one(0, 50), [] as [u32; 0], "there is no room");
}

#[test]
fn what_is_flushed_does_not_keep_the_frame_it_came_in() {
    let (_store, group) = open(&MemoryDisk::new());
    let frame = Bytes::from(vec![7; 1_000]);
    let write = Write { key: key(1), value: Some(frame.slice(10..20)), columns: ColumnMask::ALL };
    let id = TxnId { hlc: Timestamp(10), gateway: NodeId(1) };
    group.apply(position(1), &[Committed { id, at: Timestamp(10), writes: vec![write] }]).unwrap();
    assert!(!frame.is_unique());
    flush(&group);
    assert!(frame.is_unique());
}

#[test]
fn half_of_the_budget_asks_for_a_flush() {
    let (_store, group) = open(&MemoryDisk::new());
    apply(&group, 1, 10, &[(1, Some("value"))]);
    let bytes = group.dirty_bytes();
    for (budget, wants) in [(2 * bytes, true), (2 * bytes + 2, false)] {
        let options = Options { dirty_bytes_max: budget, ..Options::default() };
        let store = Store::open(Backend::Memory(MemoryDisk::new()), options).unwrap();
        let group = store.group(GroupId(7)).unwrap();
        apply(&group, 1, 10, &[(1, Some("value"))]);
        assert_eq!((group.wants_flush(), store.over_budget()), (wants, false));
    }
}

/// The keys that a reader sees from `low` to before `high`, page by page.
fn keys_seen(group: &GroupStore, low: u32, high: u32, at: u64, rows: usize) -> Vec<u32> {
    let mut left = Some(KeyRange::new(key(low), key(high)));
    let mut seen = Vec::new();
    while let Some(range) = left.take() {
        let page = group.scan(&range, Timestamp(at), false, ScanLimits { rows, bytes: usize::MAX }).unwrap();
        let number = |key: &Key| u32::from_be_bytes(key.as_bytes()[4..].try_into().unwrap());
        seen.extend(page.rows.iter().map(|(key, _)| number(key)));
        left = page.rest;
    }
    seen
}

#[test]
fn a_row_that_is_written_while_a_reader_passes_deleted_ones_is_seen_by_later_readers() {
    let (_store, group) = open(&MemoryDisk::new());
    let some: Vec<(u32, Option<&str>)> = (1..20).map(|i| (i, Some("v"))).collect();
    let none: Vec<(u32, Option<&str>)> = (1..18).map(|i| (i, None)).collect();
    apply(&group, 1, 10, &some);
    flush(&group);
    evict_all(&group);
    apply(&group, 2, 20, &none);
    let writer = group.clone();
    let written = meanwhile(&group, Moment::BeforeView, move || {
        apply(&writer, 3, 60, &[(5, Some("w"))]);
    });
    assert_eq!(keys_seen(&group, 0, 30, 50, 100), [18, 19]);
    assert!(written.has_happened());
    assert_eq!(keys_seen(&group, 0, 30, 70, 100), [5, 18, 19]);
    assert_eq!(keys_seen(&group, 0, 30, 15, 100).len(), 19);
    // Now the stretches are noted, and a row cuts one off.
    assert_eq!(group.inner.read().table.dead.end_of(key(3).as_bytes(), Timestamp(70)), Some(key(5)));
    apply(&group, 4, 80, &[(3, Some("x"))]);
    assert_eq!(keys_seen(&group, 0, 30, 90, 1), [3, 5, 18, 19]);
    assert_eq!(keys_seen(&group, 0, 30, 75, 1), [5, 18, 19]);
}

#[test]
fn what_readers_pass_over_is_what_is_not_there() {
    for seed in 0..40_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let (_store, group) = open(&MemoryDisk::new());
        // What each moment has.
        let mut moments: Vec<BTreeSet<u32>> = vec![BTreeSet::new()];
        let (mut head, mut tail) = (0, 0);
        for moment in 1..80_u64 {
            let mut now = moments.last().unwrap().clone();
            let mut writes = Vec::new();
            match random(8) {
                0..4 => {
                    let more = 1 + random(6) as u32;
                    writes.extend((tail..tail + more).map(|i| (i, Some("v"))));
                    tail += more;
                }
                4..7 => {
                    let gone = (1 + random(8) as u32).min(tail - head);
                    writes.extend((head..head + gone).map(|i| (i, None)));
                    head += gone;
                }
                // Anywhere.
                _ => writes.push((random(u64::from(tail) + 3) as u32, (random(2) == 0).then_some("w"))),
            }
            for (i, value) in &writes {
                if value.is_some() { _ = now.insert(*i) } else { _ = now.remove(i) }
            }
            apply(&group, moment, moment * 10, &writes);
            moments.push(now);
            if random(9) == 0 {
                flush(&group);
                if random(2) == 0 {
                    evict_all(&group);
                }
            }
            for _ in 0..random(3) {
                let at = moment - random(3).min(moment);
                let low = random(u64::from(tail) + 2) as u32 / (1 + random(4) as u32);
                let found = keys_seen(&group, low, tail + 5, at * 10 + 5, 1 + random(5) as usize);
                let expected: Vec<u32> = moments[at as usize].range(low..).copied().collect();
                assert_eq!(found, expected, "seed {seed}, moment {moment}, as of {at}, from {low}");
            }
        }
    }
}
