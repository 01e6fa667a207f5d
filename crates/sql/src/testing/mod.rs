//! A database in memory, for tests of this crate and of those above it: one region, one process, no
//! durability.
//!
//! Transactions are certified as the design says (every read entry against every later write of the
//! columns it read), and the rules that the executor has to keep are asserted: who writes part of a
//! row has read all of it.

mod transaction;

pub use transaction::MemTransaction;

use crate::catalog::bootstrap::first_catalog;
use crate::catalog::{Catalog, CatalogChange};
use crate::env::{Environment, Locking, NodeLocality, SessionRow, TxnOptions};
use crate::session::Shared;
use bytes::Bytes;
use meridian_base::{ColumnMask, Error, GroupId, Key, NodeId, Result, SchemaVersion, SessionId, Timestamp};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An in-memory [`Environment`]. Clones share everything.
#[derive(Clone)]
pub struct MemEnvironment {
    inner: Arc<Inner>,
    /// Which of the nodes this is.
    here: usize,
}

struct Inner {
    catalog: Mutex<Arc<Catalog>>,
    store: Mutex<Store>,
    /// Microseconds since 1970; a step per look.
    clock: AtomicU64,
    random: AtomicU64,
    /// How many there were.
    transactions: AtomicU64,
    sessions: Arc<Shared>,
    regions: Vec<String>,
}

/// All rows, and who changed what when.
#[derive(Default)]
pub(crate) struct Store {
    rows: BTreeMap<(GroupId, Key), Bytes>,
    /// Commits, numbered from 1 on.
    history: Vec<Vec<(GroupId, Key, ColumnMask)>>,
    /// What replicas know from which the past is read, if they stay behind.
    behind: Option<BTreeMap<(GroupId, Key), Bytes>>,
    /// Who holds which rows.
    entries: BTreeMap<(GroupId, Key), Vec<(u64, Locking)>>,
}

/// Runs `work` on this thread with aggregations in batches of so many rows; 0: without batches.
pub async fn with_batches_of<V>(rows: usize, work: impl Future<Output = V>) -> V {
    crate::exec::batch::use_batches_of(Some(rows));
    let value = work.await;
    crate::exec::batch::use_batches_of(None);
    value
}

/// 2024-01-01.
const START_MICROS: u64 = 1_704_067_200_000_000;

impl MemEnvironment {
    /// An empty database in these regions, the first one the node's own.
    pub fn new(regions: &[&str]) -> MemEnvironment {
        let first = regions.first().copied().unwrap_or("local");
        let catalog = first_catalog(first, SchemaVersion(1), Timestamp::from_micros(START_MICROS));
        let inner = Inner {
            catalog: Mutex::new(Arc::new(catalog)),
            store: Mutex::default(),
            clock: AtomicU64::new(START_MICROS),
            random: AtomicU64::new(1),
            transactions: AtomicU64::new(0),
            sessions: Shared::new(),
            regions: regions.iter().map(|r| r.to_string()).collect(),
        };
        MemEnvironment { inner: Arc::new(inner), here: 0 }
    }
    /// The same database through the node of another region.
    pub fn at(&self, region: &str) -> Option<MemEnvironment> {
        let here = self.inner.regions.iter().position(|r| r == region)?;
        Some(MemEnvironment { here, ..self.clone() })
    }
    /// From here on replicas know nothing new: what [`crate::env::Transaction::scan_nearby`] reads.
    pub fn leave_replicas_behind(&self) {
        let mut store = self.inner.store.lock();
        store.behind = Some(store.rows.clone());
    }
    /// What sessions of this environment share.
    pub fn shared(&self) -> Arc<Shared> {
        self.inner.sessions.clone()
    }
    /// How many keys are stored that somebody can reach: what garbage collection leaves.
    pub fn key_count(&self) -> usize {
        let reached = self.catalog().reaches();
        let is_reached =
            |key: &Key| key.as_bytes().first_chunk().is_some_and(|index| reached.contains(u32::from_be_bytes(*index)));
        self.inner.store.lock().rows.keys().filter(|(_, key)| is_reached(key)).count()
    }
}

/// Nodes that start read the catalog as it is stored: it is to be the one that the others have come
/// to step by step.
fn checked(catalog: Catalog) -> Catalog {
    let stored = catalog.descriptors.values().map(|d| ((**d).clone(), catalog.version));
    let seen = (catalog.seen, catalog.seen_at);
    let again = Catalog::from_stored(stored, catalog.next_id, catalog.version, catalog.committed_at, seen);
    assert_eq!(again.by_name, catalog.by_name, "names");
    catalog
}

impl Environment for MemEnvironment {
    type Txn = MemTransaction;

    fn catalog(&self) -> Arc<Catalog> {
        self.inner.catalog.lock().clone()
    }
    fn begin(&self, options: TxnOptions) -> MemTransaction {
        MemTransaction::new(self.clone(), options)
    }
    async fn change_catalog(&self, base: SchemaVersion, change: CatalogChange) -> Result<Arc<Catalog>> {
        let mut catalog = self.inner.catalog.lock();
        if catalog.version != base {
            return Err(Error::retry("the schema changed"));
        }
        catalog.check_new_ids(&change)?;
        let at = Timestamp::from_micros(self.now_micros());
        *catalog = Arc::new(checked(catalog.apply(&change, SchemaVersion(base.0 + 1), at)));
        Ok(catalog.clone())
    }
    async fn change_catalog_with(&self, txn: &mut MemTransaction, base: &Catalog, change: CatalogChange) -> Result<Result<()>> {
        let mut catalog = self.inner.catalog.lock();
        if catalog.version != base.version {
            return Ok(Err(Error::retry("the schema changed")));
        }
        catalog.check_new_ids(&change)?;
        txn.apply(&catalog)?;
        let at = Timestamp::from_micros(self.now_micros());
        *catalog = Arc::new(checked(catalog.apply(&change, SchemaVersion(base.version.0 + 1), at)));
        Ok(Ok(()))
    }
    fn now_micros(&self) -> u64 {
        self.inner.clock.fetch_add(1, Ordering::Relaxed)
    }
    fn random(&self) -> u64 {
        // A multiplicative generator: the same numbers in every run.
        let next = |x: u64| Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        let before = self.inner.random.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(0);
        before ^ (before >> 29)
    }
    fn locality(&self) -> NodeLocality {
        self.nodes().swap_remove(self.here)
    }
    fn nodes(&self) -> Vec<NodeLocality> {
        let node = |(i, r): (usize, &String)| NodeLocality {
            node: NodeId(i as u32 + 1),
            region: r.clone(),
            zone: "a".into(),
            sql_addr: format!("127.0.0.1:{}", 26257 + i),
            is_live: true,
        };
        self.inner.regions.iter().enumerate().map(node).collect()
    }
    fn sessions(&self) -> Vec<SessionRow> {
        self.inner.sessions.sessions()
    }
    fn cancel(&self, session: SessionId) -> bool {
        self.inner.sessions.cancel(session)
    }
}
