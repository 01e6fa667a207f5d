//! Foreign keys (PostgreSQL manual, 5.4.5): what a change of one table asks of others, and what it
//! does to them.

use super::Runtime;
use super::eval::Row;
use super::groups::get_anywhere;
use super::parents::{parent_groups, parent_key};
use super::write::{Changes, delete, update};
use crate::catalog::{FkAction, ForeignKey};
use crate::env::{Locking, OnLocked, Scan, Transaction};
use crate::plan::{ForeignKeys, TablePlan};
use crate::types::Datum;
use crate::types::keys::encode_key_column;
use bytes::Bytes;
use futures::future::BoxFuture;
use meridian_base::key::encode;
use meridian_base::{ColumnMask, Error, GroupId, Key, KeyRange, Result};
use std::sync::Arc;

/// How many levels of tables a cascade may go through.
const DEPTH_MAX: usize = 64;

/// Whether foreign keys refer to a table, or from it.
pub(super) fn concerns(table: &TablePlan, keys: &ForeignKeys) -> bool {
    let id = table.table.id;
    keys.children.get(&id).is_some_and(|of| !of.is_empty()) || keys.parents.get(&id).is_some_and(|of| !of.is_empty())
}

/// Checks everything that a statement's changes to a table touch, and cascades.
pub(crate) async fn check<T: Transaction>(
    table: &Arc<TablePlan>,
    keys: &ForeignKeys,
    changes: Changes,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    if !concerns(table, keys) {
        return Ok(());
    }
    check_level(table, keys, changes, rt, 0).await
}

fn check_level<'a, 'r, T: Transaction>(
    table: &'a Arc<TablePlan>,
    keys: &'a ForeignKeys,
    changes: Changes,
    rt: &'a mut Runtime<'r, T>,
    depth: usize,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        if depth > DEPTH_MAX {
            return Err(Error::sql("54001", "foreign keys cascade through too many levels"));
        }
        let id = table.table.id;
        for (child, fk) in keys.children.get(&id).into_iter().flatten() {
            for old in &changes.deleted {
                Reference { parent: table, child, fk, keys }.parent_gone(old, None, rt, depth).await?;
            }
            for (old, new) in &changes.updated {
                // Children follow a key that is only written in another way, too.
                if fk.parent_columns.iter().any(|o| !old[*o as usize].is_identical(&new[*o as usize])) {
                    Reference { parent: table, child, fk, keys }.parent_gone(old, Some(new), rt, depth).await?;
                }
            }
        }
        for (fk, parent, index) in keys.parents.get(&id).into_iter().flatten() {
            for new in &changes.inserted {
                has_parent(table, fk, parent, *index, new, rt).await?;
            }
            for (old, new) in &changes.updated {
                // A validation in progress may miss a row that moves from where it has not looked
                // to where it has.
                let evades = !fk.validated && table.group_of(old)? != table.group_of(new)?;
                if evades || fk.columns.iter().any(|o| old[*o as usize] != new[*o as usize]) {
                    has_parent(table, fk, parent, *index, new, rt).await?;
                }
            }
        }
        Ok(())
    })
}

/// Whether the parent of a child is there.
async fn is_there<T: Transaction>(
    parent: &TablePlan,
    index: usize,
    fk: &ForeignKey,
    child: &[Datum],
    rt: &mut Runtime<'_, T>,
) -> Result<bool> {
    let key = parent_key(parent, index, fk, child)?;
    let groups = parent_groups(parent, fk, child, rt.ctx.eval);
    let found = get_anywhere(rt.txn, rt.ctx, &groups, std::slice::from_ref(&key), ColumnMask::EXISTENCE, Locking::None).await?;
    Ok(found.iter().any(Option::is_some))
}

