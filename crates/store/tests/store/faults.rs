//! Versions of other programs, damage, dropped groups, full disks.

use crate::model::*;
use bytes::Bytes;
use meridian_base::error::{Error, ErrorKind};
use meridian_base::id::GroupId;
use meridian_base::time::Timestamp;
use meridian_store::{GroupStore, Options, Store};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

fn write_some(group: &GroupStore) {
    for n in 1..=3u64 {
        let writes = (0..KEYS).map(|i| put(key(i), &format!("value {n} of {i} {}", "x".repeat(200)))).collect();
        group.apply(at(n), &[txn(n * 10, writes)]).unwrap();
    }
    group.cut(Bytes::from_static(b"state"));
    assert!(group.flush_step().unwrap());
}

#[test]
fn a_folder_of_a_newer_version_is_refused_by_name() {
    let place = Place::fjall();
    drop(place.open(&Options::default()));
    let Place::Fjall(folder) = &place else { unreachable!() };
    let marker = folder.path().join("meridian-store");
    std::fs::write(&marker, "format 2\n").unwrap();
    let Err(e) = Store::open(place.backend(), Options::default()) else { panic!("a newer format was opened") };
    assert_eq!(e.kind(), ErrorKind::Fatal);
    assert!(e.message().contains("newer") && e.message().contains(folder.path().to_str().unwrap()), "{e}");

    std::fs::write(&marker, "nonsense").unwrap();
    assert!(Store::open(place.backend(), Options::default()).is_err());
    std::fs::remove_file(&marker).unwrap();
    let Err(e) = Store::open(place.backend(), Options::default()) else { panic!("a folder without a marker was opened") };
    assert!(e.message().contains("missing"), "{e}");
}

#[test]
fn two_stores_cannot_have_one_folder() {
    let place = Place::fjall();
    let (_store, _group) = place.open(&Options::default());
    let Err(e) = Store::open(place.backend(), Options::default()) else { panic!("a folder was opened twice") };
    assert!(e.message().contains("in use"), "{e}");
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
    into.sort();
}

/// A store on disk that was opened, written and flushed so often, and its files.
fn written(options: &Options, times: usize) -> (Place, Vec<PathBuf>) {
    let place = Place::fjall();
    for _ in 0..times {
        let (store, group) = place.open(options);
        write_some(&group);
        drop((store, group));
    }
    let Place::Fjall(folder) = &place else { unreachable!() };
    let mut all = Vec::new();
    files(&folder.path().join("data").join("keyspaces"), &mut all);
    (place, all)
}

/// Whatever bytes of whatever sorted file are flipped: an error that names the place, or the right
/// answer; never a wrong one.
#[test]
fn a_damaged_file_is_noticed_and_named() {
    let options = Options { cache_bytes_max: 0, ingest_rows_min: 1, ..Options::default() };
    let (place, all) = written(&options, 1);
    let Place::Fjall(folder) = &place else { unreachable!() };
    let tables: Vec<PathBuf> = all.into_iter().filter(|p| p.parent().is_some_and(|p| p.ends_with("tables"))).collect();
    assert!(!tables.is_empty());
    let (mut noticed, mut refused) = (0, 0);
    for file in &tables {
        let good = std::fs::read(file).unwrap();
        let mut bad = good.clone();
        for byte in bad.iter_mut().skip(40).take(60) {
            *byte ^= 0x55;
        }
        std::fs::write(file, &bad).unwrap();
        match Store::open(place.backend(), options.clone()).and_then(|store| Ok((store.group(GROUP)?, store))) {
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Fatal);
                assert!(e.message().contains(folder.path().to_str().unwrap()), "{e}");
                noticed += 1;
            }
            Ok((group, _store)) => {
                for i in 0..KEYS {
                    for t in [10, 25, 30] {
                        match group.get(key(i).as_bytes(), Timestamp(t)) {
                            Err(e) => {
                                assert_eq!(e.kind(), ErrorKind::Fatal);
                                assert!(e.message().contains(folder.path().to_str().unwrap()), "{e}");
                                noticed += 1;
                            }
                            Ok(found) => {
                                assert!(
                                    found.unwrap().value.unwrap().starts_with(format!("value {} of {i} ", t / 10).as_bytes())
                                );
                            }
                        }
                    }
                }
            }
        }
        std::fs::write(file, &good).unwrap();
        // The next start refuses the damaged files, unless an operator removes the mark.
        let mark = folder.path().join("damaged");
        if mark.exists() {
            let Err(e) = Store::open(place.backend(), options.clone()) else { panic!("started over a damaged store") };
            assert!(e.kind() == ErrorKind::Fatal && e.get_hint().is_some_and(|h| h.contains(mark.to_str().unwrap())), "{e}");
            std::fs::remove_file(mark).unwrap();
            refused += 1;
        }
    }
    assert!(noticed > 0 && refused > 0, "some damage must have been in what was read");
    assert!(place.open(&options).1.get(key(0).as_bytes(), Timestamp(30)).unwrap().is_some());
}

