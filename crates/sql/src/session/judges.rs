//! Who may act as whom.

use crate::catalog::Catalog;
use meridian_base::{DescriptorId, Error, Result};
use std::sync::Arc;

/// The catalogs that say who may act as whom. A right that was taken away counts at once, also in a
/// block that began before, and in one that reads the past.
pub(crate) struct Judges {
    /// With the changes of the block, if it has made some.
    pub(super) catalog: Arc<Catalog>,
    /// If others have changed something since the block's first change.
    pub(super) others: Option<Others>,
}

/// What others have changed.
pub(super) struct Others {
    /// What the block's changes began from.
    pub(super) base: Arc<Catalog>,
    pub(super) newest: Arc<Catalog>,
}

impl Judges {
    pub fn only(newest: Arc<Catalog>) -> Judges {
        Judges { catalog: newest, others: None }
    }
    pub(super) fn role(&self, name: &str) -> Result<DescriptorId> {
        let missing = || Error::sql("22023", format!("role \"{name}\" does not exist"));
        self.catalog.find_role(name).map(|r| r.id).ok_or_else(missing)
    }
    /// Whether both say so of a role. One that others have dropped may nothing; one that the block
    /// has made is known to its own catalog alone.
    pub(super) fn agree(&self, role: DescriptorId, say: impl Fn(&Catalog) -> bool) -> bool {
        let is_new = |others: &Others| others.base.role_by_id(role).is_none();
        say(&self.catalog) && self.others.as_ref().is_none_or(|others| is_new(others) || say(&others.newest))
    }
    /// The one that has the last word about who may do what.
    pub fn last(&self) -> &Arc<Catalog> {
        self.others.as_ref().map_or(&self.catalog, |others| &others.newest)
    }
}
