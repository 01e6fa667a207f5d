//! Work on the shares of all rows: taking them away from sites that close, moving their tokens when
//! bounds change (`docs/design/escrow.md`, «Sites», E13), and ending rounds of `majority`
//! (`docs/design/majority.md`, «When the sites of a column change»).

use super::progress::{Page, Part, Size, work_through};
use super::rows::work_on;
use super::{JobContext, options};
use crate::catalog::escrow::EscrowProtocol;
use crate::catalog::escrow_tables::uses_column;
use crate::catalog::relation::TableRef;
use crate::catalog::{Check, EscrowColumn, Table};
use crate::ddl::constraint_exists;
use crate::env::{Environment, Locking, Scan, Transaction};
use crate::exec::RowWork;
use bytes::Bytes;
use meridian_base::escrow::{self, Late, Share, share_of};
use meridian_base::{ColumnMask, DescriptorId, Key, Result, Write};

/// Moves what the closing sites of a table have, their tokens included, to another site. Nothing
/// new comes there meanwhile: whoever does not know that they close has committed.
pub(super) async fn leave<E: Environment>(env: &E, table: &TableRef, context: &JobContext) -> Result<()> {
    for column in &table.escrow {
        let parts: Vec<Part> = column.closing.iter().map(|site| (*site, column.range())).collect();
        work_through(env, parts, context, |part, size| page(env, table.id, column.index, part, size, context)).await?;
    }
    Ok(())
}

/// Takes the tokens of all rows of a column to its bounds. 23514 if a number is outside of them.
pub(super) async fn settle<E: Environment>(env: &E, table: DescriptorId, index: u32, context: &JobContext) -> Result<()> {
    let Some(source) = env.catalog().table_by_id(table).filter(|t| column(t, index).is_some()) else { return Ok(()) };
    work_on(env, &source, RowWork::Settle { index }, context).await
}

/// Ends what rounds of `majority` have left of a column: no node begins one any more, since the
/// protocol of before is used nowhere. Rows that no site has a round of are left alone.
pub(super) async fn end_rounds<E: Environment>(env: &E, table: DescriptorId, index: u32, context: &JobContext) -> Result<()> {
    let of = env.catalog().table_by_id(table);
    let Some(column) = of.as_ref().and_then(|t| column(t, index)) else { return Ok(()) };
    let parts: Vec<Part> = column.sites.iter().map(|site| (*site, column.range())).collect();
    work_through(env, parts, context, |part, size| renewed(env, table, index, part, size, context)).await
}

/// Renews the rows that a page of a site's keys has rounds of, in one transaction. What it rests on
/// is not certified: rows that are deleted meanwhile are not there to be renewed, and rounds do not
/// begin.
async fn renewed<'e, E: Environment>(
    env: &'e E,
    table: DescriptorId,
    index: u32,
    (site, range): Part,
    Size { batch, attempt }: Size,
    context: &JobContext,
) -> Result<Page<'e>> {
    let catalog = context.catalog(env)?;
    let of = catalog.table_by_id(table);
    let Some(column) = of.as_ref().and_then(|t| column(t, index)) else { return Ok(Page::empty()) };
    let begin = || {
        let mut txn = env.begin(options(&catalog, context.session, false, attempt));
        txn.uses(&[table]);
        txn
    };
    let mut look = begin();
    let scan = Scan { range, columns: ColumnMask::ALL, reverse: false, limit: Some(batch), locking: Locking::None };
    let found = look.scan(site, scan).await?;
    let rounds = found.rows.iter().filter(|(key, value)| escrow::is_round(key, value));
    let shares: Vec<Key> = rounds.map(|(key, _)| escrow::share_of_round(key)).collect();
    let reads = column.sites.iter().map(|site| (*site, shares.clone())).collect();
    let has_share = match shares.is_empty() {
        true => Vec::new(),
        false => look.get_each(reads, ColumnMask::ALL, Locking::None).await?,
    };
    look.rollback();
    let mut txn = begin();
    let mut rows = 0;
    for (at, share) in shares.into_iter().enumerate() {
        let Some(known) = has_share.iter().position(|of_site| of_site[at].is_some()) else { continue };
        for (of, site) in column.sites.iter().enumerate() {
            txn.hold(*site, escrow::range(&share))?;
            txn.renew(*site, share.clone(), of == known)?;
        }
        rows += 1;
    }
    Ok(Page::of(txn, rows, found.rest))
}

