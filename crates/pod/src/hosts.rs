//! The hosts of a pod: who is in it, and in which state.
//!
//! ```text
//!            host                L               host              L
//!   Free ───────────▶ Joining ───────▶ Live ───────────▶ Leaving ──────▶ Sealed ──▶ Free
//!                        └───────────────┴──────────────────┴─▶ Fenced ─────┘   L
//! ```
//!
//! * A *joining* host has chosen where it begins in the feed, and receives its slots' rows.
//! * L makes it *live* after it has begun to count it ([`crate::Rings::admit`]). From then on it
//!   draws timestamps.
//! * A *leaving* host has given its slots away and pushes nothing more.
//! * A host is *fenced* when L knows that it will never write again: its process has ended, or the
//!   memory is closed to it (`docs/design/pod.md`). Then its ring's tail is final.
//! * *Sealed*: L has taken what was in its ring. Nothing of it will come.
//!
//! Each change is one comparison on the host's word, so a host that was fenced meanwhile notices
//! when it tries to change its own. The epoch grows each time that a host takes a free line.

use crate::error::Damaged;
use crate::layout::{header, host};
use crate::memory::Memory;
use crate::rules::Rules;
use crate::segment::Segment;
use meridian_base::NodeId;

/// See the module's essay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    Free,
    Joining,
    Live,
    Leaving,
    Fenced,
    Sealed,
}

impl Phase {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Free => "free",
            Phase::Joining => "joining",
            Phase::Live => "live",
            Phase::Leaving => "leaving",
            Phase::Fenced => "fenced",
            Phase::Sealed => "sealed",
        }
    }
}

/// The content of a host's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostState {
    pub phase: Phase,
    /// How often this line was taken.
    pub epoch: u32,
    pub node: NodeId,
}

impl HostState {
    fn word(self) -> u64 {
        self.phase as u64 | u64::from(self.epoch & 0xff_ffff) << 8 | u64::from(self.node.0) << 32
    }
    fn from_word(word: u64) -> Result<HostState, Damaged> {
        let phase = match word as u8 {
            0 => Phase::Free,
            1 => Phase::Joining,
            2 => Phase::Live,
            3 => Phase::Leaving,
            4 => Phase::Fenced,
            5 => Phase::Sealed,
            other => return Err(Damaged(format!("a host in state {other}"))),
        };
        Ok(HostState { phase, epoch: (word >> 8) as u32 & 0xff_ffff, node: NodeId((word >> 32) as u32) })
    }

    /// Whether it still applies the feed, so that what it has not applied must stay.
    pub fn follows_feed(self) -> bool {
        matches!(self.phase, Phase::Joining | Phase::Live | Phase::Leaving)
    }
    /// Whether its ring may still have something that L has not taken.
    pub fn may_push(self) -> bool {
        matches!(self.phase, Phase::Live | Phase::Leaving | Phase::Fenced)
    }
}

impl<M: Memory> Segment<M> {
    /// The state of a host (one step).
    ///
    /// # Errors
    ///
    /// If the word is none that a host writes.
    pub fn host(&self, host: u8) -> Result<HostState, Damaged> {
        HostState::from_word(self.memory().load(self.layout().host(host) + host::STATE))
    }

    /// Whether a host may draw timestamps and push (one step). The host keeps the answer: it only
    /// changes when the host leaves or is fenced.
    ///
    /// # Errors
    ///
    /// If the word is none that a host writes.
    pub fn may_draw(&self, host: u8, rules: Rules) -> Result<bool, Damaged> {
        let phase = self.host(host)?.phase;
        Ok(phase == Phase::Live || phase == Phase::Joining && !rules.draws_when_admitted())
    }

    /// Changes a host's phase, if its word still is `from` (one step).
    pub fn change_phase(&self, host: u8, from: HostState, phase: Phase) -> bool {
        let to = HostState { phase, ..from };
        self.memory().compare_exchange(self.layout().host(host) + host::STATE, from.word(), to.word()).is_ok()
    }

    /// A node takes a free line and begins to follow the feed where it ends now. Gives the host's
    /// number; `None`: all are taken.
    ///
    /// It takes the line first: L counts a joining host's position before it is stored, and what
    /// the line's last user left there is at or below it.
    pub fn join(&self, node: NodeId) -> Result<Option<u8>, Damaged> {
        for number in 0..self.hosts() {
            if self.join_as(number, node)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// The same for one line. Whether it was free.
    pub fn join_as(&self, number: u8, node: NodeId) -> Result<bool, Damaged> {
        let at = self.layout().host(number);
        let free = self.host(number)?;
        if free.phase != Phase::Free {
            return Ok(false);
        }
        let joining = HostState { phase: Phase::Joining, epoch: free.epoch.wrapping_add(1), node };
        if self.memory().compare_exchange(at + host::STATE, free.word(), joining.word()).is_err() {
            return Ok(false);
        }
        let tail = self.memory().load(header::FEED_TAIL);
        self.memory().store(at + host::FEED_POSITION, tail);
        self.memory().store(at + host::EPOCH, self.memory().load(header::EPOCH));
        Ok(true)
    }

    /// The host lives (one step); anything that grows.
    pub fn beat(&self, host: u8, heartbeat: u64) {
        self.memory().store(self.layout().host(host) + host::HEARTBEAT, heartbeat);
    }
    /// What the host said last (one step).
    pub fn heartbeat(&self, host: u8) -> u64 {
        self.memory().load(self.layout().host(host) + host::HEARTBEAT)
    }

    /// Tells a host that there is something for it (one step).
    pub fn ring_doorbell(&self, host: u8) {
        self.memory().fetch_add(self.layout().host(host) + host::DOORBELL, 1);
    }
    /// Changes when somebody rings (one step).
    pub fn doorbell(&self, host: u8) -> u64 {
        self.memory().load(self.layout().host(host) + host::DOORBELL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::heap;

    #[test]
    fn a_line_is_taken_once_and_its_epoch_grows() {
        let segment = heap();
        assert_eq!(segment.join(NodeId(5)).unwrap(), Some(0));
        assert_eq!(segment.join(NodeId(6)).unwrap(), Some(1));
        assert_eq!(segment.join(NodeId(7)).unwrap(), None);
        let joined = segment.host(1).unwrap();
        assert_eq!(joined, HostState { phase: Phase::Joining, epoch: 1, node: NodeId(6) });
        assert!(segment.change_phase(1, joined, Phase::Fenced));
        assert!(!segment.change_phase(1, joined, Phase::Live), "it was fenced meanwhile");
        let fenced = segment.host(1).unwrap();
        assert!(segment.change_phase(1, fenced, Phase::Free));
        assert_eq!(segment.join(NodeId(7)).unwrap(), Some(1));
        assert_eq!(segment.host(1).unwrap().epoch, 2);
    }

    #[test]
    fn a_damaged_word_is_an_error() {
        let segment = heap();
        segment.memory().store(segment.layout().host(1), 99);
        assert!(segment.host(1).is_err());
        assert!(segment.join(NodeId(1)).unwrap().is_some(), "the other line is whole");
    }

    #[test]
    fn beats_and_rings_are_seen() {
        let segment = heap();
        segment.beat(1, 7);
        let before = segment.doorbell(1);
        segment.ring_doorbell(1);
        assert_eq!(segment.heartbeat(1), 7);
        assert_ne!(segment.doorbell(1), before);
    }
}
