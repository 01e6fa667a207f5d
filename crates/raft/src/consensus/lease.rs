//! How long no other replica can have become leader.
//!
//! A follower that accepts a message from the leader refuses to vote for any other node for
//! `election_timeout_max` (the library's leader lease), and for [`crate::GroupOptions::promise`],
//! which is at most that, after a restart, when it has forgotten whom it heard
//! ([`crate::Group::handle`]). So if a quorum accepted messages that this leader *sent* at `t` or
//! later, nobody else can win an election before `t + promise`, measured on any clock that runs at
//! nearly the same speed; `margin` pays for the difference.
//!
//! Three events end the protection early, and each withdraws the lease *before* it can matter:
//! giving leadership away ([`Lease::give_up`], before the successor is told), voting for somebody
//! else ([`Lease::superseded`], before the vote leaves this node), and adding voters to a group of
//! one ([`Lease::changing_voters`]).

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// See the module.
pub(crate) struct Lease {
    node: u32,
    base: Instant,
    duration: Duration,
    acks: Mutex<Acks>,
    /// Nanoseconds after `base`; 0: no lease.
    until: AtomicU64,
    /// This replica leads.
    leader: AtomicBool,
    /// This replica is the only voter, as last known.
    sole: AtomicBool,
    /// Changes of voters under way: what is known of the voters may be out of date.
    changes: AtomicU32,
    /// Told of the three events.
    withdrawn: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// While it lives, this replica does not count as the only voter.
pub(crate) struct ChangingVoters<'a>(&'a Lease);

impl Drop for ChangingVoters<'_> {
    fn drop(&mut self) {
        self.0.changes.fetch_sub(1, Ordering::AcqRel);
    }
}

#[derive(Default)]
struct Acks {
    term: u64,
    /// No lease in this term any more.
    withdrawn: bool,
    /// When the last message that a peer accepted was sent.
    sent: BTreeMap<u32, Instant>,
}

impl Lease {
    pub(crate) fn new(node: u32, duration: Duration) -> Lease {
        Lease {
            node,
            base: Instant::now(),
            duration,
            acks: Mutex::new(Acks::default()),
            until: AtomicU64::new(0),
            leader: AtomicBool::new(false),
            sole: AtomicBool::new(false),
            changes: AtomicU32::new(0),
            withdrawn: OnceLock::new(),
        }
    }

    /// Whom to tell when the lease ends before its time, in the moment before that can matter.
    pub(crate) fn on_withdrawal(&self, tell: Box<dyn Fn() + Send + Sync>) {
        let _ = self.withdrawn.set(tell);
    }

    fn tell_of_withdrawal(&self) {
        if let Some(tell) = self.withdrawn.get() {
            tell();
        }
    }

    /// Whether this replica leads, as last known.
    pub(crate) fn set_leader(&self, leader: bool) {
        self.leader.store(leader, Ordering::Release);
    }

    /// Whether this replica is the only voter.
    pub(crate) fn set_sole(&self, sole: bool) {
        self.sole.store(sole, Ordering::Release);
    }

