//! A transaction at its gateway: read entries, a write buffer that overlays its own reads, and the commit.
//!
//! In this step a transaction stays in one group. A fresh read goes to the group's primary: directly when that is this node,
//! one call otherwise. The commit does the same, with one id for as long as it takes: a primary that lost its leadership
//! half-way may have committed, and its successor then answers with what became of that id.

use crate::primary::{conflict_error, is_not_primary};
use crate::replica::Replica;
use crate::shared::{Route, Shared};
use crate::wire::{ReadOp, ReadResult, Request, Response, View};
use bytes::Bytes;
use meridian_base::runtime::Runtime;
use meridian_base::{
    ColumnMask, CommitOutcome, CommitRequest, Conflict, DescriptorId, Error, ErrorKind, GroupId, Key, KeyRange, ReadEntry,
    Result, SchemaUse, Target, Timestamp, TxnId, Write, limits,
};
use meridian_region::Owner;
use meridian_sql::catalog::Descriptor;
use meridian_sql::env::{Locking, Savepoint, Scan, ScanRows, Transaction, TxnOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a read looks for a primary that answers before the statement fails with 57P03.
const READ_PATIENCE: Duration = Duration::from_secs(10);
/// How long a commit is repeated before its outcome is reported as unknown (40003). Below `WATERMARK_LAG`, so that a primary
/// never has to say «forgotten» to a gateway that is still asking.
const COMMIT_PATIENCE: Duration = Duration::from_secs(20);
const CALL_TIMEOUT: Duration = Duration::from_secs(6);
const RELEASE_ATTEMPTS: u32 = 5;
const BACKOFF_MAX: Duration = Duration::from_millis(100);

/// See the module's essay.
pub struct Txn<R: Runtime> {
    shared: Arc<Shared<R>>,
    group: Option<GroupId>,
    view: View,
    writes: BTreeMap<Key, Write>,
    /// What each write replaced, for savepoints.
    undo: Vec<(Key, Option<Write>)>,
    bytes: usize,
    /// The largest version timestamp read.
    newest: Timestamp,
    has_locks: bool,
    /// Values fetched ahead, at the present snapshot.
    prefetched: BTreeMap<Key, Option<Bytes>>,
    prefetched_columns: ColumnMask,
    /// Certification has failed, or a read could not go on: only a new transaction helps.
    failed: Option<Error>,
}

impl<R: Runtime> Txn<R> {
    pub(crate) fn new(shared: Arc<Shared<R>>, options: TxnOptions) -> Txn<R> {
        let began = shared.clock.now(shared.runtime.physical_micros());
        let view = View {
            session: options.session,
            began,
            read_only: options.read_only,
            snapshot: None,
            is_settled: false,
            schema: SchemaUse { version: options.schema, descriptors: Vec::new() },
            schema_committed_at: options.schema_committed_at,
            lock_timeout: options.lock_timeout,
            entries: Vec::new(),
        };
        Txn {
            shared,
            group: None,
            view,
            writes: BTreeMap::new(),
            undo: Vec::new(),
            bytes: 0,
            newest: Timestamp::MIN,
            has_locks: false,
            prefetched: BTreeMap::new(),
            prefetched_columns: ColumnMask::NONE,
            failed: None,
        }
    }

    fn enter(&mut self, group: GroupId) -> Result<()> {
        if let Some(e) = &self.failed {
            return Err(e.clone());
        }
        match self.group {
            None => self.group = Some(group),
            Some(g) if g == group => {}
            Some(_) => {
                return Err(Error::unsupported("transactions over several home regions are not supported yet")
                    .detail("The transaction touches rows homed in different regions.")
                    .hint("Use one transaction per home region."));
            }
        }
        Ok(())
    }

    fn owner(&self) -> Owner {
        Owner { gateway: self.shared.me(), session: self.view.session }
    }

    /// Remembers what was read, so that it is certified at the commit.
    fn record(&mut self, target: Target, columns: ColumnMask) {
        if !self.view.read_only {
            let until = self.view.snapshot.expect("a read has a snapshot");
            self.view.entries.push(ReadEntry { target, columns: columns | ColumnMask::EXISTENCE, until });
        }
    }

    fn remember_locks(&mut self, locking: Locking) {
        self.has_locks |= locking != Locking::None;
    }

    async fn read_key(&mut self, group: GroupId, key: &Key, columns: ColumnMask, locking: Locking) -> Result<Option<Bytes>> {
        self.remember_locks(locking);
        if let Some(replica) = self.shared.local_primary(group) {
            self.prefetched.clear();
            match replica.get(self.shared.me(), &mut self.view, key, columns | ColumnMask::EXISTENCE, locking.into()).await {
                Ok(version) => {
                    let version = version.inspect(|v| self.newest = self.newest.max(v.at));
                    self.record(Target::Key(key.clone()), columns);
                    return Ok(version.and_then(|v| v.value));
                }
                Err(e) if is_not_primary(&e) => {}
                Err(e) => return Err(self.note_failure(e)),
            }
        }
        let op = ReadOp::Get { keys: vec![key.clone()], columns: columns | ColumnMask::EXISTENCE, locking: locking.into() };
        match self.read(group, op, locking).await? {
            ReadResult::Values(mut values) if values.len() == 1 => {
                self.record(Target::Key(key.clone()), columns);
                Ok(values.pop().flatten())
            }
            _ => Err(Error::internal("a primary answered another question")),
        }
    }

    /// One read at the primary, wherever it is now.
    async fn read(&mut self, group: GroupId, op: ReadOp, locking: Locking) -> Result<ReadResult> {
        self.remember_locks(locking);
        let deadline = Instant::now() + READ_PATIENCE;
        let ops = vec![op];
        let mut attempt = 0;
        let before = self.view.snapshot;
        loop {
            let answer = match self.shared.route(group, attempt) {
                Some(Route::Local(replica)) => replica.read(self.shared.me(), &mut self.view, &ops).await,
                Some(Route::Remote(node)) => self.read_remotely(node, group, &ops, locking).await,
                None => Err(Error::unavailable(format!("no primary of group {group} is known"))),
            };
            match answer {
                Ok(mut answer) => {
                    self.newest = self.newest.max(answer.newest);
                    self.view.is_settled = answer.is_settled;
                    if before != Some(answer.snapshot) {
                        self.view.snapshot = Some(answer.snapshot);
                        self.prefetched.clear();
                        self.view.entries.iter_mut().for_each(|e| e.until = answer.snapshot);
                    }
                    return answer.results.pop().ok_or_else(|| Error::internal("a primary gave no answer"));
                }
                Err(e) if e.kind() == ErrorKind::Unavailable && Instant::now() < deadline => {
                    self.shared.forget_route(group);
                    backoff(attempt).await;
                    attempt += 1;
                }
                Err(e) => return Err(self.note_failure(e)),
            }
        }
    }

    async fn read_remotely(
        &self,
        node: meridian_base::NodeId,
        group: GroupId,
        ops: &[ReadOp],
        locking: Locking,
    ) -> Result<crate::wire::ReadAnswer> {
        let entries = if locking == Locking::None { Vec::new() } else { self.view.entries.clone() };
        let view = View {
            session: self.view.session,
            began: self.view.began,
            read_only: self.view.read_only,
            snapshot: self.view.snapshot,
            is_settled: self.view.is_settled,
            schema: self.view.schema.clone(),
            schema_committed_at: self.view.schema_committed_at,
            lock_timeout: self.view.lock_timeout,
            entries,
        };
        // A wait in a queue has its own bounds; the call must not end it.
        let timeout = if locking == Locking::None { CALL_TIMEOUT } else { Duration::from_secs(3600) };
        match self.shared.rpc.call(node, Request::Read { group, view, ops: ops.to_vec() }, timeout).await? {
            Response::Read(answer) => Ok(answer),
            Response::NotPrimary { hint } => Err(self.shared.not_primary_there(group, node, hint)),
            _ => Err(Error::internal("a node gave an answer of another kind")),
        }
    }

    fn note_failure(&mut self, e: Error) -> Error {
        if e.is_retry() {
            self.failed = Some(e.clone());
        }
        e
    }

    async fn commit_everywhere(&mut self) -> Result<Option<Timestamp>> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        let Some(group) = self.group else { return Ok(None) };
        if self.writes.is_empty() {
            return Ok(None);
        }
        let request = CommitRequest {
            id: TxnId { hlc: self.shared.clock.tick(self.shared.runtime.physical_micros()), gateway: self.shared.me() },
            reads: std::mem::take(&mut self.view.entries),
            writes: std::mem::take(&mut self.writes).into_values().collect(),
            min_commit: self.newest.max(self.view.schema_committed_at),
            schema: std::mem::take(&mut self.view.schema),
        };
        let deadline = Instant::now() + COMMIT_PATIENCE;
        let mut attempt = 0;
        loop {
            let outcome = match self.shared.route(group, attempt) {
                Some(Route::Local(replica)) => replica.commit(&request).await,
                Some(Route::Remote(node)) => self.commit_remotely(node, group, &request).await,
                None => Err(Error::unavailable(format!("no primary of group {group} is known"))),
            };
            match outcome {
                Ok(CommitOutcome::Committed(at)) => return Ok(Some(at)),
                Ok(CommitOutcome::Conflict(conflict)) => return Err(self.explain(&conflict)),
                Ok(CommitOutcome::Forgotten) => return Err(unknown_outcome("its id is older than what the group remembers")),
                Err(e) if e.kind() == ErrorKind::Unavailable => {
                    if Instant::now() >= deadline {
                        return Err(unknown_outcome(e.message()));
                    }
                    self.shared.forget_route(group);
                    backoff(attempt).await;
                    attempt += 1;
                }
                Err(e) => return Err(e),
            }
        }
    }

    async fn commit_remotely(
        &mut self,
        node: meridian_base::NodeId,
        group: GroupId,
        request: &CommitRequest,
    ) -> Result<CommitOutcome> {
        let call = Request::Commit { group, session: self.view.session, request: request.clone() };
        match self.shared.rpc.call(node, call, CALL_TIMEOUT).await? {
            Response::Commit(outcome) => {
                // The primary has emptied the queues.
                self.has_locks = false;
                Ok(outcome)
            }
            Response::NotPrimary { hint } => Err(self.shared.not_primary_there(group, node, hint)),
            _ => Err(Error::internal("a node gave an answer of another kind")),
        }
    }

    /// Certification's answer, with the table's name.
    fn explain(&self, conflict: &Conflict) -> Error {
        let e = conflict_error(conflict);
        let mut bytes = conflict.key.as_bytes();
        let Some(index) = meridian_base::key::decode::index(&mut bytes) else { return e };
        let catalog = self.shared.catalog.active();
        let table = catalog.descriptors.values().find_map(|d| match &**d {
            Descriptor::Table(t) if t.indexes.iter().any(|i| i.id == index) => Some(t.name.clone()),
            _ => None,
        });
        match table {
            Some(name) => e.detail(format!("table \"{name}\", key {:?}", conflict.key)).table(name),
            None => e,
        }
    }

    fn leave_queues(&mut self) {
        if !std::mem::take(&mut self.has_locks) {
            return;
        }
        let Some(group) = self.group else { return };
        match self.shared.route(group, 0) {
            Some(Route::Local(replica)) => replica.release_locks(self.owner()),
            Some(Route::Remote(node)) => {
                let (shared, session) = (self.shared.clone(), self.view.session);
                tokio::spawn(async move {
                    // If all of this is lost, the entries end with the session's next transaction there or with its gateway.
                    for attempt in 0..RELEASE_ATTEMPTS {
                        let release = Request::Release { group, session };
                        if shared.rpc.call(node, release, CALL_TIMEOUT).await.is_ok() {
                            return;
                        }
                        backoff(attempt + 3).await;
                    }
                });
            }
            None => {}
        }
    }
}

