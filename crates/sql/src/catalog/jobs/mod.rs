//! Running DDL: the change as one step, then its jobs in bounded transactions.
//!
//! The steps of an index follow F1's online schema change: `DeleteOnly`, then `WriteOnly` and a backfill, then `Public`. Every
//! step is committed only when no group can still use the version before it (`Environment::change_catalog`), so when the
//! backfill begins, every writer maintains the index, and what the backfill reads is certified like any other read.
//!
//! A job that fails takes back what its statement added: the index, the constraint, the column. What a statement leaves behind
//! (the keys of a dropped index) is deleted in the background.

mod backfill;
mod discard;
mod move_table;
mod regions;
mod validate;

use super::ddl::{Ddl, DdlContext, Job, Notice};
use super::lookup::Names;
use super::{Catalog, CatalogChange, ColumnState, Descriptor, IndexState, Table};
use crate::env::{Environment, TxnOptions};
use crate::parse::Statement;
use crate::types::EvalContext;
use meridian_base::{DescriptorId, Error, ErrorKind, Result, SessionId, limits};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// On whose behalf a job runs.
#[derive(Clone, Debug)]
pub struct JobContext {
    pub session: SessionId,
    pub names: Names,
    /// As the session's statements have it.
    pub eval: EvalContext,
}

/// What a finished DDL statement answers.
#[derive(Clone, Debug)]
pub struct Done {
    pub tag: &'static str,
    pub notices: Vec<Notice>,
    /// A catalog that contains the statement's effects.
    pub catalog: Arc<Catalog>,
}

/// Runs a DDL statement outside a transaction block: derives it, commits the change (deriving again if another change came
/// first) and does the jobs.
pub async fn execute<E: Environment>(env: &E, statement: &Statement, context: &JobContext) -> Result<Done> {
    let none = BTreeSet::new();
    for _ in 0..limits::RETRIES_MAX {
        let catalog = env.catalog();
        let (nodes, locality) = (env.nodes(), env.locality());
        let ddl_context = DdlContext {
            names: &context.names,
            gateway_region: &locality.region,
            nodes: &nodes,
            private: &none,
            eval: &context.eval.with_catalog(&catalog),
        };
        let Ddl { tag, notices, change, jobs, .. } = super::ddl::derive(statement, &catalog, &ddl_context)?;
        match commit(env, catalog, change, jobs, context).await {
            Err(e) if e.is_retry() => continue,
            done => {
                return done.map(|(catalog, more)| Done { tag, notices: notices.into_iter().chain(more).collect(), catalog });
            }
        }
    }
    Err(Error::retry("other schema changes came first, again and again"))
}

/// Commits a change derived from `base` and does its jobs, which may have something to say: the end of [`execute`], and of a
/// transaction block with DDL. Kind
/// `Retry`: nothing happened, because the catalog is no longer at `base`.
pub async fn commit<E: Environment>(
    env: &E,
    base: Arc<Catalog>,
    change: CatalogChange,
    jobs: Vec<Job>,
    context: &JobContext,
) -> Result<(Arc<Catalog>, Vec<Notice>)> {
    let catalog = if change.is_empty() { base } else { env.change_catalog(base.version, change).await? };
    if jobs.is_empty() {
        return Ok((catalog, Vec::new()));
    }
    let context = JobContext { eval: context.eval.with_catalog(&catalog), ..context.clone() };
    match run_all(env, &jobs, &context).await {
        Ok(notices) => Ok((env.catalog(), notices)),
        // The change is committed: «retry» would be a lie to the caller, who would derive it again.
        Err(e) if e.is_retry() => Err(Error::new(ErrorKind::Statement, e.sqlstate(), e.message())
            .hint("The schema change was taken back because its rows kept changing. Try again when there is less traffic.")),
        Err(e) => Err(e),
    }
}

async fn run_all<E: Environment>(env: &E, jobs: &[Job], context: &JobContext) -> Result<Vec<Notice>> {
    let mut notices = Vec::new();
    for job in jobs {
        if let Err(e) = run_one(env, job, context, &mut notices).await {
            // What cannot be taken back now stays unfinished, which is safe: nobody reads such an index or relies on such a
            // constraint.
            for job in jobs {
                if let Err(undo) = undo(env, job).await {
                    tracing::warn!(error = %undo, "a failed schema change could not be taken back completely");
                }
            }
            return Err(e);
        }
    }
    Ok(notices)
}

