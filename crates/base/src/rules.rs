//! The rules of a protocol, which the laboratory breaks one at a time.
//!
//! A test says something about a rule if it fails without the rule. So every rule has a *planted
//! bug*, its absence, and the tests and the simulator run the protocol with each
//! (`docs/design/rules.md`). This is the one seam between the protocols and the laboratory: a crate
//! declares its rules with [`rules!`](crate::rules!), and its code asks for a rule by name where it
//! matters, as in `self.rules.certifies_ranges()`.
//!
//! Only the feature `lab` of this crate can break a rule. A program without the feature has no
//! function that does, a set of rules takes no space there, and every question is answered when
//! the program is compiled. The simulator and tests have the feature on.

/// Which rules are broken, as bits. [`rules!`](crate::rules!) wraps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Broken {
    #[cfg(feature = "lab")]
    bits: u64,
}

impl Broken {
    /// No rule is broken.
    pub const NONE: Broken = Broken {
        #[cfg(feature = "lab")]
        bits: 0,
    };

    /// The rule with this number, below 64, is broken.
    #[cfg(feature = "lab")]
    pub const fn only(rule: u8) -> Broken {
        Broken { bits: 1 << rule }
    }

    /// Whether the rule with this number is broken.
    #[cfg(feature = "lab")]
    #[inline]
    pub const fn has(self, rule: u8) -> bool {
        self.bits & (1 << rule) != 0
    }

    /// Whether the rule with this number is broken: no rule ever is.
    #[cfg(not(feature = "lab"))]
    #[inline]
    pub const fn has(self, _rule: u8) -> bool {
        false
    }
}

#[cfg(not(feature = "lab"))]
const _: () = assert!(size_of::<Broken>() == 0, "a program without the laboratory has no place for a broken rule");

/// What is compiled only with the feature `lab` of `meridian-base`, whatever features the crate has
/// that this is used in.
#[cfg(feature = "lab")]
#[doc(hidden)]
#[macro_export]
macro_rules! laboratory {
    ($($item:tt)*) => { $($item)* };
}

/// See the other one.
#[cfg(not(feature = "lab"))]
#[doc(hidden)]
#[macro_export]
macro_rules! laboratory {
    ($($item:tt)*) => {};
}

/// Declares the rules of a crate, one in a line: `Bug = "name" breaks rule`, with what the bug does
/// as its documentation. This makes
///
/// * `PlantedBug`, the bugs, each with its name on a command line;
/// * `Rules`, with a function for every rule that says whether the rule is kept.
#[macro_export]
macro_rules! rules {
    ($($(#[$doc:meta])* $bug:ident = $name:literal breaks $rule:ident,)*) => {
        /// One rule that is broken. The numbers are rows of the counterexamples.
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

        /// Which rules are kept: all of them, unless a test or the simulator says otherwise.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct Rules($crate::rules::Broken);

        impl Rules {
            /// All rules are kept.
            pub const ALL: Rules = Rules($crate::rules::Broken::NONE);

            $crate::laboratory! {
                /// All rules but one are kept.
                pub const fn without(bug: PlantedBug) -> Rules {
                    Rules($crate::rules::Broken::only(bug as u8))
                }
            }

            /// Whether all rules are kept. Assertions that no broken rule could hold ask this.
            #[inline]
            pub fn are_all_kept(self) -> bool {
                self == Rules::ALL
            }

            $(
                #[doc = concat!("Whether the rule is kept that [`PlantedBug::", stringify!($bug), "`] breaks.")]
                #[inline]
                pub const fn $rule(self) -> bool {
                    !self.0.has(PlantedBug::$bug as u8)
                }
            )*
        }

        /// The bugs.
        impl std::fmt::Debug for Rules {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_list().entries(PlantedBug::ALL.into_iter().filter(|bug| self.0.has(*bug as u8))).finish()
            }
        }

        const _: () = assert!(PlantedBug::ALL.len() <= 64, "a set has 64 places");

        #[cfg(test)]
        #[test]
        fn each_planted_bug_has_its_name_and_breaks_its_own_rule() {
            for (number, bug) in PlantedBug::ALL.into_iter().enumerate() {
                assert_eq!(PlantedBug::from_name(bug.name()), Some(bug));
                let rules = Rules::without(bug);
                let kept = [$(rules.$rule()),*];
                assert!(kept.iter().enumerate().all(|(n, kept)| *kept == (n != number)), "{}", bug.name());
                assert!(!rules.are_all_kept() && [$(Rules::ALL.$rule()),*].iter().all(|kept| *kept));
            }
        }
    };
}
