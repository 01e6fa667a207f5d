//! The two tasks that a replica runs beside the library's: one follows who leads, the other
//! truncates the log.

use crate::consensus::lease::Lease;
use crate::consensus::machine::Applied;
use crate::consensus::{Raft, Types};
use crate::log::GroupHandle;
use crate::ticket::InFlight;
use crate::{ProposeError, Role};
use meridian_base::NodeId;
use openraft::async_runtime::WatchReceiver;
use openraft::metrics::RaftServerMetrics;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The voters in force: one set, or two during a change.
pub(crate) fn configs(metrics: &RaftServerMetrics<Types>) -> Vec<BTreeSet<u32>> {
    metrics.membership_config.membership().get_joint_config().clone()
}

/// Who leads, from the library's report.
pub(crate) fn role(node: u32, metrics: &RaftServerMetrics<Types>) -> Role {
    Role {
        term: metrics.vote.leader_id.term,
        leader: metrics.current_leader.map(NodeId),
        is_leader: metrics.state.is_leader() && metrics.current_leader == Some(node),
    }
}

/// Whether what was proposed in the old role may or may not be committed by a successor.
fn leaves_to_others(old: Role, new: Role) -> bool {
    old.is_leader && (!new.is_leader || new.term != old.term)
}

/// What [`RoleFollower::run`] keeps up to date.
pub(crate) struct RoleFollower {
    pub node: u32,
    pub raft: Raft,
    pub role: Arc<watch::Sender<Role>>,
    pub in_flight: Arc<InFlight>,
    pub lease: Arc<dyn AsRef<Lease> + Send + Sync>,
    /// A leader without a lease for this long tells those who wait that the fate of their proposals
    /// is unknown.
    pub patience: Duration,
}

impl RoleFollower {
    /// Takes over the current state. Returns whether this replica is elected, but not acknowledged
    /// by a quorum yet: until then the library refuses proposals, and nobody is told that it leads.
    pub(crate) fn update(&self) -> bool {
        let metrics = self.raft.server_metrics();
        let (mut new, sole) = {
            let metrics = metrics.borrow_watched();
            let committed = metrics.membership_config == metrics.committed_membership_config;
            let sole = committed && configs(&metrics) == [BTreeSet::from([self.node])];
            (role(self.node, &metrics), sole)
        };
        let acknowledged = sole || self.raft.data_metrics().borrow_watched().last_quorum_acked.is_some();
        let waiting = new.is_leader && !acknowledged;
        if waiting {
            new.is_leader = false;
            new.leader = None;
        }
        let lease = (*self.lease).as_ref();
        lease.set_sole(sole);
        lease.set_leader(new.is_leader);
        let old = *self.role.borrow();
        self.role.send_if_modified(|r| std::mem::replace(r, new) != new);
        if leaves_to_others(old, new) {
            self.in_flight.fail_all(&ProposeError::Dropped);
        }
        waiting
    }

    /// A leader that is cut off keeps its role until it hears of another one; its clients should
    /// not wait for that.
    fn drop_what_cannot_commit(&self) {
        let lost = |until: Instant| until + self.patience < Instant::now();
        if (*self.lease).as_ref().until().is_none_or(lost) {
            self.in_flight.fail_all(&ProposeError::Dropped);
        }
    }

    /// Runs until the library stops.
    pub(crate) async fn run(self) {
        let mut metrics = self.raft.server_metrics();
        let mut acknowledgements = self.raft.data_metrics();
        let mut waiting = self.update();
        loop {
            let changed = tokio::select! {
                biased;
                changed = metrics.changed() => changed,
                changed = acknowledgements.changed(), if waiting => changed,
                () = tokio::time::sleep(self.patience), if self.role.borrow().is_leader => {
                    self.drop_what_cannot_commit();
                    continue;
                }
            };
            if changed.is_err() {
                break;
            }
            waiting = self.update();
        }
        let stopped = Role { leader: None, is_leader: false, ..*self.role.borrow() };
        self.role.send_replace(stopped);
        (*self.lease).as_ref().set_leader(false);
        self.in_flight.fail_all(&ProposeError::Stopped);
    }
}

