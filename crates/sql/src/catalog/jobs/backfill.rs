//! Filling a new index from the rows that were there before it.

use super::{JobContext, JobRecord, locking, may_try_again, options, pause, record, set_state, step, step_of};
use crate::catalog::lookup::TableRef;
use crate::catalog::{CatalogChange, Descriptor, IndexState};
use crate::env::{Environment, Locking, Scan, Transaction};
use crate::exec::{Entry, split_entry};
use crate::plan::{PlanContext, TablePlan};
use crate::types::Datum;
use meridian_base::key::encode;
use meridian_base::{ColumnMask, DescriptorId, Error, GroupId, Key, KeyRange, Result, Write};
use std::sync::Arc;

/// Rows per transaction: what it reads is certified while it commits, so a large batch loses more often.
const BATCH_ROWS: usize = 256;

/// How often a backfill writes down how far it is: a step costs two round trips, and what is done twice does no harm.
const CHECKPOINT_MICROS: u64 = 10_000_000;

/// Takes an index to `WriteOnly` and fills it. 23505 if it is unique and the rows are not.
pub(super) async fn build<E: Environment>(env: &E, table: DescriptorId, index: u32, context: &JobContext) -> Result<()> {
    step(env, context, table, |t| {
        if t.indexes.iter().any(|i| i.id == index && i.state == IndexState::DeleteOnly) {
            set_state(t, index, IndexState::WriteOnly);
        }
    })
    .await?;
    let Some(source) = env.catalog().table_by_id(table) else { return Ok(()) };
    let mut progress = Progress::resume(env, primary_ranges(&source), context);
    while let Some((group, range)) = progress.next() {
        match page(env, table, index, (group, range), progress.batch, progress.attempt, context).await {
            Ok((read, rest)) => progress.advance(env, context, read, rest).await?,
            Err(e) => progress.refused(env, e).await?,
        }
    }
    Ok(())
}

/// How far a task is that works through the rows of a table in batches.
pub(super) struct Progress {
    /// What is left, worked through from the last to the first.
    todo: Vec<(GroupId, KeyRange)>,
    rows: u64,
    /// When it was written down.
    saved_micros: u64,
    /// How many rows the next transaction takes, and how often it was tried.
    pub batch: usize,
    pub attempt: u32,
}

impl Progress {
    /// From where an earlier run of the task got to.
    pub fn resume<E: Environment>(env: &E, mut all: Vec<(GroupId, KeyRange)>, context: &JobContext) -> Progress {
        let catalog = env.catalog();
        let job: Option<&JobRecord> = context.job.and_then(|(id, _)| catalog.job(id));
        let checkpoint = job.and_then(|job| job.checkpoint.as_ref().and_then(|c| split(c)).map(|(g, k)| (g, k, job.rows)));
        let mut rows = 0;
        if let Some((group, from, so_far)) = checkpoint
            && let Some(at) = all.iter().position(|(g, range)| *g == group && from >= range.start && from < range.end)
        {
            all.truncate(at + 1);
            all[at].1.start = from;
            rows = so_far;
        }
        Progress { todo: all, rows, saved_micros: env.now_micros(), batch: BATCH_ROWS, attempt: 0 }
    }
    pub fn next(&self) -> Option<(GroupId, KeyRange)> {
        self.todo.last().cloned()
    }
    /// A batch is done: so many rows, and what is left of its range. Writes it down now and then.
    pub async fn advance<E: Environment>(
        &mut self,
        env: &E,
        context: &JobContext,
        rows: u64,
        rest: Option<KeyRange>,
    ) -> Result<()> {
        self.rows += rows;
        if let Some((group, _)) = self.todo.pop() {
            self.todo.extend(rest.map(|rest| (group, rest)));
        }
        self.attempt = 0;
        self.batch = (self.batch * 2).min(BATCH_ROWS);
        if env.now_micros().saturating_sub(self.saved_micros) > CHECKPOINT_MICROS {
            checkpoint(env, context, self.todo.last(), self.rows).await?;
            self.saved_micros = env.now_micros();
        }
        Ok(())
    }
    /// A batch was not done. If somebody changed one of its rows, a smaller one has better odds.
    pub async fn refused<E: Environment>(&mut self, env: &E, e: Error) -> Result<()> {
        if !may_try_again(&e, self.attempt) {
            return Err(e);
        }
        self.attempt += 1;
        self.batch = (self.batch / 2).max(1);
        pause(env, self.attempt).await;
        Ok(())
    }
}

/// A checkpoint: the group, and the key in it.
fn joined(group: GroupId, key: &Key) -> Vec<u8> {
    [&group.0.to_be_bytes()[..], key.as_bytes()].concat()
}
fn split(checkpoint: &[u8]) -> Option<(GroupId, Key)> {
    let (group, key) = checkpoint.split_first_chunk::<4>()?;
    Some((GroupId(u32::from_be_bytes(*group)), Key::new(key)))
}

/// Writes down how far the task is. It also finds out whether the job is to be gone on with.
async fn checkpoint<E: Environment>(env: &E, context: &JobContext, rest: Option<&(GroupId, KeyRange)>, rows: u64) -> Result<()> {
    let (Some((id, state)), Some((group, rest))) = (context.job, rest) else { return Ok(()) };
    let me = env.locality().node;
    step_of(env, context, 0, |catalog| {
        let job = record::mine(catalog, id, me, state).ok()?;
        let job = JobRecord { checkpoint: Some(joined(*group, &rest.start)), rows, ..job.clone() };
        Some(CatalogChange { put: vec![Descriptor::Job(job)], next_id: catalog.next_id, ..CatalogChange::default() })
    })
    .await
}

