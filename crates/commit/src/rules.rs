//! The rules of commits over several groups, each of which the model and the simulator break to see
//! their checkers find that (`base::rules`; `docs/design/rules.md`).

meridian_base::rules! {
    /// 3: a participant that has waited long enough for a vote decides that the transaction aborts.
    DecideByBound = "decide-by-bound" breaks decides_by_votes,
    /// 4: an outcome is acknowledged as soon as it is known.
    AckBeforeDurable = "ack-before-durable" breaks acks_when_durable,
    /// 5: a Prepare whose record was dropped is certified as a new one.
    LatePrepareAsNew = "late-prepare-as-new" breaks refuses_late_prepares,
    /// 12: a participant that was only read does not log its vote.
    UnloggedReadOnlyVote = "unlogged-read-only-vote" breaks logs_every_vote,
    /// 17: a Prepare waits at a group for as long as it takes.
    WaitWithoutBound = "wait-without-bound" breaks bounds_waits,
    /// A vote is sent when its record is handed to the log.
    VoteBeforeDurable = "vote-before-durable" breaks votes_when_durable,
    /// A new primary answers from what it remembers: it has no record, so it says NO.
    AnswerFromMemory = "answer-from-memory" breaks answers_from_log,
    /// A commit is forgotten when its id is old enough, also if a participant has not acknowledged
    /// it.
    ForgetBeforeAcks = "forget-before-acks" breaks keeps_until_acked,
}
