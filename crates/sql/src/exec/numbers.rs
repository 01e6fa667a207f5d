//! Operators that read escrow columns: the numbers of rows here, what replicas know of them in
//! [`estimate`], and the shares one by one in [`shares`].

pub(super) mod estimate;
pub(super) mod shares;

use super::Runtime;
use super::escrow::{place, primary_keys, sums, without_share};
use super::eval::{Row, filter};
use super::op::Op;
use crate::catalog::escrow::datum;
use crate::env::Transaction;
use crate::plan::node::Numbers;
use meridian_base::{Key, Result};

/// The next rows, with their numbers.
pub(super) async fn next<T: Transaction>(
    op: &mut Op,
    numbers: &Numbers,
    rt: &mut Runtime<'_, T>,
    want: usize,
) -> Result<Option<Vec<Row>>> {
    let mut input = op.input(&numbers.input);
    let rows = loop {
        let Some(mut rows) = input.next(rt, want).await? else { break None };
        fill(numbers, &mut rows, rt).await?;
        let kept = filter(rows, &numbers.filter, &op.frame, rt).await?;
        if !kept.is_empty() {
            break Some(kept);
        }
    };
    op.keep(input);
    Ok(rows)
}

async fn fill<T: Transaction>(of: &Numbers, rows: &mut [Row], rt: &mut Runtime<'_, T>) -> Result<()> {
    let keys = primary_keys(&of.table, &of.types, &of.columns, rows)?;
    for ordinal in &of.ordinals {
        let Some(column) = of.table.escrow_column(*ordinal) else { continue };
        let shares: Vec<Key> = keys.iter().map(|key| column.share_key(key)).collect();
        let to_write = of.locking.is_to_write().then(|| of.locking.if_busy()).flatten();
        let sums = sums(column, &shares, of.is_dense, to_write, rt).await?;
        let at = place(&of.columns, *ordinal)?;
        for (row, share) in rows.iter_mut().zip(&shares) {
            row[at] = match sums.get(share) {
                Some((number, _)) => datum(*number, &of.types[*ordinal as usize])?,
                None => return Err(without_share(&of.table)),
            };
        }
    }
    Ok(())
}
