//! Random histories.

use crate::model::*;
use bytes::Bytes;
use meridian_base::key::{Key, KeyRange, Target};
use meridian_base::time::Timestamp;
use meridian_base::txn::{ColumnMask, Write};
use meridian_store::{GroupStore, Options, ScanLimits, Store, Swept};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Op {
    /// One log entry: per transaction, the writes (key, column, value or tombstone) and how late
    /// its timestamp is.
    Apply(Vec<(Vec<(usize, u32, Option<u8>)>, Option<u8>)>),
    Cut,
    Flush,
    /// The disk fills up after so many writes; then there is room again.
    FailingFlush(u8),
    /// The node dies; this many of the volatile writes survive.
    Crash(u8),
    CrashInFlush(u8, u8),
    Collect(u8),
    /// Nobody asks for the second index any more.
    DropIndex,
    Sweep(bool),
    Get(usize, u8),
    Scan(usize, usize, u8, bool, usize),
    Changed(usize, Option<usize>, u32, u8),
    /// The group is exported and imported in place.
    Move,
    /// Keys of the second index (key, value) get entries at a time of the past, in one run or in
    /// two.
    Ingest(u8, Vec<(usize, u8)>, bool),
    /// The same breaks off after so many writes, with a crash that keeps some of them.
    CrashInIngest(u8, Vec<(usize, u8)>, u8, u8),
}

fn op() -> impl Strategy<Value = Op> {
    let write = (0..KEYS, 0u32..3, prop::option::weighted(0.75, any::<u8>()));
    let txn = (prop::collection::vec(write, 1..5), prop::option::weighted(0.1, any::<u8>()));
    prop_oneof![
        12 => prop::collection::vec(txn, 0..4).prop_map(Op::Apply),
        5 => Just(Op::Cut),
        5 => Just(Op::Flush),
        1 => any::<u8>().prop_map(Op::FailingFlush),
        1 => any::<u8>().prop_map(Op::Crash),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::CrashInFlush(a, b)),
        2 => any::<u8>().prop_map(Op::Collect),
        1 => prop::bool::weighted(0.2).prop_map(|drops| if drops { Op::DropIndex } else { Op::Sweep(true) }),
        1 => any::<bool>().prop_map(Op::Sweep),
        6 => (0..KEYS, any::<u8>()).prop_map(|(k, t)| Op::Get(k, t)),
        4 => (0..KEYS, 0..KEYS, any::<u8>(), any::<bool>(), 1usize..6).prop_map(|(a, b, t, r, n)| Op::Scan(a, b, t, r, n)),
        6 => (0..KEYS, prop::option::of(0..KEYS), 0u32..3, any::<u8>()).prop_map(|(a, b, c, t)| Op::Changed(a, b, c, t)),
        1 => Just(Op::Move),
        2 => (any::<u8>(), entries(), any::<bool>()).prop_map(|(t, e, halves)| Op::Ingest(t, e, halves)),
        1 => (any::<u8>(), entries(), any::<u8>(), any::<u8>()).prop_map(|(t, e, a, b)| Op::CrashInIngest(t, e, a, b)),
    ]
}

fn entries() -> impl Strategy<Value = Vec<(usize, u8)>> {
    prop::collection::vec((KEYS / 2..KEYS, any::<u8>()), 1..8)
}

fn options() -> impl Strategy<Value = Options> {
    (prop::sample::select(vec![0, 700, 1 << 20]), prop::sample::select(vec![1, 4, usize::MAX]))
        .prop_map(|(cache, ingest)| Options { cache_bytes_max: cache, ingest_rows_min: ingest, ..Options::default() })
}

struct World {
    place: Place,
    options: Options,
    store: Store,
    group: Arc<GroupStore>,
    model: Model,
    clock: u64,
    /// What was ingested since the last flush: it is done again after a crash, as who owes an index
    /// does.
    owed: Vec<(Timestamp, Vec<(Key, Bytes)>)>,
}