async fn run_one<E: Environment>(env: &E, job: &Job, context: &JobContext, notices: &mut Vec<Notice>) -> Result<()> {
    match job {
        Job::DropRegion { database, region } => {
            regions::drop_region(env, *database, region, context).await?;
            notices.extend(regions::await_placement(env, *database).await?);
            Ok(())
        }
        Job::AwaitPlacement { database } => {
            notices.extend(regions::await_placement(env, *database).await?);
            Ok(())
        }
        Job::BuildIndex { table, index } => {
            backfill::build(env, *table, *index, context).await?;
            step(env, *table, |t| set_state(t, *index, IndexState::Public)).await
        }
        Job::BuildPrimary { table, index } => {
            backfill::build(env, *table, *index, context).await?;
            let old = env.catalog().table_by_id(*table);
            step(env, *table, |t| {
                set_state(t, *index, IndexState::Public);
                if let Some(at) = t.indexes.iter().position(|i| i.id == *index) {
                    super::ddl::replace_primary(t, at);
                }
            })
            .await?;
            for group in old.iter().flat_map(|t| t.groups()) {
                let replaced = old.iter().map(|t| t.primary().id).collect();
                discard::in_background(env, group, replaced, context.session);
            }
            Ok(())
        }
        Job::ValidateCheck { table, check, .. } => {
            validate::check(env, *table, *check, context).await?;
            step(env, *table, |t| t.checks.iter_mut().filter(|c| c.id == *check).for_each(|c| c.validated = true)).await
        }
        Job::ValidateNotNull { table, check, ordinal, .. } => {
            validate::not_null(env, *table, *ordinal, context).await?;
            step(env, *table, |t| {
                t.checks.retain(|c| c.id != *check);
                t.columns[*ordinal as usize].not_null = true;
            })
            .await
        }
        Job::ValidateForeignKey { table, constraint, .. } => {
            validate::foreign_key(env, *table, *constraint, context).await?;
            step(env, *table, |t| t.foreign_keys.iter_mut().filter(|f| f.id == *constraint).for_each(|f| f.validated = true))
                .await
        }
        Job::Move { table, .. } => move_table::run(env, *table, context).await,
        Job::Discard { group, indexes } => {
            discard::in_background(env, *group, indexes.clone(), context.session);
            Ok(())
        }
    }
}

/// Takes back what the statement of a failed job added.
async fn undo<E: Environment>(env: &E, job: &Job) -> Result<()> {
    match job {
        Job::BuildIndex { table, index } | Job::BuildPrimary { table, index } => {
            let Some(t) = env.catalog().table_by_id(*table) else { return Ok(()) };
            if t.primary().id == *index {
                return Ok(());
            }
            step(env, *table, |t| t.indexes.retain(|i| i.id != *index)).await?;
            for group in t.groups() {
                discard::in_background(env, group, vec![*index], SessionId::default());
            }
            Ok(())
        }
        Job::ValidateCheck { table, check, keep: false } => step(env, *table, |t| t.checks.retain(|c| c.id != *check)).await,
        Job::ValidateNotNull { table, check, ordinal, added_column } => {
            step(env, *table, |t| {
                t.checks.retain(|c| c.id != *check);
                if *added_column {
                    t.columns[*ordinal as usize].state = ColumnState::Dropped;
                }
            })
            .await
        }
        Job::ValidateForeignKey { table, constraint, keep: false } => {
            let parent = env
                .catalog()
                .table_by_id(*table)
                .and_then(|t| t.foreign_keys.iter().find(|f| f.id == *constraint).map(|f| f.parent));
            step(env, *table, |t| t.foreign_keys.retain(|f| f.id != *constraint)).await?;
            match parent {
                Some(parent) => step(env, parent, |p| p.referenced_by.retain(|r| *r != (*table, *constraint))).await,
                None => Ok(()),
            }
        }
        Job::Move { table, added_column } => move_table::undo(env, *table, *added_column).await,
        Job::DropRegion { database, region } => regions::keep_region(env, *database, region).await,
        Job::ValidateCheck { keep: true, .. }
        | Job::ValidateForeignKey { keep: true, .. }
        | Job::Discard { .. }
        | Job::AwaitPlacement { .. } => Ok(()),
    }
}

fn set_state(table: &mut Table, index: u32, state: IndexState) {
    table.indexes.iter_mut().filter(|i| i.id == index).for_each(|i| i.state = state);
}

/// Changes one table as one step. Nothing to do if it is gone, or if the change changes nothing.
async fn step<E: Environment>(env: &E, table: DescriptorId, change: impl Fn(&mut Table)) -> Result<()> {
    step_of(env, |catalog| {
        let before = catalog.table_by_id(table)?;
        let mut after = (*before).clone();
        change(&mut after);
        let put = vec![Descriptor::Table(after.clone())];
        (after != *before).then_some(CatalogChange { put, next_id: catalog.next_id, ..CatalogChange::default() })
    })
    .await
}

/// Makes one step, derived again whenever another one came first. Nothing to do if it is `None`.
async fn step_of<E: Environment>(env: &E, derive: impl Fn(&Catalog) -> Option<CatalogChange>) -> Result<()> {
    for attempt in 0..limits::RETRIES_MAX {
        let catalog = env.catalog();
        let Some(step) = derive(&catalog) else { return Ok(()) };
        match env.change_catalog(catalog.version, step).await {
            Err(e) if e.is_retry() => pause(env, attempt).await,
            done => return done.map(|_| ()),
        }
    }
    Err(Error::retry("other schema changes came first, again and again"))
}

/// A wait before trying again: random, and longer each time.
async fn pause<E: Environment>(env: &E, attempt: u32) {
    let micros_max = 200u64 << attempt.min(9);
    tokio::time::sleep(Duration::from_micros(1 + env.random() % micros_max)).await;
}

/// How a job's transactions start: with the newest catalog.
fn options(catalog: &Catalog, session: SessionId, read_only: bool, attempt: u32) -> TxnOptions {
    TxnOptions {
        session,
        read_only,
        schema: catalog.version,
        schema_committed_at: catalog.committed_at,
        lock_timeout: None,
        deadlock_timeout: None,
        attempt,
        as_of: None,
        is_held_back: true,
        is_block: false,
    }
}
