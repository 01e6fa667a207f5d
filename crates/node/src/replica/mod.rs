//! A group's replica on this node: the log is applied to the store and to the group's state; while
//! this replica leads, a transaction engine certifies on top of them.
//!
//! The group's state and the term are behind one short lock, [`Core`], which is never held across
//! an await. Reads of a settled snapshot do not take it (see `FastPath`). A second lock,
//! `applying`, makes applying and cutting take turns; it is taken first.
//!
//! A term of leadership goes like this:
//!
//! 1. The consensus protocol makes this replica leader. It proposes a payload without records;
//!    when that is applied, every entry of earlier terms is, so the state is complete.
//! 2. [`Engine::start`] from the state. A lease is logged at once. Requests wait until it is
//!    applied and the clock has passed the last ceiling.
//! 3. Certified transactions go to the log in batches, of which up to 16 are on their way. While
//!    16 are, transactions collect in `pending` for the next one. So batches grow under load, and
//!    a single transaction does not wait for a timer.
//! 4. An append that fails, or the loss of leadership, ends the term: it is dropped with its engine
//!    and all else that is in it ([`Term`]). Gateways that wait are told so, and ask the new
//!    primary with the same transaction id.

mod asking;
pub(crate) mod ballots;
pub(crate) mod brought;
pub(crate) mod builds;
pub(crate) mod closed;
pub(crate) mod common;
pub(crate) mod errors;
pub(crate) mod follower;
mod fresh;
mod grants;
pub(crate) mod groups;
mod machine;
pub(crate) mod outbox;
pub(crate) mod pages;
pub mod pod;
pub(crate) mod pods;
pub mod primary;
pub(crate) mod rounds;
pub(crate) mod term;
pub(crate) mod term_rounds;
mod versions;

pub(crate) use versions::StoreVersions;

use crate::catalog::ApplyHook;
use crate::replica::builds::Builds;
use crate::replica::common::Common;
use crate::replica::pod::Outlet;
use crate::replica::term::{FastPath, Pending, Term};
use crate::replica::term_rounds::TermRounds;
use crate::transport::wire::ClosedPromise;
use bytes::Bytes;
use meridian_base::parts::Gatherer;
use meridian_base::record::{Build, Committed, Payload, Record};
use meridian_base::{Clock, Error, GroupId, LogPosition, NodeId, Result, Timestamp, TxnId, envelope, invariants, limits};
use meridian_commit::Participant;
use meridian_pod::{Segment, SharedMemory};
use meridian_raft as raft;
use meridian_raft::{AppliedEntry, MembershipBlob};
use meridian_region::{Engine, GroupState, Rules};
use meridian_store::GroupStore;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How often an idle primary looks at its clock: leases, waits for the clock, lock timeouts.
pub(crate) const TICK: Duration = Duration::from_millis(25);
/// Applied but not flushed changes are flushed at least this often, so that a restart replays
/// little.
const FLUSH_INTERVAL: Duration = Duration::from_secs(20);

/// What a replica flushes with its versions.
#[derive(Debug, Serialize, Deserialize)]
struct Flushed {
    state: Vec<u8>,
    membership: MembershipBlob,
    /// Indexes whose entries are not among the versions.
    #[serde(default)]
    owed: Vec<Build>,
}

