//! The catalog's primary: schema steps, schema leases, and new members.
//!
//! All writes to the catalog's group go through one task on its primary, the coordinator. It drives
//! `region::SchemaLeases`, the pure state machine of the schema lease: that says what to log, what
//! to send and when a step may commit; this file logs, sends and commits. A coordinator that dies
//! leaves its log; its successor starts from there.
//!
//! # What became of a step
//!
//! A step is derived from a version, its *base*, and makes the next one or nothing. Its transaction
//! writes, beside the version, the id that the gateway gave to the step. So what became of a step
//! can be read for as long as versions are remembered ([`crate::catalog::rows::STEPS_KEPT`]):
//!
//! | the catalog is | the version after the base was made by | the step |
//! | --- | --- | --- |
//! | at the base | – | has not happened, and may |
//! | past it | this id | has happened, once |
//! | past it | another id | has not happened and never will |
//! | past it | (forgotten) | may have happened: 40003 |
//!
//! A gateway that has no answer sends the same step, with the same id and base, until it has one. A
//! copy of a step under way joins it; a copy of one that is over gets the same answer, and waits as
//! the first one did until no group can use the version before and every gateway plans with the new
//! one. A copy of one that has not happened is run. There is one exception: of a step that a
//! transaction commits with, the last coordinator's ballot may still be open, and a second ballot
//! might refuse what the first one commits. So such a copy is not run. A version without changes is
//! written instead (the *fence*): the open ballot can never be certified above it, and the gateway
//! derives its step anew.
//!
//! Every write of this task rests on the catalog's row being what this task knows
//! ([`Coordinator::read_at`]): a step that the last coordinator left in a ballot, and that commits
//! late, ends the term of this one.

mod members;
mod votes;

use crate::catalog::rows::{
    Meta, change_rows, join_token_key, lease_group, lease_key, lease_range, meta_key, newest_readable, read_row, row, scan_all,
    step_of, stored_meta,
};
use crate::catalog::steps::{Job, Reply, StepCall, elsewhere};
use crate::gateway::Gateway;
use crate::gateway::txn::{Counted, vote_on};
use crate::membership::ask::Ask;
use crate::membership::freshness::CONFIRMED_FOR;
use crate::membership::placement;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::replica::errors::behind_error;
use crate::replica::errors::conflict_error;
use crate::schema::turns::Turns;
use crate::transport::wire::{Changed, Request, Response, Slice, Standing, StepWait};
use meridian_base::record::SchemaGrant;
use meridian_base::{
    ColumnMask, CommitOutcome, CommitRequest, DescriptorId, Error, GroupId, Ledger, NodeId, Prepare, ReadEntry, Result,
    SchemaUse, SchemaVersion, Target, Timestamp, TxnId, Write, limits,
};
use meridian_commit::Verdict;
use meridian_pki::join::{StoredToken, TokenId};
use meridian_region::{Action, Delays, Granted, SchemaLeases};
use meridian_sql::catalog::{CatalogChange, Descriptor};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// A process whose node was decommissioned has noticed that and has ended by then.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);

const TICK: Duration = Duration::from_millis(100);
/// A node that does not answer for as long is about to be taken for dead.
pub(crate) const SPREAD_TIMEOUT: Duration = Duration::from_secs(5);
/// For clocks that run at different speeds.
const SPREAD_MARGIN: Duration = Duration::from_millis(100);
/// How long a gateway that was refused needs to come again, once it knows what came first.
const TURN_MARGIN: Duration = Duration::from_millis(100);
/// The catalog has no quorum if it takes longer: steps need not reckon with it.
pub(crate) const COMMIT_TAKES_MAX: Duration = Duration::from_secs(1);
const FOUNDING_POLL: Duration = Duration::from_millis(5);
const SEND_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a grant looks for the group's primary. It is sent again by the state machine's own
/// timer in any case.
const SEND_PATIENCE: Duration = Duration::from_millis(100);
/// Before a write to the catalog whose outcome has not come is asked about again.
const COMMIT_AGAIN: Duration = Duration::from_millis(10);
/// Join tokens that are kept at once.
const TOKENS_MAX: usize = 1_000;
/// A token that has ended is kept so long: a process that has lost the answer asks again.
const TOKEN_KEPT_SECS: u64 = 86_400;
const DECISION_POLL: Duration = Duration::from_millis(1);
/// Copies of one step that wait for its answer: a gateway sends the next one when it has given the
/// last one up.
const COPIES_MAX: usize = 16;
/// Refusals that are remembered: of more steps than come while a copy is on its way.
const REFUSED_KEPT: usize = 256;

