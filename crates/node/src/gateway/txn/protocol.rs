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

use crate::gateway::delivery;
use crate::membership::shared::Shared;
use meridian_base::{BallotMessage, GroupId, Ledger, Refusal, Standing, Timestamp, TxnId, Vote, limits};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Attempts that came before the one which reads at distant primaries: the first failed on a stale
/// replica, the second on what it was told.
pub(super) const ATTEMPTS_AT_REPLICAS: u32 = 2;

/// How long a coordinator waits for its decision to be in the log, and how often it looks. The
/// votes decide in any case.
const DECISION_PATIENCE: Duration = Duration::from_secs(5);
const DECISION_PAUSE: Duration = Duration::from_millis(1);

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

    /// Whether what only reads may be told what earlier attempts have read, and hold it.
    pub(super) fn reserves(self) -> bool {
        self.commit == CommitProtocol::Decentralised
    }

    /// Whether a transaction that failed this many times before reads rows of other regions at
    /// replicas in its own.
    pub(super) fn reads_at_replicas(self, attempts: u32) -> bool {
        !self.reads_at_primaries() && (attempts < ATTEMPTS_AT_REPLICAS || !self.reads_fresh_after_aborts)
    }

    /// Whether a transaction that failed this many times before comes before younger ones. A
    /// transaction that reads at primaries always does: it has queued for the rows that it locks.
    pub(super) fn is_late(self, attempts: u32) -> bool {
        self.reads_at_primaries() || attempts >= ATTEMPTS_AT_REPLICAS
    }

    /// How long the initiator's copy, which arrives at once, waits: so that home reserves no longer
    /// than the others (S-DUR §4.4). A participant that waits certifies early when only its own
    /// vote is missing.
    pub(super) fn hold(self, delay: Duration) -> Duration {
        match (self.commit, self.order) {
            (CommitProtocol::Coordinator, _) | (_, PrepareOrder::First) => Duration::ZERO,
            (_, PrepareOrder::Delayed) => delay,
            (_, PrepareOrder::Last) => limits::PREPARE_WAIT_MAX,
        }
    }

    /// A coordinator's second round.
    pub(super) async fn announce(self, shared: &Arc<Shared>, id: TxnId, of: &[GroupId], votes: &BTreeMap<GroupId, Vote>) {
        if self.commit == CommitProtocol::Coordinator {
            announce(shared, id, of, votes).await;
        }
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

/// A coordinator's second round, as the votes that its decision follows from. It is durable in this
/// region, at the initiator's own group, before any other node hears of it; an abort need not be
/// (presumed abort).
async fn announce(shared: &Arc<Shared>, id: TxnId, participants: &[GroupId], votes: &BTreeMap<GroupId, Vote>) {
    let is_commit = votes.len() == participants.len() && votes.values().all(|v| matches!(v, Vote::Yes(_)));
    let message = |from: GroupId, vote: &Vote| {
        let vote = if let Vote::No(_) = vote { Vote::No(Refusal::default()) } else { vote.clone() };
        BallotMessage::Vote { id, from, vote }
    };
    let own = participants.iter().filter(|_| is_commit).find_map(|group| shared.groups.local_primary(*group));
    if let Some(own) = &own {
        for (from, vote) in votes {
            // A primary that has just ceased to be one leaves the outcome to its successor.
            let _ = own.ballot(message(*from, vote));
        }
        let deadline = Instant::now() + DECISION_PATIENCE;
        while matches!(own.core.lock().state.standing(id), Standing::Prepared(_)) && Instant::now() < deadline {
            tokio::time::sleep(DECISION_PAUSE).await;
        }
    }
    for group in participants.iter().filter(|group| own.as_ref().is_none_or(|own| own.id != **group)) {
        for (from, vote) in votes.iter().filter(|(from, _)| *from != group) {
            shared.spawn(delivery::deliver(shared.clone(), *group, message(*from, vote)));
        }
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
