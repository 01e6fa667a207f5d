//! The rules of this protocol, each of which tests break to see their checks find that
//! (`base::rules`; `docs/design/majority.md`).

meridian_base::rules! {
    /// 23: messages of another incarnation are taken for messages of the current one.
    IgnoresIncarnation = "majority-ignores-incarnation" breaks compares_incarnations,
    /// 33: a site takes its offer back when the round takes too long.
    GivesUp = "majority-gives-up" breaks holds_out,
    /// 33: tokens that are offered count as free.
    OfferNotHeld = "majority-offer-not-held" breaks holds_offers,
    /// 34: a decision is applied whatever instance it belongs to.
    AnyInstance = "majority-any-instance" breaks compares_instances,
    /// 36: a site that has applied a decision keeps nothing for the other sites.
    ForgetsDecision = "majority-forgets-decision" breaks keeps_decisions,
    /// 80: a site that is told that it has no part does not adopt what the teller keeps.
    DoesNotAdopt = "majority-does-not-adopt" breaks adopts,
    /// 81: a site computes its offer again for each ballot.
    OffersAgain = "majority-offers-again" breaks offers_once,
    /// 82: a decision sets the free tokens of a site to what is granted.
    SetsGrants = "majority-sets-grants" breaks adds_to_grants,
    /// 83: a leader proposes its own value although a site has accepted one.
    PrefersOwnValue = "majority-prefers-own-value" breaks prefers_accepted,
    /// 83: a site answers ballots below the one that it has promised.
    ForgetsPromise = "majority-forgets-promise" breaks keeps_promises,
    /// E15, 89: the value does not carry the time of the credits that it moves.
    NoCreditTime = "majority-no-credit-time" breaks carries_credit_time,
    /// E20: a new incarnation that keeps the grants begins while offers are out.
    SetIgnoresOffer = "majority-set-ignores-offer" breaks sets_await_offers,
    /// A leader asks before its own promise is durable, so a restarted one uses the ballot again.
    BallotNotWritten = "majority-ballot-not-written" breaks writes_ballots,
    /// A leader decides when half of the sites have accepted.
    HalfDecides = "majority-half-decides" breaks majority_decides,
}
