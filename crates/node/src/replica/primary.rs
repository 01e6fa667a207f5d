//! What a group's primary does for gateways: fresh reads, commits, schema grants.
//!
//! The functions here are called directly on the session's task when the gateway is the primary's
//! node, and from a call of another node otherwise. They take the replica's lock for a moment,
//! never across an await, and wait on tickets outside it.

use crate::catalog::rows::newest_readable;
use crate::local::metrics::Counter;
use crate::replica::asking::Deciders;
use crate::replica::errors::{behind_error, conflict_error};
use crate::replica::pages::page_limits;
use crate::replica::pod::slots::{SlotSet, is_plain};
use crate::replica::term::{Pending, Term};
use crate::replica::{Core, Replica};
use crate::transport::wire::{ReadAnswer, ReadOp, ReadResult, View, WireBusy, WireLocking};
use bytes::Bytes;
use meridian_base::escrow::{Demand, Free, Late, Offer};
use meridian_base::record::{Committed, Record};
use meridian_base::{
    ColumnMask, CommitOutcome, CommitRequest, Conflict, ConflictReason, Error, ErrorKind, Key, KeyRange, NodeId, ReadEntry,
    Result, Target, Timestamp, TxnId, limits,
};
use meridian_region::{
    Certified, Ended, Ending, Enqueued, First, IfBusy, Mode, NotReady, Owner, Place, Queues, ReadGate, SchemaCheck, ShareLook,
    Snapshot, Ticket, WaitFor,
};
use meridian_sql::env::{RowVisitor, Scan};
use meridian_store::Version;
use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long a request may wait at a primary for a lease, a grant or a writer in flight before the
/// gateway has to look again.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(5);
/// How often a waiting request checks whether its wait can still succeed.
const HOPELESS_INTERVAL: Duration = Duration::from_millis(250);
/// How long a read that wants to avoid conflicts waits in a row's queue before it goes on without
/// the entry.
const BRIEF_WAIT: Duration = Duration::from_millis(300);
/// How long a session of a pod waits in a queue before it goes on without the entry: who holds it
/// may wait in a queue of another host, which nobody sees.
const POD_QUEUE_MAX: Duration = Duration::from_secs(1);
/// Keys of one read that are looked at in one hold of the replica's lock.
const GATES_AT_ONCE: usize = 64;
/// Rows a locking scan may have to look at again because it had to wait for one of them.
const RESCANS_MAX: usize = 16;

/// One wait at a primary.
pub(crate) enum Step<T> {
    Ready(T),
    Wait(Ticket, oneshot::Receiver<()>),
    /// A host of a pod lacks some of these.
    Slots(SlotSet),
}

impl Replica {
    /// Leadership is still this node's by the lease, in real time and below the ceiling: checked
    /// when an answer leaves.
    pub(crate) fn check_lease(&self) -> Result<()> {
        if self.fast.is_beside_leader() && self.host_lease_holds() {
            return Ok(());
        }
        let is_below_ceiling = self.clock.now(self.physical()).0 <= self.fast.ceiling.load(Ordering::Acquire);
        let has_memory = self.pod().is_none() || !self.is_memory_lost();
        match self.is_serving() && is_below_ceiling && has_memory && self.lease_holds() {
            true => Ok(()),
            false => Err(Error::not_primary(self.id)),
        }
    }

    /// In real time. A clock that jumped ahead may have done so because the machine slept
    /// meanwhile, and with it the clock that the lease is measured by.
    pub(crate) fn lease_holds(&self) -> bool {
        self.raft().lease_valid() && self.common.runtime.steady_clock().stepped().is_none()
    }

    /// Repeats a step under the lock until it does not ask to wait any more.
    pub(crate) async fn until_ready<T>(&self, patience: Duration, step: impl FnMut(&mut Core) -> Result<Step<T>>) -> Result<T> {
        self.repeat_until_ready(patience, step, |_| Ok(())).await
    }

