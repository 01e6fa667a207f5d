//! What nodes tell an operator of transactions over several groups.

use meridian_base::{GroupId, Timestamp, TxnId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A transaction over several groups that is prepared at one of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PreparedTransaction {
    pub id: TxnId,
    pub group: GroupId,
    /// Since it was sent to its participants.
    pub age_micros: u64,
    pub participants: Vec<GroupId>,
    /// Whose votes are missing.
    pub waits_for: Vec<GroupId>,
    /// What it waits for if no vote is missing.
    pub stage: String,
}

/// What a node knows of a transaction over several groups.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Knowledge {
    /// It is the gateway, and still counts the votes.
    pub is_counting: bool,
    /// What the log says of each group that the node leads, with the votes of others that have
    /// come.
    pub groups: Vec<Known>,
}

/// See [`Knowledge`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Known {
    pub group: GroupId,
    pub said: Said,
    /// While it is prepared, or committed and not acknowledged by all; else empty.
    pub participants: Vec<GroupId>,
    /// `None` is a NO.
    pub votes: BTreeMap<GroupId, Option<Timestamp>>,
    /// The id is not new here any more: who asks for a vote that is not in the log is told
    /// «forgotten».
    pub is_old: bool,
}

/// [`meridian_base::Standing`], on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    Nothing,
    Yes(Timestamp),
    No,
    Committed { vote: Timestamp, at: Timestamp },
    Aborted,
}
