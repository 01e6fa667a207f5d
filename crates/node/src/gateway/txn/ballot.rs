//! A commit over several groups, at its gateway: sends every participant its slice, collects the
//! votes, and knows the outcome from them alone (crate `commit`). Nobody waits for the gateway
//! afterwards: the participants have each other's votes.

use super::Txn;
use super::commit::unknown_outcome;
use crate::gateway::Gateway;
use crate::gateway::delivery;
use crate::membership::shared::Shared;
use crate::replica::groups::Route;
use crate::transport::wire::Found;
use meridian_base::{
    BallotMessage, CommitRequest, Conflict, ConflictReason, Error, GroupId, Key, Prepare, Refusal, Result, Timestamp, TxnId,
    Vote, limits,
};
use meridian_commit::{Coordination, Verdict};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The votes for this node's transactions find their way by id.
pub(crate) type Ballots = parking_lot::Mutex<BTreeMap<TxnId, mpsc::Sender<Heard>>>;

/// A participant's vote, to a reserving read with what was found.
pub(crate) type Heard = (GroupId, Vote, Option<Found>);

/// How a ballot has ended.
pub(crate) struct Counted {
    pub verdict: Verdict,
    pub votes: BTreeMap<GroupId, Vote>,
    pub found: BTreeMap<GroupId, Found>,
}

/// Takes the id out of the table at the end, however that comes.
struct Listening {
    gateway: Arc<Gateway>,
    id: TxnId,
    votes: mpsc::Receiver<Heard>,
}

impl Listening {
    fn start(gateway: &Arc<Gateway>, id: TxnId) -> Listening {
        let (tx, votes) = mpsc::channel(limits::VOTES_WAITING_MAX);
        gateway.ballots.lock().insert(id, tx);
        Listening { gateway: gateway.clone(), id, votes }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.gateway.ballots.lock().remove(&self.id);
    }
}

/// A vote for a transaction of this gateway. One that comes too late is dropped.
pub(crate) fn voted(gateway: &Gateway, message: BallotMessage) {
    if let BallotMessage::Vote { id, from, vote } = message {
        heard(gateway, id, (from, vote, None));
    }
}

/// A YES to a reserving read of this gateway.
pub(crate) fn reserved(gateway: &Gateway, id: TxnId, from: GroupId, at: Timestamp, found: Found) {
    heard(gateway, id, (from, Vote::Yes(at), Some(found)));
}

fn heard(gateway: &Gateway, id: TxnId, what: Heard) {
    if let Some(waiting) = gateway.ballots.lock().get(&id) {
        let _ = waiting.try_send(what);
    }
}

impl Txn {
    /// Commits at every group touched, or at none.
    pub(super) async fn ballot(&mut self, touched: Vec<usize>) -> Result<Timestamp> {
        let id = self.commit_id();
        let global = self.global_reads();
        let (mut slices, mut written) = (BTreeMap::new(), Vec::new());
        for at in touched {
            let (group, slice) = (self.parts[at].group, self.slice(at, id, &global));
            written.push((group, slice.writes.clone()));
            slices.insert(group, slice);
        }
        let prepares = self.prepares(slices);
        let participants: Vec<GroupId> = prepares.keys().copied().collect();
        let Counted { verdict, votes, .. } = self.vote_on(id, prepares).await;
        self.protocol.announce(&self.gateway.shared, id, &participants, &votes).await;
        match verdict {
            Verdict::Committed(at) => {
                for (group, writes) in &written {
                    self.learn_own(*group, writes, at);
                }
                Ok(at)
            }
            Verdict::Aborted(refusals) => Err(self.why_refused(refusals)),
            Verdict::Unknown => Err(unknown_outcome("not every participant could be reached")),
        }
    }

    /// Takes note of what the participants told that refused it. The error.
    pub(super) fn why_refused(&self, refusals: Vec<(GroupId, Refusal)>) -> Error {
        let mut error = None;
        for (group, refusal) in refusals {
            let conflict = refusal.conflict.unwrap_or(Conflict { key: Key::MIN, reason: ConflictReason::ConcurrentWrite });
            let e = self.refused(group, (conflict, refusal.fresh));
            error.get_or_insert(e);
        }
        error.unwrap_or_else(|| Error::retry("could not serialize access: a participant refused the transaction"))
    }

    /// Sends the Prepares and waits for the outcome.
    pub(super) async fn vote_on(&mut self, id: TxnId, prepares: BTreeMap<GroupId, Prepare>) -> Counted {
        self.round_trips += u32::from(prepares.keys().any(|group| self.is_far(*group)));
        vote_on(&self.gateway, id, prepares).await
    }

    /// Each participant's slice as it is sent.
    pub(super) fn prepares(&self, slices: BTreeMap<GroupId, CommitRequest>) -> BTreeMap<GroupId, Prepare> {
        let participants: Vec<GroupId> = slices.keys().copied().collect();
        let longest = participants.iter().map(|g| self.gateway.shared.one_way_delay(*g)).max().unwrap_or_default();
        let is_late = self.protocol.is_late(self.attempts);
        let prepare = |(group, slice): (GroupId, CommitRequest)| {
            let hold = match self.gateway.shared.groups.is_primary_near(group) {
                true => self.protocol.hold(longest.saturating_sub(self.gateway.shared.one_way_delay(group))),
                false => Duration::ZERO,
            };
            let has_queued = is_late || self.parts.iter().any(|p| p.group == group && p.has_queued());
            (group, Prepare { participants: participants.clone(), slice, hold, has_queued, is_late, is_last: false })
        };
        slices.into_iter().map(prepare).collect()
    }
}

/// Sends the Prepares of a transaction of this node and waits for the outcome.
pub(crate) async fn vote_on(gateway: &Arc<Gateway>, id: TxnId, prepares: BTreeMap<GroupId, Prepare>) -> Counted {
    let shared = &gateway.shared;
    let mut listening = Listening::start(gateway, id);
    let (mut votes, mut found) = (BTreeMap::new(), BTreeMap::new());
    let now = || Timestamp::from_micros(shared.runtime.physical_micros());
    let mut out = Vec::new();
    let mut coordination = Coordination::start(prepares, now(), &mut out);
    loop {
        for (group, message) in out.drain(..) {
            shared.spawn(delivery::deliver(shared.clone(), group, message));
        }
        if let Some(verdict) = coordination.verdict() {
            return Counted { verdict, votes, found };
        }
        let wait = coordination.next_tick().since(now());
        tokio::select! {
            vote = listening.votes.recv() => {
                if let Some((from, vote, with)) = vote {
                    found.extend(with.map(|with| (from, with)));
                    votes.entry(from).or_insert_with(|| vote.clone());
                    coordination.vote(from, vote);
                }
            }
            () = tokio::time::sleep(wait.max(Duration::from_millis(1))) => coordination.tick(now(), &mut out),
        }
    }
}

impl Shared {
    /// The measured delay to a group's primary.
    fn one_way_delay(&self, group: GroupId) -> Duration {
        match self.groups.route(group, 0) {
            Some(Route::Remote(node)) => self.peers.all.read().get(&node).map_or(Duration::ZERO, |p| p.round_trip / 2),
            _ => Duration::ZERO,
        }
    }
}