    /// The same. `is_hopeless` is asked now and then about what is waited for, and ends the wait.
    async fn repeat_until_ready<T>(
        &self,
        patience: Duration,
        mut step: impl FnMut(&mut Core) -> Result<Step<T>>,
        is_hopeless: impl Fn(WaitFor) -> Result<()>,
    ) -> Result<T> {
        let deadline = Instant::now() + patience;
        let mut kept = None;
        loop {
            let stepped = {
                let mut core = self.core.lock();
                step(&mut core)?
            };
            drop(kept.take());
            let (ticket, mut woken) = match stepped {
                Step::Ready(value) => return Ok(value),
                Step::Wait(ticket, woken) => (ticket, woken),
                Step::Slots(slots) => {
                    kept = Some(self.await_slots(slots).await?);
                    continue;
                }
            };
            let guard = CancelTicket { replica: self, ticket };
            if let Some(by) = self.waits_for_clock() {
                // Whatever it waits for waits for the clock.
                return Err(behind_error(self.id, by));
            }
            let what = self.core.lock().term.as_ref().and_then(|term| term.engine.waits_for(ticket));
            let began = Instant::now();
            let ended = loop {
                what.map_or(Ok(()), &is_hopeless)?;
                let look = deadline.min(Instant::now() + HOPELESS_INTERVAL);
                let ended = tokio::time::timeout_at(look, &mut woken).await;
                if ended.is_ok() || look == deadline {
                    break ended;
                }
            };
            if let Some(what) = what {
                self.common.metrics.waited(what, began.elapsed());
            }
            match ended {
                Ok(Ok(())) => std::mem::forget(guard),
                Ok(Err(_)) => return Err(Error::not_primary(self.id)),
                Err(_) => {
                    let what = what.map_or("a new term", waited_for);
                    tracing::info!("{}: a request waited too long for {what}", self.id);
                    return Err(Error::unavailable(format!("the primary of group {} waited too long", self.id))
                        .detail(format!("for {what}")));
                }
            }
        }
    }

    /// Waits for a ticket of the present term.
    pub(crate) fn wait<T>(&self, core: &mut Core, ticket: Ticket) -> Result<Step<T>> {
        let (_, term) = self.certifying(core)?;
        let (tx, woken) = oneshot::channel();
        term.wakers.insert(ticket, tx);
        Ok(Step::Wait(ticket, woken))
    }

    // --- reads

    /// The value of one key, for a gateway on this node.
    pub async fn get(
        &self,
        gateway: NodeId,
        view: &mut View,
        key: &Key,
        columns: ColumnMask,
        locking: WireLocking,
    ) -> Result<Option<Version>> {
        if locking == WireLocking::None
            && let Some(found) = self.get_settled(view, key)?
        {
            return Ok(found);
        }
        if locking != WireLocking::None && !self.lock_key(gateway, view, key, locking).await? {
            view.skipped.push(key.clone());
            self.snapshot(view).await?;
            return Ok(None);
        }
        self.snapshot(view).await?;
        let s = self.gate(view, &Target::Key(key.clone()), columns).await?;
        let found = self.store.get(key.as_bytes(), s)?;
        self.check_lease()?;
        Ok(found)
    }

    /// The values of several keys at one snapshot, without entries in their queues, for a gateway
    /// on this node.
    pub async fn get_many(&self, view: &mut View, keys: &[Key], columns: ColumnMask) -> Result<Vec<Option<Version>>> {
        if let Some(s) = self.settled_snapshot(view) {
            let found = self.store.get_many(keys, s)?;
            self.check_lease()?;
            (view.snapshot, view.is_settled) = (Some(s), true);
            return Ok(found);
        }
        let s = loop {
            let s = self.snapshot(view).await?;
            match self.try_gates(view, keys, columns, s).await? {
                None => break s,
                // All of them again: what was let pass before is read at the snapshot that it moves
                // to.
                Some(to) => self.move_to(view, to).await?,
            }
        };
        let found = self.store.get_many(keys, s)?;
        self.check_lease()?;
        Ok(found)
    }

    /// The lock-free path: a read-only transaction's first read, at the newest applied timestamp,
    /// or a later one at the same settled snapshot.
    #[inline]
    fn get_settled(&self, view: &mut View, key: &Key) -> Result<Option<Option<Version>>> {
        let Some(s) = self.settled_snapshot(view) else { return Ok(None) };
        let found = self.store.get(key.as_bytes(), s)?;
        self.check_lease()?;
        (view.snapshot, view.is_settled) = (Some(s), true);
        Ok(Some(found))
    }

    /// A snapshot at or below which nothing is in flight, if the transaction is read-only, this
    /// replica serves, and the schema it planned with holds there.
    fn settled_snapshot(&self, view: &View) -> Option<Timestamp> {
        if !view.read_only || !self.is_serving() {
            return None;
        }
        if let Some(s) = view.snapshot {
            return view.is_settled.then_some(s);
        }
        let bound = self.fast.grant_bound.load(Ordering::Acquire);
        let version = self.fast.grant_version.load(Ordering::Acquire);
        let settled = Timestamp(self.fast.settled.load(Ordering::Acquire));
        // A group that has just begun to serve may have been idle for longer than versions are
        // kept.
        let s = settled.max(self.store.gc_threshold());
        let holds = version == view.schema.version.0 && self.clock.now(self.physical()).0 <= bound;
        (holds && settled != Timestamp::MIN && s >= view.schema_committed_at && self.common.rules.snapshots_move()).then_some(s)
    }

