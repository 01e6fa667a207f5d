//! A transaction at its gateway: what it read, a write buffer that overlays its own reads, and the
//! commit.
//!
//! What it does in each group is a [`Part`]: the read entries that certification will test, and the
//! writes. [`reads`] decides where a read goes, [`each`] makes reads of several groups together,
//! [`commit`] what a commit takes: nothing, one group's certification, a round of checks, or the
//! ballot of several groups. What a client sees inside an open transaction is speculative until its
//! commit succeeds; an error that ends it is told only after [`Transaction::confirm`].

pub(crate) mod ages;
mod ballot;
mod commit;
pub(crate) mod deadlock;
mod each;
mod escrow;
mod global;
mod lately;
mod nearby;
pub(crate) mod overlay;
mod part;
mod past;
pub(crate) mod protocol;
mod reads;
pub(crate) mod reserving;
pub(crate) mod size;
pub(crate) mod stale;
mod with_step;

pub(crate) use ballot::{Ballots, Counted, reserved, vote_on, voted};
pub(crate) use commit::{CALL_TIMEOUT, COMMIT_PATIENCE};
pub use protocol::{Attempts, CommitProtocol, PrepareOrder, Protocol, Tally};

use crate::gateway::Gateway;
use crate::local::metrics::Counter;
use crate::local::protected;
use crate::membership::ask::Tries;
use crate::membership::shared::Shared;
use crate::replica::errors::conflict_error;
use crate::transport::wire::{Request, View};
use bytes::Bytes;
use meridian_base::escrow::{Late, Offer, Share};
use meridian_base::{
    Change, ColumnMask, Conflict, DescriptorId, Error, GroupId, Key, KeyRange, Mutation, NodeId, Result, SchemaUse, Timestamp,
    TxnId, Write, limits,
};
use meridian_region::Owner;
use meridian_sql::catalog::Descriptor;
use meridian_sql::env::{Brought, Locking, RowVisitor, Savepoint, Scan, ScanRows, SharedScan, Transaction, TxnOptions, Visited};
use part::Part;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

const RELEASE_TIMEOUT: Duration = Duration::from_secs(6);
/// Entries that are not released stay until the primary's term ends.
const RELEASE_PATIENCE: Duration = Duration::from_secs(30);
const KEYS_RELEASED_AT_ONCE: usize = 4_096;
/// Keys that are fetched ahead in one request.
const FETCHED_AHEAD_MAX: usize = 2_048;
/// Pages of a single statement that are read long before they might be garbage.
const PAGES_UNPROTECTED: u32 = 16;

/// See the module's essay.
pub struct Txn {
    pub(in crate::gateway) gateway: Arc<Gateway>,
    protocol: Protocol,
    options: TxnOptions,
    began: Timestamp,
    /// When the first attempt at the same work began.
    since: Timestamp,
    /// Attempts of the same work that came before, as far as that is known: a client that tries
    /// again itself is recognised by its session.
    attempts: u32,
    schema: SchemaUse,
    /// In the order of first use; seldom more than three.
    parts: Vec<Part>,
    /// What each write replaced, and in which part, for savepoints.
    undo: Vec<(u32, Key, Option<Box<Mutation>>)>,
    /// The entries in wait queues that it has taken, by part, in their order, for savepoints.
    entries: Vec<(usize, Key)>,
    bytes: usize,
    /// Its share of what the node's large transactions may keep.
    room: Option<size::Room>,
    /// The largest version timestamp read.
    newest: Timestamp,
    /// Certification has failed, or a read could not go on: only a new transaction helps.
    failed: Option<Error>,
    /// Before its first read it may reserve what an earlier attempt has read.
    reserves_reads: bool,
    /// The values it runs over, if it has.
    reserved: Option<Box<reserving::Reserved>>,
    /// Round trips to other regions so far, one after the other.
    round_trips: u32,
    /// The moment it reads, if it reads the past; a bounded one is negotiated at the first read.
    past: Option<Timestamp>,
    global: global::GlobalReading,
    /// It reads in one of several groups that are read at once ([`each`]).
    is_branch: bool,
    /// Pages that it has read.
    pages: u32,
    /// Keeps what it may still read, if it may take long.
    protected: Option<protected::Guard>,
}

