//! The simulator's disk: deterministic, without threads, with faults.
//!
//! Writes are volatile until the next durable record, as on a real disk: a crash undoes them, or
//! keeps a first part of them. A crash also takes the disk away from the stores that were using it,
//! so that a task of the dead node that still runs cannot write into the life of its successor.

use crate::backend::{Disk, RawRange, Sink, Space, Spaces, SpacesId, View, Visit};
use crate::codec::{self, Collectable};
use bytes::Bytes;
use meridian_base::error::{Error, Result};
use meridian_base::id::GroupId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A disk in memory. Clones are the same disk; it outlives the stores opened on it.
#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<Platter>>);

impl fmt::Debug for MemoryDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryDisk")
    }
}

type Map = BTreeMap<Vec<u8>, Bytes>;

#[derive(Default)]
struct Platter {
    records: Map,
    /// Copied on write while a view is open.
    spaces: BTreeMap<SpacesId, [Arc<Map>; 2]>,
    /// The last pair of each group, which handles that are left may go on reading.
    dropped: BTreeMap<SpacesId, [Arc<Map>; 2]>,
    /// How to undo the writes since the last durable record, oldest first.
    volatile: Vec<Undo>,
    /// Counts openings and crashes; a store of an earlier one is refused.
    owner: u64,
    writes_left: Option<u64>,
    reads_fail: bool,
    rows_fail: bool,
}

#[derive(Clone)]
struct Undo {
    id: SpacesId,
    space: Space,
    key: Vec<u8>,
    before: Option<Bytes>,
}