/// Whatever bit of the files that say which files there are: refused by name. What was written is
/// opened.
#[test]
fn a_damaged_list_of_files_is_refused_by_name() {
    let options = Options { cache_bytes_max: 0, ingest_rows_min: 1, ..Options::default() };
    let (place, all) = written(&options, 3);
    let currents: Vec<PathBuf> = all.into_iter().filter(|p| p.ends_with("current")).collect();
    assert!(currents.len() > 2, "{currents:?}");
    for current in &currents {
        let good = std::fs::read(current).unwrap();
        let list = current.with_file_name(format!("v{}", u64::from_le_bytes(good[..8].try_into().unwrap())));
        for file in [current, &list] {
            let good = std::fs::read(file).unwrap();
            for bit in (0..good.len() * 8).step_by(7) {
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                std::fs::write(file, &bad).unwrap();
                let Err(e) = Store::open(place.backend(), options.clone()) else {
                    panic!("bit {bit} of {file:?} was not noticed")
                };
                assert!(e.kind() == ErrorKind::Fatal && e.message().contains(current.to_str().unwrap()), "{e}");
            }
            std::fs::write(file, &good[..good.len() - 1]).unwrap();
            assert!(Store::open(place.backend(), options.clone()).is_err());
            std::fs::write(file, &good).unwrap();
        }
    }
    assert!(place.open(&options).1.get(key(0).as_bytes(), Timestamp(30)).unwrap().is_some());
}

/// fjall deletes a keyspace without a list of files as one that was never finished.
#[test]
fn a_missing_list_of_files_is_not_an_empty_store() {
    let options = Options { cache_bytes_max: 0, ingest_rows_min: 1, ..Options::default() };
    let refused = |lost: usize| {
        let (place, all) = written(&options, 1);
        let Place::Fjall(folder) = &place else { unreachable!() };
        let mut currents: Vec<PathBuf> = all.into_iter().filter(|p| p.ends_with("current")).collect();
        currents.sort();
        std::fs::remove_file(&currents[lost]).unwrap();
        let Err(e) = Store::open(place.backend(), options.clone()) else { panic!("{:?} was not missed", currents[lost]) };
        assert!(e.kind() == ErrorKind::Fatal && e.message().contains(folder.path().to_str().unwrap()), "{e}");
        currents.len()
    };
    assert_eq!(refused(0), 4, "names, records, and two of the group");
    (1..4).for_each(|lost| assert_eq!(refused(lost), 4));
}

#[test]
fn a_simulated_bad_block_or_full_disk_is_an_error_and_loses_nothing() {
    let place = Place::memory();
    let Place::Memory(disk) = &place else { unreachable!() };
    let (store, group) = place.open(&Options { cache_bytes_max: 0, ..Options::default() });
    write_some(&group);
    let told: Arc<Mutex<Vec<Error>>> = Arc::default();
    store.on_damage({
        let told = told.clone();
        move |e| told.lock().unwrap().push(e)
    });
    disk.fail_reads();
    assert!(told.lock().unwrap().is_empty());
    assert_eq!(group.get(key(1).as_bytes(), Timestamp(10)).unwrap_err().kind(), ErrorKind::Fatal);
    assert!(group.get(key(1).as_bytes(), Timestamp(10)).is_err());
    assert_eq!(told.lock().unwrap().len(), 1, "the node hears of the first damage, and ends");
    disk.heal();
    group.apply(at(4), &[txn(40, vec![put(key(1), "new")])]).unwrap();
    group.cut(Bytes::new());
    disk.fail_writes_after(1);
    assert!(group.flush_step().is_err());
    assert_eq!((group.durable(), store.dirty_bytes() > 0), (at(3), true));
    disk.heal();
    assert!(group.flush_step().unwrap());
    assert_eq!((group.durable(), store.dirty_bytes()), (at(4), 0));
}

/// After a crash in the middle of a flush the store may have versions newer than what is being
/// replayed.
#[test]
fn a_replay_does_not_hide_newer_versions_that_a_broken_flush_left() {
    let place = Place::memory();
    let Place::Memory(disk) = &place else { unreachable!() };
    let (_store, group) = place.open(&Options::default());
    let entry = |n: u64| [txn(n * 10, vec![put(key(1), &format!("value {n}"))])];
    group.apply(at(1), &entry(1)).unwrap();
    group.cut(Bytes::new());
    group.flush_step().unwrap();
    for n in 2..=3 {
        group.apply(at(n), &entry(n)).unwrap();
    }
    group.cut(Bytes::new());
    // The bound, two versions of history, the current one; not the record.
    disk.fail_writes_after(4);
    assert!(group.flush_step().is_err());
    assert_eq!(disk.volatile_writes(), 3);
    disk.heal();
    disk.crash(3);
    let (_store, group) = place.open(&Options::default());
    assert_eq!(group.durable(), at(1));
    for n in 2..=3 {
        group.apply(at(n), &entry(n)).unwrap();
        let found = group.get(key(1).as_bytes(), Timestamp(n * 10)).unwrap();
        assert_eq!(found.map(|v| v.at), Some(Timestamp(n * 10)));
    }
}

