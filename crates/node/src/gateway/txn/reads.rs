//! Where a transaction reads.
//!
//! * A group whose primary is in this region: there, fresh, at one snapshot.
//! * A group homed elsewhere: at the nearest replica, at its closed timestamp, with what this
//!   gateway knows to be newer laid over it. No message leaves the region; certification decides
//!   whether it was current.
//! * A group of GLOBAL tables: at the nearest replica, at present time ([`super::global`]).
//! * A group that this transaction has already read at its primary: at the primary, also after the
//!   primary has moved. A replica is older, and rows that the transaction has seen could be
//!   missing.
//! * A group homed elsewhere after it was out of date twice, or when a row must not be waited for
//!   or be left out (`NOWAIT`, `SKIP LOCKED`): at the distant primary, where the wait queue is.

use super::Txn;
use super::deadlock::{Watch, unless_deadlocked};
use super::part::{Part, merged, without};
use super::protocol::ATTEMPTS_AT_REPLICAS;
use crate::gateway::READ_PATIENCE;
use crate::membership::ask::Tries;
use crate::replica::Replica;
use crate::replica::groups::Route;
use crate::replica::pages::covered;
use crate::transport::wire::{ReadAnswer, ReadOp, ReadResult, ReplicaAnswer, ReplicaView, Request, Response, View};
use bytes::Bytes;
use meridian_base::escrow::{Late, Offer};
use meridian_base::{ColumnMask, Error, GroupId, Key, KeyRange, NodeId, Result, Target, Timestamp, escrow};
use meridian_sql::env::{Locking, OnLocked, RowVisitor, Scan, ScanRows, SharedScan};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const CALL_TIMEOUT: Duration = Duration::from_secs(6);
/// How long the call of a read that waits in a queue may last.
const WAIT_FOR_ROWS_MAX: Duration = Duration::from_secs(3600);
/// How often who waits in a queue elsewhere looks whether it still does.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// A replica in the region answers at once or is not worth waiting for.
const REPLICA_TIMEOUT: Duration = Duration::from_millis(500);
/// Read entries that travel with every read, so that the primary can move the snapshot; more of
/// them only with locking reads.
const ENTRIES_SENT_MAX: usize = 32;

/// A result, with the `until` of each key, or of the page.
pub(super) type Found = (ReadResult, Vec<Timestamp>);

/// Whether a host of a pod may answer as well as the primary.
fn is_plain(ops: &[ReadOp]) -> bool {
    ops.iter().all(|op| match op {
        ReadOp::Get { keys, .. } => !keys.iter().any(|key| escrow::is_key(key.as_bytes())),
        ReadOp::Scan { range, .. } => !escrow::is_key(range.start.as_bytes()),
        ReadOp::Share { .. } | ReadOp::Reserve { .. } => false,
    })
}

fn another_question() -> Error {
    Error::internal("a node answered another question")
}

impl Txn {
    /// One key that this transaction has not written.
    pub(super) async fn read_key(
        &mut self,
        at: usize,
        key: &Key,
        columns: ColumnMask,
        locking: Locking,
    ) -> Result<Option<Bytes>> {
        let locking = self.queueing(at, locking);
        if !self.reads_global(&self.parts[at], locking)
            && let Some(replica) = self.server_here(at, std::slice::from_ref(key))
        {
            let watch = self.before_wait(at, locking);
            let me = self.gateway.shared.me();
            self.note_queue(at, me, locking);
            let part = &mut self.parts[at];
            part.prefetched.clear();
            let found = {
                let read = pin!(replica.get(me, &mut part.view, key, columns | ColumnMask::EXISTENCE, locking.into()));
                unless_deadlocked(watch, read).await
            };
            match found {
                Ok(version) => {
                    if std::mem::take(&mut part.view.skipped).is_empty() {
                        let until = part.view.snapshot.expect("a read has a snapshot");
                        part.record(Target::Key(key.clone()), columns, until);
                        if locking != Locking::None {
                            self.note_entries(at, [key.clone()]);
                        }
                    }
                    self.note_newest(at, version.as_ref().map_or(Timestamp::MIN, |v| v.at));
                    return Ok(version.and_then(|v| v.value));
                }
                Err(e) if e.is_unavailable() => {}
                Err(e) => return Err(self.note_failure(e)),
            }
        }
        let mut found = self.read_keys(at, vec![key.clone()], columns, locking).await?;
        let (value, until) = found.pop().ok_or_else(another_question)?;
        if let Some(until) = until {
            self.parts[at].record(Target::Key(key.clone()), columns, until);
        }
        Ok(value)
    }

