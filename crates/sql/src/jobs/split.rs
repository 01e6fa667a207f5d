//! A column becomes an escrow column, or ceases to be one, while its table is used (design: escrow,
//! «On and off»).
//!
//! The column goes from state to state, each a step that is committed when nobody uses the version
//! before the last one any more. Both ways begin in whatever state the column is, so that another
//! node can go on with them, and each is what takes the other one back.

use super::backfill::{after, bind, primary_ranges};
use super::fill::JobSystem;
use super::progress::{Page, Part, Size, work_through};
use super::validate::violated;
use super::{FREE_ATTEMPTS, JobContext, locking, options, step};
use crate::catalog::escrow::Shadow;
use crate::catalog::{Table, job};
use crate::env::{Environment, Scan, Transaction};
use crate::exec::{Interrupt, split_rows, store_numbers};
use crate::shared::SessionSequences;
use crate::types::Datum;
use meridian_base::{ColumnMask, DescriptorId, Error, Result};

/// What is done with a page of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Rows without shares get them.
    Split,
    /// Rows get their numbers.
    Join,
}

/// Gives the numbers of a column shares. `pages`: for the work on rows.
pub(super) async fn split<E: Environment>(
    env: &E,
    table: DescriptorId,
    index: u32,
    context: &JobContext,
    pages: &JobContext,
) -> Result<()> {
    step(env, context, table, |t| shadows(t, index).for_each(|shadow| shadow.is_written = true)).await?;
    if env.catalog().table_by_id(table).is_some_and(|t| t.shadows.iter().any(|s| s.column.index == index)) {
        work(env, table, index, Way::Split, pages).await?;
        step(env, context, table, |t| {
            let Some(at) = t.shadows.iter().position(|s| s.column.index == index) else { return };
            let mut column = t.shadows.remove(at).column;
            column.in_rows = true;
            t.escrow.push(column);
        })
        .await?;
    }
    step(env, context, table, |t| {
        t.escrow.iter_mut().filter(|column| column.index == index).for_each(|column| column.in_rows = false);
    })
    .await
}

/// Gives the rows the numbers of a column, which then has no shares.
pub(super) async fn join<E: Environment>(
    env: &E,
    table: DescriptorId,
    index: u32,
    context: &JobContext,
    pages: &JobContext,
) -> Result<()> {
    step(env, context, table, |t| {
        t.escrow.iter_mut().filter(|column| column.index == index).for_each(|column| column.in_rows = true);
    })
    .await?;
    if env.catalog().table_by_id(table).is_some_and(|t| t.escrow.iter().any(|column| column.index == index)) {
        work(env, table, index, Way::Join, pages).await?;
        step(env, context, table, |t| {
            let Some(at) = t.escrow.iter().position(|column| column.index == index) else { return };
            let mut column = t.escrow.remove(at);
            column.in_rows = false;
            t.shadows.push(Shadow { column, is_written: true });
        })
        .await?;
    }
    step(env, context, table, |t| t.shadows.retain(|shadow| shadow.column.index != index)).await
}

fn shadows(table: &mut Table, index: u32) -> impl Iterator<Item = &mut Shadow> {
    table.shadows.iter_mut().filter(move |shadow| shadow.column.index == index)
}

async fn work<E: Environment>(env: &E, table: DescriptorId, index: u32, way: Way, context: &JobContext) -> Result<()> {
    let Some(source) = env.catalog().table_by_id(table) else { return Ok(()) };
    let sequences = SessionSequences::new(env.clone(), context.session, context.shared.clone());
    let page = |part, size| page(env, table, index, way, part, size, &sequences, context);
    work_through(env, primary_ranges(&source), context, page).await
}

/// A row that is there breaks a constraint, and nobody writes a new one.
fn by_some_row(e: Error, table: &str) -> Error {
    match e.get_constraint().filter(|_| e.sqlstate() == "23514") {
        Some(check) => violated(check, table),
        None => e,
    }
}

/// Works on one page of rows, in one transaction.
async fn page<'e, E: Environment>(
    env: &'e E,
    table: DescriptorId,
    index: u32,
    way: Way,
    (group, range): Part,
    Size { batch, attempt }: Size,
    sequences: &SessionSequences<E>,
    context: &JobContext,
) -> Result<Page<'e>> {
    let catalog = env.catalog();
    if let Some((id, state)) = context.job {
        job::mine(&catalog, id, env.locality().node, state)?;
    }
    let is_there = |t: &Table| t.with_shares().any(|column| column.index == index);
    let Some(plan) = bind(env, table, context)?.filter(|plan| is_there(plan.table())) else {
        return Ok(Page::empty());
    };
    let mut txn = env.begin(options(&catalog, context.session, false, attempt));
    txn.uses(&[table]);
    let locking = locking(attempt);
    let scan = Scan { range, columns: ColumnMask::ALL, reverse: false, limit: Some(batch), locking };
    let found = txn.scan(group, scan.clone()).await?;
    let rows: Vec<Vec<Datum>> = found.rows.iter().map(|(_, bytes)| plan.decode_row(bytes.clone())).collect::<Result<_>>()?;
    let (interrupt, system) = (Interrupt::default(), JobSystem { env, catalog: &catalog, names: &context.names });
    let exec = system.exec(context, &interrupt, sequences);
    let done = match way {
        Way::Split => split_rows(&plan, index, &rows, &mut txn, &exec).await.map_err(|e| by_some_row(e, &plan.table().name)),
        Way::Join => store_numbers(&plan, index, &rows, attempt >= FREE_ATTEMPTS, &mut txn, &exec).await,
    };
    if let Err(e) = done {
        // What it rests on has to be true.
        if !e.is_retry() {
            txn.confirm().await?;
        }
        return Err(e);
    }
    let rest = found.rest.or_else(|| after(&scan.range, &found.rows, batch));
    Ok(Page::of(txn, found.rows.len(), rest))
}
