//! How this gateway reads and commits over several regions, where that is a choice.
//!
//! The default is the design's, and the only thing a server ever runs. The others are what the
//! bench compares it with: they share the engine, the log and the transport, so that a difference
//! between two columns of its table is the protocol's.
//!
//! | | [`Decentralised`](CommitProtocol::Decentralised) | [`Coordinator`](CommitProtocol::Coordinator) | [`Forwarding`](CommitProtocol::Forwarding) |
//! | --- | --- | --- | --- |
//! | reads of rows homed elsewhere | nearest replica | their primary | their primary |
//! | votes go to | everybody | the gateway | (tables have one home: there is one participant) |
//! | the client is told | when all votes are at the gateway | when the decision is durable in the gateway's region | when the one participant has it |
//! | reservations end | one one-way delay after the last vote | when the decision has come, a round trip after it | – |
//!
//! The coordinator's decision is sent as the votes that it follows from. So the participants' code
//! is the same, and a gateway that dies half-way blocks nobody for longer than
//! [`limits::VOTE_REQUEST_AFTER`]: by then participants ask each other, as always. That is kinder
//! than the textbook, which waits for the coordinator to come back; without failures it is the
//! same.

use meridian_base::{BallotMessage, Timestamp, limits};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};

/// Who decides, and where rows of other regions are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CommitProtocol {
    /// The design's: participants send their votes to each other.
    #[default]
    Decentralised,
    /// Two-phase commit with the gateway as the coordinator, over fresh reads.
    Coordinator,
    /// Every statement runs where the rows' home is: with all tables homed in one region, a single
    /// primary.
    Forwarding,
}

/// When the initiator's own participant certifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PrepareOrder {
    /// After the largest one-way delay to the others (S-DUR §4.4).
    #[default]
    Delayed,
    /// At once: the message to the primary at home is not delayed.
    First,
    /// When all others have voted.
    Last,
}

/// See the module's essay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    pub commit: CommitProtocol,
    pub order: PrepareOrder,
    /// Whether the retry uses what a NO told.
    pub learns_from_refusals: bool,
    /// Whether reads go to the primary from the second abort on.
    pub reads_fresh_after_aborts: bool,
}

impl Default for Protocol {
    fn default() -> Protocol {
        Protocol {
            commit: CommitProtocol::default(),
            order: PrepareOrder::default(),
            learns_from_refusals: true,
            reads_fresh_after_aborts: true,
        }
    }
}

impl Protocol {
    /// Whether rows homed elsewhere are read there.
    pub(super) fn reads_at_primaries(self) -> bool {
        self.commit != CommitProtocol::Decentralised
    }

    /// Whether a participant keeps a message to another participant to itself: a coordinator's has
    /// nothing to say to the others, until it has waited for so long that something must have
    /// failed.
    pub(crate) fn withholds(self, message: &BallotMessage, now: Timestamp) -> bool {
        let BallotMessage::Vote { id, .. } = message else { return false };
        self.commit == CommitProtocol::Coordinator && now.since(id.hlc) < limits::VOTE_REQUEST_AFTER
    }

    fn bits(self) -> u8 {
        self.commit as u8
            | (self.order as u8) << 2
            | u8::from(self.learns_from_refusals) << 4
            | u8::from(self.reads_fresh_after_aborts) << 5
    }

    fn from_bits(bits: u8) -> Protocol {
        Protocol {
            commit: match bits & 3 {
                1 => CommitProtocol::Coordinator,
                2 => CommitProtocol::Forwarding,
                _ => CommitProtocol::Decentralised,
            },
            order: match bits >> 2 & 3 {
                1 => PrepareOrder::First,
                2 => PrepareOrder::Last,
                _ => PrepareOrder::Delayed,
            },
            learns_from_refusals: bits & 1 << 4 != 0,
            reads_fresh_after_aborts: bits & 1 << 5 != 0,
        }
    }
}

/// A node's choice, read once by every transaction. To be changed only while there are none.
#[derive(Debug)]
pub(crate) struct Choice(AtomicU8);