    /// Several keys that this transaction has not written.
    pub(super) async fn values_of(
        &mut self,
        at: usize,
        keys: Vec<Key>,
        columns: ColumnMask,
        locking: Locking,
    ) -> Result<Vec<Option<Bytes>>> {
        if self.queueing(at, locking) == Locking::None
            && !self.reads_global(&self.parts[at], locking)
            && let Some(replica) = self.server_here(at, &keys)
        {
            let part = &mut self.parts[at];
            part.prefetched.clear();
            match replica.get_many(&mut part.view, &keys, columns | ColumnMask::EXISTENCE).await {
                Ok(found) => {
                    let until = part.view.snapshot.expect("a read has a snapshot");
                    part.view.entries.reserve(keys.len());
                    keys.into_iter().for_each(|key| part.record(Target::Key(key), columns, until));
                    self.note_newest(at, found.iter().flatten().map(|v| v.at).max().unwrap_or(Timestamp::MIN));
                    return Ok(found.into_iter().map(|version| version.and_then(|v| v.value)).collect());
                }
                Err(e) if e.is_unavailable() => {}
                Err(e) => return Err(self.note_failure(e)),
            }
        }
        let found = self.read_keys(at, keys.clone(), columns, locking).await?;
        let part = &mut self.parts[at];
        for (key, (_, until)) in keys.into_iter().zip(&found) {
            if let Some(until) = until {
                part.record(Target::Key(key), columns, *until);
            }
        }
        Ok(found.into_iter().map(|(value, _)| value).collect())
    }

    /// Several keys that this transaction has not written, with the `until` of each; none for those
    /// that were skipped. Nothing is recorded.
    pub(super) async fn read_keys(
        &mut self,
        at: usize,
        keys: Vec<Key>,
        columns: ColumnMask,
        locking: Locking,
    ) -> Result<Vec<(Option<Bytes>, Option<Timestamp>)>> {
        let locking = self.queueing(at, locking);
        let op = ReadOp::Get { keys: keys.clone(), columns: columns | ColumnMask::EXISTENCE, locking: locking.into() };
        let (ReadResult::Values(values), untils) = self.ask(at, op, locking).await? else { return Err(another_question()) };
        if values.len() != keys.len() || untils.len() != keys.len() {
            return Err(another_question());
        }
        let group = self.parts[at].group;
        let mut found: Vec<(Option<Bytes>, Timestamp)> = values.into_iter().zip(untils).collect();
        if self.is_overlaid(at) {
            for (key, found) in keys.iter().zip(&mut found) {
                if let Some(newer) = self.gateway.overlay.get(group, key, found.1) {
                    self.note_newest(at, newer.version);
                    *found = (newer.value, newer.until);
                }
            }
        }
        let skipped = std::mem::take(&mut self.parts[at].view.skipped);
        let until = |key, until| (!skipped.contains(key)).then_some(until);
        Ok(keys.iter().zip(found).map(|(key, (value, at))| (value, until(key, at))).collect())
    }

