//! What the node's data directory says of its groups, and of how it comes to an identity.

use crate::membership::departures::Departures;
use crate::membership::holdings::Holdings;
use crate::membership::pledges::Founding;
use meridian_base::runtime::Runtime;
use meridian_base::{GroupId, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// See the module.
pub(crate) struct Directory {
    /// Groups that this node has left.
    pub departures: Departures,
    /// Groups that this node holds a replica of, whatever its files say.
    pub holdings: Holdings,
    /// What this process answers while it has no identity.
    pub founding: Founding,
}

impl Directory {
    pub fn load(runtime: &Arc<dyn Runtime>) -> Result<Directory> {
        let departures = Departures::load(runtime)?;
        let holdings = Holdings::load(runtime)?;
        Ok(Directory { departures, holdings, founding: Founding::default() })
    }

    /// The groups that must have left something in its log or its store.
    pub fn held(&self) -> BTreeSet<GroupId> {
        self.holdings.all().difference(&self.departures.left()).copied().collect()
    }
}
