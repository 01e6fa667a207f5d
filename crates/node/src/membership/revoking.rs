//! Nodes that were decommissioned: no node talks to them any more, and their certificates are good
//! no more.

use crate::membership::shared::Shared;
use crate::transport::wire::Standing;
use meridian_base::NodeId;
use std::sync::Arc;

/// Ends connections of nodes that are decommissioned, and refuses them, as soon as the catalog says
/// so.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let mut changed = shared.catalog.watch();
    loop {
        changed.borrow_and_update();
        let nodes = shared.catalog.nodes();
        let out = nodes.iter().filter(|n| n.standing == Standing::Decommissioned && n.id != shared.me());
        shared.rpc.revoke(out.map(|n| n.id).collect());
        if changed.changed().await.is_err() {
            return;
        }
    }
}

/// A node that was decommissioned is told so when it connects, and nothing else. One member may say
/// what it likes; more than half of them know.
pub(crate) fn is_told_revoked(shared: &Shared) -> bool {
    let told = shared.rpc.told_revoked();
    let nodes = shared.catalog.nodes();
    let others = nodes.iter().filter(|n| n.id != shared.me() && n.standing != Standing::Decommissioned);
    let mut others: Vec<NodeId> = others.map(|n| n.id).collect();
    if others.is_empty() {
        // The catalog does not come to a node that is out.
        others = shared.rpc.known();
    }
    others.iter().filter(|node| told.contains(node)).count() * 2 > others.len()
}
