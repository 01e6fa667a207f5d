//! One replica of one group.

use crate::consensus::lease::Lease;
use crate::consensus::machine::{Applied, Machine};
use crate::consensus::message::{self, Call, Request, Response};
use crate::consensus::network::{Network, Peers};
use crate::consensus::runtime::TokioSeeded;
use crate::consensus::storage::Storage;
use crate::consensus::{CommittedLeaderId, Entry, LogId, Membership, Payload, Raft, Types, option_to_position, to_log_entry};
use crate::incoming::Incoming;
use crate::log::{GroupHandle, SNAPSHOT_THREAD};
use crate::ticket::InFlight;
use crate::watch::{self as tasks, RoleFollower, Truncator};
use crate::{Claim, GroupOptions, Members, NodeLog, Progress, ProposeError, ProposeTicket, Role, StateMachine, Transport};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use meridian_base::alarm::alarmed;
use meridian_base::runtime::Runtime;
use meridian_base::{Error, GroupId, LogPosition, NodeId, Result};
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ClientWriteError, InitializeError, RaftError};
use openraft::raft::VoteRequest;
use openraft::{ChangeMembers, Config, EmptyNode, EntryPayload, SnapshotPolicy};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// A replica of a group. Cheap to clone; all clones are the same replica, which runs until
/// [`Group::shutdown`].
#[derive(Clone)]
pub struct Group(Arc<Inner>);

struct Inner {
    options: GroupOptions,
    raft: Raft,
    machine: Arc<dyn StateMachine>,
    applied: Arc<Applied>,
    network: Arc<Network>,
    role: Arc<watch::Sender<Role>>,
    in_flight: Arc<InFlight>,
    incoming: Arc<Incoming>,
    runtime: Arc<dyn Runtime>,
    truncate: Arc<Notify>,
    /// The last entry of the log.
    log: GroupHandle,
    /// Until then this replica votes for nobody: before a restart it may have promised a leader not
    /// to.
    votes_from: Instant,
    tasks: Vec<AbortHandle>,
    /// Ends when the library has let go of the state machine.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl AsRef<Lease> for Network {
    fn as_ref(&self) -> &Lease {
        &self.lease
    }
}

fn config(options: &GroupOptions) -> Result<Config> {
    assert!(options.promise <= options.election_timeout_max, "followers promise no more than the library keeps");
    let millis = |d: Duration| d.as_millis() as u64;
    let config = Config {
        cluster_name: options.group.to_string(),
        heartbeat_interval: millis(options.heartbeat),
        election_timeout_min: millis(options.election_timeout_min),
        election_timeout_max: millis(options.election_timeout_max),
        max_payload_entries: options.entries_per_message_max,
        // The log is purged by us alone.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: u64::MAX,
        enable_pre_vote: Some(true),
        // Followers receive an entry while the leader still syncs it.
        broadcast_submitted_on_append: Some(true),
        // Followers may have committed what the leader had not synced: after a restart its log may
        // be shorter than what it acknowledged, and in the same term it would write other entries
        // at the same places. So it stands for election.
        enable_leader_restore: Some(false),
        // A follower whose disk forgot what it had confirmed is sent that again. The leader
        // believes what a follower has now and stops counting what it had; what is committed stays
        // so. Without this it would count entries that are not there.
        allow_log_reversion: Some(true),
        backoff: format!("{}ms", millis(options.heartbeat)),
        ..Config::default()
    };
    config.validate().map_err(|e| Error::internal(format!("options of group {}: {e}", options.group)))
}