/// See the module's essay.
pub struct Replica {
    pub id: GroupId,
    pub node: NodeId,
    pub store: Arc<GroupStore>,
    /// The node's.
    pub(crate) common: Arc<Common>,
    /// The group's clock: the node's, or its own for groups that commit at future-time timestamps:
    /// the catalog, and those of GLOBAL tables.
    pub(crate) clock: Arc<Clock>,
    pub(crate) core: Mutex<Core>,
    pub(crate) fast: Arc<FastPath>,
    raft: OnceLock<raft::Group>,
    hook: Option<Arc<dyn ApplyHook>>,
    /// Held while entries are applied, so that a cut falls between two of them; with the parts of a
    /// transaction that have come.
    applying: Mutex<Gatherer>,
    /// The commit protocol's next timer has moved.
    pub(crate) ticker: Notify,
    /// The bytes of the last snapshot that did not fit on the disk. The next one begins when there
    /// is that much room.
    snapshot_bytes: AtomicU64,
    /// It runs with the timeouts of voters in several regions.
    pub(crate) is_across_regions: bool,
    /// It holds GLOBAL tables.
    pub(crate) is_global: bool,
    /// How far such a group's clock is ahead of the node's, in microseconds; 0 for others.
    pub(crate) lead_micros: AtomicU64,
    pub(crate) made: Instant,
    /// It is not on this node any more, or another one has taken its place.
    retired: AtomicBool,
    /// The segment of the pod that this replica leads, or led last.
    pod_segment: Mutex<Option<Segment<SharedMemory>>>,
    /// Prepared transactions whose outcome depends on a group that is lost, and which.
    pub(crate) in_doubt: Mutex<BTreeMap<TxnId, GroupId>>,
}

/// What changes under the lock.
pub(crate) struct Core {
    pub state: GroupState,
    /// This replica leads, or is a host of a pod that another one leads.
    pub term: Option<Term>,
    /// The last term's number, and what its engine used ([`Engine::used`]): it may begin again.
    last_used: Option<(u64, Timestamp)>,
    /// The last one heard from a primary.
    pub promise: ClosedPromise,
    membership: MembershipBlob,
    pub builds: Builds,
}

impl Replica {
    /// A replica over what the store holds. [`Replica::start`] joins it to its group.
    pub(crate) fn new(
        id: GroupId,
        common: &Arc<Common>,
        clock: Arc<Clock>,
        hook: Option<Arc<dyn ApplyHook>>,
        is_across_regions: bool,
        is_global: bool,
    ) -> Result<Arc<Replica>> {
        let store = common.store.group(id)?;
        let (state, membership, owed) = match store.recovered() {
            Some((_, blob)) => decode_flushed(&blob, common.rules)?,
            None => (GroupState::new(common.rules), MembershipBlob::default(), Vec::new()),
        };
        if let Some(hook) = &hook {
            hook.replaced(&store)?;
        }
        Ok(Arc::new(Replica {
            id,
            node: common.life.me(),
            store,
            common: common.clone(),
            clock,
            core: Mutex::new(Core {
                state,
                term: None,
                last_used: None,
                promise: ClosedPromise { group: id, closed: Timestamp::MIN, index: 0 },
                membership,
                builds: Builds::new(owed),
            }),
            fast: Arc::default(),
            raft: OnceLock::new(),
            hook,
            applying: Mutex::default(),
            ticker: Notify::new(),
            snapshot_bytes: AtomicU64::new(0),
            is_across_regions,
            is_global,
            lead_micros: AtomicU64::new(0),
            made: Instant::now(),
            retired: AtomicBool::new(false),
            pod_segment: Mutex::default(),
            in_doubt: Mutex::default(),
        }))
    }

    /// Joins the group: from here on the replica follows, votes, and leads when it is elected.
    pub(crate) async fn start(
        self: &Arc<Self>,
        options: raft::GroupOptions,
        transport: Arc<dyn raft::Transport>,
        clock_compared: watch::Receiver<bool>,
    ) -> Result<()> {
        let machine: Arc<dyn raft::StateMachine> = Arc::new(machine::Machine(Arc::downgrade(self)));
        let starting = raft::Group::start(options, self.common.log.clone(), machine, transport, self.common.runtime.clone());
        let group = self.common.life.tasks.on_protocol(starting).await??;
        let _ = self.raft.set(group);
        self.common.life.spawn_protocol(self.clone().follow_leadership(clock_compared));
        self.common.life.spawn(self.clone().flush_regularly());
        if let Some(pod) = self.pod() {
            let replica = Arc::downgrade(self);
            self.raft().on_lease_withdrawn(move || {
                if let Some(replica) = replica.upgrade() {
                    replica.end_generation();
                }
            });
            self.common.life.spawn(self.clone().run_pod(pod.clone()));
        }
        Ok(())
    }

