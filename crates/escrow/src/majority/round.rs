//! What a site stores of a row's rounds.

use super::value::{Accepted, Ballot, Kept};
use meridian_base::escrow::Free;
use meridian_base::{GroupId, TxnId};
use std::collections::BTreeMap;

/// The value of `P 02`: a site's state in the rounds of one incarnation of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// That of the share whose tokens are moved.
    pub incarnation: TxnId,
    /// The round that the site is in. The site has what it is to have of all rounds below it.
    pub instance: u64,
    /// The highest ballot that the site has answered in this instance.
    pub promised: Ballot,
    /// Tokens held for this instance until the site knows what it decided (E17). `None`: no offer
    /// is out. An offer of no tokens is an offer: the site may be granted some.
    pub offer: Option<Free>,
    /// What the site has accepted in this instance, under the highest ballot.
    pub accepted: Option<Accepted>,
    /// Decisions of rounds below `instance` for sites that have not been seen beyond them (E18).
    pub kept: BTreeMap<GroupId, Kept>,
}

impl Round {
    /// The state of a site that has taken part in no round of this incarnation.
    pub fn new(incarnation: TxnId) -> Round {
        Round { incarnation, instance: 0, promised: Ballot::NONE, offer: None, accepted: None, kept: BTreeMap::new() }
    }

    /// The sender of a message is in this instance, so it has what was decided below.
    pub(super) fn saw(&mut self, site: GroupId, instance: u64) {
        if self.kept.get(&site).is_some_and(|kept| kept.instance < instance) {
            self.kept.remove(&site);
        }
    }

    /// The next instances begin; nothing is out.
    pub(super) fn go_to(&mut self, instance: u64) {
        assert!(instance > self.instance, "instances follow each other");
        (self.instance, self.promised, self.offer, self.accepted) = (instance, Ballot::NONE, None, None);
    }

    /// What holds between two steps.
    pub fn invariant(&self, site: GroupId) {
        assert!(self.kept.values().all(|kept| kept.instance < self.instance), "what is kept is over: {self:?}");
        assert!(!self.kept.contains_key(&site), "a site keeps nothing for itself: {self:?}");
        assert!(self.accepted.as_ref().is_none_or(|a| a.ballot <= self.promised), "accepting is promising: {self:?}");
    }
}
