//! The catalog's primary: schema steps, schema leases, and new members.
//!
//! All writes to the catalog's group go through one task on its primary, the coordinator. It drives
//! `region::SchemaLeases`, the pure state machine of the schema lease: that says what to log, what to send and when a step may
//! commit; this file logs, sends and commits. A coordinator that dies leaves its log; its successor starts from there.

use crate::ask::Ask;
use crate::catalog::{
    Meta, change_rows, lease_group, lease_key, lease_range, meta_key, newest_readable, node_key, read_row, row, scan_all,
};
use crate::freshness::CONFIRMED_FOR;
use crate::members::{place_group, placement_nodes};
use crate::primary::{conflict_error, not_primary};
use crate::replica::Replica;
use crate::shared::Shared;
use crate::turns::Turns;
use crate::txn::{Counted, vote_on};
use crate::wire::{Changed, NodeRecord, Request, Response, Slice, Standing, StepWait};
use meridian_base::record::SchemaGrant;
use meridian_base::runtime::Runtime;
use meridian_base::{
    ColumnMask, CommitOutcome, CommitRequest, DescriptorId, Error, GroupId, Ledger, NodeId, Prepare, ReadEntry, Result,
    SchemaUse, SchemaVersion, Target, Timestamp, TxnId, Write, limits,
};
use meridian_commit::Verdict;
use meridian_region::{Action, Delays, Granted, PlantedBug, SchemaLeases};
use meridian_sql::catalog::{CatalogChange, Descriptor};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

const TICK: Duration = Duration::from_millis(100);
/// A node that does not answer for as long is about to be taken for dead.
const SPREAD_TIMEOUT: Duration = Duration::from_secs(5);
/// For clocks that run at different speeds.
const SPREAD_MARGIN: Duration = Duration::from_millis(100);
/// How long a gateway that was refused needs to come again, once it knows what came first.
const TURN_MARGIN: Duration = Duration::from_millis(100);
/// The catalog has no quorum if it takes longer: steps need not reckon with it.
const COMMIT_TAKES_MAX: Duration = Duration::from_secs(1);
const FOUNDING_POLL: Duration = Duration::from_millis(5);
const SEND_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a grant looks for the group's primary. It is sent again by the state machine's own timer in any case.
const SEND_PATIENCE: Duration = Duration::from_millis(100);
const DECISION_POLL: Duration = Duration::from_millis(1);

/// Where calls for the coordinator wait, while there is one here; and what it waits for itself.
#[derive(Default)]
pub(crate) struct Inbox {
    calls: Mutex<Option<mpsc::UnboundedSender<Job>>>,
    waits: Mutex<Option<StepWait>>,
}

pub(crate) enum Job {
    Change {
        /// The gateway that asks.
        from: NodeId,
        base: SchemaVersion,
        change: CatalogChange,
        /// A transaction that commits with it.
        with: Vec<Slice>,
        reply: oneshot::Sender<Result<Changed>>,
    },
    /// A new node (id 0), or a node with a new address.
    Register {
        record: NodeRecord,
        reply: oneshot::Sender<Result<NodeId>>,
    },
    /// What the operator wants of a node.
    Stand {
        node: NodeId,
        standing: Standing,
        reply: oneshot::Sender<Result<()>>,
    },
    Answered {
        group: GroupId,
        seq: u64,
        bound: Timestamp,
    },
}

impl Inbox {
    /// Asks for a step. Of a transaction that was to commit with it nobody may say that it has not, once a coordinator had it and is gone.
    pub(crate) async fn change(
        &self,
        from: NodeId,
        base: SchemaVersion,
        change: CatalogChange,
        with: Vec<Slice>,
    ) -> Result<Changed> {
        let has_txn = !with.is_empty();
        let (tx, rx) = oneshot::channel();
        self.send(Job::Change { from, base, change, with, reply: tx })?;
        let lost = |_| if has_txn { Ok(Changed::Unknown) } else { Err(not_primary(GroupId::CATALOG)) };
        rx.await.unwrap_or_else(lost)
    }

