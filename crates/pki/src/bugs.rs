//! Rules that tests leave out one at a time, to see that somebody notices.

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlantedBug {
    /// A certificate of another cluster is good if its authority is.
    IgnoresCluster,
    /// Whoever calls a node takes another node's answer.
    IgnoresWhoAnswers,
    /// Certificates hold for ever.
    IgnoresExpiry,
    /// A decommissioned node's certificate goes on working.
    IgnoresRevocation,
    /// A node's certificate is a login of the role of its common name.
    NodeIsRole,
    /// A joiner sends its proof to whoever answers.
    JoinerTrustsAnybody,
    /// A token is good for a second node.
    TokenUsedTwice,
    /// A token is good after its end.
    TokenIgnoresExpiry,
    /// The proof says nothing about the connection, so whoever sees it may use it elsewhere.
    ProofUnbound,
    /// The proof says nothing about the key, so whoever passes it on may put another one in.
    KeyUnbound,
    /// The joiner is told why it is refused.
    RefusalTellsWhy,
    /// A client resumes a session, and its certificate is not looked at.
    ResumesSessions,
    /// The new authority signs before everybody knows it.
    SignsEarly,
    /// The old authority goes before its last certificate.
    RemovesEarly,
    /// Unknown users are given another salt each time.
    RandomMockSalt,
}

impl PlantedBug {
    /// All of them.
    pub const ALL: [PlantedBug; 15] = [
        PlantedBug::IgnoresCluster,
        PlantedBug::IgnoresWhoAnswers,
        PlantedBug::IgnoresExpiry,
        PlantedBug::IgnoresRevocation,
        PlantedBug::NodeIsRole,
        PlantedBug::JoinerTrustsAnybody,
        PlantedBug::TokenUsedTwice,
        PlantedBug::TokenIgnoresExpiry,
        PlantedBug::ProofUnbound,
        PlantedBug::KeyUnbound,
        PlantedBug::RefusalTellsWhy,
        PlantedBug::ResumesSessions,
        PlantedBug::SignsEarly,
        PlantedBug::RemovesEarly,
        PlantedBug::RandomMockSalt,
    ];
}

/// A set of planted bugs; empty by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PlantedBugs(u32);

impl PlantedBugs {
    /// None: production.
    pub const NONE: PlantedBugs = PlantedBugs(0);

    /// One bug.
    pub fn only(bug: PlantedBug) -> PlantedBugs {
        PlantedBugs(1 << bug as u32)
    }
    /// Whether this rule is left out.
    pub fn has(self, bug: PlantedBug) -> bool {
        self.0 & (1 << bug as u32) != 0
    }
}