/// Truncates the log as the state machine makes progress, and further when the node's log needs
/// room.
pub(crate) struct Truncator {
    pub raft: Raft,
    pub applied: Arc<Applied>,
    pub wake: Arc<Notify>,
    pub wanted: watch::Receiver<u64>,
    pub entries_kept: u64,
    pub log: GroupHandle,
}

impl Truncator {
    /// Runs until the library stops.
    pub(crate) async fn run(mut self) {
        loop {
            tokio::select! {
                biased;
                () = self.wake.notified() => {}
                changed = self.wanted.changed() => if changed.is_err() { return },
            }
            if self.truncate().await.is_err() {
                return;
            }
        }
    }

    async fn truncate(&self) -> Result<(), ()> {
        let wanted = *self.wanted.borrow();
        let Some(target) = target(self.applied.durable().index, self.log.bounds().0.index, wanted, self.entries_kept) else {
            return Ok(());
        };
        let library_index = target - 1;
        let mut metrics = self.raft.data_metrics();
        self.raft.trigger().snapshot().await.map_err(drop)?;
        // The library purges only below a snapshot, and it takes note of the new one in a moment.
        let noted = async {
            loop {
                if metrics.borrow_watched().snapshot.as_ref().is_some_and(|id| id.index >= library_index) {
                    return Ok(());
                }
                metrics.changed().await.map_err(drop)?;
            }
        };
        match tokio::time::timeout(Duration::from_secs(1), noted).await {
            Ok(result) => result?,
            // It was busy with something else; the next call tries again.
            Err(_) => return Ok(()),
        }
        self.raft.trigger().purge_log(library_index).await.map_err(drop)
    }
}

/// Up to which index to purge now, if it is worth it.
fn target(durable: u64, purged: u64, wanted: u64, entries_kept: u64) -> Option<u64> {
    let usual = durable.saturating_sub(entries_kept);
    let wanted = durable.min(wanted);
    let enough = purged + (entries_kept / 4).max(1);
    if wanted > purged { Some(wanted.max(usual)) } else { (usual >= enough).then_some(usual) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_purged_behind_what_is_kept_or_as_far_as_its_room_is_wanted_and_never_beyond_the_store() {
        for (durable, purged, wanted, upto) in [
            (0, 0, 0, None),
            (100, 0, 0, None),
            (124, 0, 0, None),
            (125, 0, 0, Some(25)),
            (125, 1, 0, None),
            (300, 25, 0, Some(200)),
            (50, 0, 1, Some(1)),
            (50, 0, 80, Some(50)),
            (50, 50, 80, None),
            (50, 40, 40, None),
            (300, 25, 30, Some(200)),
            (300, 25, 250, Some(250)),
        ] {
            assert_eq!(target(durable, purged, wanted, 100), upto, "durable {durable}, purged {purged}, wanted {wanted}");
        }
        // Nothing is nothing to purge, also when nothing is kept.
        for kept in 0..4 {
            assert_eq!(target(0, 0, 0, kept), None);
            assert_eq!(target(kept + 1, 0, 0, kept), Some(1));
            assert_eq!(target(kept + 1, 1, 0, kept), None);
        }
    }

    /// Who led a term and does not lead it any more does not know what becomes of its proposals.
    #[test]
    fn a_leader_leaves_to_others_what_it_proposed_when_its_term_or_its_leadership_ends() {
        let role = |term, is_leader| Role { term, leader: None, is_leader };
        for (old, new, leaves) in [
            (role(3, true), role(3, true), false),
            (role(3, true), role(3, false), true),
            (role(3, true), role(4, false), true),
            (role(3, true), role(5, true), true),
            (role(3, false), role(3, false), false),
            (role(3, false), role(4, false), false),
            (role(3, false), role(4, true), false),
        ] {
            assert_eq!(leaves_to_others(old, new), leaves, "{old:?} then {new:?}");
        }
    }
}