    /// Nothing happens here any more.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.end_term_unless(None);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// The consensus group. The replica must have been started.
    pub fn raft(&self) -> &raft::Group {
        self.raft.get().expect("a started replica")
    }

    /// Whether this replica is a primary that answers.
    pub fn is_serving(&self) -> bool {
        self.fast.is_serving()
    }

    /// Follows [`Replica::is_serving`].
    pub fn watch_serving(&self) -> watch::Receiver<bool> {
        self.fast.watch_serving()
    }

    /// The term in which this replica serves, if it does.
    pub fn serving_term(&self) -> Option<u64> {
        // Most replicas follow: they are not asked for their lock.
        let term = |core: &Core| core.term.as_ref().map(|term| term.number);
        self.is_serving().then(|| self.core.lock()).and_then(|core| term(&core).filter(|_| self.is_serving()))
    }

    /// Whether this replica leads, and its clock is so far behind what was promised that it says so
    /// instead of serving.
    pub(crate) fn leads_behind_promise(&self) -> bool {
        self.fast.leads_behind.load(Ordering::Acquire)
    }

    /// How long, if so.
    pub(crate) fn waits_for_clock(&self) -> Option<Duration> {
        if self.leads_behind_promise() { self.behind_promise() } else { None }
    }

    /// How far the clock is behind what the group was promised, if that is no ordinary wait.
    pub(crate) fn behind_promise(&self) -> Option<Duration> {
        let promised = {
            let core = self.core.lock();
            core.state.ceiling().max(core.state.closed())
        };
        let behind = promised.since(Timestamp::from_micros(self.physical()));
        (behind > limits::BEHIND_MAX).then_some(behind)
    }

    /// The physical time of the group's clock.
    pub(crate) fn physical(&self) -> u64 {
        self.common.runtime.physical_micros() + self.lead_micros.load(Ordering::Relaxed)
    }

    // --- leadership

    async fn follow_leadership(self: Arc<Self>, mut clock_compared: watch::Receiver<bool>) {
        // By a clock that is wrong nothing must be promised.
        if clock_compared.wait_for(|compared| *compared).await.is_err() {
            return;
        }
        let mut roles = self.raft().watch_role();
        let mut ticked = Instant::now();
        while !self.is_retired() {
            let role = *roles.borrow_and_update();
            self.end_term_unless(Some(role));
            if role.is_leader && self.core.lock().term.is_none() {
                self.lead(role.term).await;
            }
            // From the last tick and not from now: news of the protocol's timers, however many,
            // must not put it off.
            let due = self.participant_due().map_or(TICK, |due| TICK.min(due));
            let next = (ticked + TICK).min(Instant::now() + due);
            tokio::select! {
                biased;
                changed = roles.changed() => if changed.is_err() { break },
                () = tokio::time::sleep_until(next) => {
                    ticked = Instant::now();
                    self.tick();
                }
                () = self.ticker.notified() => {}
            }
        }
        self.end_term_unless(None);
    }

