//! A participant: what a group's primary does for transactions over several groups, for the length
//! of one term.
//!
//! What is durable is the [`Ledger`]'s; here is what the primary adds in memory: Prepares that
//! wait, records on their way into the log, votes of others, and who still has to acknowledge. All
//! of it may be lost: a new term asks again.
//!
//! How the caller joins it with the group's engine and log, all under the lock that guards the
//! three:
//!
//! 1. [`Action::Certify`]: while [`Participant::certifying`] gives the request, ask
//!    `Engine::prepare`, waiting as it says; report with [`Participant::certified`] in the same
//!    hold of the lock.
//! 2. [`Action::Log`]: append the record, in order with the other records of the group.
//! 3. [`Action::Decide`]: ask `Engine::decide`, waiting as it says, and append its record.
//! 4. When a payload is applied to the state: `Engine::applied`, then [`Participant::applied`].
//! 5. [`Participant::tick`] when [`Participant::next_tick`] is due.

use crate::rules::Rules;
use meridian_base::limits::{
    EARLY_VOTES_KEPT, EARLY_VOTES_MAX, OUTCOME_ACK_AFTER, PREPARE_TIMEOUT, PREPARE_WAIT_MAX, VOTE_REQUEST_AFTER, WATERMARK_LAG,
};
use meridian_base::record::{Outcome, Payload, Prepared, Record, Reserved};
use meridian_base::{
    BallotMessage, CommitRequest, GroupId, Ledger, Peer, Prepare, Refusal, Standing, Timestamp, TxnId, Vote, Write,
};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// Timers that one [`Participant::tick`] serves: after a failover there may be many at once.
const TIMERS_PER_TICK_MAX: usize = 512;
/// Ids that one `Settled` record names.
const SETTLED_PER_RECORD_MAX: usize = 512;
/// A timer doubles at most this many times, so that a group that is cut off for minutes is not
/// asked every two seconds about each of its transactions.
const DOUBLINGS_MAX: u32 = 3;

/// Said where a ballot was looked at, or put there, a moment ago.
const BALLOT: &str = "the ballot is in memory";

/// What the caller does for a participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this, once; if it is lost, a timer or the other side asks again.
    Send { to: Peer, message: BallotMessage },
    /// Append this to the log. If it is lost, so is the term.
    Log(Record),
    /// Certify [`Participant::certifying`]'s slice and report.
    Certify(TxnId),
    /// The outcome is known: log it as soon as the clock allows. Aborts too go through the engine,
    /// which releases on both.
    Decide { id: TxnId, at: Option<Timestamp> },
}

/// See the module's essay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    group: GroupId,
    rules: Rules,
    ballots: BTreeMap<TxnId, Ballot>,
    timers: BTreeSet<(Timestamp, TxnId)>,
    /// Ballots of which only votes are known.
    early: usize,
    /// Committed and acknowledged by all; forgotten once the id is at or below the watermark.
    acknowledged: BTreeSet<TxnId>,
}

/// What is in memory about one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ballot {
    phase: Phase,
    /// The others' votes; `None` is a NO.
    votes: BTreeMap<GroupId, Option<Timestamp>>,
    /// Whom to answer when this group's vote is durable, beside those who get it anyway.
    askers: BTreeSet<Peer>,
    /// Who has the outcome in the log.
    acks: BTreeSet<GroupId>,
    due: Timestamp,
    /// Timers that brought nothing so far.
    tries: u32,
}

/// Where the transaction stands, as far as the log does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Unknown: only votes of others have come.
    Early,
    /// Unknown: the Prepare is held back until `due`.
    Held(Box<Prepare>),
    /// Unknown: the caller certifies, until `due` at the latest.
    Certifying(Box<Prepare>),
    /// `Prepared` is on its way into the log.
    Preparing { participants: Vec<GroupId> },
    /// `Refused` is on its way into the log; then these are told.
    Refusing { participants: Vec<GroupId>, refusal: Refusal },
    /// Prepared, in the log; votes are missing.
    Prepared,
    /// All votes are known. `Outcome` is on its way into the log, or waits for the clock.
    Deciding,
    /// Committed, in the log; acknowledgements are missing, or the watermark.
    Committed,
    /// `Settled` is on its way into the log.
    Settling,
}