async fn has_parent<T: Transaction>(
    table: &TablePlan,
    fk: &ForeignKey,
    parent: &TablePlan,
    index: usize,
    row: &[Datum],
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    let nulls = fk.columns.iter().filter(|o| row[**o as usize].is_null()).count();
    if nulls == fk.columns.len() || (nulls > 0 && !fk.match_full) {
        return Ok(());
    }
    let violated = || {
        let message =
            format!("insert or update on table \"{}\" violates foreign key constraint \"{}\"", table.table.name, fk.name);
        Error::sql("23503", message).table(&table.table.name).constraint(&fk.name)
    };
    if nulls > 0 {
        return Err(violated().detail("MATCH FULL does not allow mixing of null and nonnull key values."));
    }
    if is_there(parent, index, fk, row, rt).await? {
        return Ok(());
    }
    let values: Row = fk.columns.iter().map(|o| row[*o as usize].clone()).collect();
    let shown = table.shown_key(&fk.columns, &values, rt.ctx.eval);
    Err(violated().detail(format!("{shown} is not present in table \"{}\".", parent.table.name)))
}

/// A foreign key of a child to a parent that has changed.
struct Reference<'a> {
    parent: &'a Arc<TablePlan>,
    child: &'a Arc<TablePlan>,
    fk: &'a ForeignKey,
    /// Those around the tables that the statement changes.
    keys: &'a ForeignKeys,
}

impl Reference<'_> {
    /// A parent's values are gone (deleted, or updated to `new`): its children have to follow, or
    /// forbid it.
    async fn parent_gone<T: Transaction>(
        &self,
        old: &[Datum],
        new: Option<&[Datum]>,
        rt: &mut Runtime<'_, T>,
        depth: usize,
    ) -> Result<()> {
        let Reference { child, fk, keys, .. } = *self;
        let values: Row = fk.parent_columns.iter().map(|o| old[*o as usize].clone()).collect();
        if values.iter().any(Datum::is_null) {
            return Ok(());
        }
        let action = if new.is_some() { fk.on_update } else { fk.on_delete };
        let forbids = matches!(action, FkAction::NoAction | FkAction::Restrict);
        let children = children(child, fk, &values, forbids, rt).await?;
        if children.is_empty() {
            return Ok(());
        }
        let mut changes = Changes::default();
        for row in children {
            rt.pause().await?;
            let mut changed = row.clone();
            match action {
                FkAction::NoAction | FkAction::Restrict => {
                    // The statement itself may have put another parent in the place of the old one.
                    if action == FkAction::NoAction && self.replaced(&row, rt).await? {
                        return Ok(());
                    }
                    return Err(self.still_referenced(&values, rt));
                }
                FkAction::Cascade => match new {
                    None => {
                        delete(child, &row, rt)?;
                        changes.deleted.push(row);
                        continue;
                    }
                    Some(new) => fk
                        .columns
                        .iter()
                        .zip(&fk.parent_columns)
                        .for_each(|(c, p)| changed[*c as usize] = new[*p as usize].clone()),
                },
                FkAction::SetNull => fk.columns.iter().for_each(|c| changed[*c as usize] = Datum::Null),
                FkAction::SetDefault => {
                    for c in &fk.columns {
                        changed[*c as usize] = match &child.defaults[*c as usize] {
                            Some(e) => crate::plan::eval::eval_constant(e, rt.ctx.eval)?,
                            None => Datum::Null,
                        };
                    }
                    // The default is the parent that goes.
                    if fk.columns.iter().zip(&values).all(|(c, v)| changed[*c as usize] == *v) {
                        if self.replaced(&row, rt).await? {
                            continue;
                        }
                        return Err(self.still_referenced(&values, rt));
                    }
                }
            }
            update(child, &row, &mut changed, rt).await?;
            changes.updated.push((row, changed));
        }
        check_level(child, keys, changes, rt, depth + 1).await
    }

    /// 23503: a row has lost its parent.
    fn still_referenced<T: Transaction>(&self, values: &[Datum], rt: &Runtime<'_, T>) -> Error {
        let Reference { parent, child, fk, .. } = self;
        let message = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
            parent.table.name, fk.name, child.table.name
        );
        let shown = parent.shown_key(&fk.parent_columns, values, rt.ctx.eval);
        Error::sql("23503", message)
            .detail(format!("{shown} is still referenced from table \"{}\".", child.table.name))
            .table(&child.table.name)
            .constraint(&fk.name)
    }

    /// Whether a child's parent is there (again).
    async fn replaced<T: Transaction>(&self, row: &[Datum], rt: &mut Runtime<'_, T>) -> Result<bool> {
        let Reference { parent, child, fk, keys } = *self;
        let index = keys.parents.get(&child.table.id).into_iter().flatten().find(|(f, _, _)| f.id == fk.id).map(|(_, _, i)| *i);
        let is_key = |i: &crate::catalog::Index| i.is_key(&fk.parent_columns);
        let Some(index) = index.or_else(|| parent.table.indexes.iter().position(is_key)) else { return Ok(false) };
        is_there(parent, index, fk, row, rt).await
    }
}

