//! Moving a group.

use crate::model::*;
use bytes::Bytes;
use meridian_base::id::GroupId;
use meridian_base::key::{Key, KeyRange};
use meridian_base::time::Timestamp;
use meridian_store::{GroupStore, MemoryDisk, Options, ScanLimits};
use std::sync::Arc;

fn big_key(i: u32) -> Key {
    Key::new(&[&[0, 0, 0, 1], &i.to_be_bytes()[..]].concat())
}

/// A few megabytes, with history.
fn fill(group: &GroupStore, generation: u64) {
    let value = "v".repeat(900);
    for batch in 0..4u64 {
        let writes = (0..1_000).map(|i| put(big_key(i), &format!("{value} {generation} {batch}"))).collect();
        let n = generation * 10 + batch;
        group.apply(at(n + 1), &[txn(n + 1, writes)]).unwrap();
    }
    group.cut(Bytes::from(format!("generation {generation}")));
    assert!(group.flush_step().unwrap());
}

fn content(group: &GroupStore, at: u64) -> Vec<(Key, Bytes)> {
    let limits = ScanLimits { rows: 10_000, bytes: 1 << 30 };
    let page = group.scan(&KeyRange::prefix(&[0, 0, 0, 1]), Timestamp(at), false, limits).unwrap();
    assert!(page.rest.is_none());
    page.rows.into_iter().map(|(k, v)| (k, v.value.unwrap())).collect()
}

fn roundtrip(from: Place, to: Place) {
    let options = Options::default();
    let (_from_store, source) = from.open(&options);
    fill(&source, 0);
    let (to_store, target) = to.open(&options);
    fill(&target, 5);

    let export = source.export().unwrap();
    assert_eq!((export.position(), &export.state()[..]), (at(4), &b"generation 0"[..]));
    // Writers go on; the export is as of its cut.
    fill(&source, 1);
    let chunks: Vec<Bytes> = export.map(Result::unwrap).collect();
    let bytes: usize = chunks.iter().map(Bytes::len).sum();
    let full = 900 << 10;
    assert!(chunks.len() > 4 && chunks.iter().all(|c| c.len() <= 1 << 20), "{}", chunks.len());
    assert!(chunks.len() <= 4 + bytes / full, "{} chunks of {bytes} bytes are not full", chunks.len());

    let mut import = target.import().unwrap();
    for (i, chunk) in chunks.iter().enumerate() {
        assert!(import.chunk(&chunks[(i + 2).min(chunks.len())..].concat()).is_err(), "a gap or nonsense is refused");
        import.chunk(chunk).unwrap();
        import.chunk(chunk).expect("a repeated chunk is ignored");
        assert_eq!(import.chunks_taken(), i as u64 + 1);
        assert!(content(&target, 60)[0].1.ends_with(b" 5 3"), "nothing is seen before the end");
    }
    assert!(import.is_complete());
    assert_eq!(import.finish().unwrap(), (at(4), Bytes::from("generation 0")));
    let check = |group: &GroupStore| {
        assert_eq!(group.recovered(), Some((at(4), Bytes::from("generation 0"))));
        assert_eq!((group.applied(), group.applied_ts()), (at(4), Timestamp(4)));
        for batch in 0..4 {
            let rows = content(group, batch + 1);
            assert!(rows.len() == 1_000 && rows.iter().all(|(_, v)| v.ends_with(format!(" 0 {batch}").as_bytes())));
        }
        assert!(content(group, 0).is_empty());
    };
    check(&target);
    // It goes on from there, and outlives a restart.
    drop((target, to_store));
    let (store, target) = to.open(&options);
    check(&target);
    fill(&target, 1);
    drop((target, store));
    assert!(content(&to.open(&options).1, 20)[0].1.ends_with(b" 1 3"));
}

#[test]
fn a_group_moves_from_memory_to_memory() {
    roundtrip(Place::memory(), Place::memory());
}

#[test]
fn a_group_moves_from_disk_to_disk() {
    roundtrip(Place::fjall(), Place::fjall());
}

