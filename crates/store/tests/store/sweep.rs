//! Removing indexes that nobody can reach.

use crate::model::*;
use bytes::Bytes;
use meridian_base::key::{Key, KeyRange};
use meridian_base::time::Timestamp;
use meridian_store::{GroupStore, Options, ScanLimits, Swept};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

const ROWS: u32 = 1_500;

fn row_key(index: u32, i: u32) -> Key {
    Key::new(&[index.to_be_bytes(), i.to_be_bytes()].concat())
}

/// Two versions of each row of an index, in a unit of their own.
fn fill(group: &GroupStore, index: u32) {
    for generation in 1..=2 {
        let n = u64::from(2 * index + generation);
        // Nothing that could be compressed away.
        let value = |i: u32| format!("{:x}", u64::from(i).wrapping_mul(0x9E37_79B9_7F4A_7C15)).repeat(20);
        let writes = (0..ROWS).map(|i| put(row_key(index, i), &format!("{generation} {}", value(i)))).collect();
        group.apply(at(n), &[txn(n * 10, writes)]).unwrap();
    }
    group.cut(Bytes::new());
    assert!(group.flush_step().unwrap());
}

fn rows(group: &GroupStore, index: u32, at: u64) -> Vec<Bytes> {
    let limits = ScanLimits { rows: 10_000, bytes: 1 << 30 };
    let page = group.scan(&KeyRange::prefix(&index.to_be_bytes()), Timestamp(at), false, limits).unwrap();
    assert!(page.rest.is_none());
    page.rows.into_iter().filter_map(|(_, v)| v.value).collect()
}

fn is_whole(group: &GroupStore, index: u32, at: u64, generation: char) -> bool {
    let rows = rows(group, index, at);
    rows.len() == ROWS as usize && rows.iter().all(|row| row[0] == generation as u8)
}

fn dead_indexes_go(place: Place) {
    // Nothing is answered from memory.
    let options = Options { cache_bytes_max: 0, ..Options::default() };
    let (store, group) = place.open(&options);
    (1..=4).for_each(|index| fill(&group, index));
    let reached = |index: u32| index != 2 && index != 3;
    let since = Timestamp(1_000);
    assert_eq!(group.sweep(since, &reached, true).unwrap(), Swept::Some, "it may still be read");
    // The rows of the fourth index were replaced at 100: both versions may be read.
    group.collect_garbage(since).unwrap();
    group.apply(at(50), &[txn(900, vec![put(row_key(2, 0), "late")])]).unwrap();
    assert_eq!(group.sweep(since, &reached, true).unwrap(), Swept::Some, "a version is still to be flushed");
    group.cut(Bytes::new());
    group.flush_step().unwrap();

    let export = group.export().unwrap();
    assert_eq!(group.sweep(since, &reached, true).unwrap(), Swept::All(BTreeSet::from([2, 3])));
    assert_eq!(group.sweep(Timestamp(999), &reached, true).unwrap(), Swept::All(BTreeSet::new()));
    group.collect_garbage(Timestamp(1_001)).unwrap();
    assert_eq!(group.sweep(Timestamp(1_001), &reached, true).unwrap(), Swept::All(BTreeSet::new()));
    let check = |group: &GroupStore| {
        for (index, expected) in [(1, true), (2, false), (3, false), (4, true)] {
            assert_eq!(is_whole(group, index, 2_000, '2'), expected, "index {index}");
            assert_eq!(rows(group, index, 2_000).is_empty(), !expected, "index {index}");
        }
    };
    check(&group);
    // What was being read is read to its end.
    let other = Place::memory().open(&Options::default()).1;
    let mut import = other.import().unwrap();
    export.for_each(|chunk| import.chunk(&chunk.unwrap()).unwrap());
    import.finish().unwrap();
    assert!(is_whole(&other, 3, 2_000, '2'));
    // New rows come and go, and a restart brings nothing back.
    fill(&group, 500);
    drop((group, store));
    let (_store, group) = place.open(&options);
    check(&group);
    assert!(is_whole(&group, 500, 20_000, '2'));
}

#[test]
fn dead_indexes_go_and_nothing_else_in_memory() {
    dead_indexes_go(Place::memory());
}

#[test]
fn dead_indexes_go_and_nothing_else_on_disk() {
    dead_indexes_go(Place::fjall());
}

/// The bytes of all files but journals, whose room is taken beforehand.
fn bytes_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let of = |entry: std::fs::DirEntry| match entry.path() {
        path if path.is_dir() => bytes_of(&path),
        path if path.extension().is_some_and(|e| e == "jnl") => 0,
        _ => entry.metadata().map_or(0, |m| m.len()),
    };
    entries.map(of).sum()
}

#[test]
fn a_full_disk_has_room_again_after_a_sweep() {
    let place = Place::fjall();
    let Place::Fjall(folder) = &place else { unreachable!() };
    // Every unit becomes files of its own, past the journal; nothing is answered from memory.
    let options = Options { ingest_rows_min: 1, cache_bytes_max: 0, ..Options::default() };
    let (_store, group) = place.open(&options);
    (1..=2).for_each(|index| fill(&group, index));
    let with_both = bytes_of(folder.path());
    group.collect_garbage(Timestamp(1_000)).unwrap();
    let reached = |index: u32| index != 2;
    assert_eq!(group.sweep(Timestamp(1_000), &reached, false).unwrap(), Swept::All(BTreeSet::from([2])));
    // The files go in the background.
    let with_one = (0..200).map(|_| {
        std::thread::park_timeout(Duration::from_millis(50));
        bytes_of(folder.path())
    });
    let most = with_both * 6 / 10;
    assert!(with_one.into_iter().any(|left| left < most), "{} of {with_both} bytes are left", bytes_of(folder.path()));
    assert!(is_whole(&group, 1, 2_000, '2') && rows(&group, 2, 2_000).is_empty());
}
