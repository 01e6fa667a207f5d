//! Work on all rows of a table, a page of them in each transaction.

use super::backfill::{after, bind, primary_ranges};
use super::progress::{Page, Part, Size, work_through};
use super::system::JobSystem;
use super::{FREE_ATTEMPTS, JobContext, locking, options};
use crate::catalog::relation::TableRef;
use crate::catalog::{ColumnState, Table};
use crate::env::{Environment, Locking, Scan, Transaction};
use crate::exec::{Interrupt, RowWork, work_on_rows};
use crate::shared::SessionSequences;
use crate::types::{Datum, RowView};
use meridian_base::{ColumnMask, Result};

/// Does this to every row, as far as the table still needs it.
pub(super) async fn work_on<E: Environment>(env: &E, source: &TableRef, work: RowWork<'_>, context: &JobContext) -> Result<()> {
    let sequences = SessionSequences::new(env.clone(), context.session, context.shared.clone());
    let page = |part, size| page(env, source, work, part, size, &sequences, context);
    work_through(env, primary_ranges(source), context, page).await
}

/// Whether a table has what the work is about.
fn is_needed(work: RowWork<'_>, table: &Table) -> bool {
    match work {
        RowWork::Fill { ordinals } => ordinals.iter().any(|o| table.columns[*o as usize].state == ColumnState::Filling),
        RowWork::Split { index } => table.shadows.iter().any(|shadow| shadow.column.index == index),
        RowWork::Settle { index } | RowWork::Store { index } => table.escrow.iter().any(|column| column.index == index),
    }
}

/// Works on one page of rows, in one transaction.
async fn page<'e, E: Environment>(
    env: &'e E,
    source: &Table,
    work: RowWork<'_>,
    (group, range): Part,
    Size { batch, attempt }: Size,
    sequences: &SessionSequences<E>,
    context: &JobContext,
) -> Result<Page<'e>> {
    let catalog = context.catalog(env)?;
    // A region that was dropped meanwhile had no rows, and those of a table that was emptied since
    // are written as the work would leave them.
    let has_rows = |t: &Table| t.groups().any(|g| g == group) && t.primary().id == source.primary().id;
    let Some(plan) = bind(env, source.id, context)?.filter(|p| has_rows(p.table()) && is_needed(work, p.table())) else {
        return Ok(Page::empty());
    };
    let mut txn = env.begin(options(&catalog, context.session, false, attempt));
    txn.uses(&[source.id]);
    // Rows whose tokens are moved stay as they are: their shares are locked.
    let locking = if let RowWork::Settle { .. } = work { Locking::None } else { locking(attempt) };
    let scan = Scan { range, columns: ColumnMask::ALL, reverse: false, limit: Some(batch), locking };
    let found = txn.scan(group, scan.clone()).await?;
    let mut rows: Vec<Vec<Datum>> = Vec::with_capacity(found.rows.len());
    for (_, bytes) in &found.rows {
        if let RowWork::Fill { ordinals } = work {
            let view = RowView::new(bytes.clone())?;
            if !ordinals.iter().any(|o| view.is_missing(*o as usize)) {
                continue;
            }
        }
        rows.push(plan.decode_row(bytes.clone())?);
    }
    let (interrupt, system) = (Interrupt::default(), JobSystem { env, catalog: &catalog, names: &context.names });
    let exec = system.exec(context, &interrupt, sequences);
    if let Err(e) = work_on_rows(&plan, work, &rows, attempt >= FREE_ATTEMPTS, &mut txn, &exec).await {
        // What it rests on has to be true.
        if !e.is_retry() {
            txn.confirm().await?;
        }
        return Err(e);
    }
    let rest = found.rest.or_else(|| after(&scan.range, &found.rows, batch));
    Ok(Page::of(txn, found.rows.len(), rest))
}