impl World {
    fn new(place: Place, options: Options) -> World {
        let (store, group) = place.open(&options);
        World { place, options, store, group, model: Model::default(), clock: 100, owed: Vec::new() }
    }

    /// A timestamp of interest: `fraction` of the way from the threshold (or a bit below) to a bit
    /// above now.
    fn time(&self, fraction: u8) -> Timestamp {
        let low = self.model.threshold.0.max(100).saturating_sub(3);
        Timestamp(low + (self.clock + 3 - low) * u64::from(fraction) / 255)
    }

    fn apply(&mut self, entry: Vec<(Vec<(usize, u32, Option<u8>)>, Option<u8>)>) {
        let mut txns = Vec::new();
        for (writes, late) in entry {
            self.clock += 2;
            let mut at = Timestamp(self.clock);
            if let Some(late) = late {
                // Odd, so that it never equals one given in order; never at or below the threshold.
                let earlier = Timestamp(self.time(late).0 | 1);
                at = earlier.max(Timestamp(self.model.threshold.0 + 1));
            }
            let mut by_key = BTreeMap::new();
            for (k, column, value) in writes {
                if !self.model.is_reached(&key(k)) {
                    continue;
                }
                let value = value.map(|v| Bytes::from(vec![v; 1 + v as usize % 40]));
                let columns = if value.is_some() { ColumnMask::column(column) } else { ColumnMask::ALL };
                by_key.insert(key(k), Write { key: key(k), value, columns });
            }
            by_key
                .retain(|key, _| !self.model.has(key, at) && !txns.iter().any(|t: &meridian_base::record::Committed| t.at == at));
            txns.push(txn(at.0, by_key.into_values().collect()));
        }
        self.model.apply(&txns);
        self.group.apply(self.model.position(), &txns).expect("applying");
    }

    fn cut(&self) {
        self.group.cut(Bytes::from(format!("state at {}", self.model.position())));
    }

    /// Drops the store without a flush, opens it again, and replays.
    fn restart(&mut self) {
        let durable = self.group.durable();
        let elsewhere = Place::memory().open(&Options::default());
        drop(std::mem::replace(&mut self.group, elsewhere.1));
        drop(std::mem::replace(&mut self.store, elsewhere.0));
        (self.store, self.group) = self.place.open(&self.options);
        assert_eq!(self.group.durable(), durable, "what was durable still is");
        if let Some((position, state)) = self.group.recovered() {
            assert_eq!(state, format!("state at {position}"));
        }
        replay(&self.group, &self.model);
        for (at, entries) in &self.owed {
            assert!(self.group.ingest(self.group.incarnation(), *at, entries).expect("an ingestion that is done again"));
        }
    }

    fn flush(&mut self) {
        if self.group.flush_step().expect("flushing") {
            self.owed.clear();
        }
    }

    /// Entries at a time of the past, of which no version is there.
    fn begin_ingest(&mut self, fraction: u8, entries: &[(usize, u8)]) -> (Timestamp, Vec<(Key, Bytes)>) {
        let at = Timestamp(self.time(fraction).0 | 1).max(Timestamp(self.model.threshold.0 + 1)).min(Timestamp(self.clock + 1));
        let value = |v: &u8| Bytes::from(vec![*v; 1 + *v as usize % 40]);
        let entries: BTreeMap<Key, Bytes> = entries.iter().map(|(k, v)| (key(*k), value(v))).collect();
        let is_new = |key: &Key| self.model.is_reached(key) && !self.model.has(key, at);
        let entries: Vec<_> = entries.into_iter().filter(|(key, _)| is_new(key)).collect();
        // Nothing comes later at the same time.
        self.clock = self.clock.max(at.0 + 1);
        self.model.ingest(at, &entries);
        self.owed.push((at, entries.clone()));
        (at, entries)
    }

    fn crash(&mut self, kept: usize) {
        if let Place::Memory(disk) = &self.place {
            disk.crash(kept);
        }
        self.restart();
        check_all(&self.group, &self.model);
    }