impl Txn {
    pub(crate) fn new(gateway: Arc<Gateway>, options: TxnOptions) -> Txn {
        let shared = &gateway.shared;
        // No two transactions of a gateway begin at the same time: wait queues tell them apart by
        // that.
        let physical = shared.runtime.physical_micros();
        let began = match shared.groups.common.rules.snapshots_move() {
            // The clocks in other nodes' messages would hide the bug.
            false => Timestamp::from_micros(physical),
            true => shared.clock.tick(physical),
        };
        let since = gateway.ages.take(options.session).unwrap_or(began);
        let schema = SchemaUse { version: options.schema, ..SchemaUse::default() };
        let protocol = gateway.protocol();
        Txn {
            attempts: options.attempt.max(gateway.refusals.count(options.session)),
            protocol,
            reserves_reads: reserving::may_reserve(&options, protocol),
            reserved: None,
            gateway,
            options,
            began,
            since,
            schema,
            parts: Vec::with_capacity(1),
            undo: Vec::new(),
            entries: Vec::new(),
            bytes: 0,
            room: None,
            newest: Timestamp::MIN,
            failed: None,
            round_trips: 0,
            past: None,
            global: Default::default(),
            is_branch: false,
            pages: 0,
            protected: None,
        }
    }

    /// A transaction of many pages may last.
    fn note_page(&mut self) {
        self.pages += 1;
        if self.pages == PAGES_UNPROTECTED {
            self.protect();
        }
    }

    /// From here on what it may read is kept. Its snapshots are newer than its beginning, or nearly
    /// so.
    fn protect(&mut self) {
        let at = self.past.unwrap_or(self.began);
        self.protected.get_or_insert_with(|| self.gateway.shared.groups.common.protected.protect(at));
    }

    /// The place of a group's part; made at its first use.
    fn part(&mut self, group: GroupId) -> Result<usize> {
        if let Some(e) = &self.failed {
            return Err(e.clone());
        }
        if let Some(at) = self.parts.iter().position(|p| p.group == group) {
            return Ok(at);
        }
        if self.options.is_block {
            self.protect();
        }
        let view = View {
            session: self.options.session,
            began: self.began,
            since: self.since,
            read_only: self.options.read_only,
            snapshot: None,
            is_settled: false,
            schema: self.schema.clone(),
            schema_committed_at: self.options.schema_committed_at,
            lock_timeout: self.options.lock_timeout,
            entries: Vec::new(),
            has_entries: true,
            skipped: Vec::new(),
        };
        self.parts.push(Part::new(group, view, self.gateway.shared.catalog.is_global(group)));
        Ok(self.parts.len() - 1)
    }

    fn note_failure(&mut self, e: Error) -> Error {
        if e.is_retry() {
            self.gateway.ages.keep(self.options.session, self.since);
            self.failed = Some(e.clone());
        }
        e
    }

    /// Certification's answer, with the table's name.
    fn explain(&self, conflict: &Conflict) -> Error {
        let e = conflict_error(conflict);
        let mut bytes = conflict.key.as_bytes();
        let Some(index) = meridian_base::key::decode::index(&mut bytes) else { return e };
        let catalog = self.gateway.shared.catalog.active();
        let table = catalog.descriptors.values().find_map(|d| match &**d {
            Descriptor::Table(t) if t.has_index(index) => Some(t.name.clone()),
            _ => None,
        });
        match table {
            Some(name) => e.detail(format!("table \"{name}\", key {:?}", conflict.key)).table(name),
            None => e,
        }
    }

    fn is_far(&self, group: GroupId) -> bool {
        !self.gateway.shared.groups.is_primary_near(group)
    }

    /// Counts a transaction that touched other regions.
    fn count(&self, is_committed: bool) {
        // GLOBAL rows that were only read are this region's own.
        let is_elsewhere = |p: &Part| self.is_far(p.group) && (!p.is_global || self.global.is_written || p.has_queued());
        if self.parts.iter().any(is_elsewhere) {
            self.gateway.tally.lock().note(self.options.attempt, self.round_trips, is_committed);
            match is_committed {
                true => self.gateway.shared.groups.common.metrics.committed(self.attempts, self.round_trips),
                false => self.gateway.shared.groups.common.metrics.add(Counter::Aborted),
            }
        }
    }

