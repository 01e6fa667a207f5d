//! A group's replica on this node: the log is applied to the store and to the group's state; while
//! this replica leads, a transaction engine certifies on top of them.
//!
//! Everything that changes is behind one short lock, [`Core`], which is never held across an await.
//! Reads of a settled snapshot do not take it (see `FastPath`).
//!
//! A term of leadership goes like this:
//!
//! 1. The consensus protocol makes this replica leader. It proposes an empty payload; when that is
//!    applied, every entry of earlier terms is, so the state is complete.
//! 2. [`Engine::start`] from the state. The physical clock must pass the last ceiling first; then a
//!    lease is logged.
//! 3. Certified transactions collect in `pending` while a batch is on its way to the log. When that
//!    is applied, the next batch takes all of them: under load batches grow by themselves, without
//!    load nobody waits for a timer.
//! 4. An append that fails, or the loss of leadership, ends the term: the engine is dropped,
//!    whoever waits is told so, and asks the new primary with the same transaction id.

use crate::metrics::Metrics;
use crate::outbox::Outbox;
use crate::room::Room;
use crate::tasks::Tasks;
use crate::wire::ClosedPromise;
use bytes::Bytes;
use futures::FutureExt;
use meridian_base::record::{Committed, Lease, Payload, Prepared, Record, SchemaGrant};
use meridian_base::runtime::Runtime;
use meridian_base::{
    Clock, ColumnMask, Error, GroupId, Key, LogPosition, NodeId, Result, Target, Timestamp, TxnId, invariants, limits,
};
use meridian_commit::Participant;
use meridian_raft as raft;
use meridian_raft::{AppliedEntry, MembershipBlob, Recovered, SnapshotHeader, SnapshotSink, SnapshotSource};
use meridian_region::{Ended, Ending, Engine, GroupState, Place, PlantedBug, PlantedBugs, Queues, Ticket, Versions};
use meridian_store::{Export, GroupStore, Import, Store};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

/// Batches handed to the log and not yet applied. The log gathers what comes while it syncs; with
/// fewer batches than that has room for, what came too late for one would wait for two.
const BATCHES_IN_FLIGHT_MAX: usize = 16;
/// How often an idle primary looks at its clock: leases, waits for the clock, lock timeouts.
pub(crate) const TICK: Duration = Duration::from_millis(25);
/// Applied but not flushed changes are flushed at least this often, so that a restart replays
/// little.
const FLUSH_INTERVAL: Duration = Duration::from_secs(20);

/// Told of what the catalog's group applies.
pub trait ApplyHook: Send + Sync + 'static {
    /// A transaction was applied.
    fn applied(&self, txn: &Committed);
    /// The whole content was replaced.
    fn replaced(&self, store: &GroupStore);
}

/// What a replica flushes with its versions.
#[derive(Serialize, Deserialize)]
struct Flushed {
    state: Vec<u8>,
    membership: MembershipBlob,
}

/// See the module's essay.
pub struct Replica {
    pub id: GroupId,
    pub node: NodeId,
    pub store: Arc<GroupStore>,
    /// The node's: its budget is all groups'.
    node_store: Store,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// The group's clock: the node's, or its own for groups that commit at future-time timestamps:
    /// the catalog, and those of GLOBAL tables.
    pub(crate) clock: Arc<Clock>,
    pub(crate) core: Mutex<Core>,
    pub(crate) fast: FastPath,
    raft: OnceLock<raft::Group>,
    /// The node's: its queue is all groups'.
    log: OnceLock<raft::NodeLog>,
    hook: Option<Arc<dyn ApplyHook>>,
    /// Held while entries are applied, so that a cut falls between two of them.
    applying: Mutex<()>,
    flusher: Arc<Notify>,
    pub(crate) outbox: Arc<Outbox>,
    /// The commit protocol's next timer has moved.
    pub(crate) ticker: Notify,
    pub(crate) metrics: Arc<Metrics>,
    /// The node's.
    room: Arc<Room>,
    /// The bytes of the last snapshot that did not fit on the disk. The next one begins when there
    /// is that much room.
    snapshot_bytes: AtomicU64,
    failure: watch::Sender<Option<Error>>,
    serving: watch::Sender<bool>,
    pub(crate) bugs: PlantedBugs,
    ballot_bugs: meridian_commit::PlantedBugs,
    /// It runs with the timeouts of voters in several regions.
    pub(crate) is_across_regions: bool,
    /// It holds GLOBAL tables.
    pub(crate) is_global: bool,
    /// How far such a group's clock is ahead of the node's, in microseconds; 0 for others.
    pub(crate) lead_micros: AtomicU64,
    pub(crate) made: Instant,
    /// It is not on this node any more, or another one has taken its place.
    retired: AtomicBool,
    /// It leads, and its clock is so far behind what was promised that it will not serve for long
    /// (see [`crate::clocks`]).
    leads_behind: AtomicBool,
    /// Prepared transactions whose outcome depends on a group that is lost, and which.
    pub(crate) in_doubt: Mutex<BTreeMap<TxnId, GroupId>>,
}

