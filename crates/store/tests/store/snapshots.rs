//! Moving a group.

use crate::model::*;
use bytes::Bytes;
use meridian_base::id::GroupId;
use meridian_base::key::{Key, KeyRange};
use meridian_base::time::Timestamp;
use meridian_store::{GroupStore, Options, ScanLimits};

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
    assert!(chunks.len() > 4 && chunks.iter().all(|c| c.len() <= 1 << 20), "{}", chunks.len());

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
        let chunks: Vec<Bytes> = source.export().unwrap().map(Result::unwrap).collect();

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
    let chunks: Vec<Bytes> = group.export().unwrap().map(Result::unwrap).collect();
    let mut import = other.import().unwrap();
    assert!(import.chunk(&chunks[0]).unwrap_err().message().contains("g7"));
    assert!(import.chunk(&chunks[1]).is_err(), "the head comes first");
}
