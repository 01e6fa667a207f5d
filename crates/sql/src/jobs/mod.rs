//! Running DDL: the change as one step, then its jobs in bounded transactions.
//!
//! The steps of an index follow F1's online schema change: `DeleteOnly`, then `WriteOnly` and a
//! backfill, then `Public`. Every step is committed only when no group can still use the version
//! before it (`Environment::change_catalog`), so when the backfill begins, every writer maintains
//! the index, and what the backfill reads is certified like any other read.
//!
//! The work after the first step is a *job*: a record in the catalog ([`record`]), written by the
//! first step and carried along by every further one, so that another node can go on with it
//! ([`runner`]). A job that fails takes back what its statement added: the index, the constraint,
//! the column. Keys of indexes that are left behind are no job's work: the catalog does not name
//! them any more, and every node removes what is named nowhere ([`Catalog::reaches`]).

mod backfill;
mod doomed;
mod escrow;
mod fill;
mod hold;
mod move_table;
mod progress;
mod regions;
mod rows;
mod runner;
mod split;
mod system;
mod validate;
mod waits;

pub use crate::catalog::job::{Job, JobRecord, JobState, listed};
pub use crate::parse::Control;
pub(crate) use backfill::primary_ranges;
pub(crate) use hold::Hold;
pub(crate) use hold::end as end_hold;
pub(crate) use runner::{is_made, start};
use split::As;

use crate::catalog::names::Names;
use crate::catalog::system::quote;
use crate::catalog::{Catalog, CatalogChange, Check, ColumnState, Descriptor, ForeignKey, IndexState, Table};
use crate::ddl::{Ddl, DdlContext, Notice};
use crate::env::{Environment, Locking, OnLocked, TxnOptions};
use crate::parse::Statement;
use crate::shared::Shared;
use crate::types::EvalContext;
use meridian_base::runtime::BoxFuture;
use meridian_base::{DescriptorId, Error, Result, SessionId, limits};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// On whose behalf a job runs.
#[derive(Clone)]
pub struct JobContext {
    pub session: SessionId,
    pub names: Names,
    /// As the session's statements have it.
    pub eval: EvalContext,
    /// What this node's sessions share.
    pub shared: Arc<Shared>,
    /// The statement that made the job.
    pub statement: String,
    /// The job, and the state in which it may be gone on with.
    pub job: Option<(DescriptorId, JobState)>,
    /// The first step of the schema change was sent to the catalog's primary, and was not refused.
    /// A session that stops waiting from then on does not know the outcome.
    pub has_begun: Arc<AtomicBool>,
}

impl JobContext {
    /// The record of a new job with these tasks.
    fn record<E: Environment>(&self, env: &E, catalog: &Catalog, id: DescriptorId, tasks: Vec<Job>) -> Result<JobRecord> {
        Ok(JobRecord {
            id,
            tasks,
            done: 0,
            state: JobState::Running,
            node: env.locality().node,
            statement: self.statement.clone(),
            database: catalog.database(&self.names.database)?.id,
            user: self.names.user.clone(),
            maker: Some(self.names.role),
            search_path: self.names.search_path.clone(),
            time_zone: self.eval.zone.name().to_string(),
            created: env.now_micros(),
            ended: None,
            error: None,
            checkpoint: None,
            rows: 0,
        })
    }

    /// The newest catalog, for a page of the job, if that is to be gone on with here.
    fn catalog<E: Environment>(&self, env: &E) -> Result<Arc<Catalog>> {
        let catalog = env.catalog();
        if let Some((id, state)) = self.job {
            crate::catalog::jobs::mine(&catalog, id, env.locality().node, state)?;
        }
        Ok(catalog)
    }

    /// The same with the newest catalog.
    fn now(&self, catalog: &Arc<Catalog>) -> JobContext {
        JobContext { eval: self.eval.with_catalog(catalog.clone()), ..self.clone() }
    }

    /// The job's record with a task that comes right after the present one.
    fn with_next_task(&self, catalog: &Catalog, task: Job) -> Option<Descriptor> {
        let mut job = catalog.job(self.job?.0)?.clone();
        job.tasks.insert((job.done as usize + 1).min(job.tasks.len()), task);
        Some(Descriptor::Job(job))
    }
}

/// What a finished DDL statement answers.
#[derive(Clone, Debug)]
pub struct Done {
    pub tag: &'static str,
    pub notices: Vec<Notice>,
    /// A catalog that contains the statement's effects.
    pub catalog: Arc<Catalog>,
}