    /// Where the transaction reads in this group; chosen at its first read.
    async fn snapshot(&self, view: &mut View) -> Result<Timestamp> {
        if let Some(s) = view.snapshot {
            return Ok(s);
        }
        let opened = self.until_ready(WAIT_MAX, |core| self.open(core, view)).await?;
        self.observe_pod(opened.at);
        (view.snapshot, view.is_settled) = (Some(opened.at), opened.settled);
        Ok(opened.at)
    }

    /// One try to open a snapshot for the transaction, now.
    fn open(&self, core: &mut Core, view: &View) -> Result<Step<Snapshot>> {
        let first = if view.read_only { First::ReadOnly(&view.schema) } else { First::Fresh(view.began) };
        let mut opened = self.ask(core, |primary, now| primary.snapshot(now, first))?;
        if view.read_only {
            // What was acknowledged anywhere in the pod (P5).
            let member = core.term.as_ref().and_then(|term| term.outlet.member());
            let acked = member.map_or(Timestamp::MIN, |member| member.segment.acked());
            opened.at = opened.at.max(newest_readable(&self.store)).max(acked);
        }
        if opened.at < view.schema_committed_at && self.common.rules.snapshots_move() {
            // The gateway plans with a schema step that this clock has not reached yet; the gate
            // waits for it.
            opened = Snapshot { at: view.schema_committed_at, settled: false };
        }
        let checked = self.ask(core, |primary, now| primary.schema(now, &view.schema, opened.at))?;
        self.schema_checked(core, checked, opened)
    }

    /// Goes on with a value if the transaction's schema holds.
    fn schema_checked<T>(&self, core: &mut Core, checked: SchemaCheck, value: T) -> Result<Step<T>> {
        match checked {
            SchemaCheck::Passed => Ok(Step::Ready(value)),
            SchemaCheck::Wait(ticket) => self.wait(core, ticket),
            SchemaCheck::Changed(conflict) => Err(conflict_error(&conflict)),
        }
    }

    pub(crate) fn not_ready<T>(&self, core: &mut Core, why: NotReady) -> Result<Step<T>> {
        match why {
            NotReady::NeedLease(ticket) => {
                let (state, term) = self.certifying(core)?;
                let is_beside_leader = term.is_beside_leader();
                let Term { engine, records, clock, .. } = term;
                let wait = engine.start_wait(self.physical());
                if wait > limits::BEHIND_MAX {
                    return Err(behind_error(self.id, wait));
                }
                if !is_beside_leader && let Some(lease) = engine.renew_lease(state, clock, self.physical()) {
                    records.push(Record::Lease(lease));
                    self.pump(core);
                }
                self.wait(core, ticket)
            }
            NotReady::NotPrimary => Err(Error::not_primary(self.id)),
        }
    }

    /// Waits until the target may be read at the transaction's snapshot, which moves if that would
    /// miss what was acknowledged before the transaction began. Gives the snapshot.
    async fn gate(&self, view: &mut View, target: &Target, columns: ColumnMask) -> Result<Timestamp> {
        loop {
            let s = self.snapshot(view).await?;
            match self.try_gate(view, target, columns, s).await? {
                None => return Ok(s),
                Some(to) => self.move_to(view, to).await?,
            }
        }
    }

    /// `Some`: not here, but there. The schema is looked at again: the transaction may use
    /// descriptors by now that it did not use when its snapshot was taken, and an older version is
    /// good only for those that have not changed.
    async fn try_gate(&self, view: &View, target: &Target, columns: ColumnMask, s: Timestamp) -> Result<Option<Timestamp>> {
        self.until_readable(|core| self.look(core, view, std::slice::from_ref(target), columns, s)).await
    }

    /// The same for several keys. A key that may be read at `s` stays so: no later transaction
    /// commits at or below `s`.
    async fn try_gates(&self, view: &View, keys: &[Key], columns: ColumnMask, s: Timestamp) -> Result<Option<Timestamp>> {
        for keys in keys.chunks(GATES_AT_ONCE) {
            let targets: Vec<Target> = keys.iter().cloned().map(Target::Key).collect();
            let moved = self.until_readable(|core| self.look(core, view, &targets, columns, s)).await?;
            if moved.is_some() {
                return Ok(moved);
            }
        }
        Ok(None)
    }

