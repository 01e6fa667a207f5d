//! Bugs that the simulator plants to see its checkers find them (design: counterexamples).
//! Production never plants any.

meridian_base::planted_bugs! {
    /// 6: a commit that is sent again is certified again instead of getting its first answer.
    CommitNotIdempotent = "commit-not-idempotent",
    /// 7: a new primary starts at its own clock, whatever its predecessor's ceiling was.
    SuccessorIgnoresCeiling = "successor-ignores-ceiling",
    /// 11: an entry below the garbage-collection threshold is certified against what is left.
    CertifyBelowGc = "certify-below-gc",
    /// 18: in-flight writers are read and not waited for.
    ReadInFlight = "read-in-flight",
    /// 19: a transaction passes rule 4 if `p ≤ B`, whatever version it used.
    SchemaLeaseByBoundOnly = "schema-lease-by-bound-only",
    /// 19: a delayed grant with a smaller number replaces a newer one.
    SchemaRegrantByDelayedMessage = "schema-regrant-by-delayed-message",
    /// 20: a fresh read stays at its gateway's time and misses what was acknowledged at a later
    /// timestamp.
    SnapshotDoesNotMove = "snapshot-does-not-move",
    /// 28: only the newest version's column mask is compared.
    NewestMaskOnly = "newest-mask-only",
    /// Ranges are not certified: phantoms.
    SkipRangeCheck = "skip-range-check",
    /// Descriptors that a transaction comes to use after its snapshot was taken are not looked at
    /// when it reads there.
    SchemaReadOnce = "schema-read-once",
    /// 32: a schema step counts a group as lowered although it was granted a new lease meanwhile.
    StepNotTiedToGrants = "step-not-tied-to-grants",
    /// 1: a replica reads at one snapshot, whatever is prepared below it.
    ReplicaReadSkipsPrepared = "replica-read-skips-prepared",
    /// 8: a read-only round over several groups looks at what is committed only.
    RoundIgnoresWriters = "round-ignores-writers",
    /// Reservations end when the vote is in the log and not with the outcome.
    DropReservationEarly = "drop-reservation-early",
    /// 16: an error that ends a transaction is sent although it rests on a replica's old rows.
    ErrorNotConfirmed = "error-not-confirmed",
    /// 21: a read-only transaction over several groups, or at replicas, ends without a round.
    RoundLeftOut = "round-left-out",
    /// 21: a reserving read gives the values of its vote's time and reserves nothing until the
    /// commit's.
    ReservingReadHoldsNothing = "reserving-read-holds-nothing",
    /// 2: reservations end with the votes, although the clock has not reached a future-time commit
    /// timestamp.
    ReleaseBeforeClock = "release-before-clock",
    /// 24: GLOBAL entries are certified up to the commit timestamp and not `max_offset` further.
    GlobalReadsHoldToCommit = "global-reads-hold-to-commit",
    /// 25: a read-only transaction does not look at its GLOBAL entries again.
    GlobalReadsNotRechecked = "global-reads-not-rechecked",
    /// GLOBAL rows are read at the clock, whatever another node may have acknowledged within
    /// `max_offset` of it.
    UncertaintySkipped = "uncertainty-skipped",
    /// GLOBAL rows are read at a replica that has not got as far as the read: what a lead that is
    /// too short would do if nobody waited.
    GlobalReadsNotClosed = "global-reads-not-closed",
    /// Who reads a GLOBAL row of the near future tells it at once.
    ReaderDoesNotWait = "reader-does-not-wait",
    /// Who writes a GLOBAL row acknowledges it before its time.
    WriterDoesNotWait = "writer-does-not-wait",
    /// 9: what was read of GLOBAL rows is taken to hold as far as the replica's closed timestamp,
    /// whatever is prepared below it.
    GlobalReadsHoldToClosed = "global-reads-hold-to-closed",
    /// 31: a transaction with a new version of the schema may commit at or below the step that made
    /// it.
    CommitBelowSchemaStep = "commit-below-schema-step",
    /// 84, 85: a delta of an escrow column counts tokens that others on their way take.
    EscrowIgnoresInFlight = "escrow-ignores-in-flight",
    /// 85: a new primary does not know what prepared deltas take.
    EscrowIgnoresPrepared = "escrow-ignores-prepared",
    /// 86: what a delta gives counts before it is applied.
    EscrowCreditEarly = "escrow-credit-early",
    /// 95: a share is computed from the newest applied one, whatever is in flight.
    EscrowFromApplied = "escrow-from-applied",
    /// 96: a fold passes transactions that are not decided.
    EscrowFoldUndecided = "escrow-fold-undecided",
    /// A delta that is refused for want of tokens may pass when it is sent again.
    EscrowRefusalNotLogged = "escrow-refusal-not-logged",
    /// 23: tokens are moved from or to a row that was deleted and inserted again.
    EscrowGrantOfAnother = "escrow-grant-of-another",
    /// 87: who gives tokens trusts what it offered.
    EscrowTrustsOffer = "escrow-trusts-offer",
    /// 33: tokens that are offered in a round of `majority` count as free.
    EscrowOfferNotHeld = "escrow-offer-not-held",
    /// 33: a new primary does not know which offers are out.
    EscrowForgetsOffer = "escrow-forgets-offer",
}

impl PlantedBug {
    /// The rule is one of the shares of numbers (`base::escrow`): only changes of shares show it.
    pub fn is_of_shares(self) -> bool {
        matches!(
            self,
            PlantedBug::EscrowIgnoresInFlight
                | PlantedBug::EscrowIgnoresPrepared
                | PlantedBug::EscrowCreditEarly
                | PlantedBug::EscrowFromApplied
                | PlantedBug::EscrowFoldUndecided
                | PlantedBug::EscrowRefusalNotLogged
                | PlantedBug::EscrowGrantOfAnother
                | PlantedBug::EscrowTrustsOffer
                | PlantedBug::EscrowOfferNotHeld
                | PlantedBug::EscrowForgetsOffer
        )
    }
}
