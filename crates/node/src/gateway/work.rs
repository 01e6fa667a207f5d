//! Runs the replicas' outbox ([`crate::replica::outbox`]): sends messages of ballots, has slices
//! certified, and logs outcomes.

use crate::gateway::Gateway;
use crate::gateway::delivery::{CALL_TIMEOUT, deliver};
use crate::gateway::majority;
use crate::gateway::txn::{reserved, voted};
use crate::replica::Replica;
use crate::replica::outbox::Work;
use crate::transport::wire::Request;
use meridian_base::{BallotMessage, NodeId, Peer, Target, Timestamp, TxnId, Vote};
use std::sync::Arc;
use tokio::sync::mpsc;

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
            Work::Rounds { to, messages } => carry(Box::pin(majority::deliver(shared.clone(), to, messages))),
            Work::BeginRound { group, share } => {
                if let Some(replica) = shared.groups.replica(group) {
                    shared.spawn(majority::begin(shared.clone(), replica, share));
                }
            }
            Work::Certify { group, id } => {
                if let Some(replica) = shared.groups.replica(group) {
                    shared.spawn(shared.clone().certify_with_global_reads(replica, id));
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