/// For models: when a timer is due is not part of what a participant is, and a Prepare is its id.
impl Hash for Participant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.acknowledged.hash(state);
        for (id, ballot) in &self.ballots {
            (id, std::mem::discriminant(&ballot.phase), &ballot.votes, &ballot.askers, &ballot.acks).hash(state);
            if let Phase::Refusing { participants, .. } = &ballot.phase {
                participants.hash(state);
            }
        }
    }
}

impl Ballot {
    fn new(phase: Phase, due: Timestamp) -> Ballot {
        Ballot { phase, votes: BTreeMap::new(), askers: BTreeSet::new(), acks: BTreeSet::new(), due, tries: 0 }
    }
    fn has_no(&self) -> bool {
        self.votes.values().any(Option::is_none)
    }
    /// Every other participant has voted.
    fn misses_only_own(&self, prepare: &Prepare) -> bool {
        self.votes.len() + 1 >= prepare.participants.len()
    }
}

impl Participant {
    /// The participant of a new term, over what the log says. Nothing is sent yet:
    /// [`Participant::tick`] asks for what is missing.
    pub fn start(group: GroupId, ledger: &impl Ledger, now: Timestamp, rules: Rules) -> Participant {
        let mut participant = Participant {
            group,
            rules,
            ballots: BTreeMap::new(),
            timers: BTreeSet::new(),
            early: 0,
            acknowledged: BTreeSet::new(),
        };
        for id in ledger.unsettled() {
            let phase = match ledger.standing(id) {
                Standing::Prepared(_) => Phase::Prepared,
                Standing::Decided { at: Some(_), .. } => Phase::Committed,
                _ => continue,
            };
            if rules.answers_from_log() {
                participant.insert(id, Ballot::new(phase, now));
            }
        }
        participant
    }

    /// The slice to certify, while that is wanted.
    pub fn certifying(&self, id: TxnId) -> Option<&CommitRequest> {
        match &self.ballots.get(&id)?.phase {
            Phase::Certifying(prepare) => Some(&prepare.slice),
            _ => None,
        }
    }

    /// The same, to note up to when its reads of GLOBAL rows hold.
    pub fn certifying_mut(&mut self, id: TxnId) -> Option<&mut CommitRequest> {
        match &mut self.ballots.get_mut(&id)?.phase {
            Phase::Certifying(prepare) => Some(&mut prepare.slice),
            _ => None,
        }
    }

    /// Whether the transaction that is being certified has waited its turn for rows here
    /// ([`Prepare::has_queued`]).
    pub fn has_queued(&self, id: TxnId) -> bool {
        matches!(self.ballots.get(&id).map(|b| &b.phase), Some(Phase::Certifying(prepare)) if prepare.has_queued)
    }

    /// Whether it may be made to wait for others' outcomes ([`Prepare::is_late`]).
    pub fn is_late(&self, id: TxnId) -> bool {
        matches!(self.ballots.get(&id).map(|b| &b.phase), Some(Phase::Certifying(prepare)) if prepare.is_late)
    }

    /// The participants whose votes, or acknowledgements of the outcome, are missing.
    pub fn waits_for(&self, ledger: &impl Ledger, id: TxnId) -> Vec<GroupId> {
        let Some(ballot) = self.ballots.get(&id) else { return Vec::new() };
        let others = ledger.participants(id).iter().copied().filter(|g| *g != self.group);
        match ballot.phase {
            Phase::Prepared => others.filter(|g| !ballot.votes.contains_key(g)).collect(),
            Phase::Committed => others.filter(|g| !ballot.acks.contains(g)).collect(),
            _ => Vec::new(),
        }
    }