    pub(crate) async fn ask<T>(&self, job: impl FnOnce(oneshot::Sender<Result<T>>) -> Job) -> Result<T> {
        let (tx, rx) = oneshot::channel();
        self.send(job(tx))?;
        rx.await.unwrap_or_else(|_| Err(not_primary(GroupId::CATALOG)))
    }

    /// Whose schema leases the step under way waits out.
    pub(crate) fn waits(&self) -> Option<StepWait> {
        self.waits.lock().clone()
    }

    fn send(&self, job: Job) -> Result<()> {
        match &*self.calls.lock() {
            Some(inbox) if inbox.send(job).is_ok() => Ok(()),
            _ => Err(not_primary(GroupId::CATALOG)),
        }
    }
}

/// Runs a coordinator whenever this node serves the catalog's group.
pub(crate) async fn coordinate<R: Runtime>(shared: Arc<Shared<R>>, replica: Arc<Replica<R>>) {
    let mut serving = replica.watch_serving();
    loop {
        // A cluster that is being founded has a catalog with its first rows, which the founder writes.
        while *serving.borrow_and_update() && shared.catalog.newest().version == SchemaVersion(0) {
            tokio::time::sleep(FOUNDING_POLL).await;
        }
        // A step that a transaction commits with may have been voted for by the last coordinator. Its votes decide.
        while *serving.borrow_and_update() && replica.has_prepared() {
            tokio::time::sleep(FOUNDING_POLL).await;
        }
        if *serving.borrow_and_update() {
            let (tx, rx) = mpsc::unbounded_channel();
            *shared.ddl.calls.lock() = Some(tx.clone());
            let term = Coordinator::start(shared.clone(), replica.clone(), tx);
            match term {
                Ok(coordinator) => {
                    if let Err(e) = coordinator.run(rx, &mut serving).await {
                        tracing::warn!("the catalog's coordinator starts again: {e}");
                        tokio::time::sleep(TICK).await;
                        serving.mark_changed();
                    }
                }
                Err(e) => tracing::error!("the catalog cannot be read: {e}"),
            }
            *shared.ddl.calls.lock() = None;
            *shared.ddl.waits.lock() = None;
        }
        if serving.changed().await.is_err() {
            return;
        }
    }
}

struct Coordinator<R: Runtime> {
    shared: Arc<Shared<R>>,
    replica: Arc<Replica<R>>,
    inbox: mpsc::UnboundedSender<Job>,
    leases: SchemaLeases,
    meta: Meta,
    step: Option<Step>,
    /// The step has committed, and these gateways are being told.
    told: Option<oneshot::Receiver<BTreeSet<NodeId>>>,
    queued: VecDeque<Step>,
    turns: Turns,
    /// How long a write to the catalog is expected to take: as long as the slowest of the latest ones.
    commit_takes: Duration,
}

struct Step {
    from: NodeId,
    base: SchemaVersion,
    change: CatalogChange,
    with: Vec<Slice>,
    reply: oneshot::Sender<Result<Changed>>,
}

impl<R: Runtime> Coordinator<R> {
    fn start(shared: Arc<Shared<R>>, replica: Arc<Replica<R>>, inbox: mpsc::UnboundedSender<Job>) -> Result<Coordinator<R>> {
        let at = newest_readable(&replica.store);
        let meta = match replica.store.newest(meta_key().as_bytes())? {
            Some(v) => read_row(v.value.as_deref().unwrap_or_default())?,
            None => Meta::default(),
        };
        let mut rows = BTreeMap::new();
        for (key, bytes) in scan_all(&replica.store, &lease_range(), at)? {
            let group = lease_group(&key).ok_or_else(|| Error::fatal("a lease row of the catalog is malformed"))?;
            rows.insert(group, read_row::<Granted>(&bytes)?);
        }
        let catalog = shared.catalog.newest();
        let current = SchemaGrant {
            version: catalog.seen,
            committed_at: catalog.seen_at,
            changed: catalog.changed_in.iter().map(|(d, v)| (*d, *v)).collect(),
            complete_from: catalog.seen,
            ..SchemaGrant::default()
        };
        let commit_takes = round_trip(&shared);
        let leases = SchemaLeases::new(current, rows, delays(&shared, commit_takes)).with_bugs(shared.bugs);
        let (step, told, queued, turns) = (None, None, VecDeque::new(), Turns::default());
        let mut coordinator = Coordinator { shared, replica, inbox, leases, meta, step, told, queued, turns, commit_takes };
        coordinator.know_groups();
        Ok(coordinator)
    }