/// Runs a coordinator whenever this node serves the catalog's group.
pub(crate) async fn coordinate(gateway: Arc<Gateway>, replica: Arc<Replica>) {
    let shared = gateway.shared.clone();
    let mut serving = replica.watch_serving();
    loop {
        // A cluster that is being founded has a catalog with its first rows, which the founder
        // writes.
        while *serving.borrow_and_update() && shared.catalog.newest().version == SchemaVersion(0) {
            tokio::time::sleep(FOUNDING_POLL).await;
        }
        // A step that a transaction commits with may have been voted for by the last coordinator.
        // Its votes decide.
        while *serving.borrow_and_update() && replica.has_prepared() {
            tokio::time::sleep(FOUNDING_POLL).await;
        }
        // No write ends before the clock gets to what was promised.
        if *serving.borrow_and_update() && replica.waits_for_clock().is_some() {
            let replica = replica.clone();
            let refusal = move || replica.waits_for_clock().map_or_else(elsewhere(), |by| behind_error(GroupId::CATALOG, by));
            shared.steps.refuse(Box::new(refusal));
        }
        while *serving.borrow_and_update() && replica.waits_for_clock().is_some() {
            tokio::time::sleep(TICK).await;
        }
        if *serving.borrow_and_update() {
            let (tx, rx) = mpsc::channel(limits::CATALOG_JOBS_MAX);
            shared.steps.open(tx.clone());
            let term = Coordinator::start(gateway.clone(), replica.clone(), tx);
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
            shared.steps.set_waits(None);
        }
        shared.steps.refuse(elsewhere());
        if serving.changed().await.is_err() {
            return;
        }
    }
}

struct Coordinator {
    /// Votes for transactions that commit with a step are heard there.
    gateway: Arc<Gateway>,
    shared: Arc<Shared>,
    replica: Arc<Replica>,
    inbox: mpsc::Sender<Job>,
    leases: SchemaLeases,
    meta: Meta,
    step: Option<Step>,
    /// The step has committed, and these gateways are being told.
    told: Option<oneshot::Receiver<BTreeSet<NodeId>>>,
    queued: VecDeque<Step>,
    /// Steps that have happened and are asked for again.
    found: Vec<Found>,
    /// The newest version before which no group can use another one any more.
    spread: SchemaVersion,
    /// The latest steps that were refused for good, with the answer: their copies are not to be
    /// run.
    refused: VecDeque<(TxnId, Result<Changed>)>,
    turns: Turns,
    /// How long a write to the catalog is expected to take: as long as the slowest of the latest
    /// ones.
    commit_takes: Duration,
    /// When a node's record changed last.
    members_changed: Instant,
}

struct Step {
    call: StepCall,
    /// All copies wait for the same answer.
    replies: Vec<Reply>,
}

impl Step {
    fn answer(self, answer: Result<Changed>) {
        for reply in self.replies {
            let _ = reply.send(answer.clone());
        }
    }
    /// Transactions cannot tell the version that it makes from the one before.
    fn is_unseen(&self) -> bool {
        self.call.with.is_empty() && !self.call.change.is_seen()
    }
    /// A ballot over it may be open that another coordinator holds.
    fn may_be_in_a_ballot(&self) -> bool {
        self.call.is_again && !self.call.with.is_empty()
    }
}

/// A step that has happened, whose version some may not know yet.
struct Found {
    version: SchemaVersion,
    at: Timestamp,
    replies: Vec<Reply>,
}