    fn failing_flush(&mut self, after: u8) -> usize {
        let Place::Memory(disk) = &self.place else { return 0 };
        disk.fail_writes_after(u64::from(after) % 24);
        let before = self.group.durable();
        match self.group.flush_step() {
            Ok(true) => self.owed.clear(),
            Ok(false) => {}
            Err(_) => assert_eq!(self.group.durable(), before),
        }
        disk.heal();
        disk.volatile_writes()
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Apply(entry) => self.apply(entry),
            Op::Cut => self.cut(),
            Op::Flush => self.flush(),
            Op::FailingFlush(after) => drop(self.failing_flush(after)),
            Op::Crash(kept) => self.crash(kept.into()),
            Op::CrashInFlush(after, kept) => {
                self.cut();
                let volatile = self.failing_flush(after);
                self.crash(volatile * usize::from(kept) / 255);
            }
            Op::Collect(fraction) => {
                let owed = self.owed.iter().map(|(at, _)| at.prev()).min().unwrap_or(Timestamp::MAX);
                let threshold = self.time(fraction).min(Timestamp(self.clock)).min(owed);
                self.group.collect_garbage(threshold).expect("collecting");
                self.model.threshold = threshold.max(self.model.threshold);
            }
            Op::DropIndex => {
                self.clock += 2;
                self.model.dropped.get_or_insert(Timestamp(self.clock));
            }
            Op::Sweep(has_room) => {
                let Some(since) = self.model.dropped else { return };
                let sweep = |since| self.group.sweep(since, &|index| index == 1, has_room).expect("sweeping");
                if let Swept::All(_) = sweep(since) {
                    assert!(self.model.threshold >= since);
                    // A later one finds nothing, if it may look.
                    let again = sweep(Timestamp(since.0 + 1));
                    assert!(matches!(&again, Swept::Some) || again == Swept::All(BTreeSet::new()), "{again:?} is left");
                }
                check_all(&self.group, &self.model);
            }
            Op::Get(k, t) => check_get(&self.group, &self.model, &key(k), self.time(t)),
            Op::Scan(a, b, t, reverse, rows) => {
                let range = KeyRange::new(key(a).min(key(b)), key(a).max(key(b)));
                check_scan(&self.group, &self.model, &range, self.time(t), reverse, ScanLimits { rows, bytes: 60 });
            }
            Op::Changed(a, b, column, t) => {
                let target = match b {
                    None => Target::Key(key(a)),
                    Some(b) => Target::Range(KeyRange::new(key(a).min(key(b)), key(a).max(key(b)))),
                };
                check_changed(&self.group, &self.model, &target, ColumnMask::column(column), self.time(t));
            }
            Op::Move => {
                self.cut();
                self.flush();
                let export = self.group.export().expect("exporting");
                let mut import = self.group.import().expect("importing");
                for chunk in export {
                    import.chunk(&chunk.expect("a chunk")).expect("taking a chunk");
                }
                let (position, state) = import.finish().expect("finishing");
                assert_eq!((position, &state[..]), (self.model.position(), format!("state at {position}").as_bytes()));
                check_all(&self.group, &self.model);
            }
            Op::Ingest(fraction, entries, in_halves) => {
                let (at, entries) = self.begin_ingest(fraction, &entries);
                let incarnation = self.group.incarnation();
                // Each part covers the stretch of the other one.
                let (odd, even): (Vec<_>, Vec<_>) = entries.iter().cloned().enumerate().partition(|(i, _)| i % 2 == 1);
                let part = |of: Vec<(usize, _)>| of.into_iter().map(|(_, entry)| entry).collect();
                let parts: Vec<Vec<(Key, Bytes)>> = if in_halves { vec![part(odd), part(even)] } else { vec![entries] };
                for entries in &parts {
                    assert!(self.group.ingest(incarnation, at, entries).expect("ingesting"));
                }
                check_all(&self.group, &self.model);
                // Once more, one of them with another value.
                let newest = |key: &Key| self.model.versions[key].last_key_value().is_some_and(|(newest, _)| *newest == at);
                if let Some((key, value)) = parts[0].iter().find(|(key, _)| newest(key)) {
                    let other = [(key.clone(), Bytes::from([&value[..], b"!"].concat()))];
                    assert!(!self.group.ingest(incarnation, at, &other).expect("ingesting"), "{key:?} has two values");
                }
                assert!(self.group.ingest(incarnation, at, &parts[0]).expect("ingesting"));
                check_all(&self.group, &self.model);
            }
            Op::CrashInIngest(fraction, entries, after, kept) => {
                let Place::Memory(disk) = &self.place else { return };
                let disk = disk.clone();
                let (at, entries) = self.begin_ingest(fraction, &entries);
                disk.fail_writes_after(u64::from(after) % 12);
                let _ = self.group.ingest(self.group.incarnation(), at, &entries);
                disk.heal();
                self.crash(disk.volatile_writes() * usize::from(kept) / 255);
            }
        }
    }
}

