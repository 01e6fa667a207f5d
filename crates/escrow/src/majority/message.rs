//! What sites say to each other. The row's key travels outside.

use super::value::{Accepted, Ballot, Kept, Value, Wants, is_count};
use meridian_base::escrow::Free;
use meridian_base::limits::ESCROW_SITES_MAX;
use meridian_base::{GroupId, Timestamp, TxnId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// More rounds and ballots than there ever are: a larger number comes from a damaged message, and
/// would stand in the way of all later ones.
const NUMBER_MAX: u64 = 1 << 62;
/// No honest site is further ahead than this: with a ballot each millisecond it takes 49 days to
/// get there.
const AHEAD_MAX: u64 = 1 << 32;

/// A message about one row. Every one may be lost, repeated, late and out of order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Whose tokens it is about (E15).
    pub incarnation: TxnId,
    /// The round that the sender is in, or was in when it became the round's leader. It never goes
    /// back, so it shows which decisions the sender has.
    pub instance: u64,
    /// The sender's clock when it sent this. The receiver's clock passes it first (E15).
    pub hlc: Timestamp,
    pub kind: Kind,
}

/// See [`Message`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Phase 1: a leader asks for a promise and for an offer.
    Ask { ballot: Ballot },
    /// The answer to [`Kind::Ask`]. `offer`: `None` if the site has no part: it promises only.
    /// `accepted`: what it has accepted in this instance, under the highest ballot.
    Promise { ballot: Ballot, offer: Option<Free>, wants: Wants, accepted: Option<Accepted> },
    /// The answer to an Ask or an Accept below the ballot that the site has promised.
    Outbid { ballot: Ballot, promised: Ballot },
    /// Phase 2: a leader proposes a value.
    Accept { ballot: Ballot, value: Value },
    /// The answer to [`Kind::Accept`].
    Accepted { ballot: Ballot },
    /// A majority has accepted this value.
    Decided { value: Value },
    /// The sender has seen that it is behind the receiver: «what have I missed?»
    Fetch,
    /// The answer to [`Kind::Fetch`], and to an ask in an instance that is over at the sender. Of
    /// the rounds from the receiver's own up to the sender's, `part` is the only one that it has
    /// part in. `kept`: everything that the sender keeps for other sites, which the receiver adopts
    /// (E19).
    Behind { part: Option<Kept>, kept: BTreeMap<GroupId, Kept> },
    /// The incarnation is over at the sender (E20).
    Over,
}

impl Message {
    /// Whether a site may have sent it. What is not sound is ignored: it would break a sum, or a
    /// counter.
    pub(super) fn is_sound(&self, from: GroupId) -> bool {
        let is_ballot = |ballot: &Ballot| ballot.number > 0 && ballot.number < NUMBER_MAX;
        let is_accepted = |accepted: &Accepted| is_ballot(&accepted.ballot) && accepted.value.is_sound();
        let is_kept = |kept: &Kept| kept.instance < self.instance && kept.is_sound();
        let is_sound = match &self.kind {
            Kind::Ask { ballot } => is_ballot(ballot) && ballot.site == from,
            Kind::Promise { ballot, offer, accepted, .. } => {
                is_ballot(ballot) && offer.is_none_or(is_count) && accepted.as_ref().is_none_or(is_accepted)
            }
            Kind::Outbid { ballot, promised } => is_ballot(ballot) && is_ballot(promised) && ballot < promised,
            Kind::Accept { ballot, value } => is_ballot(ballot) && ballot.site == from && value.is_sound(),
            Kind::Accepted { ballot } => is_ballot(ballot),
            Kind::Decided { value } => value.is_sound(),
            Kind::Behind { part, kept } => kept.len() < ESCROW_SITES_MAX && part.iter().chain(kept.values()).all(is_kept),
            Kind::Fetch | Kind::Over => true,
        };
        is_sound && self.instance < NUMBER_MAX
    }

    /// Whether its numbers may be true for a site that knows of this instance and ballot. A number
    /// that is far ahead is ignored: the site would follow it, and leave nothing for those who come
    /// next.
    pub(super) fn is_near(&self, instance: u64, ballot: u64) -> bool {
        let is_near = |ahead: u64, known: u64| ahead <= known.saturating_add(AHEAD_MAX);
        let number = match &self.kind {
            Kind::Ask { ballot } | Kind::Accept { ballot, .. } => ballot.number,
            Kind::Outbid { promised, .. } => promised.number,
            _ => 0,
        };
        is_near(self.instance, instance) && is_near(number, ballot)
    }

    /// Whether all sites that it speaks of are among these.
    pub fn is_of(&self, sites: &BTreeSet<GroupId>) -> bool {
        let all_of = |value: &Value| value.parts.keys().all(|site| sites.contains(site));
        match &self.kind {
            Kind::Promise { accepted, .. } => accepted.as_ref().is_none_or(|accepted| all_of(&accepted.value)),
            Kind::Accept { value, .. } | Kind::Decided { value } => all_of(value),
            Kind::Behind { kept, .. } => kept.keys().all(|site| sites.contains(site)),
            Kind::Ask { .. } | Kind::Outbid { .. } | Kind::Accepted { .. } | Kind::Fetch | Kind::Over => true,
        }
    }
}
