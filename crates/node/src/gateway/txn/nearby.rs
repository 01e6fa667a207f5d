//! Reads of what replicas in this region know (`docs/design/escrow.md`, E10): at one moment, the
//! newest that is over at one replica here of each group. No message leaves the region, nothing is
//! noted for certification, and no transaction is delayed.

use super::Txn;
use super::past::{NEAR_PATIENCE, another_question};
use crate::membership::ask::Tries;
use crate::transport::wire::{ReadOp, ReadResult};
use bytes::Bytes;
use futures::future::{join_all, try_join_all};
use meridian_base::{ColumnMask, Error, GroupId, Key, KeyRange, NodeId, Result, Timestamp};
use meridian_sql::env::{Locking, Scan};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long replicas here are looked for before the statement fails with 57P03.
const PATIENCE: Duration = Duration::from_secs(5);

/// A key and what it holds.
type Version = (Key, Bytes);

impl Txn {
    /// What each group has in each range, in their order.
    pub(super) async fn scan_near(&mut self, groups: &[GroupId], ranges: &[KeyRange]) -> Result<Vec<Vec<Version>>> {
        if let Some(e) = &self.failed {
            return Err(e.clone());
        }
        let found = match self.options.as_of {
            Some(_) => self.ranges_past(groups, ranges).await?,
            None => self.ranges_near(groups, ranges).await?,
        };
        Ok(groups.iter().zip(found).map(|(group, found)| self.overlaid(*group, ranges, found)).collect())
    }

    /// With the transaction's own writes.
    pub(super) fn overlaid(&self, group: GroupId, ranges: &[KeyRange], found: Vec<Vec<Version>>) -> Vec<Version> {
        match self.parts.iter().find(|part| part.group == group) {
            Some(part) => found.into_iter().zip(ranges).flat_map(|(rows, range)| part.overlay(rows, range, false)).collect(),
            None => found.into_iter().flatten().collect(),
        }
    }

    async fn ranges_past(&mut self, groups: &[GroupId], ranges: &[KeyRange]) -> Result<Vec<Vec<Vec<Version>>>> {
        let mut all = Vec::with_capacity(groups.len());
        for group in groups {
            let mut of_group = vec![Vec::new(); ranges.len()];
            for (range, found) in ranges.iter().zip(&mut of_group) {
                let mut left = Some(range.clone());
                while let Some(range) = left.take() {
                    let columns = ColumnMask::ALL;
                    let scan = Scan { range, columns, reverse: false, limit: None, locking: Locking::None };
                    let page = self.scan_past(*group, scan).await?;
                    found.extend(page.rows);
                    left = page.rest;
                }
            }
            all.push(of_group);
        }
        Ok(all)
    }

    async fn ranges_near(&self, groups: &[GroupId], ranges: &[KeyRange]) -> Result<Vec<Vec<Vec<Version>>>> {
        let mut tries = Tries::for_at_most(PATIENCE);
        loop {
            let at = self.reached_near(groups).await;
            let found = match at {
                Ok(at) => try_join_all(groups.iter().map(|group| self.ranges_at(*group, ranges, at))).await,
                Err(e) => Err(e),
            };
            match found {
                Err(e) => tries.again(e).await?,
                found => return found,
            }
        }
    }

    /// The newest moment that is over at a replica here of each group.
    async fn reached_near(&self, groups: &[GroupId]) -> Result<Timestamp> {
        let shared = &self.gateway.shared;
        let here: Vec<Option<Timestamp>> =
            groups.iter().map(|group| shared.groups.replica(*group).map(|replica| replica.settled())).collect();
        // This node's own replicas need no message.
        let absent = groups.iter().zip(&here).filter(|(_, here)| here.is_none()).map(|(group, _)| *group);
        let absent: Vec<GroupId> = absent.collect();
        let nodes: BTreeSet<NodeId> = absent.iter().flat_map(|group| shared.peers.replicas_near(*group)).collect();
        let answers = join_all(nodes.iter().map(|node| self.settled_at(*node, &absent, NEAR_PATIENCE))).await;
        let of_absent = |at: usize| answers.iter().filter_map(|a| a.get(at).copied().flatten()).max();
        let there: Option<Vec<Timestamp>> = (0..absent.len()).map(of_absent).collect();
        let Some(there) = there else { return Err(Error::unavailable("no replica in this region answers")) };
        let reached = here.into_iter().flatten().chain(there).min().unwrap_or(self.began);
        // Before the catalog that names the groups there may have been others.
        Ok(reached.max(self.options.schema_committed_at))
    }

    /// What a group has in each range at a moment, wherever a replica answers.
    pub(super) async fn ranges_of(&self, group: GroupId, ranges: &[KeyRange], at: Timestamp) -> Result<Vec<Vec<Version>>> {
        let mut tries = Tries::for_at_most(PATIENCE);
        loop {
            match self.ranges_at(group, ranges, at).await {
                Err(e) => {
                    if e.is_unavailable() {
                        self.gateway.shared.check_reach(group)?;
                    }
                    tries.again(e).await?;
                }
                found => return found,
            }
        }
    }

    async fn ranges_at(&self, group: GroupId, ranges: &[KeyRange], at: Timestamp) -> Result<Vec<Vec<Version>>> {
        let mut all = vec![Vec::new(); ranges.len()];
        let mut left: Vec<(usize, KeyRange)> = ranges.iter().cloned().enumerate().filter(|(_, r)| !r.is_empty()).collect();
        while !left.is_empty() {
            let op = |range: &KeyRange| ReadOp::Scan {
                range: range.clone(),
                columns: ColumnMask::ALL,
                reverse: false,
                limit: None,
                locking: Locking::None.into(),
            };
            let ops: Vec<ReadOp> = left.iter().map(|(_, range)| op(range)).collect();
            let results = self.ask_past_near(group, at, &ops).await?;
            let asked = std::mem::take(&mut left);
            if results.len() != asked.len() {
                return Err(another_question());
            }
            for ((place, _), result) in asked.into_iter().zip(results) {
                let ReadResult::Page { rows, rest } = result else { return Err(another_question()) };
                all[place].extend(rows);
                left.extend(rest.map(|rest| (place, rest)));
            }
        }
        Ok(all)
    }
}
