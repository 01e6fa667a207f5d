//! The part of a change of regions that takes time: looking for rows in a region that is being
//! dropped, taking its shares of escrow columns away, and waiting until replicas are where they
//! belong.

use super::backfill::{bind, primary_ranges};
use super::{JobContext, escrow, options, pause, step_of, validate};
use crate::catalog::job::Job;
use crate::catalog::relation::TableRef;
use crate::catalog::{Catalog, CatalogChange, Database};
use crate::ddl::{Notice, with_groups};
use crate::env::{Environment, Locking, Scan, Transaction};
use crate::show::progress::placed;
use meridian_base::{ColumnMask, DescriptorId, Error, GroupId, Result, limits};
use std::time::Duration;

/// How long a statement waits for replicas to move. They go on moving when it has given up.
const PLACEMENT_PATIENCE: Duration = Duration::from_secs(60);
const PLACEMENT_POLL: Duration = Duration::from_millis(250);
/// How often a job looks, which may do so for days: every node is asked.
const WATCH_POLL: Duration = Duration::from_secs(2);

/// Takes a region that is marked as being dropped from its database. 2BP01 if a row is homed there.
pub(super) async fn drop_region<E: Environment>(
    env: &E,
    database: DescriptorId,
    region: &str,
    context: &JobContext,
) -> Result<()> {
    let catalog = env.catalog();
    for group in catalog.groups_of(database).filter(|g| g.home == region && !g.kind.follows_primary()) {
        for table in catalog.tables_in(group.id) {
            if has_row(env, &table, group.id, context).await? {
                let message = format!("could not remove enum value \"{region}\" as it is being used by \"{}\"", table.name);
                return Err(Error::sql("2BP01", message)
                    .table(table.name.clone())
                    .detail(format!("Rows of the table are homed in \"{region}\"."))
                    .hint("Move them to another region, or delete them, before dropping the region."));
            }
        }
    }
    for table in catalog.tables_of(database) {
        validate::region_is_no_value(env, &table, region, context).await?;
    }
    for table in catalog.tables_of(database) {
        escrow::leave(env, &table, context).await?;
    }
    change_database(env, database, context, true, |d| {
        d.regions.retain(|r| r != region);
        d.dropping.retain(|r| r != region);
    })
    .await
}

/// The region stays after all.
pub(super) async fn keep_region<E: Environment>(
    env: &E,
    database: DescriptorId,
    region: &str,
    context: &JobContext,
) -> Result<()> {
    change_database(env, database, context, false, |d| d.dropping.retain(|r| r != region)).await
}

async fn change_database<E: Environment>(
    env: &E,
    id: DescriptorId,
    context: &JobContext,
    ends: bool,
    change: impl Fn(&mut Database) + Send + Sync,
) -> Result<()> {
    step_of(env, context, usize::from(ends), &|catalog: &Catalog| -> Option<CatalogChange> {
        let before = catalog.database_by_id(id)?;
        let mut after = before.clone();
        change(&mut after);
        if after == *before {
            return None;
        }
        let mut step = with_groups(catalog, after, catalog.next_id);
        let groups = step.leaving();
        if !groups.is_empty() {
            step.put.extend(context.with_next_task(catalog, Job::RemoveGroups { groups }));
        }
        Some(step)
    })
    .await
}

/// Whether a table has a row in a group.
async fn has_row<E: Environment>(env: &E, table: &TableRef, group: GroupId, context: &JobContext) -> Result<bool> {
    let mut attempt = 0;
    let of_group = primary_ranges(table).into_iter().find(|(g, _)| *g == group);
    let Some((_, mut range)) = of_group else { return Ok(false) };
    loop {
        if bind(env, table.id, context)?.is_none() {
            return Ok(false);
        }
        let mut txn = env.begin(options(&env.catalog(), context.session, true, attempt));
        txn.uses(&[table.id]);
        let columns = ColumnMask::EXISTENCE;
        let scan = Scan { range: range.clone(), columns, reverse: false, limit: Some(1), locking: Locking::None };
        let found = match txn.scan(group, scan).await {
            Ok(found) => txn.commit().await.map(|_| found),
            Err(e) => Err(e),
        };
        match found {
            Ok(found) if !found.rows.is_empty() => return Ok(true),
            Ok(found) => match found.rest {
                Some(rest) => range = rest,
                None => return Ok(false),
            },
            Err(e) if e.is_retry() && attempt < limits::RETRIES_MAX => {
                attempt += 1;
                pause(env, attempt).await;
            }
            Err(e) => return Err(e),
        }
    }
}

/// Waits until the replicas of a database's groups are where they belong, however long that takes.
pub(super) async fn until_placed<E: Environment>(env: &E, database: DescriptorId) {
    while what_moves(env, database).await.is_some() {
        tokio::time::sleep(WATCH_POLL).await;
    }
}

/// The same for a bounded time. What is still missing then.
pub(super) async fn await_placement<E: Environment>(env: &E, database: DescriptorId) -> Option<Notice> {
    let patience = tokio::time::Instant::now() + PLACEMENT_PATIENCE;
    loop {
        let missing = what_moves(env, database).await?;
        if tokio::time::Instant::now() > patience {
            let message = format!("the change is made, and replicas are still being moved ({missing})");
            return Some(Notice {
                severity: "NOTICE",
                sqlstate: "00000",
                message: format!("{message}; SHOW JOBS shows how far they are"),
            });
        }
        tokio::time::sleep(PLACEMENT_POLL).await;
    }
}

async fn what_moves<E: Environment>(env: &E, database: DescriptorId) -> Option<String> {
    let waits = match env.groups().await {
        Ok(rows) => placed(&env.catalog(), database, &rows).waits,
        Err(e) => vec![e.message().to_string()],
    };
    (!waits.is_empty()).then(|| waits.join("; "))
}
