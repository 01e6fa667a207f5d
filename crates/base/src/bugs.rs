//! Planted bugs. Each is one rule of a protocol that a test leaves out, to check that another test
//! fails without it (design: counterexamples). Production leaves none out.

/// Declares a crate's planted bugs: `PlantedBug`, one rule left out, and `PlantedBugs`, a set of
/// them. Each has a name as on a command line.
#[macro_export]
macro_rules! planted_bugs {
    ($($(#[$doc:meta])* $bug:ident = $name:literal,)*) => {
        /// One rule left out. The numbers are rows of the counterexamples.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum PlantedBug {
            $($(#[$doc])* $bug,)*
        }

        impl PlantedBug {
            /// All of them, for a campaign.
            pub const ALL: [PlantedBug; [$($name),*].len()] = [$(PlantedBug::$bug),*];

            /// As on a command line: words with hyphens between.
            pub fn name(self) -> &'static str {
                match self {
                    $(PlantedBug::$bug => $name,)*
                }
            }
            /// The reverse of [`PlantedBug::name`].
            pub fn from_name(name: &str) -> Option<PlantedBug> {
                PlantedBug::ALL.into_iter().find(|bug| bug.name() == name)
            }
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

        const _: () = assert!(PlantedBug::ALL.len() <= 64, "a set has 64 places");

        #[cfg(test)]
        #[test]
        fn the_names_of_planted_bugs_are_unique_and_read_back() {
            for bug in PlantedBug::ALL {
                assert_eq!(PlantedBug::from_name(bug.name()), Some(bug));
                assert_eq!(PlantedBug::ALL.into_iter().filter(|b| PlantedBugs::only(bug).has(*b)).count(), 1);
            }
        }
    };
}
