//! What SQL asks of the database below it. `node` implements both traits over replica groups; tests
//! implement them in memory.

use crate::catalog::{Catalog, CatalogChange};
pub use crate::rows::*;
use crate::temporary::Temporary;
use bytes::Bytes;
use meridian_base::escrow::{Late, Offer};
use meridian_base::{
    ColumnMask, DescriptorId, Error, GroupId, Key, KeyRange, Result, SchemaVersion, SessionId, Timestamp, TxnId, Write,
};
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The node a session runs on.
pub trait Environment: Clone + Send + Sync + 'static {
    type Txn: Transaction;

    /// The newest catalog this node knows. Immutable; never leaves the region.
    fn catalog(&self) -> Arc<Catalog>;
    /// The catalog as it was; waits, for a bounded time, until that is known here. 72000 if it is
    /// too long ago.
    fn catalog_at(&self, at: Timestamp) -> impl Future<Output = Result<Arc<Catalog>>> + Send {
        let _ = at;
        async { Ok(self.catalog()) }
    }
    /// A catalog for a read of the past whose timestamp is at least `min` and not chosen yet, and
    /// the latest timestamp that the catalog holds for. It is the newest catalog, or the one that
    /// this node knows when no primary can be reached.
    fn catalog_since(&self, min: Timestamp) -> impl Future<Output = Result<(Arc<Catalog>, Timestamp)>> + Send {
        let _ = min;
        async { Ok((self.catalog(), Timestamp::MAX)) }
    }
    /// Waits, for a bounded time, until [`Environment::catalog`] is known to be as new as
    /// everything acknowledged so far: «does not exist» is an answer that no group certifies.
    fn catch_up(&self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
    /// How often it was not known for a while, up to the last [`Environment::catch_up`]: what
    /// others told this node meanwhile may be lost.
    fn lapses(&self) -> u64 {
        0
    }
    /// The transactions over several groups that are prepared and not decided, in the whole
    /// cluster: `SHOW TRANSACTIONS`.
    fn transactions(&self) -> impl Future<Output = Result<Vec<TransactionRow>>> + Send {
        async { Ok(Vec::new()) }
    }
    /// Where the replicas of all groups are, the catalog's first, and whether they are where they
    /// belong: `SHOW RANGES`, and what a change of regions waits for.
    fn groups(&self) -> impl Future<Output = Result<Vec<GroupRow>>> + Send {
        async { Ok(Vec::new()) }
    }
    /// Ends a transaction that is in doubt because a participant cannot be reached. What becomes of
    /// it at each group. 55000 if the participants can still end it themselves, or if it might be
    /// torn apart and `is_unsafe` does not allow that.
    fn resolve_transaction(&self, id: &str, commit: bool, is_unsafe: bool) -> impl Future<Output = Result<Vec<String>>> + Send {
        let _ = (id, commit, is_unsafe);
        async { Err(Error::unsupported("there are no transactions over several groups here")) }
    }
    /// Starts a transaction. Touches nothing yet: its snapshot at a group is taken at the first
    /// read there.
    fn begin(&self, options: TxnOptions) -> Self::Txn;
    /// Runs one step of a schema change, derived from the catalog at version `base`. Returns the
    /// catalog that contains it once no group can commit with the old version any more. Fails with
    /// kind `Retry` if the catalog is no longer at `base`: derive the change again.
    fn change_catalog(&self, base: SchemaVersion, change: CatalogChange) -> impl Future<Output = Result<Arc<Catalog>>> + Send;
    /// The same together with a transaction: both happen, at one timestamp, or neither. The inner
    /// error is of kind `Retry`, the catalog is no longer at `base`, and the transaction still
    /// waits: derive the change again. After anything else the transaction is over.
    fn change_catalog_with(
        &self,
        txn: &mut Self::Txn,
        base: &Catalog,
        change: CatalogChange,
    ) -> impl Future<Output = Result<Result<()>>> + Send;
    /// Has every replica of a group fill a new index from its own rows, and waits until all have.
    /// `None` if they cannot, or one of them does not answer: then the caller fills the index by
    /// transactions, whatever has been done so far.
    fn build_index(&self, group: GroupId, build: IndexBuild) -> impl Future<Output = Result<Option<Built>>> + Send {
        let _ = (group, build);
        async { Ok(None) }
    }
    /// Whether an index that was built has not changed since, up to a time that has passed.
    fn is_as_built(
        &self,
        group: GroupId,
        index: u32,
        built: Built,
        through: Timestamp,
    ) -> impl Future<Output = Result<bool>> + Send {
        let _ = (group, index, built, through);
        async { Ok(false) }
    }
    /// Runs what computes for long, and waits for nothing, where it keeps no other session waiting.
    fn compute<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> impl Future<Output = T> + Send {
        async move { work() }
    }
    /// A new file for what a statement has no room for in memory; `None`: it has to do without.
    fn temporary(&self) -> Option<Arc<dyn Temporary>> {
        None
    }
    /// Whether every node knows escrow columns.
    fn knows_escrow(&self) -> bool {
        true
    }
    /// Whether every node knows roles: they came with escrow columns, in version 2 of a cluster.
    fn knows_roles(&self) -> bool {
        self.knows_escrow()
    }
    /// Microseconds since 1970. One call per statement.
    fn now_micros(&self) -> u64;
    /// Whether reading in these groups may take a message to another region, or a commit over
    /// several groups.
    fn is_far(&self, groups: &[GroupId]) -> bool {
        let _ = groups;
        false
    }
    /// A random number, for `random()` and `gen_random_uuid()`.
    fn random(&self) -> u64;
    /// Where this node is.
    fn locality(&self) -> NodeLocality;
    /// Every live node's locality: what `SHOW REGIONS FROM CLUSTER` shows and what region names are
    /// checked against.
    fn nodes(&self) -> Vec<NodeLocality>;
    /// What other sessions of this node do, for `pg_stat_activity`: (session, user, database,
    /// state, query).
    fn sessions(&self) -> Vec<SessionRow>;
    /// Every node forgets the numbers that it has drawn of a sequence and not handed out. When this
    /// returns, none hands them out any more; one that cannot be reached has
    /// [`Environment::lapses`] before it does.
    fn forget_drawn(&self, sequence: DescriptorId) -> impl Future<Output = Result<()>> + Send {
        let _ = sequence;
        async { Ok(()) }
    }
    /// Cancels the running statement of another session of this node (`pg_cancel_backend`). Whether
    /// there was such a session.
    fn cancel(&self, session: SessionId) -> bool;
    /// Begins to take what is outside of the database (certificates) from its files again, as
    /// SIGHUP does: `pg_reload_conf()`. What comes of it is in the log.
    fn reload(&self) {}
    /// The hosts of the pods that this node is in: `SHOW POD`.
    ///
    /// # Errors
    ///
    /// If the shared memory is damaged.
    fn pods(&self) -> Result<Vec<PodHostRow>> {
        Ok(Vec::new())
    }
    /// What this node has counted since it started, by name: `SHOW METRICS`.
    fn metrics(&self) -> Vec<(String, u64)> {
        Vec::new()
    }
}

