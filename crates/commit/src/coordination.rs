//! The gateway's side of one transaction: send the Prepares, collect the votes, tell the client.
//!
//! Nothing depends on it: a gateway that dies leaves participants that end by themselves. It
//! decides nothing either: it sees the outcome when it has seen the votes. What it adds is patience
//! with a bound: a Prepare or a vote may be lost, so it sends the Prepare again; a group may be cut
//! off, so it asks those that have not voted to refuse; and if even that is not answered it says
//! that it does not know (40003).

use meridian_base::limits::{OUTCOME_TIMEOUT, PREPARE_RESEND_AFTER, PREPARE_TIMEOUT};
use meridian_base::{BallotMessage, GroupId, Peer, Prepare, Refusal, Timestamp, TxnId, Vote};
use std::collections::BTreeMap;
use std::time::Duration;

/// What became of the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every participant voted YES: it is committed, at this timestamp.
    Committed(Timestamp),
    /// A participant voted NO: it is aborted, and the retry (under a new id) may use what these
    /// say. Those that have come so far; there may be more.
    Aborted(Vec<(GroupId, Refusal)>),
    /// Not known in time: it may have committed, or may yet (40003).
    Unknown,
}

/// See the module's essay.
#[derive(Clone, Debug)]
pub struct Coordination {
    id: TxnId,
    prepares: BTreeMap<GroupId, Prepare>,
    votes: BTreeMap<GroupId, Vote>,
    started: Timestamp,
    due: Timestamp,
    is_over: bool,
}

impl Coordination {
    /// Sends the Prepares: each group its own slice. They have the same id and the same
    /// participants.
    pub fn start(prepares: BTreeMap<GroupId, Prepare>, now: Timestamp, out: &mut Vec<(GroupId, BallotMessage)>) -> Coordination {
        let first = prepares.values().next().expect("a transaction has participants");
        let id = first.id();
        debug_assert!(prepares.values().all(|p| p.id() == id && p.participants.iter().eq(prepares.keys())));
        let hold_max = prepares.values().map(|p| p.hold).max().unwrap_or_default();
        for (group, prepare) in &prepares {
            out.push((*group, BallotMessage::Prepare(Box::new(prepare.clone()))));
        }
        let due = now.plus(hold_max + PREPARE_RESEND_AFTER);
        Coordination { id, prepares, votes: BTreeMap::new(), started: now, due, is_over: false }
    }

    /// Whose commit this is.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// A vote has come.
    pub fn vote(&mut self, from: GroupId, vote: Vote) {
        if !self.prepares.contains_key(&from) {
            return;
        }
        let known = self.votes.entry(from).or_insert_with(|| vote.clone());
        // A group that has forgotten may have voted before.
        if *known == Vote::Forgotten {
            *known = vote;
        }
    }

    /// The votes that are missing.
    pub fn waits_for(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.prepares.keys().filter(|g| !self.votes.contains_key(g)).copied()
    }

    /// The outcome of the transaction, once it is known. The gateway tells the client at once,
    /// without waiting for acknowledgements.
    pub fn verdict(&self) -> Option<Verdict> {
        let refusals = self.votes.iter().filter_map(|(group, vote)| match vote {
            Vote::No(refusal) => Some((*group, refusal.clone())),
            _ => None,
        });
        let refusals: Vec<_> = refusals.collect();
        if !refusals.is_empty() {
            return Some(Verdict::Aborted(refusals));
        }
        if self.is_over || self.votes.values().any(|v| *v == Vote::Forgotten) {
            return Some(Verdict::Unknown);
        }
        if self.waits_for().next().is_some() {
            return None;
        }
        let votes = self.votes.values().filter_map(|v| if let Vote::Yes(at) = v { Some(*at) } else { None });
        votes.max().map(Verdict::Committed)
    }

    /// When [`Coordination::tick`] has something to do.
    pub fn next_tick(&self) -> Timestamp {
        self.due
    }