    /// What it is called in wait queues.
    fn owner(&self) -> Owner {
        Owner { gateway: self.gateway.shared.me(), session: self.options.session, began: self.began, since: self.since }
    }

    /// It has entered the queues of these keys.
    fn note_entries(&mut self, at: usize, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            if self.parts[at].entries.insert(key.clone()) {
                self.entries.push((at, key));
            }
        }
    }

    /// Notes a change; it is sent with the commit.
    fn buffer(&mut self, group: GroupId, mut write: Mutation) -> Result<()> {
        let at = self.part(group)?;
        // What was read of the past is not certified.
        if self.options.read_only || self.options.as_of.is_some() {
            return Err(Error::sql("25006", "cannot write in a read-only transaction"));
        }
        self.gateway.shared.check_room(group, write.change.adds())?;
        if write.key.as_bytes().len() > limits::KEY_BYTES_MAX {
            return Err(Error::sql("54000", "index row is too large").detail(format!(
                "The key has {} bytes; the limit is {}.",
                write.key.as_bytes().len(),
                limits::KEY_BYTES_MAX
            )));
        }
        self.grow(group, write.bytes())?;
        let key = write.key.clone();
        let before = match self.parts[at].writes.entry(key.clone()) {
            Entry::Vacant(place) => {
                place.insert(write);
                None
            }
            Entry::Occupied(mut place) => {
                write.columns |= place.get().columns;
                write.change = after(&place.get().change, write.change);
                Some(place.insert(write))
            }
        };
        self.undo.push((at as u32, key, before.map(Box::new)));
        Ok(())
    }

    /// Leaves the queues of these keys, and goes on.
    fn leave_keys(&mut self, at: usize, keys: Vec<Key>) {
        if keys.is_empty() {
            return;
        }
        let owner = self.owner();
        let part = &mut self.parts[at];
        keys.iter().for_each(|key| {
            part.entries.remove(key);
        });
        let group = part.group;
        for node in &part.queued_at {
            if *node == self.gateway.shared.me() {
                self.gateway.shared.groups.replica(group).into_iter().for_each(|replica| replica.release_keys(owner, &keys));
                continue;
            }
            for keys in keys.chunks(KEYS_RELEASED_AT_ONCE) {
                let (shared, node, keys) = (self.gateway.shared.clone(), *node, keys.to_vec());
                self.gateway.shared.spawn(async move {
                    // If it is lost, the entries end with the transaction.
                    let _ = shared.rpc.call(node, Request::ReleaseKeys { group, owner, keys }, RELEASE_TIMEOUT).await;
                });
            }
        }
    }

    /// An entry is in the memory of the primary that gave it, and nowhere else. If that leads the
    /// group no more, it has no queues.
    fn leave_queues(&mut self) {
        let owner = self.owner();
        for part in &mut self.parts {
            let group = part.group;
            for node in std::mem::take(&mut part.queued_at) {
                if node == self.gateway.shared.me() {
                    self.gateway.shared.groups.replica(group).into_iter().for_each(|replica| replica.release_locks(owner));
                } else {
                    self.gateway.shared.spawn(release(self.gateway.shared.clone(), node, group, owner));
                }
            }
        }
    }
}

/// One change after another of the same key.
fn after(first: &Change, then: Change) -> Change {
    match (first, &then) {
        (Change::Add(before), Change::Add(delta)) => Change::Add(before + delta),
        (Change::Shift(late), Change::Add(delta)) => Change::Shift(Box::new(late.plus(&Late::delta(late.incarnation, *delta)))),
        (Change::Add(delta), Change::Shift(late)) => Change::Shift(Box::new(late.plus(&Late::delta(late.incarnation, *delta)))),
        // The primary refuses what is of an incarnation that is over.
        (Change::Shift(before), Change::Shift(late)) => Change::Shift(Box::new(before.plus(late))),
        (Change::Put(share), Change::Add(delta)) => added(share, &Late::delta(TxnId::default(), *delta)).unwrap_or(then),
        (Change::Put(share), Change::Shift(late)) => added(share, late).unwrap_or(then),
        _ => then,
    }
}

fn added(share: &Bytes, late: &Late) -> Option<Change> {
    Some(Change::Put(Share::decode(share)?.plus(late).encode()))
}