    /// Repeats looks until one does not ask to wait, or until what it waits for is known to be in
    /// doubt.
    async fn until_readable<T>(&self, look: impl FnMut(&mut Core) -> Result<Step<T>>) -> Result<T> {
        self.repeat_until_ready(WAIT_MAX, look, |what| self.check_in_doubt(what)).await
    }

    /// An error if a read waits for the outcome of a transaction that depends on a lost group.
    pub(crate) fn check_in_doubt(&self, what: WaitFor) -> Result<()> {
        let WaitFor::Outcome(id) = what else { return Ok(()) };
        let Some(missing) = self.in_doubt.lock().get(&id).copied() else { return Ok(()) };
        // Settled, as where a group itself cannot be reached.
        Err(Error::sql("57P03", format!("a row waits for the outcome of transaction {id}, which is in doubt"))
            .detail(format!("The transaction has written the row, and depends on group {missing}, which cannot be reached."))
            .hint("Try again later; SHOW TRANSACTIONS says more. The row's past can be read AS OF SYSTEM TIME."))
    }

    /// One look at whether targets may be read at `s`.
    fn look(
        &self,
        core: &mut Core,
        view: &View,
        targets: &[Target],
        columns: ColumnMask,
        s: Timestamp,
    ) -> Result<Step<Option<Timestamp>>> {
        if let Some(slots) = self.lacking(core, self.slots(|| SlotSet::of_targets(targets)))? {
            return Ok(Step::Slots(slots));
        }
        let looked = self.ask(core, |primary, now| {
            let checked = primary.schema(now, &view.schema, s);
            if !matches!(checked, SchemaCheck::Passed) && self.common.rules.rechecks_schema() {
                return Err(checked);
            }
            let mut gates = targets.iter().map(|target| (target, primary.gate(now, target, columns, s)));
            Ok(gates.find(|(_, gate)| !matches!(gate, ReadGate::Ready)))
        })?;
        match looked {
            Err(checked) => self.schema_checked(core, checked, None),
            Ok(None | Some((_, ReadGate::Ready))) => Ok(Step::Ready(None)),
            Ok(Some((_, ReadGate::MoveTo(to)))) => Ok(Step::Ready(Some(to))),
            Ok(Some((_, ReadGate::Wait(ticket)))) => self.wait(core, ticket),
            Ok(Some((_, ReadGate::NotReady(why)))) => self.not_ready(core, why),
            Ok(Some((target, ReadGate::TooOld))) => {
                let key = target.start().clone();
                Err(conflict_error(&Conflict { key, reason: ConflictReason::BelowGcThreshold }))
            }
        }
    }

    /// Several reads at one snapshot, for a gateway on another node, or for scans. A wait in a
    /// queue may move the snapshot. The gateway has no entries yet for the values that were read
    /// before the move, so nothing has checked them: all reads are made again.
    pub async fn read(&self, gateway: NodeId, view: &mut View, ops: &[ReadOp]) -> Result<ReadAnswer> {
        let mut ops = Cow::Borrowed(ops);
        for _ in 0..RESCANS_MAX {
            if let Some(answer) = self.read_once(gateway, view, &ops).await? {
                return Ok(answer);
            }
            ops.to_mut().iter_mut().for_each(ReadOp::repeat_without_brief_waits);
        }
        Err(kept_changing())
    }

    /// `None`: the snapshot has moved meanwhile.
    async fn read_once(&self, gateway: NodeId, view: &mut View, ops: &[ReadOp]) -> Result<Option<ReadAnswer>> {
        let mut answer = ReadAnswer::default();
        let mut read_at = None;
        view.skipped.clear();
        for op in ops {
            let result = match op {
                ReadOp::Get { keys, columns, locking } => {
                    let mut values = Vec::with_capacity(keys.len());
                    for key in keys {
                        let found = self.get(gateway, view, key, *columns, *locking).await?;
                        if *read_at.get_or_insert(view.snapshot) != view.snapshot {
                            return Ok(None);
                        }
                        answer.newest = answer.newest.max(found.as_ref().map_or(Timestamp::MIN, |v| v.at));
                        values.push(found.and_then(|v| v.value));
                    }
                    ReadResult::Values(values)
                }
                ReadOp::Scan { range, columns, reverse, limit, locking } => {
                    let asked = PageAsked { range, columns: *columns, reverse: *reverse, limit: *limit, locking: *locking };
                    let page = self.scan(gateway, view, asked, &mut answer.newest).await?;
                    if *read_at.get_or_insert(view.snapshot) != view.snapshot {
                        return Ok(None);
                    }
                    page
                }
                ReadOp::Share { key } => {
                    self.enqueue(gateway, view, key, WireLocking::Shared(WireBusy::Wait)).await?;
                    ReadResult::Share(self.share(key).await?)
                }
                ReadOp::Reserve { key, late } => {
                    self.enqueue(gateway, view, key, WireLocking::Shared(WireBusy::Wait)).await?;
                    let id = TxnId { hlc: view.began, gateway };
                    ReadResult::Share(self.look_at_share(key, Some((id, late))).await?)
                }
            };
            answer.results.push(result);
        }
        (answer.snapshot, answer.is_settled) = (view.snapshot.unwrap_or_default(), view.is_settled);
        answer.skipped.clone_from(&view.skipped);
        Ok(Some(answer))
    }

