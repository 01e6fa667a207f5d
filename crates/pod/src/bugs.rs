//! Rules left out on purpose, to see that tests find it (design: counterexamples, rows 37 to 79).
//! Production never leaves any out. `docs/design/pod.md` says which test finds which.

macro_rules! bugs {
    ($($(#[$doc:meta])* $bug:ident = $name:literal,)*) => {
        /// One rule left out. The numbers are rows of the counterexamples.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum PlantedBug { $($(#[$doc])* $bug,)* }

        impl PlantedBug {
            /// All of them, for a campaign.
            pub const ALL: &[PlantedBug] = &[$(PlantedBug::$bug,)*];

            /// As on a command line: `space-of-taken`.
            pub fn name(self) -> &'static str {
                match self { $(PlantedBug::$bug => $name,)* }
            }
            /// The reverse of [`PlantedBug::name`].
            pub fn from_name(name: &str) -> Option<PlantedBug> {
                PlantedBug::ALL.iter().copied().find(|bug| bug.name() == name)
            }
        }
    };
}

bugs! {
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
}

/// A set of planted bugs; empty by default. Testing it is one `and`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
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
            assert_eq!(PlantedBug::from_name(bug.name()), Some(*bug));
            assert_eq!(PlantedBug::ALL.iter().filter(|b| PlantedBugs::only(*bug).has(**b)).count(), 1);
        }
    }
}
