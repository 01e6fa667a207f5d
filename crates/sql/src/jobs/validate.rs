//! Looking for rows that break a new constraint. New and changed rows are checked by their writers
//! already, so each page may be read at its own time.

use super::backfill::{bind, primary_ranges};
use super::{JobContext, options, pause};
use crate::catalog::relation::TableRef;
use crate::catalog::{Catalog, ForeignKey, Table};
use crate::env::{Environment, Locking, Scan, Transaction};
use crate::plan::TablePlan;
use crate::types::{Datum, Type};
use bytes::Bytes;
use meridian_base::turn::Turn;
use meridian_base::{ColumnMask, DescriptorId, Error, GroupId, KeyRange, Result, limits};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

const PAGE_ROWS: usize = 1_000;
/// How often the job looks at the clock, in rows: sessions run on its thread, too.
const LOOK_EVERY: u32 = 16;
/// So many bytes of keys are looked for at once among the parents, which are read for that. Tests
/// look for a few.
const KEYS_BYTES_MAX: usize = if cfg!(test) { 1 << 10 } else { 128 << 20 };

/// 23514: a row that is there breaks a constraint.
pub(super) fn violated(check: &str, table: &str) -> Error {
    let message = format!("check constraint \"{check}\" of relation \"{table}\" is violated by some row");
    Error::sql("23514", message).table(table).constraint(check)
}

/// 23514 if a row breaks the check.
pub(super) async fn check<E: Environment>(env: &E, table: DescriptorId, check: DescriptorId, context: &JobContext) -> Result<()> {
    each_row(env, table, context, |plan, row| {
        let Some(check) = plan.table().checks.iter().find(|c| c.id == check) else { return Ok(()) };
        if plan.breaks_check(&check.name, row, &context.eval)? {
            return Err(violated(&check.name, &plan.table().name));
        }
        Ok(())
    })
    .await
}

/// 23502 if a row has NULL in the column.
pub(super) async fn not_null<E: Environment>(env: &E, table: DescriptorId, ordinal: u32, context: &JobContext) -> Result<()> {
    each_row(env, table, context, |plan, row| {
        if !row[ordinal as usize].is_null() {
            return Ok(());
        }
        Err(crate::exec::contains_nulls(plan.table(), ordinal))
    })
    .await
}

/// 2BP01 if a row has a region as the value of a column that is no home.
pub(super) async fn region_is_no_value<E: Environment>(env: &E, table: &Table, region: &str, context: &JobContext) -> Result<()> {
    let is_home = |o: u32| table.region_column() == Some(o);
    let is_of_regions = |ty: &Type| *ty == Type::Region || *ty == Type::Region.array_of();
    let is_it = |value: &Datum| matches!(value, Datum::Text(t) if t.as_str() == region);
    let has_it = |value: &Datum| match value {
        Datum::Array(a) => a.items.iter().any(is_it),
        value => is_it(value),
    };
    let columns: Vec<u32> =
        table.written_columns().filter(|(o, c)| is_of_regions(&c.ty) && !is_home(*o)).map(|(o, _)| o).collect();
    if columns.is_empty() {
        return Ok(());
    }
    each_row(env, table.id, context, |plan, row| {
        let Some(at) = columns.iter().find(|o| has_it(&row[**o as usize])) else {
            return Ok(());
        };
        let table = plan.table();
        let column = &table.columns[*at as usize].name;
        let message = format!("could not remove enum value \"{region}\" as it is being used by \"{}\"", table.name);
        Err(Error::sql("2BP01", message)
            .table(table.name.clone())
            .column(column.clone())
            .detail(format!("It is the value of the column \"{column}\" in some row.")))
    })
    .await
}