    async fn scan(
        &self,
        gateway: NodeId,
        view: &mut View,
        PageAsked { range, columns, reverse, limit, mut locking }: PageAsked<'_>,
        newest: &mut Timestamp,
    ) -> Result<ReadResult> {
        let limits = page_limits(limit.map(|limit| limit as usize));
        for _ in 0..RESCANS_MAX {
            view.skipped.clear();
            let s = match self.settled_snapshot(view) {
                Some(s) => {
                    (view.snapshot, view.is_settled) = (Some(s), true);
                    s
                }
                None => self.gate(view, &Target::Range(range.clone()), columns).await?,
            };
            let page = self.store.scan(range, s, reverse, limits)?;
            let mut rows: Vec<(Key, Bytes)> = Vec::with_capacity(page.rows.len());
            let mut has_waited = false;
            for (key, version) in page.rows {
                *newest = (*newest).max(version.at);
                let Some(value) = version.value else { continue };
                if locking == WireLocking::None {
                    rows.push((key, value));
                    continue;
                }
                match self.enqueue(gateway, view, &key, locking).await? {
                    Queued::Granted => rows.push((key, value)),
                    Queued::Waited => {
                        has_waited = true;
                        rows.push((key, value));
                    }
                    Queued::Skip => view.skipped.push(key),
                }
            }
            if has_waited {
                // The transaction that held a row may have changed it, or others in the range: read
                // again where nothing is missed.
                self.move_forward(view).await?;
                locking = locking.without_brief_wait();
                continue;
            }
            self.check_lease()?;
            return Ok(ReadResult::Page { rows, rest: page.rest });
        }
        Err(kept_changing())
    }

    /// Shows a page of rows to a visitor, for a gateway on this node: what is left of the range,
    /// and when the newest row was written.
    pub async fn visit(
        &self,
        view: &mut View,
        scan: &Scan,
        visitor: &mut dyn RowVisitor,
    ) -> Result<(Option<KeyRange>, Timestamp)> {
        let at = self.snapshot_of(view, &Target::Range(scan.range.clone()), scan.columns).await?;
        let limits = page_limits(scan.limit);
        let mut newest = Timestamp::MIN;
        let rest = self.store.visit(&scan.range, at, scan.reverse, limits, visitor.is_brief(), &mut |key, written, value| {
            newest = newest.max(written);
            visitor.row(key, value)
        })?;
        self.check_lease()?;
        Ok((rest, newest))
    }

    /// Where the transaction reads, once all that may change the target up to there has been
    /// applied.
    pub(super) async fn snapshot_of(&self, view: &mut View, target: &Target, columns: ColumnMask) -> Result<Timestamp> {
        match self.settled_snapshot(view) {
            Some(at) => {
                (view.snapshot, view.is_settled) = (Some(at), true);
                Ok(at)
            }
            None => self.gate(view, target, columns | ColumnMask::EXISTENCE).await,
        }
    }

    /// How far a number may go by deltas of this site; `None` if it has no share of it. No queue is
    /// entered.
    pub async fn share(&self, share: &Key) -> Result<Option<Offer>> {
        self.look_at_share(share, None).await
    }

    async fn look_at_share(&self, share: &Key, reserve: Option<(TxnId, &Late)>) -> Result<Option<Offer>> {
        let offer = self
            .until_ready(WAIT_MAX, |core| {
                self.leading(core)?;
                let look = self.ask_term(core, |Deciders { engine, .. }, now| match reserve {
                    Some((id, late)) => engine.reserve_tokens(&now.versions, (id, share, late), now.clock, now.physical_micros),
                    None => engine.share(&now.versions, share, now.clock, now.physical_micros),
                })?;
                match look {
                    ShareLook::Offer(offer) => Ok(Step::Ready(offer)),
                    ShareLook::Wait(ticket) => self.wait(core, ticket),
                    ShareLook::NotReady(why) => self.not_ready(core, why),
                }
            })
            .await?;
        self.check_lease()?;
        Ok(offer)
    }

