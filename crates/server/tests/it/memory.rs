//! An environment in memory: one group after another in one map, certified by key as a primary would, with faults to order.

use bytes::Bytes;
use meridian_base::{
    ColumnMask, DescriptorId, Error, GroupId, Key, KeyRange, NodeId, Result, SchemaVersion, SessionId, Timestamp, Write,
};
use meridian_sql::catalog::{Catalog, CatalogChange, bootstrap};
use meridian_sql::env::{
    Environment, Locking, NodeLocality, Savepoint, Scan, ScanRows, SessionRow, Transaction, TxnOptions,
};
use meridian_sql::session::Shared;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The node.
#[derive(Clone)]
pub struct Memory(Arc<State>);

struct State {
    store: Mutex<Store>,
    clock: AtomicU64,
    random: AtomicU64,
    shared: Arc<Shared>,
    pub faults: Faults,
}

/// Faults to come: each counts down.
#[derive(Default)]
pub struct Faults {
    /// Commits of transactions that wrote which fail with 40001.
    pub conflicts: AtomicU64,
    /// Reads that fail because nobody serves the group.
    pub unavailable: AtomicU64,
    /// Milliseconds that every read takes.
    pub read_millis: AtomicU64,
}

#[derive(Default)]
struct Store {
    catalog: Arc<Catalog>,
    /// Newest value and its version; a deleted row stays as `None`.
    rows: BTreeMap<(GroupId, Key), (u64, Option<Bytes>)>,
    version: u64,
}

fn take(counter: &AtomicU64) -> bool {
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
}

impl Memory {
    pub fn new(shared: Arc<Shared>) -> Memory {
        let catalog = bootstrap::first_catalog("eu", SchemaVersion(1), Timestamp::from_micros(1));
        Memory(Arc::new(State {
            store: Mutex::new(Store { catalog: Arc::new(catalog), ..Store::default() }),
            clock: AtomicU64::new(1_700_000_000_000_000),
            random: AtomicU64::new(1),
            shared,
            faults: Faults::default(),
        }))
    }
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }
}

impl Environment for Memory {
    type Txn = MemoryTxn;

