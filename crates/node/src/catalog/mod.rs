//! The catalog as this node knows it: built from the rows of the catalog's group, of which every
//! node holds a replica.
//!
//! A schema step commits at a timestamp that may lie a little in the future. A version is *active*
//! here, and used for planning, from the moment this node's clock passes it; until then the version
//! before is.
//!
//! Rows of the catalog's group (key = index id | …):
//!
//! | index | key | value |
//! | --- | --- | --- |
//! | 1 | – | [`Meta`]; its commit timestamp is the version's |
//! | 2 | descriptor id | (version that changed it, descriptor) |
//! | 3 | node id | [`NodeRecord`] |
//! | 4 | group id | `region::Granted`: the schema lease |
//! | 5 | version | the id of the step that made it, of the newest [`STEPS_KEPT`] versions |
//! | 6 | token of a new node | the id it was given, for ever: whoever asks twice gets one identity |

use crate::local::lock::RwLock;
use crate::replica::ApplyHook;
use crate::transport::wire::NodeRecord;
use meridian_base::key::encode;
use meridian_base::record::Committed;
use meridian_base::{
    Clock, ColumnMask, DescriptorId, Error, GroupId, Key, KeyRange, NodeId, Result, SchemaVersion, Timestamp, TxnId, Write,
};
use meridian_sql::catalog::{Catalog, CatalogChange, Descriptor, Group, GroupKind};
use meridian_store::{GroupStore, ScanLimits};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

const META: u32 = 1;
const DESCRIPTORS: u32 = 2;
const NODES: u32 = 3;
const LEASES: u32 = 4;
const STEPS: u32 = 5;

/// Versions whose steps are remembered: more than are made while a gateway asks what became of one
/// ([`crate::gateway::env`]), were each to take no longer than one write to a log.
pub(crate) const STEPS_KEPT: u64 = 10_000;

const TOKENS: u32 = 6;

/// The catalog's own row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub cluster: u128,
    pub version: SchemaVersion,
    pub next_id: u32,
    pub next_node: u32,
    /// [`Catalog::seen`] and when, if it is not this version.
    pub seen: Option<(SchemaVersion, Timestamp)>,
}

pub(crate) fn meta_key() -> Key {
    let mut key = Vec::new();
    encode::index(&mut key, META);
    key.into()
}
fn numbered(index: u32, id: impl Into<i64>) -> Key {
    let mut key = Vec::new();
    encode::index(&mut key, index);
    encode::i64(&mut key, id.into());
    key.into()
}
pub(crate) fn descriptor_key(id: DescriptorId) -> Key {
    numbered(DESCRIPTORS, id.0)
}
pub(crate) fn node_key(id: NodeId) -> Key {
    numbered(NODES, id.0)
}
pub(crate) fn token_key(token: u128) -> Key {
    let mut key = Vec::new();
    encode::index(&mut key, TOKENS);
    key.extend_from_slice(&token.to_be_bytes());
    key.into()
}
pub(crate) fn lease_key(id: GroupId) -> Key {
    numbered(LEASES, id.0)
}
fn step_key(version: SchemaVersion) -> Key {
    numbered(STEPS, version.0 as i64)
}
pub(crate) fn lease_range() -> KeyRange {
    KeyRange::prefix(&LEASES.to_be_bytes())
}

/// The group that a lease row's key names.
pub(crate) fn lease_group(key: &Key) -> Option<GroupId> {
    let mut bytes = key.as_bytes();
    let _ = meridian_base::key::decode::index(&mut bytes)?;
    meridian_base::key::decode::is_null(&mut bytes, false)?;
    Some(GroupId(meridian_base::key::decode::i64(&mut bytes, false)? as u32))
}

/// A row to write.
pub(crate) fn row<T: Serialize>(key: Key, value: &T) -> Result<Write> {
    let value = postcard::to_stdvec(value).map_err(|e| Error::internal(format!("a catalog row does not encode: {e}")))?;
    Ok(Write { key, value: Some(value.into()), columns: ColumnMask::ALL })
}

/// Reads a row. A row that does not decode was written by another version, or is damaged.
pub(crate) fn read_row<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|e| Error::fatal(format!("a row of the catalog cannot be read: {e}")))
}

/// The rows by which the step `id` turns a catalog into its next version. `seen`: the last one that
/// transactions can tell from the one before.
pub(crate) fn change_rows(
    id: TxnId,
    meta: &Meta,
    seen: (SchemaVersion, Timestamp),
    change: &CatalogChange,
) -> Result<(Meta, Vec<Write>)> {
    let version = SchemaVersion(meta.version.0 + 1);
    let seen = (!change.is_seen()).then_some(seen);
    let next = Meta { version, next_id: meta.next_id.max(change.next_id), seen, ..meta.clone() };
    let mut writes = vec![row(meta_key(), &next)?, row(step_key(version), &id)?];
    if let Some(old) = version.0.checked_sub(STEPS_KEPT) {
        writes.push(Write { key: step_key(SchemaVersion(old)), value: None, columns: ColumnMask::ALL });
    }
    for d in &change.put {
        writes.push(row(descriptor_key(d.id()), &(next.version, d))?);
    }
    for id in &change.delete {
        writes.push(Write { key: descriptor_key(*id), value: None, columns: ColumnMask::ALL });
    }
    Ok((next, writes))
}

