//! Taking shares of escrow columns away from sites that close (design: escrow, «Sites»).

use super::progress::{Page, Part, Size, work_through};
use super::{JobContext, options};
use crate::catalog::job;
use crate::catalog::lookup::TableRef;
use crate::env::{Environment, Locking, Scan, Transaction};
use bytes::Bytes;
use meridian_base::escrow::{Late, Share};
use meridian_base::{ColumnMask, DescriptorId, Key, Result, Write};

/// Moves what the closing sites of a table have, their tokens included, to another site. Nothing new
/// comes there meanwhile: whoever does not know that they close has committed.
pub(super) async fn leave<E: Environment>(env: &E, table: &TableRef, context: &JobContext) -> Result<()> {
    for column in &table.escrow {
        let parts: Vec<Part> = column.closing.iter().map(|site| (*site, column.range())).collect();
        work_through(env, parts, context, |part, size| page(env, table.id, column.index, part, size, context)).await?;
    }
    Ok(())
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
    let catalog = env.catalog();
    if let Some((id, state)) = context.job {
        job::mine(&catalog, id, env.locality().node, state)?;
    }
    let Some(of) = catalog.table_by_id(table) else { return Ok(Page::empty()) };
    let Some(to) = of.escrow.iter().find(|c| c.index == index).and_then(|c| c.open_sites().next()) else {
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

/// The key of the share that a key belongs to.
fn share_of(key: &Key, value: &[u8]) -> Key {
    Late::of(key, value).map_or_else(|| key.clone(), |(share, ..)| share)
}
