//! How far a job is, and what it waits for.
//!
//! A job works on rows, and so needs the primaries of the groups that hold them; everything else
//! that it needs is the catalog. What is missing is computed from the record and from who answers
//! now, on whatever node is asked: nobody has to be alive to tell.

use crate::catalog::job::{Job, JobRecord, JobState, listed};
use crate::catalog::{Catalog, Descriptor, Table};
use crate::rows::{GroupRow, NodeLocality};
use meridian_base::{DescriptorId, GroupId, SchemaVersion};
use std::collections::BTreeSet;

/// The groups whose primaries a task needs.
pub(crate) fn needed(catalog: &Catalog, task: &Job) -> BTreeSet<GroupId> {
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
        Job::LowerBounds { table, index }
        | Job::RaiseBounds { table, index }
        | Job::Split { table, index, .. }
        | Job::Join { table, index }
        | Job::EndRounds { table, index } => {
            let mut groups = of_table(*table);
            if let Some(table) = catalog.table_by_id(*table) {
                groups.extend(table.with_shares().filter(|c| c.index == *index).flat_map(|c| c.sites.iter().copied()));
            }
            groups
        }
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

/// Which of these groups no primary answers for.
pub(crate) fn missing(catalog: &Catalog, needed: &BTreeSet<GroupId>, groups: &[GroupRow]) -> Option<String> {
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
        let waits = needed_by(catalog, leaving, groups);
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

/// How far the replicas of a database's groups are where they belong.
pub(crate) struct Placed {
    pub groups: usize,
    /// For each group that is not there yet, what keeps it.
    pub waits: Vec<String>,
}

/// How far they are, by what the groups' primaries tell.
pub(crate) fn placed(catalog: &Catalog, database: DescriptorId, rows: &[GroupRow]) -> Placed {
    let groups: BTreeSet<GroupId> = catalog.groups_of(database).map(|g| g.id).collect();
    let moving = rows.iter().filter(|row| groups.contains(&row.group));
    let waits = moving.filter_map(|row| Some(format!("{}: {}", row.group, row.waits_for.as_ref()?))).collect();
    Placed { groups: groups.len(), waits }
}

/// Those of the groups that are not deleted yet.
pub(crate) fn still_leaving(catalog: &Catalog, groups: &[GroupId]) -> Vec<GroupId> {
    let is_leaving =
        |g: &GroupId| matches!(catalog.descriptors.get(&DescriptorId(g.0)).map(|d| &**d), Some(Descriptor::Leaving(_)));
    groups.iter().copied().filter(is_leaving).collect()
}

/// The version in which the last of them began to leave.
pub(crate) fn since(catalog: &Catalog, leaving: &[GroupId]) -> SchemaVersion {
    leaving.iter().filter_map(|g| catalog.changed_in.get(&DescriptorId(g.0))).max().copied().unwrap_or_default()
}

/// The groups that have to confirm.
pub(crate) fn others(catalog: &Catalog) -> impl Iterator<Item = GroupId> {
    let stays = |d: &Descriptor| if let Descriptor::Group(group) = d { Some(group.id) } else { None };
    std::iter::once(GroupId::CATALOG).chain(catalog.descriptors.values().filter_map(move |d| stays(d)))
}

pub(crate) fn confirms(row: &GroupRow, leaving: &[GroupId], since: SchemaVersion) -> bool {
    row.primary.is_some() && row.certifies_with >= since && !row.names.iter().any(|g| leaving.contains(g))
}

/// What keeps groups from being deleted: for `SHOW JOBS`.
pub(crate) fn needed_by(catalog: &Catalog, groups: &[GroupId], rows: &[GroupRow]) -> Vec<String> {
    let leaving = still_leaving(catalog, groups);
    let since = since(catalog, &leaving);
    let why = |group: GroupId| match rows.iter().find(|row| row.group == group).filter(|row| row.primary.is_some()) {
        None => {
            Some(format!("the primary of {}, which does not answer and may have a transaction in doubt", named(catalog, group)))
        }
        Some(row) if confirms(row, &leaving, since) => None,
        Some(row) if row.certifies_with < since => {
            Some(format!("{}, which has not heard of the change yet", named(catalog, group)))
        }
        Some(row) => {
            let named_here: Vec<GroupId> = row.names.iter().copied().filter(|g| leaving.contains(g)).collect();
            let (at, of) = (named(catalog, group), listed(&named_here));
            Some(format!("transactions at {at} that {of} took part in (SHOW TRANSACTIONS shows those in doubt)"))
        }
    };
    others(catalog).filter_map(why).collect()
}

fn named(catalog: &Catalog, group: GroupId) -> String {
    match catalog.group_by_id(group) {
        Some(d) => format!("group {group} in region \"{}\"", d.home),
        None => format!("group {group}"),
    }
}