    /// What a transaction that is prepared here waits for, in words.
    pub fn stage(&self, id: TxnId) -> &'static str {
        match self.ballots.get(&id).map(|ballot| &ballot.phase) {
            Some(Phase::Prepared) => "votes are missing",
            Some(Phase::Deciding) => "its outcome is known and on its way into the log, or waits until the clock is there",
            _ => "its outcome is being applied",
        }
    }

    /// The groups that may still be asked for a vote or an acknowledgement from here: every
    /// participant of what is prepared, of what is certified and on its way into the log, and of
    /// what has committed and is not settled. A group that is not among them is named by nothing
    /// that was certified here so far.
    pub fn names(&self, ledger: &impl Ledger) -> BTreeSet<GroupId> {
        let mut names: BTreeSet<GroupId> =
            ledger.unsettled().into_iter().flat_map(|id| ledger.participants(id).to_vec()).collect();
        for ballot in self.ballots.values() {
            if let Phase::Preparing { participants } = &ballot.phase {
                names.extend(participants);
            }
        }
        names
    }

    /// How many transactions are in memory here.
    pub fn len(&self) -> usize {
        self.ballots.len()
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.ballots.is_empty()
    }
}

// --- messages

impl Participant {
    /// A message has come.
    pub fn receive(&mut self, ledger: &impl Ledger, message: BallotMessage, now: Timestamp, out: &mut Vec<Action>) {
        match message {
            BallotMessage::Prepare(prepare) => self.prepare(ledger, prepare, now, out),
            BallotMessage::Vote { id, from, vote } => self.vote(ledger, id, from, vote, now, out),
            BallotMessage::VoteRequest { id, from } => self.vote_request(ledger, id, from, now, out),
            BallotMessage::OutcomeAck { id, from, reply } => self.outcome_ack(ledger, id, from, reply, out),
        }
    }

    fn prepare(&mut self, ledger: &impl Ledger, prepare: Box<Prepare>, now: Timestamp, out: &mut Vec<Action>) {
        let id = prepare.id();
        let standing = self.standing(ledger, id);
        let is_new = match standing {
            Standing::Unknown => true,
            Standing::Forgotten => !self.rules.refuses_late_prepares(),
            _ => false,
        };
        if !is_new {
            return self.answer(standing, id, Peer::Gateway(id.gateway), out);
        }
        if self.is_voting(id) {
            return; // The first one is on its way to a vote.
        }
        let mut ballot = self.remove(id).unwrap_or_else(|| Ballot::new(Phase::Early, now));
        // The other participants may have forgotten such an old transaction, or an operator may
        // have ended it there.
        let is_over = id.hlc.plus(WATERMARK_LAG) <= now && self.rules.refuses_late_prepares();
        let has_no = ballot.has_no() || is_over;
        // What waits for the others' votes alone holds nothing meanwhile.
        let longest = if prepare.is_last { PREPARE_TIMEOUT } else { PREPARE_WAIT_MAX };
        ballot.due = now.plus(prepare.hold.min(longest));
        let participants = prepare.participants.clone();
        let is_held = ballot.due > now && !ballot.misses_only_own(&prepare);
        ballot.phase = Phase::Held(prepare);
        self.insert(id, ballot);
        if has_no {
            self.refuse(id, participants, Refusal::default(), out);
        } else if !is_held {
            self.certify(id, now, out);
        }
    }

    /// What the log says; but what began to vote before the watermark passed it is not forgotten:
    /// it votes.
    fn standing(&self, ledger: &impl Ledger, id: TxnId) -> Standing {
        match ledger.standing(id) {
            Standing::Forgotten if self.is_voting(id) => Standing::Unknown,
            standing => standing,
        }
    }

    /// A Prepare is here, or a record is on its way into the log.
    fn is_voting(&self, id: TxnId) -> bool {
        let voting = |phase: &Phase| {
            matches!(phase, Phase::Held(_) | Phase::Certifying(_) | Phase::Preparing { .. } | Phase::Refusing { .. })
        };
        self.ballots.get(&id).is_some_and(|b| voting(&b.phase))
    }

