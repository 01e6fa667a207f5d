//! What a round decides: who takes part, what each site offered, and what it is granted.

use crate::allocation::{self, allocate};
use meridian_base::escrow::{Free, Late};
use meridian_base::limits::ESCROW_SITES_MAX;
use meridian_base::{GroupId, Timestamp, TxnId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// More tokens than any pool of any row has: bounds are 64 bits apart. Larger numbers come from
/// damaged messages; below it, sums over all sites do not overflow.
pub const TOKENS_MAX: i128 = 1 << 80;

/// A leader's attempt. Ordered by number, then by site, so two sites never share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ballot {
    /// From 1 on; 0 is below every ballot.
    pub number: u64,
    /// The leader's site.
    pub site: GroupId,
}

impl Ballot {
    /// Below every ballot: nothing was promised.
    pub const NONE: Ballot = Ballot { number: 0, site: GroupId(0) };
}

/// How many tokens of one pool a site wants (E14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    pub tokens: i128,
    /// A statement waits for all of them; see [`allocation::Site::is_waiting`].
    pub is_waiting: bool,
}

/// What a site wants of both pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wants {
    pub down: Want,
    pub up: Want,
}

/// What one site brings to a round, and what it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub offered: Free,
    pub granted: Free,
}

impl Part {
    /// How the site's grants change: what is granted less what was offered (E14).
    pub fn change(&self) -> Free {
        Free { down: self.granted.down - self.offered.down, up: self.granted.up - self.offered.up }
    }
}

/// What a round decides. A site without a part has nothing to do with the round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// At or above the timestamps of all credits that offered tokens came from. What is granted is
    /// usable above it (E15).
    pub hlc: Timestamp,
    pub parts: BTreeMap<GroupId, Part>,
}

/// A site's answer, as far as it goes into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offered {
    pub offer: Free,
    pub wants: Wants,
    pub hlc: Timestamp,
}

impl Value {
    /// Divides what was offered among those who offered (Algorithm 2, each pool by itself).
    pub(super) fn divide(offers: &BTreeMap<GroupId, Offered>) -> Value {
        let pool = |offered: fn(&Offered) -> (i128, Want)| {
            let sites = offers.values().map(offered);
            let sites = sites.map(|(offered, want)| allocation::Site {
                offered,
                wanted: want.tokens.clamp(0, TOKENS_MAX),
                is_waiting: want.is_waiting,
            });
            allocate(&sites.collect::<Vec<_>>())
        };
        let down = pool(|o| (o.offer.down, o.wants.down));
        let up = pool(|o| (o.offer.up, o.wants.up));
        let granted = down.into_iter().zip(up).map(|(down, up)| Free { down, up });
        let parts = offers.iter().zip(granted).map(|((site, o), granted)| (*site, Part { offered: o.offer, granted }));
        let hlc = offers.values().map(|o| o.hlc).max().unwrap_or_default();
        Value { hlc, parts: parts.collect() }
    }

    /// Whether a leader may have made it: no token is made or lost, and the numbers are in range.
    /// What is not comes from a damaged message.
    pub fn is_sound(&self) -> bool {
        let in_range = |part: &Part| is_count(part.offered) && is_count(part.granted);
        if self.parts.is_empty() || self.parts.len() > ESCROW_SITES_MAX || !self.parts.values().all(in_range) {
            return false;
        }
        let sum = self.parts.values().map(Part::change).fold((0, 0), |(down, up), c| (down + c.down, up + c.up));
        sum == (0, 0)
    }

    /// What the round changes at a site; `None`: it has no part.
    pub fn kept(&self, site: GroupId, instance: u64) -> Option<Kept> {
        let part = self.parts.get(&site)?;
        Some(Kept { instance, hlc: self.hlc, change: part.change() })
    }
}

/// Both pools can be numbers of tokens.
pub(super) fn is_count(tokens: Free) -> bool {
    let range = 0..=TOKENS_MAX;
    range.contains(&tokens.down) && range.contains(&tokens.up)
}

/// A value that a site has accepted, with the ballot of its leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    pub ballot: Ballot,
    pub value: Value,
}

/// A decision, as far as it concerns one site that may not have it (E18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The instance that decided it.
    pub instance: u64,
    /// [`Value::hlc`].
    pub hlc: Timestamp,
    /// How the site's grants change.
    pub change: Free,
}

impl Kept {
    pub(super) fn is_sound(&self) -> bool {
        let range = -TOKENS_MAX..=TOKENS_MAX;
        range.contains(&self.change.down) && range.contains(&self.change.up)
    }
    pub(super) fn grant(&self, incarnation: TxnId) -> Late {
        Late::grant(incarnation, self.change.down, self.change.up)
    }
}
