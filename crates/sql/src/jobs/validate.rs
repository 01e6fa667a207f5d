//! Looking for rows that break a new constraint. New and changed rows are checked by their writers
//! already, so each page may be read at its own time.

use super::backfill::{bind, primary_ranges};
use super::{JobContext, options, pause};
use crate::catalog::relation::TableRef;
use crate::catalog::{ForeignKey, Table};
use crate::env::{Environment, Locking, Scan, Transaction};
use crate::plan::TablePlan;
use crate::types::functions::text::quote_ident as quote;
use crate::types::{Datum, Type};
use bytes::Bytes;
use meridian_base::{ColumnMask, DescriptorId, Error, GroupId, KeyRange, Result, limits};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const PAGE_ROWS: usize = 1_000;
/// How often the job looks at the clock, in rows, and how long it may have its thread, which
/// sessions run on, too.
const LOOK_EVERY: usize = 16;
const TURN_MAX: Duration = Duration::from_millis(1);

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
    let keys = parent_keys(env, &parent, fk, context).await?;
    let mut suspects: Vec<Vec<Datum>> = Vec::new();
    let mut violation = None;
    each_row(env, table, context, |plan, row| {
        let values: Vec<Datum> = fk.columns.iter().map(|o| row[*o as usize].clone()).collect();
        let nulls = values.iter().filter(|v| v.is_null()).count();
        let is_exempt = if fk.match_full { nulls == values.len() } else { nulls > 0 };
        if is_exempt || (nulls == 0 && keys.contains(&encoded(&values, &parent, &fk.parent_columns)?)) {
            return Ok(());
        }
        let shown = plan.describe_key(&fk.columns, &values, &context.eval);
        if nulls > 0 || suspects.len() >= PAGE_ROWS {
            violation.get_or_insert(shown);
        } else {
            suspects.push(values);
        }
        Ok(())
    })
    .await?;
    // A parent that came after its table was read may have children by now: look once more.
    if violation.is_none() && !suspects.is_empty() {
        let keys = parent_keys(env, &parent, fk, context).await?;
        for values in suspects {
            if !keys.contains(&encoded(&values, &parent, &fk.parent_columns)?) {
                let plan = bind(env, table, context)?;
                violation = plan.map(|p| p.describe_key(&fk.columns, &values, &context.eval));
                break;
            }
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

/// The referenced keys of every parent row.
async fn parent_keys<E: Environment>(
    env: &E,
    parent: &TableRef,
    fk: &ForeignKey,
    context: &JobContext,
) -> Result<std::collections::BTreeSet<Vec<u8>>> {
    let mut keys = std::collections::BTreeSet::new();
    let mut bytes = 0;
    each_row(env, parent.id, context, |_, row| {
        let values: Vec<Datum> = fk.parent_columns.iter().map(|o| row[*o as usize].clone()).collect();
        let key = encoded(&values, parent, &fk.parent_columns)?;
        bytes += key.len() + std::mem::size_of::<Vec<u8>>();
        if bytes > crate::exec::MEMORY_BYTES_MAX {
            return Err(Error::sql(
                "53200",
                format!("table {} has too many rows to validate a foreign key against", quote(&parent.name)),
            )
            .hint("Add the constraint NOT VALID: new rows are checked all the same."));
        }
        keys.insert(key);
        Ok(())
    })
    .await?;
    Ok(keys)
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
    let Some(mut source) = env.catalog().table_by_id(table) else { return Ok(()) };
    let mut todo = primary_ranges(&source);
    let mut attempt = 0;
    let (mut bound, mut turn) = (None, Instant::now());
    while let Some((group, range)) = todo.last().cloned() {
        let catalog = env.catalog();
        let plan = match bound.take().filter(|(of, _)| Arc::ptr_eq(of, &catalog)) {
            Some((_, plan)) => plan,
            None => match bind(env, table, context)? {
                Some(plan) => plan,
                None => return Ok(()),
            },
        };
        bound = Some((catalog, plan.clone()));
        if plan.table().primary().id != source.primary().id {
            // It has moved, or was emptied: what was read so far does not tell what is left.
            source = plan.table().clone();
            todo = primary_ranges(&source);
            continue;
        }
        match page(env, &plan, (group, range), context, attempt).await {
            Ok((rows, next)) => {
                for (at, row) in rows.into_iter().enumerate() {
                    if at % LOOK_EVERY == 0 && turn.elapsed() > TURN_MAX {
                        // Rows that are at hand keep the job from ever waiting for anything.
                        tokio::task::yield_now().await;
                        turn = Instant::now();
                    }
                    visit(&plan, &plan.decode_row(row)?)?;
                }
                todo.pop();
                todo.extend(next.map(|rest| (group, rest)));
                attempt = 0;
            }
            Err(e) if e.is_retry() && attempt < limits::RETRIES_MAX => {
                attempt += 1;
                pause(env, attempt).await;
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
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
