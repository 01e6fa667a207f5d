//! The rules of a pod, each of which tests break (`base::rules`). `docs/design/pod.md`
//! says which test finds which (rows 37 to 79). Some of the rules are kept by the
//! caller.

meridian_base::rules! {
    /// A host writes over records of its ring that L has taken and other hosts have not applied.
    SpaceOfTaken = "space-of-taken" breaks keeps_until_applied,
    /// 54: a vote that is durable does not raise `acked`.
    VotesNotAcked = "votes-not-acked" breaks acks_votes,
    /// 62: L closes timestamps by the clock, whatever is in other hosts' rings.
    ClosedByClock = "closed-by-clock" breaks closes_by_rings,
    /// 75: a lowered schema grant counts before every host has acknowledged it.
    GrantNotAcknowledged = "grant-not-acknowledged" breaks awaits_grants_seen,
    /// 76: a host's lease runs from when it read the echo.
    LeaseFromEcho = "lease-from-echo" breaks leases_from_asking,
    /// A host draws timestamps before L counts it.
    DrawsBeforeAdmitted = "draws-before-admitted" breaks draws_when_admitted,
    /// 59: a dead host's ring counts as drained before L has taken everything in it.
    SealedBeforeDrained = "sealed-before-drained" breaks drains_before_sealing,
    /// 42, P7: a transaction locks its tuples after it has drawn its timestamp.
    LocksAfterDraw = "locks-after-draw" breaks locks_before_draw,
    /// 43, P8: it validates its shared reads before that.
    ValidatesBeforeDraw = "validates-before-draw" breaks validates_after_draw,
    /// 44, P10: readers and validators ignore a writer in flight.
    ReadsInFlight = "reads-in-flight" breaks awaits_writers,
    /// 45, P9: a locked tuple whose writer's timestamp is not published is read as a free one.
    UnpublishedIsFree = "unpublished-is-free" breaks awaits_publication,
    /// 46, P11: a blind writer takes over the lock of a transaction in flight.
    BlindTakesOver = "blind-takes-over" breaks blind_writers_wait,
    /// A reader does not load lock and newest again after the body.
    LoadsOnce = "loads-once" breaks loads_again,
    /// 63, P17: a new tuple is linked after its transaction has drawn its timestamp and validated.
    LinksLate = "links-late" breaks links_before_draw,
    /// 58, P1: repair undoes what is in the dead host's ring.
    RepairUndoesRing = "repair-undoes-ring" breaks repair_keeps_ring,
    /// 47, P12: a key moves in while a writer of it is in flight at home.
    MovesInFlight = "moves-in-flight" breaks moves_in_at_rest,
    /// 48, P15: a tuple moves out before its owner's store has the newest version.
    MovesOutUnapplied = "moves-out-unapplied" breaks moves_out_applied,
    /// 48a: an older version is read in the owner's store before that has the newest.
    OldVersionUnapplied = "old-version-unapplied" breaks old_versions_are_applied,
    /// 49, P4: an owner's store applies records in another order than the log's.
    AppliesInAnyOrder = "applies-in-any-order" breaks applies_in_order,
    /// 52, P5: a read-only snapshot is the newest timestamp applied at its host.
    SnapshotIgnoresAcked = "snapshot-ignores-acked" breaks snapshots_cover_acked,
    /// 51, P6: a commit does not look again, under its host's lock, where its own keys are.
    PlaceNotRechecked = "place-not-rechecked" breaks rechecks_places,
    /// 50, P14: a tuple moves out while a transaction has its lock.
    MovesOutUnlocked = "moves-out-unlocked" breaks locks_to_move_out,
    /// 65, C2: a body is published before it is flushed.
    PublishesUnflushed = "publishes-unflushed" breaks flushes_before_publishing,
    /// 66, C3: a reader whose bit is not set invalidates nothing.
    NeverInvalidates = "never-invalidates" breaks invalidates,
    /// 67, C2: a new version keeps the other hosts' valid bits.
    KeepsValidBits = "keeps-valid-bits" breaks clears_valid_bits,
    /// 68, C4: a reader sets its bit whatever the word is by then.
    MarksBlindly = "marks-blindly" breaks marks_by_exchange,
    /// 69, C5: a block is used again while a reader may be inside.
    ReusesAtOnce = "reuses-at-once" breaks awaits_epochs,
    /// 70, C6: an aborted write's block is freed unflushed.
    FreesUnflushed = "frees-unflushed" breaks flushes_before_freeing,
    /// 71, C7: a dead host's bodies are used again while its machine's cache may write back.
    NoQuarantine = "no-quarantine" breaks quarantines,
    /// 59, P19: L takes a dead host's slots before the last of its ring is applied.
    TakesOverUnapplied = "takes-over-unapplied" breaks takes_over_applied,
    /// L takes a dead host's slots before it has applied as much as that host may have.
    TakesOverBehind = "takes-over-behind" breaks takes_over_caught_up,
    /// 60, P20: a slot's new owner takes what its index does not know for unwritten.
    GainsNothing = "gains-nothing" breaks gains_unknown_past,
    /// 74: a commit is sent to another host while its first copy may be in a ring.
    SentAgainAtOnce = "sent-again-at-once" breaks sends_again_when_over,
    /// 73: a dead host's valid bits stay for another machine with its number.
    DeadBitsStay = "dead-bits-stay" breaks clears_dead_bits,
}
