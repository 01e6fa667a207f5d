//! From rows to writes.
//!
//! What is written says exactly what changed: an insert or a delete changes existence, an update
//! the columns whose values differ, and an update reads the whole row (it writes the whole row).
//! Secondary entries whose key stays are rewritten only if what they store changed.
//!
//! A row and its entries go to the group of its region. Unique values are unique over all groups of
//! a table, so where a value does not tell the region, every group is asked for it.

use super::Runtime;
use super::escrow;
use super::eval::{Frame, Row, eval_scalar};
use crate::catalog::{ColumnState, Table};
use crate::env::{Locking, Transaction};
use crate::plan::TablePlan;
use crate::plan::eval::{Env, Memo, eval, finish};
use crate::types::{Datum, EvalContext};
use bytes::Bytes;
use meridian_base::{ColumnMask, Error, GroupId, Key, Result, Write};
use std::collections::{BTreeMap, BTreeSet};

/// What a statement did to its table, for the foreign keys: rows before and after.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) inserted: Vec<Row>,
    pub(crate) updated: Vec<(Row, Row)>,
    pub(crate) deleted: Vec<Row>,
    /// No foreign key asks for these rows: they are not kept.
    pub(super) forgets: bool,
    /// Where the rows are that `INSERT … ON CONFLICT DO UPDATE` has put or changed: none is changed
    /// twice.
    pub(super) touched: BTreeSet<(GroupId, Key)>,
    /// The rows that it has locked beforehand, and their absence, by primary key.
    pub(super) locked: BTreeMap<(GroupId, Key), Option<Bytes>>,
}

impl Changes {
    /// A row as it was when it was locked; `None` if it was not, or has changed since.
    pub(super) fn locked(&self, place: &(GroupId, Key)) -> Option<&Option<Bytes>> {
        if self.touched.contains(place) { None } else { self.locked.get(place) }
    }
    /// 21000 if the statement has inserted or updated this row already.
    pub(super) fn refuse_second(&self, row: &(GroupId, Key)) -> Result<()> {
        match self.touched.contains(row) {
            true => Err(Error::sql("21000", "ON CONFLICT DO UPDATE command cannot affect row a second time")
                .hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")),
            false => Ok(()),
        }
    }
}

/// Where the row that has this row's values in a unique index would be in the row's own group.
/// `None` if it meets no other row there.
pub(super) fn place(table: &TablePlan, index: usize, row: &[Datum], ctx: &EvalContext) -> Result<Option<(GroupId, Key)>> {
    let key = match index {
        0 => table.primary_key(row)?,
        // NULLs are distinct: such entries end with the primary key and never meet another.
        _ if table.table.indexes[index].columns.iter().any(|c| row[c.ordinal as usize].is_null()) => return Ok(None),
        _ => match table.index_entry(index, row, ctx)? {
            Some(entry) => entry.key,
            None => return Ok(None),
        },
    };
    Ok(Some((table.group_of(row)?, key)))
}

pub(super) fn null_value(table: &TablePlan, ordinal: u32, row: &[Datum], ctx: &EvalContext) -> Error {
    failing_row(table.null_in(ordinal), table, row, ctx)
}

/// Says which row it is, to those who may read it.
pub(super) fn failing_row(e: Error, table: &TablePlan, row: &[Datum], ctx: &EvalContext) -> Error {
    match table.may_be_shown(ctx) {
        true => e.detail(format!("Failing row contains {}.", table.describe_row(row, ctx))),
        false => e,
    }
}

/// Generated columns, `NOT NULL`, `CHECK`.
pub(crate) fn complete(table: &TablePlan, row: &mut Row, ctx: &EvalContext) -> Result<()> {
    let memo = Memo::default();
    for (o, e) in &table.generated {
        row[*o as usize] = finish(eval(e, &Env { row, args: &[], params: &[], ctx, memo: &memo }))?;
    }
    for (o, c) in table.table.written_columns() {
        // A number that nobody has read is none; who inserts or sets one looks at it.
        if c.not_null && row[o as usize].is_null() && !escrow::is_number(table, o) {
            return Err(null_value(table, o, row, ctx));
        }
    }
    for (name, e) in &table.checks {
        let holds = finish(eval(e, &Env { row, args: &[], params: &[], ctx, memo: &memo }))?;
        if matches!(holds, Datum::Bool(false)) {
            let message = format!("new row for relation \"{}\" violates check constraint \"{name}\"", table.table.name);
            let e = Error::sql("23514", message).table(&table.table.name).constraint(name);
            return Err(failing_row(e, table, row, ctx));
        }
    }
    Ok(())
}

/// Where another row with the same values in a unique index could be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// In the row's own group only: its values tell the region, or nobody else can have them.
    Own,
    /// In every group of the table.
    All,
}