    /// A page of a scan, recorded, with the transaction's own writes in it.
    pub(super) async fn read_page(&mut self, at: usize, scan: Scan) -> Result<ScanRows> {
        let locking = self.queueing(at, scan.locking);
        let op = ReadOp::Scan {
            range: scan.range.clone(),
            columns: scan.columns | ColumnMask::EXISTENCE,
            reverse: scan.reverse,
            limit: scan.limit.map(|l| l as u64),
            locking: locking.into(),
        };
        let (ReadResult::Page { mut rows, rest }, untils) = self.ask(at, op, locking).await? else {
            return Err(another_question());
        };
        let until = *untils.first().ok_or_else(another_question)?;
        let covered = covered(&scan.range, rest.as_ref(), scan.reverse);
        let newer = match self.is_overlaid(at) {
            true => self.gateway.overlay.range(self.parts[at].group, &covered, until),
            false => Vec::new(),
        };
        newer.iter().for_each(|(_, newer)| self.note_newest(at, newer.version));
        let part = &mut self.parts[at];
        let skipped = std::mem::take(&mut part.view.skipped);
        if !covered.is_empty() {
            // In their order: of the two only one is ever there.
            let mut apart: Vec<Key> = newer.iter().map(|(key, _)| key.clone()).chain(skipped).collect();
            apart.sort_unstable();
            for piece in without(&covered, apart.into_iter()) {
                part.record(Target::Range(piece), scan.columns, until);
            }
            for (key, newer) in &newer {
                part.record(Target::Key(key.clone()), scan.columns, newer.until);
            }
            rows = merged(rows, newer.into_iter().map(|(key, newer)| (key, newer.value)), scan.reverse);
        }
        Ok(ScanRows { rows: part.overlay(rows, &covered, scan.reverse), rest })
    }

    /// Shows a page to a visitor where it lies, if this node is the primary and nothing has to be
    /// laid over it. The answer is what is left of the range; `None` means that the page has to be
    /// read in another way.
    pub(super) async fn visit_here(
        &mut self,
        group: GroupId,
        scan: &Scan,
        visitor: &mut dyn RowVisitor,
    ) -> Result<Option<Option<KeyRange>>> {
        let Some((at, replica)) = self.plain_here(group, scan)? else { return Ok(None) };
        self.note_page();
        let part = &mut self.parts[at];
        part.prefetched.clear();
        match replica.visit(&mut part.view, scan, visitor).await {
            Ok((rest, newest)) => {
                let until = part.view.snapshot.expect("a read has a snapshot");
                let covered = covered(&scan.range, rest.as_ref(), scan.reverse);
                if !covered.is_empty() {
                    part.record(Target::Range(covered), scan.columns, until);
                }
                self.note_newest(at, newest);
                Ok(Some(rest))
            }
            Err(e) if e.is_unavailable() => {
                visitor.restart();
                Ok(None)
            }
            Err(e) => Err(self.note_failure(e)),
        }
    }

    /// Where a group's part is, and the replica on this node that has all of a range, if nothing
    /// has to be laid over it.
    fn plain_here(&mut self, group: GroupId, scan: &Scan) -> Result<Option<(usize, Arc<Replica>)>> {
        if self.reserves_reads || self.reserved.is_some() {
            return Ok(None);
        }
        let at = self.part(group)?;
        let part = &self.parts[at];
        let is_plain = !scan.range.is_empty()
            && part.is_fresh()
            && part.writes.is_empty()
            && self.queueing(at, scan.locking) == Locking::None
            && !self.reads_global(part, scan.locking);
        let replica = self.gateway.shared.groups.local_server(group).filter(|_| is_plain);
        let answers = |r: &Arc<Replica>| r.is_serving() || !escrow::is_key(scan.range.start.as_bytes());
        Ok(replica.filter(answers).map(|replica| (at, replica)))
    }

    /// A range for several threads, if this node is the primary, the transaction reads the present,
    /// and nothing has to be laid over it. All of it counts as read.
    pub(super) async fn share_here(&mut self, group: GroupId, scan: &Scan) -> Result<Option<Arc<dyn SharedScan>>> {
        if self.options.as_of.is_some() {
            return Ok(None);
        }
        let Some((at, replica)) = self.plain_here(group, scan)? else { return Ok(None) };
        self.note_page();
        let part = &mut self.parts[at];
        part.prefetched.clear();
        match replica.share_scan(&mut part.view, &scan.range, scan.columns).await {
            Ok(Some(shared)) => {
                let until = part.view.snapshot.expect("a read has a snapshot");
                part.record(Target::Range(scan.range.clone()), scan.columns, until);
                Ok(Some(shared))
            }
            Ok(None) => Ok(None),
            Err(e) if e.is_unavailable() => Ok(None),
            Err(e) => Err(self.note_failure(e)),
        }
    }

