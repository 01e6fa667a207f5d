//! What a job waits for.
//!
//! A job works on rows, and so needs the primaries of the groups that hold them; everything else
//! that it needs is the catalog. What is missing is computed from the record and from who answers
//! now, on whatever node is asked: nobody has to be alive to tell.

use super::doomed;
use super::record::{JobRecord, JobState};
use super::regions::{Placed, placed};
use crate::catalog::ddl::Job;
use crate::catalog::{Catalog, Table};
use crate::env::{Environment, GroupRow, NodeLocality};
use meridian_base::{DescriptorId, Error, GroupId, Result};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

const POLL: Duration = Duration::from_millis(500);

/// The groups whose primaries a task needs.
fn needed(catalog: &Catalog, task: &Job) -> BTreeSet<GroupId> {
    let of_table = |id: DescriptorId| {
        let table = catalog.table_by_id(id);
        let elsewhere = table.as_ref().and_then(|t| t.elsewhere());
        let groups = |t: &Table| t.groups().collect::<Vec<_>>();
        table.iter().flat_map(|t| groups(t)).chain(elsewhere.iter().flat_map(groups)).collect::<BTreeSet<_>>()
    };
    match task {
        Job::BuildIndex { table, .. }
        | Job::BuildPrimary { table, .. }
        | Job::ValidateCheck { table, .. }
        | Job::ValidateNotNull { table, .. }
        | Job::Move { table, .. }
        | Job::FillColumns { table, .. } => of_table(*table),
        Job::ValidateForeignKey { table, constraint, .. } => {
            let mut groups = of_table(*table);
            let child = catalog.table_by_id(*table);
            let parent = child.and_then(|t| t.foreign_keys.iter().find(|f| f.id == *constraint).map(|f| f.parent));
            groups.extend(parent.into_iter().flat_map(of_table));
            groups
        }
        Job::DropRegion { database, region } => {
            catalog.groups_of(*database).filter(|g| g.home == *region && !g.kind.follows_primary()).map(|g| g.id).collect()
        }
        Job::AwaitPlacement { .. }
        | Job::ShowColumns { .. }
        | Job::KeepColumns { .. }
        | Job::RemoveGroups { .. }
        | Job::Hold { .. }
        | Job::Discard { .. } => BTreeSet::new(),
    }
}

/// Which of these groups nobody answers for.
fn missing(catalog: &Catalog, needed: &BTreeSet<GroupId>, groups: &[GroupRow]) -> Option<String> {
    let lost = groups.iter().filter(|row| row.primary.is_none() && needed.contains(&row.group));
    let name = |row: &GroupRow| match catalog.group_by_id(row.group) {
        Some(group) => format!("{} in region \"{}\"", row.group, group.home),
        None => row.group.to_string(),
    };
    let lost: Vec<String> = lost.map(name).collect();
    match &lost[..] {
        [] => None,
        [one] => Some(format!("the primary of group {one}, which does not answer")),
        many => Some(format!("the primaries of groups {}, which do not answer", many.join(", "))),
    }
}

/// What keeps a job from going on; `None` if nothing does, or it has ended.
pub fn waits_for(catalog: &Catalog, job: &JobRecord, groups: &[GroupRow], nodes: &[NodeLocality]) -> Option<String> {
    if !matches!(job.state, JobState::Running | JobState::Reverting) {
        return None;
    }
    if groups.iter().any(|row| row.group == GroupId::CATALOG && row.primary.is_none()) {
        return Some("the primary of the catalog, which does not answer".to_string());
    }
    if !nodes.iter().any(|n| n.node == job.node && n.is_live) {
        return Some(format!("another node to go on with it: {} does not answer", job.node));
    }
    // What is taken back is a matter of the catalog alone.
    let task = job.present_task().filter(|_| job.state == JobState::Running)?;
    if let Job::AwaitPlacement { database } = task {
        let waits = placed(catalog, *database, groups).waits;
        return (!waits.is_empty()).then(|| waits.join("; "));
    }
    if let Job::RemoveGroups { groups: leaving } = task {
        let waits = doomed::needed_by(catalog, leaving, groups);
        return (!waits.is_empty()).then(|| waits.join("; "));
    }
    missing(catalog, &needed(catalog, task), groups)
}

/// The share of a job's work that is done.
pub fn fraction(catalog: &Catalog, job: &JobRecord, groups: &[GroupRow]) -> f64 {
    let of_task = match job.present_task() {
        Some(Job::AwaitPlacement { database }) => {
            // The last part is the job's own step, which ends it.
            let Placed { groups, waits } = placed(catalog, *database, groups);
            groups.saturating_sub(waits.len()) as f64 / (groups + 1) as f64
        }
        _ => 0.0,
    };
    match job.tasks.len() {
        0 => 1.0,
        n => (f64::from(job.done) + of_task) / n as f64,
    }
}

/// Waits until what a task needs answers, and no longer than until `deadline`: then 57P03.
pub(super) async fn until_ready<E: Environment>(env: &E, job: &JobRecord, task: &Job, deadline: Instant) -> Result<()> {
    loop {
        let groups = env.groups().await?;
        let catalog = env.catalog();
        let Some(what) = missing(&catalog, &needed(&catalog, task), &groups) else { return Ok(()) };
        if Instant::now() >= deadline {
            return Err(Error::sql("57P03", format!("job {} waited too long for {what}", job.id.0)));
        }
        tokio::time::sleep(POLL).await;
    }
}