    /// What the clock of this node shows: this primary has acknowledged nothing above it.
    pub fn hybrid_now(&self) -> Timestamp {
        self.clock.now(self.physical())
    }

    /// What deltas needed of each share that is in use, since this was last asked for; nothing
    /// where this is not the primary.
    pub fn take_demands(&self) -> Vec<(Key, Demand)> {
        let mut core = self.core.lock();
        core.term.as_mut().map_or_else(Vec::new, |term| term.engine.take_demands())
    }

    /// The tokens of a share that is in use; `None` where it is not, or this is not the primary.
    pub fn free(&self, share: &Key) -> Option<Free> {
        self.core.lock().term.as_ref()?.engine.free(share)
    }

    /// A forecast of what a share will need.
    pub fn expect(&self, share: &Key, wanted: Free) {
        if let Some(term) = &mut self.core.lock().term {
            term.engine.expect(share, wanted);
        }
    }

    // --- wait queues

    /// Takes the key's entry; `false` if it is to be skipped.
    async fn lock_key(&self, gateway: NodeId, view: &mut View, key: &Key, locking: WireLocking) -> Result<bool> {
        match self.enqueue(gateway, view, key, locking).await? {
            Queued::Granted => {}
            Queued::Waited => self.move_forward(view).await?,
            Queued::Skip => return Ok(false),
        }
        // The transaction that held the entry before has committed: a snapshot from before that
        // would only fail at certification.
        if let Some(s) = view.snapshot {
            let is_stale = self.store.newest(key.as_bytes())?.is_some_and(|v| v.at > s);
            if is_stale {
                self.move_forward(view).await?;
            }
        }
        Ok(true)
    }

    async fn enqueue(&self, gateway: NodeId, view: &View, key: &Key, locking: WireLocking) -> Result<Queued> {
        let (mode, busy) = match locking {
            WireLocking::None => return Ok(Queued::Granted),
            WireLocking::Exclusive(b) => (Mode::Exclusive, b),
            WireLocking::Shared(b) => (Mode::Shared, b),
            WireLocking::KeyKept(b) => (Mode::KeyKept, b),
            WireLocking::KeyShared(b) => (Mode::KeyShared, b),
        };
        let owner = Owner { gateway, session: view.session, began: view.began, since: view.since };
        let timeout = view.lock_timeout.unwrap_or(Duration::MAX);
        let is_in_pod;
        let (place, ended) = {
            let mut core = self.core.lock();
            let (_, term) = self.certifying(&mut core)?;
            is_in_pod = term.outlet.member().is_some();
            let now = Timestamp::from_micros(self.physical());
            let if_busy = match busy {
                WireBusy::Wait if is_in_pod => IfBusy::Wait { until: now.plus(POD_QUEUE_MAX.min(timeout)) },
                WireBusy::Wait => IfBusy::Wait { until: view.lock_timeout.map_or(Timestamp::MAX, |t| now.plus(t)) },
                WireBusy::Briefly => IfBusy::Wait { until: now.plus(BRIEF_WAIT) },
                WireBusy::Refuse | WireBusy::Skip => IfBusy::Refuse,
            };
            let mut ended = Vec::new();
            let enqueued = term.queues.acquire(owner, key, mode, if_busy, &mut ended);
            term.end_waits(ended);
            match enqueued {
                Enqueued::Granted => return Ok(Queued::Granted),
                Enqueued::Busy if busy == WireBusy::Skip => return Ok(Queued::Skip),
                Enqueued::Busy => {
                    return Err(Error::sql("55P03", "could not obtain lock on row").detail(format!("key {key:?}")));
                }
                Enqueued::Deadlock if busy == WireBusy::Briefly => return Ok(Queued::Granted),
                Enqueued::Deadlock => return Err(deadlock(key)),
                Enqueued::Over => return Err(is_over()),
                Enqueued::Wait(place) => {
                    let (tx, rx) = oneshot::channel();
                    term.places.insert(place, tx);
                    (place, rx)
                }
            }
        };
        self.common.metrics.add(Counter::QueueWaits);
        let guard = CancelPlace { replica: self, place };
        let how = ended.await.map_err(|_| Error::not_primary(self.id))?;
        std::mem::forget(guard);
        match how {
            Ending::Granted => Ok(Queued::Waited),
            Ending::Deadlock | Ending::TimedOut if busy == WireBusy::Briefly => Ok(Queued::Waited),
            Ending::TimedOut if is_in_pod && timeout > POD_QUEUE_MAX => Ok(Queued::Waited),
            Ending::Deadlock => Err(deadlock(key)),
            Ending::Over => Err(is_over()),
            Ending::TimedOut => {
                Err(Error::sql("55P03", "canceling statement due to lock timeout").detail(format!("key {key:?}")))
            }
        }
    }