    /// Steps 1 and 2 of a term.
    async fn lead(self: &Arc<Self>, term: u64) {
        let barrier = {
            let core = self.core.lock();
            let payload = Payload { closed: core.state.closed(), watermark: core.state.watermark(), records: Vec::new() };
            self.raft().propose(payload.encode())
        };
        let Ok(ticket) = barrier else { return };
        if ticket.await.is_err()
            || !self.until_paid(term).await
            || self.raft().role() != (raft::Role { term, leader: Some(self.node), is_leader: true })
        {
            return;
        }
        let wait = {
            let mut core = self.core.lock();
            let engine =
                Engine::start(self.node, self.id, &core.state, self.common.rules).with_large_from(self.common.large_from.writes);
            let engine = match core.last_used {
                Some((last, used)) if last == term => engine.resumed(used, &core.state),
                _ => engine,
            };
            let wait = engine.start_wait(self.physical());
            let now = Timestamp::from_micros(self.physical());
            let participant = Participant::start(self.id, &core.state, now, self.common.ballot_rules);
            // Sites must not draw the same pauses.
            let seed = (u64::from(self.id.0) << 32 ^ term).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let with = (engine, self.clock.clone());
            let rounds = TermRounds::new(seed);
            core.term = Some(Term::new(term, with, Outlet::Log, participant, rounds, self.fast.clone()));
            wait
        };
        tracing::info!("{} leads {} in term {term}; serving in {} ms", self.node, self.id, wait.as_millis());
        self.tick();
    }

    /// What time alone makes happen: leases, waits for the clock, lock timeouts.
    fn tick(&self) {
        let mut core = self.core.lock();
        let core = &mut *core;
        let physical = self.physical();
        self.end_term_if_dropped(core);
        let Core { state, term: Some(term), .. } = core else { return };
        self.fast.leads_behind.store(term.engine.start_wait(physical) > limits::BEHIND_MAX, Ordering::Release);
        let mut woken = Vec::new();
        term.engine.tick(&term.clock, physical, &mut woken);
        if !term.is_beside_leader() {
            term.records.extend(term.engine.renew_lease(state, &term.clock, physical).map(Record::Lease));
        }
        let mut ended = Vec::new();
        term.queues.expire(Timestamp::from_micros(physical), &mut ended);
        term.wake(woken);
        term.end_waits(ended);
        if !term.is_beside_leader() {
            self.fold(core);
            self.tick_participant(core);
            self.tick_rounds(core);
        }
        self.pump(core);
        if self.looks_at_invariants() {
            core.invariant_term();
        }
    }

    /// Adds what transactions over several groups have left beside escrow shares to them.
    fn fold(&self, core: &mut Core) {
        let Core { state, term: Some(term), .. } = core else { return };
        for share in term.engine.take_ripe() {
            let id = TxnId { hlc: self.common.clock.tick(self.physical()), gateway: self.node };
            if let Some((at, writes)) = term.engine.fold(state, id, &share, &term.clock, self.physical()) {
                term.pending.push(Pending::Committed(Committed { id, at, writes }));
            }
        }
    }

    /// Not with a broken rule: the checkers are to see that, not the assertions.
    fn looks_at_invariants(&self) -> bool {
        let are_kept = self.common.rules.are_all_kept() && self.common.ballot_rules.are_all_kept();
        are_kept && invariants::are_looked_at()
    }

    /// Gives the lease up and waits until that is in the log, so that the successor starts at once.
    pub async fn give_up(&self) {
        let has_stopped = self.close_pod().await;
        let done = {
            let mut core = self.core.lock();
            if !has_stopped {
                // Another host may have used what the lease allows: it ends by itself.
                self.end_term(&mut core, &"another host of the pod does not stop");
                return;
            }
            let Core { state, term: Some(term), .. } = &mut *core else { return };
            if term.is_beside_leader() {
                return;
            }
            // Certified transactions go into the log before the lease ends there.
            match term.give_up(state, self.physical(), self.common.part_bytes(), self.raft()) {
                Ok(payload) => self.raft().propose(payload),
                Err(e) => {
                    self.end_term(&mut core, &e);
                    return;
                }
            }
        };
        if let Ok(ticket) = done {
            let _ = tokio::time::timeout(Duration::from_secs(2), ticket).await;
        }
    }

