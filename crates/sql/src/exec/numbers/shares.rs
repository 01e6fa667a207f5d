//! `SHOW ESCROW FOR TABLE`: what each site has of the numbers of a table's rows
//! (`docs/design/escrow.md`, E9).
//!
//! Shares are read as numbers are, and certified with the rest. A batch of rows at a time becomes a
//! row for each escrow column and site, so a table of any size takes the memory of a batch.

use crate::catalog::escrow::scale;
use crate::env::Transaction;
use crate::exec::escrow::{place, primary_keys, sites};
use crate::exec::eval::Row;
use crate::exec::op::Op;
use crate::exec::{BATCH, Runtime};
use crate::plan::node::Shares;
use crate::types::Datum;
use crate::types::numeric::Numeric;
use meridian_base::{Error, Key, Result};

/// The next rows: as many as the next rows of the table make.
pub(in crate::exec) async fn next<T: Transaction>(
    op: &mut Op,
    of: &Shares,
    rt: &mut Runtime<'_, T>,
    want: usize,
) -> Result<Option<Vec<Row>>> {
    let of_row: usize = of.table.escrow.iter().map(|column| column.sites.len()).sum();
    let want = want.div_ceil(of_row.max(1)).min(BATCH);
    let mut input = op.input(&of.input);
    let shown = match input.next(rt, want).await? {
        Some(rows) => Some(shown(of, &rows, rt).await?),
        None => None,
    };
    op.keep(input);
    Ok(shown)
}

async fn shown<T: Transaction>(of: &Shares, rows: &[Row], rt: &mut Runtime<'_, T>) -> Result<Vec<Row>> {
    let keys = primary_keys(&of.table, &of.types, &of.columns, rows)?;
    let mut columns = Vec::with_capacity(of.table.escrow.len());
    for column in &of.table.escrow {
        let shares: Vec<Key> = keys.iter().map(|key| column.share_key(key)).collect();
        columns.push((column, sites(column, &shares, of.is_dense, rt).await?, shares));
    }
    let places = of.table.primary().columns.iter().map(|c| place(&of.columns, c.ordinal));
    let places = places.collect::<Result<Vec<usize>>>()?;
    let mut out = Vec::with_capacity(rows.len() * columns.len());
    for (at, row) in rows.iter().enumerate() {
        for (column, found, shares) in &columns {
            let name = &of.table.columns[column.ordinal as usize].name;
            let has = found.get(&shares[at]);
            for site in &column.sites {
                rt.step().await?;
                let mut shown: Row = places.iter().map(|place| row[*place].clone()).collect();
                let region = rt.ctx.catalog.group_by_id(*site).map(|group| group.home.clone());
                shown.push(Datum::text(name.clone()));
                shown.push(region.map_or(Datum::Null, Datum::text));
                let scale = scale(&of.types[column.ordinal as usize]);
                let share = has.and_then(|has| has.get(site));
                shown.extend(match share.map(|share| (share.contribution, share.free())) {
                    Some((part, free)) => [number(part, scale)?, number(free.down, scale)?, number(free.up, scale)?],
                    None => [Datum::Null, Datum::Null, Datum::Null],
                });
                out.push(shown);
            }
        }
    }
    Ok(out)
}

/// A part of a number may be outside the column's type.
fn number(scaled: i128, scale: u16) -> Result<Datum> {
    let number = Numeric::from_digits(&scaled.unsigned_abs().to_string(), scaled < 0, scale);
    number.map(Datum::Numeric).ok_or_else(|| Error::sql("22003", "numeric out of range"))
}
