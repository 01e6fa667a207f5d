//! A node's store: the backend, the budgets, and the groups.

use crate::backend::{Disk, Spaces, SpacesId};
use crate::codec::{self, Collectable, GroupRecord, RecordKind, damaged};
use crate::fjall::FjallDisk;
use crate::group::GroupStore;
use crate::options::{Backend, Options};
use crate::table::Totals;
use crate::watched::{Alarm, watched};
use bytes::Bytes;
use meridian_base::error::{Error, Result};
use meridian_base::id::GroupId;
use meridian_base::time::Timestamp;
use parking_lot::Mutex;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all groups of a store share.
pub(crate) struct Shared {
    pub disk: Arc<dyn Disk>,
    pub options: Options,
    pub totals: Totals,
    pub alarm: Arc<Alarm>,
    /// How many groups share the budgets; at least 1.
    pub groups: AtomicUsize,
}

impl Shared {
    pub fn open_spaces(&self, id: SpacesId) -> Result<Arc<dyn Spaces>> {
        Ok(watched(self.disk.open_spaces(id)?, &self.alarm))
    }
}

/// A node's store. Clones are the same store.
#[derive(Clone)]
pub struct Store {
    pub(crate) shared: Arc<Shared>,
    groups: Arc<Mutex<BTreeMap<GroupId, Arc<GroupStore>>>>,
    /// How a message to an operator names the store.
    place: Arc<str>,
}

impl Store {
    /// Opens what is there, or creates it. A folder of a newer version or a damaged one is refused
    /// with a fatal error that names it.
    pub fn open(backend: Backend, options: Options) -> Result<Store> {
        let (disk, place): (Arc<dyn Disk>, String) = match backend {
            Backend::Fjall { path } => {
                let disk = FjallDisk::open(&path, options.block_cache_bytes_max, options.ingest_rows_min)?;
                (Arc::new(disk), path.display().to_string())
            }
            Backend::Memory(disk) => (disk.open(), "the simulated disk".to_owned()),
        };
        let shared =
            Arc::new(Shared { disk, options, totals: Totals::default(), alarm: Arc::default(), groups: AtomicUsize::new(1) });
        let store = Store { shared, groups: Arc::default(), place: place.into() };
        store.recover()?;
        Ok(store)
    }

    fn recover(&self) -> Result<()> {
        let disk = &self.shared.disk;
        let records = disk.records()?;
        let mut kept = BTreeMap::new();
        for (name, raw) in &records {
            let Some(id) = codec::record_group(name) else { continue };
            kept.insert(id, self.record::<GroupRecord>(raw)?);
        }
        // What no record names is the rest of an interrupted import, of a dropped group, or of one
        // that never was flushed.
        for id in disk.list_spaces()? {
            if kept.get(&id.group).is_none_or(|record| record.incarnation != id.incarnation) {
                disk.drop_spaces(id)?;
            }
        }
        let mut groups = self.groups.lock();
        for (id, record) in kept {
            let spaces = SpacesId { group: id, incarnation: record.incarnation };
            if !disk.has_spaces(spaces) {
                // A record is written after them, and removed before them.
                return Err(damaged(&self.place, &format!("the rows of group {id} are missing")));
            }
            let bound = self.timestamp(&records, RecordKind::Bound, id)?;
            let threshold = self.timestamp(&records, RecordKind::Threshold, id)?;
            // Tombstones wait for the next collection, when the log has been replayed.
            disk.collect(id, Collectable { replaced: threshold, ..Collectable::NOTHING })?;
            let spaces = self.shared.open_spaces(spaces)?;
            groups.insert(id, Arc::new(GroupStore::new(self.shared.clone(), id, spaces, Some(record), bound, threshold)));
        }
        self.shared.groups.store(groups.len().max(1), Ordering::Relaxed);
        Ok(())
    }

    fn record<'a, T: Deserialize<'a>>(&self, raw: &'a [u8]) -> Result<T> {
        codec::record(raw, || self.place.to_string())
    }
    fn timestamp(&self, records: &BTreeMap<Vec<u8>, Bytes>, kind: RecordKind, id: GroupId) -> Result<Timestamp> {
        records.get(&codec::record_name(kind, id)).map_or(Ok(Timestamp::MIN), |raw| self.record(raw))
    }

    /// Tells of the first damage that a read has found. The node has to end: others have what it
    /// cannot read any more.
    pub fn on_damage(&self, tell: impl Fn(Error) + Send + Sync + 'static) {
        self.shared.alarm.tell(tell);
    }

    /// The groups that are here, in order.
    pub fn groups(&self) -> Vec<GroupId> {
        self.groups.lock().keys().copied().collect()
    }

    /// Opens a group, or creates an empty one.
    pub fn group(&self, id: GroupId) -> Result<Arc<GroupStore>> {
        let mut groups = self.groups.lock();
        if let Some(group) = groups.get(&id) {
            return Ok(group.clone());
        }
        let disk = &self.shared.disk;
        // A group that was never flushed has no record, but what it promised not to read it still
        // does not read.
        let threshold = self.timestamp(&disk.records()?, RecordKind::Threshold, id)?;
        // What a drop that failed half-way has left.
        for spaces in disk.list_spaces()?.into_iter().filter(|spaces| spaces.group == id) {
            disk.drop_spaces(spaces)?;
        }
        disk.collect(id, Collectable { replaced: threshold, ..Collectable::NOTHING })?;
        let spaces = self.shared.open_spaces(SpacesId { group: id, incarnation: 1 })?;
        let group = Arc::new(GroupStore::new(self.shared.clone(), id, spaces, None, Timestamp::MIN, threshold));
        groups.insert(id, group.clone());
        self.shared.groups.store(groups.len(), Ordering::Relaxed);
        Ok(group)
    }

    /// Removes a group and everything in it. Flushes, imports and collections through handles that
    /// still exist fail; reads through them go on or fail.
    pub fn drop_group(&self, id: GroupId) -> Result<()> {
        let mut groups = self.groups.lock();
        let Some(group) = groups.get(&id) else { return Ok(()) };
        group.retire()?;
        groups.remove(&id);
        self.shared.groups.store(groups.len().max(1), Ordering::Relaxed);
        let disk = &self.shared.disk;
        for spaces in disk.list_spaces()?.into_iter().filter(|spaces| spaces.group == id) {
            disk.drop_spaces(spaces)?;
        }
        Ok(())
    }

    /// Bytes applied and not yet flushed, in all groups.
    pub fn dirty_bytes(&self) -> usize {
        self.shared.totals.dirty.load(Ordering::Relaxed)
    }

    /// Whether commits should wait for flushes.
    pub fn over_budget(&self) -> bool {
        self.dirty_bytes() >= self.shared.options.dirty_bytes_max
    }
}