/// The step that made a version, and when; `None` if that is not remembered.
pub(crate) fn step_of(store: &GroupStore, version: SchemaVersion) -> Result<Option<(TxnId, Timestamp)>> {
    let Some(found) = store.get(step_key(version).as_bytes(), newest_readable(store))? else { return Ok(None) };
    found.value.map(|bytes| Ok((read_row(&bytes)?, found.at))).transpose()
}

/// The catalog's own row as it is now.
pub(crate) fn stored_meta(store: &GroupStore) -> Result<Meta> {
    match store.get(meta_key().as_bytes(), newest_readable(store))? {
        Some(v) => read_row(v.value.as_deref().unwrap_or_default()),
        None => Ok(Meta::default()),
    }
}

/// See the module's essay.
pub struct CatalogCache {
    clock: Arc<Clock>,
    active: RwLock<Arc<Catalog>>,
    /// Versions whose time has not come.
    upcoming: RwLock<VecDeque<Arc<Catalog>>>,
    /// When the next of them is due; `u64::MAX` if there is none.
    next_due: AtomicU64,
    /// An old version that was asked for, and a time up to which it was in force.
    past: RwLock<Option<(Arc<Catalog>, Timestamp)>>,
    nodes: RwLock<BTreeMap<NodeId, NodeRecord>>,
    meta: RwLock<Meta>,
    changed: watch::Sender<u64>,
}

impl CatalogCache {
    pub fn new(clock: Arc<Clock>) -> Arc<CatalogCache> {
        Arc::new(CatalogCache {
            clock,
            active: RwLock::default(),
            upcoming: RwLock::default(),
            next_due: AtomicU64::new(u64::MAX),
            past: RwLock::default(),
            nodes: RwLock::default(),
            meta: RwLock::default(),
            changed: watch::Sender::new(0),
        })
    }

    /// The version to plan with at this time.
    #[inline]
    pub fn at(&self, physical_micros: u64) -> Arc<Catalog> {
        if self.next_due.load(Ordering::Acquire) <= self.clock.now(physical_micros).0 {
            self.promote(self.clock.now(physical_micros));
        }
        self.active.read().clone()
    }

    /// The version that was last in use.
    pub fn active(&self) -> Arc<Catalog> {
        self.active.read().clone()
    }

    /// The newest version applied, whether its time has come or not.
    pub fn newest(&self) -> Arc<Catalog> {
        self.upcoming.read().back().cloned().unwrap_or_else(|| self.active())
    }

    /// How far the newest version is ahead of the clock, if its time has not come.
    pub fn ahead_of(&self, physical_micros: u64) -> Option<Duration> {
        if self.next_due.load(Ordering::Acquire) == u64::MAX {
            return None;
        }
        let newest = self.upcoming.read().back()?.committed_at;
        Some(newest.since(self.clock.now(physical_micros)))
    }

    /// Every node that has joined.
    pub fn nodes(&self) -> Vec<NodeRecord> {
        self.nodes.read().values().cloned().collect()
    }

    /// The descriptor of a group, which may be leaving.
    pub fn group(&self, id: GroupId) -> Option<Group> {
        self.newest().descriptors.get(&DescriptorId(id.0))?.replicated().cloned()
    }

    /// Whether there was such a group and is none any more: no id is used twice.
    pub fn has_deleted(&self, id: GroupId) -> bool {
        let newest = self.newest();
        id != GroupId::CATALOG && id.0 < newest.next_id && !newest.descriptors.contains_key(&DescriptorId(id.0))
    }

    /// Whether a group holds GLOBAL tables. A group's kind never changes.
    pub fn is_global(&self, id: GroupId) -> bool {
        let newest = self.newest();
        let descriptor = newest.descriptors.get(&DescriptorId(id.0));
        descriptor.and_then(|d| d.replicated()).is_some_and(|g| g.kind == GroupKind::Global)
    }

    /// Every group but the catalog's, those that are leaving included.
    pub fn groups(&self) -> Vec<Group> {
        self.newest().descriptors.values().filter_map(|d| d.replicated().cloned()).collect()
    }

