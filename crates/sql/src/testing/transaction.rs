//! The transaction of [`MemEnvironment`].

use super::{MemEnvironment, Store};
use crate::catalog::Catalog;
use crate::env::{
    Environment, Locking, OnLocked, RowVisitor, Savepoint, Scan, ScanRows, SharedPage, SharedScan, Transaction, TxnOptions,
    Visited,
};
use bytes::Bytes;
use meridian_base::escrow::{Free, Late, Offer, Share};
use meridian_base::{
    ColumnMask, DescriptorId, Error, GroupId, Key, KeyRange, NodeId, Result, SchemaVersion, Target, Timestamp, TxnId, Write,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Reads the newest state, remembers what it read, and is certified when it commits.
pub struct MemTransaction {
    env: MemEnvironment,
    schema: SchemaVersion,
    /// The last commit seen; set by the first read.
    snapshot: Option<usize>,
    reads: Vec<(GroupId, Target, ColumnMask)>,
    writes: Vec<(GroupId, Write)>,
    /// Deltas of escrow shares, each with the number of changes buffered before it.
    added: Vec<(usize, GroupId, Key, Late)>,
    uses: BTreeSet<DescriptorId>,
    /// What it is called in the wait queues, and the entries that it has taken there.
    id: u64,
    entries: Vec<(GroupId, Key, Locking)>,
}

impl MemTransaction {
    pub(super) fn new(env: MemEnvironment, options: TxnOptions) -> MemTransaction {
        MemTransaction::of_schema(env, options.schema)
    }
    fn of_schema(env: MemEnvironment, schema: SchemaVersion) -> MemTransaction {
        let id = env.inner.transactions.fetch_add(1, Ordering::Relaxed);
        MemTransaction {
            env,
            id,
            entries: Vec::new(),
            schema,
            snapshot: None,
            reads: Vec::new(),
            writes: Vec::new(),
            added: Vec::new(),
            uses: BTreeSet::new(),
        }
    }
    /// What it read: the group, the key or range, the columns.
    pub fn reads(&self) -> &[(GroupId, Target, ColumnMask)] {
        &self.reads
    }
    /// What it wrote, in order.
    pub fn writes(&self) -> &[(GroupId, Write)] {
        &self.writes
    }
    /// The rows it holds, in the order in which it locked them.
    pub fn entries(&self) -> &[(GroupId, Key, Locking)] {
        &self.entries
    }
    /// Takes the entry of a key; `false` if it is to be skipped. There is nobody to wait for in one
    /// thread: who would wait goes on.
    fn enter(&mut self, store: &mut Store, group: GroupId, key: &Key, locking: Locking) -> Result<bool> {
        let Some(busy) = locking.if_busy() else { return Ok(true) };
        let held = store.entries.entry((group, key.clone())).or_default();
        if held.iter().any(|(id, other)| *id != self.id && conflicts(*other, locking)) {
            match busy {
                OnLocked::Skip => return Ok(false),
                OnLocked::NoWait => return Err(Error::sql("55P03", "could not obtain lock on row")),
                OnLocked::Wait | OnLocked::Briefly => {}
            }
        }
        if !held.iter().any(|(id, own)| *id == self.id && own == &locking) {
            held.push((self.id, locking));
            self.entries.push((group, key.clone(), locking));
        }
        Ok(true)
    }
    /// Its last write of a key.
    fn own_write(&self, group: GroupId, key: &Key) -> Option<&Write> {
        self.writes.iter().rev().find(|(g, w)| *g == group && w.key == *key).map(|(_, w)| w)
    }
    fn buffered(&self) -> usize {
        self.writes.len() + self.added.len()
    }
    fn leave(&self, entries: Vec<(GroupId, Key, Locking)>) {
        if entries.is_empty() {
            return;
        }
        let mut store = self.env.inner.store.lock();
        for (group, key, locking) in entries {
            if let Some(held) = store.entries.get_mut(&(group, key)) {
                held.retain(|(id, own)| *id != self.id || *own != locking);
            }
        }
    }
    fn snapshot(&mut self, store: &Store) -> usize {
        *self.snapshot.get_or_insert(store.history.len())
    }
    /// The newest buffered write of each key of a group.
    fn overlay(&self, group: GroupId) -> BTreeMap<&Key, Option<&Bytes>> {
        self.writes.iter().filter(|(g, _)| *g == group).map(|(_, w)| (&w.key, w.value.as_ref())).collect()
    }
    fn certify(&self, store: &Store) -> Result<()> {
        let Some(snapshot) = self.snapshot else { return Ok(()) };
        for (group, key, columns) in store.history[snapshot..].iter().flatten() {
            let hit =
                |(g, t, c): &(GroupId, Target, ColumnMask)| g == group && t.contains(key.as_bytes()) && c.intersects(*columns);
            if self.reads.iter().any(hit) {
                return Err(Error::retry("could not serialize access due to concurrent write"));
            }
        }
        Ok(())
    }
    /// Certifies it and makes its writes visible, under this catalog.
    pub(super) fn apply(&mut self, catalog: &Catalog) -> Result<Option<Timestamp>> {
        let env = self.env.clone();
        let mut store = env.inner.store.lock();
        self.certify(&store)?;
        if self.writes.is_empty() && self.added.is_empty() {
            return Ok(None);
        }
        self.check_schema(catalog)?;
        let mut record = Vec::new();
        let mut added = std::mem::take(&mut self.added);
        added.retain(|(_, group, key, _)| self.own_write(*group, key).is_none());
        for (group, w) in std::mem::take(&mut self.writes) {
            record.push((group, w.key.clone(), w.columns));
            match w.value {
                Some(v) => store.rows.insert((group, w.key), v),
                None => store.rows.remove(&(group, w.key)),
            };
        }
        for (_, group, key, late) in added {
            let new = late.has_grants().then(|| Share::empty(late.incarnation));
            let share = store.rows.get(&(group, key.clone())).and_then(|share| Share::decode(share)).or(new);
            let is_of_now = |share: &Share| !late.has_grants() || share.incarnation == late.incarnation;
            let share = share.filter(is_of_now).map(|share| share.plus(&late)).filter(Share::is_covered);
            let Some(share) = share else { return Err(Error::retry("could not serialize access: too few tokens")) };
            record.push((group, key.clone(), ColumnMask::ALL));
            store.rows.insert((group, key), share.encode());
        }
        store.history.push(record);
        Ok(Some(Timestamp::from_micros(store.history.len() as u64)))
    }
    fn check_schema(&self, catalog: &Catalog) -> Result<()> {
        let changed = |d: &DescriptorId| catalog.changed_in.get(d).is_some_and(|v| *v > self.schema);
        if self.uses.iter().any(changed) { Err(Error::retry("schema changed")) } else { Ok(()) }
    }
}

/// PostgreSQL manual, table 13.3.
fn conflicts(held: Locking, wanted: Locking) -> bool {
    let strength = |l: Locking| match l {
        Locking::None => 0,
        Locking::KeyShared(_) => 1,
        Locking::Shared(_) => 2,
        Locking::KeyKept(_) => 3,
        Locking::Exclusive(_) => 4,
    };
    let (a, b) = (strength(held), strength(wanted));
    a + b >= 5 && (a, b) != (0, 4) && (a, b) != (4, 0)
}

/// A range without some of its keys, which are in order.
fn without(range: &KeyRange, keys: &BTreeSet<Key>) -> Vec<KeyRange> {
    let starts = std::iter::once(range.start.clone()).chain(keys.iter().map(Key::successor));
    let ends = keys.iter().cloned().chain(std::iter::once(range.end.clone()));
    starts.zip(ends).map(|(start, end)| KeyRange::new(start, end)).filter(|piece| !piece.is_empty()).collect()
}

impl Drop for MemTransaction {
    fn drop(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        self.leave(entries);
    }
}

/// The rows of a range as they were.
struct Snapshot(BTreeMap<Key, Bytes>);

impl SharedScan for Snapshot {
    fn page(&self, part: &KeyRange, rows: usize, row: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<SharedPage> {
        let mut rest = None;
        for ((key, value), n) in self.0.range(part.start.clone()..part.end.clone()).zip(1..) {
            if row(value).is_break() || n == rows {
                rest = Some(KeyRange::new(key.successor(), part.end.clone()));
                break;
            }
        }
        Ok(SharedPage { rest: rest.filter(|rest| !rest.is_empty()), newest: Timestamp::MIN })
    }
}

impl Transaction for MemTransaction {
    async fn get(&mut self, group: GroupId, key: &Key, columns: ColumnMask, locking: Locking) -> Result<Option<Bytes>> {
        Ok(self.get_many(group, std::slice::from_ref(key), columns, locking).await?.remove(0))
    }
    async fn get_many(
        &mut self,
        group: GroupId,
        keys: &[Key],
        columns: ColumnMask,
        locking: Locking,
    ) -> Result<Vec<Option<Bytes>>> {
        let env = self.env.clone();
        let mut store = env.inner.store.lock();
        self.snapshot(&store);
        let columns = columns | ColumnMask::EXISTENCE;
        let mut skipped = BTreeSet::new();
        for key in keys {
            if !self.enter(&mut store, group, key, locking)? {
                skipped.insert(key.clone());
            }
        }
        let read = keys.iter().filter(|k| !skipped.contains(*k));
        self.reads.extend(read.map(|k| (group, Target::Key(k.clone()), columns)));
        self.certify(&store)?;
        let one = |k: &Key| match self.writes.iter().rev().find(|(g, w)| *g == group && w.key == *k) {
            Some((_, w)) => w.value.clone(),
            None if skipped.contains(k) => None,
            None => store.rows.get(&(group, k.clone())).cloned(),
        };
        Ok(keys.iter().map(one).collect())
    }
    async fn scan(&mut self, group: GroupId, scan: Scan) -> Result<ScanRows> {
        let env = self.env.clone();
        let mut store = env.inner.store.lock();
        self.snapshot(&store);
        let KeyRange { start, end } = scan.range.clone();
        let limit = scan.limit.unwrap_or(usize::MAX).max(1);
        let stored = store.rows.range((group, start.clone())..(group, end.clone())).map(|((_, k), v)| (k.clone(), v.clone()));
        let overlay = self.overlay(group);
        let rows: Vec<(Key, Bytes)> = match (overlay.is_empty(), scan.reverse) {
            // One more tells whether there are more.
            (true, false) => stored.take(limit.saturating_add(1)).collect(),
            (true, true) => stored.rev().take(limit.saturating_add(1)).collect(),
            (false, _) => {
                let mut found: BTreeMap<Key, Bytes> = stored.collect();
                for (k, v) in overlay.into_iter().filter(|(k, _)| scan.range.contains(k.as_bytes())) {
                    match v {
                        Some(v) => found.insert(k.clone(), v.clone()),
                        None => found.remove(k),
                    };
                }
                if scan.reverse { found.into_iter().rev().collect() } else { found.into_iter().collect() }
            }
        };
        let mut out = ScanRows { rows, rest: None };
        let mut read = scan.range.clone();
        if out.rows.len() > limit {
            out.rows.truncate(limit);
            if let Some((last, _)) = out.rows.last() {
                if scan.reverse {
                    out.rest = Some(KeyRange::new(start, last.clone()));
                    read.start = last.clone();
                } else {
                    out.rest = Some(KeyRange::new(last.successor(), end));
                    read.end = last.successor();
                }
            }
        }
        let mut skipped = BTreeSet::new();
        for (key, _) in &out.rows {
            if !self.enter(&mut store, group, key, scan.locking)? {
                skipped.insert(key.clone());
            }
        }
        out.rows.retain(|(key, _)| !skipped.contains(key));
        let columns = scan.columns | ColumnMask::EXISTENCE;
        self.reads.extend(without(&read, &skipped).into_iter().map(|piece| (group, Target::Range(piece), columns)));
        self.certify(&store)?;
        Ok(out)
    }
    async fn visit(&mut self, group: GroupId, scan: Scan, visitor: &mut dyn RowVisitor) -> Result<Visited> {
        if self.writes.iter().any(|(written, _)| *written == group) {
            return Ok(Visited::Fetched(self.scan(group, scan).await?));
        }
        let limit = scan.limit.unwrap_or(usize::MAX).max(1);
        let (mut seen, mut has_enough) = (0, false);
        {
            let store = self.env.inner.store.lock();
            let rows = store.rows.range((group, scan.range.start.clone())..(group, scan.range.end.clone()));
            let rows: Vec<(&Key, &Bytes)> = match scan.reverse {
                true => rows.rev().map(|((_, key), value)| (key, value)).take(limit).collect(),
                false => rows.map(|((_, key), value)| (key, value)).take(limit).collect(),
            };
            for (key, value) in rows {
                seen += 1;
                if visitor.row(key, value).is_break() {
                    has_enough = true;
                    break;
                }
            }
        }
        // What was seen is recorded, and nothing behind it.
        let limit = if has_enough { Some(seen) } else { scan.limit };
        Ok(Visited::Seen(self.scan(group, Scan { limit, ..scan }).await?.rest))
    }
    async fn share_scan(&mut self, group: GroupId, scan: Scan) -> Result<Option<Arc<dyn SharedScan>>> {
        if self.writes.iter().any(|(written, _)| *written == group) {
            return Ok(None);
        }
        let rows = self.scan(group, scan).await?.rows;
        Ok(Some(Arc::new(Snapshot(rows.into_iter().collect()))))
    }
    fn write(&mut self, group: GroupId, write: Write) -> Result<()> {
        if write.columns != ColumnMask::ALL && !write.columns.intersects(ColumnMask::EXISTENCE) {
            let whole = |(g, t, c): &(GroupId, Target, ColumnMask)| {
                *g == group && t.contains(write.key.as_bytes()) && *c == ColumnMask::ALL
            };
            let own = self.writes.iter().any(|(g, w)| *g == group && w.key == write.key);
            // Entries of secondary indexes are derived from the row: their keys are not read.
            let is_primary = write.value.as_ref().is_some_and(|_| self.is_primary(&write.key));
            assert!(!is_primary || own || self.reads.iter().any(whole), "a part of a row was written without reading the whole");
        }
        self.writes.push((group, write));
        Ok(())
    }
    async fn offer(&mut self, group: GroupId, share: &Key, _: &Late) -> Result<Option<Offer>> {
        let own = self.own_write(group, share).map(|w| w.value.clone());
        let value = own.unwrap_or_else(|| self.env.inner.store.lock().rows.get(&(group, share.clone())).cloned());
        let own = self.added(group, share);
        let share = value.and_then(|value| Share::decode(&value));
        Ok(share.map(|share| Offer { incarnation: share.incarnation, free: share.free().after(&own), wanted: Free::default() }))
    }
    fn add(&mut self, group: GroupId, share: Key, delta: i128) -> Result<()> {
        self.shift(group, share, Late::delta(TxnId::default(), delta))
    }
    fn shift(&mut self, group: GroupId, share: Key, late: Late) -> Result<()> {
        let own = self.own_write(group, &share).and_then(|w| Share::decode(w.value.as_ref()?));
        match own.map(|own| own.plus(&late)) {
            Some(own) => self.writes.push((group, Write { key: share, value: Some(own.encode()), columns: ColumnMask::ALL })),
            None => self.added.push((self.buffered(), group, share, late)),
        }
        Ok(())
    }
    fn renew(&mut self, _: GroupId, _: Key, _: bool) -> Result<()> {
        Err(Error::internal("there are no rounds here"))
    }
    fn added(&self, group: GroupId, share: &Key) -> Late {
        // What came before a write of the share is over.
        let counted = self.added.iter().filter(|_| self.own_write(group, share).is_none());
        let of_it = counted.filter(|(_, g, key, _)| *g == group && key == share);
        of_it.fold(Late::delta(TxnId::default(), 0), |sum, (.., late)| sum.plus(late))
    }
    fn hold(&mut self, _: GroupId, _: KeyRange) -> Result<()> {
        Ok(())
    }
    async fn scan_nearby(&mut self, groups: &[GroupId], ranges: &[KeyRange]) -> Result<Vec<Vec<(Key, Bytes)>>> {
        let store = self.env.inner.store.lock();
        let rows = store.behind.as_ref().unwrap_or(&store.rows);
        let of_group = |group: &GroupId| {
            let own = self.overlay(*group);
            let in_range = |range: &KeyRange| {
                let stored = rows.range((*group, range.start.clone())..(*group, range.end.clone()));
                let mut found: BTreeMap<Key, Bytes> = stored.map(|((_, k), v)| (k.clone(), v.clone())).collect();
                for (key, value) in own.iter().filter(|(key, _)| range.contains(key.as_bytes())) {
                    match value {
                        Some(value) => found.insert((*key).clone(), (*value).clone()),
                        None => found.remove(*key),
                    };
                }
                found
            };
            ranges.iter().flat_map(in_range).collect()
        };
        Ok(groups.iter().map(of_group).collect())
    }
    fn incarnation(&self) -> TxnId {
        TxnId { hlc: Timestamp(self.id), gateway: NodeId(1) }
    }
    fn uses(&mut self, descriptors: &[DescriptorId]) {
        self.uses.extend(descriptors);
    }
    fn savepoint(&mut self) -> Savepoint {
        Savepoint { writes: self.buffered(), entries: self.entries.len() }
    }
    fn rollback_to(&mut self, to: Savepoint) {
        while self.buffered() > to.writes {
            match self.added.last() {
                Some((before, ..)) if before + 1 == self.buffered() => drop(self.added.pop()),
                _ => drop(self.writes.pop()),
            }
        }
        let left = self.entries.split_off(to.entries.min(self.entries.len()));
        self.leave(left);
    }
    fn leave_queues_of(&mut self, group: GroupId, keys: &[Key], since: Savepoint) {
        let later = self.entries.split_off(since.entries.min(self.entries.len()));
        let (left, kept) = later.into_iter().partition(|(g, key, _)| *g == group && keys.contains(key));
        self.entries.extend::<Vec<_>>(kept);
        self.leave(left);
    }
    fn reads_in(&self, group: GroupId) -> usize {
        self.reads.iter().filter(|(g, ..)| *g == group).count()
    }
    fn forget_reads(&mut self, group: GroupId, reads: Range<usize>) {
        let mut at = 0..;
        self.reads.retain(|(g, ..)| *g != group || at.next().is_some_and(|at| !reads.contains(&at)));
        if self.reads.is_empty() && self.writes.is_empty() {
            self.snapshot = None;
        }
    }
    async fn commit(mut self) -> Result<Option<Timestamp>> {
        let catalog = self.env.catalog();
        self.apply(&catalog)
    }
    fn rollback(self) {}
    fn round_trips(&self) -> (u32, u32) {
        let here = self.env.locality().region;
        let catalog = self.env.inner.catalog.lock();
        let is_far = |group: &GroupId| match catalog.descriptors.get(&DescriptorId(group.0)).map(|d| &**d) {
            Some(crate::catalog::Descriptor::Group(g)) => g.home != here,
            _ => false,
        };
        let touched = self.reads.iter().map(|r| &r.0).chain(self.writes.iter().map(|w| &w.0));
        (0, u32::from(touched.into_iter().any(is_far)))
    }
    fn has_writes(&self) -> bool {
        !self.writes.is_empty() || !self.added.is_empty()
    }
    fn nears_bound(&self) -> bool {
        false
    }
    fn beside(&self) -> MemTransaction {
        let mut txn = MemTransaction::of_schema(self.env.clone(), self.schema);
        txn.uses.extend(&self.uses);
        txn
    }
    fn take_writes(&mut self) -> Vec<(GroupId, Write)> {
        assert!(self.added.is_empty(), "changes of shares are no rows");
        std::mem::take(&mut self.writes)
    }
}

impl MemTransaction {
    fn is_primary(&self, key: &Key) -> bool {
        let catalog = self.env.inner.catalog.lock();
        let id = key.as_bytes().get(..4).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
        catalog.descriptors.values().any(|d| match &**d {
            crate::catalog::Descriptor::Table(t) => Some(t.primary().id) == id,
            _ => false,
        })
    }
}