    /// The voters are about to change. With a second voter the leader's word alone is not enough
    /// any more, and the new voters may elect another leader before this replica has taken note of
    /// them.
    pub(crate) fn changing_voters(&self) -> ChangingVoters<'_> {
        self.changes.fetch_add(1, Ordering::AcqRel);
        if self.sole.load(Ordering::Acquire) {
            self.tell_of_withdrawal();
        }
        ChangingVoters(self)
    }

    /// `peer` accepted a message of this leader's `term`, sent at `sent`. `configs` are the sets of
    /// voters of which each needs a majority.
    pub(crate) fn acknowledged(&self, term: u64, peer: u32, sent: Instant, configs: &[BTreeSet<u32>]) {
        let mut acks = self.acks.lock();
        if term < acks.term {
            return;
        }
        if term > acks.term {
            *acks = Acks { term, ..Acks::default() };
            self.until.store(0, Ordering::Release);
        }
        let last = acks.sent.entry(peer).or_insert(sent);
        *last = (*last).max(sent);
        if acks.withdrawn {
            return;
        }
        if let Some(acknowledged) = quorum_time(self.node, &acks.sent, configs) {
            let until = acknowledged + self.duration;
            let nanos = until.saturating_duration_since(self.base).as_nanos() as u64;
            self.until.fetch_max(nanos, Ordering::AcqRel);
        }
    }

    /// No lease in `term` from now on: leadership is about to be given away.
    pub(crate) fn give_up(&self, term: u64) {
        let mut acks = self.acks.lock();
        if term >= acks.term {
            *acks = Acks { term, withdrawn: true, ..Acks::default() };
        }
        self.until.store(0, Ordering::Release);
        self.tell_of_withdrawal();
    }

    /// This replica has seen a later term than its own.
    pub(crate) fn superseded(&self, term: u64) {
        let mut acks = self.acks.lock();
        if term > acks.term {
            *acks = Acks { term, ..Acks::default() };
            self.until.store(0, Ordering::Release);
            self.tell_of_withdrawal();
        }
    }

    /// Until when the lease lasts.
    pub(crate) fn until(&self) -> Option<Instant> {
        if !self.leader.load(Ordering::Acquire) {
            return None;
        }
        if self.sole.load(Ordering::Acquire) && self.changes.load(Ordering::Acquire) == 0 {
            return Some(Instant::now() + self.duration);
        }
        let nanos = self.until.load(Ordering::Acquire);
        (nanos > 0).then(|| self.base + Duration::from_nanos(nanos))
    }
}