/// Runs a DDL statement outside a transaction block: derives it, commits the change (deriving again
/// if another change came first) and does the jobs.
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
            jobs: &[],
            eval: &context.eval.with_catalog(catalog.clone()),
        };
        let Ddl { tag, notices, change, jobs, .. } = crate::ddl::derive(statement, &catalog, &ddl_context)?;
        check_known(env, &change)?;
        match commit(env, Step { base: catalog, change, jobs, is_one_of_many: false }, None, context).await {
            Ok(Committed::Stale(_)) => {}
            Err(e) if e.is_retry() => {}
            Ok(Committed::Done { catalog, notices: more }) => {
                return Ok(Done { tag, notices: notices.into_iter().chain(more).collect(), catalog });
            }
            Err(e) => return Err(e),
        }
    }
    Err(Error::retry("other schema changes came first, again and again"))
}

/// Refuses what a node of an earlier version could not read.
pub(crate) fn check_known<E: Environment>(env: &E, change: &CatalogChange) -> Result<()> {
    let is_new = |d: &Descriptor| matches!(d, Descriptor::Role(_) | Descriptor::LoginRules(_));
    if !change.put.iter().any(is_new) || env.knows_roles() {
        return Ok(());
    }
    Err(Error::unsupported("roles are not known to every node yet")
        .hint("Run a newer program on all nodes; meridian node status shows which version the cluster is at."))
}

/// A change derived from `base`, and what is left to do after it.
pub struct Step {
    pub base: Arc<Catalog>,
    pub change: CatalogChange,
    pub jobs: Vec<Job>,
    /// Other changes, or rows, are committed with it: its own failure afterwards does not undo
    /// them.
    pub is_one_of_many: bool,
}

/// What became of a [`Step`].
pub enum Committed {
    Done {
        catalog: Arc<Catalog>,
        notices: Vec<Notice>,
    },
    /// Nothing happened, because the catalog is no longer at `base`: kind `Retry`.
    Stale(Error),
}

/// Commits a step, together with a transaction if there is one, and does its jobs: the end of
/// [`execute`], and of a transaction block with DDL.
pub async fn commit<E: Environment>(env: &E, step: Step, txn: Option<&mut E::Txn>, context: &JobContext) -> Result<Committed> {
    let Step { base, mut change, jobs: mut tasks, is_one_of_many } = step;
    let placed = tasks.iter().find_map(|task| match task {
        Job::AwaitPlacement { database } => Some(*database),
        _ => None,
    });
    // Columns are shown when nothing of their transaction can fail any more.
    // To take escrow back is as much work as to make it.
    tasks.sort_by_key(|task| match task {
        Job::ShowColumns { .. } | Job::KeepColumns { .. } => 2,
        Job::Split { .. } | Job::Join { .. } => 1,
        _ => 0,
    });
    if is_one_of_many {
        // The block may have written them.
        tasks.retain(|task| !matches!(task, Job::KeepColumns { .. }));
    }
    let is_mixed = txn.is_some();
    let mut job = None;
    if !tasks.is_empty() {
        change.next_id = change.next_id.max(base.next_id);
        let id = DescriptorId(change.next_id);
        change.next_id += 1;
        crate::catalog::jobs::add(&mut change, &base, context.record(env, &base, id, tasks)?);
        job = Some(id);
    }
    if change.is_empty() && !is_mixed {
        return Ok(Committed::Done { catalog: base, notices: Vec::new() });
    }
    context.has_begun.store(true, Ordering::Relaxed);
    let stepped = match txn {
        Some(txn) => env.change_catalog_with(txn, &base, change).await,
        None => Ok(env.change_catalog(base.version, change).await.map(drop)),
    };
    match stepped? {
        Err(e) if e.is_retry() => {
            context.has_begun.store(false, Ordering::Relaxed);
            return Ok(Committed::Stale(e));
        }
        stepped => stepped?,
    }
    if let Some(id) = job
        && let Err(e) = runner::run_and_wait(env, id, context).await
    {
        return Err(if is_one_of_many { after_commit(e) } else { e });
    }
    // The job watches the replicas for as long as they move; the client waits a while with it.
    let notice = match placed {
        Some(database) => regions::await_placement(env, database).await,
        None => None,
    };
    Ok(Committed::Done { catalog: env.catalog(), notices: notice.into_iter().collect() })
}

