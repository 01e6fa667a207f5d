//! Ids that a transaction block has reserved, because it has written rows under them.
//!
//! The reservation is a job in the catalog. No node works on it while the block is open. `COMMIT`
//! deletes it in the step that names the ids. If the block ends otherwise, or its node dies, the
//! task that adopts jobs ends it: from then on the ids are dead, and a later commit is refused.

use super::{Job, JobContext, JobRecord, JobState, put_record};
use crate::catalog::{Catalog, Descriptor};
use crate::env::Environment;
use crate::shared::Shared;
use meridian_base::{DescriptorId, Error, Result};
use std::sync::Arc;

/// A reservation of this process. When it is dropped, the job is anybody's.
pub(crate) struct Hold {
    id: DescriptorId,
    shared: Arc<Shared>,
}

impl Hold {
    /// Before the step that adds a job of this id.
    pub fn new(id: DescriptorId, shared: &Arc<Shared>) -> Arc<Hold> {
        shared.jobs.hold(id);
        Arc::new(Hold { id, shared: shared.clone() })
    }
    pub fn id(&self) -> DescriptorId {
        self.id
    }
    /// The job's record: these ids are reserved.
    pub fn record<E: Environment>(
        &self,
        env: &E,
        base: &Catalog,
        (first, end): (u32, u32),
        context: &JobContext,
    ) -> Result<Descriptor> {
        let tasks = vec![Job::Hold { first, end }];
        let new = || context.record(env, base, self.id, tasks.clone());
        let record = base.job(self.id).map_or_else(new, |job| Ok(JobRecord { tasks: tasks.clone(), ..job.clone() }))?;
        Ok(Descriptor::Job(record))
    }
    /// Fails with 40001 if the ids are not reserved any more.
    pub fn check(&self, catalog: &Catalog) -> Result<()> {
        match catalog.job(self.id) {
            Some(job) if !job.state.has_ended() => Ok(()),
            _ => Err(Error::sql("40001", "the transaction's new tables were given up while its node was taken for dead")
                .hint("The transaction might succeed if retried.")),
        }
    }
}

/// The block has ended without a commit, or its node is taken for dead.
pub(crate) async fn end<E: Environment>(env: &E, found: &JobRecord) -> Result<()> {
    let now = env.now_micros();
    put_record(env, found.id, |job| {
        let mut job = Some(job.clone()).filter(|job| job.node == found.node && !job.state.has_ended())?;
        job.end(JobState::Canceled, now);
        Some(job)
    })
    .await
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.jobs.release(self.id);
    }
}
