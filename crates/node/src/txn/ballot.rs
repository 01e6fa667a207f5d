//! A commit over several groups, at its gateway: sends every participant its slice, collects the votes, and knows the outcome
//! from them alone (crate `commit`). Nobody waits for the gateway afterwards: the participants have each other's votes.

use super::Txn;
use super::commit::unknown_outcome;
use crate::outbox;
use crate::shared::{Route, Shared};
use meridian_base::runtime::Runtime;
use meridian_base::{
    BallotMessage, Conflict, ConflictReason, Error, GroupId, Key, Prepare, Result, Timestamp, TxnId, Vote, Write,
};
use meridian_commit::{Coordination, Verdict};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The votes for this node's transactions find their way by id.
pub(crate) type Ballots = parking_lot::Mutex<BTreeMap<TxnId, mpsc::UnboundedSender<(GroupId, Vote)>>>;

/// Takes the id out of the table at the end, however that comes.
struct Listening<R: Runtime> {
    shared: Arc<Shared<R>>,
    id: TxnId,
    votes: mpsc::UnboundedReceiver<(GroupId, Vote)>,
}

impl<R: Runtime> Listening<R> {
    fn start(shared: &Arc<Shared<R>>, id: TxnId) -> Listening<R> {
        let (tx, votes) = mpsc::unbounded_channel();
        shared.ballots.lock().insert(id, tx);
        Listening { shared: shared.clone(), id, votes }
    }
}

impl<R: Runtime> Drop for Listening<R> {
    fn drop(&mut self) {
        self.shared.ballots.lock().remove(&self.id);
    }
}

/// A vote for a transaction of this gateway. One that comes too late finds nobody.
pub(crate) fn voted<R: Runtime>(shared: &Shared<R>, message: BallotMessage) {
    if let BallotMessage::Vote { id, from, vote } = message
        && let Some(waiting) = shared.ballots.lock().get(&id)
    {
        let _ = waiting.send((from, vote));
    }
}

impl<R: Runtime> Txn<R> {
    /// Commits at every group touched, or at none.
    pub(super) async fn ballot(&mut self, touched: Vec<usize>) -> Result<Timestamp> {
        let id = self.new_id();
        let mut listening = Listening::start(&self.shared, id);
        let (prepares, written) = self.prepares(&touched, id);
        let now = || Timestamp::from_micros(self.shared.runtime.physical_micros());
        let mut out = Vec::new();
        let mut coordination = Coordination::start(prepares, now(), &mut out);
        let verdict = loop {
            for (group, message) in out.drain(..) {
                tokio::spawn(outbox::deliver(self.shared.clone(), group, message));
            }
            if let Some(verdict) = coordination.verdict() {
                break verdict;
            }
            let wait = coordination.next_tick().since(now());
            tokio::select! {
                vote = listening.votes.recv() => {
                    if let Some((from, vote)) = vote {
                        coordination.vote(from, vote);
                    }
                }
                () = tokio::time::sleep(wait.max(Duration::from_millis(1))) => coordination.tick(now(), &mut out),
            }
        };
        match verdict {
            Verdict::Committed(at) => {
                for (group, writes) in &written {
                    self.learn_own(*group, writes, at);
                }
                Ok(at)
            }
            Verdict::Aborted(refusals) => {
                let mut error = None;
                for (group, refusal) in refusals {
                    let conflict =
                        refusal.conflict.unwrap_or(Conflict { key: Key::MIN, reason: ConflictReason::ConcurrentWrite });
                    let e = self.refused(group, (conflict, refusal.fresh));
                    error.get_or_insert(e);
                }
                Err(error.unwrap_or_else(|| Error::retry("could not serialize access: a participant refused the transaction")))
            }
            Verdict::Unknown => Err(unknown_outcome("not every participant could be reached")),
        }
    }

    /// Each participant's slice, and what is written where.
    fn prepares(&mut self, touched: &[usize], id: TxnId) -> (BTreeMap<GroupId, Prepare>, Vec<(GroupId, Vec<Write>)>) {
        let mut participants: Vec<GroupId> = touched.iter().map(|at| self.parts[*at].group).collect();
        participants.sort();
        let longest = participants.iter().map(|g| self.shared.one_way_delay(*g)).max().unwrap_or_default();
        let (mut prepares, mut written) = (BTreeMap::new(), Vec::new());
        for at in touched {
            let group = self.parts[*at].group;
            let slice = self.slice(*at, id);
            written.push((group, slice.writes.clone()));
            // The initiator's copy arrives at once and waits, so that home reserves no longer than the others (S-DUR §4.4).
            let hold = match self.shared.is_primary_near(group) {
                true => longest.saturating_sub(self.shared.one_way_delay(group)),
                false => Duration::ZERO,
            };
            prepares.insert(group, Prepare { participants: participants.clone(), slice, hold });
        }
        (prepares, written)
    }
}

impl<R: Runtime> Shared<R> {
    /// The measured delay to a group's primary.
    fn one_way_delay(&self, group: GroupId) -> Duration {
        match self.route(group, 0) {
            Some(Route::Remote(node)) => self.peers.read().get(&node).map_or(Duration::ZERO, |p| p.round_trip / 2),
            _ => Duration::ZERO,
        }
    }
}