    /// The replica on this node that answers for these keys, if there is one. Keys of escrow shares
    /// are asked for at the primary itself.
    fn server_here(&self, at: usize, keys: &[Key]) -> Option<Arc<Replica>> {
        let has_shares = || keys.iter().any(|key| escrow::is_key(key.as_bytes()));
        let replica = self.gateway.shared.groups.local_server(self.parts[at].group)?;
        (replica.is_serving() || !has_shares()).then_some(replica)
    }

    /// Whether this gateway may know more than where the part is read. What is newer than a
    /// snapshot of GLOBAL rows helps only who is going to be certified.
    fn is_overlaid(&self, at: usize) -> bool {
        let part = &self.parts[at];
        !part.is_fresh() || (part.is_global && !self.options.read_only && part.view.snapshot.is_none())
    }

    /// Whether reads of this group cost a message, so that fetching ahead pays.
    pub(super) fn is_elsewhere(&self, group: GroupId) -> bool {
        if self.gateway.shared.catalog.is_global(group) {
            return !self.gateway.shared.groups.is_held_here(group);
        }
        self.gateway.shared.groups.local_server(group).is_none() && !self.has_replica_here(group)
    }

    /// Whether a replica on this node answers, without a message: it may lag behind a step of a
    /// schema change.
    fn has_replica_here(&self, group: GroupId) -> bool {
        let above = self.options.schema_committed_at;
        self.reads_at_replica(group, Locking::None)
            && self.gateway.shared.groups.replica(group).is_some_and(|replica| replica.is_closed_at(above))
    }

    fn may_read_at_replicas(&self) -> bool {
        // What only reads and is not a block may have been sent to its client before it ends.
        let is_speculative = !self.options.read_only || self.options.is_held_back || self.options.is_block;
        is_speculative && self.protocol.reads_at_replicas(self.attempts)
    }

    /// From the second abort on, a block that only reads takes a shared place in the wait queue of
    /// every row it reads, for a moment. (A statement by itself reserves what it reads:
    /// [`super::reserving`].)
    fn queueing(&self, at: usize, locking: Locking) -> Locking {
        let wants =
            !self.parts[at].is_global && self.options.read_only && self.options.is_block && self.attempts >= ATTEMPTS_AT_REPLICAS;
        match locking == Locking::None && wants && !self.protocol.reads_at_primaries() {
            true => Locking::Shared(OnLocked::Briefly),
            false => locking,
        }
    }

    /// Before a read that may wait in a queue. What it has to look for meanwhile, if it holds
    /// entries elsewhere or is about to.
    fn before_wait(&mut self, at: usize, locking: Locking) -> Option<Watch> {
        if locking == Locking::None {
            return None;
        }
        let is_elsewhere = |(other, part): (usize, &Part)| other != at && part.has_queued();
        if !self.is_branch && !self.parts.iter().enumerate().any(is_elsewhere) {
            return None;
        }
        let (gateway, group) = (self.gateway.clone(), self.parts[at].group);
        let owner = self.owner();
        self.options.deadlock_timeout.map(|patience| Watch { gateway, owner, group, patience })
    }

    /// A primary is about to be asked for entries.
    fn note_queue(&mut self, at: usize, primary: NodeId, locking: Locking) {
        if locking != Locking::None {
            self.parts[at].queued_at.insert(primary);
        }
    }

    pub(super) fn reads_at_replica(&self, group: GroupId, locking: Locking) -> bool {
        let waits_or_none = locking.if_busy().is_none_or(|busy| matches!(busy, OnLocked::Wait | OnLocked::Briefly));
        // A replica may lack rows that the transaction has seen at the primary.
        let has_seen_primary = self.parts.iter().any(|p| p.group == group && p.view.snapshot.is_some());
        waits_or_none && self.may_read_at_replicas() && !has_seen_primary && !self.gateway.shared.groups.is_primary_near(group)
    }

