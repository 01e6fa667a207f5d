//! Messages of the commit over several groups, on their way to a group's primary.
//!
//! A message may be lost, so nothing here keeps what it could not deliver for long: the protocol's
//! timers ask again.

use crate::membership::ask::Ask;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::transport::wire::{Request, Response};
use meridian_base::{BallotMessage, GroupId, Result};
use std::sync::Arc;
use std::time::Duration;

/// How long a message looks for a primary that takes it; afterwards the protocol's own timers ask
/// again.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(2);

pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Hands a message to a group's primary, wherever that is.
pub(crate) async fn deliver(shared: Arc<Shared>, group: GroupId, message: BallotMessage) {
    if shared.catalog.has_deleted(group) {
        return answer_for_deleted(&shared, group, &message);
    }
    if let Err(e) = shared.call_primary(group, DELIVERY_PATIENCE, &Delivery { group, message }).await {
        tracing::debug!("a message for group {group} is lost: {e}");
    }
}

/// A deleted group counts as having acknowledged a message. It owes nothing any more
/// (`sql::jobs::doomed`), except where an operator has ended a transaction in its place, and it
/// will ask for nothing.
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