    /// Moves the transaction's snapshot to now, if nothing it read has changed since.
    async fn move_forward(&self, view: &mut View) -> Result<()> {
        if view.snapshot.is_none() {
            return Ok(());
        }
        let s = self.until_ready(WAIT_MAX, |core| self.open(core, view)).await?.at;
        self.move_to(view, s).await
    }

    /// Moves the transaction's snapshot to `s`, if nothing it read has changed by then.
    async fn move_to(&self, view: &mut View, s: Timestamp) -> Result<()> {
        let moved = view.has_entries && self.until_ready(WAIT_MAX, |core| self.try_move(core, view, s)).await?;
        if !moved {
            return Err(Error::retry("could not serialize access: concurrent write")
                .detail("A row that the transaction had read was changed while it waited for another one.")
                .hint("Run the transaction again."));
        }
        (view.snapshot, view.is_settled) = (Some(s), false);
        view.entries.iter_mut().for_each(|e: &mut ReadEntry| e.until = s);
        self.check_schema(view, s).await
    }

    fn try_move(&self, core: &mut Core, view: &View, s: Timestamp) -> Result<Step<bool>> {
        let slots = self.slots(|| SlotSet::of_targets(view.entries.iter().map(|entry| &entry.target)));
        if let Some(slots) = self.lacking(core, slots)? {
            return Ok(Step::Slots(slots));
        }
        let may = self.ask(core, |primary, now| {
            if now.clock.is_shared() {
                // Nobody draws at or below it any more.
                if now.clock.now(now.physical_micros) < s {
                    return false;
                }
                now.clock.advance_to(s);
            }
            primary.forward(now, &view.entries, s)
        })?;
        Ok(Step::Ready(may))
    }

    async fn check_schema(&self, view: &View, s: Timestamp) -> Result<()> {
        self.until_ready(WAIT_MAX, |core| {
            let checked = self.ask(core, |primary, now| primary.schema(now, &view.schema, s))?;
            self.schema_checked(core, checked, ())
        })
        .await
    }

    /// The transaction is over: leaves all queues.
    pub fn release_locks(&self, owner: Owner) {
        if let Some(term) = &mut self.core.lock().term {
            term.engine.release_tokens(TxnId { hlc: owner.began, gateway: owner.gateway });
        }
        self.change_queues(|queues, ended| queues.release_all(owner, ended));
    }

    /// The transaction goes on without its entries of these keys.
    pub fn release_keys(&self, owner: Owner, keys: &[Key]) {
        self.change_queues(|queues, ended| keys.iter().for_each(|key| queues.release(owner, key, ended)));
    }

    /// Everybody that the waiter waits for in these queues.
    pub fn ahead_of(&self, waiter: Owner) -> Result<Vec<Owner>> {
        let mut core = self.core.lock();
        let (_, term) = self.certifying(&mut core)?;
        Ok(term.queues.ahead_of(waiter))
    }

    /// A gateway is gone, with all its sessions.
    pub fn release_gateway(&self, gateway: NodeId) {
        self.change_queues(|queues, ended| queues.gateway_lost(gateway, ended));
    }

    /// Changes the wait queues of the present term, if there is one, and tells those whose wait has
    /// ended.
    fn change_queues(&self, change: impl FnOnce(&mut Queues, &mut Vec<Ended>)) {
        let mut core = self.core.lock();
        let Some(term) = &mut core.term else { return };
        let mut ended = Vec::new();
        change(&mut term.queues, &mut ended);
        term.end_waits(ended);
    }

    // --- commits