    /// The hold is over, or another participant asks for the vote already.
    fn certify(&mut self, id: TxnId, now: Timestamp, out: &mut Vec<Action>) {
        let mut ballot = self.remove(id).expect(BALLOT);
        let Phase::Held(prepare) = std::mem::replace(&mut ballot.phase, Phase::Early) else {
            panic!("{id} is to be certified and was not held back")
        };
        if prepare.is_last && !ballot.misses_only_own(&prepare) {
            self.insert(id, ballot);
            return self.refuse(id, prepare.participants, Refusal::default(), out);
        }
        ballot.phase = Phase::Certifying(prepare);
        ballot.due = match self.rules.bounds_waits() {
            false => Timestamp::MAX,
            true => now.plus(PREPARE_WAIT_MAX),
        };
        out.push(Action::Certify(id));
        self.insert(id, ballot);
    }

    /// What certification says: the vote's timestamp, reserved already, with what the log is to
    /// hold; or why not. Ignored if it
    /// is no longer wanted; so it is asked in one hold of the lock with
    /// [`Participant::certifying`].
    pub fn certified(&mut self, id: TxnId, answer: Result<(Timestamp, Vec<Write>), Refusal>, out: &mut Vec<Action>) {
        let Some(Phase::Certifying(prepare)) = self.ballots.get(&id).map(|b| &b.phase) else { return };
        let participants = prepare.participants.clone();
        let (at, writes) = match answer {
            Ok(passed) => passed,
            Err(refusal) => return self.refuse(id, participants, refusal, out),
        };
        let prepared = prepared(prepare, at, writes);
        let is_unlogged = prepared.writes.is_empty() && !self.rules.logs_every_vote();
        if !self.rules.votes_when_durable() || is_unlogged {
            self.tell(id, &participants, &Vote::Yes(at), out);
        }
        let ballot = self.remove(id).expect(BALLOT);
        self.insert(id, Ballot { phase: Phase::Preparing { participants }, due: Timestamp::MAX, ..ballot });
        if !is_unlogged {
            out.push(Action::Log(Record::Prepared(Box::new(prepared))));
        }
    }

    fn refuse(&mut self, id: TxnId, participants: Vec<GroupId>, refusal: Refusal, out: &mut Vec<Action>) {
        let mut ballot = self.remove(id).unwrap_or_else(|| Ballot::new(Phase::Early, Timestamp::MAX));
        ballot.phase = Phase::Refusing { participants, refusal };
        ballot.due = Timestamp::MAX;
        self.insert(id, ballot);
        out.push(Action::Log(Record::Refused(id)));
    }

    fn vote(&mut self, ledger: &impl Ledger, id: TxnId, from: GroupId, vote: Vote, now: Timestamp, out: &mut Vec<Action>) {
        let is_open = matches!(self.standing(ledger, id), Standing::Unknown | Standing::Prepared(_));
        if !is_open || from == self.group {
            return;
        }
        if !self.ballots.contains_key(&id) {
            self.make_room(now);
            self.insert(id, Ballot::new(Phase::Early, now.plus(EARLY_VOTES_KEPT)));
        }
        let ballot = self.ballots.get_mut(&id).expect(BALLOT);
        let at = match vote {
            Vote::Yes(at) => Some(at),
            Vote::No(_) | Vote::Forgotten => None,
        };
        // A vote does not change; should two differ, the first counts.
        ballot.votes.entry(from).or_insert(at);
        match &ballot.phase {
            Phase::Prepared => self.decide(ledger, id, out),
            // An early NO is answered without preparing.
            Phase::Held(prepare) | Phase::Certifying(prepare) if at.is_none() => {
                let participants = prepare.participants.clone();
                self.refuse(id, participants, Refusal::default(), out);
            }
            // Only this vote is missing: nothing is won by holding it back any longer.
            Phase::Held(prepare) if ballot.misses_only_own(prepare) => self.certify(id, now, out),
            _ => {}
        }
    }

