//! The jobs of a catalog.

use super::job::{Job, JobRecord, JobState, listed};
use super::{Catalog, CatalogChange, Descriptor, MoveState};
use meridian_base::{DescriptorId, Error, NodeId, Result};

/// Jobs that have ended are shown for a while: so many of them.
const ENDED_KEPT: usize = 40;

impl Catalog {
    /// The role whose job it is, if there is one still.
    pub fn maker(&self, job: &JobRecord) -> Option<DescriptorId> {
        match job.maker {
            Some(maker) => self.role_by_id(maker).map(|r| r.id),
            None => self.find_role(&job.user).map(|r| r.id),
        }
    }
}

impl Job {
    /// For `SHOW JOBS`.
    pub fn describe(&self, catalog: &Catalog) -> String {
        let name = |id: &DescriptorId| {
            let found = catalog.descriptors.get(id).and_then(|d| d.name().map(str::to_string));
            found.unwrap_or_else(|| format!("what is dropped by now ([{}])", id.0))
        };
        let is_leaving = |id: &DescriptorId| {
            let moving = catalog.table_by_id(*id).and_then(|t| t.moving.as_ref().map(|m| m.state));
            moving == Some(MoveState::Leaving)
        };
        match self {
            Job::BuildIndex { table, .. } => format!("building an index of {}", name(table)),
            Job::BuildPrimary { table, .. } => format!("building the primary index of {}", name(table)),
            Job::ValidateCheck { table, .. } | Job::ValidateNotNull { table, .. } | Job::ValidateForeignKey { table, .. } => {
                format!("validating a constraint of {}", name(table))
            }
            Job::Move { table, .. } if is_leaving(table) => format!("leaving the old homes of {}", name(table)),
            Job::Move { table, .. } => format!("copying {} to its new homes", name(table)),
            Job::Discard { group, .. } => format!("deleting what was dropped from group {group}"),
            Job::DropRegion { region, .. } => format!("looking for rows in {region}"),
            Job::AwaitPlacement { database } => format!("moving the replicas of {}", name(database)),
            Job::FillColumns { table, .. } => format!("computing new columns of {}", name(table)),
            Job::ShowColumns { table, .. } => format!("showing new columns of {}", name(table)),
            Job::KeepColumns { table, .. } => format!("keeping new columns of {}", name(table)),
            Job::RemoveGroups { groups } => format!("removing {}", listed(groups)),
            Job::LowerBounds { table, .. } => format!("narrowing the bounds of numbers of {}", name(table)),
            Job::RaiseBounds { table, .. } => format!("widening the bounds of numbers of {}", name(table)),
            Job::Split { table, .. } => format!("splitting numbers of {} over the regions", name(table)),
            Job::Join { table, .. } => format!("joining numbers of {}", name(table)),
            Job::EndRounds { table, .. } => format!("ending rounds of 'majority' of {}", name(table)),
            Job::Hold { .. } => "holding the new tables of an open transaction".to_string(),
        }
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
pub(crate) fn add(change: &mut CatalogChange, base: &Catalog, new: JobRecord) {
    let ended: Vec<DescriptorId> = base.jobs().filter(|j| j.state.has_ended()).map(|j| j.id).collect();
    let superfluous = ended.len().saturating_sub(ENDED_KEPT - 1);
    change.delete.extend(&ended[..superfluous]);
    change.put.push(Descriptor::Job(new));
}

/// The job, if `node` is to go on with it in this state. A runner whose job is not its own any more
/// stops where it is: another node has taken the job over, or a session paused or cancelled it.
pub(crate) fn mine(catalog: &Catalog, id: DescriptorId, node: NodeId, state: JobState) -> Result<&JobRecord> {
    let job = catalog.job(id).filter(|job| job.node == node && job.state == state);
    job.ok_or_else(|| Error::sql("55000", format!("job {} is not to be gone on with here", id.0)))
}
