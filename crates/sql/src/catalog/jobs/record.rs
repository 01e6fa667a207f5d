//! What the catalog knows of a job: enough to go on with it on another node.

use crate::catalog::ddl::Job;
use crate::catalog::{Catalog, CatalogChange, Descriptor};
use meridian_base::{DescriptorId, Error, NodeId, Result};
use serde::{Deserialize, Serialize};

/// Jobs that have ended are shown for a while: so many of them.
const ENDED_KEPT: usize = 40;

/// A schema change whose work is not done with its first step. It is written by that step, and
/// changed by every further one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    pub id: DescriptorId,
    /// What is done, in order.
    pub tasks: Vec<Job>,
    /// How many of them are.
    pub done: u32,
    pub state: JobState,
    /// The node that runs it; another one takes it over if that one is silent for too long.
    pub node: NodeId,
    pub statement: String,
    /// On whose behalf, as its statement would have been read.
    pub database: DescriptorId,
    pub user: String,
    pub search_path: Vec<String>,
    pub time_zone: String,
    /// Microseconds since 1970.
    pub created: u64,
    pub ended: Option<u64>,
    /// Why it is being taken back, or was.
    pub error: Option<Error>,
    /// Where the present task goes on: a key of what it works through.
    pub checkpoint: Option<Vec<u8>>,
    /// How many rows the present task had worked through there.
    pub rows: u64,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobState {
    Running,
    /// Until `RESUME JOB`.
    Paused,
    /// It failed or was cancelled: what it did is being taken back.
    Reverting,
    Succeeded,
    Failed,
    Canceled,
}

impl JobState {
    /// What `SHOW JOBS` calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            JobState::Running => "running",
            JobState::Paused => "paused",
            JobState::Reverting => "reverting",
            JobState::Succeeded => "succeeded",
            JobState::Failed => "failed",
            JobState::Canceled => "canceled",
        }
    }
    /// Nothing will happen to it any more.
    pub fn has_ended(self) -> bool {
        matches!(self, JobState::Succeeded | JobState::Failed | JobState::Canceled)
    }
}

/// The error of a job that was cancelled.
pub(super) const CANCELED: &str = "57014";

impl JobRecord {
    /// What is left only removes what nobody can reach, watches replicas that move by themselves,
    /// or belongs to an open transaction block: the statement is done.
    pub fn is_in_background(&self) -> bool {
        let is_left_over = |task: &Job| {
            matches!(task, Job::Discard { .. } | Job::AwaitPlacement { .. } | Job::RemoveGroups { .. } | Job::Hold { .. })
        };
        self.tasks.iter().skip(self.done as usize).all(is_left_over)
    }
    /// What it does now, or would; `None` if there is nothing left to do.
    pub fn present_task(&self) -> Option<&Job> {
        self.tasks.get(self.done as usize)
    }
    /// The present task is done.
    pub(super) fn end_task(&mut self, now: u64) {
        self.done += 1;
        (self.checkpoint, self.rows) = (None, 0);
        if self.done as usize >= self.tasks.len() {
            self.end(JobState::Succeeded, now);
        }
    }
    pub(super) fn end(&mut self, state: JobState, now: u64) {
        (self.state, self.ended) = (state, Some(now));
    }
}

impl Catalog {
    /// A job by its number.
    pub fn job(&self, id: DescriptorId) -> Option<&JobRecord> {
        match self.descriptors.get(&id).map(|d| &**d) {
            Some(Descriptor::Job(job)) => Some(job),
            _ => None,
        }
    }
    /// All jobs that are known, the oldest first.
    pub fn jobs(&self) -> impl Iterator<Item = &JobRecord> {
        self.descriptors.values().filter_map(|d| match &**d {
            Descriptor::Job(job) => Some(job),
            _ => None,
        })
    }
}

/// Adds a job to the change that begins it, and makes room for it.
pub(super) fn add(change: &mut CatalogChange, base: &Catalog, new: JobRecord) {
    let ended: Vec<DescriptorId> = base.jobs().filter(|j| j.state.has_ended()).map(|j| j.id).collect();
    let superfluous = ended.len().saturating_sub(ENDED_KEPT - 1);
    change.delete.extend(&ended[..superfluous]);
    change.put.push(Descriptor::Job(new));
}

/// The job, if `node` is to go on with it in this state. Whoever finds that it is not stops where
/// it is: another node has taken the job over, or somebody paused or cancelled it.
pub(super) fn mine(catalog: &Catalog, id: DescriptorId, node: NodeId, state: JobState) -> Result<&JobRecord> {
    let job = catalog.job(id).filter(|job| job.node == node && job.state == state);
    job.ok_or_else(|| Error::sql("55000", format!("job {} is not to be gone on with here", id.0)))
}