/// An index to be filled: see [`Environment::build_index`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexBuild {
    pub table: DescriptorId,
    pub index: u32,
    /// The table's primary index.
    pub source: u32,
    /// A catalog in which writers maintain the index: its version, and when that was made.
    pub version: SchemaVersion,
    pub above: Timestamp,
}

/// An index that all replicas of a group have filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Built {
    /// With the entries of the rows as of then.
    pub at: Timestamp,
    /// No two of these rows have the same entry, if it is unique.
    pub is_unique: bool,
}

/// How a transaction starts.
#[derive(Clone, Debug)]
pub struct TxnOptions {
    pub session: SessionId,
    /// Declared (`READ ONLY`) or known (a single `SELECT` outside a transaction block): it will not
    /// write or lock, so it reads the newest applied state, never waits for writers in flight, and
    /// never aborts.
    pub read_only: bool,
    /// The catalog it plans with: version, and the commit timestamp of the step that made it.
    pub schema: SchemaVersion,
    pub schema_committed_at: Timestamp,
    /// How long a wait in a queue may take (`lock_timeout`); `None` for no limit of its own.
    pub lock_timeout: Option<std::time::Duration>,
    /// How long a wait in a queue lasts before a circle over several primaries is looked for
    /// (`deadlock_timeout`); circles at one primary are seen at once. `None`: never.
    pub deadlock_timeout: Option<std::time::Duration>,
    /// How many attempts of the same work came before this one.
    pub attempt: u32,
    /// It reads the past (`AS OF SYSTEM TIME`): read-only, never certified, never aborted, delaying
    /// nobody.
    pub as_of: Option<AsOf>,
    /// Nobody sees what it reads before it has committed: it may read at a replica what its commit
    /// certifies. (One that writes may always: what a client sees inside an open transaction is
    /// speculative.)
    pub is_held_back: bool,
    /// It is a transaction block: its client sees what it reads before it has committed, and knows
    /// that this is speculative.
    pub is_block: bool,
}