impl Group {
    /// Starts the replica: recovers from the log and the state machine, and joins the group if it
    /// has members.
    pub async fn start(
        options: GroupOptions,
        log: NodeLog,
        machine: Arc<dyn StateMachine>,
        transport: Arc<dyn Transport>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Group> {
        let config = Arc::new(config(&options)?);
        let handle = log.group(options.group);
        let (adapter, applied, ended) = Machine::new(machine.clone(), runtime.clone())?;
        let (purged, _) = handle.bounds();
        if applied.position().index < purged.index {
            return Err(Error::fatal(format!(
                "the state of group {} ends at {}, but its log begins behind {purged}: the state lost data that was durable",
                options.group,
                applied.position()
            ))
            .hint("Remove this node from the cluster, and add it again with an empty data directory."));
        }
        let node = options.node.0;
        let is_new = handle.bounds().1 == LogPosition::default() && applied.position() == LogPosition::default();
        if is_new && options.founders.contains(&options.node) {
            found(&log, options.group, &options.founders).await?;
        }
        let founds = !options.founders.is_empty() && handle.vote().is_none() && handle.bounds().1 == FIRST;
        let votes_from = match handle.vote() {
            Some(_) => Instant::now() + options.promise,
            None => Instant::now(),
        };
        let lease = Lease::new(node, options.promise.saturating_sub(options.lease_margin));
        let network = Arc::new(Network {
            group: options.group,
            transport,
            timeout: options.rpc_timeout,
            runtime: runtime.clone(),
            heartbeat: options.heartbeat,
            lease,
            accepted: Mutex::default(),
            configs: OnceLock::new(),
            snapshots: AtomicU64::new(runtime.random()),
        });
        let storage = Storage { handle: handle.clone(), message_bytes_max: options.bytes_per_message_max };
        let start = Raft::new(node, config, Peers(network.clone()), storage, adapter);
        let raft = TokioSeeded::scope(runtime.random(), start)
            .await
            .map_err(|e| Error::fatal(format!("starting the replica of group {} failed: {e}", options.group)))?;
        let metrics = raft.server_metrics();
        let _ = network.configs.set(Box::new(move || tasks::configs(&metrics.borrow_watched())));

        let is_sole = tasks::configs(&raft.server_metrics().borrow_watched()) == [BTreeSet::from([node])];
        if is_sole || (founds && options.founders.first() == Some(&options.node)) {
            // Nobody else can lead, or nobody else will try to before an election timeout: there is
            // nothing to wait for.
            raft.trigger().elect(false).await.map_err(stopped)?;
        }
        let role = Arc::new(watch::Sender::new(Role::default()));
        let in_flight = Arc::new(InFlight::default());
        let truncate = Arc::new(Notify::new());
        let follower = RoleFollower {
            node,
            raft: raft.clone(),
            role: role.clone(),
            in_flight: in_flight.clone(),
            lease: network.clone(),
            patience: options.election_timeout_max,
        };
        follower.update();
        let truncator = Truncator {
            raft: raft.clone(),
            applied: applied.clone(),
            wake: truncate.clone(),
            wanted: handle.purge_wanted(),
            entries_kept: options.entries_kept,
            log: handle.clone(),
        };
        let tasks = vec![
            tokio::spawn(alarmed(follower.run(), log.alarm("what follows a group's leader"))).abort_handle(),
            tokio::spawn(alarmed(truncator.run(), log.alarm("what truncates a group's log"))).abort_handle(),
        ];
        Ok(Group(Arc::new(Inner {
            options,
            raft,
            machine,
            applied,
            network,
            role,
            in_flight,
            incoming: Arc::default(),
            runtime,
            truncate,
            log: handle,
            votes_from,
            tasks,
            ended: Mutex::new(Some(ended)),
        })))
    }

    /// The group this is a replica of.
    pub fn id(&self) -> GroupId {
        self.0.options.group
    }

    /// Founds the group with this node as its only voter. Does nothing if this replica already
    /// knows members. (A group of several is founded by [`GroupOptions::founders`].)
    pub async fn initialize(&self) -> Result<()> {
        if self.is_initialized() {
            return Ok(());
        }
        let members = BTreeMap::from([(self.0.options.node.0, EmptyNode::new())]);
        match self.0.raft.initialize(members).await {
            // Another voter leads already.
            Ok(()) | Err(RaftError::APIError(InitializeError::NotAllowed(_))) => Ok(()),
            Err(e) => Err(Error::internal(format!("founding group {} failed: {e}", self.id()))),
        }
    }

    /// Whether this replica knows the group's members (it was initialized, or a leader contacted
    /// it).
    pub fn is_initialized(&self) -> bool {
        !tasks::configs(&self.0.raft.server_metrics().borrow_watched()).is_empty() || self.last_position().index > 0
    }

    /// What the sender of a message says it is. Malformed bytes are an error.
    pub fn claim(message: &Bytes) -> Result<Option<Claim>> {
        message::claim(message)
    }

    /// Answers a message that a peer sent through its [`Transport`]. Malformed bytes are an error.
    pub fn handle(&self, message: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        let group = self.clone();
        async move {
            let call = message::decode_call(message)?;
            group.check_term(&call)?;
            let response = match call {
                Call::Append(request) => Response::Append(group.0.raft.append_entries(request).await.map_err(stopped)?),
                Call::Other(request) => group.handle_other(request).await?,
            };
            Ok(message::encode_response(&response))
        }
        .boxed()
    }

    /// Refuses a term that no election can have led to. The highest term of all could never be
    /// followed by another.
    fn check_term(&self, call: &Call) -> Result<()> {
        let term = match call {
            Call::Append(request) => request.vote.leader_id.term,
            Call::Other(Request::Vote(request) | Request::PreVote(request)) => request.vote.leader_id.term,
            Call::Other(Request::Transfer(request)) => request.from_leader().leader_id.term,
            Call::Other(Request::SnapshotBegin { vote, .. }) => vote.leader_id.term,
            Call::Other(Request::SnapshotChunk { .. } | Request::SnapshotEnd { .. } | Request::Campaign { .. }) => return Ok(()),
        };
        let known = self.0.raft.server_metrics().borrow_watched().vote.leader_id.term;
        match term.saturating_sub(known) <= TERM_AHEAD_MAX {
            true => Ok(()),
            false => Err(Error::unavailable(format!("there can be no term {term} yet: this is term {known}"))),
        }
    }

    async fn handle_other(&self, request: Request) -> Result<Response> {
        let inner = &self.0;
        Ok(match request {
            Request::Vote(request) => {
                self.may_vote(&request)?;
                let response = inner.raft.vote(request).await.map_err(stopped)?;
                // If this replica led, it does not any more: its lease ends before the candidate
                // learns of the vote.
                inner.network.lease.superseded(response.vote.leader_id.term);
                Response::Vote(response)
            }
            Request::PreVote(request) => {
                self.may_vote(&request)?;
                Response::Vote(inner.raft.pre_vote(request).await.map_err(stopped)?)
            }
            Request::Transfer(request) => Response::Transfer(inner.raft.handle_transfer_leader(request).await.map_err(stopped)?),
            Request::SnapshotBegin { id, vote, meta } => {
                let (incoming, machine) = (inner.incoming.clone(), inner.machine.clone());
                inner.runtime.run_io(SNAPSHOT_THREAD, move || incoming.begin(&*machine, id, vote, meta)).await?;
                Response::Chunk
            }
            Request::SnapshotChunk { id, number, data } => {
                let incoming = inner.incoming.clone();
                inner.runtime.run_io(SNAPSHOT_THREAD, move || incoming.chunk(id, number, data)).await?;
                Response::Chunk
            }
            Request::SnapshotEnd { id, chunks } => {
                let (vote, snapshot) = inner.incoming.end(id, chunks)?;
                Response::Snapshot(inner.raft.install_full_snapshot(vote, snapshot).await.map_err(stopped)?)
            }
            Request::Campaign { node } => {
                self.transfer_leadership(NodeId(node)).await?;
                Response::Campaign
            }
        })
    }

    /// A vote given soon after a restart could break a promise given before it; see
    /// [`crate::consensus::lease`].
    fn may_vote(&self, request: &VoteRequest<Types>) -> Result<()> {
        if request.leadership_transfer || Instant::now() >= self.0.votes_from {
            return Ok(());
        }
        Err(Error::unavailable("this replica has just restarted and does not vote yet"))
    }

    /// Appends a payload to the log, if this replica leads. Never blocks and never waits. The order
    /// of calls is the order in the log; many may be in flight. A leader that loses its leadership,
    /// or its quorum for long, resolves everything in flight as [`ProposeError::Dropped`].
    pub fn propose(&self, payload: Bytes) -> Result<ProposeTicket, ProposeError> {
        let inner = &self.0;
        let role = *inner.role.borrow();
        if !role.is_leader {
            return Err(ProposeError::NotLeader { hint: role.leader });
        }
        let (ticket, reply) = inner.in_flight.issue();
        let write = inner.raft.client_write_ff(Payload(payload), Some(reply));
        // It only waits if the library's queue is full; `unconstrained`, since a task that has used
        // up its budget would see a full queue where there is none.
        match tokio::task::unconstrained(write).now_or_never() {
            Some(Ok(())) => Ok(ticket),
            Some(Err(_)) => Err(ProposeError::Stopped),
            None => Err(ProposeError::Overloaded),
        }
    }

    /// Who leads.
    pub fn role(&self) -> Role {
        *self.0.role.borrow()
    }

    /// Follows [`Group::role`].
    pub fn watch_role(&self) -> watch::Receiver<Role> {
        self.0.role.subscribe()
    }

    /// Until when no other replica can have become leader: a quorum acknowledged this leader less
    /// than `promise - lease_margin` before. `None` if this replica does not lead, has not heard
    /// from a quorum, or is giving its leadership away. A few atomic loads.
    pub fn lease_until(&self) -> Option<Instant> {
        self.0.network.lease.until()
    }

    /// Whom to tell when [`Group::lease_until`] is taken back, before another voter can lead for
    /// that reason. The first call counts.
    pub fn on_lease_withdrawn(&self, tell: impl Fn() + Send + Sync + 'static) {
        self.0.network.lease.on_withdrawal(Box::new(tell));
    }

    #[cfg(test)]
    pub(crate) fn lease(&self) -> &Lease {
        &self.0.network.lease
    }

    /// Whether [`Group::lease_until`] is in the future. Always true for the leader of a group of
    /// one voter.
    pub fn lease_valid(&self) -> bool {
        self.lease_until().is_some_and(|until| Instant::now() < until)
    }

    /// Gives the lease up, waits until `to` has the whole log, and makes it stand for election.
    /// Returns when another replica leads, or with an error when that did not happen within two
    /// election timeouts. After an error this replica may still lead, but it takes no proposals and
    /// has no lease in this term any more: an election follows.
    pub async fn transfer_leadership(&self, to: NodeId) -> Result<()> {
        let role = self.role();
        if !role.is_leader {
            return Err(not_leader(role.leader));
        }
        if to == self.0.options.node {
            return Ok(());
        }
        if !self.members().voters.contains(&to) {
            return Err(Error::unavailable(format!("{to} is not a voter of group {}", self.id())));
        }
        self.0.network.lease.give_up(role.term);
        self.0.raft.trigger().transfer_leader(to.0).await.map_err(stopped)?;
        self.wait_for_role(|r| !r.is_leader && r.leader.is_some_and(|l| l != self.0.options.node)).await
    }

    /// Asks for leadership: the current leader, if one is known, to transfer it here; otherwise
    /// stands for election. Returns when this replica leads, or with an error.
    pub async fn campaign(&self) -> Result<()> {
        let role = self.role();
        let node = self.0.options.node;
        match role.leader {
            Some(leader) if leader != node => {
                let message = message::encode_request(&Request::Campaign { node: node.0 });
                let asked = self.0.network.call(leader.0, message).await;
                // The leader's answer may be lost although it did what was asked: what counts is
                // who leads.
                match self.wait_for_role(|r| r.is_leader).await {
                    Ok(()) => Ok(()),
                    Err(e) => Err(asked.err().unwrap_or(e)),
                }
            }
            Some(_) => Ok(()),
            None => {
                self.0.raft.trigger().elect(true).await.map_err(stopped)?;
                self.wait_for_role(|r| r.is_leader).await
            }
        }
    }

    async fn wait_for_role(&self, reached: impl Fn(&Role) -> bool) -> Result<()> {
        let mut role = self.watch_role();
        let limit = self.0.options.election_timeout_max * 2;
        match tokio::time::timeout(limit, role.wait_for(|r| reached(r))).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Error::unavailable(format!("leadership of group {} did not move within {limit:?}", self.id()))),
        }
    }

    /// Makes the members exactly these, through joint consensus; only on the leader. New members
    /// first catch up as learners. Returns when the change is committed; it waits as long as a new
    /// voter takes to catch up, if need be for ever, and for no other: a voter that was there
    /// before may be dead, and so may those that the caller calls `absent`. The others must be a
    /// majority of the new voters.
    pub async fn change_members(
        &self,
        voters: BTreeSet<NodeId>,
        learners: BTreeSet<NodeId>,
        absent: &BTreeSet<NodeId>,
    ) -> Result<()> {
        let raft = &self.0.raft;
        let voters: BTreeSet<u32> = voters.iter().map(|n| n.0).collect();
        let wanted: BTreeSet<u32> = learners.iter().map(|n| n.0).chain(voters.iter().copied()).collect();
        let known = |raft: &Raft| -> BTreeSet<u32> {
            raft.server_metrics().borrow_watched().membership_config.membership().nodes().map(|(n, _)| *n).collect()
        };
        for node in wanted.difference(&known(raft)) {
            raft.add_learner(*node, EmptyNode::new(), false).await.map_err(change_error)?;
        }
        let present = self.members().voters;
        let is_awaited = |n: &NodeId| !present.contains(n) && !absent.contains(n);
        self.caught_up(voters.iter().map(|n| NodeId(*n)).filter(is_awaited).collect()).await?;
        {
            let _changing = self.0.network.lease.changing_voters();
            raft.change_membership(ChangeMembers::ReplaceAllVoters(voters), true).await.map_err(change_error)?;
        }
        let superfluous: BTreeSet<u32> = known(raft).difference(&wanted).copied().collect();
        if !superfluous.is_empty() {
            raft.change_membership(ChangeMembers::RemoveNodes(superfluous), false).await.map_err(change_error)?;
        }
        Ok(())
    }

    /// Waits until each of these has what is in the log now. The library would do so too, but it
    /// calls a learner up to date that lacks no more than some thousand entries, even one that it
    /// never reached; and a majority that has to wait for a snapshot commits nothing meanwhile.
    async fn caught_up(&self, nodes: BTreeSet<NodeId>) -> Result<()> {
        let (last, mut metrics, mut role) = (self.last_position().index, self.0.raft.data_metrics(), self.watch_role());
        loop {
            let leader = *role.borrow_and_update();
            if !leader.is_leader {
                return Err(not_leader(leader.leader));
            }
            let progress = self.progress();
            let has_all = |n: &NodeId| progress.get(n).and_then(|p| p.matched).is_some_and(|matched| matched.index >= last);
            if nodes.iter().all(has_all) {
                return Ok(());
            }
            tokio::select! {
                biased;
                changed = role.changed() => changed.map_err(stopped)?,
                changed = metrics.changed() => changed.map_err(stopped)?,
            }
        }
    }

    /// Who belongs to the group, as this replica knows it.
    pub fn members(&self) -> Members {
        let metrics = self.0.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        let membership = metrics.membership_config.membership();
        let written_at = option_to_position(metrics.membership_config.log_id().as_ref());
        Members {
            voters: membership.voter_ids().map(NodeId).collect(),
            learners: membership.learner_ids().map(NodeId).collect(),
            joint: membership.get_joint_config().len() > 1,
            committed: written_at <= self.committed(),
        }
    }

    /// How far every other replica is; empty unless this one leads.
    pub fn progress(&self) -> BTreeMap<NodeId, Progress> {
        let metrics = self.0.raft.data_metrics();
        let metrics = metrics.borrow_watched();
        let replication = metrics.replication.iter().flatten();
        replication
            .filter(|(node, _)| **node != self.0.options.node.0)
            .map(|(node, matched)| {
                let matched = matched.as_ref().map(|id| option_to_position(Some(id)));
                (NodeId(*node), Progress { matched })
            })
            .collect()
    }

    /// The last entry of this replica's log.
    pub fn last_position(&self) -> LogPosition {
        self.0.log.bounds().1
    }

    /// The last entry this replica knows to be committed.
    pub fn committed(&self) -> LogPosition {
        let metrics = self.0.raft.data_metrics();
        let committed = option_to_position(metrics.borrow_watched().local_committed.as_ref());
        committed.max(self.applied())
    }

    /// The last entry given to the state machine.
    pub fn applied(&self) -> LogPosition {
        self.0.applied.position()
    }

    /// Tells that the state machine holds everything up to `position` durably: the log up to there,
    /// less [`GroupOptions::entries_kept`], may be dropped. Followers that still need it get a
    /// snapshot. To be called regularly, also for a group that is idle: its last entries keep files
    /// of the node's log alive.
    pub fn set_truncatable(&self, position: LogPosition) {
        self.0.applied.set_durable(position);
        self.0.truncate.notify_one();
    }

    /// The error that stopped this replica, if one did.
    pub fn failure(&self) -> Option<Error> {
        if let Some(e) = self.0.applied.failure() {
            return Some(e);
        }
        match &self.0.raft.metrics().borrow_watched().running_state {
            Err(openraft::errors::Fatal::Stopped) | Ok(()) => None,
            Err(e) => Some(Error::fatal(format!("the replica of group {} stopped: {e}", self.id()))),
        }
    }

    /// Stops the replica and waits until none of its tasks uses the state machine any more.
    pub async fn shutdown(&self) {
        for task in &self.0.tasks {
            task.abort();
        }
        self.0.network.lease.set_leader(false);
        // An error means that the library's task had panicked; it is gone in any case.
        let _ = self.0.raft.shutdown().await;
        let stopped = Role { leader: None, is_leader: false, ..self.role() };
        self.0.role.send_replace(stopped);
        self.0.in_flight.fail_all(&ProposeError::Stopped);
        let ended = self.0.ended.lock().take();
        if let Some(ended) = ended {
            // Ends with an error, since nothing is ever sent: the sender is dropped with the
            // machine.
            let _ = ended.await;
        }
    }
}