    /// What time alone makes happen: sends again, asks to refuse, gives up.
    pub fn tick(&mut self, now: Timestamp, out: &mut Vec<(GroupId, BallotMessage)>) {
        if now < self.due {
            return;
        }
        let waited: Duration = now.since(self.started);
        self.due = now.plus(PREPARE_RESEND_AFTER);
        self.is_over = waited >= OUTCOME_TIMEOUT;
        let missing: Vec<GroupId> = self.waits_for().collect();
        for group in missing {
            let message = match waited >= PREPARE_TIMEOUT {
                true => BallotMessage::VoteRequest { id: self.id, from: Peer::Gateway(self.id.gateway) },
                false => {
                    let mut prepare = self.prepares[&group].clone();
                    if !prepare.is_last {
                        // The others' reservations are held: no time to hold this one back.
                        prepare.hold = Duration::ZERO;
                    }
                    BallotMessage::Prepare(Box::new(prepare))
                }
            };
            out.push((group, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::{CommitRequest, NodeId, SchemaUse};

    const A: GroupId = GroupId(2);
    const B: GroupId = GroupId(3);

    fn start() -> (Coordination, Vec<(GroupId, BallotMessage)>) {
        let id = TxnId { hlc: Timestamp(5), gateway: NodeId(1) };
        let slice = CommitRequest {
            id,
            reads: vec![],
            writes: vec![],
            min_commit: Timestamp(0),
            schema: SchemaUse::default(),
            global: Default::default(),
        };
        let prepare =
            Prepare { participants: vec![A, B], slice, hold: Duration::ZERO, has_queued: true, is_late: false, is_last: false };
        let mut out = Vec::new();
        let prepares = BTreeMap::from([(A, prepare.clone()), (B, prepare)]);
        (Coordination::start(prepares, Timestamp::from_micros(0), &mut out), out)
    }

    #[test]
    fn all_yes_commits_at_the_largest_vote() {
        let (mut c, sent) = start();
        assert_eq!(sent.len(), 2);
        c.vote(A, Vote::Yes(Timestamp(90)));
        assert_eq!((c.verdict(), c.waits_for().collect::<Vec<_>>()), (None, vec![B]));
        c.vote(B, Vote::Yes(Timestamp(70)));
        assert_eq!(c.verdict(), Some(Verdict::Committed(Timestamp(90))));
        c.vote(B, Vote::Forgotten);
        assert_eq!(c.verdict(), Some(Verdict::Committed(Timestamp(90))), "a vote does not change");
    }

    #[test]
    fn a_no_aborts_at_once_and_what_is_forgotten_is_unknown() {
        let (mut c, _) = start();
        c.vote(A, Vote::Forgotten);
        assert_eq!(c.verdict(), Some(Verdict::Unknown), "it may have committed and been forgotten");
        c.vote(B, Vote::No(Refusal::default()));
        assert_eq!(c.verdict(), Some(Verdict::Aborted(vec![(B, Refusal::default())])), "a NO is for ever");
    }

    #[test]
    fn a_silent_group_is_sent_the_prepare_again_then_asked_to_refuse_then_given_up() {
        let (mut c, _) = start();
        c.vote(A, Vote::Yes(Timestamp(90)));
        let (mut prepares, mut requests) = (0, 0);
        while c.verdict().is_none() {
            let mut out = Vec::new();
            c.tick(c.next_tick(), &mut out);
            for (to, message) in out {
                assert_eq!(to, B);
                match message {
                    BallotMessage::Prepare(_) => prepares += 1,
                    _ => requests += 1,
                }
            }
        }
        assert_eq!(c.verdict(), Some(Verdict::Unknown));
        assert!((3..10).contains(&prepares) && (10..30).contains(&requests), "{prepares} prepares, {requests} requests");
    }

    /// What is sent when, in milliseconds after the start, to a group that never answers.
    #[test]
    fn a_prepare_is_held_back_once_and_the_last_one_always() {
        for is_last in [false, true] {
            let hold = Duration::from_millis(40);
            let (_, sent) = start();
            let prepare = |group: GroupId| {
                let sent = sent.iter().find(|(to, _)| *to == group);
                let BallotMessage::Prepare(prepare) = &sent.expect("a Prepare each").1 else { panic!("a Prepare each") };
                Prepare { hold, is_last, ..(**prepare).clone() }
            };
            let prepares = BTreeMap::from([(A, prepare(A)), (B, prepare(B))]);
            let at = |millis: u64| Timestamp::from_micros(millis * 1_000);
            let mut c = Coordination::start(prepares, at(0), &mut Vec::new());
            c.vote(A, Vote::Yes(Timestamp(90)));
            c.vote(GroupId(9), Vote::No(Refusal::default()));
            assert_eq!(c.verdict(), None, "whoever does not take part has no vote");
            let mut told = Vec::new();
            for millis in 0..=20_500 {
                let mut out = Vec::new();
                c.tick(at(millis), &mut out);
                for (to, message) in out {
                    assert_eq!(to, B);
                    told.push((
                        millis,
                        match message {
                            BallotMessage::Prepare(prepare) => Some(prepare.hold),
                            _ => None,
                        },
                    ));
                }
                assert_eq!(c.verdict().is_some(), millis >= 20_290, "{millis}");
            }
            let again = Some(if is_last { hold } else { Duration::ZERO });
            let expected = (0..27).map(|n| (790 + 750 * n, if n < 6 { again } else { None }));
            assert_eq!(told, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_vote_that_was_forgotten_may_still_be_told() {
        let (mut c, _) = start();
        c.vote(A, Vote::Forgotten);
        c.vote(A, Vote::Yes(Timestamp(90)));
        assert_eq!(c.verdict(), None);
        c.vote(A, Vote::Yes(Timestamp(99)));
        c.vote(B, Vote::Yes(Timestamp(70)));
        assert_eq!(c.verdict(), Some(Verdict::Committed(Timestamp(90))));
    }
}