/// What changes under the lock.
pub(crate) struct Core {
    pub state: GroupState,
    pub engine: Option<Engine>,
    /// This group's part in transactions over several, for the engine's term.
    pub participant: Option<Participant>,
    /// What reserving reads want to be told with this group's vote.
    pub reading: BTreeMap<TxnId, Vec<Target>>,
    pub term: u64,
    /// The last one heard from a primary.
    pub promise: ClosedPromise,
    pub queues: Queues,
    pub membership: MembershipBlob,
    /// Certified, not yet handed to the log, in the order of their timestamps.
    pub pending: Vec<Pending>,
    /// Other records to log.
    pub records: Vec<Record>,
    batches_in_flight: usize,
    /// What became of the last payloads handed to the log, in order; those applied are dropped from
    /// the front.
    proposals: VecDeque<raft::ProposeTicket>,
    /// This term's lease was given up: leadership is being handed over.
    gave_up: bool,
    /// The last engine's term, and what it used ([`Engine::used`]): it may begin again.
    last_used: Option<(u64, Timestamp)>,
    /// Whom to tell that a transaction is applied.
    pub acks: BTreeMap<Timestamp, oneshot::Sender<()>>,
    pub wakers: BTreeMap<Ticket, oneshot::Sender<()>>,
    pub places: BTreeMap<Place, oneshot::Sender<Ending>>,
    /// Whom to tell that a schema grant is applied, by its number.
    pub grants: Vec<(u64, oneshot::Sender<Timestamp>)>,
}

/// What certification has passed.
pub(crate) enum Pending {
    /// A transaction of this group alone.
    Committed(Committed),
    /// A slice of one over several groups.
    Prepared(Box<Prepared>),
}

impl Pending {
    fn at(&self) -> Timestamp {
        match self {
            Pending::Committed(txn) => txn.at,
            Pending::Prepared(prepared) => prepared.at,
        }
    }
}

/// What a read-only transaction checks without the lock.
#[derive(Default)]
pub(crate) struct FastPath {
    /// [`Engine::settled_through`], or 0.
    pub settled: AtomicU64,
    /// An engine is here, its lease record is applied and it has not given it up.
    pub serving: AtomicBool,
    pub ceiling: AtomicU64,
    pub grant_version: AtomicU64,
    pub grant_bound: AtomicU64,
}

impl Replica {
    /// A replica over what the store holds. [`Replica::start`] joins it to its group.
    pub(crate) fn new(
        id: GroupId,
        node: NodeId,
        node_store: &Store,
        runtime: Arc<dyn Runtime>,
        clock: Arc<Clock>,
        hook: Option<Arc<dyn ApplyHook>>,
        flusher: Arc<Notify>,
        outbox: Arc<Outbox>,
        failure: watch::Sender<Option<Error>>,
        metrics: Arc<Metrics>,
        room: Arc<Room>,
        bugs: PlantedBugs,
        ballot_bugs: meridian_commit::PlantedBugs,
        is_across_regions: bool,
        is_global: bool,
    ) -> Result<Arc<Replica>> {
        let store = node_store.group(id)?;
        let (state, membership) = match store.recovered() {
            Some((_, blob)) => decode_flushed(&blob, bugs)?,
            None => (GroupState::new(bugs), MembershipBlob::default()),
        };
        if let Some(hook) = &hook {
            hook.replaced(&store);
        }
        Ok(Arc::new(Replica {
            id,
            node,
            store,
            node_store: node_store.clone(),
            runtime,
            clock,
            core: Mutex::new(Core {
                state,
                engine: None,
                participant: None,
                reading: BTreeMap::new(),
                term: 0,
                promise: ClosedPromise { group: id, closed: Timestamp::MIN, index: 0 },
                queues: Queues::default(),
                membership,
                pending: Vec::new(),
                records: Vec::new(),
                batches_in_flight: 0,
                proposals: VecDeque::new(),
                gave_up: false,
                last_used: None,
                acks: BTreeMap::new(),
                wakers: BTreeMap::new(),
                places: BTreeMap::new(),
                grants: Vec::new(),
            }),
            fast: FastPath::default(),
            raft: OnceLock::new(),
            log: OnceLock::new(),
            hook,
            applying: Mutex::new(()),
            flusher,
            outbox,
            ticker: Notify::new(),
            metrics,
            room,
            snapshot_bytes: AtomicU64::new(0),
            failure,
            serving: watch::Sender::new(false),
            bugs,
            ballot_bugs,
            is_across_regions,
            is_global,
            lead_micros: AtomicU64::new(0),
            made: Instant::now(),
            retired: AtomicBool::new(false),
            leads_behind: AtomicBool::new(false),
            in_doubt: Mutex::default(),
        }))
    }