async fn backoff(attempt: u32) {
    let pause = Duration::from_millis(5 << attempt.min(5)).min(BACKOFF_MAX);
    tokio::time::sleep(pause).await;
}

fn unknown_outcome(why: &str) -> Error {
    Error::unknown_outcome("the outcome of the commit is unknown")
        .detail(why.to_string())
        .hint("Look at the data before running the transaction again.")
}

impl<R: Runtime> Transaction for Txn<R> {
    async fn get(&mut self, group: GroupId, key: &Key, columns: ColumnMask, locking: Locking) -> Result<Option<Bytes>> {
        self.enter(group)?;
        if let Some(own) = self.writes.get(key) {
            return Ok(own.value.clone());
        }
        if locking == Locking::None
            && self.prefetched_columns & columns == columns
            && let Some(value) = self.prefetched.get(key).cloned()
        {
            self.record(Target::Key(key.clone()), columns);
            return Ok(value);
        }
        self.read_key(group, key, columns, locking).await
    }

    async fn get_many(
        &mut self,
        group: GroupId,
        keys: &[Key],
        columns: ColumnMask,
        locking: Locking,
    ) -> Result<Vec<Option<Bytes>>> {
        self.enter(group)?;
        if self.shared.local_primary(group).is_some() {
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                values.push(self.get(group, key, columns, locking).await?);
            }
            return Ok(values);
        }
        let unknown: Vec<Key> = keys.iter().filter(|k| !self.writes.contains_key(*k)).cloned().collect();
        let mut fetched = Vec::new();
        if !unknown.is_empty() {
            let op = ReadOp::Get { keys: unknown.clone(), columns: columns | ColumnMask::EXISTENCE, locking: locking.into() };
            match self.read(group, op, locking).await? {
                ReadResult::Values(values) if values.len() == unknown.len() => fetched = values,
                _ => return Err(Error::internal("a primary answered another question")),
            }
            for key in unknown {
                self.record(Target::Key(key), columns);
            }
        }
        let mut fetched = fetched.into_iter();
        Ok(keys
            .iter()
            .map(|k| match self.writes.get(k) {
                Some(own) => own.value.clone(),
                None => fetched.next().flatten(),
            })
            .collect())
    }

    fn is_distant(&self, group: GroupId) -> bool {
        self.shared.local_primary(group).is_none()
    }

    async fn prefetch(&mut self, group: GroupId, keys: &[Key], columns: ColumnMask) -> Result<()> {
        self.enter(group)?;
        let keys: Vec<Key> = keys.iter().filter(|k| !self.writes.contains_key(*k)).cloned().collect();
        if keys.is_empty() || !self.is_distant(group) {
            return Ok(());
        }
        let columns = columns | ColumnMask::EXISTENCE;
        let op = ReadOp::Get { keys: keys.clone(), columns, locking: Locking::None.into() };
        let ReadResult::Values(values) = self.read(group, op, Locking::None).await? else {
            return Err(Error::internal("a primary answered another question"));
        };
        if values.len() == keys.len() {
            self.prefetched = keys.into_iter().zip(values).collect();
            self.prefetched_columns = columns;
        }
        Ok(())
    }

    async fn scan(&mut self, group: GroupId, scan: Scan) -> Result<ScanRows> {
        self.enter(group)?;
        if scan.range.is_empty() {
            return Ok(ScanRows::default());
        }
        let op = ReadOp::Scan {
            range: scan.range.clone(),
            columns: scan.columns | ColumnMask::EXISTENCE,
            reverse: scan.reverse,
            limit: scan.limit.map(|l| l as u64),
            locking: scan.locking.into(),
        };
        let ReadResult::Page { rows, rest } = self.read(group, op, scan.locking).await? else {
            return Err(Error::internal("a primary answered another question"));
        };
        let covered = covered(&scan.range, rest.as_ref(), scan.reverse);
        if !covered.is_empty() {
            self.record(Target::Range(covered.clone()), scan.columns);
        }
        Ok(ScanRows { rows: overlay(rows, &self.writes, &covered, scan.reverse), rest })
    }

    fn write(&mut self, group: GroupId, mut write: Write) -> Result<()> {
        self.enter(group)?;
        if self.view.read_only {
            return Err(Error::sql("25006", "cannot write in a read-only transaction"));
        }
        if write.key.as_bytes().len() > limits::KEY_BYTES_MAX {
            return Err(Error::sql("54000", "index row is too large").detail(format!(
                "The key has {} bytes; the limit is {}.",
                write.key.as_bytes().len(),
                limits::KEY_BYTES_MAX
            )));
        }
        self.bytes += write.key.as_bytes().len() + write.value.as_ref().map_or(0, Bytes::len) + 32;
        if self.bytes > limits::TXN_BYTES_MAX {
            return Err(Error::sql("53200", "transaction too large")
                .detail(format!("Its writes exceed {} MiB.", limits::TXN_BYTES_MAX >> 20))
                .hint("Split the work into several transactions."));
        }
        let before = self.writes.remove(&write.key);
        if let Some(before) = &before {
            write.columns |= before.columns;
        }
        self.undo.push((write.key.clone(), before));
        self.writes.insert(write.key.clone(), write);
        Ok(())
    }

    fn uses(&mut self, descriptors: &[DescriptorId]) {
        for d in descriptors {
            if !self.view.schema.descriptors.contains(d) {
                self.view.schema.descriptors.push(*d);
            }
        }
    }

    fn savepoint(&mut self) -> Savepoint {
        Savepoint(self.undo.len())
    }

    fn rollback_to(&mut self, to: Savepoint) {
        while self.undo.len() > to.0 {
            let (key, before) = self.undo.pop().expect("longer than the mark");
            match before {
                Some(write) => self.writes.insert(key, write),
                None => self.writes.remove(&key),
            };
        }
    }

    async fn commit(mut self) -> Result<Option<Timestamp>> {
        let committed = self.commit_everywhere().await;
        self.leave_queues();
        committed
    }

    fn rollback(mut self) {
        self.leave_queues();
    }

    fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }
}

