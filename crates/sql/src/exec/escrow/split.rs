//! A column that becomes an escrow column, or ceases to be one (`docs/design/escrow.md`, «On and
//! off»).
//!
//! | state | the row | shares | a number is read from |
//! | --- | --- | --- | --- |
//! | plain | holds it | – | the row |
//! | shadow that is not written | holds it | end where the row changes or goes | the row |
//! | shadow that is written | holds it | are written with the row | the row |
//! | `in_rows` | is written with the number | are what counts | the shares |
//! | escrow | – | are what counts | the shares |
//!
//! Two neighbours of this list may be in use at once, and each does what the other one relies on.

use super::{checked, end_shares, number_of, put, row_bounds, set, sums};
use crate::catalog::EscrowColumn;
use crate::catalog::escrow::Shadow;
use crate::env::{Locking, OnLocked, Transaction};
use crate::exec::Runtime;
use crate::plan::TablePlan;
use crate::types::Datum;
use meridian_base::escrow::Share;
use meridian_base::{ColumnMask, Key, Result, Write};

/// Keeps the shares beside a row that is written: inserted, changed or deleted.
pub(in crate::exec) fn shadow<T: Transaction>(
    table: &TablePlan,
    old: Option<&[Datum]>,
    new: Option<&[Datum]>,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    for Shadow { column, is_written } in &table.table.shadows {
        let key = |row: &[Datum]| Ok::<_, meridian_base::Error>(column.share_key(&table.primary_key(row)?));
        let (before, after) = (old.map(key).transpose()?, new.map(key).transpose()?);
        if let (Some(old), Some(new)) = (old, new) {
            let at = column.ordinal as usize;
            let is_same = old[at].is_identical(&new[at]) && row_bounds(table, column, old)? == row_bounds(table, column, new)?;
            if before == after && is_same {
                continue;
            }
        }
        if let Some(before) = before.filter(|before| !is_written || after.as_ref() != Some(before)) {
            end_shares(column, &before, rt)?;
        }
        let Some(row) = new.filter(|_| *is_written) else { continue };
        match old {
            Some(_) => set(table, column, row, rt)?,
            None => begin(table, column, row, rt)?,
        }
    }
    Ok(())
}

/// Writes the share of a row that has none.
pub(super) fn begin<T: Transaction>(
    table: &TablePlan,
    column: &EscrowColumn,
    row: &[Datum],
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    let bounds = row_bounds(table, column, row)?;
    let number = checked(table, column, bounds, &row[column.ordinal as usize])?;
    let share = Share::begin(rt.txn.incarnation(), number, bounds);
    put(column.first_site(table.group_of(row)?), column.share_key(&table.primary_key(row)?), Some(share), rt)
}

/// Writes the shares of rows that have none yet. 23514 if a number is outside of its bounds.
pub(in crate::exec) async fn split<T: Transaction>(
    table: &TablePlan,
    index: u32,
    rows: &[Vec<Datum>],
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    let Some(Shadow { column, .. }) = table.table.shadows.iter().find(|shadow| shadow.column.index == index) else {
        return Ok(());
    };
    let shares: Vec<Key> = rows.iter().map(|row| Ok(column.share_key(&table.primary_key(row)?))).collect::<Result<_>>()?;
    let reads = column.sites.iter().map(|site| (*site, shares.clone())).collect();
    rt.ctx.stay_home(column.sites.iter().copied(), Locking::None)?;
    let found = rt.txn.get_each(reads, ColumnMask::ALL, Locking::None).await?;
    for (at, row) in rows.iter().enumerate() {
        rt.pause().await?;
        if found.iter().all(|of_site| of_site[at].is_none()) {
            begin(table, column, row, rt)?;
        }
    }
    Ok(())
}

/// Writes the numbers of an escrow column into its rows. `to_write`: changes by others wait.
pub(in crate::exec) async fn store<T: Transaction>(
    table: &TablePlan,
    index: u32,
    rows: &[Vec<Datum>],
    to_write: bool,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    if !table.table.escrow.iter().any(|column| column.index == index && column.in_rows) {
        return Ok(());
    }
    let mut rows = rows.to_vec();
    let mut mask = ColumnMask::NONE;
    for column in table.table.escrow.iter().filter(|column| column.in_rows) {
        let shares: Vec<Key> = rows.iter().map(|row| Ok(column.share_key(&table.primary_key(row)?))).collect::<Result<_>>()?;
        let is_dense = table.table.groups().nth(1).is_none();
        let found = sums(column, &shares, is_dense, to_write.then_some(OnLocked::Wait), rt).await?;
        for (row, share) in rows.iter_mut().zip(&shares) {
            row[column.ordinal as usize] = number_of(table, column, &found, share)?;
        }
        mask |= ColumnMask::column(column.ordinal);
    }
    for row in &rows {
        rt.pause().await?;
        let group = table.group_of(row)?;
        rt.ctx.write_at_home(group)?;
        rt.txn.write(group, Write { key: table.primary_key(row)?, value: Some(table.row_bytes(row)), columns: mask })?;
    }
    Ok(())
}