/// Where the entry is that founds a group.
/// A term grows by one with each election. One that is farther ahead than this is no replica's.
pub(crate) const TERM_AHEAD_MAX: u64 = 1 << 32;

const FIRST: LogPosition = LogPosition { index: 1, term: 0 };

/// Writes the first entry of a group's log, durably; for a founder whose log is empty. It is the
/// same on every founder, so it never has to be sent; the library's own way, by a call to the
/// running replica, is closed to a founder that has voted, and one that votes for another and never
/// hears of it again would know no members for ever.
pub async fn found(log: &NodeLog, group: GroupId, founders: &[NodeId]) -> Result<()> {
    let members: BTreeMap<u32, EmptyNode> = founders.iter().map(|n| (n.0, EmptyNode::new())).collect();
    let first = LogId { leader_id: CommittedLeaderId::new(0), index: 0 };
    let entry = Entry { log_id: first, payload: EntryPayload::Membership(Membership::from(members)) };
    let (tell, told) = oneshot::channel();
    log.group(group).append(vec![to_log_entry(&entry)], move |done| drop(tell.send(done)));
    told.await.unwrap_or_else(|_| Err(Error::unavailable("the log is closed")))
}

fn not_leader(leader: Option<NodeId>) -> Error {
    let error = Error::unavailable("this replica does not lead the group");
    match leader {
        Some(leader) => error.hint(format!("Ask {leader}.")),
        None => error,
    }
}

fn stopped(e: impl std::fmt::Display) -> Error {
    Error::unavailable(format!("the replica is stopped: {e}"))
}

fn change_error(e: RaftError<Types, ClientWriteError<Types>>) -> Error {
    match e {
        RaftError::APIError(ClientWriteError::ForwardToLeader(f)) => not_leader(f.leader_id.map(NodeId)),
        RaftError::APIError(ClientWriteError::LogEntryDiscarded(_)) => {
            Error::unavailable("leadership was lost while members were being changed")
        }
        e => Error::unavailable(format!("changing the members failed: {e}")),
    }
}