    /// «Vote, or refuse.»
    fn vote_request(&mut self, ledger: &impl Ledger, id: TxnId, from: Peer, now: Timestamp, out: &mut Vec<Action>) {
        let standing = self.standing(ledger, id);
        if !self.rules.answers_from_log() && !self.ballots.contains_key(&id) {
            return self.send_vote(from, id, Vote::No(Refusal::default()), out);
        }
        if standing != Standing::Unknown {
            return self.answer(standing, id, from, out);
        }
        if !self.is_voting(id) {
            self.refuse(id, Vec::new(), Refusal::default(), out);
        } else if matches!(self.ballots.get(&id), Some(Ballot { phase: Phase::Held(_), .. })) {
            self.certify(id, now, out);
        }
        self.ballots.get_mut(&id).expect(BALLOT).askers.insert(from);
    }

    fn outcome_ack(&mut self, ledger: &impl Ledger, id: TxnId, from: GroupId, reply: bool, out: &mut Vec<Action>) {
        let standing = ledger.standing(id);
        if let Some(ballot) = self.ballots.get_mut(&id) {
            ballot.acks.insert(from);
        }
        if reply && matches!(standing, Standing::Decided { at: Some(_), .. } | Standing::Forgotten) {
            self.send_ack(from, id, false, out);
        }
        if matches!(standing, Standing::Decided { at: Some(_), .. }) {
            self.settle_if_acknowledged(ledger, id, out);
        }
    }

    /// Says what the log says.
    fn answer(&self, standing: Standing, id: TxnId, to: Peer, out: &mut Vec<Action>) {
        let vote = match standing {
            Standing::Prepared(vote) | Standing::Decided { vote, .. } => Vote::Yes(vote),
            Standing::Refused => Vote::No(Refusal::default()),
            Standing::Forgotten => Vote::Forgotten,
            Standing::Unknown => panic!("the log has no answer about {id}"),
        };
        self.send_vote(to, id, vote, out);
    }

    /// Sends a vote to every other participant, the gateway, and the nodes that have asked.
    fn tell(&self, id: TxnId, participants: &[GroupId], vote: &Vote, out: &mut Vec<Action>) {
        let askers = self.ballots.get(&id).map(|b| &b.askers).into_iter().flatten().copied();
        let others = participants.iter().filter(|g| **g != self.group).map(|g| Peer::Group(*g));
        let peers: BTreeSet<Peer> = askers.chain(others).chain([Peer::Gateway(id.gateway)]).collect();
        for to in peers {
            self.send_vote(to, id, vote.clone(), out);
        }
    }

    fn send_vote(&self, to: Peer, id: TxnId, mut vote: Vote, out: &mut Vec<Action>) {
        if let (Peer::Group(_), Vote::No(refusal)) = (to, &mut vote) {
            *refusal = Refusal::default();
        }
        out.push(Action::Send { to, message: BallotMessage::Vote { id, from: self.group, vote } });
    }
    fn send_ack(&self, to: GroupId, id: TxnId, reply: bool, out: &mut Vec<Action>) {
        out.push(Action::Send { to: Peer::Group(to), message: BallotMessage::OutcomeAck { id, from: self.group, reply } });
    }
}

/// The record of a slice that has passed at `at`, and does this.
fn prepared(prepare: &Prepare, at: Timestamp, writes: Vec<Write>) -> Prepared {
    let slice = &prepare.slice;
    Prepared {
        id: slice.id,
        at,
        participants: prepare.participants.clone(),
        reads: slice.reads.iter().map(|e| Reserved { target: e.target.clone(), columns: e.columns }).collect(),
        writes,
    }
}

// --- votes and outcomes

