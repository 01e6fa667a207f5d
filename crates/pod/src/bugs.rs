//! Rules left out on purpose, to see that tests find it (design: counterexamples, rows 37 to 79).
//! Production never leaves any out. `docs/design/pod.md` says which test finds which. Some of the
//! rules are kept by the caller, who asks for their bugs as well.

meridian_base::planted_bugs! {
    /// A host writes over records of its ring that L has taken and other hosts have not applied.
    SpaceOfTaken = "space-of-taken",
    /// 54: a vote that is durable does not raise `acked`.
    VotesNotAcked = "votes-not-acked",
    /// 62: L closes timestamps by the clock, whatever is in other hosts' rings.
    ClosedByClock = "closed-by-clock",
    /// 75: a lowered schema grant counts before every host has acknowledged it.
    GrantNotAcknowledged = "grant-not-acknowledged",
    /// 76: a host's lease runs from when it read the echo.
    LeaseFromEcho = "lease-from-echo",
    /// A host draws timestamps before L counts it.
    DrawsBeforeAdmitted = "draws-before-admitted",
    /// 59: a dead host's ring counts as drained before L has taken everything in it.
    SealedBeforeDrained = "sealed-before-drained",
    /// 42, P7: a transaction locks its tuples after it has drawn its timestamp.
    LocksAfterDraw = "locks-after-draw",
    /// 43, P8: it validates its shared reads before that.
    ValidatesBeforeDraw = "validates-before-draw",
    /// 44, P10: readers and validators ignore a writer in flight.
    ReadsInFlight = "reads-in-flight",
    /// 45, P9: a locked tuple whose writer's timestamp is not published is read as a free one.
    UnpublishedIsFree = "unpublished-is-free",
    /// 46, P11: a blind writer takes over the lock of a transaction in flight.
    BlindTakesOver = "blind-takes-over",
    /// A reader does not load lock and newest again after the body.
    LoadsOnce = "loads-once",
    /// 63, P17: a new tuple is linked after its transaction has drawn its timestamp and validated.
    LinksLate = "links-late",
    /// 58, P1: repair undoes what is in the dead host's ring.
    RepairUndoesRing = "repair-undoes-ring",
    /// 47, P12: a key moves in while a writer of it is in flight at home.
    MovesInFlight = "moves-in-flight",
    /// 48, P15: a tuple moves out before its owner's store has the newest version.
    MovesOutUnapplied = "moves-out-unapplied",
    /// 48a: an older version is read in the owner's store before that has the newest.
    OldVersionUnapplied = "old-version-unapplied",
    /// 49, P4: an owner's store applies records in another order than the log's.
    AppliesInAnyOrder = "applies-in-any-order",
    /// 52, P5: a read-only snapshot is the newest timestamp applied at its host.
    SnapshotIgnoresAcked = "snapshot-ignores-acked",
    /// 51, P6: a commit does not look again, under its host's lock, where its own keys are.
    PlaceNotRechecked = "place-not-rechecked",
    /// 50, P14: a tuple moves out while a transaction has its lock.
    MovesOutUnlocked = "moves-out-unlocked",
    /// 65, C2: a body is published before it is flushed.
    PublishesUnflushed = "publishes-unflushed",
    /// 66, C3: a reader whose bit is not set invalidates nothing.
    NeverInvalidates = "never-invalidates",
    /// 67, C2: a new version keeps the other hosts' valid bits.
    KeepsValidBits = "keeps-valid-bits",
    /// 68, C4: a reader sets its bit whatever the word is by then.
    MarksBlindly = "marks-blindly",
    /// 69, C5: a block is used again while a reader may be inside.
    ReusesAtOnce = "reuses-at-once",
    /// 70, C6: an aborted write's block is freed unflushed.
    FreesUnflushed = "frees-unflushed",
    /// 71, C7: a dead host's bodies are used again while its machine's cache may write back.
    NoQuarantine = "no-quarantine",
    /// 59, P19: L takes a dead host's slots before the last of its ring is applied.
    TakesOverUnapplied = "takes-over-unapplied",
    /// L takes a dead host's slots before it has applied as much as that host may have.
    TakesOverBehind = "takes-over-behind",
    /// 60, P20: a slot's new owner takes what its index does not know for unwritten.
    GainsNothing = "gains-nothing",
    /// 74: a commit is sent to another host while its first copy may be in a ring.
    SentAgainAtOnce = "sent-again-at-once",
    /// 73: a dead host's valid bits stay for another machine with its number.
    DeadBitsStay = "dead-bits-stay",
}
