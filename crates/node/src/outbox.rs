//! What replicas want done outside their lock: messages of the commit protocol to send, slices to certify, outcomes to log.
//!
//! A message may be lost, so nothing here keeps what it could not deliver for long: the protocol's timers ask again.

use crate::primary::is_not_primary;
use crate::replica::Replica;
use crate::shared::{Route, Shared};
use crate::txn::{reserved, voted};
use crate::wire::{Request, Response};
use meridian_base::runtime::Runtime;
use meridian_base::{BallotMessage, Error, ErrorKind, GroupId, NodeId, Peer, Result, Target, Timestamp, TxnId, Vote};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How long a message looks for a primary that takes it; afterwards the protocol's own timers ask again.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(2);
const DELIVERY_PAUSE: Duration = Duration::from_millis(20);
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

/// Does the work as it comes, each piece in a task of its own.
pub(crate) async fn work_loop<R: Runtime>(shared: Arc<Shared<R>>, mut work: mpsc::UnboundedReceiver<Work>) {
    while let Some(work) = work.recv().await {
        match work {
            Work::Send { to: Peer::Group(_), message } if withholds(&shared, &message) => {}
            Work::Send { to: Peer::Group(group), message } => {
                shared.spawn(deliver(shared.clone(), group, message));
            }
            Work::Send { to: Peer::Gateway(node), message } => {
                shared.spawn(tell_gateway(shared.clone(), node, message));
            }
            Work::TellReserved { group, node, id, at, targets } => {
                if let Some(replica) = shared.replica(group) {
                    shared.spawn(tell_reserved(shared.clone(), replica, node, id, at, targets));
                }
            }
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

/// Only in the bench: see [`crate::txn::protocol`].
fn withholds<R: Runtime>(shared: &Shared<R>, message: &BallotMessage) -> bool {
    shared.protocol().withholds(message, Timestamp::from_micros(shared.runtime.physical_micros()))
}

/// Hands a message to a group's primary, wherever that is.
pub(crate) async fn deliver<R: Runtime>(shared: Arc<Shared<R>>, group: GroupId, message: BallotMessage) {
    let deadline = Instant::now() + DELIVERY_PATIENCE;
    let mut attempt = 0;
    while let Err(e) = try_deliver(&shared, group, attempt, &message).await {
        if !(is_not_primary(&e) || e.kind() == ErrorKind::Unavailable) || Instant::now() >= deadline {
            tracing::debug!("a message for group {group} is lost: {e}");
            return;
        }
        shared.forget_route(group);
        tokio::time::sleep(DELIVERY_PAUSE).await;
        attempt += 1;
    }
}

async fn try_deliver<R: Runtime>(shared: &Arc<Shared<R>>, group: GroupId, attempt: u32, message: &BallotMessage) -> Result<()> {
    match shared.route(group, attempt) {
        Some(Route::Local(replica)) => replica.ballot(message.clone()),
        Some(Route::Remote(node)) => {
            let call = Request::Ballot { group: Some(group), message: message.clone() };
            match shared.rpc.call(node, call, CALL_TIMEOUT).await? {
                Response::NotPrimary { hint } => Err(shared.not_primary_there(group, node, hint)),
                _ => Ok(()),
            }
        }
        None => Err(Error::unavailable(format!("no primary of group {group} is known"))),
    }
}

async fn tell_reserved<R: Runtime>(
    shared: Arc<Shared<R>>,
    replica: Arc<Replica<R>>,
    node: NodeId,
    id: TxnId,
    at: Timestamp,
    targets: Vec<Target>,
) {
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

async fn tell_gateway<R: Runtime>(shared: Arc<Shared<R>>, node: NodeId, message: BallotMessage) {
    if node == shared.me() {
        voted(&shared, message);
        return;
    }
    // A gateway that misses a vote asks for it.
    let _ = shared.rpc.call(node, Request::Ballot { group: None, message }, CALL_TIMEOUT).await;
}