/// 23503 if a row has no parent.
pub(super) async fn foreign_key<E: Environment>(
    env: &E,
    table: DescriptorId,
    constraint: DescriptorId,
    context: &JobContext,
) -> Result<()> {
    let catalog = env.catalog();
    let Some(child) = catalog.table_by_id(table) else { return Ok(()) };
    let Some(fk) = child.foreign_keys.iter().find(|f| f.id == constraint) else { return Ok(()) };
    let Some(parent) = catalog.table_by_id(fk.parent) else { return Ok(()) };
    let (mut children, mut turn) = (Pages::of(env, table), Turn::of_steps(LOOK_EVERY));
    let mut violation = None;
    let mut waiting = Keys::default();
    'children: loop {
        let page = children.next(env, context).await?;
        let is_last = page.is_none();
        if let Some((plan, rows)) = page {
            for row in rows {
                turn.step().await;
                let row = plan.decode_row(row)?;
                let values: Vec<Datum> = fk.columns.iter().map(|o| row[*o as usize].clone()).collect();
                let nulls = values.iter().filter(|v| v.is_null()).count();
                if nulls == 0 {
                    waiting.insert(encoded(&values, &parent, &fk.parent_columns)?, values);
                } else if fk.match_full && nulls < values.len() {
                    violation = Some(plan.describe_key(&fk.columns, &values, &context.eval));
                    break 'children;
                }
            }
        }
        if is_last || waiting.bytes > KEYS_BYTES_MAX {
            without_parents(env, &parent, fk, &mut waiting, context).await?;
            if !waiting.keys.is_empty() {
                // Children may have gone with their parents since they were read, and parents may
                // have come after their table was read: look once more.
                with_children(env, table, &parent, fk, &mut waiting, context).await?;
                without_parents(env, &parent, fk, &mut waiting, context).await?;
            }
            if let Some(values) = waiting.keys.values().next() {
                let plan = bind(env, table, context)?;
                violation = plan.map(|p| p.describe_key(&fk.columns, values, &context.eval));
                break;
            }
            waiting = Keys::default();
        }
        if is_last {
            break;
        }
    }
    let Some(shown) = violation else { return Ok(()) };
    let message =
        format!("insert or update on table {} violates foreign key constraint {}", quoted(&child.name), quoted(&fk.name));
    Err(Error::sql("23503", message)
        .detail(format!("Key {shown} is not present in table {}.", quoted(&parent.name)))
        .table(child.name.clone())
        .constraint(fk.name.clone()))
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// Keys that rows refer to, as they are stored where they are primary, with their values.
#[derive(Default)]
struct Keys {
    keys: BTreeMap<Vec<u8>, Vec<Datum>>,
    bytes: usize,
}

impl Keys {
    fn insert(&mut self, key: Vec<u8>, values: Vec<Datum>) {
        if let Entry::Vacant(place) = self.keys.entry(key) {
            let of_values = values.iter().map(crate::exec::size).sum::<usize>();
            self.bytes += place.key().len() + of_values + 2 * std::mem::size_of::<Vec<u8>>();
            place.insert(values);
        }
    }
}

/// Leaves the keys that no parent has. The parents are read up to the last one that is asked for:
/// none, if there are no keys.
async fn without_parents<E: Environment>(
    env: &E,
    parent: &TableRef,
    fk: &ForeignKey,
    keys: &mut Keys,
    context: &JobContext,
) -> Result<()> {
    let (mut pages, mut turn) = (Pages::of(env, parent.id), Turn::of_steps(LOOK_EVERY));
    while !keys.keys.is_empty()
        && let Some((plan, rows)) = pages.next(env, context).await?
    {
        for row in rows {
            turn.step().await;
            let row = plan.decode_row(row)?;
            let values: Vec<Datum> = fk.parent_columns.iter().map(|o| row[*o as usize].clone()).collect();
            keys.keys.remove(&encoded(&values, parent, &fk.parent_columns)?);
        }
    }
    Ok(())
}

/// Leaves the keys that rows still refer to.
async fn with_children<E: Environment>(
    env: &E,
    table: DescriptorId,
    parent: &TableRef,
    fk: &ForeignKey,
    keys: &mut Keys,
    context: &JobContext,
) -> Result<()> {
    let mut found = BTreeMap::new();
    each_row(env, table, context, |_, row| {
        let values: Vec<Datum> = fk.columns.iter().map(|o| row[*o as usize].clone()).collect();
        if !values.iter().any(Datum::is_null)
            && let Some(known) = keys.keys.remove_entry(&encoded(&values, parent, &fk.parent_columns)?)
        {
            found.insert(known.0, known.1);
        }
        Ok(())
    })
    .await?;
    keys.keys = found;
    Ok(())
}

