//! `ANALYZE`: reads a table as of one moment, and keeps what was counted in the catalog.
//!
//! The moment is the statement's own. It is read as `AS OF SYSTEM TIME` is: at the nearest replica
//! that has got there, without an entry anywhere, so that it locks nothing, certifies nothing and
//! delays nobody. If rows are far away, a near replica is given the time to get there. What the
//! present transaction has written and not committed does not count.
//!
//! The result is a descriptor that no transaction can tell the absence of
//! ([`CatalogChange::is_seen`]): it takes part in no schema lease, and every node has it as soon as
//! its copy of the catalog does.

mod collect;

use crate::catalog::relation::TableRef;
use crate::catalog::{Catalog, CatalogChange, Descriptor};
use crate::env::{AsOf, Environment, Locking, RowVisitor, Scan, Transaction, TxnOptions, Visited};
use crate::jobs::primary_ranges;
use crate::plan::TablePlan;
use crate::statistics::{StoredStatistics, TableStatistics};
use crate::types::Datum;
use collect::Collector;
use meridian_base::{ColumnMask, DescriptorId, Error, Result, SessionId, Timestamp, limits};
use meridian_placement::Survival;
use std::ops::ControlFlow;
use std::time::Duration;

/// How much earlier than the newest one a moment is that every replica has reached: see
/// `session::as_of`.
const FOLLOWER_LAG: Duration = Duration::from_millis(500);
/// Rows between two chances for other sessions.
const PAGE_ROWS: usize = 250;
/// Statistics of more columns are not kept.
const COLUMNS_MAX: usize = 1_000;

/// How much of a core a reading may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Somebody waits for it.
    Full,
    /// Nobody does: a twentieth.
    Background,
}

/// A page that is being counted. One that is read again is counted again: no number is exact.
struct Page<'a> {
    collector: &'a mut Collector,
    /// By ordinal, what rows have in columns that were added after them.
    missing: &'a [Datum],
    failure: Option<Error>,
}

impl RowVisitor for Page<'_> {
    fn row(&mut self, key: &dyn AsRef<[u8]>, value: &[u8]) -> ControlFlow<()> {
        match self.collector.add(key.as_ref(), value, self.missing) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                self.failure = Some(e);
                ControlFlow::Break(())
            }
        }
    }
    fn is_brief(&self) -> bool {
        true
    }
    fn restart(&mut self) {
        self.failure = None;
    }
}

/// Counts the rows of a table. `ordinals`: of these columns.
pub(crate) async fn read<E: Environment>(
    env: &E,
    plan: &TablePlan,
    ordinals: &[u32],
    session: SessionId,
    pace: Pace,
) -> Result<TableStatistics> {
    let catalog = env.catalog();
    let table = plan.table();
    let at = Timestamp::from_micros(env.now_micros());
    let groups: Vec<_> = table.groups().collect();
    if env.is_far(&groups) {
        tokio::time::sleep(FOLLOWER_LAG).await;
    }
    let mut txn = env.begin(TxnOptions {
        session,
        read_only: true,
        schema: catalog.seen,
        schema_committed_at: catalog.seen_at,
        lock_timeout: None,
        deadlock_timeout: None,
        attempt: 0,
        as_of: Some(AsOf::Exact(at)),
        is_held_back: true,
        is_block: false,
    });
    txn.uses(&[table.id]);
    let mut collector = Collector::new(ordinals.get(..COLUMNS_MAX).unwrap_or(ordinals));
    for (group, range) in primary_ranges(table) {
        let mut rest = Some(range);
        while let Some(range) = rest {
            let begun = env.now_micros();
            let scan = Scan { range, columns: ColumnMask::ALL, reverse: false, limit: Some(PAGE_ROWS), locking: Locking::None };
            let mut page = Page { collector: &mut collector, missing: &plan.missing, failure: None };
            rest = match txn.visit(group, scan, &mut page).await? {
                Visited::Seen(rest) => rest,
                Visited::Fetched(found) => {
                    found.rows.iter().try_for_each(|(key, row)| page.collector.add(key.as_bytes(), row, page.missing))?;
                    found.rest
                }
            };
            page.failure.map_or(Ok(()), Err)?;
            tokio::task::yield_now().await;
            if pace == Pace::Background {
                let took = env.now_micros().saturating_sub(begun);
                tokio::time::sleep(Duration::from_micros(took.saturating_mul(19).max(1_000))).await;
            }
        }
    }
    txn.commit().await?;
    let mut found = collector.finish(plan, at).await?;
    if is_kept_at_home(&catalog, table) {
        for column in &mut found.columns {
            column.common.clear();
            column.bounds.clear();
        }
    }
    Ok(found)
}

/// Whether rows of a table are at their home only (`PLACEMENT RESTRICTED`). The catalog is
/// everywhere, so statistics have no values of them.
fn is_kept_at_home(catalog: &Catalog, table: &TableRef) -> bool {
    table.groups().any(|group| match catalog.descriptors.get(&DescriptorId(group.0)).map(|d| &**d) {
        Some(Descriptor::Group(group)) => group.placed_as() == Survival::Restricted,
        _ => false,
    })
}

/// Keeps statistics of tables, in one step. Those of columns that were not read stay as they were.
/// Nothing is kept of a table that is gone.
pub(crate) async fn keep<E: Environment>(env: &E, found: &[(DescriptorId, TableStatistics)]) -> Result<()> {
    for attempt in 0..limits::RETRIES_MAX {
        let catalog = env.catalog();
        let Some(change) = change(&catalog, found) else { return Ok(()) };
        match env.change_catalog(catalog.version, change).await {
            Err(e) if e.is_retry() => {
                let micros_max = 200u64 << attempt.min(9);
                tokio::time::sleep(Duration::from_micros(1 + env.random() % micros_max)).await;
            }
            done => return done.map(|_| ()),
        }
    }
    Err(Error::retry("schema changes came first, again and again"))
}

fn change(catalog: &Catalog, found: &[(DescriptorId, TableStatistics)]) -> Option<CatalogChange> {
    let mut next_id = catalog.next_id;
    let mut put = Vec::with_capacity(found.len());
    for (table, new) in found {
        let Some(described) = catalog.table_by_id(*table) else { continue };
        let mut new = new.clone();
        if let Some(old) = catalog.statistics_of(*table) {
            let is_live = |o: u32| described.live_columns().any(|(live, _)| live == o);
            let is_new = |o: u32| new.columns.iter().any(|c| c.ordinal == o);
            let kept: Vec<_> = old.columns.iter().filter(|c| is_live(c.ordinal) && !is_new(c.ordinal)).cloned().collect();
            new.columns.extend(kept);
            new.columns.sort_by_key(|c| c.ordinal);
        }
        let id = catalog.statistics_id(*table).unwrap_or_else(|| {
            next_id += 1;
            DescriptorId(next_id - 1)
        });
        put.push(Descriptor::Statistics(StoredStatistics::new(id, *table, &new)));
    }
    (!put.is_empty()).then_some(CatalogChange { put, next_id, ..CatalogChange::default() })
}

/// The columns of a table that are counted.
pub(crate) fn ordinals(table: &TableRef) -> Vec<u32> {
    // Rows do not store the numbers of escrow columns.
    let is_stored = |o: &u32| table.escrow_column(*o).is_none();
    table.live_columns().filter(|(_, c)| !c.is_row_id()).map(|(o, _)| o).filter(is_stored).collect()
}