impl Participant {
    /// Prepared: if the votes give an outcome, takes it.
    fn decide(&mut self, ledger: &impl Ledger, id: TxnId, out: &mut Vec<Action>) {
        let ballot = self.ballots.get(&id).expect(BALLOT);
        let Standing::Prepared(own) = ledger.standing(id) else {
            panic!("{id} is {:?} in memory and {:?} in the log", ballot.phase, ledger.standing(id))
        };
        let others = || ledger.participants(id).iter().filter(|g| **g != self.group);
        let is_no = |g: &GroupId| ballot.votes.get(g) == Some(&None);
        let votes: Option<Vec<Timestamp>> = others().map(|g| ballot.votes.get(g).copied().flatten()).collect();
        let at = match votes {
            Some(votes) => votes.into_iter().max().max(Some(own)),
            None if others().any(is_no) => None,
            None => return,
        };
        self.take_outcome(ledger, id, at, out);
    }

    fn take_outcome(&mut self, ledger: &impl Ledger, id: TxnId, at: Option<Timestamp>, out: &mut Vec<Action>) {
        let ballot = self.remove(id).expect(BALLOT);
        self.insert(id, Ballot { phase: Phase::Deciding, due: Timestamp::MAX, ..ballot });
        out.push(Action::Decide { id, at });
        if !self.rules.acks_when_durable() && at.is_some() {
            self.acknowledge(ledger, id, out);
        }
    }

    /// An operator ends what is prepared here and in doubt: nothing else is known to. If the votes
    /// have given an outcome meanwhile, that one counts. A last resort, which may contradict a
    /// participant that cannot be reached (T5); the caller has asked all others.
    pub fn end_in_doubt(&mut self, ledger: &impl Ledger, id: TxnId, at: Option<Timestamp>, out: &mut Vec<Action>) {
        let Standing::Prepared(vote) = ledger.standing(id) else { return };
        if self.ballots.get(&id).is_none_or(|ballot| ballot.phase != Phase::Prepared) {
            return;
        }
        assert!(at.is_none_or(|at| at >= vote), "{id} would commit at {at:?}, below this group's vote {vote}");
        self.take_outcome(ledger, id, at, out);
    }

    /// The votes of others that have come; `None` is a NO.
    pub fn votes(&self, id: TxnId) -> BTreeMap<GroupId, Option<Timestamp>> {
        self.ballots.get(&id).map(|ballot| ballot.votes.clone()).unwrap_or_default()
    }

    /// Tells the other participants that this group will not ask for votes again.
    fn acknowledge(&self, ledger: &impl Ledger, id: TxnId, out: &mut Vec<Action>) {
        for to in ledger.participants(id).iter().filter(|g| **g != self.group) {
            self.send_ack(*to, id, false, out);
        }
    }

    /// A payload is durable, and applied to the ledger.
    pub fn applied(&mut self, ledger: &impl Ledger, payload: &Payload, now: Timestamp, out: &mut Vec<Action>) {
        for record in &payload.records {
            match record {
                Record::Prepared(prepared) => self.prepared_applied(ledger, prepared.id, now, out),
                Record::Refused(id) => self.refused_applied(*id, out),
                Record::Outcome(outcome) => self.outcome_applied(ledger, outcome, now, out),
                Record::Settled(ids) => {
                    for id in ids {
                        self.remove(*id);
                    }
                }
                Record::Batch(_) | Record::Lease(_) | Record::Schema(_) | Record::Build(_) | Record::Part(_) => {}
            }
        }
        self.settle(ledger, out);
    }

    fn prepared_applied(&mut self, ledger: &impl Ledger, id: TxnId, now: Timestamp, out: &mut Vec<Action>) {
        let (Standing::Prepared(vote), Some(ballot)) = (ledger.standing(id), self.remove(id)) else {
            // The record is of this term, whose participant had it logged, and no other vote can be
            // in the log.
            assert!(!self.rules.are_all_kept(), "{id} was prepared by nobody, or has voted before: {:?}", ledger.standing(id));
            return;
        };
        self.insert(id, Ballot { phase: Phase::Prepared, due: now.plus(VOTE_REQUEST_AFTER), ..ballot });
        self.tell(id, ledger.participants(id), &Vote::Yes(vote), out);
        self.ballots.get_mut(&id).expect(BALLOT).askers.clear();
        self.decide(ledger, id, out);
    }