    /// Joins the group: from here on the replica follows, votes, and leads when it is elected.
    pub(crate) async fn start(
        self: &Arc<Self>,
        options: raft::GroupOptions,
        log: raft::NodeLog,
        transport: Arc<dyn raft::Transport>,
        clock_compared: watch::Receiver<bool>,
        tasks: &Tasks,
    ) -> Result<()> {
        let machine: Arc<dyn raft::StateMachine> = Arc::new(Machine(Arc::downgrade(self)));
        let _ = self.log.set(log.clone());
        let starting = raft::Group::start(options, log, machine, transport, self.runtime.clone());
        let group = tasks.on_protocol(starting).await??;
        let _ = self.raft.set(group);
        tasks.spawn_protocol(self.clone().follow_leadership(clock_compared));
        tasks.spawn(self.clone().flush_regularly());
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
        self.fast.serving.load(Ordering::Acquire)
    }

    /// Follows [`Replica::is_serving`].
    pub fn watch_serving(&self) -> watch::Receiver<bool> {
        self.serving.subscribe()
    }

    /// The term in which this replica serves, if it does.
    pub fn serving_term(&self) -> Option<u64> {
        self.is_serving().then(|| self.core.lock().term)
    }

    /// Whether this replica leads, and its clock is so far behind what was promised that it says so
    /// instead of serving.
    pub(crate) fn leads_behind_promise(&self) -> bool {
        self.leads_behind.load(Ordering::Acquire)
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
        self.runtime.physical_micros() + self.lead_micros.load(Ordering::Relaxed)
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
            self.end_term_unless(role.is_leader.then_some(role.term));
            if role.is_leader && self.core.lock().term != role.term {
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
        if ticket.await.is_err() || self.raft().role() != (raft::Role { term, leader: Some(self.node), is_leader: true }) {
            return;
        }
        let wait = {
            let mut core = self.core.lock();
            let engine = Engine::start(self.node, self.id, &core.state, self.bugs);
            let engine = match core.last_used {
                Some((last, used)) if last == term => engine.resumed(used, &core.state),
                _ => engine,
            };
            let wait = engine.start_wait(self.physical());
            let now = Timestamp::from_micros(self.physical());
            let participant = Participant::start(self.id, &core.state, now, self.ballot_bugs);
            core.engine = Some(engine);
            core.participant = Some(participant);
            core.term = term;
            core.queues = Queues::default();
            core.batches_in_flight = 0;
            core.gave_up = false;
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
        let Some(engine) = &mut core.engine else { return };
        self.leads_behind.store(engine.start_wait(physical) > limits::BEHIND_MAX, Ordering::Release);
        let mut woken = Vec::new();
        engine.tick(&self.clock, physical, &mut woken);
        if let Some(lease) = engine.renew_lease(&core.state, &self.clock, physical) {
            core.records.push(Record::Lease(lease));
        }
        let mut ended = Vec::new();
        core.queues.expire(Timestamp::from_micros(physical), &mut ended);
        core.wake(woken);
        core.end_waits(ended);
        self.tick_participant(core);
        self.pump(core);
        if self.looks_at_invariants() {
            core.invariant_term();
        }
    }

    /// Not with a planted bug: the checkers are to see that, not the assertions.
    fn looks_at_invariants(&self) -> bool {
        let has_no_bug = self.bugs == PlantedBugs::NONE && self.ballot_bugs == meridian_commit::PlantedBugs::NONE;
        has_no_bug && invariants::are_looked_at()
    }

    /// Gives the lease up and waits until that is in the log, so that the successor starts at once.
    pub async fn give_up(&self) {
        let done = {
            let mut core = self.core.lock();
            let core = &mut *core;
            let Some(engine) = &mut core.engine else { return };
            core.gave_up = true;
            self.set_serving(false);
            let lease = engine.give_up_lease(&self.clock, self.physical());
            // Certified transactions go into the log before the lease ends there.
            core.batches_in_flight = 0;
            self.pump(core);
            let payload = self.payload(core, vec![Record::Lease(lease)]);
            self.raft().propose(payload.encode())
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

    fn set_serving(&self, serving: bool) {
        if self.fast.serving.swap(serving, Ordering::AcqRel) != serving {
            self.serving.send_replace(serving);
        }
    }

    /// Ends the term of any engine but one of `current`.
    fn end_term_unless(&self, current: Option<u64>) {
        let mut core = self.core.lock();
        if core.engine.is_some() && current != Some(core.term) {
            self.end_term(&mut core);
        }
        if current.is_none() {
            core.term = 0;
        }
    }

    /// Before an entry of some term is applied: one of a later term says that the engine's is over,
    /// and one of the same term may follow an append that was dropped, both perhaps before the news
    /// of it have come. What the engine has in flight then is not what is applied.
    fn end_term_if_over(&self, term: u64) {
        let mut core = self.core.lock();
        if core.engine.is_some() && core.term < term {
            self.end_term(&mut core);
        }
        self.end_term_if_dropped(&mut core);
    }

    fn end_term(&self, core: &mut Core) {
        self.set_serving(false);
        self.leads_behind.store(false, Ordering::Release);
        self.fast.settled.store(0, Ordering::Release);
        core.participant = None;
        core.reading.clear();
        if let Some(mut engine) = core.engine.take() {
            let _ = engine.lost();
            core.last_used = Some((core.term, engine.used()));
        }
        // If this replica still leads, a new engine starts from the log as after an election.
        core.term = 0;
        core.pending.clear();
        core.records.clear();
        core.batches_in_flight = 0;
        core.proposals.clear();
        // Dropping the senders tells whoever waits.
        core.acks.clear();
        core.wakers.clear();
        core.places.clear();
        core.grants.clear();
        core.queues = Queues::default();
    }

    // --- the log

    /// Hands what is pending to the log, unless enough batches are on their way already.
    pub(crate) fn pump(&self, core: &mut Core) {
        if core.batches_in_flight >= BATCHES_IN_FLIGHT_MAX || (core.pending.is_empty() && core.records.is_empty()) {
            return;
        }
        let mut records = std::mem::take(&mut core.records);
        let pending = std::mem::take(&mut core.pending);
        if let (Some(last), Some(engine)) = (pending.last(), &mut core.engine) {
            engine.appended(last.at());
        }
        let mut batch = Vec::new();
        for p in pending {
            match p {
                Pending::Committed(txn) => batch.push(txn),
                Pending::Prepared(prepared) => {
                    if !batch.is_empty() {
                        records.push(Record::Batch(std::mem::take(&mut batch)));
                    }
                    records.push(Record::Prepared(prepared));
                }
            }
        }
        if !batch.is_empty() {
            records.push(Record::Batch(batch));
        }
        let payload = self.payload(core, records);
        match self.raft().propose(payload.encode()) {
            Ok(ticket) => {
                core.batches_in_flight += 1;
                core.proposals.push_back(ticket);
                self.end_term_if_dropped(core);
            }
            Err(e) => {
                tracing::debug!("{}: append refused: {e}", self.id);
                self.end_term(core);
            }
        }
    }

    /// A payload that was taken and then dropped (the log's protocol may lose its leadership for a
    /// moment and get it back in the same term) ends the term: what it carried, a lease or
    /// certified transactions, would be waited for in vain, and later payloads must not overtake
    /// it.
    fn end_term_if_dropped(&self, core: &mut Core) {
        let mut dropped = None;
        // Those before it may be without an answer still: they are told when they have been
        // applied.
        core.proposals.retain_mut(|ticket| match ticket.now_or_never() {
            None => true,
            Some(Ok(_)) => false,
            Some(Err(e)) => {
                dropped = Some(e);
                false
            }
        });
        if let Some(e) = dropped {
            tracing::info!("{}: an append was dropped: {e}", self.id);
            self.end_term(core);
        }
    }

    fn payload(&self, core: &mut Core, mut records: Vec<Record>) -> Payload {
        let physical = self.physical();
        let (mut closed, mut watermark) = (core.state.closed(), core.state.watermark());
        if let Some(engine) = &mut core.engine {
            if let Some(lease) = engine.renew_lease(&core.state, &self.clock, physical) {
                records.push(Record::Lease(lease));
            }
            closed = engine.closed_target(&core.state, &self.clock, physical);
            watermark = engine.watermark(&core.state, &self.clock, physical);
        }
        Payload { closed, watermark, records }
    }

    fn apply_entries(&self, batch: Vec<AppliedEntry>) -> Result<()> {
        let _applying = self.applying.lock();
        for entry in batch {
            self.apply_entry(entry)?;
        }
        if self.store.wants_flush() {
            self.cut()?;
        }
        Ok(())
    }

    fn apply_entry(&self, entry: AppliedEntry) -> Result<()> {
        self.end_term_if_over(entry.position.term);
        if entry.payload.is_empty() {
            self.store.apply(entry.position, &[])?;
            let mut core = self.core.lock();
            core.state.skip(entry.position);
            if let Some(membership) = entry.membership {
                core.membership = membership;
            }
            return Ok(());
        }
        let payload = Payload::decode(entry.payload)?;
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
                _ => continue,
            }
            applied_any = true;
        }
        if !applied_any {
            self.store.apply(entry.position, &[])?;
        }
        if let Some(hook) = &self.hook {
            for record in &payload.records {
                if let Record::Batch(txns) = record {
                    txns.iter().for_each(|t| hook.applied(t));
                }
            }
            decided.iter().for_each(|t| hook.applied(t));
        }
        let mut core = self.core.lock();
        core.state.apply(entry.position, &payload);
        self.release(&mut core, entry.position, &payload);
        if self.looks_at_invariants() {
            core.invariant_state();
            core.invariant_term();
            assert_eq!(self.store.applied(), core.state.applied(), "versions and state are of one moment");
        }
        Ok(())
    }

    /// Tells everybody who waited for this payload, and sends the next batch.
    fn release(&self, core: &mut Core, position: LogPosition, payload: &Payload) {
        let Some(engine) = &mut core.engine else { return };
        let mut woken = Vec::new();
        engine.applied(&core.state, payload, &mut woken);
        let settled = engine.settled_through(&core.state);
        self.fast.settled.store(settled.unwrap_or_default().0, Ordering::Release);
        core.wake(woken);
        for record in &payload.records {
            match record {
                Record::Batch(txns) => {
                    for txn in txns {
                        if let Some(ack) = core.acks.remove(&txn.at) {
                            let _ = ack.send(());
                        }
                    }
                }
                Record::Lease(lease) => self.lease_applied(core, lease),
                Record::Schema(grant) => self.grant_applied(core, grant),
                Record::Prepared(_) | Record::Refused(_) | Record::Outcome(_) | Record::Settled(_) => {}
            }
        }
        self.participant_applied(core, payload);
        if position.term == core.term {
            core.batches_in_flight = core.batches_in_flight.saturating_sub(1);
        }
        self.pump(core);
    }

    fn lease_applied(&self, core: &mut Core, lease: &Lease) {
        assert_eq!(lease.primary, self.node, "{}: a lease of another primary in this term", self.id);
        if !core.gave_up {
            self.fast.ceiling.store(lease.ceiling.0, Ordering::Release);
            self.publish(core);
            self.set_serving(true);
        }
    }

    fn grant_applied(&self, core: &mut Core, grant: &SchemaGrant) {
        self.publish(core);
        for (_, waiting) in core.grants.extract_if(.., |(seq, _)| *seq == grant.seq) {
            let _ = waiting.send(grant.bound);
        }
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
            if self.store.dirty_bytes() > 0 {
                let _applying = self.applying.lock();
                if let Err(e) = self.cut() {
                    self.fail(e);
                    break;
                }
            }
        }
    }

    fn cut(&self) -> Result<()> {
        let flushed = {
            let core = self.core.lock();
            Flushed { state: core.state.encode(), membership: core.membership.clone() }
        };
        let blob = postcard::to_stdvec(&flushed).map_err(|e| Error::internal(format!("replica state: {e}")))?;
        self.store.cut(Bytes::from(blob));
        self.flusher.notify_one();
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

    /// Cuts and flushes everything applied so far.
    pub fn flush_all(&self) -> Result<()> {
        {
            let _applying = self.applying.lock();
            self.cut()?;
        }
        while self.flush()? {}
        Ok(())
    }

    /// Whether the store has nothing of the group.
    pub(crate) fn is_empty(&self) -> bool {
        self.store.recovered().is_none_or(|(position, _)| position == LogPosition::default())
    }

    pub(crate) fn fail(&self, e: Error) {
        self.failure.send_if_modified(|f| f.is_none().then(|| *f = Some(e)).is_some());
    }
}

impl Core {
    /// What holds of what the log determines.
    fn invariant_state(&self) {
        self.state.invariant_tables();
        self.state.invariant_ceiling();
    }

    /// What holds of a term, and between the terms.
    fn invariant_term(&self) {
        let Some(engine) = &self.engine else {
            assert!(self.participant.is_none() && self.reading.is_empty(), "a participant belongs to a term");
            assert!(self.pending.is_empty() && self.records.is_empty(), "something is to be logged outside of a term");
            assert!(self.acks.is_empty() && self.grants.is_empty(), "who waited for a term's end was told");
            return;
        };
        assert!(self.participant.is_some() && self.term > 0, "a term has an engine and a participant");
        engine.invariant_engine(&self.state);
        self.queues.invariant_lines();
        let in_flight: BTreeSet<Timestamp> = engine.in_flight().map(|(_, at)| at).collect();
        assert!(self.acks.keys().all(|at| in_flight.contains(at)), "a session waits for what is not in flight");
        assert!(self.pending.is_sorted_by_key(Pending::at), "the log gets timestamps in their order");
    }

    /// Everything certified is applied, and nothing else is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        self.batches_in_flight == 0 && self.pending.is_empty() && self.records.is_empty()
    }
    pub(crate) fn wake(&mut self, woken: Vec<Ticket>) {
        for ticket in woken {
            if let Some(waker) = self.wakers.remove(&ticket) {
                let _ = waker.send(());
            }
        }
    }
    pub(crate) fn end_waits(&mut self, ended: Vec<Ended>) {
        for e in ended {
            if let Some(waiting) = self.places.remove(&e.place) {
                let _ = waiting.send(e.how);
            }
        }
    }
}

fn decode_flushed(blob: &[u8], bugs: PlantedBugs) -> Result<(GroupState, MembershipBlob)> {
    let flushed: Flushed =
        postcard::from_bytes(blob).map_err(|e| Error::fatal(format!("the flushed state of a replica is damaged: {e}")))?;
    Ok((GroupState::decode(&flushed.state, bugs)?, flushed.membership))
}

/// What the engine may ask of the store. A store that fails answers so that nothing passes, and the
/// failure is kept.
pub(crate) struct StoreVersions<'a> {
    store: &'a GroupStore,
    bugs: PlantedBugs,
    pub failure: RefCell<Option<Error>>,
}

