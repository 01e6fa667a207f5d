//! The rotation of the cluster's authority, as operators and nodes speak of it.

use meridian_base::NodeId;
use meridian_pki::rotation::{Phase, Report, StoredRotation};
use serde::{Deserialize, Serialize};

/// What an operator wants of a rotation ([`meridian_pki::rotation`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RotationStep {
    /// Tell how far it is.
    Look,
    /// Make a new authority, which everybody trusts beside the old one.
    Begin,
    /// The new one signs, and every node gets a certificate of it.
    Sign,
    /// The old one is trusted no more.
    Finish,
    /// Take the new one back, before it signs.
    Cancel,
}

/// How far a rotation is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RotationStatus {
    /// As the node asked knows it; `None`: there has been none.
    pub stored: Option<StoredRotation>,
    /// What the members say of themselves; `None`: this one does not answer.
    pub reports: Vec<(NodeId, Option<Report>)>,
}

impl RotationStatus {
    /// The nodes that are not where the present phase wants everybody.
    pub fn behind(&self) -> Vec<NodeId> {
        let Some(stored) = &self.stored else { return Vec::new() };
        let is_there = |report: &Report| match stored.phase {
            Phase::Introduced { new, .. } => report.trusts.contains(&new),
            Phase::Signing { new, .. } => report.shows == new,
            Phase::Settled { authority } => {
                let others = [stored.endorsed.old(), stored.new_authority()];
                report.shows == authority && others.iter().all(|a| *a == authority || !report.trusts.contains(a))
            }
        };
        let behind = self.reports.iter().filter(|(_, report)| !report.as_ref().is_some_and(is_there));
        behind.map(|(node, _)| *node).collect()
    }
}

/// For the catalog's primary: the next state of a rotation, if `expected` is the present one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepRotation {
    pub expected: Option<Phase>,
    pub next: StoredRotation,
}