#[test]
fn a_dropped_group_is_gone_also_after_a_restart() {
    for place in [Place::memory(), Place::fjall()] {
        let (store, group) = place.open(&Options::default());
        write_some(&group);
        let other = store.group(GroupId(8)).unwrap();
        write_some(&other);
        other.collect_garbage(Timestamp(25)).unwrap();
        store.drop_group(GroupId(8)).unwrap();
        other.cut(Bytes::new());
        assert!(other.flush_step().is_err(), "a handle cannot bring it back");
        assert_eq!(store.groups(), [GROUP]);
        let again = store.group(GroupId(8)).unwrap();
        assert_eq!((again.recovered(), again.newest(key(0).as_bytes()).unwrap()), (None, None));
        assert_eq!(again.gc_threshold(), Timestamp::MIN);
        drop((again, other, group, store));
        let (store, group) = place.open(&Options::default());
        assert_eq!(store.groups(), [GROUP]);
        assert_eq!(group.get(key(3).as_bytes(), Timestamp(20)).unwrap().unwrap().at, Timestamp(20));
    }
}

#[test]
fn memory_pressure_asks_for_a_flush_and_then_stops_commits() {
    let (store, group) = Place::memory().open(&Options { dirty_bytes_max: 4_000, ..Options::default() });
    let idle = store.group(GroupId(8)).unwrap();
    let mut n = 0;
    while !group.wants_flush() {
        assert!(!store.over_budget());
        n += 1;
        group.apply(at(n), &[txn(n, vec![put(key(n as usize % KEYS), "0123456789")])]).unwrap();
    }
    assert!((2_000..2_300).contains(&store.dirty_bytes()), "{}", store.dirty_bytes());
    assert!(!idle.wants_flush(), "it has nothing to flush");
    while !store.over_budget() {
        n += 1;
        group.apply(at(n), &[txn(n, vec![put(key(n as usize % KEYS), "0123456789")])]).unwrap();
    }
    group.cut(Bytes::new());
    group.flush_step().unwrap();
    assert!(!store.over_budget() && !group.wants_flush());
}

#[test]
fn a_handle_of_a_dropped_group_does_nothing_to_its_successor() {
    for place in [Place::memory(), Place::fjall()] {
        let (store, source) = place.open(&Options::default());
        write_some(&source);
        let old = store.group(GroupId(8)).unwrap();
        write_some(&old);
        let chunks: Vec<Bytes> = old.export().unwrap().map(Result::unwrap).collect();
        let mut begun = old.import().unwrap();
        begun.chunk(&chunks[0]).unwrap();
        store.drop_group(GroupId(8)).unwrap();

        let new = store.group(GroupId(8)).unwrap();
        write_some(&new);
        let mut import = new.import().unwrap();
        import.chunk(&chunks[0]).unwrap();
        assert!(begun.chunk(&chunks[1]).is_err());
        drop(begun);
        assert!(old.import().is_err() && old.export().is_err());
        assert!(old.collect_garbage(Timestamp(25)).is_err());
        assert_eq!(new.gc_threshold(), Timestamp::MIN);
        chunks[1..].iter().for_each(|chunk| import.chunk(chunk).unwrap());
        import.finish().unwrap();
        drop((source, old, new, store));
        let (store, _) = place.open(&Options::default());
        let new = store.group(GroupId(8)).unwrap();
        assert_eq!(new.gc_threshold(), Timestamp::MIN);
        for i in 0..KEYS {
            assert_eq!(new.get(key(i).as_bytes(), Timestamp(20)).unwrap().unwrap().at, Timestamp(20));
        }
    }
}

#[test]
fn a_group_that_was_dropped_half_way_is_empty_when_it_is_made_again() {
    let place = Place::memory();
    let Place::Memory(disk) = &place else { unreachable!() };
    let (store, group) = place.open(&Options::default());
    write_some(&group);
    disk.fail_writes_after(1); // The records go, the rows stay.
    assert!(store.drop_group(GROUP).is_err());
    disk.heal();
    let group = store.group(GROUP).unwrap();
    assert_eq!((group.recovered(), group.newest(key(0).as_bytes()).unwrap()), (None, None));
}

#[test]
fn what_was_dropped_takes_no_room() {
    let (store, group) = Place::memory().open(&Options::default());
    write_some(&group);
    group.apply(at(4), &[txn(40, vec![put(key(1), "dirty")])]).unwrap();
    assert!(store.dirty_bytes() > 0);
    store.drop_group(GROUP).unwrap();
    assert_eq!((store.dirty_bytes(), group.dirty_bytes()), (0, 0));
}