    /// Certifies and commits a transaction that touches this group only. Idempotent by the
    /// transaction's id. `None`: what it read of GLOBAL rows has to be looked at again.
    pub async fn commit(&self, request: &CommitRequest) -> Result<Option<CommitOutcome>> {
        let deadline = Instant::now() + WAIT_MAX;
        while self.over_budget() {
            // What is applied or appended waits for the disk; so do commits, with nothing held.
            // Neither YES nor NO would be right: an earlier copy of the request may have committed.
            if Instant::now() >= deadline {
                return Err(Error::unavailable(format!("the disk of the primary of group {} is too slow", self.id)));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let _claim =
            request.reads.iter().any(|e| e.until == ReadEntry::AT_PREPARE).then(|| Claim { replica: self, id: request.id });
        let slots = self.slots(|| SlotSet::of_request(request));
        let certified = self
            .until_ready(WAIT_MAX, |core| {
                if self.certifying(core)?.1.is_beside_leader() && !is_plain(request) {
                    return Err(Error::not_primary(self.id));
                }
                if let Some(slots) = self.lacking(core, slots)? {
                    return Ok(Step::Slots(slots));
                }
                match self.ask(core, |primary, now| primary.certify(now, request))? {
                    Certified::Append { at, writes } => {
                        let (_, term) = self.certifying(core)?;
                        term.pending.push(Pending::Committed(Committed { id: request.id, at, writes }));
                        let (tx, applied) = oneshot::channel();
                        term.acks.insert(at, tx);
                        self.pump(core);
                        Ok(Step::Ready(InFlight::Applied(at, applied)))
                    }
                    Certified::Done(outcome) => Ok(Step::Ready(InFlight::Done(Some(outcome)))),
                    Certified::Refuse(ticket) => {
                        self.certifying(core)?.1.records.push(Record::Refused(request.id));
                        self.pump(core);
                        self.wait(core, ticket)
                    }
                    Certified::RecheckGlobal => Ok(Step::Ready(InFlight::Done(None))),
                    Certified::Wait(ticket) => self.wait(core, ticket),
                    Certified::NotReady(why) => self.not_ready(core, why),
                }
            })
            .await?;
        match certified {
            InFlight::Done(outcome) => {
                if self.fast.is_beside_leader() && request.writes.is_empty() {
                    // What it has read was current: who says so must hold the lease.
                    self.check_lease()?;
                }
                Ok(outcome)
            }
            // The gateway asks again with the same id, for as long as it has patience. A dropped
            // sender means that the term ended; a log without a quorum may be as long without a
            // word.
            InFlight::Applied(at, applied) => {
                match tokio::time::timeout(WAIT_MAX + limits::arrival(request.bytes()), applied).await {
                    Ok(Ok(())) => {
                        if self.fast.is_beside_leader() {
                            self.common.metrics.add(Counter::PodCommits);
                        }
                        Ok(Some(CommitOutcome::Committed(at)))
                    }
                    Ok(Err(_)) => Err(Error::not_primary(self.id)),
                    Err(_) => Err(Error::unavailable(format!("the log of group {} has no quorum, or is too slow", self.id))),
                }
            }
        }
    }
}

/// What a primary waits for, in words.
fn waited_for(what: WaitFor) -> &'static str {
    match what {
        WaitFor::Applied(_) => "a transaction in flight",
        WaitFor::Outcome(_) => "a prepared transaction",
        WaitFor::Clock(_) => "its clock",
        WaitFor::Lease => "a lease",
        WaitFor::Grant => "a schema grant",
    }
}

enum InFlight {
    Applied(Timestamp, oneshot::Receiver<()>),
    Done(Option<CommitOutcome>),
}

/// A page of rows as a gateway asks for it.
struct PageAsked<'a> {
    range: &'a KeyRange,
    columns: ColumnMask,
    reverse: bool,
    limit: Option<u64>,
    locking: WireLocking,
}

enum Queued {
    Granted,
    Waited,
    Skip,
}

fn kept_changing() -> Error {
    Error::retry("could not serialize access: rows kept changing while they were being locked")
}

/// Nobody is there any more to read it.
fn is_over() -> Error {
    Error::retry("the transaction that waited for a row is over")
}

fn deadlock(key: &Key) -> Error {
    Error::new(ErrorKind::Retry, "40P01", "deadlock detected")
        .detail(format!("waiting for key {key:?} would close a cycle of waits"))
        .hint("Run the transaction again.")
}

/// Takes a ticket back when the wait is abandoned.
struct CancelTicket<'a> {
    replica: &'a Replica,
    ticket: Ticket,
}
impl Drop for CancelTicket<'_> {
    fn drop(&mut self) {
        if let Some(term) = &mut self.replica.core.lock().term {
            term.wakers.remove(&self.ticket);
            term.engine.cancel(self.ticket);
        }
    }
}

/// What a transaction has claimed is free again when its commit has ended, or is abandoned.
struct Claim<'a> {
    replica: &'a Replica,
    id: TxnId,
}
impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(term) = &mut self.replica.core.lock().term {
            let mut woken = Vec::new();
            term.engine.give_up_claim(self.id, &mut woken);
            term.wake(woken);
        }
    }
}

/// Leaves a queue when the wait is abandoned.
struct CancelPlace<'a> {
    replica: &'a Replica,
    place: Place,
}
impl Drop for CancelPlace<'_> {
    fn drop(&mut self) {
        if let Some(term) = &mut self.replica.core.lock().term {
            term.places.remove(&self.place);
            let mut ended = Vec::new();
            term.queues.cancel(self.place, &mut ended);
            term.end_waits(ended);
        }
    }
}
