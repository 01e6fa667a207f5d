//! Filling a new index from the rows that were there before it.

use super::progress::{Page, Part, Size, work_through};
use super::{JobContext, locking, options, set_state, step};
use crate::catalog::IndexState;
use crate::catalog::relation::TableRef;
use crate::env::{Environment, IndexBuild, Locking, Scan, Transaction};
use crate::exec::{self, Entry, split_entry};
use crate::plan::{PlanContext, TablePlan};
use crate::types::Datum;
use bytes::Bytes;
use meridian_base::key::encode;
use meridian_base::{ColumnMask, DescriptorId, Error, GroupId, KeyRange, Result, Write};
use std::sync::Arc;

/// Rows between two chances for other sessions: about a millisecond's work.
const TURN_ROWS: usize = 256;

/// Takes an index to `WriteOnly` and fills it. 23505 if it is unique and the rows are not.
pub(super) async fn build<E: Environment>(env: &E, table: DescriptorId, index: u32, context: &JobContext) -> Result<()> {
    step(env, context, table, |t| {
        if t.indexes.iter().any(|i| i.id == index && i.state == IndexState::DeleteOnly) {
            set_state(t, index, IndexState::WriteOnly);
        }
    })
    .await?;
    let by_replicas = fill_by_replicas(env, table, index, context).await?;
    if by_replicas == ByReplicas::Done {
        return Ok(());
    }
    let Some(source) = env.catalog().table_by_id(table) else { return Ok(()) };
    work_through(env, primary_ranges(&source), context, |part, size| page(env, (table, index), by_replicas, part, size, context))
        .await
}

/// What replicas have done to fill an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByReplicas {
    /// The index is filled.
    Done,
    /// Every replica has the entries of all rows. Two rows may have the same one.
    Unchecked,
    /// Some replicas may have entries that others lack. Transactions write all of them.
    Partial,
}

/// Has the replicas fill an index. Unless that was all, the rows are worked through.
///
/// Replicas see two rows with one entry only among those that were there when they began. And who
/// writes a new row may have looked into the index before the old row's entry was there. So there
/// is a step when the index is full: whoever commits after that has looked, or looks again, with
/// all entries there. If the index has not changed until then, it is unique; otherwise all rows are
/// looked at by transactions.
async fn fill_by_replicas<E: Environment>(env: &E, table: DescriptorId, index: u32, context: &JobContext) -> Result<ByReplicas> {
    let catalog = env.catalog();
    let Some(source) = catalog.table_by_id(table) else { return Ok(ByReplicas::Partial) };
    let Some(entry) = source.indexes.iter().find(|i| i.id == index) else { return Ok(ByReplicas::Partial) };
    if !exec::is_built_by_replicas(&source, entry) {
        return Ok(ByReplicas::Partial);
    }
    let Some(group) = source.groups().next() else { return Ok(ByReplicas::Partial) };
    let (source, version, above) = (source.primary().id, catalog.version, catalog.committed_at);
    let Some(built) = env.build_index(group, IndexBuild { table, index, source, version, above }).await? else {
        return Ok(ByReplicas::Partial);
    };
    if !entry.unique {
        return Ok(ByReplicas::Done);
    }
    step(env, context, table, |t| set_state(t, index, IndexState::Filled)).await?;
    if !built.is_unique {
        return Ok(ByReplicas::Unchecked);
    }
    let through = env.catalog().committed_at;
    Ok(match env.is_as_built(group, index, built, through).await? {
        true => ByReplicas::Done,
        false => ByReplicas::Unchecked,
    })
}

/// Every key of a table's primary index, in each of its groups.
pub(crate) fn primary_ranges(table: &TableRef) -> Vec<(GroupId, KeyRange)> {
    let mut prefix = Vec::with_capacity(4);
    encode::index(&mut prefix, table.primary().id);
    table.groups().map(|group| (group, KeyRange::prefix(&prefix))).collect()
}

