//! The in-memory environment of the SQL crate, with faults to order.

use bytes::Bytes;
use meridian_base::escrow::{Late, Offer};
use meridian_base::{
    ColumnMask, DescriptorId, Error, GroupId, Key, KeyRange, Result, SchemaVersion, SessionId, Timestamp, TxnId, Write, limits,
};
use meridian_sql::catalog::{Catalog, CatalogChange};
use meridian_sql::env::{Environment, Locking, NodeLocality, Savepoint, Scan, ScanRows, SessionRow, Transaction, TxnOptions};
use meridian_sql::session::Shared;
use meridian_sql::testing::MemEnvironment;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The node.
#[derive(Clone)]
pub struct Memory {
    env: MemEnvironment,
    pub faults: Arc<Faults>,
    /// Above how many bytes a transaction nears its bound.
    pub load_bytes: Arc<AtomicUsize>,
}

/// Faults to come: each counts down.
#[derive(Default)]
pub struct Faults {
    /// Commits of transactions that wrote which fail with 40001.
    pub conflicts: AtomicU64,
    /// Certifications, of commits and of what was read, that are never answered.
    pub lost: AtomicU64,
    /// Reads that fail because nobody serves the group.
    pub unavailable: AtomicU64,
    /// Milliseconds that every read takes.
    pub read_millis: AtomicU64,
    /// All rows are on another node.
    pub is_far: AtomicBool,
    /// Requests that asked for keys ahead: counted, and no fault.
    pub requests_ahead: AtomicU64,
}

fn take(counter: &AtomicU64) -> bool {
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
}

impl Faults {
    fn meet_loss(&self) -> Result<()> {
        match take(&self.lost) {
            true => Err(Error::unknown_outcome("the primary did not answer")),
            false => Ok(()),
        }
    }
}

impl Memory {
    pub fn new() -> Memory {
        let load_bytes = Arc::new(AtomicUsize::new(limits::LOAD_BYTES_MAX));
        Memory { env: MemEnvironment::new(&["eu"]), faults: Arc::default(), load_bytes }
    }
    pub fn shared(&self) -> Arc<Shared> {
        self.env.shared()
    }
}

impl Environment for Memory {
    type Txn = MemoryTxn;

    fn catalog(&self) -> Arc<Catalog> {
        self.env.catalog()
    }
    fn begin(&self, options: TxnOptions) -> MemoryTxn {
        let (faults, load_bytes) = (self.faults.clone(), self.load_bytes.clone());
        MemoryTxn { read_only: options.read_only, txn: self.env.begin(options), written: 0, faults, load_bytes }
    }
    async fn change_catalog(&self, base: SchemaVersion, change: CatalogChange) -> Result<Arc<Catalog>> {
        self.env.change_catalog(base, change).await
    }
    async fn change_catalog_with(&self, txn: &mut MemoryTxn, base: &Catalog, change: CatalogChange) -> Result<Result<()>> {
        self.env.change_catalog_with(&mut txn.txn, base, change).await
    }
    fn now_micros(&self) -> u64 {
        self.env.now_micros()
    }
    fn random(&self) -> u64 {
        self.env.random()
    }
    fn locality(&self) -> NodeLocality {
        self.env.locality()
    }
    fn nodes(&self) -> Vec<NodeLocality> {
        self.env.nodes()
    }
    fn sessions(&self) -> Vec<SessionRow> {
        self.env.sessions()
    }
    fn cancel(&self, session: SessionId) -> bool {
        self.env.cancel(session)
    }
}

/// A transaction that meets the faults.
pub struct MemoryTxn {
    txn: <MemEnvironment as Environment>::Txn,
    read_only: bool,
    /// Bytes of its writes.
    written: usize,
    faults: Arc<Faults>,
    load_bytes: Arc<AtomicUsize>,
}

