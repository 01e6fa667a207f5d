//! Reads of the past: at one moment for the whole transaction,
//! at the nearest replica that has got there. Nothing is noted for certification, nothing can be
//! refused later, and no transaction is delayed.
//!
//! A bounded time is negotiated once, at the first read, over all groups that the statement's
//! tables have rows in: the newest moment at which the nearest replica of each can serve
//! everything. No message leaves the region, unless all replicas of a group here are behind the
//! bound, or there is none: then its primary is asked.

use super::Txn;
use crate::gateway::{PRIMARY_PATIENCE, READ_PATIENCE};
use crate::membership::ask::Tries;
use crate::replica::groups::Route;
use crate::transport::wire::{ReadOp, ReadResult, Request, Response};
use bytes::Bytes;
use futures::future::join_all;
use meridian_base::{ColumnMask, Error, GroupId, Key, KeyRange, NodeId, Result, Timestamp};
use meridian_sql::catalog::{Catalog, Descriptor};
use meridian_sql::env::{AsOf, Locking, RowVisitor, Scan, ScanRows};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// A replica in the region that has not got there soon is not worth waiting for.
pub(super) const NEAR_PATIENCE: Duration = Duration::from_millis(100);
/// A message's way beside the wait itself.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) fn another_question() -> Error {
    Error::internal("a node answered another question")
}

impl Txn {
    pub(super) async fn get_past(&mut self, group: GroupId, keys: &[Key], columns: ColumnMask) -> Result<Vec<Option<Bytes>>> {
        let op = ReadOp::Get { keys: keys.to_vec(), columns: columns | ColumnMask::EXISTENCE, locking: Locking::None.into() };
        match self.ask_past(group, op).await? {
            ReadResult::Values(values) if values.len() == keys.len() => Ok(values),
            _ => Err(another_question()),
        }
    }

    pub(super) async fn scan_past(&mut self, group: GroupId, scan: Scan) -> Result<ScanRows> {
        if scan.range.is_empty() {
            return Ok(ScanRows::default());
        }
        let op = ReadOp::Scan {
            range: scan.range,
            columns: scan.columns | ColumnMask::EXISTENCE,
            reverse: scan.reverse,
            limit: scan.limit.map(|l| l as u64),
            locking: Locking::None.into(),
        };
        match self.ask_past(group, op).await? {
            ReadResult::Page { rows, rest } => Ok(ScanRows { rows, rest }),
            ReadResult::Values(_) | ReadResult::Share(_) => Err(another_question()),
        }
    }