fn encoded(values: &[Datum], parent: &TableRef, columns: &[u32]) -> Result<Vec<u8>> {
    let mut key = Vec::with_capacity(16);
    for (value, ordinal) in values.iter().zip(columns) {
        crate::types::keys::encode_key_column(&mut key, value, &parent.columns[*ordinal as usize].ty, false, false)?;
    }
    Ok(key)
}

/// Reads every row of a table, a page at a time.
async fn each_row<E: Environment>(
    env: &E,
    table: DescriptorId,
    context: &JobContext,
    mut visit: impl FnMut(&Arc<TablePlan>, &[Datum]) -> Result<()>,
) -> Result<()> {
    let (mut pages, mut turn) = (Pages::of(env, table), Turn::of_steps(LOOK_EVERY));
    while let Some((plan, rows)) = pages.next(env, context).await? {
        for row in rows {
            turn.step().await;
            visit(&plan, &plan.decode_row(row)?)?;
        }
    }
    Ok(())
}

/// The pages of a table that are still to be read.
struct Pages {
    table: DescriptorId,
    /// As it was when the first of them was read; `None`: it is gone.
    source: Option<TableRef>,
    todo: Vec<(GroupId, KeyRange)>,
    bound: Option<(Arc<Catalog>, Arc<TablePlan>)>,
}

impl Pages {
    fn of<E: Environment>(env: &E, table: DescriptorId) -> Pages {
        let source = env.catalog().table_by_id(table);
        let todo = source.as_ref().map(primary_ranges).unwrap_or_default();
        Pages { table, source, todo, bound: None }
    }

    /// The rows of the next page, and what they are of. `None`: that was the last one, or the table
    /// is gone. If it moves, or is emptied, all pages come anew.
    async fn next<E: Environment>(&mut self, env: &E, context: &JobContext) -> Result<Option<(Arc<TablePlan>, Vec<Bytes>)>> {
        let mut attempt = 0;
        while let (Some(source), Some((group, range))) = (&self.source, self.todo.last().cloned()) {
            let catalog = env.catalog();
            let plan = match self.bound.take().filter(|(of, _)| Arc::ptr_eq(of, &catalog)) {
                Some((_, plan)) => plan,
                None => match bind(env, self.table, context)? {
                    Some(plan) => plan,
                    None => return Ok(None),
                },
            };
            self.bound = Some((catalog, plan.clone()));
            if plan.table().primary().id != source.primary().id {
                // The table has other rows now: all of them are read.
                self.todo = primary_ranges(plan.table());
                self.source = Some(plan.table().clone());
                continue;
            }
            match page(env, &plan, (group, range), context, attempt).await {
                Ok((rows, next)) => {
                    self.todo.pop();
                    self.todo.extend(next.map(|rest| (group, rest)));
                    return Ok(Some((plan, rows)));
                }
                Err(e) if e.is_retry() && attempt < limits::RETRIES_MAX => {
                    attempt += 1;
                    pause(env, attempt).await;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(None)
    }
}

type Page = (Vec<Bytes>, Option<KeyRange>);

async fn page<E: Environment>(
    env: &E,
    plan: &TablePlan,
    (group, range): (GroupId, KeyRange),
    context: &JobContext,
    attempt: u32,
) -> Result<Page> {
    let mut txn = env.begin(options(&env.catalog(), context.session, true, attempt));
    txn.uses(&[plan.table().id]);
    let end = range.end.clone();
    let scan = Scan { range, columns: ColumnMask::ALL, reverse: false, limit: Some(PAGE_ROWS), locking: Locking::None };
    let found = txn.scan(group, scan).await?;
    let full = found.rows.len() >= PAGE_ROWS;
    let after = found.rows.last().filter(|_| full).map(|(last, _)| KeyRange::new(last.successor(), end));
    let rows = found.rows.into_iter().map(|(_, bytes)| bytes).collect();
    txn.commit().await?;
    Ok((rows, found.rest.or(after).filter(|r| !r.is_empty())))
}
