//! The rules of a group's primary and of gateways, each of which the laboratory can break to see
//! its checkers find that (`base::rules`; `docs/design/rules.md`).

meridian_base::rules! {
    /// 6: a commit that is sent again is certified again instead of getting its first answer.
    CommitNotIdempotent = "commit-not-idempotent" breaks commits_are_idempotent,
    /// 7: a new primary starts at its own clock, whatever its predecessor's ceiling was.
    SuccessorIgnoresCeiling = "successor-ignores-ceiling" breaks successors_wait_for_ceiling,
    /// 11: an entry below the garbage-collection threshold is certified against what is left.
    CertifyBelowGc = "certify-below-gc" breaks refuses_below_gc,
    /// 18: in-flight writers are read and not waited for.
    ReadInFlight = "read-in-flight" breaks awaits_in_flight,
    /// 19: a transaction passes rule 4 if `p ≤ B`, whatever version it used.
    SchemaLeaseByBoundOnly = "schema-lease-by-bound-only" breaks certifies_schema_version,
    /// 19: a delayed grant with a smaller number replaces a newer one.
    SchemaRegrantByDelayedMessage = "schema-regrant-by-delayed-message" breaks refuses_delayed_grants,
    /// 20: a fresh read stays at its gateway's time and misses what was acknowledged at a later
    /// timestamp.
    SnapshotDoesNotMove = "snapshot-does-not-move" breaks snapshots_move,
    /// 28: only the newest version's column mask is compared.
    NewestMaskOnly = "newest-mask-only" breaks compares_older_masks,
    /// Ranges are not certified: phantoms.
    SkipRangeCheck = "skip-range-check" breaks certifies_ranges,
    /// Descriptors that a transaction comes to use after its snapshot was taken are not looked at
    /// when it reads there.
    SchemaReadOnce = "schema-read-once" breaks rechecks_schema,
    /// 32: a schema step counts a group as lowered although it was granted a new lease meanwhile.
    StepNotTiedToGrants = "step-not-tied-to-grants" breaks ties_steps_to_grants,
    /// 1: a replica reads at one snapshot, whatever is prepared below it.
    ReplicaReadSkipsPrepared = "replica-read-skips-prepared" breaks replicas_await_prepared,
    /// 8: a read-only round over several groups looks at what is committed only.
    RoundIgnoresWriters = "round-ignores-writers" breaks rounds_see_writers,
    /// Reservations end when the vote is in the log and not with the outcome.
    DropReservationEarly = "drop-reservation-early" breaks reserves_until_outcome,
    /// 16: an error that ends a transaction is sent although it rests on a replica's old rows.
    ErrorNotConfirmed = "error-not-confirmed" breaks confirms_errors,
    /// 21: a read-only transaction over several groups, or at replicas, ends without a round.
    RoundLeftOut = "round-left-out" breaks confirms_reads,
    /// 21: a reserving read gives the values of its vote's time and reserves nothing until the
    /// commit's.
    ReservingReadHoldsNothing = "reserving-read-holds-nothing" breaks reserving_reads_hold,
    /// 2: reservations end with the votes, although the clock has not reached a future-time commit
    /// timestamp.
    ReleaseBeforeClock = "release-before-clock" breaks releases_by_clock,
    /// 24: GLOBAL entries are certified up to the commit timestamp and not `max_offset` further.
    GlobalReadsHoldToCommit = "global-reads-hold-to-commit" breaks global_reads_cover_offset,
    /// 25: a read-only transaction does not look at its GLOBAL entries again.
    GlobalReadsNotRechecked = "global-reads-not-rechecked" breaks rechecks_global_reads,
    /// GLOBAL rows are read at the clock, whatever another node may have acknowledged within
    /// `max_offset` of it.
    UncertaintySkipped = "uncertainty-skipped" breaks reads_uncertainty,
    /// GLOBAL rows are read at a replica that has not got as far as the read: what a lead that is
    /// too short would do if nobody waited.
    GlobalReadsNotClosed = "global-reads-not-closed" breaks global_reads_are_closed,
    /// Who reads a GLOBAL row of the near future tells it at once.
    ReaderDoesNotWait = "reader-does-not-wait" breaks readers_wait,
    /// Who writes a GLOBAL row acknowledges it before its time.
    WriterDoesNotWait = "writer-does-not-wait" breaks writers_wait,
    /// 9: what was read of GLOBAL rows is taken to hold as far as the replica's closed timestamp,
    /// whatever is prepared below it.
    GlobalReadsHoldToClosed = "global-reads-hold-to-closed" breaks global_reads_end_at_prepared,
    /// 31: a transaction with a new version of the schema may commit at or below the step that made
    /// it.
    CommitBelowSchemaStep = "commit-below-schema-step" breaks commits_above_schema_step,
    /// 84, 85: a delta of an escrow column counts tokens that others on their way take.
    EscrowIgnoresInFlight = "escrow-ignores-in-flight" breaks counts_deltas_in_flight,
    /// 85: a new primary does not know what prepared deltas take.
    EscrowIgnoresPrepared = "escrow-ignores-prepared" breaks counts_prepared_deltas,
    /// 86: what a delta gives counts before it is applied.
    EscrowCreditEarly = "escrow-credit-early" breaks credits_when_applied,
    /// 95: a share is computed from the newest applied one, whatever is in flight.
    EscrowFromApplied = "escrow-from-applied" breaks shares_count_in_flight,
    /// 96: a fold passes transactions that are not decided.
    EscrowFoldUndecided = "escrow-fold-undecided" breaks folds_decided_only,
    /// A delta that is refused for want of tokens may pass when it is sent again.
    EscrowRefusalNotLogged = "escrow-refusal-not-logged" breaks logs_refusals,
    /// 23: tokens are moved from or to a row that was deleted and inserted again.
    EscrowGrantOfAnother = "escrow-grant-of-another" breaks compares_incarnations,
    /// 87: who gives tokens trusts what it offered.
    EscrowTrustsOffer = "escrow-trusts-offer" breaks checks_givers,
    /// 33: tokens that are offered in a round of `majority` count as free.
    EscrowOfferNotHeld = "escrow-offer-not-held" breaks holds_offers,
    /// 33: a new primary does not know which offers are out.
    EscrowForgetsOffer = "escrow-forgets-offer" breaks inherits_offers,
    /// E20: a row is renewed while an offer of it is out.
    EscrowRenewsOffered = "escrow-renews-offered" breaks renews_settled,
    /// A replica fills an index before its timestamp is closed there.
    BuildNotClosed = "build-not-closed" breaks builds_when_closed,
    /// A replica fills an index while a transaction is prepared that may still commit below.
    BuildSkipsPrepared = "build-skips-prepared" breaks builds_await_prepared,
    /// What an index that is owed will be filled from is collected.
    BuildHoldsNothing = "build-holds-nothing" breaks owed_builds_hold,
    /// The conflict index knows nothing of a large transaction.
    LargeTouchesNothing = "large-touches-nothing" breaks keeps_stretches,
    /// The entry with the first part of a transaction may promise what the last one may.
    PartClosesEarly = "part-closes-early" breaks closes_with_last_part,
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
                | PlantedBug::EscrowRenewsOffered
        )
    }
}