/// See [`Reach`]; `random`: columns that this row fills with fresh random UUIDs.
pub(crate) fn reach(table: &TablePlan, index: usize, random: &[u32]) -> Reach {
    let is_random = table.table.indexes[index].columns.iter().any(|c| random.contains(&c.ordinal));
    if is_random || !table.is_scattered(index) { Reach::Own } else { Reach::All }
}

/// The group and the primary key of the row that has this row's values in a unique index, if there
/// is one. What other groups are asked for is asked for together, and their absence is in the read
/// set, which the commit certifies with the rest.
pub(super) async fn taken<T: Transaction>(
    table: &TablePlan,
    index: usize,
    row: &[Datum],
    reach: Reach,
    locking: Locking,
    changes: &Changes,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<(GroupId, Key)>> {
    let Some(place) = place(table, index, row, rt.ctx.eval)? else { return Ok(None) };
    if index == 0
        && let Some(row) = changes.locked(&place)
    {
        return Ok(row.is_some().then_some(place));
    }
    let (own, key) = place;
    let found = match reach {
        Reach::Own => rt.txn.get(own, &key, ColumnMask::EXISTENCE, locking).await?.map(|value| (own, value)),
        Reach::All => {
            rt.ctx.stay_home(table.table.groups(), locking)?;
            let groups: Vec<GroupId> = table.table.groups().collect();
            let reads = groups.iter().map(|group| (*group, vec![key.clone()])).collect();
            let values = rt.txn.get_each(reads, ColumnMask::EXISTENCE, locking).await?;
            groups.into_iter().zip(values).find_map(|(group, mut values)| values.pop().flatten().map(|value| (group, value)))
        }
    };
    Ok(match found {
        None => None,
        Some((group, _)) if index == 0 => Some((group, key)),
        Some((group, value)) => Some((group, super::split_entry(&value)?.0)),
    })
}

pub(super) fn duplicate(table: &TablePlan, index: usize, row: &[Datum], ctx: &EvalContext) -> Error {
    let i = &table.table.indexes[index];
    let columns: Vec<u32> = i.columns.iter().map(|c| c.ordinal).collect();
    let values: Row = columns.iter().map(|o| row[*o as usize].clone()).collect();
    let e = Error::sql("23505", format!("duplicate key value violates unique constraint \"{}\"", i.name))
        .table(&table.table.name)
        .constraint(&i.name);
    match table.may_be_shown(ctx) {
        true => e.detail(format!("Key {} already exists.", table.describe_key(&columns, &values, ctx))),
        false => e,
    }
}

/// Writes a row that was found absent, and its entries.
pub(super) fn put_new<T: Transaction>(table: &TablePlan, row: &[Datum], rt: &mut Runtime<'_, T>) -> Result<()> {
    let group = table.open_group_of(row)?;
    put(group, table.primary_key(row)?, Some(table.row_bytes(row)), ColumnMask::EXISTENCE, rt)?;
    escrow::begin(table, row, rt)?;
    escrow::split::shadow(table, None, Some(row), rt)?;
    for index in table.secondary(false) {
        if let Some(e) = table.index_entry(index, row, rt.ctx.eval)? {
            put(group, e.key, Some(e.value), ColumnMask::EXISTENCE, rt)?;
        }
    }
    mirror(table, None, Some(row), rt)
}

pub(super) fn put<T: Transaction>(
    group: GroupId,
    key: Key,
    value: Option<Bytes>,
    columns: ColumnMask,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    rt.ctx.write_at_home(group)?;
    rt.txn.write(group, Write { key, value, columns })
}

/// Changes a row that was read whole. With another region it moves: out of one group, into another.
pub(crate) async fn update<T: Transaction>(
    table: &TablePlan,
    old: &[Datum],
    new: &mut Row,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    revise(table, old, new, rt).await?;
    write_changes(table, old, new, rt).await
}

/// The columns of a changed row that follow from others, and the constraints on it alone.
pub(super) async fn revise<T: Transaction>(
    table: &TablePlan,
    old: &[Datum],
    new: &mut Row,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    for f in &table.filling {
        new[f.ordinal as usize] = eval_scalar(&f.updated, old, &Frame::from([]), rt).await?;
    }
    complete(table, new, rt.ctx.eval)
}

/// Gives a row that was read whole the values of the columns that are being added to its table. It
/// may break constraints that are not validated: what it had before is not looked at.
pub(crate) async fn fill<T: Transaction>(table: &TablePlan, old: &[Datum], rt: &mut Runtime<'_, T>) -> Result<()> {
    let mut new = old.to_vec();
    for f in &table.filling {
        new[f.ordinal as usize] = eval_scalar(&f.stored, old, &Frame::from([]), rt).await?;
    }
    let column = |o: u32| &table.table.columns[o as usize];
    let memo = Memo::default();
    for (o, e) in table.generated.iter().filter(|(o, _)| column(*o).state == ColumnState::Filling) {
        new[*o as usize] = finish(eval(e, &Env { row: &new, args: &[], params: &[], ctx: rt.ctx.eval, memo: &memo }))?;
    }
    for (o, c) in table.table.written_columns().filter(|(_, c)| c.state == ColumnState::Filling) {
        if c.not_null && new[o as usize].is_null() {
            return Err(contains_nulls(&table.table, o));
        }
    }
    write_changes(table, old, &new, rt).await
}

/// 23502 for a column of rows that are there already.
pub(crate) fn contains_nulls(table: &Table, ordinal: u32) -> Error {
    let (table, column) = (&table.name, &table.columns[ordinal as usize].name);
    let message = format!("column \"{column}\" of relation \"{table}\" contains null values");
    Error::sql("23502", message).table(table.clone()).column(column.clone())
}

/// Writes what differs between two versions of a row.
pub(super) async fn write_changes<T: Transaction>(
    table: &TablePlan,
    old: &[Datum],
    new: &[Datum],
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    let mut mask = ColumnMask::NONE;
    let differs = |o: usize| !old[o].is_identical(&new[o]);
    for o in 0..new.len() {
        if differs(o) {
            mask |= ColumnMask::column(o as u32);
        }
    }
    if mask.is_empty() {
        return Ok(());
    }
    let from = table.group_of(old)?;
    let to = if table.group_of(new)? == from { from } else { table.open_group_of(new)? };
    let (old_key, new_key) = (table.primary_key(old)?, table.primary_key(new)?);
    escrow::split::shadow(table, Some(old), Some(new), rt)?;
    let mut stored = std::borrow::Cow::Borrowed(new);
    if table.table.escrow.iter().any(|column| column.in_rows) {
        escrow::complete_stored(table, old, stored.to_mut(), rt).await?;
    }
    if old_key == new_key {
        escrow::change(table, old, new, rt).await?;
    } else if !table.table.escrow.is_empty() {
        let mut complete = new.to_vec();
        escrow::complete(table, old, &mut complete, rt).await?;
        escrow::end(table, old, rt)?;
        escrow::begin(table, &complete, rt)?;
    }
    if old_key == new_key && from == to {
        if is_stored(table, mask, old, new) {
            put(to, old_key, Some(table.row_bytes(&stored)), mask, rt)?;
        }
    } else {
        let is_same = old_key == new_key;
        put(from, old_key, None, ColumnMask::EXISTENCE, rt)?;
        // A row that only moves takes its own values along.
        if !is_same && taken(table, 0, new, reach(table, 0, &[]), Locking::None, &Changes::default(), rt).await?.is_some() {
            return Err(duplicate(table, 0, new, rt.ctx.eval));
        }
        put(to, new_key, Some(table.row_bytes(&stored)), ColumnMask::EXISTENCE, rt)?;
    }
    for index in table.secondary(true) {
        update_entry(table, index, (from, old), (to, new), mask, rt).await?;
    }
    mirror(table, Some(old), Some(new), rt)
}

/// Whether the stored row differs: the numbers of escrow columns are not in it.
pub(super) fn is_stored(table: &TablePlan, mask: ColumnMask, old: &[Datum], new: &[Datum]) -> bool {
    let differs = |o: usize| !old[o].is_identical(&new[o]) && !escrow::is_only_in_shares(table, o as u32);
    table.table.escrow.is_empty() && !mask.is_empty() || (0..new.len()).any(differs)
}

/// Changes a row's entry in a secondary index.
pub(super) async fn update_entry<T: Transaction>(
    table: &TablePlan,
    index: usize,
    (from, old): (GroupId, &[Datum]),
    (to, new): (GroupId, &[Datum]),
    mask: ColumnMask,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    let before = table.index_entry(index, old, rt.ctx.eval)?;
    let inserts = table.table.indexes[index].state != crate::catalog::IndexState::DeleteOnly;
    let after = if inserts { table.index_entry(index, new, rt.ctx.eval)? } else { None };
    let moves = from != to;
    if before == after && !moves {
        return Ok(());
    }
    let same_key = matches!((&before, &after), (Some(b), Some(a)) if a.key == b.key);
    if let Some(b) = before
        && (moves || !same_key)
    {
        put(from, b.key, None, ColumnMask::EXISTENCE, rt)?;
    }
    let Some(a) = after else { return Ok(()) };
    if same_key {
        return put(to, a.key, Some(a.value), if moves { ColumnMask::EXISTENCE } else { mask }, rt);
    }
    if table.table.indexes[index].unique
        && taken(table, index, new, reach(table, index, &[]), Locking::None, &Changes::default(), rt).await?.is_some()
    {
        return Err(duplicate(table, index, new, rt.ctx.eval));
    }
    put(to, a.key, Some(a.value), ColumnMask::EXISTENCE, rt)
}

/// Deletes a row that was read whole.
pub(crate) fn delete<T: Transaction>(table: &TablePlan, old: &[Datum], rt: &mut Runtime<'_, T>) -> Result<()> {
    let group = table.group_of(old)?;
    put(group, table.primary_key(old)?, None, ColumnMask::EXISTENCE, rt)?;
    escrow::end(table, old, rt)?;
    escrow::split::shadow(table, Some(old), None, rt)?;
    for index in table.secondary(true) {
        if let Some(e) = table.index_entry(index, old, rt.ctx.eval)? {
            put(group, e.key, None, ColumnMask::EXISTENCE, rt)?;
        }
    }
    mirror(table, Some(old), None, rt)
}

/// Writes a change of a row in the table's other homes too, while its locality changes. Nothing is
/// read there: what the change rests on was read where the table is read.
pub(super) fn mirror<T: Transaction>(
    table: &TablePlan,
    old: Option<&[Datum]>,
    new: Option<&[Datum]>,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    let Some(m) = &table.mirror else { return Ok(()) };
    let after = match new {
        Some(row) if m.inserts => m.plan.all_entries(row, rt.ctx.eval)?,
        _ => Default::default(),
    };
    let before = old.map(|row| m.plan.all_entries(row, rt.ctx.eval)).transpose()?.unwrap_or_default();
    for ((group, key), _) in before.into_iter().filter(|(place, _)| !after.contains_key(place)) {
        rt.txn.write(group, Write { key, value: None, columns: ColumnMask::EXISTENCE })?;
    }
    for ((group, key), value) in after {
        rt.txn.write(group, Write { key, value: Some(value), columns: ColumnMask::EXISTENCE })?;
    }
    Ok(())
}