    /// One read, wherever it belongs.
    async fn ask(&mut self, at: usize, op: ReadOp, locking: Locking) -> Result<Found> {
        let group = self.parts[at].group;
        if self.reads_global(&self.parts[at], locking) {
            return self.ask_global(at, op).await;
        }
        if self.reads_at_replica(group, locking)
            && let Some(found) = self.ask_replica(at, &op).await
        {
            return Ok(found);
        }
        let watch = self.before_wait(at, locking);
        let mut entered = match &op {
            ReadOp::Get { keys, .. } if locking != Locking::None => keys.clone(),
            _ => Vec::new(),
        };
        let asked = unless_deadlocked(watch, Box::pin(self.ask_primary(at, op, locking)).as_mut()).await;
        let result = match asked {
            Ok(result) => result,
            Err(e) => return Err(self.note_failure(e)),
        };
        if locking != Locking::None {
            if let ReadResult::Page { rows, .. } = &result {
                entered.extend(rows.iter().map(|(key, _)| key.clone()));
            }
            let skipped = &self.parts[at].view.skipped;
            entered.retain(|key| !skipped.contains(key));
            self.note_entries(at, entered);
        }
        let until = self.parts[at].view.snapshot.ok_or_else(another_question)?;
        let untils = match &result {
            ReadResult::Values(values) => vec![until; values.len()],
            ReadResult::Page { .. } | ReadResult::Share(_) => vec![until],
        };
        Ok((result, untils))
    }

    /// Enters the queue of an escrow share at its primary, beside other changes of it, and asks for
    /// its free tokens, of which the primary may hold some (`reserve`). Nothing is read that is
    /// certified.
    pub(super) async fn enter_share(&mut self, at: usize, key: &Key, reserve: Option<Late>) -> Result<Option<Offer>> {
        let locking = Locking::Shared(OnLocked::Wait);
        let watch = self.before_wait(at, locking);
        let op = match reserve {
            Some(late) => ReadOp::Reserve { key: key.clone(), late },
            None => ReadOp::Share { key: key.clone() },
        };
        let asked = unless_deadlocked(watch, Box::pin(self.ask_primary(at, op, locking)).as_mut()).await;
        match asked {
            Ok(ReadResult::Share(offer)) => {
                self.note_entries(at, [key.clone()]);
                Ok(offer)
            }
            Ok(_) => Err(another_question()),
            Err(e) => Err(self.note_failure(e)),
        }
    }

    /// The nearest replica's answer; `None` if none in this region can give one.
    async fn ask_replica(&mut self, at: usize, op: &ReadOp) -> Option<Found> {
        let part = &self.parts[at];
        let view = ReplicaView { snapshot: part.replica_snapshot, above: self.options.schema_committed_at };
        let ops = std::slice::from_ref(op);
        let mut answer = self.gateway.shared.groups.replica(part.group).and_then(|replica| replica.read_closed(&view, ops).ok());
        if answer.is_none() {
            for node in self.gateway.shared.peers.replicas_near(part.group) {
                answer = self.ask_replica_of(node, part.group, view, ops).await;
                if answer.is_some() {
                    break;
                }
            }
        }
        let mut answer = answer?;
        let found = answer.results.pop()?;
        self.newest = self.newest.max(answer.newest);
        self.parts[at].replica_snapshot = Some(answer.snapshot);
        Some(found)
    }

    async fn ask_replica_of(&self, node: NodeId, group: GroupId, view: ReplicaView, ops: &[ReadOp]) -> Option<ReplicaAnswer> {
        let call = Request::ReadReplica { group, view, ops: ops.to_vec() };
        match self.gateway.shared.rpc.call(node, call, REPLICA_TIMEOUT).await {
            Ok(Response::ReadReplica(answer)) => Some(answer),
            _ => None,
        }
    }