    fn refused_applied(&mut self, id: TxnId, out: &mut Vec<Action>) {
        match self.ballots.get(&id).map(|ballot| &ballot.phase) {
            Some(Phase::Refusing { participants, refusal }) => self.tell(id, participants, &Vote::No(refusal.clone()), out),
            // A transaction of this group alone, refused by the engine for want of tokens.
            None => return,
            other => assert!(!self.rules.are_all_kept(), "{id} was refused by nobody: {other:?}"),
        }
        self.remove(id);
    }

    fn outcome_applied(&mut self, ledger: &impl Ledger, outcome: &Outcome, now: Timestamp, out: &mut Vec<Action>) {
        let id = outcome.id;
        let Some(ballot) = self.remove(id) else {
            assert!(!self.rules.are_all_kept(), "{id} has an outcome and was not prepared");
            return;
        };
        if outcome.at.is_none() {
            return;
        }
        self.insert(id, Ballot { phase: Phase::Committed, due: now.plus(OUTCOME_ACK_AFTER), tries: 0, ..ballot });
        self.acknowledge(ledger, id, out);
        self.settle_if_acknowledged(ledger, id, out);
    }

    fn settle_if_acknowledged(&mut self, ledger: &impl Ledger, id: TxnId, out: &mut Vec<Action>) {
        let Some(ballot) = self.ballots.get(&id).filter(|b| b.phase == Phase::Committed) else { return };
        let mut others = ledger.participants(id).iter().filter(|g| **g != self.group);
        if others.all(|g| ballot.acks.contains(g)) || !self.rules.keeps_until_acked() {
            self.acknowledged.insert(id);
            self.set_due(id, Timestamp::MAX);
            self.settle(ledger, out);
        }
    }

    /// Forgets what everybody has acknowledged and the watermark has passed.
    fn settle(&mut self, ledger: &impl Ledger, out: &mut Vec<Action>) {
        let mut ids = Vec::new();
        while ids.len() < SETTLED_PER_RECORD_MAX
            && let Some(id) = self.acknowledged.first().copied().filter(|id| id.hlc <= ledger.watermark())
        {
            self.acknowledged.pop_first();
            self.ballots.get_mut(&id).expect(BALLOT).phase = Phase::Settling;
            ids.push(id);
        }
        if !ids.is_empty() {
            out.push(Action::Log(Record::Settled(ids)));
        }
    }
}

// --- time

impl Participant {
    /// What time alone makes happen.
    pub fn tick(&mut self, ledger: &impl Ledger, now: Timestamp, out: &mut Vec<Action>) {
        for _ in 0..TIMERS_PER_TICK_MAX {
            let Some((_, id)) = self.timers.first().copied().filter(|(due, _)| *due <= now) else { break };
            self.due(ledger, id, now, out);
        }
    }

    /// When [`Participant::tick`] has something to do.
    pub fn next_tick(&self) -> Option<Timestamp> {
        self.timers.first().map(|(due, _)| *due)
    }

    fn due(&mut self, ledger: &impl Ledger, id: TxnId, now: Timestamp, out: &mut Vec<Action>) {
        let ballot = self.ballots.get(&id).expect(BALLOT);
        match &ballot.phase {
            Phase::Early => {
                self.remove(id);
            }
            Phase::Held(_) => self.certify(id, now, out),
            Phase::Certifying(prepare) => {
                let participants = prepare.participants.clone();
                self.refuse(id, participants, Refusal::default(), out);
            }
            Phase::Prepared if !self.rules.decides_by_votes() => self.take_outcome(ledger, id, None, out),
            Phase::Prepared => {
                for to in self.waits_for(ledger, id) {
                    let message = BallotMessage::VoteRequest { id, from: Peer::Group(self.group) };
                    out.push(Action::Send { to: Peer::Group(to), message });
                }
                self.again_after(id, VOTE_REQUEST_AFTER, now);
                // A new term finds transactions whose only participant is this group, or none
                // missing.
                self.decide(ledger, id, out);
            }
            Phase::Committed => {
                for to in self.waits_for(ledger, id) {
                    self.send_ack(to, id, true, out);
                }
                self.again_after(id, OUTCOME_ACK_AFTER, now);
                self.settle_if_acknowledged(ledger, id, out);
            }
            Phase::Preparing { .. } | Phase::Refusing { .. } | Phase::Deciding | Phase::Settling => {
                panic!("{id} has a timer in {:?}, which waits for the log alone", ballot.phase)
            }
        }
    }