/// The latest time such that a majority of every config accepted something sent then or later. The
/// leader itself counts as always there.
fn quorum_time(node: u32, sent: &BTreeMap<u32, Instant>, configs: &[BTreeSet<u32>]) -> Option<Instant> {
    let mut result: Option<Instant> = None;
    for config in configs {
        let majority = config.len() / 2 + 1;
        let needed = majority - usize::from(config.contains(&node));
        if needed == 0 {
            continue;
        }
        let mut times: Vec<Instant> = config.iter().filter(|p| **p != node).filter_map(|p| sent.get(p).copied()).collect();
        times.sort_unstable();
        let time = *times.get(times.len().checked_sub(needed)?)?;
        result = Some(result.map_or(time, |r| r.min(time)));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: Duration = Duration::from_millis(500);

    fn leading() -> Lease {
        let lease = Lease::new(1, D);
        lease.set_leader(true);
        lease
    }

    #[tokio::test(start_paused = true)]
    async fn the_lease_follows_the_majority_not_the_fastest() {
        let lease = leading();
        let configs = [BTreeSet::from([1, 2, 3, 4, 5])];
        let start = Instant::now();
        lease.acknowledged(1, 2, start + D, &configs);
        assert_eq!(lease.until(), None);
        lease.acknowledged(1, 3, start, &configs);
        assert_eq!(lease.until(), Some(start + D));
        lease.acknowledged(1, 4, start + D / 2, &configs);
        assert_eq!(lease.until(), Some(start + D / 2 + D));
    }

    #[tokio::test(start_paused = true)]
    async fn a_joint_configuration_needs_both_majorities() {
        let lease = leading();
        let configs = [BTreeSet::from([1, 2, 3]), BTreeSet::from([4, 5, 6])];
        let start = Instant::now();
        for peer in [2, 4] {
            lease.acknowledged(1, peer, start, &configs);
            assert_eq!(lease.until(), None);
        }
        lease.acknowledged(1, 5, start, &configs);
        assert_eq!(lease.until(), Some(start + D));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_given_up_does_not_come_back_in_the_same_term() {
        let lease = leading();
        let configs = [BTreeSet::from([1, 2, 3])];
        lease.acknowledged(4, 2, Instant::now(), &configs);
        assert!(lease.until().is_some());
        lease.give_up(4);
        assert_eq!(lease.until(), None);
        lease.acknowledged(4, 3, Instant::now(), &configs);
        assert_eq!(lease.until(), None);
        lease.acknowledged(5, 3, Instant::now(), &configs);
        assert!(lease.until().is_some());
        lease.superseded(6);
        assert_eq!(lease.until(), None);
        lease.acknowledged(5, 2, Instant::now(), &configs);
        assert_eq!(lease.until(), None);
    }

    /// What each answer leaves of the lease, in a group of the voters 1, 2 and 3. Times are
    /// milliseconds.
    #[tokio::test(start_paused = true)]
    async fn answers_that_are_late_repeated_or_of_another_term_lengthen_nothing() {
        let at = |millis: u64| Duration::from_millis(millis);
        #[rustfmt::skip]
        let script: [(&str, u64, u32, u64, Option<u64>); 9] = [
            // what, term, peer, sent, the lease lasts until
            ("the first answer",                         2, 2, 100, Some(600)),
            ("a later one",                              2, 3, 200, Some(700)),
            ("one that was overtaken",                   2, 3, 150, Some(700)),
            ("the slower peer's",                        2, 2, 120, Some(700)),
            ("one of an earlier term",                   1, 2, 900, Some(700)),
            ("somebody who is no voter",                 2, 9, 900, Some(700)),
            ("of a later term, no voter: not yet",       3, 9, 950, None),
            ("of a later term",                          3, 2, 300, Some(800)),
            ("of the earlier term again",                2, 3, 999, Some(800)),
        ];
        let lease = leading();
        let start = Instant::now();
        for (what, term, peer, sent, until) in script {
            lease.acknowledged(term, peer, start + at(sent), &[BTreeSet::from([1, 2, 3])]);
            assert_eq!(lease.until(), until.map(|u| start + at(u)), "{what}");
        }
        lease.superseded(3);
        assert!(lease.until().is_some(), "its own term supersedes nothing");
        lease.give_up(2);
        assert_eq!(lease.until(), None, "given up, whatever the term");
    }

    /// An answer that was overtaken by a later one of the same peer does not take that back.
    #[tokio::test(start_paused = true)]
    async fn what_a_peer_accepted_last_counts() {
        let lease = leading();
        let configs = [BTreeSet::from([1, 2, 3, 4, 5])];
        let start = Instant::now();
        lease.acknowledged(1, 2, start + 3 * D, &configs);
        lease.acknowledged(1, 2, start + D, &configs);
        lease.acknowledged(1, 3, start + 2 * D, &configs);
        assert_eq!(lease.until(), Some(start + 2 * D + D));
    }

    /// A leader that is not among the voters of a set needs a majority without itself.
    #[tokio::test(start_paused = true)]
    async fn a_leader_that_leaves_does_not_count_itself() {
        let lease = leading();
        let configs = [BTreeSet::from([1, 2, 3]), BTreeSet::from([2, 3, 4])];
        let start = Instant::now();
        lease.acknowledged(1, 2, start + D, &configs);
        assert_eq!(lease.until(), None, "one of 2, 3 and 4 is no majority");
        lease.acknowledged(1, 4, start, &configs);
        assert_eq!(lease.until(), Some(start + D));
        // The set that was heard from last does not count for both.
        let lease = leading();
        let configs = [BTreeSet::from([2, 3, 4]), BTreeSet::from([1, 2, 3])];
        lease.acknowledged(1, 4, start, &configs);
        lease.acknowledged(1, 2, start + D, &configs);
        assert_eq!(lease.until(), Some(start + D));
        // A voter by itself needs nobody; the other set does.
        let lease = leading();
        let configs = [BTreeSet::from([1]), BTreeSet::from([1, 2, 3])];
        lease.acknowledged(1, 9, start, &configs);
        assert_eq!(lease.until(), None);
        lease.acknowledged(1, 3, start, &configs);
        assert_eq!(lease.until(), Some(start + D));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sole_voter_needs_nobody_but_must_lead() {
        let lease = Lease::new(1, D);
        lease.set_sole(true);
        assert_eq!(lease.until(), None);
        lease.set_leader(true);
        assert!(lease.until().is_some());
        let change = lease.changing_voters();
        lease.set_sole(true);
        assert_eq!(lease.until(), None, "what is known of the voters may be out of date");
        drop(change);
        assert!(lease.until().is_some());
        lease.set_sole(false);
        assert_eq!(lease.until(), None);
    }
}
