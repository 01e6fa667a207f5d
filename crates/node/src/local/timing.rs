//! How long elections take.

use meridian_base::{Error, Result};
use std::time::Duration;

/// What [`meridian_raft::GroupOptions::lease_margin`] is by default.
const LEASE_MARGIN: Duration = Duration::from_millis(50);

pub(crate) const fn less(a: Duration, b: Duration) -> bool {
    a.as_nanos() < b.as_nanos()
}

pub(crate) const fn times(d: Duration, n: u64) -> Duration {
    Duration::from_nanos(d.as_nanos() as u64 * n)
}

pub(crate) const fn plus(a: Duration, b: Duration) -> Duration {
    Duration::from_nanos(a.as_nanos() as u64 + b.as_nanos() as u64)
}

/// Elections. `election_min` must outlast the round trip between any two regions, or votes would
/// never come in time: a group that moves to another region has voters in both for a while.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub heartbeat: Duration,
    pub election_min: Duration,
    pub election_max: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing::NEAR
    }
}

impl Timing {
    /// For voters a few milliseconds apart. A follower stands for election after `election_max` and
    /// a random time between `election_min` and `election_max`, so a failover, with the wait for
    /// the old lease beside it, fits 3 s.
    pub const NEAR: Timing = Timing {
        heartbeat: Duration::from_millis(100),
        election_min: Duration::from_millis(500),
        election_max: Duration::from_millis(900),
    };

    /// For groups whose voters are in several regions, like the catalog: a heartbeat must outlast
    /// the round trip between them, and so must the time between two candidates, or both lose.
    pub(crate) const fn across_regions(self) -> Timing {
        Timing {
            heartbeat: longer(self.heartbeat, Duration::from_millis(350)),
            election_min: longer(self.election_min, Duration::from_millis(400)),
            election_max: longer(self.election_max, Duration::from_millis(1_300)),
        }
    }

    /// How long a voter promises to vote for nobody else: some heartbeats.
    pub(crate) const fn promise(self, is_across_regions: bool) -> Duration {
        match is_across_regions {
            true => longer(self.election_min, Duration::from_millis(900)),
            false => self.election_min,
        }
    }

    /// Whether elections and leases work: two heartbeats fit a lease, so that one may be lost; a
    /// voter keeps the promise that a lease rests on, which it does for `election_max`; and
    /// candidates are kept apart by a range that is not empty.
    const fn keeps_leases(self, is_across_regions: bool) -> bool {
        let promise = self.promise(is_across_regions);
        less(plus(times(self.heartbeat, 2), LEASE_MARGIN), promise)
            && !less(self.election_max, promise)
            && less(self.election_min, self.election_max)
            && !self.heartbeat.is_zero()
    }

    pub(crate) const fn is_consistent(self) -> bool {
        self.keeps_leases(false) && self.across_regions().keeps_leases(true)
    }

    /// Refuses times with which no group could keep a leader.
    pub fn check(self) -> Result<()> {
        match self.is_consistent() {
            true => Ok(()),
            false => Err(Error::fatal(format!("these times for elections contradict each other: {self:?}"))
                .hint("Two heartbeats and 50 ms are less than election_min, and election_min is less than election_max.")),
        }
    }
}

const fn longer(a: Duration, b: Duration) -> Duration {
    if less(a, b) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::{GroupId, NodeId};

    #[test]
    fn times_that_contradict_each_other_are_refused() {
        let ms = Duration::from_millis;
        assert!(Timing::default().check().is_ok());
        assert_eq!(LEASE_MARGIN, meridian_raft::GroupOptions::new(GroupId::CATALOG, NodeId(1)).lease_margin);
        for (heartbeat, election_min, election_max) in
            [(250, 500, 900), (100, 900, 900), (100, 900, 500), (0, 500, 900), (600, 700, 900)]
        {
            let timing = Timing { heartbeat: ms(heartbeat), election_min: ms(election_min), election_max: ms(election_max) };
            assert!(timing.check().is_err(), "{timing:?}");
        }
    }
}
