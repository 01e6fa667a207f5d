//! What a commit takes.
//!
//! | what was touched | what happens | round trips |
//! | --- | --- | --- |
//! | nothing, or one group, fresh, without writes | nothing: what was read was the newest, at one moment | 0 |
//! | several groups or a replica, without writes | a round: each primary checks that everything is still the newest | 1 |
//! | one group, with writes | certification at its primary | 1 |
//! | several groups, with writes | a ballot: each certifies its slice and votes (crate `commit`) | 1 |
//!
//! GLOBAL groups that are only read are not counted: see [`super::global`].

use super::Txn;
use super::overlay::Newer;
use super::part::Part;
use crate::local::metrics::Counter;
use crate::membership::ask::{Ask, Tries};
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::replica::brought::{self, Piece};
use crate::replica::groups::Route;
use crate::replica::pod::slots::is_plain;
use crate::transport::wire::{Request, Response};
use futures::future::join_all;
use futures::{StreamExt, stream};
use meridian_base::limits::TOKENS_RESERVED_MAX;
use meridian_base::{
    CommitOutcome, CommitRequest, Conflict, ConflictReason, Error, Fresh, GlobalReads, GroupId, Mutation, NodeId, ReadEntry,
    Result, SchemaUse, Timestamp, TxnId, limits,
};
use meridian_sql::env::Transaction;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a commit is repeated before its outcome is reported as unknown (40003). Below
/// `WATERMARK_LAG`, so that a primary never has to say «forgotten» to a gateway that is still
/// asking.
pub(crate) const COMMIT_PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(6);
/// A transaction with this many read entries and writes, or more, is certified in a task of its
/// own.
const ENTRIES_ASIDE: usize = 256;
/// Pieces of a large slice that are on their way to a primary at the same time.
const PIECES_AT_ONCE: usize = 8;
/// How long a round looks for primaries that answer.
const ROUND_PATIENCE: Duration = Duration::from_secs(10);

/// What is left of a request when its slice was brought.
fn without_slice(request: &CommitRequest) -> CommitRequest {
    let CommitRequest { id, min_commit, schema, global, .. } = request;
    CommitRequest {
        id: *id,
        reads: Vec::new(),
        writes: Vec::new(),
        min_commit: *min_commit,
        schema: schema.clone(),
        global: global.clone(),
    }
}

fn another_question() -> Error {
    Error::internal("a node answered another question")
}

pub(super) fn unknown_outcome(why: &str) -> Error {
    Error::unknown_outcome("the outcome of the commit is unknown")
        .detail(why.to_string())
        .hint("Look at the data before running the transaction again.")
}

/// For blocks that only read rows of other regions, which are written meanwhile.
const READS_THE_PAST: &str = "Run the transaction again, or read the past, which nobody changes any more: BEGIN READ ONLY AS OF SYSTEM TIME follower_read_timestamp().";

/// With a conflict, the newest versions of what was out of date.
type Checked = std::result::Result<(), (Conflict, Vec<Fresh>)>;

struct Check<'a> {
    group: GroupId,
    entries: &'a [ReadEntry],
    schema: &'a SchemaUse,
    at: Timestamp,
}

impl Ask for Check<'_> {
    type Answer = Checked;
    const TIMEOUT: Duration = CALL_TIMEOUT;
    const IS_DROPPED: bool = true;
    fn request(&self) -> Request {
        Request::Check { group: self.group, entries: self.entries.to_vec(), schema: self.schema.clone(), at: self.at }
    }
    fn answer(response: Response) -> Option<Checked> {
        if let Response::Checked(answer) = response { Some(answer) } else { None }
    }
    async fn here(&self, _: &Arc<Shared>, replica: &Arc<Replica>) -> Result<Checked> {
        replica.check(self.entries, self.schema, self.at).await
    }
}