    /// Counts the changes of anything here.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn promote(&self, now: Timestamp) {
        let mut upcoming = self.upcoming.write();
        while upcoming.front().is_some_and(|c| c.committed_at <= now) {
            *self.active.write() = upcoming.pop_front().expect("a front");
        }
        self.next_due.store(upcoming.front().map_or(u64::MAX, |c| c.committed_at.0), Ordering::Release);
    }

    fn adopt(&self, next: Catalog) {
        let mut upcoming = self.upcoming.write();
        let due = next.committed_at;
        upcoming.push_back(Arc::new(next));
        if upcoming.len() == 1 {
            self.next_due.store(due.0, Ordering::Release);
        }
    }

    fn changed(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    fn load(&self, store: &GroupStore) -> Result<()> {
        let at = newest_readable(store);
        let Some((catalog, meta)) = stored(store, at)? else { return Ok(()) };
        let mut nodes = BTreeMap::new();
        for (_, bytes) in scan_all(store, &KeyRange::prefix(&NODES.to_be_bytes()), at)? {
            let record: NodeRecord = read_row(&bytes)?;
            nodes.insert(record.id, record);
        }
        *self.nodes.write() = nodes;
        *self.meta.write() = meta;
        self.upcoming.write().clear();
        self.next_due.store(u64::MAX, Ordering::Release);
        *self.active.write() = Arc::new(catalog);
        self.changed();
        Ok(())
    }

    /// The catalog as it was, from this node's copy of its group; 72000 if that is collected, 57P03
    /// if there was none yet.
    pub fn past(&self, store: &GroupStore, at: Timestamp) -> Result<Arc<Catalog>> {
        let newest = self.active();
        if newest.committed_at <= at {
            return Ok(newest);
        }
        if let Some(catalog) = &*self.past.read()
            && catalog.0.committed_at <= at
            && at < catalog.1
        {
            return Ok(catalog.0.clone());
        }
        let Some((catalog, _)) = stored(store, at)? else {
            return Err(Error::sql("22023", "AS OF SYSTEM TIME: the time is before the cluster was founded"));
        };
        let catalog = Arc::new(catalog);
        // It was in force until the next one came, or at least until the time that was asked for.
        let is_last = catalog.version.0 + 1 == newest.version.0;
        let until = if is_last { newest.committed_at } else { Timestamp(at.0 + 1) };
        *self.past.write() = Some((catalog.clone(), until));
        Ok(catalog)
    }

    fn apply(&self, txn: &Committed) -> Result<()> {
        let mut change = CatalogChange::default();
        let mut meta = None;
        for w in &txn.writes {
            let mut key = w.key.as_bytes();
            let index = meridian_base::key::decode::index(&mut key);
            match (index, &w.value) {
                (Some(META), Some(v)) => meta = Some(read_row::<Meta>(v)?),
                (Some(DESCRIPTORS), Some(v)) => change.put.push(read_row::<(SchemaVersion, Descriptor)>(v)?.1),
                (Some(DESCRIPTORS), None) => {
                    let _ = meridian_base::key::decode::is_null(&mut key, false);
                    if let Some(id) = meridian_base::key::decode::i64(&mut key, false) {
                        change.delete.push(DescriptorId(id as u32));
                    }
                }
                (Some(NODES), Some(v)) => {
                    let record: NodeRecord = read_row(v)?;
                    self.nodes.write().insert(record.id, record);
                }
                _ => {}
            }
        }
        if let Some(meta) = meta {
            let newest = self.newest();
            if meta.version > newest.version {
                change.next_id = meta.next_id;
                self.adopt(newest.apply(&change, meta.version, txn.at));
            }
            *self.meta.write() = meta;
        }
        self.changed();
        Ok(())
    }
}

impl ApplyHook for CatalogCache {
    fn applied(&self, txn: &Committed) {
        if let Err(e) = self.apply(txn) {
            tracing::error!("{e}");
        }
    }
    fn replaced(&self, store: &GroupStore) {
        if let Err(e) = self.load(store) {
            tracing::error!("{e}");
        }
    }
}

/// The catalog's rows as they were.
fn stored(store: &GroupStore, at: Timestamp) -> Result<Option<(Catalog, Meta)>> {
    let Some(row) = store.get(meta_key().as_bytes(), at)? else { return Ok(None) };
    let Some(bytes) = &row.value else { return Ok(None) };
    let meta: Meta = read_row(bytes)?;
    let mut descriptors = Vec::new();
    for (_, bytes) in scan_all(store, &KeyRange::prefix(&DESCRIPTORS.to_be_bytes()), at)? {
        let (changed_in, d): (SchemaVersion, Descriptor) = read_row(&bytes)?;
        descriptors.push((d, changed_in));
    }
    let seen = meta.seen.unwrap_or((meta.version, row.at));
    Ok(Some((Catalog::from_stored(descriptors, meta.next_id, meta.version, row.at, seen), meta)))
}

/// Where to read the newest versions: the newest timestamp applied, or, if nothing was written for
/// so long that garbage collection has passed it, where that is. It never passes what is closed, so
/// nothing appears below it either.
pub(crate) fn newest_readable(store: &GroupStore) -> Timestamp {
    store.applied_ts().max(store.gc_threshold())
}

/// All rows of a range.
pub(crate) fn scan_all(store: &GroupStore, range: &KeyRange, at: Timestamp) -> Result<Vec<(Key, bytes::Bytes)>> {
    let mut rows = Vec::new();
    let mut rest = Some(range.clone());
    while let Some(range) = rest {
        let page = store.scan(&range, at, false, ScanLimits::default())?;
        rows.extend(page.rows.into_iter().filter_map(|(k, v)| Some((k, v.value?))));
        rest = page.rest;
    }
    Ok(rows)
}