    fn catalog(&self) -> Arc<Catalog> {
        self.0.store.lock().catalog.clone()
    }
    fn begin(&self, options: TxnOptions) -> MemoryTxn {
        MemoryTxn { node: self.clone(), options, reads: Vec::new(), writes: Vec::new() }
    }
    async fn change_catalog(&self, base: SchemaVersion, change: CatalogChange) -> Result<Arc<Catalog>> {
        let mut store = self.0.store.lock();
        if store.catalog.version != base {
            return Err(Error::retry("the catalog changed"));
        }
        let next = store.catalog.apply(&change, SchemaVersion(base.0 + 1), Timestamp::from_micros(base.0 + 1));
        store.catalog = Arc::new(next);
        Ok(store.catalog.clone())
    }
    fn now_micros(&self) -> u64 {
        self.0.clock.fetch_add(1, Ordering::Relaxed)
    }
    fn random(&self) -> u64 {
        let n = self.0.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        (n ^ (n >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }
    fn locality(&self) -> NodeLocality {
        NodeLocality {
            node: NodeId(1),
            region: "eu".into(),
            zone: "a".into(),
            sql_addr: "127.0.0.1:5432".into(),
            is_live: true,
        }
    }
    fn nodes(&self) -> Vec<NodeLocality> {
        vec![self.locality()]
    }
    fn sessions(&self) -> Vec<SessionRow> {
        self.0.shared.sessions()
    }
    fn cancel(&self, session: SessionId) -> bool {
        self.0.shared.cancel(session)
    }
}

/// Reads the newest values; what it read must still be the newest when it commits.
pub struct MemoryTxn {
    node: Memory,
    options: TxnOptions,
    reads: Vec<(GroupId, KeyRange, u64)>,
    writes: Vec<(GroupId, Write)>,
}

impl MemoryTxn {
    async fn before_read(&self) -> Result<()> {
        let faults = &self.node.0.faults;
        let millis = faults.read_millis.load(Ordering::SeqCst);
        if millis > 0 {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        if take(&faults.unavailable) {
            return Err(Error::unavailable("no primary"));
        }
        Ok(())
    }
    fn own(&self, group: GroupId, key: &Key) -> Option<Option<Bytes>> {
        self.writes.iter().rev().find(|(g, w)| *g == group && w.key == *key).map(|(_, w)| w.value.clone())
    }
    fn read(&mut self, group: GroupId, key: &Key) -> Option<Bytes> {
        let range = KeyRange::new(key.clone(), key.successor());
        let store = self.node.0.store.lock();
        self.reads.push((group, range, store.version));
        match self.own(group, key) {
            Some(own) => own,
            None => store.rows.get(&(group, key.clone())).and_then(|(_, v)| v.clone()),
        }
    }
}

impl Transaction for MemoryTxn {
    async fn get(&mut self, group: GroupId, key: &Key, _: ColumnMask, _: Locking) -> Result<Option<Bytes>> {
        self.before_read().await?;
        Ok(self.read(group, key))
    }
    async fn get_many(&mut self, group: GroupId, keys: &[Key], _: ColumnMask, _: Locking) -> Result<Vec<Option<Bytes>>> {
        self.before_read().await?;
        Ok(keys.iter().map(|k| self.read(group, k)).collect())
    }
    async fn scan(&mut self, group: GroupId, scan: Scan) -> Result<ScanRows> {
        self.before_read().await?;
        if scan.range.is_empty() {
            return Ok(ScanRows::default());
        }
        let store = self.node.0.store.lock();
        let from = (group, scan.range.start.clone())..(group, scan.range.end.clone());
        let mut rows: BTreeMap<Key, Bytes> =
            store.rows.range(from).filter_map(|((_, k), (_, v))| Some((k.clone(), v.clone()?))).collect();
        self.reads.push((group, scan.range.clone(), store.version));
        drop(store);
        for (_, w) in self.writes.iter().filter(|(g, w)| *g == group && scan.range.contains(w.key.as_bytes())) {
            match &w.value {
                Some(value) => rows.insert(w.key.clone(), value.clone()),
                None => rows.remove(&w.key),
            };
        }
        let mut rows: Vec<_> = rows.into_iter().collect();
        if scan.reverse {
            rows.reverse();
        }
        let page = scan.limit.unwrap_or(usize::MAX).min(100);
        let rest = (rows.len() > page).then(|| match scan.reverse {
            true => KeyRange::new(scan.range.start.clone(), rows[page - 1].0.clone()),
            false => KeyRange::new(rows[page - 1].0.successor(), scan.range.end.clone()),
        });
        rows.truncate(page);
        Ok(ScanRows { rows, rest })
    }
    fn write(&mut self, group: GroupId, write: Write) -> Result<()> {
        assert!(!self.options.read_only, "a write in a transaction that was begun as read-only");
        if let Some((other, _)) = self.writes.first()
            && *other != group
        {
            return Err(Error::unsupported("several groups"));
        }
        self.writes.push((group, write));
        Ok(())
    }
    fn uses(&mut self, _: &[DescriptorId]) {}
    fn savepoint(&mut self) -> Savepoint {
        Savepoint(self.writes.len())
    }
    fn rollback_to(&mut self, to: Savepoint) {
        self.writes.truncate(to.0);
    }
    async fn commit(self) -> Result<Option<Timestamp>> {
        if self.writes.is_empty() {
            return Ok(None);
        }
        if take(&self.node.0.faults.conflicts) {
            return Err(Error::retry("could not serialize access to table \"t\": concurrent write"));
        }
        let mut store = self.node.0.store.lock();
        for (group, range, until) in &self.reads {
            let from = (*group, range.start.clone())..(*group, range.end.clone());
            if store.rows.range(from).any(|(_, (version, _))| version > until) {
                return Err(Error::retry("could not serialize access: concurrent write"));
            }
        }
        store.version += 1;
        let version = store.version;
        for (group, write) in self.writes {
            store.rows.insert((group, write.key), (version, write.value));
        }
        Ok(Some(Timestamp::from_micros(version)))
    }
    fn rollback(self) {}
    fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }
}