/// Which past a transaction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf {
    Exact(Timestamp),
    /// The newest time that the nearest replicas of everything it reads can serve, but not before
    /// `min` and not after `max`.
    Bounded {
        min: Timestamp,
        max: Timestamp,
        /// Fail rather than ask the primaries, if the replicas are behind `min`.
        nearest_only: bool,
    },
}

/// How a read treats others that want the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Locking {
    /// A plain read.
    #[default]
    None,
    /// Takes the exclusive entry in the key's wait queue before reading it: what `UPDATE`, `DELETE`
    /// and `FOR UPDATE` do.
    Exclusive(OnLocked),
    /// The shared entry: `FOR SHARE`.
    Shared(OnLocked),
    /// The entry of who writes the row and leaves its keys as they are: `FOR NO KEY UPDATE`, most
    /// `UPDATE`s.
    KeyKept(OnLocked),
    /// The entry of who needs the row to stay there, and its keys: `FOR KEY SHARE`.
    KeyShared(OnLocked),
}

impl Locking {
    /// What to do if another transaction holds the entry; `None` if none is taken.
    pub fn if_busy(self) -> Option<OnLocked> {
        match self {
            Locking::None => None,
            Locking::Exclusive(on) | Locking::Shared(on) | Locking::KeyKept(on) | Locking::KeyShared(on) => Some(on),
        }
    }
    /// Whether it is that of who is about to write the row.
    pub fn is_to_write(self) -> bool {
        matches!(self, Locking::Exclusive(_) | Locking::KeyKept(_))
    }
}

/// What to do if another transaction holds the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLocked {
    Wait,
    /// 55P03.
    NoWait,
    /// Leave the row out.
    Skip,
    /// Wait for a moment, then go on without the entry: whoever asks wants to avoid conflicts, and
    /// was not told to.
    Briefly,
}

/// A scan of part of one index.
#[derive(Clone, Debug)]
pub struct Scan {
    pub range: KeyRange,
    /// The columns whose change would change the answer; existence is added by itself.
    pub columns: ColumnMask,
    pub reverse: bool,
    /// How many rows the reader needs at most: the scan, and what is certified, stops there.
    pub limit: Option<usize>,
    pub locking: Locking,
}

/// Some rows of a scan, in its order.
#[derive(Debug, Default)]
pub struct ScanRows {
    pub rows: Vec<(Key, Bytes)>,
    /// The rest of the range, if the scan is not at its end.
    pub rest: Option<KeyRange>,
}

/// What became of a page that a visitor was to see.
pub enum Visited {
    /// It has seen rows; this is left of the range.
    Seen(Option<KeyRange>),
    /// It has seen none: they were fetched from elsewhere, or have writes laid over them.
    Fetched(ScanRows),
}

