//! Nodes that have lost their directories, and leave the cluster when no group counts on them.

use crate::membership::ranges;
use crate::membership::shared::Shared;
use crate::transport::wire::{NodeRecord, Standing};
use meridian_base::{Error, GroupId, NodeId, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often the catalog's primary looks whether nodes that were lost are still counted on.
const LOST_INTERVAL: Duration = Duration::from_secs(3);

/// Says so when so many voters of a group lost their directories that it cannot have a leader.
async fn warn_of_stuck_groups(shared: &Arc<Shared>) {
    let led = ranges::everywhere(shared).await;
    for group in shared.catalog.groups().into_iter().filter(|g| !led.contains_key(&g.id)) {
        let (_, why) = ranges::without_primary(shared, group.id);
        tracing::warn!("group {}: {why}", group.id);
    }
}

/// Now and then.
#[derive(Default)]
struct Rarely(Option<Instant>);

impl Rarely {
    fn is_due(&mut self) -> bool {
        const INTERVAL: Duration = Duration::from_secs(30);
        let is_due = self.0.is_none_or(|at| at.elapsed() >= INTERVAL);
        if is_due {
            self.0 = Some(Instant::now());
        }
        is_due
    }
}

/// Ends the membership of lost nodes that no group counts on any more; where the catalog's primary
/// is.
pub(crate) async fn lost_loop(shared: Arc<Shared>) {
    let mut stuck = Rarely::default();
    loop {
        tokio::time::sleep(LOST_INTERVAL).await;
        if shared.groups.local_primary(GroupId::CATALOG).is_none() {
            continue;
        }
        let lost: Vec<NodeRecord> = shared.catalog.nodes().into_iter().filter(|n| n.standing == Standing::Lost).collect();
        if !lost.is_empty() && stuck.is_due() {
            warn_of_stuck_groups(&shared).await;
        }
        for node in lost {
            if let Err(e) = refuse_member(&shared, node.id).await {
                tracing::debug!("node {} lost its directory, and stays for now: {e}", node.id);
                continue;
            }
            let (node, standing) = (node.id, Standing::Decommissioned);
            match shared.steps.ask(|reply| crate::catalog::steps::Job::Stand { node, standing, reply }).await {
                Ok(()) => tracing::info!("node {node}, whose address another node has, holds nothing and is no member any more"),
                Err(e) => tracing::debug!("node {node}: {e}"),
            }
        }
    }
}

/// 55000 if a group counts on a node, or may: it stops when it is no member of the cluster any
/// more, and what it alone holds would be lost. It gets no more replicas once it is being
/// decommissioned.
pub(crate) async fn refuse_member(shared: &Arc<Shared>, node: NodeId) -> Result<()> {
    let refused = |why: String| Err(Error::sql("55000", format!("node {node} cannot leave the cluster yet: {why}")));
    let groups = ranges::everywhere(shared).await;
    for group in shared.catalog.groups() {
        match groups.get(&group.id) {
            None => return refused(format!("no primary answers for group {}, which it may hold a replica of", group.id)),
            Some(status) if status.has(node) => return refused(format!("group {} has a replica there", group.id)),
            Some(_) => {}
        }
    }
    match groups.get(&GroupId::CATALOG) {
        Some(status) if !status.is_changing && !status.voters.contains(&node) => Ok(()),
        Some(_) => refused("it votes for the catalog".to_string()),
        None => Err(Error::not_primary(GroupId::CATALOG)),
    }
}