/// A table bound with the newest catalog; `None` if it, or the index, is gone: then there is
/// nothing left to do.
pub(super) fn bind<E: Environment>(env: &E, table: DescriptorId, context: &JobContext) -> Result<Option<Arc<TablePlan>>> {
    let catalog = env.catalog();
    let Some(table) = catalog.table_by_id(table) else { return Ok(None) };
    let context = PlanContext { catalog: &catalog, names: &context.names, eval: &context.eval };
    TablePlan::new(&table, context).map(Some)
}

/// Indexes one page of rows in one transaction.
async fn page<'e, E: Environment>(
    env: &'e E,
    (table, index): (DescriptorId, u32),
    by_replicas: ByReplicas,
    (group, range): Part,
    Size { batch, attempt }: Size,
    context: &JobContext,
) -> Result<Page<'e>> {
    let catalog = context.catalog(env)?;
    let Some(plan) = bind(env, table, context)? else { return Ok(Page::empty()) };
    let Some(at) = plan.table().indexes.iter().position(|i| i.id == index) else { return Ok(Page::empty()) };
    let mut txn = env.begin(options(&catalog, context.session, false, attempt));
    txn.uses(&[table]);
    let scan = Scan { range, columns: ColumnMask::ALL, reverse: false, limit: Some(batch), locking: locking(attempt) };
    let found = txn.scan(group, scan.clone()).await?;
    let mut entries: Vec<(Entry, Bytes)> = Vec::with_capacity(found.rows.len());
    for (n, (_, row)) in found.rows.iter().enumerate() {
        give_way(n).await;
        if let Some(entry) = plan.entry_of_stored(at, row, &context.eval)? {
            entries.push((entry, row.clone()));
        }
    }
    if plan.table().indexes[at].unique {
        let missing = check_unique(&mut txn, &plan, at, group, &entries, context).await?;
        if by_replicas == ByReplicas::Unchecked {
            let mut is_missing = missing.into_iter();
            entries.retain(|_| is_missing.next().unwrap_or(true));
        }
    }
    for (n, (entry, _)) in entries.into_iter().enumerate() {
        give_way(n).await;
        txn.write(group, Write { key: entry.key, value: Some(entry.value), columns: ColumnMask::ALL })?;
    }
    // A page that is shorter than asked for is not the last one for that: the answer says what is
    // left.
    let rest = found.rest.or_else(|| after(&scan.range, &found.rows, batch));
    Ok(Page::of(txn, found.rows.len(), rest))
}

/// Lets the other sessions of this thread go on, now and then.
async fn give_way(rows_done: usize) {
    if rows_done.is_multiple_of(TURN_ROWS) {
        tokio::task::yield_now().await;
    }
}

/// What follows a full page, if the answer left it open.
pub(super) fn after(range: &KeyRange, rows: &[(meridian_base::Key, bytes::Bytes)], batch: usize) -> Option<KeyRange> {
    let (last, _) = rows.last().filter(|_| rows.len() >= batch)?;
    let rest = KeyRange::new(last.successor(), range.end.clone());
    (!rest.is_empty()).then_some(rest)
}

/// Which entries are not there yet; 23505 if one belongs to another row.
async fn check_unique<T: Transaction>(
    txn: &mut T,
    plan: &Arc<TablePlan>,
    at: usize,
    group: GroupId,
    entries: &[(Entry, Bytes)],
    context: &JobContext,
) -> Result<Vec<bool>> {
    let index = &plan.table().indexes[at];
    let duplicate = |row: &Bytes| {
        let row = match plan.decode_row(row.clone()) {
            Ok(row) => row,
            Err(e) => return e,
        };
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
    for ((_, row), stored) in entries.iter().zip(stored) {
        missing.push(stored.is_none());
        let Some(stored) = stored else { continue };
        let owner = match index.holds_rows {
            true => plan.primary_key(&plan.decode_row(stored)?)?,
            false => split_entry(&stored)?.0,
        };
        if owner != plan.primary_key(&plan.decode_row(row.clone())?)? {
            return Err(duplicate(row));
        }
    }
    Ok(missing)
}