/// Every key of a table's primary index, in each of its groups.
pub(crate) fn primary_ranges(table: &TableRef) -> Vec<(GroupId, KeyRange)> {
    let mut prefix = Vec::with_capacity(4);
    encode::index(&mut prefix, table.primary().id);
    table.groups().map(|group| (group, KeyRange::prefix(&prefix))).collect()
}

/// A table bound with the newest catalog; `None` if it, or the index, is gone: then there is nothing left to do.
pub(super) fn bind<E: Environment>(env: &E, table: DescriptorId, context: &JobContext) -> Result<Option<Arc<TablePlan>>> {
    let catalog = env.catalog();
    let Some(table) = catalog.table_by_id(table) else { return Ok(None) };
    let context = PlanContext { catalog: &catalog, names: &context.names, eval: &context.eval };
    TablePlan::new(&table, context).map(Some)
}

/// Indexes one page of rows in one transaction. Returns how many there were and what is left of the range.
async fn page<E: Environment>(
    env: &E,
    table: DescriptorId,
    index: u32,
    (group, range): (GroupId, KeyRange),
    batch: usize,
    attempt: u32,
    context: &JobContext,
) -> Result<(u64, Option<KeyRange>)> {
    let catalog = env.catalog();
    if let Some((id, state)) = context.job {
        record::mine(&catalog, id, env.locality().node, state)?;
    }
    let Some(plan) = bind(env, table, context)? else { return Ok((0, None)) };
    let Some(at) = plan.table().indexes.iter().position(|i| i.id == index) else { return Ok((0, None)) };
    let mut txn = env.begin(options(&catalog, context.session, false, attempt));
    txn.uses(&[table]);
    let scan = Scan { range, columns: ColumnMask::ALL, reverse: false, limit: Some(batch), locking: locking(attempt) };
    let found = txn.scan(group, scan.clone()).await?;
    let mut entries: Vec<(Entry, Vec<Datum>)> = Vec::with_capacity(found.rows.len());
    for (_, bytes) in &found.rows {
        let row = plan.decode_row(bytes.clone())?;
        if let Some(entry) = plan.index_entry(at, &row, &context.eval)? {
            entries.push((entry, row));
        }
    }
    if plan.table().indexes[at].unique {
        check_unique(&mut txn, &plan, at, group, &mut entries, context).await?;
    }
    for (entry, _) in entries {
        txn.write(group, Write { key: entry.key, value: Some(entry.value), columns: ColumnMask::ALL })?;
    }
    // A page that is shorter than asked for is not the last one for that: the answer says what is left.
    let rest = found.rest.or_else(|| after(&scan.range, &found.rows, batch));
    if txn.has_writes() {
        txn.commit().await?;
    } else {
        txn.rollback();
    }
    Ok((found.rows.len() as u64, rest))
}

/// What follows a full page, if the answer left it open.
pub(super) fn after(range: &KeyRange, rows: &[(meridian_base::Key, bytes::Bytes)], batch: usize) -> Option<KeyRange> {
    let (last, _) = rows.last().filter(|_| rows.len() >= batch)?;
    let rest = KeyRange::new(last.successor(), range.end.clone());
    (!rest.is_empty()).then_some(rest)
}

/// Drops the entries that writers have made already; 23505 if one belongs to another row.
async fn check_unique<T: Transaction>(
    txn: &mut T,
    plan: &Arc<TablePlan>,
    at: usize,
    group: GroupId,
    entries: &mut Vec<(Entry, Vec<Datum>)>,
    context: &JobContext,
) -> Result<()> {
    let index = &plan.table().indexes[at];
    let duplicate = |row: &[Datum]| {
        let columns: Vec<u32> = index.columns.iter().map(|c| c.ordinal).collect();
        let values: Vec<Datum> = columns.iter().map(|o| row[*o as usize].clone()).collect();
        Error::sql("23505", format!("could not create unique index \"{}\"", index.name))
            .detail(format!("Key {} is duplicated.", plan.describe_key(&columns, &values, &context.eval)))
            .table(plan.table().name.clone())
            .constraint(index.name.clone())
    };
    let mut seen = std::collections::BTreeSet::new();
    for (entry, row) in entries.iter() {
        if !seen.insert(entry.key.clone()) {
            return Err(duplicate(row));
        }
    }
    let keys: Vec<meridian_base::Key> = entries.iter().map(|(e, _)| e.key.clone()).collect();
    for other in plan.table().groups().filter(|other| *other != group) {
        let taken = txn.get_many(other, &keys, ColumnMask::EXISTENCE, Locking::None).await?;
        if let Some(at) = taken.iter().position(Option::is_some) {
            // The row may have moved here from there since the other region was looked at.
            txn.confirm().await?;
            return Err(duplicate(&entries[at].1));
        }
    }
    let stored = txn.get_many(group, &keys, ColumnMask::ALL, Locking::None).await?;
    let mut missing = Vec::with_capacity(entries.len());
    for ((entry, row), stored) in entries.drain(..).zip(stored) {
        let Some(stored) = stored else {
            missing.push((entry, row));
            continue;
        };
        let owner = match index.holds_rows {
            true => plan.primary_key(&plan.decode_row(stored)?)?,
            false => split_entry(&stored)?.0,
        };
        if owner != plan.primary_key(&row)? {
            return Err(duplicate(&row));
        }
    }
    *entries = missing;
    Ok(())
}