    /// Shows a page to a visitor at this node's replica. The answer is what is left of the range;
    /// `None` means that the page has to be read elsewhere.
    pub(super) async fn visit_past(
        &mut self,
        group: GroupId,
        scan: &Scan,
        visitor: &mut dyn RowVisitor,
    ) -> Result<Option<Option<KeyRange>>> {
        let Some(replica) = self.gateway.shared.groups.replica(group).filter(|_| !scan.range.is_empty()) else { return Ok(None) };
        let at = self.moment(group).await?;
        self.note_page();
        match replica.visit_past(at, NEAR_PATIENCE, scan, visitor).await {
            Ok(rest) => Ok(Some(rest)),
            Err(e) if e.is_unavailable() => {
                visitor.restart();
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// One read, at the nearest replica that can serve it.
    async fn ask_past(&mut self, group: GroupId, op: ReadOp) -> Result<ReadResult> {
        let at = self.moment(group).await?;
        let mut tries = Tries::for_at_most(READ_PATIENCE);
        let ops = [op];
        loop {
            let found = match self.ask_past_near(group, at, &ops).await {
                Err(e) if e.is_unavailable() => {
                    self.gateway.shared.check_reach(group)?;
                    self.ask_past_far(group, at, &ops, tries.made()).await
                }
                other => other,
            };
            match found {
                Ok(mut results) => return results.pop().ok_or_else(another_question),
                Err(e) => tries.another_primary(&self.gateway.shared.groups, group, e).await?,
            }
        }
    }

    /// Several reads, at a replica in this region.
    pub(super) async fn ask_past_near(&self, group: GroupId, at: Timestamp, ops: &[ReadOp]) -> Result<Vec<ReadResult>> {
        let mut failure = Error::unavailable(format!("no replica of group {group} is near"));
        if let Some(replica) = self.gateway.shared.groups.replica(group) {
            match replica.read_past(at, NEAR_PATIENCE, ops).await {
                Err(e) if e.is_unavailable() => failure = e,
                other => return other,
            }
        }
        for node in self.gateway.shared.peers.replicas_near(group) {
            match self.ask_past_of(node, group, at, NEAR_PATIENCE, ops).await {
                Err(e) if e.is_unavailable() => failure = e,
                other => return other,
            }
        }
        Err(failure)
    }

    /// At the primary, wherever it is.
    async fn ask_past_far(&mut self, group: GroupId, at: Timestamp, ops: &[ReadOp], attempt: u32) -> Result<Vec<ReadResult>> {
        use crate::replica::groups::Route;
        if let Some(AsOf::Bounded { nearest_only: true, .. }) = self.options.as_of {
            return Err(behind());
        }
        match self.gateway.shared.groups.route(group, attempt) {
            Some(Route::Local(replica)) => replica.read_past(at, PRIMARY_PATIENCE, ops).await,
            Some(Route::Remote(node)) => {
                self.round_trips += u32::from(!self.gateway.shared.rpc.is_near(node));
                self.ask_past_of(node, group, at, PRIMARY_PATIENCE, ops).await
            }
            None => Err(Error::unavailable(format!("no primary of group {group} is known"))),
        }
    }

    async fn ask_past_of(
        &self,
        node: NodeId,
        group: GroupId,
        at: Timestamp,
        patience: Duration,
        ops: &[ReadOp],
    ) -> Result<Vec<ReadResult>> {
        let call = Request::ReadPast { group, at, patience, ops: ops.to_vec() };
        match self.gateway.shared.rpc.call(node, call, patience + MESSAGE_TIMEOUT).await? {
            Response::ReadPast(results) => Ok(results),
            // It holds no replica any more.
            Response::NotPrimary { .. } => Err(Error::unavailable(format!("node {node} holds no replica of group {group}"))),
            _ => Err(another_question()),
        }
    }

    /// The moment that this transaction reads.
    pub(super) async fn moment(&mut self, first: GroupId) -> Result<Timestamp> {
        if let Some(at) = self.past {
            return match self.is_planned_as_it_was(at) {
                true => Ok(at),
                false => Err(Error::sql("40001", "the schema of what is read has changed since the moment that is read")
                    .hint("Run the whole transaction again: it reads a later moment then.")),
            };
        }
        let at = match self.options.as_of {
            None => return Err(Error::internal("a transaction of the present reads the past")),
            Some(AsOf::Exact(at)) => at,
            Some(AsOf::Bounded { min, max, nearest_only }) => self.negotiate(first, min, max, nearest_only).await?,
        };
        self.past = Some(at);
        self.protect();
        Ok(at)
    }

    /// Whether what it uses was the same then as in the catalog that it is planned with. An exact
    /// time has the catalog of that time; a bounded one has a newer catalog, in which other things
    /// may have changed since.
    fn is_planned_as_it_was(&self, at: Timestamp) -> bool {
        if at >= self.options.schema_committed_at {
            return true;
        }
        let Some(replica) = self.gateway.shared.groups.replica(GroupId::CATALOG) else { return false };
        let now = self.gateway.shared.catalog.active();
        let is_same = |then: &Catalog| self.schema.descriptors.iter().all(|d| then.changed_in.get(d) == now.changed_in.get(d));
        self.gateway.shared.catalog.past(&replica.store, at).is_ok_and(|then| is_same(&then))
    }

    async fn negotiate(&mut self, first: GroupId, min: Timestamp, max: Timestamp, nearest_only: bool) -> Result<Timestamp> {
        let groups: Vec<GroupId> = self.groups_in_use(first).into_iter().collect();
        let nodes: BTreeSet<NodeId> = groups.iter().flat_map(|g| self.gateway.shared.peers.replicas_near(*g)).collect();
        let deadline = Instant::now() + NEAR_PATIENCE;
        let (mut nodes, mut patience) = (nodes, NEAR_PATIENCE);
        loop {
            let answers = join_all(nodes.iter().map(|node| self.settled_at(*node, &groups, patience))).await;
            let of_group = |i: usize| {
                let here = self.gateway.shared.groups.replica(groups[i]).map(|replica| replica.settled());
                answers.iter().filter_map(|a| a.get(i).copied().flatten()).chain(here).max()
            };
            let reached = (0..groups.len()).map(|i| of_group(i).unwrap_or(Timestamp::MIN)).min().unwrap_or(min);
            // A clock that is ahead elsewhere has promised more than has happened here.
            let reached = reached.min(self.began).min(max);
            if reached >= min && self.is_planned_as_it_was(reached) {
                return Ok(reached);
            }
            let primaries = groups.iter().enumerate().filter(|(i, _)| of_group(*i).is_none_or(|at| at < min));
            let primaries: BTreeSet<NodeId> = primaries.filter_map(|(_, g)| self.primary_elsewhere(*g)).collect();
            if Instant::now() >= deadline && !nearest_only && !primaries.is_subset(&nodes) {
                (nodes, patience) = (nodes.union(&primaries).copied().collect(), MESSAGE_TIMEOUT);
                self.round_trips += u32::from(primaries.iter().any(|node| !self.gateway.shared.rpc.is_near(*node)));
                continue;
            }
            if Instant::now() >= deadline {
                let planned = self.options.schema_committed_at;
                return match nearest_only {
                    true => Err(behind()),
                    false if self.is_planned_as_it_was(min) => Ok(min),
                    false => Ok(min.max(planned)),
                };
            }
            tokio::time::sleep(NEAR_PATIENCE / 4).await;
        }
    }

    fn primary_elsewhere(&self, group: GroupId) -> Option<NodeId> {
        match self.gateway.shared.groups.route(group, 0) {
            Some(Route::Remote(node)) => Some(node),
            _ => None,
        }
    }

    /// The newest moment of each group that is over at a node's replica, if it has one.
    pub(super) async fn settled_at(&self, node: NodeId, groups: &[GroupId], patience: Duration) -> Vec<Option<Timestamp>> {
        match self.gateway.shared.rpc.call(node, Request::Settled(groups.to_vec()), patience).await {
            Ok(Response::Settled(settled)) => settled,
            _ => Vec::new(),
        }
    }

    /// Where the statement's tables have rows.
    fn groups_in_use(&self, first: GroupId) -> BTreeSet<GroupId> {
        let catalog = self.gateway.shared.catalog.active();
        let tables = self.schema.descriptors.iter().filter_map(|id| match catalog.descriptors.get(id).map(|d| &**d) {
            Some(Descriptor::Table(table)) => Some(table.groups()),
            _ => None,
        });
        tables.flatten().chain([first]).collect()
    }
}

fn behind() -> Error {
    Error::sql("57P03", "no replica in this region is new enough for the bound on staleness")
        .hint("Allow more staleness, or leave out nearest_only to ask the primaries.")
}