impl MemoryTxn {
    async fn before_read(&self) -> Result<()> {
        let millis = self.faults.read_millis.load(Ordering::SeqCst);
        if millis > 0 {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        match take(&self.faults.unavailable) {
            true => Err(Error::unavailable("no primary")),
            false => Ok(()),
        }
    }
}

impl Transaction for MemoryTxn {
    async fn get(&mut self, group: GroupId, key: &Key, columns: ColumnMask, locking: Locking) -> Result<Option<Bytes>> {
        self.before_read().await?;
        self.txn.get(group, key, columns, locking).await
    }
    async fn get_many(
        &mut self,
        group: GroupId,
        keys: &[Key],
        columns: ColumnMask,
        locking: Locking,
    ) -> Result<Vec<Option<Bytes>>> {
        self.before_read().await?;
        self.txn.get_many(group, keys, columns, locking).await
    }
    fn is_distant(&self, _: GroupId) -> bool {
        self.faults.is_far.load(Ordering::SeqCst)
    }
    async fn prefetch_each(&mut self, _: Vec<(GroupId, Vec<Key>)>, _: ColumnMask) -> Result<()> {
        self.faults.requests_ahead.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    async fn scan(&mut self, group: GroupId, scan: Scan) -> Result<ScanRows> {
        self.before_read().await?;
        self.txn.scan(group, scan).await
    }
    fn write(&mut self, group: GroupId, write: Write) -> Result<()> {
        assert!(!self.read_only, "a write in a transaction that was begun as read-only");
        self.written += write.key.as_bytes().len() + write.value.as_ref().map_or(0, Bytes::len);
        self.txn.write(group, write)
    }
    async fn offer(&mut self, group: GroupId, share: &Key, late: &Late) -> Result<Option<Offer>> {
        self.before_read().await?;
        self.txn.offer(group, share, late).await
    }
    fn add(&mut self, group: GroupId, share: Key, delta: i128) -> Result<()> {
        self.txn.add(group, share, delta)
    }
    fn shift(&mut self, group: GroupId, share: Key, late: Late) -> Result<()> {
        self.txn.shift(group, share, late)
    }
    fn renew(&mut self, group: GroupId, share: Key, is_there: bool) -> Result<()> {
        self.txn.renew(group, share, is_there)
    }
    fn added(&self, group: GroupId, share: &Key) -> Late {
        self.txn.added(group, share)
    }
    fn hold(&mut self, group: GroupId, range: KeyRange) -> Result<()> {
        self.txn.hold(group, range)
    }
    fn incarnation(&self) -> TxnId {
        self.txn.incarnation()
    }
    fn uses(&mut self, descriptors: &[DescriptorId]) {
        self.txn.uses(descriptors);
    }
    fn savepoint(&mut self) -> Savepoint {
        self.txn.savepoint()
    }
    fn rollback_to(&mut self, to: Savepoint) {
        self.txn.rollback_to(to);
    }
    async fn confirm(&mut self) -> Result<()> {
        self.faults.meet_loss()
    }
    async fn commit(self) -> Result<Option<Timestamp>> {
        self.faults.meet_loss()?;
        if self.txn.has_writes() && take(&self.faults.conflicts) {
            return Err(Error::retry("could not serialize access to table \"t\": concurrent write"));
        }
        self.txn.commit().await
    }
    fn rollback(self) {
        self.txn.rollback();
    }
    fn has_writes(&self) -> bool {
        self.txn.has_writes()
    }
    fn nears_bound(&self) -> bool {
        self.written > self.load_bytes.load(Ordering::SeqCst)
    }
    fn beside(&self) -> MemoryTxn {
        MemoryTxn {
            txn: self.txn.beside(),
            written: 0,
            faults: self.faults.clone(),
            load_bytes: self.load_bytes.clone(),
            ..*self
        }
    }
    fn take_writes(&mut self) -> Vec<(GroupId, Write)> {
        self.txn.take_writes()
    }
}
