//! What is the case when a primary is asked.

use crate::state::GroupState;
use crate::versions::Versions;
use meridian_base::{Clock, Timestamp};

/// What is the case when a primary is asked.
pub struct Moment<'a> {
    /// What the applied log says.
    pub state: &'a GroupState,
    /// The applied versions, of the same log position.
    pub versions: &'a dyn Versions,
    /// Where timestamps are drawn.
    pub clock: &'a Clock,
    /// Unix time.
    pub physical_micros: u64,
}

impl Moment<'_> {
    /// What the clock shows.
    pub fn now(&self) -> Timestamp {
        self.clock.now(self.physical_micros)
    }
}