#[test]
fn an_interrupted_import_leaves_the_old_content_and_no_garbage() {
    for place in [Place::memory(), Place::fjall()] {
        let options = Options::default();
        let (_source_store, source) = Place::memory().open(&options);
        fill(&source, 0);
        let chunks = chunks(&source);

        let (store, target) = place.open(&options);
        fill(&target, 5);
        let mut dropped = target.import().unwrap();
        let mut crashed = target.import().unwrap();
        for chunk in &chunks[..chunks.len() - 1] {
            dropped.chunk(chunk).unwrap();
            crashed.chunk(chunk).unwrap();
        }
        assert!(dropped.finish().is_err(), "it is not complete");
        std::mem::forget(crashed); // The node dies: nothing is cleaned up.
        assert!(content(&target, 60)[0].1.ends_with(b" 5 3"));
        if let Place::Memory(disk) = &place {
            disk.crash(usize::MAX);
            drop((store, target));
            let (_store, target) = place.open(&options);
            assert!(content(&target, 60)[0].1.ends_with(b" 5 3"));
            assert_eq!(target.durable(), at(54));
        }
    }
}

#[test]
fn a_snapshot_of_another_group_or_of_nothing_is_refused() {
    let (store, group) = Place::memory().open(&Options::default());
    assert!(group.export().is_err(), "nothing is flushed yet");
    fill(&group, 0);
    let other = store.group(GroupId(8)).unwrap();
    let chunks = chunks(&group);
    let mut import = other.import().unwrap();
    assert!(import.chunk(&chunks[0]).unwrap_err().message().contains("g7"));
    assert!(import.chunk(&chunks[1]).is_err(), "the head comes first");
}

/// Key 1 has a version from each of these entries: 10, 20, 30 and so on.
fn versions(group: &GroupStore, entries: std::ops::RangeInclusive<u64>) {
    for n in entries {
        group.apply(at(n), &[txn(n * 10, vec![put(key(1), &format!("value {n}"))])]).unwrap();
    }
}
fn flush(group: &GroupStore) {
    group.cut(Bytes::new());
    assert!(group.flush_step().unwrap());
}
fn take_in(target: &Arc<GroupStore>, chunks: impl IntoIterator<Item = Bytes>) {
    let mut import = target.import().unwrap();
    chunks.into_iter().for_each(|chunk| import.chunk(&chunk).unwrap());
    import.finish().unwrap();
}
fn chunks(source: &Arc<GroupStore>) -> Vec<Bytes> {
    source.export().unwrap().map(Result::unwrap).collect()
}
/// Writes what is cut, except for the record that says so, and dies: newer versions are in the
/// spaces than the record knows.
fn break_off(disk: &MemoryDisk, group: &GroupStore) {
    disk.fail_writes_after(4); // The bound, two versions of history, the current one.
    assert!(group.flush_step().is_err());
    disk.heal();
}

#[test]
fn a_snapshot_brings_its_threshold_of_garbage_collection() {
    for place in [Place::memory(), Place::fjall()] {
        let (_source_store, source) = Place::memory().open(&Options::default());
        versions(&source, 1..=3);
        flush(&source);
        source.collect_garbage(Timestamp(22)).unwrap();
        let mut export = source.export().unwrap();
        let mut sent = vec![export.next().unwrap().unwrap()];
        // Collection goes on; what is read from now on lacks what it took.
        source.collect_garbage(Timestamp(25)).unwrap();
        sent.extend(export.map(Result::unwrap));
        let check = |group: &GroupStore, threshold: u64| {
            assert_eq!(group.gc_threshold(), Timestamp(threshold));
            let key = key(1);
            assert_eq!(group.get(key.as_bytes(), Timestamp(threshold - 1)).unwrap_err().sqlstate(), "72000");
            assert_eq!(group.get(key.as_bytes(), Timestamp(threshold)).unwrap().unwrap().at.0, threshold / 10 * 10);
            assert_eq!(group.newest(key.as_bytes()).unwrap().unwrap().at, Timestamp(30));
        };
        let (store, target) = place.open(&Options::default());
        take_in(&target, sent.clone());
        check(&target, 25);
        drop((target, store));
        let (store, target) = place.open(&Options::default());
        check(&target, 25);
        // One that is higher already stays.
        target.collect_garbage(Timestamp(30)).unwrap();
        take_in(&target, sent);
        check(&target, 30);
        drop((target, store));
        check(&place.open(&Options::default()).1, 30);
    }
}