    fn again_after(&mut self, id: TxnId, after: Duration, now: Timestamp) {
        let ballot = self.ballots.get_mut(&id).expect(BALLOT);
        let tries = ballot.tries.min(DOUBLINGS_MAX);
        ballot.tries += 1;
        self.set_due(id, now.plus(after * (1 << tries)));
    }

    fn set_due(&mut self, id: TxnId, due: Timestamp) {
        let ballot = self.remove(id).expect(BALLOT);
        self.insert(id, Ballot { due, ..ballot });
    }

    fn insert(&mut self, id: TxnId, ballot: Ballot) {
        if ballot.due != Timestamp::MAX {
            self.timers.insert((ballot.due, id));
        }
        self.early += usize::from(ballot.phase == Phase::Early);
        self.ballots.insert(id, ballot);
    }

    fn remove(&mut self, id: TxnId) -> Option<Ballot> {
        let ballot = self.ballots.remove(&id)?;
        self.timers.remove(&(ballot.due, id));
        self.early -= usize::from(ballot.phase == Phase::Early);
        Some(ballot)
    }

    /// The votes that would be dropped next are dropped now, if there are too many.
    fn make_room(&mut self, now: Timestamp) {
        if self.early < EARLY_VOTES_MAX {
            return;
        }
        let is_early = |(_, id): &&(Timestamp, TxnId)| self.ballots.get(id).is_some_and(|b| b.phase == Phase::Early);
        let from = (now, TxnId::default());
        if let Some((_, id)) = self.timers.range(from..).find(is_early).copied() {
            self.remove(id);
        }
    }
}

// --- what always holds

impl Participant {
    /// Panics if memory and log contradict each other, or memory itself. Between any two calls of
    /// the functions above none does; the simulator and the model look after every event.
    pub fn invariant(&self, ledger: &impl Ledger) {
        if !self.rules.are_all_kept() {
            return;
        }
        for (id, ballot) in &self.ballots {
            let standing = ledger.standing(*id);
            let agrees = match ballot.phase {
                Phase::Early => !matches!(standing, Standing::Prepared(_)),
                Phase::Held(_) | Phase::Certifying(_) | Phase::Preparing { .. } | Phase::Refusing { .. } => {
                    matches!(standing, Standing::Unknown | Standing::Forgotten)
                }
                Phase::Prepared | Phase::Deciding => matches!(standing, Standing::Prepared(_)),
                Phase::Committed | Phase::Settling => matches!(standing, Standing::Decided { at: Some(_), .. }),
            };
            assert!(agrees, "{id} is {:?} in memory and {standing:?} in the log", ballot.phase);
            let has_timer = self.timers.contains(&(ballot.due, *id));
            assert!(has_timer == (ballot.due != Timestamp::MAX), "{id} is due at {} and has no such timer", ballot.due);
        }
        let timed = self.ballots.values().filter(|ballot| ballot.due != Timestamp::MAX).count();
        assert!(timed == self.timers.len(), "{} timers of {timed} transactions", self.timers.len());
        let early = self.ballots.values().filter(|ballot| ballot.phase == Phase::Early).count();
        assert!(early == self.early, "{} early votes are counted, there are {early}", self.early);
        for id in ledger.unsettled() {
            assert!(self.ballots.contains_key(&id), "{id} is {:?} in the log and nobody cares", ledger.standing(id));
        }
        for id in &self.acknowledged {
            let phase = self.ballots.get(id).map(|ballot| &ballot.phase);
            assert!(phase == Some(&Phase::Committed), "{id} is acknowledged by all and is {phase:?}");
        }
    }
}