impl<'a> StoreVersions<'a> {
    pub fn new(store: &'a GroupStore, bugs: PlantedBugs) -> StoreVersions<'a> {
        StoreVersions { store, bugs, failure: RefCell::new(None) }
    }
}

impl Versions for StoreVersions<'_> {
    fn newest(&self, key: &Key) -> Option<Timestamp> {
        self.store
            .newest(key.as_bytes())
            .unwrap_or_else(|e| {
                *self.failure.borrow_mut() = Some(e);
                None
            })
            .map(|v| v.at)
    }
    fn changed_after(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> Option<(Key, Timestamp)> {
        let after = match self.bugs.has(PlantedBug::CertifyBelowGc) {
            // Against what is left (counterexample 11).
            true => after.max(self.store.gc_threshold()),
            false => after,
        };
        match self.store.changed_after(target, columns, after) {
            Ok(found) => found,
            Err(e) => {
                // Below the garbage-collection threshold the engine has said no already; anything
                // else is a broken store.
                *self.failure.borrow_mut() = Some(e);
                Some((target.start().clone(), Timestamp::MAX))
            }
        }
    }
    fn gc_threshold(&self) -> Timestamp {
        self.store.gc_threshold()
    }
}

/// The replica as the log sees it. The replica has the log's side of the group, so this one must
/// not hold the replica.
struct Machine(Weak<Replica>);

impl Machine {
    fn replica(&self) -> Result<Arc<Replica>> {
        self.0.upgrade().ok_or_else(|| Error::unavailable("the replica is not on this node any more"))
    }
}

impl raft::StateMachine for Machine {
    fn recovered(&self) -> Option<Recovered> {
        let replica = self.replica().ok()?;
        let (position, _) = replica.store.recovered()?;
        if position == LogPosition::default() {
            // Flushed before the first entry came: there is nothing, and no membership.
            return None;
        }
        let membership = replica.core.lock().membership.clone();
        Some(Recovered { position, membership })
    }
    fn apply(&self, batch: Vec<AppliedEntry>) -> Result<()> {
        let replica = self.replica()?;
        replica.apply_entries(batch).inspect_err(|e| replica.fail(e.clone()))
    }
    fn export(&self) -> Result<Box<dyn SnapshotSource>> {
        let replica = self.replica()?;
        replica.flush_all()?;
        let export = replica.store.export()?;
        let flushed: Flushed = postcard::from_bytes(export.state()).map_err(|e| Error::fatal(format!("flushed state: {e}")))?;
        let header = SnapshotHeader { position: export.position(), membership: flushed.membership };
        Ok(Box::new(Source { header, export }))
    }
    fn import(&self, _header: SnapshotHeader) -> Result<Box<dyn SnapshotSink>> {
        let replica = self.replica()?;
        replica.check_room_for_snapshot(replica.snapshot_bytes.load(Ordering::Relaxed))?;
        let import = replica.store.import()?;
        Ok(Box::new(Sink { replica, import, bytes: 0 }))
    }
}

struct Source {
    header: SnapshotHeader,
    export: Export,
}
impl SnapshotSource for Source {
    fn header(&self) -> SnapshotHeader {
        self.header.clone()
    }
    fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        self.export.next().transpose()
    }
}