/// The column is as one that never had `majority`, unless it has it again.
pub(super) fn has_no_rounds(table: &mut Table, index: u32) {
    let of = table.escrow.iter_mut().filter(|c| c.index == index && c.protocol == Some(EscrowProtocol::Any));
    of.for_each(|c| c.protocol = None);
}

fn column(table: &Table, index: u32) -> Option<&EscrowColumn> {
    table.escrow.iter().find(|c| c.index == index)
}

/// The new bounds hold alone.
pub(super) fn hold_alone(table: &mut Table, index: u32) {
    table.escrow.iter_mut().filter(|c| c.index == index).for_each(|c| c.before = None);
}

/// The bounds of before hold again, and their constraints, if they have not been given up.
pub(super) fn take_back(table: &mut Table, index: u32) {
    let Some(at) = table.escrow.iter().position(|c| c.index == index) else { return };
    let Some(before) = table.escrow[at].before.take() else { return };
    let ordinal = table.escrow[at].ordinal;
    (table.escrow[at].lo, table.escrow[at].hi, table.escrow[at].limits) = (before.lo, before.hi, before.limits);
    // A constraint whose text cannot be read any more is not one of these.
    let is_its = |c: &Check| uses_column(table, &c.expression, ordinal).unwrap_or(false);
    let new: Vec<DescriptorId> = table.checks.iter().filter(|c| is_its(c)).map(|c| c.id).collect();
    table.checks.retain(|c| !new.contains(&c.id));
    for mut check in before.checks {
        // Another one may have got its name meanwhile.
        let name = check.name.clone();
        let mut number = 0;
        while constraint_exists(table, &check.name) {
            number += 1;
            check.name = format!("{name}{number}");
        }
        table.checks.push(check);
    }
}

/// Moves one page of shares, in one transaction.
async fn page<'e, E: Environment>(
    env: &'e E,
    table: DescriptorId,
    index: u32,
    (site, mut range): Part,
    Size { batch, attempt }: Size,
    context: &JobContext,
) -> Result<Page<'e>> {
    let catalog = context.catalog(env)?;
    let Some(of) = catalog.table_by_id(table) else { return Ok(Page::empty()) };
    let Some(to) = column(&of, index).and_then(|c| c.open_sites().next()) else {
        return Ok(Page::empty());
    };
    let mut txn = env.begin(options(&catalog, context.session, false, attempt));
    txn.uses(&[table]);
    let mut found: Vec<(Key, Bytes)> = Vec::new();
    let rest = loop {
        let scan =
            Scan { range: range.clone(), columns: ColumnMask::ALL, reverse: false, limit: Some(batch), locking: Locking::None };
        let page = txn.scan(site, scan).await?;
        found.extend(page.rows);
        let Some(rest) = page.rest else { break None };
        // The last share may have more late keys.
        let last = found.last().map(|(key, value)| share_of(key, value));
        match last.filter(|last| found.first().is_some_and(|(key, value)| share_of(key, value) != *last)) {
            Some(last) => {
                found.retain(|(key, value)| share_of(key, value) != last);
                break Some(meridian_base::KeyRange::new(last, rest.end));
            }
            None => range = rest,
        }
    };
    let mut shares = 0;
    for versions in found.chunk_by(|a, b| share_of(&a.0, &a.1) == share_of(&b.0, &b.1)) {
        let key = share_of(&versions[0].0, &versions[0].1);
        let Some(share) = Share::seen(versions.iter().map(|(key, value)| (key, &value[..]))) else { continue };
        let Share { incarnation, contribution, down, up, .. } = share;
        txn.write(site, Write { key: key.clone(), value: None, columns: ColumnMask::EXISTENCE })?;
        txn.shift(to, key, Late { incarnation, contribution, down, up })?;
        shares += 1;
    }
    Ok(Page::of(txn, shares, rest))
}
