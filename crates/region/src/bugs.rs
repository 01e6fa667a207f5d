//! Bugs that the simulator plants to see its checkers find them (design: counterexamples).
//! Production never plants any.

/// One rule left out. The numbers are rows of the counterexamples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PlantedBug {
    /// 6: a commit that is sent again is certified again instead of getting its first answer.
    CommitNotIdempotent,
    /// 7: a new primary starts at its own clock, whatever its predecessor's ceiling was.
    SuccessorIgnoresCeiling,
    /// 11: an entry below the garbage-collection threshold is certified against what is left.
    CertifyBelowGc,
    /// 18: in-flight writers are read and not waited for.
    ReadInFlight,
    /// 19: a transaction passes rule 4 if `p ≤ B`, whatever version it used.
    SchemaLeaseByBoundOnly,
    /// 19: a delayed grant with a smaller number replaces a newer one.
    SchemaRegrantByDelayedMessage,
    /// 20: a fresh read stays at its gateway's time and misses what was acknowledged at a later
    /// timestamp.
    SnapshotDoesNotMove,
    /// 28: only the newest version's column mask is compared.
    NewestMaskOnly,
    /// Ranges are not certified: phantoms.
    SkipRangeCheck,
    /// Descriptors that a transaction comes to use after its snapshot was taken are not looked at
    /// when it reads there.
    SchemaReadOnce,
    /// 32: a schema step counts a group as lowered although it was granted a new lease meanwhile.
    StepNotTiedToGrants,
    /// 1: a replica reads at one snapshot, whatever is prepared below it.
    ReplicaReadSkipsPrepared,
    /// 8: a read-only round over several groups looks at what is committed only.
    RoundIgnoresWriters,
    /// Reservations end when the vote is in the log and not with the outcome.
    DropReservationEarly,
    /// 16: an error that ends a transaction is sent although it rests on a replica's old rows.
    ErrorNotConfirmed,
    /// 21: a read-only transaction over several groups, or at replicas, ends without a round.
    RoundLeftOut,
    /// 21: a reserving read gives the values of its vote's time and reserves nothing until the
    /// commit's.
    ReservingReadHoldsNothing,
    /// 2: reservations end with the votes, although the clock has not reached a future-time commit
    /// timestamp.
    ReleaseBeforeClock,
    /// 24: GLOBAL entries are certified up to the commit timestamp and not `max_offset` further.
    GlobalReadsHoldToCommit,
    /// 25: a read-only transaction does not look at its GLOBAL entries again.
    GlobalReadsNotRechecked,
    /// GLOBAL rows are read at the clock, whatever another node may have acknowledged within
    /// `max_offset` of it.
    UncertaintySkipped,
    /// GLOBAL rows are read at a replica that has not got as far as the read: what a lead that is
    /// too short would do if nobody waited.
    GlobalReadsNotClosed,
    /// Who reads a GLOBAL row of the near future tells it at once.
    ReaderDoesNotWait,
    /// Who writes a GLOBAL row acknowledges it before its time.
    WriterDoesNotWait,
    /// 9: what was read of GLOBAL rows is taken to hold as far as the replica's closed timestamp,
    /// whatever is prepared below it.
    GlobalReadsHoldToClosed,
    /// 31: a transaction with a new version of the schema may commit at or below the step that made
    /// it.
    CommitBelowSchemaStep,
    /// 84, 85: a delta of an escrow column counts tokens that others on their way take.
    EscrowIgnoresInFlight,
    /// 85: a new primary does not know what prepared deltas take.
    EscrowIgnoresPrepared,
    /// 86: what a delta gives counts before it is applied.
    EscrowCreditEarly,
    /// 95: a share is computed from the newest applied one, whatever is in flight.
    EscrowFromApplied,
    /// 96: a fold passes transactions that are not decided.
    EscrowFoldUndecided,
    /// A delta that is refused for want of tokens may pass when it is sent again.
    EscrowRefusalNotLogged,
    /// 23: tokens are moved from or to a row that was deleted and inserted again.
    EscrowGrantOfAnother,
    /// 87: who gives tokens trusts what it offered.
    EscrowTrustsOffer,
    /// 33: tokens that are offered in a round of `majority` count as free.
    EscrowOfferNotHeld,
    /// 33: a new primary does not know which offers are out.
    EscrowForgetsOffer,
}

