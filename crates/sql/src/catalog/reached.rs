//! Which indexes a transaction can reach: what garbage collection leaves alone.

use super::ids::FIRST_ID;
use super::job::Job;
use super::{Catalog, CatalogChange, Descriptor};
use meridian_base::{Error, Result, escrow};
use std::collections::BTreeSet;

/// The index ids that a version of the catalog reaches. See [`Catalog::reaches`].
#[derive(Clone, Debug)]
pub struct Reached {
    named: BTreeSet<u32>,
    /// Reserved: from the first up to and without the second.
    held: Vec<(u32, u32)>,
    next_id: u32,
}

impl Reached {
    /// Whether somebody can reach an index, or may yet: its id is not drawn, the system's own,
    /// named, or reserved.
    pub fn contains(&self, index: u32) -> bool {
        let index = escrow::index_number(index);
        index >= self.next_id
            || index < FIRST_ID
            || self.named.contains(&index)
            || self.held.iter().any(|(first, end)| (*first..*end).contains(&index))
    }
}

impl Catalog {
    /// What can be reached with this version or a later one.
    ///
    /// An id that is drawn, and neither named nor reserved, never will be again: a step names new
    /// ids, those that the version before it named, or those that it had reserved. (Simulations
    /// look at every step.)
    pub fn reaches(&self) -> Reached {
        let mut named = BTreeSet::new();
        let mut held = Vec::new();
        for descriptor in self.descriptors.values() {
            match &**descriptor {
                Descriptor::Table(table) => {
                    named.extend(table.indexes.iter().map(|i| i.id));
                    named.extend(table.with_shares().map(|e| e.index));
                    named.extend(table.moving.iter().flat_map(|m| &m.indexes));
                }
                Descriptor::Sequence(sequence) => {
                    named.insert(sequence.index_id);
                }
                Descriptor::Job(job) if !job.state.has_ended() => {
                    held.extend(job.tasks.iter().filter_map(|task| match task {
                        Job::Hold { first, end } => Some((*first, *end)),
                        _ => None,
                    }));
                }
                _ => {}
            }
        }
        Reached { named, held, next_id: self.next_id }
    }

    /// Fails if a change that was derived from this version adds something under an id that
    /// somebody else may have: ids are drawn from `next_id` on, or were reserved before.
    pub fn check_new_ids(&self, change: &CatalogChange) -> Result<()> {
        let reached = self.reaches();
        let is_held = |id: u32| reached.held.iter().any(|(first, end)| (*first..*end).contains(&id));
        let is_new = |d: &&Descriptor| !self.descriptors.contains_key(&d.id());
        // The system's own have their ids before they are stored.
        let is_own = |d: &&Descriptor| d.id().0 < FIRST_ID && matches!(d, Descriptor::Role(_) | Descriptor::LoginRules(_));
        let is_drawn = |d: &&Descriptor| d.id().0 < self.next_id && !is_held(d.id().0) && !is_own(d);
        match change.put.iter().filter(is_new).find(is_drawn) {
            Some(d) => Err(Error::internal(format!("a schema change uses the id {}, which others may have", d.id().0))),
            None => Ok(()),
        }
    }

    /// No step names an index again that the version before it did not reach.
    pub(super) fn invariant_what_is_dead_stays_so(&self, next: &Catalog) {
        let before = self.reaches();
        for index in &next.reaches().named {
            assert!(before.contains(*index), "index {index} was dead in {} and is named by {}", self.version.0, next.version.0);
        }
    }
}