fn run(place: Place, options: Options, ops: Vec<Op>) {
    let mut world = World::new(place, options);
    for op in ops {
        world.step(op);
    }
    check_all(&world.group, &world.model);
    world.cut();
    world.flush();
    assert_eq!(world.group.dirty_bytes(), 0);
    assert_eq!(world.store.dirty_bytes(), 0);
    check_all(&world.group, &world.model);
    world.restart();
    assert_eq!(world.group.durable(), world.model.position(), "nothing to replay after a flush");
    check_all(&world.group, &world.model);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_store_in_memory_answers_as_the_model_does(options in options(), ops in prop::collection::vec(op(), 1..80)) {
        run(Place::memory(), options, ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(20), max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_store_on_disk_answers_as_the_model_does(options in options(), ops in prop::collection::vec(op(), 1..80)) {
        run(Place::fjall(), options, ops);
    }
}

/// A flush fails half-way and what it wrote survives a crash; the replay finds the versions there
/// already. Garbage collection must keep the tombstone above a version that a second replay begins
/// with, or that version is there again.
#[test]
fn what_was_replayed_and_found_may_be_replayed_again() {
    let delete = |k: usize| (k, 0, None);
    let plain = |keys: &[usize]| (keys.iter().map(|k| delete(*k)).collect(), None);
    let late = |keys: &[usize]| (keys.iter().map(|k| delete(*k)).collect(), Some(0));
    let ops = vec![
        Op::Apply(vec![plain(&[0]), plain(&[0]), plain(&[3])]),
        Op::Move,
        Op::Apply(vec![plain(&[0, 0]), plain(&[4]), late(&[4, 3])]),
        Op::Cut,
        Op::FailingFlush(78),
        Op::Apply(vec![plain(&[0]), plain(&[0]), plain(&[0])]),
        Op::Apply(vec![plain(&[0]), plain(&[0]), plain(&[0])]),
        Op::Crash(5),
        Op::Apply(vec![plain(&[0])]),
        Op::Collect(72),
        Op::Crash(0),
    ];
    run(Place::memory(), Options { cache_bytes_max: 0, ingest_rows_min: 1, ..Options::default() }, ops);
}

/// Rows of which some are flushed, some are not, and some are both, as pages of every size from
/// both ends.
#[test]
fn what_is_in_memory_and_what_is_flushed_are_read_as_one() {
    let entry = |keys: &[usize], value: Option<u8>, late: Option<u8>| {
        Op::Apply(vec![(keys.iter().map(|k| (*k, *k as u32 % 3, value)).collect(), late)])
    };
    let all: Vec<usize> = (0..KEYS).collect();
    let mut ops = vec![entry(&all[..12], Some(1), None), entry(&all[4..8], None, None), Op::Cut, Op::Flush];
    ops.extend([entry(&[2, 5, 9, 13, 15], Some(2), None), entry(&[3, 14], None, None), Op::Cut]);
    // Two of one entry, of which the second is older; then what is flushed while a newer unit
    // stands above it.
    ops.push(Op::Apply(vec![(vec![(2, 0, Some(3)), (16, 1, Some(3))], None), (vec![(5, 2, Some(4)), (2, 1, None)], Some(128))]));
    let mut reads = Vec::new();
    for rows in 1..6 {
        for (a, b) in [(0, KEYS - 1), (2, 15), (5, 9)] {
            for time in [0, 100, 180, 255] {
                reads.extend([false, true].map(|reverse| Op::Scan(a, b, time, reverse, rows)));
                reads.extend((0..3).map(|column| Op::Changed(a, Some(b), column, time)));
            }
        }
    }
    ops.extend(reads.clone());
    ops.push(Op::Flush);
    ops.extend(reads.clone());
    ops.extend([entry(&[2, 7, 13], Some(5), Some(200)), Op::Cut, Op::Flush]);
    ops.extend(reads);
    run(Place::memory(), Options { cache_bytes_max: 0, ingest_rows_min: 1, ..Options::default() }, ops);
}

/// Keys among so many others that a walk from the first to the last would look at more than it is
/// to.
#[test]
fn several_keys_are_found_among_few_and_among_many_others() {
    let numbered = |i: u32| Key::new(&[&[0, 0, 0, 1][..], &i.to_be_bytes()].concat());
    let place = Place::memory();
    let (_store, group) = place.open(&Options { cache_bytes_max: 0, ..Options::default() });
    let writes = (0..1_000).map(|i| put(numbered(2 * i), "flushed")).collect();
    group.apply(at(1), &[txn(10, writes)]).unwrap();
    group.cut(Default::default());
    assert!(group.flush_step().unwrap());
    group.apply(at(2), &[txn(20, vec![put(numbered(8), "newer"), put(numbered(9), "new")])]).unwrap();
    for step in [1, 2, 3, 50, 199] {
        let mut keys: Vec<Key> = (0..40).map(|i| numbered(i * step)).rev().collect();
        for time in [9, 10, 19, 20] {
            for _ in 0..2 {
                let one_by_one: Vec<_> = keys.iter().map(|k| group.get(k.as_bytes(), Timestamp(time)).unwrap()).collect();
                assert_eq!(group.get_many(&keys, Timestamp(time)).unwrap(), one_by_one, "every {step}th at {time}");
                keys.reverse();
            }
        }
    }
    assert!(group.get_many(&[], Timestamp(20)).unwrap().is_empty());

    // In order, with a row in the row table at either end or between them only.
    for (low, high) in [(8, 12), (4, 8), (7, 10), (9, 9), (10, 14)] {
        let keys: Vec<Key> = (low..=high).map(numbered).collect();
        let one_by_one: Vec<_> = keys.iter().map(|k| group.get(k.as_bytes(), Timestamp(20)).unwrap()).collect();
        assert_eq!(group.get_many(&keys, Timestamp(20)).unwrap(), one_by_one, "{low} to {high}");
    }
}

#[test]
fn one_page_of_a_scan_over_many_deleted_rows_gives_up_early() {
    let (_store, group) = Place::memory().open(&Options::default());
    let keys: Vec<Key> = (0u32..5_000).map(|i| Key::new(&[&[0, 0, 0, 1], &i.to_be_bytes()[..]].concat())).collect();
    let insert = keys.iter().map(|k| put(k.clone(), "x")).collect();
    let delete = keys.iter().map(|k| Write { key: k.clone(), value: None, columns: ColumnMask::ALL }).collect();
    group.apply(at(1), &[txn(10, insert), txn(20, delete)]).unwrap();
    let all = KeyRange::prefix(&[0, 0, 0, 1]);
    let page = group.scan(&all, Timestamp(20), false, ScanLimits { rows: 1, bytes: 1 << 20 }).unwrap();
    assert!(page.rows.is_empty() && page.rest.is_some_and(|rest| rest.start > all.start));
    assert_eq!(group.scan(&all, Timestamp(15), true, ScanLimits { rows: 2, bytes: 1 << 20 }).unwrap().rows[1].0, keys[4_998]);
}
