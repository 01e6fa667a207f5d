//! The catalog as this node knows it: built from the rows of the catalog's group, of which every
//! node holds a replica.
//!
//! A schema step commits at a timestamp that may lie a little in the future. A version is *active*
//! here, and used for planning, from the moment this node's clock passes it; until then the version
//! before is.
//!
//! [`rows`] has the rows and how they are read and written; [`steps`] is how the coordinator of
//! schema steps, which runs where the primary of the catalog's group is, gets its calls.

pub(crate) mod rows;
pub(crate) mod steps;

use crate::local::lock::RwLock;
use crate::transport::wire::{ClusterVersions, NodeRecord, Standing};
use meridian_base::record::Committed;
use meridian_base::version::{ClusterVersion, Versions, refused_version};
use meridian_base::{Clock, DescriptorId, Error, GroupId, KeyRange, NodeId, Result, SchemaVersion, Timestamp};
use meridian_pki::rotation::StoredRotation;
use meridian_sql::catalog::{Catalog, CatalogChange, Descriptor, Group, GroupKind};
use meridian_store::GroupStore;
use rows::{
    DESCRIPTORS, Meta, NODES, NodeRow, ROTATION, meta_key, newest_readable, read_row, rotation_key, scan_all, stored, stored_meta,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// Told of what the catalog's group applies. An error ends the node: a row that it cannot read
/// would be missing in every statement that it plans.
pub trait ApplyHook: Send + Sync + 'static {
    /// A transaction was applied.
    fn applied(&self, txn: &Committed) -> Result<()>;
    /// The whole content was replaced.
    fn replaced(&self, store: &GroupStore) -> Result<()>;
}

/// See the module's essay.
pub struct CatalogCache {
    clock: Arc<Clock>,
    /// Those that this program understands.
    understood: Versions,
    active: RwLock<Arc<Catalog>>,
    /// Versions whose time has not come.
    upcoming: RwLock<VecDeque<Arc<Catalog>>>,
    /// When the next of them is due; `u64::MAX` if there is none.
    next_due: AtomicU64,
    /// An old version that was asked for, and a time up to which it was in force.
    past: RwLock<Option<(Arc<Catalog>, Timestamp)>>,
    nodes: RwLock<BTreeMap<NodeId, NodeRow>>,
    meta: RwLock<Meta>,
    rotation: RwLock<Option<StoredRotation>>,
    changed: watch::Sender<u64>,
}

impl CatalogCache {
    pub fn new(clock: Arc<Clock>, versions: Versions) -> Arc<CatalogCache> {
        Arc::new(CatalogCache {
            clock,
            understood: versions,
            active: RwLock::default(),
            upcoming: RwLock::default(),
            next_due: AtomicU64::new(u64::MAX),
            past: RwLock::default(),
            nodes: RwLock::default(),
            meta: RwLock::default(),
            rotation: RwLock::default(),
            changed: watch::Sender::new(0),
        })
    }

    /// The version to plan with at present. The clock is read only if another one comes.
    #[inline]
    pub fn at(&self, physical_micros: impl Fn() -> u64) -> Arc<Catalog> {
        let next_due = self.next_due.load(Ordering::Acquire);
        if next_due != u64::MAX && next_due <= self.clock.now(physical_micros()).0 {
            self.promote(self.clock.now(physical_micros()));
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
        self.nodes.read().values().map(|row| row.record.clone()).collect()
    }

    /// Which versions the program understands that a node was last started with.
    pub fn versions_of(&self, node: NodeId) -> Versions {
        self.nodes.read().get(&node).map_or(Versions::default(), |row| row.versions)
    }

    /// Which formats may be written.
    pub fn cluster_version(&self) -> ClusterVersion {
        self.meta.read().cluster_version
    }

    /// That, and what each member's program understands.
    pub fn versions(&self) -> ClusterVersions {
        let nodes = self.nodes.read();
        let members = nodes.values().filter(|row| row.record.standing != Standing::Decommissioned);
        let nodes = members.map(|row| (row.record.id, row.versions)).collect();
        ClusterVersions { cluster: self.cluster_version(), nodes }
    }

    /// The version that every member understands beside the present one, if there is one.
    pub fn next_cluster_version(&self) -> Option<ClusterVersion> {
        let ClusterVersions { cluster, nodes } = self.versions();
        self.understood.next_of(cluster, nodes.into_iter().map(|(_, versions)| versions))
    }

    /// An older program would misread the rows, and write some that others misread. (That a program
    /// is too new is found when it registers: what it applies here may be of the past.)
    fn check_version(&self, meta: &Meta) -> Result<()> {
        match meta.cluster_version <= self.understood.newest {
            true => Ok(()),
            false => Err(refused_version(self.understood, meta.cluster_version)),
        }
    }

    /// The last rotation of the authority.
    pub fn rotation(&self) -> Option<StoredRotation> {
        self.rotation.read().clone()
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
        // First of all: a later program's rows may be of kinds that this one cannot read.
        self.check_version(&stored_meta(store)?)?;
        let Some((catalog, meta)) = stored(store, at)? else { return Ok(()) };
        let mut nodes = BTreeMap::new();
        for (_, bytes) in scan_all(store, &KeyRange::prefix(&NODES.to_be_bytes()), at)? {
            let row: NodeRow = read_row(&bytes)?;
            nodes.insert(row.record.id, row);
        }
        let rotation = store.get(rotation_key().as_bytes(), at)?.and_then(|row| row.value);
        *self.rotation.write() = rotation.map(|bytes| read_row(&bytes)).transpose()?;
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
        let meta_row = txn.writes.iter().find(|w| w.key == meta_key()).and_then(|w| w.value.as_ref());
        let meta = meta_row.map(|v| read_row::<Meta>(v)).transpose()?;
        if let Some(meta) = &meta {
            self.check_version(meta)?;
        }
        for w in &txn.writes {
            let mut key = w.key.as_bytes();
            let index = meridian_base::key::decode::index(&mut key);
            match (index, &w.value) {
                (Some(DESCRIPTORS), Some(v)) => change.put.push(read_row::<(SchemaVersion, Descriptor)>(v)?.1),
                (Some(DESCRIPTORS), None) => {
                    let _ = meridian_base::key::decode::is_null(&mut key, false);
                    if let Some(id) = meridian_base::key::decode::i64(&mut key, false) {
                        change.delete.push(DescriptorId(id as u32));
                    }
                }
                (Some(NODES), Some(v)) => {
                    let row: NodeRow = read_row(v)?;
                    self.nodes.write().insert(row.record.id, row);
                }
                (Some(ROTATION), Some(v)) => *self.rotation.write() = Some(read_row(v)?),
                _ => {}
            }
        }
        if let Some(meta) = meta {
            if meta.cluster_version != self.cluster_version() {
                tracing::info!("the cluster is at version {}", meta.cluster_version);
            }
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
    fn applied(&self, txn: &Committed) -> Result<()> {
        self.apply(txn)
    }
    fn replaced(&self, store: &GroupStore) -> Result<()> {
        // What it reads at may be collected meanwhile: then it reads at a later time.
        match self.load(store) {
            Err(e) if e.sqlstate() == "72000" => self.load(store),
            loaded => loaded,
        }
    }
}
