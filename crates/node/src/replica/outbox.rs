//! What replicas want done outside their lock: messages of the commit protocol to send, slices to
//! certify, outcomes to log.
//!
//! A message may be lost, so nothing here keeps what it could not deliver for long: the protocol's
//! timers ask again.

use crate::gateway::ask::Ask;
use crate::gateway::txn::{reserved, voted};
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::transport::wire::{Request, Response};
use meridian_base::{BallotMessage, GroupId, NodeId, Peer, Result, Target, Timestamp, TxnId, Vote, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a message looks for a primary that takes it; afterwards the protocol's own timers ask
/// again.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(2);
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Something to do for a group that this node leads.
#[derive(Debug)]
pub(crate) enum Work {
    Send {
        to: Peer,
        message: BallotMessage,
    },
    /// Tell a gateway of a YES to its reserving read, with what is reserved.
    TellReserved {
        group: GroupId,
        node: NodeId,
        id: TxnId,
        at: Timestamp,
        targets: Vec<Target>,
    },
    /// Certify a transaction's slice and vote.
    Certify {
        group: GroupId,
        id: TxnId,
    },
    /// All votes are known.
    Decide {
        group: GroupId,
        id: TxnId,
        at: Option<Timestamp>,
    },
}

/// Where replicas put it, under their lock.
///
/// Slices to certify and outcomes to log are as many as the transactions that a group has in hand.
/// Messages are dropped above [`limits::OUTBOX_MESSAGES_MAX`].
pub(crate) struct Outbox {
    work: mpsc::UnboundedSender<Work>,
    /// Messages that wait or are on their way.
    messages: Arc<AtomicUsize>,
}

/// A message on its way.
struct OnItsWay(Arc<AtomicUsize>);

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Outbox {
    pub fn new() -> (Arc<Outbox>, mpsc::UnboundedReceiver<Work>) {
        let (work, received) = mpsc::unbounded_channel();
        (Arc::new(Outbox { work, messages: Arc::default() }), received)
    }
    pub fn put(&self, work: Work) {
        let is_message = matches!(work, Work::Send { .. } | Work::TellReserved { .. });
        if is_message && self.messages.fetch_add(1, Ordering::AcqRel) >= limits::OUTBOX_MESSAGES_MAX {
            self.messages.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        // The receiver lives as long as the node.
        let _ = self.work.send(work);
    }
}

/// Does the work as it comes, each piece in a task of its own.
pub(crate) async fn work_loop(shared: Arc<Shared>, mut work: mpsc::UnboundedReceiver<Work>) {
    let carry = |message: futures::future::BoxFuture<'static, ()>| {
        let on_its_way = OnItsWay(shared.outbox.messages.clone());
        shared.spawn(async move {
            message.await;
            drop(on_its_way);
        });
    };
    while let Some(work) = work.recv().await {
        match work {
            Work::Send { to: Peer::Group(_), message } if withholds(&shared, &message) => {
                drop(OnItsWay(shared.outbox.messages.clone()));
            }
            Work::Send { to: Peer::Group(group), message } => carry(Box::pin(deliver(shared.clone(), group, message))),
            Work::Send { to: Peer::Gateway(node), message } => carry(Box::pin(tell_gateway(shared.clone(), node, message))),
            Work::TellReserved { group, node, id, at, targets } => match shared.replica(group) {
                Some(replica) => carry(Box::pin(tell_reserved(shared.clone(), replica, node, id, at, targets))),
                None => drop(OnItsWay(shared.outbox.messages.clone())),
            },
            Work::Certify { group, id } => {
                if let Some(replica) = shared.replica(group) {
                    shared.spawn(shared.clone().certify_slice(replica, id));
                }
            }
            Work::Decide { group, id, at } => {
                if let Some(replica) = shared.replica(group) {
                    shared.spawn(async move { replica.decide(id, at).await });
                }
            }
        }
    }
}

/// Only in the bench: see [`crate::gateway::txn::protocol`].
fn withholds(shared: &Shared, message: &BallotMessage) -> bool {
    shared.protocol().withholds(message, Timestamp::from_micros(shared.runtime.physical_micros()))
}

/// Hands a message to a group's primary, wherever that is.
pub(crate) async fn deliver(shared: Arc<Shared>, group: GroupId, message: BallotMessage) {
    if shared.catalog.has_deleted(group) {
        return answer_for_deleted(&shared, group, &message);
    }
    if let Err(e) = shared.call_primary(group, DELIVERY_PATIENCE, &Delivery { group, message }).await {
        tracing::debug!("a message for group {group} is lost: {e}");
    }
}

/// Nobody asks a group that was deleted for anything that it owes (`sql::catalog::jobs::doomed`),
/// except where an operator has ended a transaction in its place. It will ask for nothing either:
/// so it counts as having acknowledged.
fn answer_for_deleted(shared: &Shared, group: GroupId, message: &BallotMessage) {
    if let BallotMessage::OutcomeAck { id, from, reply: true } = message
        && let Some(replica) = shared.replica(*from)
    {
        // A primary of another term asks again.
        let _ = replica.ballot(BallotMessage::OutcomeAck { id: *id, from: group, reply: false });
    }
}

struct Delivery {
    group: GroupId,
    message: BallotMessage,
}

impl Ask for Delivery {
    type Answer = ();
    const TIMEOUT: Duration = CALL_TIMEOUT;
    fn request(&self) -> Request {
        Request::Ballot { group: Some(self.group), message: self.message.clone() }
    }
    fn answer(_: Response) -> Option<()> {
        Some(())
    }
    async fn here(&self, _: &Arc<Shared>, replica: &Arc<Replica>) -> Result<()> {
        replica.ballot(self.message.clone())
    }
}

async fn tell_reserved(shared: Arc<Shared>, replica: Arc<Replica>, node: NodeId, id: TxnId, at: Timestamp, targets: Vec<Target>) {
    let from = replica.id;
    match replica.read_reserved(at, &targets).await {
        Ok(found) if node == shared.me() => reserved(&shared, id, from, at, found),
        Ok(found) => {
            let _ = shared.rpc.call(node, Request::Reserved { id, from, at, found }, CALL_TIMEOUT).await;
        }
        // The vote counts in any case.
        Err(e) => {
            tracing::debug!("{from}: what {id} has reserved cannot be read: {e}");
            tell_gateway(shared, node, BallotMessage::Vote { id, from, vote: Vote::Yes(at) }).await;
        }
    }
}

async fn tell_gateway(shared: Arc<Shared>, node: NodeId, message: BallotMessage) {
    if node == shared.me() {
        voted(&shared, message);
        return;
    }
    // A gateway that misses a vote asks for it.
    let _ = shared.rpc.call(node, Request::Ballot { group: None, message }, CALL_TIMEOUT).await;
}