/// The rows of the transaction are committed, and what was to follow them was taken back.
fn after_commit(e: Error) -> Error {
    Error::sql("XXA00", format!("transaction committed but schema change aborted with error: ({}): {}", e.sqlstate(), e.message()))
        .hint("What the transaction did to rows is committed. Changes of the schema that need no further work are, too; look at SHOW JOBS.")
        .detail(e.get_detail().unwrap_or("The work that a schema change needs after its transaction failed.").to_string())
}

/// Does the present task of a job. Its last step ends the task.
async fn run_one<E: Environment>(env: &E, task: &Job, context: &JobContext) -> Result<()> {
    match task {
        Job::DropRegion { database, region } => regions::drop_region(env, *database, region, context).await,
        Job::BuildIndex { table, index } => {
            backfill::build(env, *table, *index, context).await?;
            last_step(env, context, *table, |t| set_state(t, *index, IndexState::Public)).await
        }
        Job::BuildPrimary { table, index } => {
            backfill::build(env, *table, *index, context).await?;
            replace_primary(env, context, *table, *index).await
        }
        Job::ValidateCheck { table, check, .. } => {
            validate::check(env, *table, *check, context).await?;
            let is_it = |c: &&mut Check| c.id == *check;
            last_step(env, context, *table, |t| t.checks.iter_mut().filter(is_it).for_each(|c| c.validated = true)).await
        }
        Job::ValidateNotNull { table, check, ordinal, .. } => {
            validate::not_null(env, *table, *ordinal, context).await?;
            last_step(env, context, *table, |t| {
                t.checks.retain(|c| c.id != *check);
                t.columns[*ordinal as usize].not_null = true;
            })
            .await
        }
        Job::ValidateForeignKey { table, constraint, .. } => {
            validate::foreign_key(env, *table, *constraint, context).await?;
            let is_it = |f: &&mut ForeignKey| f.id == *constraint;
            last_step(env, context, *table, |t| t.foreign_keys.iter_mut().filter(is_it).for_each(|f| f.validated = true)).await
        }
        Job::Move { table, indexes, .. } => move_table::run(env, *table, indexes, context).await,
        Job::AwaitPlacement { database } => {
            regions::until_placed(env, *database).await;
            step_of(env, context, 1, &|_| None).await
        }
        Job::FillColumns { table, ordinals } => fill::run(env, *table, ordinals, context).await,
        Job::ShowColumns { table, ordinals } => fill::show(env, *table, ordinals, context).await,
        Job::KeepColumns { .. } | Job::Hold { .. } | Job::Discard { .. } => step_of(env, context, 1, &|_| None).await,
        Job::RemoveGroups { groups } => doomed::remove(env, groups, context).await,
        Job::LowerBounds { table, index } => {
            escrow::settle(env, *table, *index, context).await?;
            last_step(env, context, *table, |t| escrow::hold_alone(t, *index)).await
        }
        Job::RaiseBounds { table, index } => {
            escrow::settle(env, *table, *index, context).await?;
            step_of(env, context, 1, &|_| None).await
        }
        Job::Split { table, index, checks } => split::split(env, *table, *index, checks, As::Task, context).await,
        Job::Join { table, index } => split::join(env, *table, *index, &[], As::Task, context).await,
        Job::EndRounds { table, index } => {
            escrow::end_rounds(env, *table, *index, context).await?;
            last_step(env, context, *table, |t| escrow::has_no_rounds(t, *index)).await
        }
    }
}

/// The new primary index takes the place of the old one.
async fn replace_primary<E: Environment>(env: &E, context: &JobContext, table: DescriptorId, index: u32) -> Result<()> {
    step_of(env, context, 1, &|catalog| {
        let before = catalog.table_by_id(table)?;
        let mut after = (*before).clone();
        set_state(&mut after, index, IndexState::Public);
        for key in after.indexes.iter().filter(|i| i.id == index).flat_map(|i| &i.columns) {
            let column = &mut after.columns[key.ordinal as usize];
            if column.state == ColumnState::Filled {
                column.state = ColumnState::Public;
            }
        }
        let at = after.indexes.iter().position(|i| i.id == index)?;
        if at == 0 {
            return None;
        }
        crate::ddl::replace_primary(&mut after, at);
        Some(changed(catalog, after))
    })
    .await
}