struct Sink {
    replica: Arc<Replica>,
    import: Import,
    /// Taken so far.
    bytes: u64,
}
impl SnapshotSink for Sink {
    fn write(&mut self, chunk: Bytes) -> Result<()> {
        self.bytes += chunk.len() as u64;
        self.replica
            .check_room_for_snapshot(chunk.len() as u64)
            .inspect_err(|_| self.replica.snapshot_bytes.store(self.bytes, Ordering::Relaxed))?;
        self.import.chunk(&chunk)
    }
    fn finish(self: Box<Self>) -> Result<()> {
        let _applying = self.replica.applying.lock();
        let (_, blob) = self.import.finish()?;
        {
            let mut core = self.replica.core.lock();
            if core.engine.is_some() {
                // It comes from a later term's leader, perhaps before the news of that. The
                // engine's state is not this one.
                self.replica.end_term(&mut core);
            }
            (core.state, core.membership) = decode_flushed(&blob, self.replica.bugs)?;
        }
        if let Some(hook) = &self.replica.hook {
            hook.replaced(&self.replica.store);
        }
        Ok(())
    }
}

impl Replica {
    /// Returns an error if the disk has no room for the next `bytes` of a snapshot. The part that
    /// has arrived is then dropped, and the leader sends the snapshot again later.
    fn check_room_for_snapshot(&self, bytes: u64) -> Result<()> {
        if self.room.admits(&*self.runtime, bytes) {
            return Ok(());
        }
        tracing::warn!("the disk has no room for a snapshot of group {}: it is waited for", self.id);
        Err(Error::unavailable(format!("the disk of node {} has no room for a snapshot of group {}", self.node, self.id)))
    }

    /// Publishes what the lock-free read path checks. Called by whoever holds the lock and saw the
    /// engine pass a check.
    pub(crate) fn publish(&self, core: &Core) {
        let grant = core.state.grant();
        self.fast.grant_version.store(grant.version.0, Ordering::Release);
        self.fast.grant_bound.store(grant.bound.0, Ordering::Release);
    }

    /// Whether commits should wait: rows applied and not flushed, or frames on their way to the
    /// log's disk, use up their budget.
    pub(crate) fn over_budget(&self) -> bool {
        let queued = self.log.get().map_or(0, |log| log.queued_bytes());
        self.node_store.over_budget() || queued > limits::LOG_QUEUE_BYTES_MAX
    }
}