/// If all of this is lost, the entries end with the primary's term or with this gateway.
async fn release(shared: Arc<Shared>, node: NodeId, group: GroupId, owner: Owner) {
    let mut tries = Tries::for_at_most(RELEASE_PATIENCE);
    while let Err(e) = shared.rpc.call(node, Request::Release { group, owner }, RELEASE_TIMEOUT).await {
        if tries.again(e).await.is_err() {
            return;
        }
    }
}

impl Transaction for Txn {
    async fn get(&mut self, group: GroupId, key: &Key, columns: ColumnMask, locking: Locking) -> Result<Option<Bytes>> {
        if self.options.as_of.is_some() {
            return self.get_past(group, std::slice::from_ref(key), columns).await.map(|mut found| found.pop().flatten());
        }
        let at = self.part(group)?;
        if self.reserves_reads {
            self.reserve().await?;
        }
        if let Some(value) = self.reserved_key(group, key, columns) {
            return Ok(value);
        }
        let part = &mut self.parts[at];
        if let Some(own) = part.own(key) {
            return Ok(own);
        }
        if locking == Locking::None
            && let Some(value) = part.take_prefetched(key, columns)
        {
            return Ok(value);
        }
        self.read_key(at, key, columns, locking).await
    }

    async fn get_many(
        &mut self,
        group: GroupId,
        keys: &[Key],
        columns: ColumnMask,
        locking: Locking,
    ) -> Result<Vec<Option<Bytes>>> {
        if self.options.as_of.is_some() {
            return self.get_past(group, keys, columns).await;
        }
        let at = self.part(group)?;
        if self.reserves_reads {
            self.reserve().await?;
        }
        if let Some(values) = self.reserved_keys(group, keys, columns) {
            return Ok(values);
        }
        if locking != Locking::None && self.gateway.shared.groups.local_server(group).is_some() {
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                values.push(self.get(group, key, columns, locking).await?);
            }
            return Ok(values);
        }
        let unknown: Vec<Key> = match self.parts[at].writes.is_empty() {
            true => keys.to_vec(),
            false => keys.iter().filter(|k| self.parts[at].own(k).is_none()).cloned().collect(),
        };
        let fetched = if unknown.is_empty() { Vec::new() } else { self.values_of(at, unknown, columns, locking).await? };
        let part = &self.parts[at];
        if part.writes.is_empty() {
            return Ok(fetched);
        }
        let mut fetched = fetched.into_iter();
        Ok(keys
            .iter()
            .map(|k| match part.own(k) {
                Some(own) => own,
                None => fetched.next().flatten(),
            })
            .collect())
    }

    async fn get_each(
        &mut self,
        reads: Vec<(GroupId, Vec<Key>)>,
        columns: ColumnMask,
        locking: Locking,
    ) -> Result<Vec<Vec<Option<Bytes>>>> {
        self.keys_of_each(reads, columns, locking).await
    }

    async fn scan_each(&mut self, scans: Vec<(GroupId, Scan)>) -> Result<Vec<ScanRows>> {
        self.pages_of_each(scans).await
    }

    fn is_distant(&self, group: GroupId) -> bool {
        self.is_elsewhere(group)
    }

    fn locks_elsewhere(&self, group: GroupId) -> bool {
        self.gateway.shared.groups.local_server(group).is_none()
    }

    async fn prefetch(&mut self, group: GroupId, keys: &[Key], columns: ColumnMask) -> Result<()> {
        if self.options.as_of.is_some() {
            return Ok(());
        }
        let at = self.part(group)?;
        if self.reserves_reads {
            self.reserve().await?;
        }
        if self.reserved_keys(group, keys, columns).is_some() {
            return Ok(());
        }
        let keys: Vec<Key> = keys.iter().filter(|k| !self.parts[at].writes.contains_key(*k)).cloned().collect();
        if keys.is_empty() || !self.is_elsewhere(group) {
            return Ok(());
        }
        let columns = columns | ColumnMask::EXISTENCE;
        let mut known = BTreeMap::new();
        for some in keys.chunks(FETCHED_AHEAD_MAX) {
            let before = self.parts[at].view.snapshot;
            let found = self.read_keys(at, some.to_vec(), columns, Locking::None).await?;
            if before.is_some() && before != self.parts[at].view.snapshot {
                // What was fetched before is of another snapshot.
                known.clear();
            }
            let values = some.iter().cloned().zip(found);
            known.extend(values.filter_map(|(key, (value, until))| Some((key, (value, until?)))));
        }
        let part = &mut self.parts[at];
        part.prefetched = known;
        part.prefetched_columns = columns;
        Ok(())
    }

    async fn prefetch_each(&mut self, reads: Vec<(GroupId, Vec<Key>)>, columns: ColumnMask) -> Result<()> {
        self.prefetch_of_each(reads, columns).await
    }

    async fn scan(&mut self, group: GroupId, scan: Scan) -> Result<ScanRows> {
        self.note_page();
        if self.options.as_of.is_some() {
            return self.scan_past(group, scan).await;
        }
        let at = self.part(group)?;
        if scan.range.is_empty() {
            return Ok(ScanRows::default());
        }
        if self.reserves_reads {
            self.reserve().await?;
        }
        if let Some(page) = self.reserved_page(group, &scan) {
            return Ok(page);
        }
        self.read_page(at, scan).await
    }

    async fn visit(&mut self, group: GroupId, scan: Scan, visitor: &mut dyn RowVisitor) -> Result<Visited> {
        let here = match self.options.as_of {
            Some(_) => self.visit_past(group, &scan, visitor).await?,
            None => self.visit_here(group, &scan, visitor).await?,
        };
        match here {
            Some(rest) => Ok(Visited::Seen(rest)),
            None => Ok(Visited::Fetched(self.scan(group, scan).await?)),
        }
    }

    async fn share_scan(&mut self, group: GroupId, scan: Scan) -> Result<Option<Arc<dyn SharedScan>>> {
        self.share_here(group, &scan).await
    }

    fn has_seen(&mut self, group: GroupId, newest: Timestamp) {
        if let Some(at) = self.parts.iter().position(|part| part.group == group) {
            self.note_newest(at, newest);
        }
    }

    fn write(&mut self, group: GroupId, write: Write) -> Result<()> {
        self.buffer(group, write.into())
    }

    async fn offer(&mut self, group: GroupId, share: &Key, late: &Late) -> Result<Option<Offer>> {
        self.offer_of(group, share, late).await
    }

    async fn bring(&mut self, sites: &[GroupId], share: &Key, late: Late) -> Result<Brought> {
        self.bring_tokens(sites, share, &late).await
    }

    async fn bring_each(&mut self, sites: &[GroupId], changes: Vec<(Key, Late)>) -> Result<()> {
        self.bring_tokens_each(sites, changes).await
    }

    fn add(&mut self, group: GroupId, share: Key, delta: i128) -> Result<()> {
        self.buffer(group, Mutation { key: share, change: Change::Add(delta), columns: ColumnMask::ALL })
    }

    async fn sites_now(&mut self, sites: &[GroupId], share: &Key) -> Result<Option<Vec<Vec<(Key, Bytes)>>>> {
        Txn::sites_now(self, sites, share).await
    }

    fn shift(&mut self, group: GroupId, share: Key, late: Late) -> Result<()> {
        self.buffer(group, Mutation { key: share, change: Change::Shift(Box::new(late)), columns: ColumnMask::ALL })
    }

    fn renew(&mut self, group: GroupId, share: Key, is_there: bool) -> Result<()> {
        self.buffer(group, Mutation { key: share, change: Change::Renew { is_there }, columns: ColumnMask::ALL })
    }

    fn added(&self, group: GroupId, share: &Key) -> Late {
        let part = self.parts.iter().find(|p| p.group == group);
        part.map_or(Late::delta(TxnId::default(), 0), |part| part.added(share))
    }

    fn hold(&mut self, group: GroupId, range: KeyRange) -> Result<()> {
        let at = self.part(group)?;
        self.parts[at].held.push(range);
        Ok(())
    }

    async fn scan_nearby(&mut self, groups: &[GroupId], ranges: &[KeyRange]) -> Result<Vec<Vec<(Key, Bytes)>>> {
        self.scan_near(groups, ranges).await
    }

    fn incarnation(&self) -> TxnId {
        TxnId { hlc: self.began, gateway: self.gateway.shared.me() }
    }

    fn uses(&mut self, descriptors: &[DescriptorId]) {
        for d in descriptors {
            if !self.schema.descriptors.contains(d) {
                self.schema.descriptors.push(*d);
                self.parts.iter_mut().for_each(|p| p.view.schema.descriptors.push(*d));
            }
        }
    }

    fn savepoint(&mut self) -> Savepoint {
        Savepoint { writes: self.undo.len(), entries: self.entries.len() }
    }

    fn rollback_to(&mut self, to: Savepoint) {
        while self.undo.len() > to.writes {
            let (at, key, before) = self.undo.pop().expect("longer than the mark");
            let writes = &mut self.parts[at as usize].writes;
            match before {
                Some(write) => writes.insert(key, *write),
                None => writes.remove(&key),
            };
        }
        let mut left: BTreeMap<usize, Vec<Key>> = BTreeMap::new();
        for (at, key) in self.entries.split_off(to.entries.min(self.entries.len())) {
            left.entry(at).or_default().push(key);
        }
        left.into_iter().for_each(|(at, keys)| self.leave_keys(at, keys));
    }

    fn takes_entries(&self, group: GroupId, locking: Locking) -> bool {
        locking != Locking::None && !self.reads_at_replica(group, locking)
    }

    fn leave_queues_of(&mut self, group: GroupId, keys: &[Key], since: Savepoint) {
        let Some(at) = self.parts.iter().position(|p| p.group == group) else { return };
        let keys: BTreeSet<&Key> = keys.iter().filter(|key| self.parts[at].entries.contains(*key)).collect();
        if keys.is_empty() {
            return;
        }
        let mut left = Vec::new();
        let later = self.entries.split_off(since.entries.min(self.entries.len()));
        for (of, key) in later {
            match of == at && keys.contains(&key) {
                true => left.push(key),
                false => self.entries.push((of, key)),
            }
        }
        self.leave_keys(at, left);
    }

    fn reads_in(&self, group: GroupId) -> usize {
        self.parts.iter().find(|p| p.group == group).map_or(0, |p| p.view.entries.len())
    }

    fn forget_reads(&mut self, group: GroupId, reads: Range<usize>) {
        if let Some(part) = self.parts.iter_mut().find(|p| p.group == group) {
            let end = reads.end.min(part.view.entries.len());
            part.view.entries.drain(reads.start.min(end)..end);
        }
    }

    fn round_trips(&self) -> (u32, u32) {
        (self.round_trips, self.round_trips_to_commit())
    }

    async fn confirm(&mut self) -> Result<()> {
        if !self.gateway.shared.groups.common.rules.confirms_errors() {
            return Ok(());
        }
        self.confirm_reads().await
    }

    async fn commit(mut self) -> Result<Option<Timestamp>> {
        let committed = self.commit_everywhere().await;
        self.count(committed.is_ok());
        match &committed {
            Ok(_) => self.gateway.refusals.forget(self.options.session),
            Err(e) if e.is_retry() => self.gateway.ages.keep(self.options.session, self.since),
            Err(_) => {}
        }
        self.leave_queues();
        if let (Ok(Some(at)), true) = (&committed, self.global.is_written) {
            self.await_global_commit(*at).await;
        }
        committed
    }

    fn rollback(mut self) {
        if self.failed.is_some() {
            self.count(false);
        }
        self.leave_queues();
    }

    fn has_writes(&self) -> bool {
        self.parts.iter().any(|p| !p.writes.is_empty())
    }

    fn nears_bound(&self) -> bool {
        self.nears_bytes_max()
    }

    fn beside(&self) -> Txn {
        let mut txn = Txn::new(self.gateway.clone(), TxnOptions { is_held_back: false, is_block: false, ..self.options.clone() });
        txn.uses(&self.schema.descriptors);
        txn
    }

    fn take_writes(&mut self) -> Vec<(GroupId, Write)> {
        self.undo = Vec::new();
        (self.bytes, self.room) = (0, None);
        let taken = self.parts.iter_mut().flat_map(|part| {
            let group = part.group;
            std::mem::take(&mut part.writes).into_values().map(move |write| (group, write))
        });
        let whole = |write: Mutation| write.resolved().expect("a row or an entry, and no share");
        taken.map(|(group, write)| (group, whole(write))).collect()
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        self.leave_queues();
    }
}