/// Takes back what the statement of a failed job added.
async fn undo<E: Environment>(env: &E, task: &Job, context: &JobContext) -> Result<()> {
    match task {
        Job::BuildIndex { table, index } | Job::BuildPrimary { table, index } => {
            let Some(t) = env.catalog().table_by_id(*table) else { return Ok(()) };
            if t.primary().id == *index || !t.indexes.iter().any(|i| i.id == *index) {
                return Ok(());
            }
            step(env, context, *table, |t| t.indexes.retain(|i| i.id != *index)).await
        }
        Job::ValidateCheck { table, check, keep: false } => {
            step(env, context, *table, |t| t.checks.retain(|c| c.id != *check)).await
        }
        Job::ValidateNotNull { table, check, ordinal, added_column } => {
            step(env, context, *table, |t| {
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
            // The parent first: after a crash in between, the child still says who it is.
            if let Some(parent) = parent {
                step(env, context, parent, |p| p.referenced_by.retain(|r| *r != (*table, *constraint))).await?;
            }
            step(env, context, *table, |t| t.foreign_keys.retain(|f| f.id != *constraint)).await
        }
        Job::Move { table, indexes, added_column } => move_table::undo(env, *table, indexes, *added_column, context).await,
        Job::DropRegion { database, region } => regions::keep_region(env, *database, region, context).await,
        Job::ShowColumns { table, ordinals } => fill::undo(env, *table, ordinals, context).await,
        Job::LowerBounds { table, index } => step(env, context, *table, |t| escrow::take_back(t, *index)).await,
        // Not from where another task got to.
        Job::RaiseBounds { table, index } => {
            escrow::settle(env, *table, *index, &JobContext { job: None, ..context.clone() }).await
        }
        Job::Split { table, index, checks } => split::join(env, *table, *index, checks, As::Undo, context).await,
        Job::Join { table, index } => split::split(env, *table, *index, &[], As::Undo, context).await,
        Job::KeepColumns { table, ordinals } => take_back(env, *table, ordinals, context).await,
        Job::FillColumns { .. }
        | Job::ValidateCheck { keep: true, .. }
        | Job::ValidateForeignKey { keep: true, .. }
        | Job::Discard { .. }
        | Job::AwaitPlacement { .. }
        | Job::RemoveGroups { .. }
        | Job::EndRounds { .. }
        | Job::Hold { .. } => Ok(()),
    }
}

/// Drops columns as `DROP COLUMN` does. Where that is refused, because something depends on them by
/// now, they stay.
async fn take_back<E: Environment>(env: &E, table: DescriptorId, ordinals: &[u32], context: &JobContext) -> Result<()> {
    let (nodes, locality) = (env.nodes(), env.locality());
    let none = BTreeSet::new();
    step_of(env, context, 0, &|catalog| {
        let table = catalog.table_by_id(table)?;
        let schema = catalog.schema_by_id(table.schema)?;
        let added = ordinals.iter().map(|o| &table.columns[*o as usize]).filter(|c| c.state == ColumnState::Public);
        let actions: Vec<String> = added.map(|c| format!("DROP COLUMN {}", quote(&c.name))).collect();
        if actions.is_empty() {
            return None;
        }
        let text = format!("ALTER TABLE {}.{} {}", quote(&schema.name), quote(&table.name), actions.join(", "));
        let statement = crate::parse::parse_one_statement(&text).ok()?;
        let ddl = DdlContext {
            names: &context.names,
            gateway_region: &locality.region,
            nodes: &nodes,
            private: &none,
            jobs: &[],
            eval: &context.eval,
        };
        crate::ddl::derive(&statement, catalog, &ddl).ok().map(|derived| derived.change)
    })
    .await
}

fn set_state(table: &mut Table, index: u32, state: IndexState) {
    table.indexes.iter_mut().filter(|i| i.id == index).for_each(|i| i.state = state);
}

/// Changes one table as one step of a job. Nothing to do if it is gone, or if the change changes
/// nothing.
async fn step<E: Environment>(
    env: &E,
    context: &JobContext,
    table: DescriptorId,
    change: impl Fn(&mut Table) + Send + Sync,
) -> Result<()> {
    step_of(env, context, 0, &|catalog| table_step(catalog, table, &change)).await
}

/// The same, and the present task is done with it.
async fn last_step<E: Environment>(
    env: &E,
    context: &JobContext,
    table: DescriptorId,
    change: impl Fn(&mut Table) + Send + Sync,
) -> Result<()> {
    step_of(env, context, 1, &|catalog| table_step(catalog, table, &change)).await
}

fn table_step(catalog: &Catalog, table: DescriptorId, change: impl Fn(&mut Table)) -> Option<CatalogChange> {
    let before = catalog.table_by_id(table)?;
    let mut after = (*before).clone();
    change(&mut after);
    (after != *before).then(|| changed(catalog, after))
}

fn changed(catalog: &Catalog, table: Table) -> CatalogChange {
    CatalogChange { put: vec![Descriptor::Table(table)], next_id: catalog.next_id, ..CatalogChange::default() }
}

/// Makes one step of a job, derived again whenever another one came first, if the job is still to
/// be gone on with here. So many tasks are done with it, from the present one on.
fn step_of<'a, E: Environment>(
    env: &'a E,
    context: &'a JobContext,
    ended: usize,
    derive: Derive<'a>,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(one_step(env, context, ended, derive))
}

/// How a step of a job is derived.
type Derive<'a> = &'a (dyn Fn(&Catalog) -> Option<CatalogChange> + Send + Sync);

async fn one_step<E: Environment>(env: &E, context: &JobContext, ended: usize, derive: Derive<'_>) -> Result<()> {
    let me = env.locality().node;
    for attempt in 0..limits::RETRIES_MAX {
        let catalog = env.catalog();
        let nothing = CatalogChange { next_id: catalog.next_id, ..CatalogChange::default() };
        let mut step = derive(&catalog).unwrap_or(nothing);
        if let Some((id, state)) = context.job {
            let known = crate::catalog::jobs::mine(&catalog, id, me, state)?;
            if ended > 0 {
                // The step may have changed the record already.
                let at = step.put.iter().position(|d| d.id() == id);
                let mut job = match at.map(|at| step.put.swap_remove(at)) {
                    Some(Descriptor::Job(job)) => job,
                    _ => known.clone(),
                };
                (0..ended).for_each(|_| job.end_task(env.now_micros()));
                step.put.push(Descriptor::Job(job));
            }
        }
        if step.is_empty() {
            return Ok(());
        }
        match env.change_catalog(catalog.version, step).await {
            Err(e) if e.is_retry() => pause(env, attempt).await,
            done => return done.map(|_| ()),
        }
    }
    Err(Error::retry("other schema changes came first, again and again"))
}

/// Changes a job's record by a step of its own. Nothing to do if it is `None`.
pub(crate) async fn put_record<E: Environment>(
    env: &E,
    id: DescriptorId,
    change: impl Fn(&JobRecord) -> Option<JobRecord>,
) -> Result<()> {
    for attempt in 0..limits::RETRIES_MAX {
        let catalog = env.catalog();
        let Some(job) = catalog.job(id).and_then(&change) else { return Ok(()) };
        let step = CatalogChange { put: vec![Descriptor::Job(job)], next_id: catalog.next_id, ..CatalogChange::default() };
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

/// Attempts of a job's transaction that read without waiting for anybody.
const FREE_ATTEMPTS: u32 = 2;
/// How long a job waits for its turn at a row.
const TURN_PATIENCE: Duration = Duration::from_secs(5);
/// As in a session.
const DEADLOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// How a job reads rows that others may be changing. Rows that change faster than it can commit
/// would refuse it for ever: so it waits for its turn after a while.
fn locking(attempt: u32) -> Locking {
    match attempt < FREE_ATTEMPTS {
        true => Locking::None,
        false => Locking::Exclusive(OnLocked::Wait),
    }
}

/// Whether a job's transaction is tried again: it was refused, or its turn did not come.
fn may_try_again(e: &Error, attempt: u32) -> bool {
    (e.is_retry() || e.sqlstate() == "55P03") && attempt < limits::RETRIES_MAX
}

/// How a job's transactions start: with the newest catalog.
fn options(catalog: &Catalog, session: SessionId, read_only: bool, attempt: u32) -> TxnOptions {
    TxnOptions {
        session,
        read_only,
        schema: catalog.seen,
        schema_committed_at: catalog.seen_at,
        lock_timeout: Some(TURN_PATIENCE),
        deadlock_timeout: Some(DEADLOCK_TIMEOUT),
        attempt,
        as_of: None,
        is_held_back: true,
        is_block: false,
    }
}

#[cfg(test)]
mod tests;