impl<R: Runtime> Drop for Txn<R> {
    fn drop(&mut self) {
        self.leave_queues();
    }
}

/// The part of a range that a page has answered for.
fn covered(range: &KeyRange, rest: Option<&KeyRange>, reverse: bool) -> KeyRange {
    match rest {
        None => range.clone(),
        Some(rest) if reverse => KeyRange::new(rest.end.clone(), range.end.clone()),
        Some(rest) => KeyRange::new(range.start.clone(), rest.start.clone()),
    }
}

/// A page with the transaction's own writes in it.
fn overlay(rows: Vec<(Key, Bytes)>, writes: &BTreeMap<Key, Write>, covered: &KeyRange, reverse: bool) -> Vec<(Key, Bytes)> {
    let own: Vec<&Write> = if covered.is_empty() {
        Vec::new()
    } else {
        writes.range(covered.start.clone()..covered.end.clone()).map(|(_, w)| w).collect()
    };
    if own.is_empty() {
        return rows;
    }
    let mut merged: BTreeMap<Key, Bytes> = rows.into_iter().collect();
    for w in own {
        match &w.value {
            Some(v) => merged.insert(w.key.clone(), v.clone()),
            None => merged.remove(&w.key),
        };
    }
    let rows = merged.into_iter();
    if reverse { rows.rev().collect() } else { rows.collect() }
}