impl Platter {
    fn check(&self, owner: u64) -> Result<()> {
        if self.owner == owner { Ok(()) } else { Err(Error::fatal("the simulated disk belongs to a later start of the node")) }
    }
    fn pair(&self, id: SpacesId) -> Option<&[Arc<Map>; 2]> {
        self.spaces.get(&id).or_else(|| self.dropped.get(&id))
    }
    fn check_read(&self, owner: u64) -> Result<()> {
        self.check(owner)?;
        if self.reads_fail { Err(codec::damaged("the simulated disk", "checksum mismatch")) } else { Ok(()) }
    }
    fn check_row(&self, owner: u64) -> Result<()> {
        self.check_read(owner)?;
        if self.rows_fail { Err(codec::damaged("the simulated disk", "checksum mismatch")) } else { Ok(()) }
    }
    fn check_write(&mut self, owner: u64) -> Result<()> {
        self.check(owner)?;
        match &mut self.writes_left {
            Some(0) => Err(Error::fatal("the simulated disk is full")),
            Some(n) => {
                *n -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
    fn map(&mut self, id: SpacesId, space: Space) -> Result<&mut Map> {
        match self.spaces.get_mut(&id) {
            Some(pair) => Ok(Arc::make_mut(&mut pair[space as usize])),
            None => Err(Error::fatal(format!("spaces {id} are gone from the simulated disk"))),
        }
    }
}

impl MemoryDisk {
    /// An empty disk.
    pub fn new() -> MemoryDisk {
        MemoryDisk::default()
    }
    /// The node that used this disk died: what was written and not yet made durable is undone,
    /// except the first `writes_kept` writes, which happened to reach the platter. Stores opened
    /// before can no longer use the disk.
    pub fn crash(&self, writes_kept: usize) {
        let mut p = self.0.lock();
        p.owner += 1;
        let kept = writes_kept.min(p.volatile.len());
        for undo in p.volatile.split_off(kept).into_iter().rev() {
            // A pair that was dropped meanwhile needs no undoing.
            let Ok(map) = p.map(undo.id, undo.space) else { continue };
            match undo.before {
                Some(value) => map.insert(undo.key, value),
                None => map.remove(&undo.key),
            };
        }
        p.volatile.clear();
    }
    /// A disk of its own with what is durable on this one now.
    pub fn durable_copy(&self) -> MemoryDisk {
        let p = self.0.lock();
        let copy = Platter {
            records: p.records.clone(),
            spaces: p.spaces.clone(),
            volatile: p.volatile.clone(),
            owner: p.owner,
            ..Platter::default()
        };
        let copy = MemoryDisk(Arc::new(Mutex::new(copy)));
        copy.crash(0);
        copy
    }
    /// How many writes a crash would undo now.
    pub fn volatile_writes(&self) -> usize {
        self.0.lock().volatile.len()
    }
    /// The next `writes` writes succeed and every one after them fails, until [`MemoryDisk::heal`]:
    /// a full disk.
    pub fn fail_writes_after(&self, writes: u64) {
        self.0.lock().writes_left = Some(writes);
    }
    /// Every read fails until [`MemoryDisk::heal`]: a damaged block.
    pub fn fail_reads(&self) {
        self.0.lock().reads_fail = true;
    }
    /// The same for rows alone: what a start reads is well.
    pub fn fail_rows(&self) {
        self.0.lock().rows_fail = true;
    }
    /// Ends the faults.
    pub fn heal(&self) {
        let mut p = self.0.lock();
        p.writes_left = None;
        p.reads_fail = false;
        p.rows_fail = false;
    }

    /// Takes the disk over for a new store.
    pub(crate) fn open(&self) -> Arc<dyn Disk> {
        let mut p = self.0.lock();
        p.owner += 1;
        Arc::new(Opened { platter: self.0.clone(), owner: p.owner })
    }
}

struct Opened {
    platter: Arc<Mutex<Platter>>,
    owner: u64,
}

impl Disk for Opened {
    fn records(&self) -> Result<BTreeMap<Vec<u8>, Bytes>> {
        let p = self.platter.lock();
        p.check_read(self.owner)?;
        Ok(p.records.clone())
    }
    fn put_records(&self, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()> {
        let mut p = self.platter.lock();
        p.check_write(self.owner)?;
        p.volatile.clear();
        for (name, content) in changes {
            match content {
                Some(content) => p.records.insert(name.clone(), Bytes::from(content.clone())),
                None => p.records.remove(name),
            };
        }
        Ok(())
    }
    fn list_spaces(&self) -> Result<Vec<SpacesId>> {
        let p = self.platter.lock();
        p.check_read(self.owner)?;
        Ok(p.spaces.keys().copied().collect())
    }
    fn has_spaces(&self, id: SpacesId) -> bool {
        self.platter.lock().spaces.contains_key(&id)
    }
    fn open_spaces(&self, id: SpacesId) -> Result<Arc<dyn Spaces>> {
        let mut p = self.platter.lock();
        p.check(self.owner)?;
        p.spaces.entry(id).or_default();
        Ok(Arc::new(MemorySpaces { platter: self.platter.clone(), owner: self.owner, id }))
    }
    fn drop_spaces(&self, id: SpacesId) -> Result<()> {
        let mut p = self.platter.lock();
        p.check_write(self.owner)?;
        p.dropped.retain(|other, _| other.group != id.group);
        if let Some(pair) = p.spaces.remove(&id) {
            p.dropped.insert(id, pair);
        }
        Ok(())
    }
    fn collect(&self, group: GroupId, what: Collectable) -> Result<()> {
        let mut p = self.platter.lock();
        p.check(self.owner)?;
        let of_group = SpacesId { group, incarnation: 0 }..=SpacesId { group, incarnation: u64::MAX };
        for (_, pair) in p.spaces.range_mut(of_group) {
            for space in [Space::Current, Space::History] {
                Arc::make_mut(&mut pair[space as usize]).retain(|_, value| !what.contains(space, value));
            }
        }
        Ok(())
    }
}

struct MemorySpaces {
    platter: Arc<Mutex<Platter>>,
    owner: u64,
    id: SpacesId,
}

impl Spaces for MemorySpaces {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        let p = self.platter.lock();
        p.check_row(self.owner)?;
        Ok(p.pair(self.id).and_then(|pair| pair[space as usize].get(key).cloned()))
    }
    fn view(&self) -> Box<dyn View> {
        let p = self.platter.lock();
        let content = p.check_row(self.owner).map(|()| p.pair(self.id).cloned().unwrap_or_default());
        Box::new(MemoryView { content })
    }
    fn write(&self, _rows: usize, fill: &mut dyn FnMut(&mut dyn Sink) -> Result<()>) -> Result<()> {
        fill(&mut MemorySink(self))
    }
    fn erase(&self, space: Space, ranges: &[(Vec<u8>, Vec<u8>)], has_room: bool) -> Result<bool> {
        let mut p = self.platter.lock();
        p.check_write(self.owner)?;
        if !has_room {
            return Ok(false);
        }
        // Handles of a pair that was dropped may be left.
        let Ok(map) = p.map(self.id, space) else { return Ok(true) };
        let mut gone = Vec::new();
        for (start, end) in ranges {
            gone.extend(map.range(start.clone()..end.clone()).map(|(key, value)| (key.clone(), value.clone())));
        }
        for (key, _) in &gone {
            map.remove(key);
        }
        let undo = |(key, value)| Undo { id: self.id, space, key, before: Some(value) };
        p.volatile.extend(gone.into_iter().map(undo));
        Ok(true)
    }
    fn describe(&self) -> String {
        format!("spaces {} of the simulated disk", self.id)
    }
}

struct MemorySink<'a>(&'a MemorySpaces);

impl Sink for MemorySink<'_> {
    fn put(&mut self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        let mut p = self.0.platter.lock();
        p.check_write(self.0.owner)?;
        let before = p.map(self.0.id, space)?.insert(key.to_vec(), Bytes::copy_from_slice(value));
        p.volatile.push(Undo { id: self.0.id, space, key: key.to_vec(), before });
        Ok(())
    }
}

struct MemoryView {
    content: Result<[Arc<Map>; 2]>,
}

impl View for MemoryView {
    fn scan(&self, space: Space, range: RawRange<'_>, reverse: bool, visit: Visit<'_>) -> Result<()> {
        let map = &self.content.as_ref().map_err(Clone::clone)?[space as usize];
        let entries = map.range::<[u8], _>(range);
        let mut visit = |(key, value): (&Vec<u8>, &Bytes)| visit(key, value);
        // A fully visited range and one that was broken off are both fine.
        let _: ControlFlow<()> =
            if reverse { entries.rev().try_for_each(&mut visit) } else { entries.into_iter().try_for_each(&mut visit) };
        Ok(())
    }
}