impl Coordinator {
    fn start(gateway: Arc<Gateway>, replica: Arc<Replica>, inbox: mpsc::Sender<Job>) -> Result<Coordinator> {
        let shared = gateway.shared.clone();
        let at = newest_readable(&replica.store);
        let meta = stored_meta(&replica.store)?;
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
        let leases = SchemaLeases::new(current, rows, delays(&shared, commit_takes)).with_rules(shared.groups.common.rules);
        let mut coordinator = Coordinator {
            gateway,
            shared,
            replica,
            inbox,
            leases,
            meta,
            step: None,
            told: None,
            queued: VecDeque::new(),
            found: Vec::new(),
            spread: SchemaVersion(0),
            refused: VecDeque::new(),
            turns: Turns::default(),
            commit_takes,
            members_changed: Instant::now(),
        };
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

    async fn run(mut self, mut jobs: mpsc::Receiver<Job>, serving: &mut tokio::sync::watch::Receiver<bool>) -> Result<()> {
        while *serving.borrow() {
            let mut actions = Vec::new();
            match tokio::time::timeout(TICK, jobs.recv()).await {
                Ok(Some(job)) => self.take(job, &mut actions).await?,
                Ok(None) => break,
                Err(_) => {}
            }
            self.leases.tick(self.now(), &mut actions);
            self.next_step(&mut actions).await?;
            self.raise_version().await?;
            self.perform(actions).await?;
            self.tell_of_found();
            self.shared.steps.set_waits(self.waits());
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
            Job::Change { call, reply } => self.take_step(call, reply),
            Job::Register { row, token, reply } => {
                let registered = self.register(row, token).await;
                let _ = reply.send(registered);
            }
            Job::KeepToken { token, reply } => {
                let kept = self.keep_token(token).await;
                let _ = reply.send(kept);
            }
            Job::FindToken { token, reply } => {
                let _ = reply.send(stored_token(&self.replica, token));
            }
            Job::Redeem { redemption, reply } => {
                let redeemed = self.redeem(*redemption).await;
                let _ = reply.send(redeemed);
            }
            Job::KeepRotation { keep, reply } => {
                let kept = self.keep_rotation(*keep).await;
                let _ = reply.send(kept);
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

    /// A copy of a step that is known joins it.
    fn take_step(&mut self, call: StepCall, reply: Reply) {
        if let Some((_, answer)) = self.refused.iter().find(|(id, _)| *id == call.id) {
            let _ = reply.send(answer.clone());
            return;
        }
        if let Some(known) = self.step.iter_mut().chain(&mut self.queued).find(|step| step.call.id == call.id) {
            if known.replies.len() < COPIES_MAX {
                known.replies.push(reply);
            }
            return;
        }
        if self.queued.len() >= limits::CATALOG_JOBS_MAX {
            let _ = reply.send(Ok(Changed::NotTaken));
            return;
        }
        self.queued.push_back(Step { call, replies: vec![reply] });
    }

    async fn next_step(&mut self, actions: &mut Vec<Action>) -> Result<()> {
        // Who has to derive a step again may begin while the one that came first is being spread.
        let (past, queued): (Vec<Step>, Vec<Step>) = self.queued.drain(..).partition(|step| step.call.base < self.meta.version);
        self.queued = queued.into();
        for step in past {
            self.answer_past(step)?;
        }
        while self.step.is_none() {
            let patience = round_trip(&self.shared) + TURN_MARGIN;
            let next = self.turns.next(self.queued.iter().map(|step| step.call.from), Instant::now(), patience);
            let Some(mut step) = next.and_then(|at| self.queued.remove(at)) else { return Ok(()) };
            if step.call.base < self.meta.version {
                self.answer_past(step)?;
                continue;
            }
            if step.call.base > self.meta.version {
                // No gateway knows a version that the primary's log does not have.
                self.read_at()?;
                self.refuse_for_good(step, Err(Error::internal("a schema change was derived from a version that is not there")));
                continue;
            }
            self.turns.taken(step.call.from);
            if step.may_be_in_a_ballot() {
                // The fence: see the module's essay.
                let call = StepCall {
                    id: TxnId::default(),
                    change: CatalogChange { next_id: self.meta.next_id, ..CatalogChange::default() },
                    with: Vec::new(),
                    ..step.call
                };
                self.write_unseen(Step { call, replies: Vec::new() }).await?;
                let is_past = step.call.base < self.meta.version;
                step.answer(Ok(if is_past { Changed::Stale } else { Changed::NotTaken }));
                continue;
            }
            let newest = self.shared.catalog.newest();
            if newest.version == self.meta.version
                && let Err(e) = newest.check_new_ids(&step.call.change)
            {
                self.refuse_for_good(step, Err(e));
                continue;
            }
            if step.is_unseen() {
                self.write_unseen(step).await?;
                continue;
            }
            if let Some(group) = self.still_needed(&step.call.change) {
                let e = Error::internal(format!("a schema change deletes group {group}, which has not left"));
                self.refuse_for_good(step, Err(e));
                continue;
            }
            if let Err(e) = placement::choose_voters(&self.shared, &mut step.call.change) {
                self.refuse_for_good(step, Err(e));
                continue;
            }
            let mut changed: Vec<DescriptorId> = step.call.change.put.iter().map(Descriptor::id).collect();
            changed.extend(&step.call.change.delete);
            self.leases.set_delays(delays(&self.shared, self.commit_takes));
            let now = self.now();
            if !self.leases.in_step() {
                self.shared.groups_heard_of().into_iter().for_each(|group| self.leases.heard(group, now));
            }
            let certifying = (!step.call.with.is_empty()).then(|| votes::expected(&step.call.with));
            if !self.leases.begin_step(changed, certifying, now, actions) {
                self.queued.push_front(step);
                return Ok(());
            }
            self.step = Some(step);
        }
        Ok(())
    }

    /// Tells what became of a step whose base is no longer the newest version.
    fn answer_past(&mut self, step: Step) -> Result<()> {
        let version = SchemaVersion(step.call.base.0 + 1);
        match step_of(&self.replica.store, version)? {
            Some((id, at)) if id == step.call.id && step.is_unseen() => step.answer(Ok(Changed::Done { version, at })),
            Some((id, _)) if id == step.call.id && self.found.len() >= limits::CATALOG_JOBS_MAX => {
                step.answer(Ok(Changed::Unknown));
            }
            Some((id, at)) if id == step.call.id => self.found.push(Found { version, at, replies: step.replies }),
            Some(_) => {
                self.turns.refused(step.call.from);
                step.answer(Ok(Changed::Stale));
            }
            None => step.answer(Ok(Changed::Forgotten)),
        }
        Ok(())
    }

    /// Acknowledges steps that have happened and are asked for again, once no group can use the
    /// version before.
    fn tell_of_found(&mut self) {
        if self.found.is_empty() {
            return;
        }
        let now = self.now();
        // Of this coordinator's own steps, the one under way has not spread; the others have, and
        // so has what was there before them.
        let has_taken_over = self.leases.has_taken_over(now);
        let spreading = self.step.as_ref().filter(|_| self.told.is_some()).map(|_| self.meta.version);
        let is_spread = |version: SchemaVersion| version <= self.spread || has_taken_over && spreading != Some(version);
        for Found { version, at, replies } in self.found.extract_if(.., |found| is_spread(found.version)) {
            let shared = self.shared.clone();
            self.shared.spawn(async move {
                let told = tell_gateways(&shared, version).await;
                await_gateways(&shared, version, &told).await;
                for reply in replies {
                    let _ = reply.send(Ok(Changed::Done { version, at }));
                }
            });
        }
    }

    /// The step will never happen: its copies get the same answer.
    fn refuse_for_good(&mut self, step: Step, answer: Result<Changed>) {
        if self.refused.len() == REFUSED_KEPT {
            self.refused.pop_front();
        }
        self.refused.push_back((step.call.id, answer.clone()));
        step.answer(answer);
    }

    /// Where the catalog is read for a write. Fails if it is not what this task knows: the last
    /// coordinator's step, which a ballot held up, has committed meanwhile.
    fn read_at(&self) -> Result<Timestamp> {
        let read_at = newest_readable(&self.replica.store);
        match stored_meta(&self.replica.store)? == self.meta {
            true => Ok(read_at),
            false => Err(Error::unavailable("a step of the coordinator before this one has committed")),
        }
    }

    /// A version that transactions cannot tell from the one before: no lease is lowered for it, and
    /// no group told.
    async fn write_unseen(&mut self, step: Step) -> Result<()> {
        let (meta, writes) = change_rows(step.call.id, &self.meta, self.seen(), &step.call.change)?;
        let read_at = self.read_at()?;
        match self.write(writes, vec![entry(meta_key(), read_at)], Timestamp::MIN).await {
            Ok(at) => {
                step.answer(Ok(Changed::Done { version: meta.version, at }));
                self.meta = meta;
                Ok(())
            }
            Err(e) if e.is_retry() => {
                step.answer(Ok(Changed::NotTaken));
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// What the groups are granted.
    fn seen(&self) -> (SchemaVersion, Timestamp) {
        (self.leases.current().version, self.leases.current().committed_at)
    }

    /// A group that the change deletes although others may need its votes
    /// (`sql::jobs::doomed`).
    fn still_needed(&self, change: &CatalogChange) -> Option<GroupId> {
        let catalog = self.shared.catalog.newest();
        let group = |id: &DescriptorId| match catalog.descriptors.get(id).map(|d| &**d) {
            Some(Descriptor::Group(group)) => Some(group.id),
            _ => None,
        };
        change.delete.iter().find_map(group)
    }

    /// Does what the state machine asks for, and what that leads to, in order. Rows to log are
    /// written together.
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
                let read_at = self.read_at()?;
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
                        self.spread = version;
                        let (step, told) = (self.step.take(), self.told.take());
                        let (step, told) = (step.expect("a step is spread"), told.expect("it has committed"));
                        let (shared, at) = (self.shared.clone(), self.leases.current().committed_at);
                        self.shared.spawn(async move {
                            if let Ok(told) = told.await {
                                await_gateways(&shared, version, &told).await;
                                step.answer(Ok(Changed::Done { version, at }));
                            }
                        });
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
                // One that finds no room is lost: the grant is sent again until it is answered.
                let _ = inbox.try_send(Job::Answered { group, seq, bound });
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
        let read_at = self.read_at()?;
        let step = self.step.as_mut().expect("a step is to be committed");
        let with = std::mem::take(&mut step.call.with);
        let all_leases = ReadEntry { target: Target::Range(lease_range()), columns: ColumnMask::ALL, until: read_at };
        let reads = vec![entry(meta_key(), read_at), all_leases];
        let mut found = BTreeMap::new();
        for (key, bytes) in scan_all(&self.replica.store, &lease_range(), read_at)? {
            let group = lease_group(&key).ok_or_else(|| Error::fatal("a lease row of the catalog is malformed"))?;
            found.insert(group, read_row::<Granted>(&bytes)?.seq);
        }
        if found != seqs && self.shared.groups.common.rules.ties_steps_to_grants() {
            self.abandon(Changed::NotTaken, more);
            return Ok(());
        }
        let (meta, mut writes) = change_rows(step.call.id, &self.meta, seen, &step.call.change)?;
        // A group that is gone holds no lease: no primary could answer for it.
        let gone: Vec<GroupId> = found.keys().copied().filter(|g| step.call.change.delete.contains(&DescriptorId(g.0))).collect();
        writes.extend(gone.iter().map(|g| Write { key: lease_key(*g), value: None, columns: ColumnMask::ALL }));
        for (group, granted) in rows.iter().filter(|(group, _)| !gone.contains(group)) {
            writes.push(row(lease_key(*group), granted)?);
        }
        // The step commits at a future-time timestamp. The catalog's clock is its own, so no
        // regional clock moves.
        self.replica.clock.advance_to(above);
        let committed = match with.is_empty() {
            true => self.write(writes, reads, above).await,
            false => match self.hold_ballot(with, own_slice(writes, reads, above)).await? {
                Verdict::Committed(at) => Ok(at),
                Verdict::Aborted(refusals) => {
                    self.abandon(Changed::Refused(refusals), more);
                    return Ok(());
                }
                Verdict::Unknown => {
                    if let Some(step) = self.step.take() {
                        step.answer(Ok(Changed::Unknown));
                    }
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
            Err(e) if e.is_retry() => {
                self.abandon(Changed::NotTaken, more);
                Ok(())
            }
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

    /// Commits the step and a transaction together: the catalog votes last.
    async fn hold_ballot(&self, with: Vec<Slice>, own: CommitRequest) -> Result<Verdict> {
        let id = TxnId { hlc: self.shared.clock.tick(self.shared.runtime.physical_micros()), gateway: self.shared.me() };
        let groups: BTreeSet<GroupId> = with.iter().map(|s| s.group).chain([GroupId::CATALOG]).collect();
        let participants: Vec<GroupId> = groups.into_iter().collect();
        let longest = limits::PREPARE_WAIT_MAX + votes::expected(&with);
        let prepare = |slice: CommitRequest, has_queued: bool, is_last: bool| Prepare {
            participants: participants.clone(),
            slice: CommitRequest { id, ..slice },
            hold: if is_last { longest } else { Duration::ZERO },
            has_queued,
            // The lowered leases wait for nobody.
            is_late: false,
            is_last,
        };
        let mut prepares: BTreeMap<GroupId, Prepare> =
            with.into_iter().map(|s| (s.group, prepare(s.request, s.has_queued, false))).collect();
        prepares.insert(GroupId::CATALOG, prepare(own, true, true));
        let Counted { verdict, .. } = vote_on(&self.gateway, id, prepares).await;
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

    /// The step has not committed.
    fn abandon(&mut self, answer: Changed, more: &mut Vec<Action>) {
        let now = self.now();
        self.leases.step_abandoned(now, more);
        let step = self.step.take().expect("a step is abandoned");
        match answer {
            Changed::Refused(_) => self.refuse_for_good(step, Ok(answer)),
            _ => step.answer(Ok(answer)),
        }
    }

    async fn write(&mut self, writes: Vec<Write>, reads: Vec<ReadEntry>, above: Timestamp) -> Result<Timestamp> {
        let start = Instant::now();
        let written = commit_catalog(&self.shared, &self.replica, writes, reads, above).await;
        self.commit_takes = start.elapsed().max(self.commit_takes * 7 / 8).min(COMMIT_TAKES_MAX);
        written
    }
}

/// A join token as the catalog has it.
fn stored_token(replica: &Replica, id: TokenId) -> Result<Option<StoredToken>> {
    let found = replica.store.newest(join_token_key(id).as_bytes())?;
    found.and_then(|row| row.value).map(|bytes| read_row(&bytes)).transpose()
}

/// The catalog's part of a step that commits together with a transaction.
fn own_slice(writes: Vec<Write>, reads: Vec<ReadEntry>, above: Timestamp) -> CommitRequest {
    let schema = SchemaUse::default();
    CommitRequest {
        id: TxnId::default(),
        reads,
        writes: writes.into_iter().map(Write::into).collect(),
        min_commit: above,
        schema,
        global: Default::default(),
    }
}

/// Commits rows of the catalog, on its primary.
pub(crate) async fn commit_catalog(
    shared: &Shared,
    replica: &Replica,
    writes: Vec<Write>,
    reads: Vec<ReadEntry>,
    above: Timestamp,
) -> Result<Timestamp> {
    let id = TxnId { hlc: shared.clock.tick(shared.runtime.physical_micros()), gateway: shared.me() };
    let request = CommitRequest { id, ..own_slice(writes, reads, above) };
    // Whoever writes goes on from what became of it: for as long as the term lasts, that is waited
    // for.
    let term = replica.serving_term();
    let outcome = loop {
        match shared.commit_at(replica, &request).await {
            Err(e) if e.is_unavailable() && term.is_some() && replica.serving_term() == term => {
                tokio::time::sleep(COMMIT_AGAIN).await;
            }
            outcome => break outcome?,
        }
    };
    match outcome {
        CommitOutcome::Committed(at) => Ok(at),
        CommitOutcome::Conflict(c) => Err(conflict_error(&c)),
        CommitOutcome::Forgotten => Err(Error::unknown_outcome("a write to the catalog took too long")),
    }
}

fn entry(key: meridian_base::Key, until: Timestamp) -> ReadEntry {
    ReadEntry { target: Target::Key(key), columns: ColumnMask::ALL, until }
}

fn decommissioned(node: NodeId) -> Error {
    Error::fatal(format!("this node ({node}) was decommissioned: it is no member of the cluster any more"))
        .hint("To add it again, start it with an empty data directory.")
}

fn delays(shared: &Shared, commit: Duration) -> Delays {
    Delays { round_trip: round_trip(shared), commit, max_offset: shared.clock.max_offset() }
}

fn round_trip(shared: &Shared) -> Duration {
    shared.peers.largest_round_trip().max(Duration::from_millis(10))
}

/// A grant for a group's primary. Its number makes a second copy harmless.
struct Grant {
    group: GroupId,
    grant: SchemaGrant,
}

impl Ask for Grant {
    /// The bound that the group holds now.
    type Answer = Timestamp;
    const TIMEOUT: Duration = SEND_TIMEOUT;
    fn request(&self) -> Request {
        Request::Grant { group: self.group, grant: self.grant.clone() }
    }
    fn answer(response: Response) -> Option<Timestamp> {
        if let Response::Granted { bound } = response { Some(bound) } else { None }
    }
    async fn here(&self, _: &Arc<Shared>, replica: &Arc<Replica>) -> Result<Timestamp> {
        replica.grant(self.grant.clone()).await
    }
}

/// Tells every node of a version. Those that plan with it by the time this ends.
async fn tell_gateways(shared: &Arc<Shared>, version: SchemaVersion) -> BTreeSet<NodeId> {
    let live = gateways(shared).into_iter().filter(|n| shared.peers.is_live(*n));
    let calls = live.map(|n| async move {
        let answer = shared.rpc.call(n, Request::AwaitVersion { version }, SPREAD_TIMEOUT).await;
        answer.is_ok().then_some(n)
    });
    futures::future::join_all(calls).await.into_iter().flatten().collect()
}

/// The other nodes that clients may use.
fn gateways(shared: &Shared) -> Vec<NodeId> {
    let nodes = shared.catalog.nodes().into_iter().filter(|n| n.standing != Standing::Decommissioned);
    nodes.map(|n| n.id).filter(|n| *n != shared.me()).collect()
}

/// Once every group knows the version or has no lease any more: waits until every node plans with
/// it, or plans nothing until it has heard of it (see [`crate::membership::freshness`]). A name
/// that was acknowledged exists is found everywhere. (What is committed is safe without this, by
/// the schema lease; but «does not exist» is an answer that no group certifies.)
async fn await_gateways(shared: &Arc<Shared>, version: SchemaVersion, told: &BTreeSet<NodeId>) {
    let unaware = gateways(shared).into_iter().filter(|n| !told.contains(n)).count();
    if unaware > 0 {
        tracing::info!("{unaware} nodes may not know schema version {} yet", version.0);
        // A machine that slept measured no time. If it was for longer than `max_offset`, its clock
        // has stepped, and its node plans nothing any more.
        tokio::time::sleep(CONFIRMED_FOR + shared.clock.max_offset() + SPREAD_MARGIN).await;
        // On the slowest clock, too, the version's time has come then.
        let everywhere = shared.catalog.newest().committed_at.plus(shared.clock.max_offset());
        while Timestamp::from_micros(shared.runtime.physical_micros()) <= everywhere {
            tokio::time::sleep(TICK).await;
        }
    }
}