impl Txn {
    pub(super) async fn commit_everywhere(&mut self) -> Result<Option<Timestamp>> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        if self.parts.iter().all(|p| p.writes.is_empty()) {
            if !self.gateway.shared.groups.common.rules.confirms_reads() {
                return Ok(None);
            }
            return self.confirm_reads().await.map(|()| None);
        }
        let touched: Vec<usize> = (0..self.parts.len()).filter(|at| self.parts[*at].takes_part()).collect();
        for part in touched.iter().map(|at| &self.parts[*at]).filter(|part| !part.writes.is_empty()) {
            self.gateway.shared.check_room(part.group, part.writes.values().any(|w| w.change.adds()))?;
        }
        // Nothing was sent yet; once something is, only the votes know.
        touched.iter().try_for_each(|at| self.gateway.shared.check_reach(self.parts[*at].group))?;
        self.global_parts().try_for_each(|part| self.gateway.shared.check_reach(part.group))?;
        self.global.is_written = touched.iter().any(|at| self.parts[*at].is_global);
        if !self.global.is_written {
            // No participant's clock need wait for what was read.
            self.await_global_reads().await;
        }
        match touched[..] {
            [at] => self.commit_one(at).await.map(Some),
            // It read elsewhere after it had written.
            _ if self.is_over_groups() => Err(super::size::over_groups()),
            _ => self.ballot(touched).await.map(Some),
        }
    }

    /// What a commit would take now: see the table.
    pub(super) fn round_trips_to_commit(&self) -> u32 {
        let mut touched = self.parts.iter().filter(|p| p.takes_part());
        let is_certified = self.parts.iter().any(|p| !p.writes.is_empty() || !p.is_fresh()) || self.parts.len() > 1;
        u32::from(is_certified && touched.any(|p| !self.gateway.shared.groups.is_primary_near(p.group)))
    }

    /// Certifies what was read, without a commit.
    pub(super) async fn confirm_reads(&mut self) -> Result<()> {
        if let Some(e) = &self.failed {
            return Err(e.clone());
        }
        if self.reserved.is_some() {
            return self.confirm_reserved();
        }
        self.await_global_reads().await;
        let (global, read): (Vec<&Part>, Vec<&Part>) =
            self.parts.iter().filter(|p| !p.view.entries.is_empty()).partition(|p| p.is_global);
        // One snapshot, of one group or of GLOBAL rows, needs nothing more.
        let is_one = match &read[..] {
            [] => !self.global.is_mixed,
            [one] => one.is_fresh() && global.is_empty(),
            _ => false,
        };
        if is_one {
            return Ok(());
        }
        let is_far = read.iter().any(|p| self.is_far(p.group));
        let now = self.gateway.shared.clock.now(self.gateway.shared.runtime.physical_micros());
        let at = now.max(self.newest).max(self.global.newest).max(self.options.schema_committed_at);
        let checks = join_all(read.iter().map(|part| self.check(part.group, &part.view.entries, at)));
        let (checks, global) = futures::join!(checks, self.confirm_global(at));
        let checked: Vec<_> = read.iter().map(|p| p.group).zip(checks).collect();
        self.round_trips += u32::from(is_far);
        self.gateway.shared.groups.common.metrics.add(Counter::ReadRounds);
        for (group, check) in checked {
            if let Err(conflict) = check? {
                self.gateway.shared.groups.common.metrics.add(Counter::ReadRoundsFailed);
                self.note_script();
                let mut e = self.refused(group, conflict);
                if self.options.read_only && self.options.is_block && is_far {
                    e = e.hint(READS_THE_PAST);
                }
                self.failed = Some(e.clone());
                return Err(e);
            }
        }
        global.map_err(|e| self.note_failure(e))
    }

    /// One group's part of a round.
    async fn check(&self, group: GroupId, entries: &[ReadEntry], at: Timestamp) -> Result<Checked> {
        self.gateway.shared.call_primary(group, ROUND_PATIENCE, &Check { group, entries, schema: &self.schema, at }).await
    }

    pub(super) fn new_id(&self) -> TxnId {
        TxnId {
            hlc: self.gateway.shared.clock.tick(self.gateway.shared.runtime.physical_micros()),
            gateway: self.gateway.shared.me(),
        }
    }

    /// The id under which it commits: the one for which tokens are held, if any are. Held for
    /// longer than that are none.
    pub(super) fn commit_id(&mut self) -> TxnId {
        let mut has_reserved = false;
        for part in &mut self.parts {
            has_reserved |= !std::mem::take(&mut part.reserved).is_empty();
        }
        if has_reserved && self.age() < 2 * TOKENS_RESERVED_MAX { self.incarnation() } else { self.new_id() }
    }

    fn age(&self) -> Duration {
        let now = self.gateway.shared.clock.now(self.gateway.shared.runtime.physical_micros());
        now.since(self.began)
    }

    /// Whether its deltas have their tokens held until it commits. They are held for
    /// its incarnation, and it commits under that id. Long after it began, that would be below the
    /// watermark ([`meridian_base::limits::WATERMARK_LAG`]).
    pub(super) fn may_hold_tokens(&self) -> bool {
        self.options.is_block && self.age() < TOKENS_RESERVED_MAX
    }

    /// A part's slice, as its primary certifies it. The part keeps nothing.
    pub(super) fn slice(&mut self, at: usize, id: TxnId, global: &GlobalReads) -> CommitRequest {
        let part = &mut self.parts[at];
        // Its commit is above the GLOBAL rows it read by the vote of the GLOBAL group that it
        // writes to, if there is one.
        let newest = match self.global.is_written && !part.is_global {
            true => self.newest,
            false => self.newest.max(self.global.newest),
        };
        CommitRequest {
            id,
            reads: match part.held.is_empty() {
                true => std::mem::take(&mut part.view.entries),
                false => part.reads(),
            },
            writes: std::mem::take(&mut part.writes).into_values().collect(),
            min_commit: newest.max(self.options.schema_committed_at),
            schema: self.schema.clone(),
            global: global.clone(),
        }
    }

    /// A transaction of one group. One id for as long as it takes: a primary that lost its
    /// leadership half-way may have committed, and its successor then answers with what became of
    /// that id. While nothing has been sent, it has surely not happened, and fails as soon as the
    /// group counts as lost. Afterwards an answer is worth waiting for, and may come when the group
    /// is back.
    async fn commit_one(&mut self, at: usize) -> Result<Timestamp> {
        let group = self.parts[at].group;
        let id = self.commit_id();
        let global = self.global_reads();
        let request = Arc::new(self.slice(at, id, &global));
        let mut tries = Tries::for_at_most(COMMIT_PATIENCE);
        let mut may_have_happened = false;
        loop {
            // By an earlier attempt. Then only an outcome ends it: what this one fails for says
            // nothing about that one.
            let is_doubtful = may_have_happened;
            let route = match is_plain(&request) {
                true => self.gateway.shared.groups.route_plain(group, tries.made()),
                false => self.gateway.shared.groups.route(group, tries.made()),
            };
            let outcome = match route {
                Some(Route::Local(replica)) => {
                    may_have_happened = true;
                    self.commit_here(replica, &request).await.map(|outcome| (outcome, Vec::new()))
                }
                Some(Route::Remote(node)) => match self.bring_slice(node, &request).await {
                    Ok(pieces) => {
                        may_have_happened = true;
                        self.commit_remotely(node, at, &request, pieces).await
                    }
                    Err(e) => Err(e),
                },
                None => Err(Error::unavailable(format!("no primary of group {group} is known"))),
            };
            match outcome {
                Ok((CommitOutcome::Committed(c), _)) => {
                    self.learn_own(group, &request.writes, c);
                    return Ok(c);
                }
                Ok((CommitOutcome::Conflict(conflict), fresh)) => return Err(self.refused(group, (conflict, fresh))),
                Ok((CommitOutcome::Forgotten, _)) => {
                    return Err(unknown_outcome("its id is older than what the group remembers"));
                }
                Err(e) if e.is_unavailable() || is_doubtful => {
                    if !may_have_happened {
                        self.gateway.shared.check_reach(group)?;
                    }
                    if tries.are_over() {
                        return Err(if may_have_happened { unknown_outcome(e.message()) } else { e });
                    }
                    self.gateway.shared.groups.forget_route(group);
                    tries.pause().await;
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Certifies at a primary on this node. That of many rows takes long, and sessions share this
    /// thread.
    async fn commit_here(&self, replica: Arc<Replica>, request: &Arc<CommitRequest>) -> Result<CommitOutcome> {
        if request.reads.len() + request.writes.len() < ENTRIES_ASIDE {
            return self.gateway.shared.commit_at(&replica, request).await;
        }
        let (shared, request) = (self.gateway.shared.clone(), request.clone());
        let (tell, told) = oneshot::channel();
        self.gateway.shared.spawn(async move {
            // The send fails if the session has ended meanwhile.
            let _ = tell.send(shared.commit_at(&replica, &request).await);
        });
        told.await.unwrap_or_else(|_| Err(Error::unavailable("the node stops")))
    }

    /// What goes to another node before the request: nothing, or the pieces of a large slice. How
    /// many there were. Nothing has happened then.
    async fn bring_slice(&self, node: NodeId, request: &CommitRequest) -> Result<u32> {
        let rpc = &self.gateway.shared.rpc;
        rpc.reach(node, CALL_TIMEOUT).await?;
        if !self.is_brought() {
            return Ok(0);
        }
        let pieces = brought::pieces(request, self.gateway.shared.groups.common.large_from.part_bytes);
        let count = pieces.len() as u32;
        let bring = |(number, piece): (u32, Piece)| {
            let Piece { reads, writes } = piece;
            let patience = CALL_TIMEOUT + limits::arrival(PIECES_AT_ONCE * limits::PART_BYTES);
            rpc.call(node, Request::Bring { id: request.id, number, reads, writes }, patience)
        };
        let mut answers = stream::iter((0..).zip(pieces)).map(bring).buffer_unordered(PIECES_AT_ONCE);
        while let Some(answer) = answers.next().await {
            answer?;
        }
        Ok(count)
    }

    async fn commit_remotely(
        &mut self,
        node: NodeId,
        at: usize,
        request: &CommitRequest,
        pieces: u32,
    ) -> Result<(CommitOutcome, Vec<Fresh>)> {
        let group = self.parts[at].group;
        self.round_trips += u32::from(!self.gateway.shared.rpc.is_near(node));
        // It has to arrive there, and then at the primary's followers.
        let patience = CALL_TIMEOUT + 2 * limits::arrival(request.bytes());
        let owner = self.owner();
        let call = match pieces {
            0 => Request::Commit { group, owner, request: request.clone() },
            _ => Request::CommitBrought { group, owner, request: without_slice(request), pieces },
        };
        match self.gateway.shared.rpc.call(node, call, patience).await? {
            Response::Commit(outcome, fresh) => {
                // The primary has emptied the queues.
                self.parts[at].queued_at.remove(&node);
                Ok((outcome, fresh))
            }
            Response::NotPrimary { hint } => Err(self.gateway.shared.groups.not_primary_there(group, node, hint)),
            _ => Err(another_question()),
        }
    }

    /// What a session wrote at a distant group, it sees at once.
    pub(super) fn learn_own(&self, group: GroupId, writes: &[Mutation], at: Timestamp) {
        // GLOBAL rows are at every replica when their commit is acknowledged.
        if self.gateway.shared.groups.is_primary_near(group) || self.gateway.shared.catalog.is_global(group) {
            return;
        }
        // What became of a share, its primary knows.
        for write in writes.iter().filter_map(Mutation::resolved) {
            let newer = Newer { value: write.value, version: at, until: at };
            self.gateway.overlay.learn(group, write.key, newer);
        }
    }

    /// A primary refused: what it told for the next attempt, and the error.
    pub(super) fn refused(&self, group: GroupId, (mut conflict, fresh): (Conflict, Vec<Fresh>)) -> Error {
        for f in fresh.into_iter().filter(|_| self.protocol.learns_from_refusals) {
            self.gateway.overlay.learn(group, f.key, Newer { value: f.value, version: f.version, until: f.until });
        }
        let is_fresh = self.parts.iter().find(|p| p.group == group).is_none_or(|p| p.is_fresh());
        if !is_fresh {
            self.gateway.refusals.note(self.options.session, self.attempts);
        } else if self.options.is_block && conflict.reason == ConflictReason::ConcurrentWrite {
            // A block that asks the primary statement by statement takes a round trip for each:
            // others change what it has read all the sooner. At a replica it is quick.
            self.gateway.refusals.forget(self.options.session);
        }
        if conflict.reason == ConflictReason::Locked {
            // Its turn comes at the primary, where the queue is.
            self.gateway.refusals.note(self.options.session, self.attempts.max(super::protocol::ATTEMPTS_AT_REPLICAS - 1));
        }
        if !is_fresh && conflict.reason == ConflictReason::ConcurrentWrite {
            conflict.reason = ConflictReason::StaleRemoteRead;
        }
        self.explain(&conflict)
    }
}
