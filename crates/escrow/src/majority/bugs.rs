//! Bugs that the tests plant to see their checks find them (design: counterexamples). Production
//! plants none.

meridian_base::planted_bugs! {
    /// 23: messages of another incarnation are taken for messages of the current one.
    IgnoresIncarnation = "majority-ignores-incarnation",
    /// 33: a site takes its offer back when the round takes too long.
    GivesUp = "majority-gives-up",
    /// 33: tokens that are offered count as free.
    OfferNotHeld = "majority-offer-not-held",
    /// 34: a decision is applied whatever instance it belongs to.
    AnyInstance = "majority-any-instance",
    /// 36: a site that has applied a decision keeps nothing for the other sites.
    ForgetsDecision = "majority-forgets-decision",
    /// 80: a site that is told that it has no part does not adopt what the teller keeps.
    DoesNotAdopt = "majority-does-not-adopt",
    /// 81: a site computes its offer again for each ballot.
    OffersAgain = "majority-offers-again",
    /// 82: a decision sets the free tokens of a site to what is granted.
    SetsGrants = "majority-sets-grants",
    /// 83: a leader proposes its own value although a site has accepted one.
    PrefersOwnValue = "majority-prefers-own-value",
    /// 83: a site answers ballots below the one that it has promised.
    ForgetsPromise = "majority-forgets-promise",
    /// E15, 89: the value does not carry the time of the credits that it moves.
    NoCreditTime = "majority-no-credit-time",
    /// E20: a new incarnation that keeps the grants begins while offers are out.
    SetIgnoresOffer = "majority-set-ignores-offer",
    /// A leader asks before its own promise is durable, so a restarted one uses the ballot again.
    BallotNotWritten = "majority-ballot-not-written",
    /// A leader decides when half of the sites have accepted.
    HalfDecides = "majority-half-decides",
}
