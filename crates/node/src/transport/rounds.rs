//! What nodes say to each other in rounds of `majority` (`docs/design/escrow.md`). Messages may be
//! lost, repeated and late; each site's timers say them again.

use meridian_base::escrow::Free;
use meridian_base::{GroupId, Key, TxnId};
use meridian_escrow::majority::Message;
use serde::{Deserialize, Serialize};

/// Rows in one frame. What a site says of a row has less than 9 KiB, and a few hundred bytes as a
/// rule.
pub(crate) const ROWS_MAX: usize = 256;

/// Messages about rows, each named by its share's key, from one site to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoundMessages {
    pub from: GroupId,
    pub rows: Vec<(Key, Message)>,
}

/// What a gateway asks the primary of its own site for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lead {
    pub share: Key,
    /// How many tokens the site is to have free.
    pub wanted: Free,
    /// A part of them is of no use.
    pub is_waiting: bool,
    /// That of the row's other shares, where the site has none.
    pub incarnation: Option<TxnId>,
}
