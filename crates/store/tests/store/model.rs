//! What a store should answer: every version that was ever applied, in one map, and a log to
//! replay.

use bytes::Bytes;
use meridian_base::id::{GroupId, LogPosition, NodeId, TxnId};
use meridian_base::invariants;
use meridian_base::key::{Key, KeyRange, Target};
use meridian_base::record::Committed;
use meridian_base::time::Timestamp;
use meridian_base::txn::{ColumnMask, Write};
use meridian_store::{Backend, GroupStore, MemoryDisk, Options, ScanLimits, Store, Version};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

pub const GROUP: GroupId = GroupId(7);

/// Keys that try the order: prefixes of one another, zeros, 0xFF, two indexes, longer than what is
/// inline.
pub fn key(i: usize) -> Key {
    let suffixes: [&[u8]; 10] = [
        b"",
        b"\0",
        b"\0\0",
        b"\0\xFF",
        b"a",
        b"a\0",
        b"ab",
        b"\xFF",
        b"\xFF\xFF",
        b"a-key-that-is-longer-than-what-fits-inline",
    ];
    let index = 1 + (i / suffixes.len()) as u32;
    let mut bytes = index.to_be_bytes().to_vec();
    bytes.extend_from_slice(suffixes[i % suffixes.len()]);
    Key::new(&bytes)
}
pub const KEYS: usize = 20;

pub fn txn(at: u64, writes: Vec<Write>) -> Committed {
    Committed { id: TxnId { hlc: Timestamp(at), gateway: NodeId(1) }, at: Timestamp(at), writes }
}

pub fn put(key: Key, value: &str) -> Write {
    Write { key, value: Some(Bytes::from(value.to_owned())), columns: ColumnMask::ALL }
}

pub fn at(index: u64) -> LogPosition {
    LogPosition { index, term: 1 }
}

#[derive(Clone, Default)]
pub struct Model {
    pub versions: BTreeMap<Key, BTreeMap<Timestamp, Version>>,
    pub log: Vec<Vec<Committed>>,
    pub threshold: Timestamp,
    /// Since when nobody asks for the second index any more.
    pub dropped: Option<Timestamp>,
}

