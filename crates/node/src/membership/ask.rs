//! Asking a group's primary, wherever it is.
//!
//! A question is the same whether the primary is on this node or on another one, and so is what can
//! go wrong: nobody is known to be the primary, the node asked is not the primary (any more), it
//! cannot be reached, it is not ready. All of these are [`meridian_base::Error::is_unavailable`],
//! and the question is asked again for as long as the asker has patience. The error that ends it is
//! the last one, so a primary that said what it waits for is heard.
//!
//! A question may therefore be answered twice. The caller makes that harmless: by an id
//! ([`crate::schema::coordinator`]), by a number (schema grants), or because asking again changes
//! nothing.

use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::replica::groups::{Groups, Route};
use crate::transport::wire::{Request, Response};
use meridian_base::{Error, ErrorKind, GroupId, Result};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const BACKOFF_MAX: Duration = Duration::from_millis(100);

/// A question to a group's primary.
pub(crate) trait Ask: Send + Sync {
    type Answer: Send;
    /// How long one node has for its answer.
    const TIMEOUT: Duration;
    /// The question as another node gets it.
    fn request(&self) -> Request;
    /// Another node's answer; `None` if it is the answer to another question.
    fn answer(response: Response) -> Option<Self::Answer>;
    /// This node's own answer, as the primary.
    fn here(&self, shared: &Arc<Shared>, replica: &Arc<Replica>) -> impl Future<Output = Result<Self::Answer>> + Send;
    /// Whether the question is dropped when the group is lost ([`crate::membership::reach`]): one
    /// whose answer is of no use later, and which changes nothing. What may have been done already
    /// has to be asked for.
    const IS_DROPPED: bool = false;
    /// Whether another node may be asked. Two nodes that take each other for the primary must not
    /// pass a question to and fro.
    fn may_travel(&self) -> bool {
        true
    }
}

impl Shared {
    /// The answer of a group's primary. See the module's essay.
    pub(crate) async fn call_primary<A: Ask>(self: &Arc<Self>, group: GroupId, patience: Duration, ask: &A) -> Result<A::Answer> {
        let mut tries = Tries::for_at_most(patience);
        loop {
            if A::IS_DROPPED {
                self.check_reach(group)?;
            }
            match self.try_primary(group, tries.made(), ask).await {
                Err(e) if e.is_unavailable() && !tries.are_over() => tries.pause_and_look(&self.groups, group, &e).await,
                answered => return answered,
            }
        }
    }

    /// One try. `attempt` chooses among those that may be the primary when nobody is known to be.
    pub(crate) async fn try_primary<A: Ask>(self: &Arc<Self>, group: GroupId, attempt: u32, ask: &A) -> Result<A::Answer> {
        match self.groups.route(group, attempt) {
            Some(Route::Local(replica)) => ask.here(self, &replica).await,
            Some(Route::Remote(node)) if ask.may_travel() => match self.rpc.call(node, ask.request(), A::TIMEOUT).await? {
                Response::NotPrimary { hint } => Err(self.groups.not_primary_there(group, node, hint)),
                response => A::answer(response).ok_or_else(|| Error::internal("a node gave an answer of another kind")),
            },
            Some(Route::Remote(_)) | None => Err(Error::not_primary(group)),
        }
    }
}

/// Tries of one question, with a pause after each that failed.
pub(crate) struct Tries {
    deadline: Instant,
    made: u32,
}

impl Tries {
    /// None yet. After this time a failure is the answer.
    pub(crate) fn for_at_most(patience: Duration) -> Tries {
        Tries { deadline: Instant::now() + patience, made: 0 }
    }

    /// How many have failed, which chooses whom to ask when several may know.
    pub(crate) fn made(&self) -> u32 {
        self.made
    }

    /// The patience begins once more.
    pub(crate) fn extend(&mut self, patience: Duration) {
        self.deadline = Instant::now() + patience;
    }

    /// Whether the last failure is the answer.
    pub(crate) fn are_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// After a failure that goes by: pauses before the next try. Gives another one back, and the
    /// last.
    pub(crate) async fn again(&mut self, e: Error) -> Result<()> {
        if !e.is_unavailable() || self.are_over() {
            return Err(e);
        }
        self.pause().await;
        Ok(())
    }

    /// The same for a question to a group's primary.
    pub(crate) async fn another_primary(&mut self, groups: &Groups, group: GroupId, e: Error) -> Result<()> {
        if !e.is_unavailable() || self.are_over() {
            return Err(e);
        }
        groups.forget_route(group);
        self.pause().await;
        Ok(())
    }

    /// Pauses, with another idea of who the primary is, whatever the patience.
    pub(crate) async fn pause_and_look(&mut self, groups: &Groups, group: GroupId, why: &Error) {
        // A node that is not the primary may name the primary. Every second time that hint is
        // dropped, because two nodes may name each other.
        if why.kind() != ErrorKind::NotPrimary || !self.made.is_multiple_of(2) {
            groups.forget_route(group);
        }
        self.pause().await;
    }

    pub(crate) async fn pause(&mut self) {
        let pause = Duration::from_millis(5 << self.made.min(5)).min(BACKOFF_MAX);
        tokio::time::sleep(pause).await;
        self.made += 1;
    }
}
