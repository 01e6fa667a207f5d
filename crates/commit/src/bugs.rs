//! Bugs that the model and the simulator plant to see their checkers find them (design:
//! counterexamples). Production plants none.

/// One rule left out. The numbers are rows of the counterexamples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PlantedBug {
    /// 3: a participant that has waited long enough for a vote decides that the transaction aborts.
    DecideByBound,
    /// 4: an outcome is acknowledged as soon as it is known.
    AckBeforeDurable,
    /// 5: a Prepare whose record was dropped is certified as a new one.
    LatePrepareAsNew,
    /// 12: a participant that was only read does not log its vote.
    UnloggedReadOnlyVote,
    /// 17: a Prepare waits at a group for as long as it takes.
    WaitWithoutBound,
    /// A vote is sent when its record is handed to the log.
    VoteBeforeDurable,
    /// A new primary answers from what it remembers: it has no record, so it says NO.
    AnswerFromMemory,
    /// A commit is forgotten when its id is old enough, whoever has not acknowledged it.
    ForgetBeforeAcks,
}

impl PlantedBug {
    /// All of them, for a campaign.
    pub const ALL: [PlantedBug; 8] = [
        PlantedBug::DecideByBound,
        PlantedBug::AckBeforeDurable,
        PlantedBug::LatePrepareAsNew,
        PlantedBug::UnloggedReadOnlyVote,
        PlantedBug::WaitWithoutBound,
        PlantedBug::VoteBeforeDurable,
        PlantedBug::AnswerFromMemory,
        PlantedBug::ForgetBeforeAcks,
    ];

    /// As on a command line: `decide-by-bound`.
    pub fn name(self) -> &'static str {
        match self {
            PlantedBug::DecideByBound => "decide-by-bound",
            PlantedBug::AckBeforeDurable => "ack-before-durable",
            PlantedBug::LatePrepareAsNew => "late-prepare-as-new",
            PlantedBug::UnloggedReadOnlyVote => "unlogged-read-only-vote",
            PlantedBug::WaitWithoutBound => "wait-without-bound",
            PlantedBug::VoteBeforeDurable => "vote-before-durable",
            PlantedBug::AnswerFromMemory => "answer-from-memory",
            PlantedBug::ForgetBeforeAcks => "forget-before-acks",
        }
    }
    /// The reverse of [`PlantedBug::name`].
    pub fn from_name(name: &str) -> Option<PlantedBug> {
        PlantedBug::ALL.into_iter().find(|b| b.name() == name)
    }
}

/// A set of planted bugs; empty by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PlantedBugs(u8);

impl PlantedBugs {
    /// None: production.
    pub const NONE: PlantedBugs = PlantedBugs(0);

    /// One bug.
    pub fn only(bug: PlantedBug) -> PlantedBugs {
        PlantedBugs(1 << bug as u8)
    }
    /// Whether this rule is left out.
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