/// Rows that refer to these values. For a mere check, one is enough.
async fn children<T: Transaction>(
    child: &TablePlan,
    fk: &ForeignKey,
    values: &[Datum],
    one: bool,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Row>> {
    let (index, range) = child_range(child, fk, values)?;
    let locking = if one { Locking::None } else { Locking::Exclusive(OnLocked::Wait) };
    let mut columns = ColumnMask::EXISTENCE;
    fk.columns.iter().for_each(|c| columns |= ColumnMask::column(*c));
    if !one {
        columns = ColumnMask::ALL;
    }
    let known = |o: u32| fk.columns.iter().position(|c| *c == o).map(|at| values[at].clone());
    let groups = child.groups_with(&known, rt.ctx.eval);
    rt.ctx.stay_home(groups.iter(), locking)?;
    let mut rest: Vec<(GroupId, KeyRange)> = groups.iter().map(|group| (group, range.clone())).collect();
    let mut out = Vec::new();
    while !rest.is_empty() {
        rt.pause().await?;
        let locking = if index == 0 { locking } else { Locking::None };
        let scan = |range| Scan { range, columns, reverse: false, limit: Some(super::BATCH), locking };
        let scans: Vec<(GroupId, Scan)> = rest.drain(..).map(|(group, range)| (group, scan(range))).collect();
        let of: Vec<GroupId> = scans.iter().map(|(group, _)| *group).collect();
        for (group, page) in of.into_iter().zip(rt.txn.scan_each(scans).await?) {
            rest.extend(page.rest.map(|range| (group, range)));
            for row in rows_of(child, index, group, page.rows, columns, one, rt).await? {
                if fk.columns.iter().zip(values).all(|(c, v)| row[*c as usize] == *v) {
                    out.push(row);
                    if one {
                        return Ok(out);
                    }
                }
            }
        }
    }
    Ok(out)
}

/// The rows of entries of an index.
async fn rows_of<T: Transaction>(
    child: &TablePlan,
    index: usize,
    group: GroupId,
    found: Vec<(Key, Bytes)>,
    columns: ColumnMask,
    one: bool,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Row>> {
    if index == 0 {
        return found.into_iter().map(|(_, value)| child.decode_row(value)).collect();
    }
    let locking = if one { Locking::None } else { Locking::Exclusive(OnLocked::Wait) };
    let keys = found.iter().map(|(_, value)| Ok(super::split_entry(value)?.0)).collect::<Result<Vec<Key>>>()?;
    let rows = rt.txn.get_many(group, &keys, columns, locking).await?;
    rows.into_iter().flatten().map(|bytes| child.decode_row(bytes)).collect()
}

/// The part of the child's best index that holds them: the longest run of the key's columns at its
/// start.
fn child_range(child: &TablePlan, fk: &ForeignKey, values: &[Datum]) -> Result<(usize, KeyRange)> {
    let usable = |i: &crate::catalog::Index| {
        let readable = i.state == crate::catalog::IndexState::Public && i.predicate.is_none();
        if readable { i.columns.iter().take_while(|c| fk.columns.contains(&c.ordinal)).count() } else { 0 }
    };
    let (mut best, mut length) = (0, usable(&child.table.indexes[0]));
    for (at, i) in child.table.indexes.iter().enumerate().skip(1) {
        if usable(i) > length {
            (best, length) = (at, usable(i));
        }
    }
    let i = &child.table.indexes[best];
    let mut prefix = Vec::with_capacity(24);
    encode::index(&mut prefix, i.id);
    for c in &i.columns[..length] {
        let at = fk
            .columns
            .iter()
            .position(|o| *o == c.ordinal)
            .ok_or_else(|| Error::internal("a foreign key's column is missing"))?;
        encode_key_column(&mut prefix, &values[at], &child.types[c.ordinal as usize], c.descending, c.nulls_first)?;
    }
    Ok((best, KeyRange::prefix(&prefix)))
}