impl Default for Choice {
    fn default() -> Choice {
        Choice(AtomicU8::new(Protocol::default().bits()))
    }
}

impl Choice {
    pub(crate) fn get(&self) -> Protocol {
        Protocol::from_bits(self.0.load(Ordering::Relaxed))
    }
    pub(crate) fn set(&self, protocol: Protocol) {
        self.0.store(protocol.bits(), Ordering::Relaxed);
    }
}

/// Attempts of transactions that came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Attempts {
    pub committed: u64,
    pub aborted: u64,
}

/// What a gateway counts of transactions that touch other regions.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// How many of those that committed waited for how many round trips to another region, one
    /// after the other.
    pub round_trips: BTreeMap<u32, u64>,
    /// By how many attempts of the same work came before, as far as the server itself repeats it.
    pub attempts: BTreeMap<u32, Attempts>,
}

/// Attempts beyond are counted together.
const ATTEMPTS_TOLD_APART: u32 = 16;
/// So are round trips.
const ROUND_TRIPS_TOLD_APART: u32 = 64;

impl Tally {
    pub(super) fn note(&mut self, attempt: u32, round_trips: u32, is_committed: bool) {
        let attempts = self.attempts.entry(attempt.min(ATTEMPTS_TOLD_APART)).or_default();
        match is_committed {
            true => {
                attempts.committed += 1;
                *self.round_trips.entry(round_trips.min(ROUND_TRIPS_TOLD_APART)).or_default() += 1;
            }
            false => attempts.aborted += 1,
        }
    }

    /// Adds another gateway's counts.
    pub fn add(&mut self, other: &Tally) {
        for (trips, count) in &other.round_trips {
            *self.round_trips.entry(*trips).or_default() += count;
        }
        for (attempt, more) in &other.attempts {
            let attempts = self.attempts.entry(*attempt).or_default();
            attempts.committed += more.committed;
            attempts.aborted += more.aborted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::{GroupId, NodeId, TxnId, Vote};

    #[test]
    fn a_choice_is_read_back() {
        let choice = Choice::default();
        assert_eq!(choice.get(), Protocol::default());
        for commit in [CommitProtocol::Decentralised, CommitProtocol::Coordinator, CommitProtocol::Forwarding] {
            for order in [PrepareOrder::Delayed, PrepareOrder::First, PrepareOrder::Last] {
                for (learns, fresh) in [(true, false), (false, true), (true, true), (false, false)] {
                    let protocol = Protocol { commit, order, learns_from_refusals: learns, reads_fresh_after_aborts: fresh };
                    choice.set(protocol);
                    assert_eq!(choice.get(), protocol);
                }
            }
        }
    }

    #[test]
    fn only_a_coordinators_participant_withholds_votes_and_not_for_ever() {
        let id = TxnId { hlc: Timestamp::from_micros(1_000_000), gateway: NodeId(1) };
        let vote = BallotMessage::Vote { id, from: GroupId(2), vote: Vote::Yes(Timestamp(5)) };
        let ack = BallotMessage::OutcomeAck { id, from: GroupId(2), reply: false };
        let coordinator = Protocol { commit: CommitProtocol::Coordinator, ..Protocol::default() };
        let soon = id.hlc.plus(limits::VOTE_REQUEST_AFTER / 2);
        assert!(coordinator.withholds(&vote, soon) && !coordinator.withholds(&ack, soon));
        assert!(!coordinator.withholds(&vote, id.hlc.plus(limits::VOTE_REQUEST_AFTER)));
        assert!(!Protocol::default().withholds(&vote, soon));
    }

    #[test]
    fn tallies_add_up() {
        let (mut a, mut b) = (Tally::default(), Tally::default());
        a.note(0, 1, false);
        b.note(0, 1, true);
        b.note(1, 99, true);
        a.add(&b);
        assert_eq!(a.round_trips, BTreeMap::from([(1, 1), (ROUND_TRIPS_TOLD_APART, 1)]));
        assert_eq!(a.attempts[&0], Attempts { committed: 1, aborted: 1 });
    }
}