    fn know_groups(&mut self) {
        for group in self.shared.catalog.groups() {
            self.leases.add_group(group.id);
        }
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.now(self.shared.runtime.physical_micros())
    }

    async fn run(
        mut self,
        mut jobs: mpsc::UnboundedReceiver<Job>,
        serving: &mut tokio::sync::watch::Receiver<bool>,
    ) -> Result<()> {
        while *serving.borrow() {
            let mut actions = Vec::new();
            match tokio::time::timeout(TICK, jobs.recv()).await {
                Ok(Some(job)) => self.take(job, &mut actions).await?,
                Ok(None) => break,
                Err(_) => {}
            }
            self.leases.tick(self.now(), &mut actions);
            self.next_step(&mut actions).await?;
            self.perform(actions).await?;
            *self.shared.ddl.waits.lock() = self.waits();
        }
        Ok(())
    }

    fn waits(&self) -> Option<StepWait> {
        let now = self.now();
        let (groups, until) = self.leases.waits_out(now)?;
        Some(StepWait { groups, left: until.since(now) })
    }

    async fn take(&mut self, job: Job, actions: &mut Vec<Action>) -> Result<()> {
        match job {
            Job::Change { from, base, change, with, reply } => {
                self.queued.push_back(Step { from, base, change, with, reply });
            }
            Job::Register { record, reply } => {
                let registered = self.register(record).await;
                let _ = reply.send(registered);
            }
            Job::Stand { node, standing, reply } => {
                let done = self.stand(node, standing).await;
                let _ = reply.send(done);
            }
            Job::Answered { group, seq, bound } => {
                let now = self.now();
                self.leases.answered(group, seq, bound, now, actions);
            }
        }
        Ok(())
    }

    async fn next_step(&mut self, actions: &mut Vec<Action>) -> Result<()> {
        // Who has to derive a step again may begin while the one that came first is being spread.
        let (stale, queued): (Vec<Step>, Vec<Step>) = self.queued.drain(..).partition(|step| step.base < self.meta.version);
        self.queued = queued.into();
        stale.into_iter().for_each(|step| self.refuse(step));
        while self.step.is_none() {
            let patience = round_trip(&self.shared) + TURN_MARGIN;
            let next = self.turns.next(self.queued.iter().map(|step| step.from), Instant::now(), patience);
            let Some(mut step) = next.and_then(|at| self.queued.remove(at)) else { return Ok(()) };
            if step.base != self.meta.version {
                self.refuse(step);
                continue;
            }
            self.turns.taken(step.from);
            if step.with.is_empty() && !step.change.is_seen() {
                self.write_unseen(step).await?;
                continue;
            }
            if let Err(e) = self.choose_voters(&mut step.change) {
                let _ = step.reply.send(Err(e));
                continue;
            }
            let mut changed: Vec<DescriptorId> = step.change.put.iter().map(Descriptor::id).collect();
            changed.extend(&step.change.delete);
            self.leases.set_delays(delays(&self.shared, self.commit_takes));
            let now = self.now();
            if !self.leases.in_step() {
                self.shared.groups_heard_of().into_iter().for_each(|group| self.leases.heard(group, now));
            }
            if !self.leases.begin_step(changed, !step.with.is_empty(), now, actions) {
                self.queued.push_front(step);
                return Ok(());
            }
            self.step = Some(step);
        }
        Ok(())
    }

    fn refuse(&mut self, step: Step) {
        self.turns.refused(step.from);
        let _ = step.reply.send(Err(stale_base()));
    }