impl Model {
    /// Whether a key is in an index that somebody may ask for.
    pub fn is_reached(&self, key: &Key) -> bool {
        self.dropped.is_none() || key.as_bytes().starts_with(&1u32.to_be_bytes())
    }
    /// What somebody may ask for of a range.
    fn reached(&self, range: &KeyRange) -> KeyRange {
        match self.dropped {
            None => range.clone(),
            Some(_) => {
                let first = KeyRange::prefix(&1u32.to_be_bytes());
                KeyRange::new(range.start.clone().min(first.end.clone()), range.end.clone().min(first.end))
            }
        }
    }
    pub fn apply(&mut self, txns: &[Committed]) {
        for txn in txns {
            for w in &txn.writes {
                let version = Version { at: txn.at, columns: w.columns, value: w.value.clone() };
                self.versions.entry(w.key.clone()).or_default().insert(txn.at, version);
            }
        }
        self.log.push(txns.to_vec());
    }
    /// Adds entries that the log does not have.
    pub fn ingest(&mut self, at: Timestamp, entries: &[(Key, Bytes)]) {
        for (key, value) in entries {
            let version = Version { at, columns: ColumnMask::ALL, value: Some(value.clone()) };
            self.versions.entry(key.clone()).or_default().entry(at).or_insert(version);
        }
    }
    pub fn position(&self) -> LogPosition {
        if self.log.is_empty() { LogPosition::default() } else { at(self.log.len() as u64) }
    }
    pub fn newest_ts(&self) -> Timestamp {
        self.log.iter().flatten().map(|t| t.at).max().unwrap_or(Timestamp::MIN)
    }
    /// Whether the key has a version at this timestamp.
    pub fn has(&self, key: &Key, at: Timestamp) -> bool {
        self.versions.get(key).is_some_and(|v| v.contains_key(&at))
    }
    pub fn get(&self, key: &Key, at: Timestamp) -> Option<Version> {
        self.versions.get(key)?.range(..=at).next_back().map(|(_, v)| v.clone())
    }
    pub fn rows(&self, range: &KeyRange, at: Timestamp, reverse: bool) -> Vec<(Key, Version)> {
        let keys = self.versions.keys().filter(|k| range.contains(k.as_bytes()));
        let mut rows: Vec<_> = keys.filter_map(|k| Some((k.clone(), self.get(k, at).filter(|v| v.value.is_some())?))).collect();
        if reverse {
            rows.reverse();
        }
        rows
    }
    /// Every change that would be a right answer.
    pub fn changes(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> Vec<(Key, Timestamp)> {
        let keys = self.versions.iter().filter(|(k, _)| target.contains(k.as_bytes()));
        keys.flat_map(|(k, v)| v.values().map(move |v| (k, v)))
            .filter(|(_, v)| v.at > after && v.columns.intersects(columns))
            .map(|(k, v)| (k.clone(), v.at))
            .collect()
    }
}

/// A tombstone at or below the threshold may be forgotten: then there is nothing instead.
fn same(expected: Option<Version>, found: Option<Version>, threshold: Timestamp) -> bool {
    match (&expected, &found) {
        (Some(Version { at, value: None, .. }), None) => *at <= threshold,
        _ => expected == found,
    }
}

/// Where the store under test lives.
pub enum Place {
    Memory(MemoryDisk),
    Fjall(tempfile::TempDir),
}

impl Place {
    pub fn memory() -> Place {
        Place::Memory(MemoryDisk::new())
    }
    pub fn fjall() -> Place {
        Place::Fjall(tempfile::tempdir().expect("a temporary folder"))
    }
    pub fn backend(&self) -> Backend {
        match self {
            Place::Memory(disk) => Backend::Memory(disk.clone()),
            Place::Fjall(folder) => Backend::Fjall { path: folder.path().to_owned() },
        }
    }
    pub fn open(&self, options: &Options) -> (Store, Arc<GroupStore>) {
        invariants::look();
        let store = Store::open(self.backend(), options.clone()).expect("the store opens");
        let group = store.group(GROUP).expect("the group opens");
        (store, group)
    }
}

/// Replays what the store does not have.
pub fn replay(group: &GroupStore, model: &Model) {
    let from = group.recovered().map_or(0, |(position, _)| position.index);
    for (i, txns) in model.log.iter().enumerate().skip(from as usize) {
        group.apply(at(i as u64 + 1), txns).expect("a replay");
    }
}

pub fn check_get(group: &GroupStore, model: &Model, key: &Key, at: Timestamp) {
    if !model.is_reached(key) {
        return;
    }
    if at < model.threshold {
        let e = group.get(key.as_bytes(), at).expect_err("a read below the threshold is refused");
        assert_eq!(e.sqlstate(), "72000");
        return;
    }
    let found = group.get(key.as_bytes(), at).expect("a read");
    let expected = model.get(key, at);
    assert!(same(expected.clone(), found.clone(), model.threshold), "{key:?} at {}: {expected:?}, found {found:?}", at.0);
}

/// The same of several keys at once; some are asked for twice, and in no order.
pub fn check_get_many(group: &GroupStore, model: &Model, keys: &[Key], at: Timestamp) {
    let keys: Vec<Key> = keys.iter().filter(|key| model.is_reached(key)).cloned().collect();
    let keys = &keys[..];
    match group.get_many(keys, at) {
        Err(e) => assert!(at < model.threshold && e.sqlstate() == "72000", "{e}"),
        Ok(found) => {
            assert!(at >= model.threshold, "a read below the threshold is refused");
            assert_eq!(found.len(), keys.len());
            for (key, found) in keys.iter().zip(found) {
                let expected = model.get(key, at);
                assert!(same(expected.clone(), found.clone(), model.threshold), "{key:?} at {}: {expected:?}, {found:?}", at.0);
            }
        }
    }
}

pub fn check_scan(group: &GroupStore, model: &Model, range: &KeyRange, at: Timestamp, reverse: bool, limits: ScanLimits) {
    let range = &model.reached(range);
    let mut rows = Vec::new();
    let mut rest = Some(range.clone());
    let mut pages = 0;
    while let Some(range) = rest {
        let page = match group.scan(&range, at, reverse, limits) {
            Ok(page) => page,
            Err(e) => {
                assert!(at < model.threshold && e.sqlstate() == "72000", "{e}");
                return;
            }
        };
        assert!(page.rows.len() <= limits.rows.max(1));
        rows.extend(page.rows);
        rest = page.rest;
        pages += 1;
        assert!(pages < 1_000, "a scan must make progress");
    }
    assert!(at >= model.threshold, "a scan below the threshold is refused");
    let values: Vec<_> = rows.iter().filter_map(|(k, v)| Some((k.clone(), v.at, v.value.clone()?))).collect();
    for is_brief in [false, true] {
        let seen = visited(group, range, at, reverse, limits, is_brief);
        assert_eq!(seen, values, "{range:?} at {} reverse {reverse} {limits:?}, brief {is_brief}", at.0);
    }
    assert_eq!(rows, model.rows(range, at, reverse), "{range:?} at {} reverse {reverse} {limits:?}", at.0);
}

/// The rows of a scan, and when they were written, as a visitor that now and then breaks off sees
/// them.
fn visited(
    group: &GroupStore,
    range: &KeyRange,
    at: Timestamp,
    reverse: bool,
    limits: ScanLimits,
    is_brief: bool,
) -> Vec<(Key, Timestamp, Bytes)> {
    let mut seen = Vec::new();
    let mut left = Some(range.clone());
    while let Some(range) = left {
        left = group
            .visit(&range, at, reverse, limits, is_brief, &mut |key, written, value| {
                seen.push((Key::new(key.as_ref()), written, Bytes::copy_from_slice(value)));
                if seen.len().is_multiple_of(5) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
    }
    seen
}

pub fn check_changed(group: &GroupStore, model: &Model, target: &Target, columns: ColumnMask, after: Timestamp) {
    let target = &match target {
        Target::Key(key) if model.is_reached(key) => target.clone(),
        Target::Key(_) => return,
        Target::Range(range) => Target::Range(model.reached(range)),
    };
    match group.changed_after(target, columns, after) {
        Err(e) => assert!(after < model.threshold && e.sqlstate() == "72000", "{e}"),
        Ok(found) => {
            assert!(after >= model.threshold, "below the threshold the answer is not known");
            let right = model.changes(target, columns, after);
            match found {
                None => assert!(right.is_empty(), "{target:?} {columns:?} after {}: missed {right:?}", after.0),
                Some(found) => {
                    assert!(right.contains(&found), "{target:?} {columns:?} after {}: {found:?} not in {right:?}", after.0)
                }
            }
            for through in right.iter().flat_map(|(_, at)| [at.prev(), *at]) {
                let right: Vec<_> = right.iter().filter(|(_, at)| *at <= through).collect();
                let found = group.changed_between(target, columns, after, through).unwrap();
                assert!(found.is_some() != right.is_empty() && found.iter().all(|f| right.contains(&f)), "through {}", through.0);
            }
        }
    }
}

/// Everything, at every timestamp that makes a difference.
pub fn check_all(group: &GroupStore, model: &Model) {
    assert_eq!(group.applied(), model.position());
    assert_eq!(group.applied_ts(), model.newest_ts());
    assert_eq!(group.gc_threshold(), model.threshold);
    let everything = KeyRange::new(Key::MIN, Key::new(&[0xFF; 40]));
    let written = model.versions.values().flat_map(|versions| versions.keys());
    let mut times: Vec<Timestamp> = written.flat_map(|at| [at.prev(), *at]).collect();
    times.extend([model.threshold.prev(), model.threshold, Timestamp::MAX]);
    times.sort();
    times.dedup();
    for at in times {
        for i in 0..KEYS {
            check_get(group, model, &key(i), at);
            check_changed(group, model, &Target::Key(key(i)), ColumnMask::column(1), at);
        }
        // All, in an order that is not theirs; and few that lie far apart.
        let shuffled: Vec<Key> = (0..KEYS + 3).map(|i| key(i * 7 % KEYS)).collect();
        check_get_many(group, model, &shuffled, at);
        check_get_many(group, model, &shuffled[..KEYS / 2], at);
        check_get_many(group, model, &[key(KEYS - 1), key(0)], at);
        check_scan(group, model, &everything, at, false, ScanLimits::default());
        check_scan(group, model, &everything, at, true, ScanLimits { rows: 3, bytes: 1 << 20 });
        check_changed(group, model, &Target::Range(everything.clone()), ColumnMask::column(0), at);
    }
}