/// After a flush that broke off, what is exported has versions above its position. Whoever replays
/// the log from there must not take the replayed ones for the newest.
#[test]
fn a_snapshot_says_how_new_its_versions_may_be() {
    for restart in [false, true] {
        let from = Place::memory();
        let Place::Memory(disk) = &from else { unreachable!() };
        let (_source_store, source) = from.open(&Options::default());
        versions(&source, 1..=1);
        flush(&source);
        versions(&source, 2..=3);
        source.cut(Bytes::new());
        break_off(disk, &source);

        let to = Place::memory();
        let (store, target) = to.open(&Options::default());
        take_in(&target, chunks(&source));
        let (_store, target) = match restart {
            true => {
                drop((target, store));
                to.open(&Options::default())
            }
            false => (store, target),
        };
        assert_eq!((target.durable(), target.applied_ts()), (at(1), Timestamp(10)));
        for n in 2..=3 {
            versions(&target, n..=n);
            let found = target.get(key(1).as_bytes(), Timestamp(n * 10)).unwrap();
            assert_eq!(found.map(|v| v.at), Some(Timestamp(n * 10)));
        }
        flush(&target);
        assert_eq!(target.newest(key(1).as_bytes()).unwrap().unwrap().at, Timestamp(30));
    }
}

#[test]
fn a_group_that_was_newer_than_its_snapshot_begins_anew() {
    let (_source_store, source) = Place::memory().open(&Options::default());
    versions(&source, 1..=1);
    flush(&source);
    let place = Place::memory();
    let Place::Memory(disk) = &place else { unreachable!() };
    let (store, target) = place.open(&Options::default());
    versions(&target, 1..=5);
    flush(&target);
    versions(&target, 6..=7);
    target.cut(Bytes::new());
    take_in(&target, chunks(&source));
    assert_eq!((store.dirty_bytes(), target.flush_step().unwrap()), (0, false), "what was cut before is no part of it");
    assert_eq!((target.applied(), target.applied_ts(), target.durable()), (at(1), Timestamp(10), at(1)));
    // The next flush breaks off, and what it wrote survives: the replay finds it.
    versions(&target, 2..=3);
    target.cut(Bytes::new());
    break_off(disk, &target);
    disk.crash(usize::MAX);
    let (_store, target) = place.open(&Options::default());
    for n in 2..=3 {
        versions(&target, n..=n);
        assert_eq!(target.newest(key(1).as_bytes()).unwrap().unwrap().at, Timestamp(30));
    }
}

#[test]
fn a_snapshot_may_be_taken_in_again_and_again() {
    for place in [Place::memory(), Place::fjall()] {
        let (_source_store, source) = Place::memory().open(&Options::default());
        let (store, target) = place.open(&Options::default());
        for n in 1..=4 {
            versions(&source, n..=n);
            flush(&source);
            take_in(&target, chunks(&source));
            versions(&target, n + 1..=n + 1);
            flush(&target);
            assert_eq!(target.durable(), at(n + 1));
        }
        drop((target, store));
        let (_store, target) = place.open(&Options::default());
        assert_eq!(target.durable(), at(5));
        (1..=5).for_each(|n| assert_eq!(target.get(key(1).as_bytes(), Timestamp(n * 10)).unwrap().unwrap().at.0, n * 10));
    }
}

#[test]
fn nothing_is_taken_after_the_last_chunk_and_no_second_head() {
    let (_store, group) = Place::memory().open(&Options::default());
    versions(&group, 1..=1);
    flush(&group);
    let chunks = chunks(&group);
    assert_eq!(chunks.len(), 4, "the head, two spaces, the tail");
    // Chunks of an export of more of them follow: they have the right numbers.
    fill(&group, 3);
    let longer = self::chunks(&group);
    let mut import = group.import().unwrap();
    chunks.iter().for_each(|chunk| import.chunk(chunk).unwrap());
    assert!(import.is_complete());
    assert!(import.chunk(&longer[4]).is_err());
    assert_eq!(import.chunks_taken(), 4);
    let mut import = group.import().unwrap();
    assert!(!import.is_complete());
    import.chunk(&chunks[0]).unwrap();
    assert!(import.chunk(&chunks[2]).is_err(), "a gap");
    chunks.iter().for_each(|chunk| import.chunk(chunk).unwrap());
    import.finish().unwrap();
    assert_eq!(group.newest(key(1).as_bytes()).unwrap().unwrap().at, Timestamp(10));
}
