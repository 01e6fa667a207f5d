//! How long a host may serve without hearing from L.
//!
//! L holds the group's lease and a host serves under it. A host writes a number, its *nonce*; L
//! echoes it with what is left of its own lease. The host's lease runs from when it *wrote* the
//! nonce: L read it later, so L's own lease ends later (row 76).
//!
//! ```text
//!  host   nonce n at 100 ────────────────────────── echo (n, 40) seen at 130: serves until 140
//!  L                 reads n at 110; 40 is left until 150: echo (n, 40)
//! ```
//!
//! Times are microseconds of each host's own monotonic clock. The caller subtracts from what is
//! left what clocks may differ in speed.

use crate::layout::host;
use crate::memory::Memory;
use crate::rules::Rules;
use crate::segment::Segment;
use std::collections::VecDeque;

/// Nonces of a host that it remembers.
const ASKED_MAX: usize = 16;

/// A host's lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostLease {
    host: u8,
    rules: Rules,
    nonce: u32,
    /// Nonces that were written, and when; the oldest first.
    asked: VecDeque<(u32, u64)>,
    until: u64,
}

impl HostLease {
    /// None so far. `nonce` is anything that a predecessor with the same number is unlikely to have
    /// used; an echo of that one must not count.
    pub fn new(host: u8, nonce: u32, rules: Rules) -> HostLease {
        HostLease { host, rules, nonce, asked: VecDeque::new(), until: 0 }
    }

    /// Asks L for more (one step).
    pub fn ask<M: Memory>(&mut self, segment: &Segment<M>, now: u64) {
        self.nonce = self.nonce.wrapping_add(1);
        if self.asked.len() == ASKED_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back((self.nonce, now));
        segment.memory().store(segment.layout().host(self.host) + host::NONCE, self.nonce.into());
    }

    /// Looks for L's answer (one step). Until when the host may serve.
    pub fn look<M: Memory>(&mut self, segment: &Segment<M>, now: u64) -> u64 {
        let echo = segment.memory().load(segment.layout().host(self.host) + host::ECHO);
        let (nonce, left) = (echo as u32, echo >> 32);
        if let Some(place) = self.asked.iter().position(|(asked, _)| *asked == nonce) {
            let (_, wrote) = self.asked[place];
            let from = if self.rules.leases_from_asking() { wrote } else { now };
            self.until = self.until.max(from + left);
            self.asked.drain(..place);
        }
        self.until
    }

    /// Whether an answer may leave the host now.
    pub fn may_serve(&self, now: u64) -> bool {
        now < self.until
    }
}

impl<M: Memory> Segment<M> {
    /// L: the last nonce of a host (one step). Read it *before* what is left of the lease is
    /// computed.
    pub fn nonce(&self, host: u8) -> u32 {
        self.memory().load(self.layout().host(host) + host::NONCE) as u32
    }

    /// L: answers a nonce with what is left of its lease, in microseconds (one step).
    pub fn echo(&self, host: u8, nonce: u32, left: u32) {
        self.memory().store(self.layout().host(host) + host::ECHO, u64::from(nonce) | u64::from(left) << 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::PlantedBug;
    use crate::testing::heap;

    /// The picture of the module's essay, with L's lease until 150.
    fn until(rules: Rules) -> u64 {
        let segment = heap();
        let mut lease = HostLease::new(1, 70, rules);
        lease.ask(&segment, 100);
        let nonce = segment.nonce(1);
        segment.echo(1, nonce, 150 - 110);
        lease.look(&segment, 130)
    }

    #[test]
    fn a_lease_runs_from_when_the_nonce_was_written() {
        assert_eq!(until(Rules::ALL), 140);
        assert!(until(Rules::without(PlantedBug::LeaseFromEcho)) > 150, "it serves after L's lease");
    }

    #[test]
    fn an_echo_of_another_nonce_counts_nothing() {
        let segment = heap();
        let mut lease = HostLease::new(0, 5, Rules::ALL);
        segment.echo(0, 5, 1000);
        assert_eq!(lease.look(&segment, 10), 0);
        lease.ask(&segment, 20);
        assert_eq!(lease.look(&segment, 30), 0);
        lease.ask(&segment, 40);
        segment.echo(0, 6, 100);
        assert_eq!(lease.look(&segment, 50), 120, "the older of two nonces");
        assert!(lease.may_serve(119) && !lease.may_serve(120));
        segment.echo(0, 6, 5);
        assert_eq!(lease.look(&segment, 60), 120, "a lease is never taken back");
    }
}