    /// Hands leadership to another voter.
    pub async fn transfer(&self, to: NodeId) -> Result<()> {
        self.give_up().await;
        let moved = self.raft().transfer_leadership(to).await;
        if moved.is_err() && self.raft().role().is_leader {
            // Still leader: a new engine starts from the log as after an election.
            self.end_term_unless(None);
        }
        moved
    }

    /// Ends any term but the one that the log is in.
    fn end_term_unless(&self, current: Option<raft::Role>) {
        let mut core = self.core.lock();
        let is_of = |term: &Term, role: raft::Role| role.term == term.number && role.is_leader != term.is_beside_leader();
        if core.term.as_ref().is_some_and(|term| current.is_none_or(|role| !is_of(term, role))) {
            self.end_term(&mut core, &"leadership is lost");
        }
    }

    /// Before an entry of some term is applied: one of a later term says that this one's is over,
    /// and one of the same term may follow an append that was dropped, both perhaps before the news
    /// of it have come. What the engine has in flight then is not what is applied.
    fn end_term_if_over(&self, number: u64) {
        let mut core = self.core.lock();
        if core.term.as_ref().is_some_and(|term| term.number < number) {
            self.end_term(&mut core, &"an entry of a later term");
        }
        self.end_term_if_dropped(&mut core);
    }

    fn end_term_if_dropped(&self, core: &mut Core) {
        if let Some(Err(e)) = core.term.as_mut().map(Term::check_proposals) {
            self.end_term(core, &e);
        }
    }

    /// If this replica still leads, a new term starts from the log as after an election.
    fn end_term(&self, core: &mut Core, why: &dyn Display) {
        let Some(term) = core.term.take() else { return };
        tracing::info!("{}: term {} of {} ends: {why}", self.node, term.number, self.id);
        // In a pod, others may have used more.
        core.last_used = matches!(term.outlet, Outlet::Log).then(|| (term.number, term.engine.used()));
    }

