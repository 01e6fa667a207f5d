//! Bugs that the tests plant to see their checks find them (design: counterexamples). Production
//! plants none.

/// One rule left out. The numbers are rows of the counterexamples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PlantedBug {
    /// 23: messages of another incarnation are taken for messages of the current one.
    IgnoresIncarnation,
    /// 33: a site takes its offer back when the round takes too long.
    GivesUp,
    /// 33: tokens that are offered count as free.
    OfferNotHeld,
    /// 34: a decision is applied whatever instance it belongs to.
    AnyInstance,
    /// 36: a site that has applied a decision keeps nothing for the other sites.
    ForgetsDecision,
    /// 80: a site that is told that it has no part does not adopt what the teller keeps.
    DoesNotAdopt,
    /// 81: a site computes its offer again for each ballot.
    OffersAgain,
    /// 82: a decision sets the free tokens of a site to what is granted.
    SetsGrants,
    /// 83: a leader proposes its own value although a site has accepted one.
    PrefersOwnValue,
    /// 83: a site answers ballots below the one that it has promised.
    ForgetsPromise,
    /// E15, 89: the value does not carry the time of the credits that it moves.
    NoCreditTime,
    /// E20: a new incarnation that keeps the grants begins while offers are out.
    SetIgnoresOffer,
    /// A leader asks before its own promise is durable, so a restarted one uses the ballot again.
    BallotNotWritten,
    /// A leader decides when half of the sites have accepted.
    HalfDecides,
}

impl PlantedBug {
    /// All of them, for a campaign.
    pub const ALL: [PlantedBug; 14] = [
        PlantedBug::IgnoresIncarnation,
        PlantedBug::GivesUp,
        PlantedBug::OfferNotHeld,
        PlantedBug::AnyInstance,
        PlantedBug::ForgetsDecision,
        PlantedBug::DoesNotAdopt,
        PlantedBug::OffersAgain,
        PlantedBug::SetsGrants,
        PlantedBug::PrefersOwnValue,
        PlantedBug::ForgetsPromise,
        PlantedBug::NoCreditTime,
        PlantedBug::SetIgnoresOffer,
        PlantedBug::BallotNotWritten,
        PlantedBug::HalfDecides,
    ];

    /// As on a command line: `majority-gives-up`.
    pub fn name(self) -> &'static str {
        match self {
            PlantedBug::IgnoresIncarnation => "majority-ignores-incarnation",
            PlantedBug::GivesUp => "majority-gives-up",
            PlantedBug::OfferNotHeld => "majority-offer-not-held",
            PlantedBug::AnyInstance => "majority-any-instance",
            PlantedBug::ForgetsDecision => "majority-forgets-decision",
            PlantedBug::DoesNotAdopt => "majority-does-not-adopt",
            PlantedBug::OffersAgain => "majority-offers-again",
            PlantedBug::SetsGrants => "majority-sets-grants",
            PlantedBug::PrefersOwnValue => "majority-prefers-own-value",
            PlantedBug::ForgetsPromise => "majority-forgets-promise",
            PlantedBug::NoCreditTime => "majority-no-credit-time",
            PlantedBug::SetIgnoresOffer => "majority-set-ignores-offer",
            PlantedBug::BallotNotWritten => "majority-ballot-not-written",
            PlantedBug::HalfDecides => "majority-half-decides",
        }
    }
    /// The reverse of [`PlantedBug::name`].
    pub fn from_name(name: &str) -> Option<PlantedBug> {
        PlantedBug::ALL.into_iter().find(|b| b.name() == name)
    }
}

/// A set of planted bugs; empty by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PlantedBugs(u16);

impl PlantedBugs {
    /// None: production.
    pub const NONE: PlantedBugs = PlantedBugs(0);

    /// One bug.
    pub fn only(bug: PlantedBug) -> PlantedBugs {
        PlantedBugs(1 << bug as u16)
    }
    /// Whether this rule is left out.
    pub fn has(self, bug: PlantedBug) -> bool {
        self.0 & (1 << bug as u16) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for bug in PlantedBug::ALL {
            assert_eq!(PlantedBug::from_name(bug.name()), Some(bug));
            assert_eq!(PlantedBug::ALL.into_iter().filter(|b| PlantedBugs::only(bug).has(*b)).count(), 1);
        }
    }
}
