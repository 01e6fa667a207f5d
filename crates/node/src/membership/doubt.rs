//! Which transactions that are prepared here depend on groups that are lost.

use crate::membership::shared::Shared;
use meridian_base::{GroupId, limits};
use std::collections::BTreeMap;

/// Takes note of which transactions prepared here depend on groups that are lost. Called regularly.
pub(crate) fn look(shared: &Shared) {
    // Many transactions wait for few groups.
    let mut lost: BTreeMap<GroupId, bool> = BTreeMap::new();
    for replica in shared.groups.all() {
        let waiting = match replica.is_serving() {
            true => replica.transactions(),
            false => Vec::new(),
        };
        let old = waiting.into_iter().filter(|t| t.age_micros >= limits::PREPARE_TIMEOUT.as_micros() as u64);
        let mut is_lost = |group: &GroupId| *lost.entry(*group).or_insert_with(|| shared.check_reach(*group).is_err());
        let in_doubt = old.filter_map(|t| Some((t.id, t.waits_for.into_iter().find(&mut is_lost)?)));
        *replica.in_doubt.lock() = in_doubt.collect();
    }
}