    /// The term and what the log says, while this replica leads.
    pub(crate) fn leading<'a>(&self, core: &'a mut Core) -> Result<(&'a GroupState, &'a mut Term)> {
        self.certifying(core).and_then(|(state, term)| match term.is_beside_leader() {
            true => Err(Error::not_primary(self.id)),
            false => Ok((state, term)),
        })
    }

    /// The same, also while this replica is a host of a pod that another one leads.
    pub(crate) fn certifying<'a>(&self, core: &'a mut Core) -> Result<(&'a GroupState, &'a mut Term)> {
        let Core { state, term: Some(term), .. } = core else { return Err(Error::not_primary(self.id)) };
        self.follow_node(state, term);
        Ok((state, term))
    }

    // --- the log

    /// Hands what is pending to the log, unless enough batches are on their way already.
    pub(crate) fn pump(&self, core: &mut Core) {
        let Core { state, term: Some(term), .. } = core else { return };
        if term.may_send()
            && let Err(e) = term.pump(state, self.physical(), self.common.part_bytes(), self.raft())
        {
            self.end_term(core, &e);
        }
    }

    fn apply_entries(&self, batch: Vec<AppliedEntry>) -> Result<()> {
        let mut gatherer = self.applying.lock();
        for entry in batch {
            self.apply_entry(&mut gatherer, entry)?;
        }
        if self.store.wants_flush() {
            self.cut(&gatherer)?;
        }
        Ok(())
    }

    fn apply_entry(&self, gatherer: &mut Gatherer, entry: AppliedEntry) -> Result<()> {
        self.end_term_if_over(entry.position.term);
        gatherer.enter(entry.position.term);
        if entry.payload.is_empty() {
            self.store.apply(entry.position, &[])?;
            let mut core = self.core.lock();
            core.state.skip(entry.position);
            if let Some(membership) = entry.membership {
                core.membership = membership;
            }
            return Ok(());
        }
        let mut payload = Payload::decode(entry.payload)?;
        gatherer.take(entry.position.term, &mut payload)?;
        let mut applied_any = false;
        let mut decided = Vec::new();
        for record in &payload.records {
            match record {
                Record::Batch(txns) => self.store.apply(entry.position, txns)?,
                Record::Outcome(outcome) => {
                    let effect = self.core.lock().state.effect(outcome);
                    self.store.apply(entry.position, effect.as_slice())?;
                    decided.extend(effect);
                }
                Record::Lease(_)
                | Record::Schema(_)
                | Record::Prepared(_)
                | Record::Refused(_)
                | Record::Settled(_)
                | Record::Build(_)
                | Record::Part(_) => continue,
            }
            applied_any = true;
        }
        if !applied_any {
            self.store.apply(entry.position, &[])?;
        }
        let heard = self.hook.as_ref().map_or(Ok(()), |hook| {
            let batches = payload.records.iter().filter_map(|r| if let Record::Batch(txns) = r { Some(txns) } else { None });
            batches.flatten().chain(&decided).try_for_each(|txn| hook.applied(txn))
        });
        let mut core = self.core.lock();
        core.state.apply(entry.position, &payload);
        for record in &payload.records {
            if let Record::Build(build) = record {
                core.builds.owe(build);
                self.common.builder.notify_one();
            }
        }
        // The state and the store hold the entry now. On an error the node ends and tells nobody.
        heard?;
        self.release(&mut core, entry.position, &payload, &decided);
        if self.looks_at_invariants() {
            core.invariant_state();
            core.invariant_term();
            assert_eq!(self.store.applied(), core.state.applied(), "versions and state are of one moment");
        }
        Ok(())
    }

    /// Tells everybody who waited for this payload, and sends the next batch. `decided`: what
    /// became visible by outcomes in it.
    fn release(&self, core: &mut Core, position: LogPosition, payload: &Payload, decided: &[Committed]) {
        let Core { state, term: Some(term), .. } = core else { return };
        let mut woken = Vec::new();
        self.raise_acked(term, newest_of(payload));
        term.primary().applied(state, payload, &mut woken);
        let settled = term.engine.settled_through(state);
        self.fast.settled.store(settled.unwrap_or_default().0, Ordering::Release);
        term.wake(woken);
        for record in &payload.records {
            match record {
                Record::Batch(txns) => {
                    for txn in txns {
                        if let Outlet::Ring(host) = &mut term.outlet {
                            host.applied(txn.at);
                        }
                        if let Some(ack) = term.acks.remove(&txn.at) {
                            let _ = ack.send(());
                        }
                        self.round_applied(term, txn);
                    }
                }
                Record::Lease(_) if term.is_beside_leader() => {}
                Record::Lease(lease) => {
                    assert_eq!(lease.primary, self.node, "{}: a lease of another primary in this term", self.id);
                    term.lease_applied(state, lease.ceiling);
                }
                Record::Schema(grant) => {
                    self.fast.publish_grant(state);
                    for (_, waiting) in term.grants.extract_if(.., |(seq, _)| *seq == grant.seq) {
                        let _ = waiting.send(grant.bound);
                    }
                }
                Record::Outcome(outcome) => {
                    if let Outlet::Led(leader) = &mut term.outlet {
                        leader.release(outcome.id);
                    }
                }
                Record::Build(build) => {
                    for (_, waiting) in term.builds.extract_if(.., |(asked, _)| asked == build) {
                        let _ = waiting.send(position.index);
                    }
                }
                Record::Prepared(_) | Record::Refused(_) | Record::Settled(_) | Record::Part(_) => {}
            }
        }
        decided.iter().for_each(|txn| self.round_applied(term, txn));
        if !term.is_beside_leader() {
            self.participant_applied(core, payload);
        }
        if let Some(term) = &mut core.term {
            term.payload_applied(position.term);
        }
        self.pump(core);
    }

    // --- flushing

    async fn flush_regularly(self: Arc<Self>) {
        loop {
            tokio::time::sleep(FLUSH_INTERVAL).await;
            if self.is_retired() {
                break;
            }
            if let Some(e) = self.raft().failure() {
                self.fail(e);
                break;
            }
            if self.store.dirty_bytes() > 0
                && let Err(e) = self.cut(&self.applying.lock())
            {
                self.fail(e);
                break;
            }
        }
    }

    /// What is applied so far is to be flushed; but not between two parts of a transaction. Who
    /// waits for room on the disk or for a snapshot is content with what was cut before.
    fn cut(&self, gatherer: &Gatherer) -> Result<()> {
        if gatherer.is_amid() {
            return Ok(());
        }
        let flushed = {
            let core = self.core.lock();
            Flushed { state: core.state.encode(), membership: core.membership.clone(), owed: core.builds.unbuilt() }
        };
        let blob = envelope::encode(&flushed);
        self.store.cut(Bytes::from(blob));
        self.common.flusher.notify_one();
        Ok(())
    }

    /// Flushes what was cut, and lets the log be truncated. Called from the node's flusher.
    pub fn flush(&self) -> Result<bool> {
        if self.is_retired() {
            return Ok(false);
        }
        let flushed = self.store.flush_step()?;
        if flushed && let Some(raft) = self.raft.get() {
            raft.set_truncatable(self.store.durable());
        }
        Ok(flushed)
    }

    /// Cuts and flushes everything applied so far, as far as it can be cut.
    pub fn flush_all(&self) -> Result<()> {
        self.cut(&self.applying.lock())?;
        while self.flush()? {}
        Ok(())
    }

    /// [`Replica::flush_all`], for a task that must not wait for the disk.
    pub async fn flush_now(self: &Arc<Self>) -> Result<()> {
        let replica = self.clone();
        self.common.runtime.run_io("flush-replica", move || replica.flush_all()).await
    }

    /// Whether the store has nothing of the group.
    pub(crate) fn is_empty(&self) -> bool {
        self.store.recovered().is_none_or(|(position, _)| position == LogPosition::default())
    }

    /// Whether commits should wait: rows applied and not flushed, or frames on their way to the
    /// log's disk, use up their budget.
    pub(crate) fn over_budget(&self) -> bool {
        self.common.store.over_budget() || self.common.log.queued_bytes() > limits::LOG_QUEUE_BYTES_MAX
    }

    pub(crate) fn fail(&self, e: Error) {
        self.common.life.fail(e);
    }
}

