//! What a job's expressions may ask of the database: a job has no session.

use super::JobContext;
use crate::catalog::Catalog;
use crate::catalog::names::Names;
use crate::catalog::system::{Setting, SystemContext};
use crate::env::{Environment, GroupRow, NodeLocality, SessionRow, TransactionRow};
use crate::exec::{ExecContext, ExecOptions, Interrupt, MEMORY_BYTES_MAX, Pace};
use crate::shared::SessionSequences;
use futures::future::BoxFuture;
use meridian_base::Result;
use std::sync::Arc;

/// The [`SystemContext`] of a job, which has no sessions and no settings to show.
pub(super) struct JobSystem<'a, E> {
    pub env: &'a E,
    pub catalog: &'a Arc<Catalog>,
    pub names: &'a Names,
}

impl<E: Environment> JobSystem<'_, E> {
    /// What expressions over a job's rows see.
    pub fn exec<'a>(
        &'a self,
        context: &'a JobContext,
        interrupt: &'a Interrupt,
        sequences: &'a SessionSequences<E>,
    ) -> ExecContext<'a> {
        ExecContext {
            pace: Pace::default(),
            eval: &context.eval,
            catalog: self.catalog,
            interrupt,
            sequences,
            system: self,
            memory_bytes_max: MEMORY_BYTES_MAX,
            pool: sequences.memory(),
            options: ExecOptions::default(),
        }
    }
}

impl<E: Environment> SystemContext for JobSystem<'_, E> {
    fn catalog(&self) -> &Arc<Catalog> {
        self.catalog
    }
    fn names(&self) -> &Names {
        self.names
    }
    fn node(&self) -> NodeLocality {
        self.env.locality()
    }
    fn nodes(&self) -> Vec<NodeLocality> {
        self.env.nodes()
    }
    fn now_micros(&self) -> u64 {
        self.env.now_micros()
    }
    fn sessions(&self) -> Vec<SessionRow> {
        Vec::new()
    }
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }
    fn groups(&self) -> BoxFuture<'_, Result<Vec<GroupRow>>> {
        Box::pin(self.env.groups())
    }
    fn transactions(&self) -> BoxFuture<'_, Result<Vec<TransactionRow>>> {
        Box::pin(self.env.transactions())
    }
    fn metrics(&self) -> Vec<(String, u64)> {
        self.env.metrics()
    }
}
