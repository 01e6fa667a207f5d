//! `escrow_estimate(column)`: the number as replicas in this region know it
//! (`docs/design/escrow.md`, E10, E12).
//!
//! The shares of all sites are read at one moment, the newest that is over at a replica of each in
//! this region, and added up: what the number was then. Deltas of the own transaction are added.
//! Nothing crosses regions, and nothing is certified. Rows of one statement that are read in
//! several batches may be of several moments.

use crate::catalog::EscrowColumn;
use crate::catalog::escrow::datum;
use crate::env::Transaction;
use crate::exec::Runtime;
use crate::exec::escrow::{by_row, primary_keys, ranges, share_of};
use crate::exec::eval::{Row, filter};
use crate::exec::op::Op;
use crate::plan::node::Estimates;
use crate::types::Datum;
use meridian_base::escrow::Share;
use meridian_base::{Error, Key, Result};
use std::collections::BTreeMap;

/// The next rows, with estimates behind them.
pub(in crate::exec) async fn next<T: Transaction>(
    op: &mut Op,
    of: &Estimates,
    rt: &mut Runtime<'_, T>,
    want: usize,
) -> Result<Option<Vec<Row>>> {
    let mut input = op.input(&of.input);
    let rows = loop {
        let Some(mut rows) = input.next(rt, want).await? else { break None };
        append(of, &mut rows, rt).await?;
        let kept = filter(rows, &of.filter, &op.frame, rt).await?;
        if !kept.is_empty() {
            break Some(kept);
        }
    };
    op.keep(input);
    Ok(rows)
}

async fn append<T: Transaction>(of: &Estimates, rows: &mut [Row], rt: &mut Runtime<'_, T>) -> Result<()> {
    let keys = primary_keys(&of.table, &of.types, &of.columns, rows)?;
    for at in &of.of {
        let column = of.table.escrow.get(*at).ok_or_else(|| Error::internal("an estimate of no escrow column"))?;
        let shares: Vec<Key> = keys.iter().map(|key| column.share_key(key)).collect();
        let estimates = estimates(column, &shares, of.is_dense, rt).await?;
        for (row, share) in rows.iter_mut().zip(&shares) {
            // A row that is newer than the moment has no number yet.
            row.push(match estimates.get(share) {
                Some(number) => datum(*number, &of.types[column.ordinal as usize])?,
                None => Datum::Null,
            });
        }
    }
    Ok(())
}

/// 55000 if a site's replicas are all in other regions, as `PLACEMENT RESTRICTED` wants it. The
/// past may be read there.
fn has_replicas<T: Transaction>(column: &EscrowColumn, rt: &Runtime<'_, T>) -> Result<()> {
    let here = &*rt.ctx.eval.gateway_region;
    let sites = column.sites.iter().filter_map(|site| rt.ctx.catalog.group_by_id(*site));
    match sites.filter(|site| !site.has_replica_in(here)).map(|site| &site.home).next() {
        Some(home) if !rt.ctx.options.reads_past => {
            let message = format!("region \"{here}\" has no replica of the part of the number that region \"{home}\" has");
            Err(Error::sql("55000", message).hint("Read the number itself."))
        }
        _ => Ok(()),
    }
}

/// The numbers that are known here, by the keys of their shares.
async fn estimates<T: Transaction>(
    column: &EscrowColumn,
    shares: &[Key],
    is_dense: bool,
    rt: &mut Runtime<'_, T>,
) -> Result<BTreeMap<Key, i128>> {
    has_replicas(column, rt)?;
    let found = rt.txn.scan_nearby(&column.sites, &ranges(shares, is_dense)).await?;
    let own = rt.txn.incarnation();
    let mut parts: BTreeMap<Key, Vec<Share>> = BTreeMap::new();
    for versions in &found {
        for of_row in by_row(versions) {
            rt.step().await?;
            let share = Share::seen(of_row.iter().map(|(key, value)| (key, &value[..])));
            parts.entry(share_of(&of_row[0])).or_default().extend(share);
        }
    }
    let number = |(key, parts): (Key, Vec<Share>)| {
        // A row that the transaction has inserted, or whose number it has set, has its shares
        // alone: others are of a row that was there before.
        let is_own = parts.iter().any(|share| share.incarnation == own);
        let counted = parts.iter().filter(|share| !is_own || share.incarnation == own);
        let added: i128 = column.sites.iter().map(|site| rt.txn.added(*site, &key).contribution).sum();
        (!parts.is_empty()).then(|| (key, counted.map(|share| share.contribution).sum::<i128>() + added))
    };
    Ok(parts.into_iter().filter_map(number).collect())
}