impl Core {
    /// What holds of what the log determines.
    fn invariant_state(&self) {
        self.state.invariant_tables();
        self.state.invariant_ceiling();
    }

    /// What holds of a term.
    fn invariant_term(&self) {
        if let Some(term) = &self.term {
            term.invariant(&self.state);
        }
    }
}

/// The newest timestamp that a payload tells of, votes included.
fn newest_of(payload: &Payload) -> Timestamp {
    let of = |record: &Record| match record {
        Record::Batch(txns) => txns.iter().map(|txn| txn.at).max(),
        Record::Prepared(prepared) => Some(prepared.at),
        Record::Outcome(outcome) => outcome.at,
        Record::Lease(_) | Record::Schema(_) | Record::Refused(_) | Record::Settled(_) | Record::Build(_) | Record::Part(_) => {
            None
        }
    };
    payload.records.iter().filter_map(of).max().unwrap_or_default()
}

fn decode_flushed(blob: &[u8], rules: Rules) -> Result<(GroupState, MembershipBlob, Vec<Build>)> {
    let flushed: Flushed =
        envelope::decode(blob).map_err(|e| Error::fatal(format!("the flushed state of a replica is damaged: {e}")))?;
    Ok((GroupState::decode(&flushed.state, rules)?, flushed.membership, flushed.owed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut fixtures = meridian_fixtures::Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/flushed.txt"));
        fixtures.value::<Flushed>("flushed");
        fixtures.finish();
    }
}