    /// One read at the primary, wherever it is now.
    async fn ask_primary(&mut self, at: usize, op: ReadOp, locking: Locking) -> Result<ReadResult> {
        let mut tries = Tries::for_at_most(READ_PATIENCE);
        let group = self.parts[at].group;
        let ops = vec![op];
        loop {
            self.gateway.shared.check_reach(group)?;
            let asked = Instant::now();
            let route = match is_plain(&ops) {
                true => self.gateway.shared.groups.route_plain(group, tries.made()),
                false => self.gateway.shared.groups.route(group, tries.made()),
            };
            let answer = match route {
                Some(Route::Local(replica)) => {
                    self.note_queue(at, self.gateway.shared.me(), locking);
                    let part = &mut self.parts[at];
                    let before = part.view.snapshot;
                    let answer = replica.read(self.gateway.shared.me(), &mut part.view, &ops).await;
                    if before.is_some() && before != part.view.snapshot {
                        part.prefetched.clear();
                    }
                    answer
                }
                Some(Route::Remote(node)) => self.ask_primary_at(node, at, &ops, locking).await,
                None => Err(Error::unavailable(format!("no primary of group {group} is known"))),
            };
            // A wait in a queue is no part of the patience.
            if locking != Locking::None && asked.elapsed() > READ_PATIENCE {
                tries.extend(READ_PATIENCE);
            }
            match answer {
                Ok(mut answer) => {
                    self.note_newest(at, answer.newest);
                    self.parts[at].view.skipped = std::mem::take(&mut answer.skipped);
                    return answer.results.pop().ok_or_else(another_question);
                }
                Err(e) => tries.another_primary(&self.gateway.shared.groups, group, e).await?,
            }
        }
    }

    async fn ask_primary_at(&mut self, node: NodeId, at: usize, ops: &[ReadOp], locking: Locking) -> Result<ReadAnswer> {
        self.round_trips += u32::from(!self.gateway.shared.rpc.is_near(node));
        self.note_queue(at, node, locking);
        let part = &mut self.parts[at];
        let has_entries = locking != Locking::None || part.view.entries.len() <= ENTRIES_SENT_MAX;
        let entries = if has_entries { part.view.entries.clone() } else { Vec::new() };
        let view = View { entries, has_entries, schema: part.view.schema.clone(), skipped: Vec::new(), ..part.view };
        let group = part.group;
        let call = Request::Read { group, view, ops: ops.to_vec() };
        let answer = match locking {
            Locking::None => self.gateway.shared.rpc.call(node, call, CALL_TIMEOUT).await?,
            _ => self.wait_at(node, group, call).await?,
        };
        let part = &mut self.parts[at];
        match answer {
            Response::Read(answer) => {
                // Without one nothing was read that is certified.
                if answer.snapshot > Timestamp::MIN {
                    part.moved(answer.snapshot, answer.is_settled);
                }
                Ok(answer)
            }
            Response::NotPrimary { hint } => Err(self.gateway.shared.groups.not_primary_there(part.group, node, hint)),
            _ => Err(another_question()),
        }
    }
}

impl Txn {
    /// A read that may wait in a queue. The wait has its own bounds, and the call must not end it.
    /// But a request that waits for long looks now and then whether it still does: a primary that
    /// has forgotten it, or is none any more, would never answer.
    async fn wait_at(&self, node: NodeId, group: GroupId, call: Request) -> Result<Response> {
        let waiter = self.owner();
        let mut answer = pin!(self.gateway.shared.rpc.call(node, call, WAIT_FOR_ROWS_MAX));
        let mut is_missed = false;
        loop {
            if let Ok(answer) = tokio::time::timeout(LOOK_INTERVAL, &mut answer).await {
                return answer;
            }
            let ahead = self.gateway.shared.rpc.call(node, Request::AheadOf { group, waiter }, CALL_TIMEOUT).await;
            let waits = match ahead {
                Ok(Response::NotPrimary { hint }) => return Err(self.gateway.shared.groups.not_primary_there(group, node, hint)),
                Ok(Response::Owners(owners)) => !owners.is_empty(),
                _ => false,
            };
            // Its turn may have come in between: then the answer is on its way.
            if !waits && std::mem::replace(&mut is_missed, true) {
                return Err(Error::unavailable(format!(
                    "node {node} does not know any more who waits for rows of group {group}"
                )));
            }
            is_missed &= !waits;
        }
    }
}

impl Part {
    /// The primary reads at `snapshot` from now on. If it read elsewhere before, it has checked
    /// every entry up to there.
    fn moved(&mut self, snapshot: Timestamp, is_settled: bool) {
        if self.view.snapshot.is_some_and(|before| before != snapshot) {
            self.prefetched.clear();
            self.view.entries.iter_mut().for_each(|e| e.until = e.until.max(snapshot));
        }
        (self.view.snapshot, self.view.is_settled) = (Some(snapshot), is_settled);
    }
}