    /// A version that nobody can tell from the one before: no lease is lowered for it, and no group told.
    async fn write_unseen(&mut self, step: Step) -> Result<()> {
        let (meta, writes) = change_rows(&self.meta, self.seen(), &step.change)?;
        let read_at = newest_readable(&self.replica.store);
        match self.write(writes, vec![entry(meta_key(), read_at)], Timestamp::MIN).await {
            Ok(at) => {
                let _ = step.reply.send(Ok(Changed::Done { version: meta.version, at }));
                self.meta = meta;
                Ok(())
            }
            Err(e) if e.is_retry() => {
                let _ = step.reply.send(Err(e));
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// What the groups are granted.
    fn seen(&self) -> (SchemaVersion, Timestamp) {
        (self.leases.current().version, self.leases.current().committed_at)
    }

    /// New groups get the voters that found them, first the one that should be the primary.
    fn choose_voters(&self, change: &mut CatalogChange) -> Result<()> {
        let nodes = placement_nodes(&self.shared);
        for d in &mut change.put {
            if let Descriptor::Group(g) = d
                && g.initial_voters.is_empty()
            {
                let placed = place_group(&nodes, g, &Default::default());
                g.initial_voters = placed.voters;
                g.initial_voters.sort_by_key(|n| Some(n) != placed.primaries.first());
                if g.initial_voters.is_empty() {
                    return Err(Error::sql("55000", format!("region \"{}\" has no live node", g.home)));
                }
            }
        }
        Ok(())
    }

    /// Does what the state machine asks for, and what that leads to, in order. Rows to log are written together.
    async fn perform(&mut self, mut actions: Vec<Action>) -> Result<()> {
        while !actions.is_empty() {
            let mut more = Vec::new();
            let mut logged = Vec::new();
            let mut writes = Vec::new();
            for action in &actions {
                if let Action::Log { group, row: granted, grant } = action {
                    writes.push(row(lease_key(*group), granted)?);
                    logged.push((*group, grant.seq));
                }
            }
            if !writes.is_empty() {
                // Every write to the catalog is this task's, so its version is what it was when the rows were made.
                let read_at = newest_readable(&self.replica.store);
                match self.write(writes, vec![entry(meta_key(), read_at)], Timestamp::MIN).await {
                    Ok(_) => {
                        for (group, seq) in logged {
                            let now = self.now();
                            self.leases.logged(group, seq, now, &mut more);
                        }
                    }
                    Err(e) if e.is_retry() => {
                        logged.into_iter().for_each(|(group, seq)| self.leases.log_failed(group, seq));
                    }
                    Err(e) => return Err(e),
                }
            }
            for action in actions {
                match action {
                    Action::Log { .. } => {}
                    Action::Send { group, grant } => self.send(group, grant),
                    Action::Commit { above, seqs, rows } => self.commit_step(above, seqs, rows, &mut more).await?,
                    Action::Acknowledge { version } => {
                        if let (Some(step), Some(told)) = (self.step.take(), self.told.take()) {
                            let (shared, at) = (self.shared.clone(), self.leases.current().committed_at);
                            self.shared.spawn(async move {
                                if let Ok(told) = told.await {
                                    await_gateways(&shared, version, &told).await;
                                    let _ = step.reply.send(Ok(Changed::Done { version, at }));
                                }
                            });
                        }
                    }
                }
            }
            actions = more;
        }
        Ok(())
    }

    fn send(&self, group: GroupId, grant: SchemaGrant) {
        let (shared, inbox) = (self.shared.clone(), self.inbox.clone());
        self.shared.spawn(async move {
            let seq = grant.seq;
            if let Ok(bound) = shared.call_primary(group, SEND_PATIENCE, &Grant { group, grant }).await {
                let _ = inbox.send(Job::Answered { group, seq, bound });
            }
        });
    }

    async fn commit_step(
        &mut self,
        above: Timestamp,
        seqs: BTreeMap<GroupId, u64>,
        rows: BTreeMap<GroupId, Granted>,
        more: &mut Vec<Action>,
    ) -> Result<()> {
        let seen = self.seen();
        let Some(step) = &mut self.step else { return Ok(()) };
        let with = std::mem::take(&mut step.with);
        let read_at = newest_readable(&self.replica.store);
        let all_leases = ReadEntry { target: Target::Range(lease_range()), columns: ColumnMask::ALL, until: read_at };
        let reads = vec![entry(meta_key(), read_at), all_leases];
        let mut found = BTreeMap::new();
        for (key, bytes) in scan_all(&self.replica.store, &lease_range(), read_at)? {
            let group = lease_group(&key).ok_or_else(|| Error::fatal("a lease row of the catalog is malformed"))?;
            found.insert(group, read_row::<Granted>(&bytes)?.seq);
        }
        if found != seqs && !self.shared.bugs.has(PlantedBug::StepNotTiedToGrants) {
            return self.abandon(Error::retry("the schema lease changed during the step"), more);
        }
        let (meta, mut writes) = change_rows(&self.meta, seen, &step.change)?;
        // A group that is gone holds no lease: nobody could answer for it.
        let gone: Vec<GroupId> = found.keys().copied().filter(|g| step.change.delete.contains(&DescriptorId(g.0))).collect();
        writes.extend(gone.iter().map(|g| Write { key: lease_key(*g), value: None, columns: ColumnMask::ALL }));
        for (group, granted) in rows.iter().filter(|(group, _)| !gone.contains(group)) {
            writes.push(row(lease_key(*group), granted)?);
        }
        // The step commits at a future-time timestamp. The catalog's clock is its own, so no regional clock moves.
        self.replica.clock.advance_to(above);
        let committed = match with.is_empty() {
            true => self.write(writes, reads, above).await,
            false => match self.hold_ballot(with, own_slice(writes, reads, above)).await? {
                Verdict::Committed(at) => Ok(at),
                Verdict::Aborted(refusals) => {
                    let now = self.now();
                    self.leases.step_abandoned(now, more);
                    return self.answer(Changed::Refused(refusals));
                }
                Verdict::Unknown => {
                    self.answer(Changed::Unknown)?;
                    // Whether there is a new version is for the next term of this task to find out.
                    return Err(Error::unavailable("the outcome of a step is not known"));
                }
            },
        };
        match committed {
            Ok(at) => {
                self.meta = meta;
                // What it may still be using ends below the step.
                gone.iter().for_each(|g| self.leases.remove_group(*g));
                let now = self.now();
                self.leases.step_committed(self.meta.version, at, now, more);
                self.know_groups();
                self.told = Some(self.tell(self.leases.current().version));
                Ok(())
            }
            Err(e) if e.is_retry() => self.abandon(e, more),
            Err(e) => Err(e),
        }
    }

    /// Tells the gateways of a version while the groups are told.
    fn tell(&self, version: SchemaVersion) -> oneshot::Receiver<BTreeSet<NodeId>> {
        let (tx, told) = oneshot::channel();
        let shared = self.shared.clone();
        self.shared.spawn(async move {
            let _ = tx.send(tell_gateways(&shared, version).await);
        });
        told
    }

    fn answer(&mut self, changed: Changed) -> Result<()> {
        if let Some(step) = self.step.take() {
            let _ = step.reply.send(Ok(changed));
        }
        Ok(())
    }

    /// Commits the step and a transaction together: the catalog votes last.
    async fn hold_ballot(&self, with: Vec<Slice>, own: CommitRequest) -> Result<Verdict> {
        let id = TxnId { hlc: self.shared.clock.tick(self.shared.runtime.physical_micros()), gateway: self.shared.me() };
        let groups: BTreeSet<GroupId> = with.iter().map(|s| s.group).chain([GroupId::CATALOG]).collect();
        let participants: Vec<GroupId> = groups.into_iter().collect();
        let prepare = |slice: CommitRequest, has_queued: bool, is_last: bool| Prepare {
            participants: participants.clone(),
            slice: CommitRequest { id, ..slice },
            hold: if is_last { limits::PREPARE_WAIT_MAX } else { Duration::ZERO },
            has_queued,
            // The lowered leases wait for nobody.
            is_late: false,
            is_last,
        };
        let mut prepares: BTreeMap<GroupId, Prepare> =
            with.into_iter().map(|s| (s.group, prepare(s.request, s.has_queued, false))).collect();
        prepares.insert(GroupId::CATALOG, prepare(own, true, true));
        let Counted { verdict, .. } = vote_on(&self.shared, id, prepares).await;
        if let Verdict::Committed(_) = verdict {
            // What this task reads of the catalog from here on has the step in it.
            while self.replica.is_serving()
                && matches!(self.replica.core.lock().state.standing(id), meridian_base::Standing::Prepared(_))
            {
                tokio::time::sleep(DECISION_POLL).await;
            }
        }
        Ok(verdict)
    }

    fn abandon(&mut self, why: Error, more: &mut Vec<Action>) -> Result<()> {
        let now = self.now();
        self.leases.step_abandoned(now, more);
        if let Some(step) = self.step.take() {
            let _ = step.reply.send(Err(why));
        }
        Ok(())
    }

    async fn register(&mut self, mut record: NodeRecord) -> Result<NodeId> {
        let mut meta = self.meta.clone();
        if record.id == NodeId(0) {
            // A node that asks again because the answer was lost gets the identity it was given.
            if let Some(known) = self.shared.catalog.nodes().into_iter().find(|n| n.addr == record.addr) {
                return Ok(known.id);
            }
            record.id = NodeId(meta.next_node);
            meta.next_node += 1;
        }
        self.write_node(meta, &record).await?;
        Ok(record.id)
    }

    async fn write_node(&mut self, meta: Meta, record: &NodeRecord) -> Result<()> {
        let writes = vec![row(meta_key(), &meta)?, row(node_key(record.id), record)?];
        let read_at = newest_readable(&self.replica.store);
        self.write(writes, vec![entry(meta_key(), read_at)], Timestamp::MIN).await?;
        self.meta = meta;
        Ok(())
    }

    /// A node may change its mind until it is no member any more.
    async fn stand(&mut self, node: NodeId, standing: Standing) -> Result<()> {
        let known = self.shared.catalog.nodes().into_iter().find(|n| n.id == node);
        let Some(mut record) = known else {
            return Err(Error::sql("42704", format!("there is no node {node}")).hint("`meridian node status` lists them."));
        };
        if record.standing == standing {
            return Ok(());
        }
        match (record.standing, standing) {
            (Standing::Decommissioned, _) => {
                return Err(Error::sql("55000", format!("node {node} was decommissioned"))
                    .hint("To add it again, start it with an empty data directory."));
            }
            (Standing::Decommissioning, Standing::Draining) => {
                return Err(Error::sql("55000", format!("node {node} is being decommissioned already")));
            }
            (before, Standing::Decommissioned) if before != Standing::Decommissioning => {
                return Err(Error::sql("55000", format!("node {node} has not been decommissioned")));
            }
            _ => record.standing = standing,
        }
        self.write_node(self.meta.clone(), &record).await
    }

    async fn write(&mut self, writes: Vec<Write>, reads: Vec<ReadEntry>, above: Timestamp) -> Result<Timestamp> {
        let start = Instant::now();
        let written = commit_catalog(&self.shared, &self.replica, writes, reads, above).await;
        self.commit_takes = start.elapsed().max(self.commit_takes * 7 / 8).min(COMMIT_TAKES_MAX);
        written
    }
}

/// The catalog's part of a step that commits together with a transaction.
fn own_slice(writes: Vec<Write>, reads: Vec<ReadEntry>, above: Timestamp) -> CommitRequest {
    let schema = SchemaUse::default();
    CommitRequest { id: TxnId::default(), reads, writes, min_commit: above, schema, global: Default::default() }
}

/// Commits rows of the catalog, on its primary.
pub(crate) async fn commit_catalog<R: Runtime>(
    shared: &Shared<R>,
    replica: &Replica<R>,
    writes: Vec<Write>,
    reads: Vec<ReadEntry>,
    above: Timestamp,
) -> Result<Timestamp> {
    let id = TxnId { hlc: shared.clock.tick(shared.runtime.physical_micros()), gateway: shared.me() };
    let request =
        CommitRequest { id, reads, writes, min_commit: above, schema: SchemaUse::default(), global: Default::default() };
    match shared.commit_at(replica, &request).await? {
        CommitOutcome::Committed(at) => Ok(at),
        CommitOutcome::Conflict(c) => Err(conflict_error(&c)),
        CommitOutcome::Forgotten => Err(Error::unknown_outcome("a write to the catalog took too long")),
    }
}

fn entry(key: meridian_base::Key, until: Timestamp) -> ReadEntry {
    ReadEntry { target: Target::Key(key), columns: ColumnMask::ALL, until }
}

fn stale_base() -> Error {
    Error::retry("the schema was changed by somebody else meanwhile")
}

fn delays<R: Runtime>(shared: &Shared<R>, commit: Duration) -> Delays {
    Delays { round_trip: round_trip(shared), commit, max_offset: shared.clock.max_offset() }
}

fn round_trip<R: Runtime>(shared: &Shared<R>) -> Duration {
    shared.largest_round_trip().max(Duration::from_millis(10))
}

/// A grant for a group's primary. Its number makes a second copy harmless.
struct Grant {
    group: GroupId,
    grant: SchemaGrant,
}

impl<R: Runtime> Ask<R> for Grant {
    /// The bound that the group holds now.
    type Answer = Timestamp;
    const TIMEOUT: Duration = SEND_TIMEOUT;
    fn request(&self) -> Request {
        Request::Grant { group: self.group, grant: self.grant.clone() }
    }
    fn answer(response: Response) -> Option<Timestamp> {
        if let Response::Granted { bound } = response { Some(bound) } else { None }
    }
    async fn here(&self, _: &Arc<Shared<R>>, replica: &Arc<Replica<R>>) -> Result<Timestamp> {
        replica.grant(self.grant.clone()).await
    }
}

/// Tells every node of a version. Those that plan with it by the time this ends.
async fn tell_gateways<R: Runtime>(shared: &Arc<Shared<R>>, version: SchemaVersion) -> BTreeSet<NodeId> {
    let live = gateways(shared).into_iter().filter(|n| shared.is_live(*n));
    let calls = live.map(|n| async move {
        let answer = shared.rpc.call(n, Request::AwaitVersion { version }, SPREAD_TIMEOUT).await;
        answer.is_ok().then_some(n)
    });
    futures::future::join_all(calls).await.into_iter().flatten().collect()
}

/// The other nodes that clients may use.
fn gateways<R: Runtime>(shared: &Shared<R>) -> Vec<NodeId> {
    let nodes = shared.catalog.nodes().into_iter().filter(|n| n.standing != Standing::Decommissioned);
    nodes.map(|n| n.id).filter(|n| *n != shared.me()).collect()
}

/// Once every group knows the version or has no lease any more: waits until every node plans with it, or plans nothing until it
/// has heard of it (see [`crate::freshness`]). A name that was acknowledged exists is found everywhere. (What is committed is
/// safe without this, by the schema lease; but «does not exist» is an answer that no group certifies.)
async fn await_gateways<R: Runtime>(shared: &Arc<Shared<R>>, version: SchemaVersion, told: &BTreeSet<NodeId>) {
    let unaware = gateways(shared).into_iter().filter(|n| !told.contains(n)).count();
    if unaware > 0 {
        tracing::info!("{unaware} nodes may not know schema version {} yet", version.0);
        tokio::time::sleep(CONFIRMED_FOR + SPREAD_MARGIN).await;
        // On the slowest clock, too, the version's time has come then.
        let everywhere = shared.catalog.newest().committed_at.plus(shared.clock.max_offset());
        while Timestamp::from_micros(shared.runtime.physical_micros()) <= everywhere {
            tokio::time::sleep(TICK).await;
        }
    }
}
