//! The cluster version: which formats may be written.
//!
//! Programs of two adjacent versions run side by side while a cluster is upgraded, one node after
//! the other. Both read the formats of both; they write those of the *cluster version*, which the
//! catalog holds, and which is raised when every node runs a program that understands the next one.
//! From then on the older program is refused, by name.
//!
//! A format that is new in a version is written only where the catalog's version allows it. The
//! list of versions, and what is new in each, is in `docs/design/formats.md`.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A version of all formats, on disk and between nodes. They are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClusterVersion(pub u32);

impl ClusterVersion {
    /// The formats from before there was a cluster version.
    pub const FIRST: ClusterVersion = ClusterVersion(1);
    /// Nodes say which versions they understand; tables have escrow columns, commits their deltas.
    pub const ESCROW: ClusterVersion = ClusterVersion(2);

    fn next(self) -> ClusterVersion {
        ClusterVersion(self.0.saturating_add(1))
    }
}

/// What a node or a row that says nothing about it is taken for.
impl Default for ClusterVersion {
    fn default() -> ClusterVersion {
        ClusterVersion::FIRST
    }
}

impl fmt::Display for ClusterVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The versions that a program understands, the first and the last included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Versions {
    pub oldest: ClusterVersion,
    pub newest: ClusterVersion,
}

impl Versions {
    /// Those of this program.
    pub const OWN: Versions = Versions { oldest: ClusterVersion::FIRST, newest: ClusterVersion::ESCROW };

    /// Whether it understands what is written at a version.
    pub fn contain(&self, version: ClusterVersion) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }
    /// Whether there is a version that both understand.
    pub fn meet(&self, other: &Versions) -> bool {
        self.oldest <= other.newest && other.oldest <= self.newest
    }
    /// The version after `version` if all of these understand it, and this program does.
    pub fn next_of(&self, version: ClusterVersion, mut all: impl Iterator<Item = Versions>) -> Option<ClusterVersion> {
        let next = version.next();
        (self.contain(next) && all.all(|node| node.contain(next))).then_some(next)
    }
}

/// The error of a program that does not understand the cluster's version.
pub fn refused_version(program: Versions, cluster: ClusterVersion) -> Error {
    let hint = match cluster > program.newest {
        true => "Start a newer version of meridian, as the other nodes did.",
        false => "Start the version of meridian before this one first, on every node.",
    };
    Error::fatal(format!("the cluster is at version {cluster}, and this program understands versions {program}")).hint(hint)
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.oldest, self.newest)
    }
}

// Two adjacent versions: a program that understood more would be tested with none of them.
const _: () = assert!(Versions::OWN.newest.0 - Versions::OWN.oldest.0 == 1);

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(oldest: u32, newest: u32) -> Versions {
        Versions { oldest: ClusterVersion(oldest), newest: ClusterVersion(newest) }
    }

    #[test]
    fn programs_of_adjacent_versions_meet() {
        assert!(versions(1, 2).meet(&versions(2, 3)) && versions(2, 3).meet(&versions(1, 2)));
        assert!(versions(1, 2).meet(&Versions::default()));
        assert!(!versions(2, 3).meet(&Versions::default()) && !Versions::default().meet(&versions(2, 3)));
    }

    #[test]
    fn a_version_is_raised_when_all_understand_it() {
        let at = ClusterVersion;
        assert_eq!(versions(1, 2).next_of(at(1), [versions(1, 2), versions(2, 3)].into_iter()), Some(at(2)));
        assert_eq!(versions(1, 2).next_of(at(1), [versions(1, 2), Versions::default()].into_iter()), None);
        assert_eq!(versions(1, 2).next_of(at(2), [versions(2, 3)].into_iter()), None);
        assert_eq!(versions(2, 3).next_of(at(2), [versions(3, 4)].into_iter()), Some(at(3)));
    }
}
