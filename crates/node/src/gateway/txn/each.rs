//! Reads in several groups at once, so that they take one round trip together.
//!
//! Every group's read goes on in a branch: a transaction that has only that group's part, and gives
//! it back when its answer is there. The transaction itself counts as failed in between, because a
//! statement that is broken off takes the branches, and what they have read, with it.
//!
//! Reads that wait in the queues of several primaries are made one after the other, in the order of
//! the groups: of two statements that lock rows of the same regions, one is ahead in all of them.

use super::Txn;
use super::part::Part;
use crate::transport::wire::View;
use bytes::Bytes;
use futures::future::join_all;
use meridian_base::{ColumnMask, Error, GroupId, Key, Result, Timestamp};
use meridian_sql::env::{Locking, Scan, ScanRows, Transaction};

impl Txn {
    /// Whether some of the reads would wait for each other, one message after another. What is
    /// reserved has come already.
    async fn pays(&mut self, groups: impl Iterator<Item = GroupId>) -> Result<bool> {
        if self.reserves_reads {
            self.reserve().await?;
        }
        let far = groups.filter(|group| self.gateway.shared.groups.local_server(*group).is_none()).count();
        Ok(self.reserved.is_none() && far > 1)
    }

    /// Whether some of the reads may wait in a queue.
    fn queues(&self, mut groups: impl Iterator<Item = GroupId>, locking: Locking) -> bool {
        locking != Locking::None && groups.any(|group| !self.reads_at_replica(group, locking))
    }

    pub(super) async fn keys_of_each(
        &mut self,
        reads: Vec<(GroupId, Vec<Key>)>,
        columns: ColumnMask,
        locking: Locking,
    ) -> Result<Vec<Vec<Option<Bytes>>>> {
        if self.queues(reads.iter().map(|r| r.0), locking) || !self.pays(reads.iter().map(|r| r.0)).await? {
            let mut answers = vec![Vec::new(); reads.len()];
            for at in in_order(&reads) {
                let (group, keys) = &reads[at];
                answers[at] = self.some_keys(*group, keys, columns, locking).await?;
            }
            return Ok(answers);
        }
        let mut branches = self.branches(reads.iter().map(|r| r.0)).await?;
        let each = branches.iter_mut().zip(&reads);
        let answers = join_all(each.map(|(b, (group, keys))| b.txn.some_keys(*group, keys, columns, locking))).await;
        self.rejoin(branches);
        answers.into_iter().collect()
    }

    /// What was fetched ahead is known by single keys only.
    async fn some_keys(
        &mut self,
        group: GroupId,
        keys: &[Key],
        columns: ColumnMask,
        locking: Locking,
    ) -> Result<Vec<Option<Bytes>>> {
        match keys {
            [key] => Ok(vec![self.get(group, key, columns, locking).await?]),
            keys => self.get_many(group, keys, columns, locking).await,
        }
    }

    pub(super) async fn pages_of_each(&mut self, scans: Vec<(GroupId, Scan)>) -> Result<Vec<ScanRows>> {
        let locking = scans.first().map_or(Locking::None, |(_, scan)| scan.locking);
        if self.queues(scans.iter().map(|s| s.0), locking) || !self.pays(scans.iter().map(|s| s.0)).await? {
            let mut answers: Vec<ScanRows> = scans.iter().map(|_| ScanRows::default()).collect();
            for at in in_order(&scans) {
                let (group, scan) = &scans[at];
                answers[at] = self.scan(*group, scan.clone()).await?;
            }
            return Ok(answers);
        }
        let mut branches = self.branches(scans.iter().map(|s| s.0)).await?;
        let each = branches.iter_mut().zip(scans);
        let answers = join_all(each.map(|(b, (group, scan))| b.txn.scan(group, scan))).await;
        self.rejoin(branches);
        answers.into_iter().collect()
    }

    pub(super) async fn prefetch_of_each(&mut self, reads: Vec<(GroupId, Vec<Key>)>, columns: ColumnMask) -> Result<()> {
        if !self.pays(reads.iter().map(|r| r.0)).await? {
            for (group, keys) in reads {
                self.prefetch(group, &keys, columns).await?;
            }
            return Ok(());
        }
        let mut branches = self.branches(reads.iter().map(|r| r.0)).await?;
        let each = branches.iter_mut().zip(&reads);
        let answers = join_all(each.map(|(b, (group, keys))| b.txn.prefetch(*group, keys, columns))).await;
        self.rejoin(branches);
        answers.into_iter().collect()
    }

    /// One branch for each group; no group twice.
    async fn branches(&mut self, groups: impl Iterator<Item = GroupId>) -> Result<Vec<Branch>> {
        let mut places = Vec::new();
        for group in groups {
            if self.options.as_of.is_some() {
                // All of them read one moment.
                self.moment(group).await?;
            }
            let at = self.part(group)?;
            if self.parts[at].is_global {
                self.global_snapshot()?;
            }
            assert!(!places.contains(&at), "a group is read in one branch only");
            places.push(at);
        }
        let branches = places.into_iter().map(|at| self.branch(at)).collect();
        self.failed = Some(Error::retry("a read in several regions was broken off"));
        Ok(branches)
    }

    fn branch(&mut self, at: usize) -> Branch {
        let part = &self.parts[at];
        // Nothing is read in it. What has been read goes with the branch, and is not copied: each
        // row of a large statement makes branches.
        let view = View { entries: Vec::new(), skipped: Vec::new(), schema: part.view.schema.clone(), ..part.view };
        let stand_in = Part::new(part.group, view, part.is_global);
        let txn = Txn {
            gateway: self.gateway.clone(),
            protocol: self.protocol,
            options: self.options.clone(),
            began: self.began,
            since: self.since,
            attempts: self.attempts,
            schema: self.schema.clone(),
            parts: vec![std::mem::replace(&mut self.parts[at], stand_in)],
            undo: Vec::new(),
            entries: Vec::new(),
            bytes: 0,
            room: None,
            newest: Timestamp::MIN,
            failed: None,
            round_trips: 0,
            past: self.past,
            global: self.global,
            reserves_reads: false,
            reserved: None,
            is_branch: true,
            pages: 0,
            protected: None,
        };
        Branch { at, txn }
    }

    fn rejoin(&mut self, branches: Vec<Branch>) {
        self.failed = None;
        let mut round_trips = 0;
        for mut branch in branches {
            if let Some(part) = branch.txn.parts.pop() {
                self.parts[branch.at] = part;
            }
            self.newest = self.newest.max(branch.txn.newest);
            self.global.newest = self.global.newest.max(branch.txn.global.newest);
            self.global.is_mixed |= branch.txn.global.is_mixed;
            round_trips = round_trips.max(branch.txn.round_trips);
            self.failed = self.failed.take().or(branch.txn.failed.take());
        }
        // They were under way together.
        self.round_trips += round_trips;
    }
}

/// The places of reads in the order of their groups.
fn in_order<T>(reads: &[(GroupId, T)]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..reads.len()).collect();
    places.sort_by_key(|at| reads[*at].0);
    places
}

/// A transaction with one part of another one.
struct Branch {
    /// The part's place there.
    at: usize,
    txn: Txn,
}