impl PlantedBug {
    /// All of them, for a campaign.
    pub const ALL: [PlantedBug; 36] = [
        PlantedBug::CommitNotIdempotent,
        PlantedBug::SuccessorIgnoresCeiling,
        PlantedBug::CertifyBelowGc,
        PlantedBug::ReadInFlight,
        PlantedBug::SchemaLeaseByBoundOnly,
        PlantedBug::SchemaRegrantByDelayedMessage,
        PlantedBug::SnapshotDoesNotMove,
        PlantedBug::NewestMaskOnly,
        PlantedBug::SkipRangeCheck,
        PlantedBug::SchemaReadOnce,
        PlantedBug::StepNotTiedToGrants,
        PlantedBug::ReplicaReadSkipsPrepared,
        PlantedBug::RoundIgnoresWriters,
        PlantedBug::DropReservationEarly,
        PlantedBug::ErrorNotConfirmed,
        PlantedBug::RoundLeftOut,
        PlantedBug::ReservingReadHoldsNothing,
        PlantedBug::ReleaseBeforeClock,
        PlantedBug::GlobalReadsHoldToCommit,
        PlantedBug::GlobalReadsNotRechecked,
        PlantedBug::UncertaintySkipped,
        PlantedBug::GlobalReadsNotClosed,
        PlantedBug::ReaderDoesNotWait,
        PlantedBug::WriterDoesNotWait,
        PlantedBug::GlobalReadsHoldToClosed,
        PlantedBug::CommitBelowSchemaStep,
        PlantedBug::EscrowIgnoresInFlight,
        PlantedBug::EscrowIgnoresPrepared,
        PlantedBug::EscrowCreditEarly,
        PlantedBug::EscrowFromApplied,
        PlantedBug::EscrowFoldUndecided,
        PlantedBug::EscrowRefusalNotLogged,
        PlantedBug::EscrowGrantOfAnother,
        PlantedBug::EscrowTrustsOffer,
        PlantedBug::EscrowOfferNotHeld,
        PlantedBug::EscrowForgetsOffer,
    ];

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

    /// As on a command line: `commit-not-idempotent`.
    pub fn name(self) -> &'static str {
        match self {
            PlantedBug::CommitNotIdempotent => "commit-not-idempotent",
            PlantedBug::SuccessorIgnoresCeiling => "successor-ignores-ceiling",
            PlantedBug::CertifyBelowGc => "certify-below-gc",
            PlantedBug::ReadInFlight => "read-in-flight",
            PlantedBug::SchemaLeaseByBoundOnly => "schema-lease-by-bound-only",
            PlantedBug::SchemaRegrantByDelayedMessage => "schema-regrant-by-delayed-message",
            PlantedBug::SnapshotDoesNotMove => "snapshot-does-not-move",
            PlantedBug::NewestMaskOnly => "newest-mask-only",
            PlantedBug::SkipRangeCheck => "skip-range-check",
            PlantedBug::SchemaReadOnce => "schema-read-once",
            PlantedBug::StepNotTiedToGrants => "step-not-tied-to-grants",
            PlantedBug::ReplicaReadSkipsPrepared => "replica-read-skips-prepared",
            PlantedBug::RoundIgnoresWriters => "round-ignores-writers",
            PlantedBug::DropReservationEarly => "drop-reservation-early",
            PlantedBug::ErrorNotConfirmed => "error-not-confirmed",
            PlantedBug::RoundLeftOut => "round-left-out",
            PlantedBug::ReservingReadHoldsNothing => "reserving-read-holds-nothing",
            PlantedBug::ReleaseBeforeClock => "release-before-clock",
            PlantedBug::GlobalReadsHoldToCommit => "global-reads-hold-to-commit",
            PlantedBug::GlobalReadsNotRechecked => "global-reads-not-rechecked",
            PlantedBug::UncertaintySkipped => "uncertainty-skipped",
            PlantedBug::GlobalReadsNotClosed => "global-reads-not-closed",
            PlantedBug::ReaderDoesNotWait => "reader-does-not-wait",
            PlantedBug::WriterDoesNotWait => "writer-does-not-wait",
            PlantedBug::GlobalReadsHoldToClosed => "global-reads-hold-to-closed",
            PlantedBug::CommitBelowSchemaStep => "commit-below-schema-step",
            PlantedBug::EscrowIgnoresInFlight => "escrow-ignores-in-flight",
            PlantedBug::EscrowIgnoresPrepared => "escrow-ignores-prepared",
            PlantedBug::EscrowCreditEarly => "escrow-credit-early",
            PlantedBug::EscrowFromApplied => "escrow-from-applied",
            PlantedBug::EscrowFoldUndecided => "escrow-fold-undecided",
            PlantedBug::EscrowRefusalNotLogged => "escrow-refusal-not-logged",
            PlantedBug::EscrowGrantOfAnother => "escrow-grant-of-another",
            PlantedBug::EscrowTrustsOffer => "escrow-trusts-offer",
            PlantedBug::EscrowOfferNotHeld => "escrow-offer-not-held",
            PlantedBug::EscrowForgetsOffer => "escrow-forgets-offer",
        }
    }
    /// The reverse of [`PlantedBug::name`].
    pub fn from_name(name: &str) -> Option<PlantedBug> {
        PlantedBug::ALL.into_iter().find(|b| b.name() == name)
    }
}

/// A set of planted bugs; empty by default. Testing it is one `and`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PlantedBugs(u64);

impl PlantedBugs {
    /// None: production.
    pub const NONE: PlantedBugs = PlantedBugs(0);

    /// One bug.
    pub fn only(bug: PlantedBug) -> PlantedBugs {
        PlantedBugs(1 << bug as u8)
    }
    /// Whether this rule is left out.
    #[inline]
    pub fn has(self, bug: PlantedBug) -> bool {
        self.0 & (1 << bug as u8) != 0
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