/// Sees the rows of a page where they are stored, so that a row costs no copy.
pub trait RowVisitor: Send {
    /// The next entry. `Break` ends the page behind it. Looking at a key costs memory accesses.
    fn row(&mut self, key: &dyn AsRef<[u8]>, value: &[u8]) -> ControlFlow<()>;
    /// Whether it takes about a microsecond for a row of usual size: then it sees rows under a lock
    /// that writers wait for.
    fn is_brief(&self) -> bool;
    /// What was seen of this page does not count: it is read again from its beginning.
    fn restart(&mut self);
}

/// A range of a group as of one moment, which any thread may read: of what the range covers, each a
/// part.
pub trait SharedScan: Send + Sync {
    /// Shows the values of a page to `row`, from the start of a part on, in the order of the keys.
    /// `Break` ends the page behind a value.
    fn page(&self, part: &KeyRange, rows: usize, row: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<SharedPage>;
}

/// What is known after a page.
#[derive(Debug)]
pub struct SharedPage {
    /// What is left of the part.
    pub rest: Option<KeyRange>,
    /// When the newest of its rows was written.
    pub newest: Timestamp,
}

/// A transaction at its gateway: reads are recorded for certification, writes are buffered and
/// overlay its own reads.
///
/// After an error of kind `Retry` every further call fails; start again with a new transaction.
pub trait Transaction: Send + 'static {
    /// The newest value of one key in the transaction's view. `None`: no such row (or skipped
    /// because it was locked).
    fn get(
        &mut self,
        group: GroupId,
        key: &Key,
        columns: ColumnMask,
        locking: Locking,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send;
    /// Several keys at once, answers in the same order: one round trip if the group is far away.
    fn get_many(
        &mut self,
        group: GroupId,
        keys: &[Key],
        columns: ColumnMask,
        locking: Locking,
    ) -> impl Future<Output = Result<Vec<Option<Bytes>>>> + Send;
    /// Keys in several groups, no group twice, answers in the same order: one round trip, however
    /// many of the groups are far away.
    fn get_each(
        &mut self,
        reads: Vec<(GroupId, Vec<Key>)>,
        columns: ColumnMask,
        locking: Locking,
    ) -> impl Future<Output = Result<Vec<Vec<Option<Bytes>>>>> + Send {
        async move {
            let mut answers = Vec::with_capacity(reads.len());
            for (group, keys) in reads {
                answers.push(self.get_many(group, &keys, columns, locking).await?);
            }
            Ok(answers)
        }
    }
    /// Pages of scans in several groups, no group twice: one round trip.
    fn scan_each(&mut self, scans: Vec<(GroupId, Scan)>) -> impl Future<Output = Result<Vec<ScanRows>>> + Send {
        async move {
            let mut answers = Vec::with_capacity(scans.len());
            for (group, scan) in scans {
                answers.push(self.scan(group, scan).await?);
            }
            Ok(answers)
        }
    }
    /// Whether every read of this group costs a message, so that [`Transaction::prefetch`] pays.
    fn is_distant(&self, group: GroupId) -> bool {
        let _ = group;
        false
    }
    /// Whether every lock in this group costs a message: they are all with its primary.
    fn locks_elsewhere(&self, group: GroupId) -> bool {
        let _ = group;
        false
    }
    /// Fetches keys that will be asked for one by one, in one round trip. Only what is asked for
    /// later counts as read.
    fn prefetch(&mut self, group: GroupId, keys: &[Key], columns: ColumnMask) -> impl Future<Output = Result<()>> + Send {
        let _ = (group, keys, columns);
        async { Ok(()) }
    }
    /// The same in several groups, no group twice: one round trip.
    fn prefetch_each(&mut self, reads: Vec<(GroupId, Vec<Key>)>, columns: ColumnMask) -> impl Future<Output = Result<()>> + Send {
        async move {
            for (group, keys) in reads {
                self.prefetch(group, &keys, columns).await?;
            }
            Ok(())
        }
    }
    /// A page of a scan; call again with [`ScanRows::rest`] for more.
    fn scan(&mut self, group: GroupId, scan: Scan) -> impl Future<Output = Result<ScanRows>> + Send;
    /// The same without locks, for a visitor if the rows are here.
    fn visit(&mut self, group: GroupId, scan: Scan, _: &mut dyn RowVisitor) -> impl Future<Output = Result<Visited>> + Send {
        async move { Ok(Visited::Fetched(self.scan(group, scan).await?)) }
    }
    /// The same for several threads. From now on the whole range counts as read. `None`: it has to
    /// be read page by page.
    fn share_scan(&mut self, group: GroupId, scan: Scan) -> impl Future<Output = Result<Option<Arc<dyn SharedScan>>>> + Send {
        let _ = (group, scan);
        async { Ok(None) }
    }
    /// What a page of [`Transaction::share_scan`] has shown is part of what the transaction knows.
    fn has_seen(&mut self, group: GroupId, newest: Timestamp) {
        let _ = (group, newest);
    }
    /// Buffers a write. 53200 if the transaction grows too large.
    fn write(&mut self, group: GroupId, write: Write) -> Result<()>;
    /// How far a row's number may go by changes in this group, the transaction's own included;
    /// `None`: the group has no share of it. Nothing certifies what this says. In a block, what
    /// `late` takes may be held for it for a while, if it is there.
    fn offer(&mut self, group: GroupId, share: &Key, late: &Late) -> impl Future<Output = Result<Option<Offer>>> + Send {
        let _ = (group, share, late);
        async { Ok(None) }
    }
    /// Moves tokens to the first site, in a transaction of its own, so that it allows this change.
    fn bring(&mut self, sites: &[GroupId], share: &Key, late: Late) -> impl Future<Output = Result<Brought>> + Send {
        let _ = (sites, share, late);
        async { Ok(Brought::No) }
    }
    /// The same for changes of several numbers at once, ahead of them: whether tokens come is
    /// looked at later.
    fn bring_each(&mut self, sites: &[GroupId], changes: Vec<(Key, Late)>) -> impl Future<Output = Result<()>> + Send {
        let _ = (sites, changes);
        async { Ok(()) }
    }
    /// Buffers a delta of a share (`base::escrow`). Certification asserts that the share is there
    /// and covers it.
    fn add(&mut self, group: GroupId, share: Key, delta: i128) -> Result<()>;
    /// Buffers a change of a share's grants, whose incarnation is known: certification asserts that
    /// it still is that one, and that it allows the change.
    fn shift(&mut self, group: GroupId, share: Key, late: Late) -> Result<()>;
    /// Buffers the end of a share's rounds of `majority`: it gets the transaction as its
    /// incarnation, and keeps what it has. Refused while an offer is out; and where `is_there` says
    /// that there is a share, if there is none. To be written at all sites, whose ranges are held.
    fn renew(&mut self, group: GroupId, share: Key, is_there: bool) -> Result<()>;
    /// What is buffered so far to be added to a share: reads do not show it.
    fn added(&self, group: GroupId, share: &Key) -> Late;
    /// Keeps everything in the range as it is from certification to the commit, whatever it is: for
    /// shares that are about to be written whole.
    fn hold(&mut self, group: GroupId, range: KeyRange) -> Result<()>;
    /// What each of the groups has in some ranges, as replicas in this region know it: all at one
    /// moment, the newest that is over there, or at the transaction's own if it reads the past. No
    /// message leaves the region, and nothing is certified. The transaction's own writes are laid
    /// over, but for deltas. 57P03: no replica in this region answers. Here, for those that have no
    /// replicas: an ordinary read.
    fn scan_nearby(
        &mut self,
        groups: &[GroupId],
        ranges: &[KeyRange],
    ) -> impl Future<Output = Result<Vec<Vec<(Key, Bytes)>>>> + Send {
        async move {
            let mut all = Vec::with_capacity(groups.len());
            for group in groups {
                let mut found = Vec::new();
                for range in ranges {
                    let mut left = Some(range.clone());
                    while let Some(range) = left.take() {
                        let columns = ColumnMask::ALL;
                        let scan = Scan { range, columns, reverse: false, limit: None, locking: Locking::None };
                        let page = self.scan(*group, scan).await?;
                        found.extend(page.rows);
                        left = page.rest;
                    }
                }
                all.push(found);
            }
            Ok(all)
        }
    }
    /// What each site has of a row at one moment since the statement began, with the transaction's
    /// own writes, but for deltas. Nothing is certified, nobody waits. `None`: the transaction may
    /// go on after it has seen that, so it has to read what it will be certified with.
    fn sites_now(
        &mut self,
        sites: &[GroupId],
        share: &Key,
    ) -> impl Future<Output = Result<Option<Vec<Vec<(Key, Bytes)>>>>> + Send {
        let _ = (sites, share);
        async { Ok(None) }
    }
    /// Names this transaction among all that ever were.
    fn incarnation(&self) -> TxnId;
    /// Names the descriptors the transaction depends on; it is certified that none of them changed.
    fn uses(&mut self, descriptors: &[DescriptorId]);
    /// Marks a place in the write buffer, and among the entries in wait queues.
    fn savepoint(&mut self) -> Savepoint;
    /// Forgets the writes since the mark, and leaves the queues that were entered since. What was
    /// read stays read.
    fn rollback_to(&mut self, to: Savepoint);
    /// Whether reads of this group take entries in its wait queues: a replica that is not the
    /// primary has none.
    fn takes_entries(&self, group: GroupId, locking: Locking) -> bool {
        let _ = group;
        locking != Locking::None
    }
    /// Leaves the queues of these keys, as far as they were entered since the mark: their rows were
    /// not what was looked for.
    fn leave_queues_of(&mut self, group: GroupId, keys: &[Key], since: Savepoint) {
        let _ = (group, keys, since);
    }
    /// How much was read in a group so far.
    fn reads_in(&self, group: GroupId) -> usize {
        let _ = group;
        0
    }
    /// Forgets some of what was read in a group, numbered as [`Transaction::reads_in`] counts:
    /// nothing rests on it.
    fn forget_reads(&mut self, group: GroupId, reads: std::ops::Range<usize>) {
        let _ = (group, reads);
    }
    /// Round trips to other regions: those made so far, and those that a commit would take now.
    fn round_trips(&self) -> (u32, u32) {
        (0, 0)
    }
    /// Certifies what was read so far: before an error that rests on it is told to the client. An
    /// error of kind `Retry`: it was out of date, and the transaction is to run again.
    fn confirm(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
    /// Commits. Without writes there is nothing to wait for in a read-only transaction.
    fn commit(self) -> impl Future<Output = Result<Option<Timestamp>>> + Send;
    /// Drops the writes and leaves the wait queues. Dropping the transaction does the same.
    fn rollback(self);
    /// Whether anything is buffered.
    fn has_writes(&self) -> bool;
    /// Whether so much is buffered that the rest of a load would better not be.
    fn nears_bound(&self) -> bool;
    /// Another transaction of the session, which begins now, depends on the same descriptors, and
    /// commits by itself.
    fn beside(&self) -> Self
    where
        Self: Sized;
    /// Takes out what is buffered, which are writes of whole rows and entries: the transaction has
    /// none then.
    fn take_writes(&mut self) -> Vec<(GroupId, Write)>;
}

/// What came of moving tokens to a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    /// The site allows the change now.
    Yes,
    /// All sites together have too few.
    TooFew,
    /// Those that answer have too few, or are too few themselves.
    TooFewAnswer,
    /// Another site may allow it, or this one later.
    No,
}

/// A place in what a transaction does; the default is its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Savepoint {
    /// How many writes were buffered.
    pub writes: usize,
    /// How many entries in wait queues were taken.
    pub entries: usize,
}