impl<R: Runtime> Shared<R> {
    /// The replica on this node, if it is the group's primary and answers.
    #[inline]
    pub(crate) fn local_primary(&self, group: GroupId) -> Option<Arc<Replica<R>>> {
        self.replica(group).filter(|r| r.is_serving())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(b: u8) -> Key {
        Key::new(&[b])
    }

    proptest! {
        /// Reading page by page with own writes on top gives what a single map would.
        #[test]
        fn pages_with_own_writes_are_the_whole_range(
            stored in prop::collection::btree_map(0u8..40, any::<u8>(), 0..30),
            own in prop::collection::btree_map(0u8..40, prop::option::of(any::<u8>()), 0..10),
            page_rows in 1usize..7,
            reverse: bool,
        ) {
            let writes: BTreeMap<Key, Write> = own.iter().map(|(k, v)| {
                (key(*k), Write { key: key(*k), value: v.map(|v| Bytes::from(vec![v])), columns: ColumnMask::ALL })
            }).collect();
            let mut expected = stored.clone();
            for (k, v) in &own {
                match v { Some(v) => { expected.insert(*k, *v); } None => { expected.remove(k); } }
            }
            let mut expected: Vec<(Key, Bytes)> = expected.into_iter().map(|(k, v)| (key(k), Bytes::from(vec![v]))).collect();
            if reverse { expected.reverse(); }

            let mut range = Some(KeyRange::new(key(0), key(40)));
            let mut got = Vec::new();
            while let Some(r) = range {
                let mut inside: Vec<(Key, Bytes)> = stored.iter().map(|(k, v)| (key(*k), Bytes::from(vec![*v])))
                    .filter(|(k, _)| r.contains(k.as_bytes())).collect();
                if reverse { inside.reverse(); }
                let page: Vec<_> = inside.iter().take(page_rows).cloned().collect();
                let rest = (inside.len() > page.len()).then(|| {
                    let last = page.last().expect("a page of a longer range has rows").0.clone();
                    if reverse { KeyRange::new(r.start.clone(), last) } else { KeyRange::new(last.successor(), r.end.clone()) }
                });
                got.extend(overlay(page, &writes, &covered(&r, rest.as_ref(), reverse), reverse));
                range = rest;
            }
            prop_assert_eq!(got, expected);
        }
    }
}
