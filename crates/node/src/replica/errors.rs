//! What a group's replicas refuse, in the words that clients are told.

use meridian_base::{Conflict, Error, GroupId};
use std::time::Duration;

/// Certification failed: what the client sees if the server's own retries do not help.
pub fn conflict_error(conflict: &Conflict) -> Error {
    Error::retry(format!("could not serialize access: {}", conflict.reason))
        .detail(format!("key {:?}", conflict.key))
        .hint("Run the transaction again.")
}

/// What clients are told of a group that has to wait for the clock: at once, since nothing that
/// they could wait for changes it. What was asked has not happened, and will not: no message is on
/// its way for as long as such a wait takes at least.
pub(crate) fn behind_error(group: GroupId, by: Duration) -> Error {
    Error::sql(
        "57P03",
        format!(
            "the clock of this node is {} behind the last promise of group {group}; it was probably ahead before",
            in_words(by)
        ),
    )
    .hint(
        "If the clock is right now, run meridian debug accept-clock. The group serves again by itself when the clock gets there.",
    )
}

/// To the second: `59m50s`.
pub(crate) fn in_words(d: Duration) -> String {
    let s = d.as_secs();
    match (s / 3_600, s / 60 % 60, s % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, s) => format!("{m}m{s}s"),
        (h, m, s) => format!("{h}h{m}m{s}s"),
    }
}
