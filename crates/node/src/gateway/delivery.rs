//! Does what replicas want done ([`crate::replica::outbox`]).
//!
//! A message may be lost, so nothing here keeps what it could not deliver for long: the protocol's
//! timers ask again.

use crate::gateway::Gateway;
use crate::gateway::txn::{reserved, voted};
use crate::membership::ask::Ask;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::replica::outbox::Work;
use crate::transport::wire::{Request, Response};
use meridian_base::{BallotMessage, GroupId, NodeId, Peer, Result, Target, Timestamp, TxnId, Vote};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a message looks for a primary that takes it; afterwards the protocol's own timers ask
/// again.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(2);

const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Does the work as it comes, each piece in a task of its own.
pub(crate) async fn work_loop(gateway: Arc<Gateway>, mut work: mpsc::UnboundedReceiver<Work>) {
    let shared = &gateway.shared;
    let carry = |message: futures::future::BoxFuture<'static, ()>| {
        let on_its_way = shared.groups.common.outbox.on_its_way();
        shared.spawn(async move {
            message.await;
            drop(on_its_way);
        });
    };
    while let Some(work) = work.recv().await {
        match work {
            Work::Send { to: Peer::Group(_), message } if withholds(&gateway, &message) => {
                drop(shared.groups.common.outbox.on_its_way());
            }
            Work::Send { to: Peer::Group(group), message } => carry(Box::pin(deliver(shared.clone(), group, message))),
            Work::Send { to: Peer::Gateway(node), message } => carry(Box::pin(tell_gateway(gateway.clone(), node, message))),
            Work::TellReserved { group, node, id, at, targets } => match shared.groups.replica(group) {
                Some(replica) => carry(Box::pin(tell_reserved(gateway.clone(), replica, node, id, at, targets))),
                None => drop(shared.groups.common.outbox.on_its_way()),
            },
            Work::Certify { group, id } => {
                if let Some(replica) = shared.groups.replica(group) {
                    shared.spawn(shared.clone().certify_slice(replica, id));
                }
            }
            Work::Decide { group, id, at } => {
                if let Some(replica) = shared.groups.replica(group) {
                    shared.spawn(async move { replica.decide(id, at).await });
                }
            }
        }
    }
}

/// Only in the bench: see [`crate::gateway::txn::protocol`].
fn withholds(gateway: &Gateway, message: &BallotMessage) -> bool {
    gateway.protocol().withholds(message, Timestamp::from_micros(gateway.shared.runtime.physical_micros()))
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
        && let Some(replica) = shared.groups.replica(*from)
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

async fn tell_reserved(
    gateway: Arc<Gateway>,
    replica: Arc<Replica>,
    node: NodeId,
    id: TxnId,
    at: Timestamp,
    targets: Vec<Target>,
) {
    let from = replica.id;
    match replica.read_reserved(at, &targets).await {
        Ok(found) if node == gateway.shared.me() => reserved(&gateway, id, from, at, found),
        Ok(found) => {
            let _ = gateway.shared.rpc.call(node, Request::Reserved { id, from, at, found }, CALL_TIMEOUT).await;
        }
        // The vote counts in any case.
        Err(e) => {
            tracing::debug!("{from}: what {id} has reserved cannot be read: {e}");
            tell_gateway(gateway, node, BallotMessage::Vote { id, from, vote: Vote::Yes(at) }).await;
        }
    }
}

async fn tell_gateway(gateway: Arc<Gateway>, node: NodeId, message: BallotMessage) {
    if node == gateway.shared.me() {
        voted(&gateway, message);
        return;
    }
    // A gateway that misses a vote asks for it.
    let _ = gateway.shared.rpc.call(node, Request::Ballot { group: None, message }, CALL_TIMEOUT).await;
}
