//! GLOBAL rows away from their primary: read in every region
//! at present time, and certified by the participants of a transaction, without a message to
//! another region.
//!
//! A GLOBAL group's clock runs ahead of its node's by the *lead* (`promises.rs`), so its closed
//! timestamps lie in the future of every reader, and its writes commit in the future too. The group
//! itself does nothing else differently; reservations end when a write is in the log.
//!
//! # A read
//!
//! takes place at `b = r + max_offset`, `r` the gateway's clock, at the nearest replica: nothing at
//! or below `b` may appear there any more. Whatever was acknowledged anywhere before the read began
//! is at or below `b`, if clocks differ by at most `max_offset`. (A machine that was suspended
//! finds its clock where it was: once the clock has stepped, no read begins.) A version above `r`
//! is *uncertain*: its writer may still be waiting for its time, and so does the reader (*commit
//! wait*), so that a read that begins after it, in any region, finds the version below its own `b`.
//! All reads of a transaction are at one `b`: together they are one snapshot.
//!
//! # Certification
//!
//! What a replica says of versions at or below its closed timestamp is so for ever. So nobody has
//! to ask at the moment of certification: a participant's node asks before that up to when the
//! entries hold ([`Shared::global_holds`]), the engine compares (`GlobalReads::allow`), and if too
//! much time has passed it is done again ([`crate::gateway::certify`]). Nothing waits while it
//! holds a place in the group.

use crate::gateway::{PRIMARY_PATIENCE, READ_PATIENCE};
use crate::local::metrics::Counter;
use crate::membership::ask::Tries;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::replica::groups::Route;
use crate::transport::wire::{GlobalView, ReadOp, ReplicaAnswer, Request, Response};
use meridian_base::{Conflict, Error, GroupId, NodeId, ReadEntry, Result, Timestamp};
use std::time::Duration;

/// A replica in the region that has not got there by then is not worth waiting for. The lead should
/// have made it get there.
const NEAR_PATIENCE: Duration = Duration::from_millis(100);
/// A message's way beside the wait itself.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(1);

/// What a replica says of read entries: up to when they hold, or why they do not.
pub(crate) type Holds = std::result::Result<Timestamp, Conflict>;

/// What a node is asked about a GLOBAL group's replica.
#[derive(Clone, Copy)]
enum Question<'a> {
    Read { view: &'a GlobalView, ops: &'a [ReadOp] },
    Holds { entries: &'a [ReadEntry], needed: Timestamp },
}

enum Reply {
    Read(ReplicaAnswer),
    Holds(Holds),
}

impl Question<'_> {
    async fn at(&self, replica: &Replica, patience: Duration) -> Result<Reply> {
        match self {
            Question::Read { view, ops } => replica.read_global(view, patience, ops).await.map(Reply::Read),
            Question::Holds { entries, needed } => replica.holds(entries, *needed, patience).await.map(Reply::Holds),
        }
    }

    fn call(&self, group: GroupId, patience: Duration) -> Request {
        match self {
            Question::Read { view, ops } => {
                Request::ReadGlobal { group, view: GlobalView::clone(view), patience, ops: ops.to_vec() }
            }
            Question::Holds { entries, needed } => Request::Holds { group, entries: entries.to_vec(), needed: *needed, patience },
        }
    }
}

impl Shared {
    /// Reads GLOBAL rows at the nearest replica that has got there.
    pub(crate) async fn read_global(&self, group: GroupId, view: &GlobalView, ops: &[ReadOp]) -> Result<(ReplicaAnswer, u32)> {
        match self.ask_global(group, Question::Read { view, ops }).await? {
            (Reply::Read(answer), round_trips) => Ok((answer, round_trips)),
            _ => Err(Error::internal("a node answered another question")),
        }
    }

    /// Up to when what was read of GLOBAL rows holds, at least `needed`; or what has changed by
    /// then.
    pub(crate) async fn global_holds(&self, reads: &[(GroupId, Vec<ReadEntry>)], needed: Timestamp) -> Result<Holds> {
        let mut until = Timestamp::MAX;
        for (group, entries) in reads {
            match self.ask_global(*group, Question::Holds { entries, needed }).await? {
                (Reply::Holds(Ok(holds)), _) => until = until.min(holds),
                (Reply::Holds(Err(conflict)), _) => return Ok(Err(conflict)),
                _ => return Err(Error::internal("a node answered another question")),
            }
        }
        Ok(Ok(until))
    }

    /// The nearest replica's reply; the primary's, if those in the region are behind. With the
    /// round trips between regions.
    async fn ask_global(&self, group: GroupId, question: Question<'_>) -> Result<(Reply, u32)> {
        let mut tries = Tries::for_at_most(READ_PATIENCE);
        let mut round_trips = 0;
        loop {
            match self.ask_near(group, question).await {
                Err(e) if e.is_unavailable() => {}
                other => return other.map(|reply| (reply, round_trips)),
            }
            self.check_reach(group)?;
            let far = match self.groups.route(group, tries.made()) {
                Some(Route::Local(replica)) => question.at(&replica, PRIMARY_PATIENCE).await,
                Some(Route::Remote(node)) => {
                    self.groups.common.metrics.add(Counter::GlobalReadsBehind);
                    round_trips += u32::from(!self.rpc.is_near(node));
                    self.ask_node(node, group, question, PRIMARY_PATIENCE).await
                }
                None => Err(Error::unavailable(format!("no primary of group {group} is known"))),
            };
            match far {
                Err(e) => tries.another_primary(&self.groups, group, e).await?,
                Ok(reply) => return Ok((reply, round_trips)),
            }
        }
    }

    async fn ask_near(&self, group: GroupId, question: Question<'_>) -> Result<Reply> {
        let mut failure = Error::unavailable(format!("no replica of group {group} is near"));
        if let Some(replica) = self.groups.replica(group) {
            match question.at(&replica, NEAR_PATIENCE).await {
                Err(e) if e.is_unavailable() => failure = e,
                other => return other,
            }
        }
        for node in self.peers.replicas_near(group) {
            match self.ask_node(node, group, question, NEAR_PATIENCE).await {
                Err(e) if e.is_unavailable() => failure = e,
                other => return other,
            }
        }
        Err(failure)
    }

    async fn ask_node(&self, node: NodeId, group: GroupId, question: Question<'_>, patience: Duration) -> Result<Reply> {
        match self.rpc.call(node, question.call(group, patience), patience + MESSAGE_TIMEOUT).await? {
            Response::ReadReplica(answer) => Ok(Reply::Read(answer)),
            Response::Holds(holds) => Ok(Reply::Holds(holds)),
            // It holds no replica any more.
            Response::NotPrimary { .. } => Err(Error::unavailable(format!("node {node} holds no replica of group {group}"))),
            _ => Err(Error::internal("a node answered another question")),
        }
    }
}
