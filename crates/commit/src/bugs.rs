//! Bugs that the model and the simulator plant to see their checkers find them (design:
//! counterexamples). Production plants none.

meridian_base::planted_bugs! {
    /// 3: a participant that has waited long enough for a vote decides that the transaction aborts.
    DecideByBound = "decide-by-bound",
    /// 4: an outcome is acknowledged as soon as it is known.
    AckBeforeDurable = "ack-before-durable",
    /// 5: a Prepare whose record was dropped is certified as a new one.
    LatePrepareAsNew = "late-prepare-as-new",
    /// 12: a participant that was only read does not log its vote.
    UnloggedReadOnlyVote = "unlogged-read-only-vote",
    /// 17: a Prepare waits at a group for as long as it takes.
    WaitWithoutBound = "wait-without-bound",
    /// A vote is sent when its record is handed to the log.
    VoteBeforeDurable = "vote-before-durable",
    /// A new primary answers from what it remembers: it has no record, so it says NO.
    AnswerFromMemory = "answer-from-memory",
    /// A commit is forgotten when its id is old enough, whoever has not acknowledged it.
    ForgetBeforeAcks = "forget-before-acks",
}
