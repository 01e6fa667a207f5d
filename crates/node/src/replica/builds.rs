//! Indexes that this replica owes: a record of the log has told every replica of the group to fill
//! a new index from its own rows ([`meridian_base::record::Build`]).
//!
//! What is owed is flushed with the replica's state and travels with snapshots, so that neither the
//! truncation of the log nor a restart loses it: a replica that has the rows without the entries
//! owes the entries. It is paid by [`crate::upkeep`] once nothing can appear at or below the
//! build's timestamp any more ([`Replica::may_build`]), and until that is durable it holds back
//! garbage collection ([`Replica::builds_hold`]): a row that is read as of then must not be gone,
//! nor a tombstone that covers an entry.
//!
//! An index is read only when all members have paid ([`crate::gateway::builds`]). A replica that
//! comes to owe one that others read already, since it follows the log from an early entry on, is
//! not read there, and does not lead before it has paid.

use crate::replica::pod::Outlet;
use crate::replica::primary::WAIT_MAX;
use crate::replica::{Core, Replica, decode_flushed};
use crate::transport::wire::{BuildState, ReadOp};
use meridian_base::record::{Build, Record};
use meridian_base::{ColumnMask, Error, KeyRange, Result, Target, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::oneshot;

/// How often a new primary looks whether it has paid what others may read.
const LOOK: Duration = Duration::from_millis(5);
/// So many builds are remembered with their outcome, for the job that waits for it.
const REMEMBERED_MAX: usize = 64;

/// What a replica owes, and what it has paid since it started.
#[derive(Default)]
pub(crate) struct Builds {
    owed: Vec<Owed>,
    /// Whether no two rows had the same entry, by index and timestamp.
    paid: BTreeMap<(Timestamp, u32), bool>,
    /// Closed, as a new primary knows ([`Replica::until_paid`]).
    passed: Timestamp,
}

struct Owed {
    build: Build,
    /// The entries are there, and not durable yet.
    is_built: bool,
    /// Unless the catalog is known to say otherwise.
    may_be_read: bool,
    /// The catalog of this time has the index no more. Reads of the past may want it until garbage
    /// up to then is collected.
    gone: Option<Timestamp>,
}

impl Builds {
    /// What was flushed.
    pub fn new(owed: Vec<Build>) -> Builds {
        let mut builds = Builds::default();
        owed.iter().for_each(|build| builds.owe(build));
        builds
    }

    /// What is to be flushed.
    pub fn unbuilt(&self) -> Vec<Build> {
        self.owed.iter().filter(|owed| !owed.is_built).map(|owed| owed.build.clone()).collect()
    }

    /// A record was applied.
    pub fn owe(&mut self, build: &Build) {
        if !self.owed.iter().any(|owed| owed.build == *build) {
            self.owed.push(Owed { build: build.clone(), is_built: false, may_be_read: true, gone: None });
        }
    }

    fn owes_key_of(&self, key: &[u8]) -> bool {
        self.owed.iter().any(|owed| key.starts_with(&owed.build.index.to_be_bytes()))
    }
}

impl Replica {
    /// Tells every replica to fill an index, if they were not told so already, as of a time that is
    /// not before that of `asked`. Gives that time, and the entry of the log that says so.
    pub(crate) async fn build(&self, asked: &Build) -> Result<(Timestamp, u64)> {
        let applied = {
            let mut core = self.core.lock();
            let core = &mut *core;
            let is_it = |build: &Build| Build { at: asked.at, ..build.clone() } == *asked && build.at >= asked.at;
            if let Some(owed) = core.builds.owed.iter().find(|owed| is_it(&owed.build)) {
                return Ok((owed.build.at, core.state.applied().index));
            }
            let (state, term) = self.leading(core)?;
            if !matches!(term.outlet, Outlet::Log) {
                return Err(Error::unsupported("the hosts of a pod do not fill indexes"));
            }
            let at = term.clock.tick(self.physical()).max(asked.at);
            if at > state.ceiling() {
                // A later primary must know that it is closed.
                return Err(Error::unavailable(format!("the lease of group {} does not reach {at} yet", self.id)));
            }
            let build = Build { at, ..asked.clone() };
            let (tx, rx) = oneshot::channel();
            term.builds.push((build.clone(), tx));
            term.records.push(Record::Build(build));
            self.pump(core);
            (at, rx)
        };
        match tokio::time::timeout(WAIT_MAX, applied.1).await {
            Ok(Ok(index)) => Ok((applied.0, index)),
            _ => Err(Error::not_primary(self.id)),
        }
    }

    /// How far the build is that an entry of the log asks for, and whether the index is as it was
    /// built up to `through`.
    pub(crate) fn build_state(&self, index: u32, at: Timestamp, entry: u64, through: Option<Timestamp>) -> Result<BuildState> {
        let (is_paid, is_unique) = {
            let core = self.core.lock();
            let owes = core.builds.owed.iter().any(|owed| owed.build.index == index && owed.build.at == at);
            (core.state.applied().index >= entry && !owes, core.builds.paid.get(&(at, index)).copied())
        };
        let members = self.raft().members();
        let is_as_built = match through {
            Some(through) if self.settled() >= through && at >= self.store.gc_threshold() => {
                let target = Target::Range(KeyRange::prefix(&index.to_be_bytes()));
                Some(self.store.changed_after(&target, ColumnMask::ALL, at)?.is_none())
            }
            Some(_) if at < self.store.gc_threshold() => Some(false),
            _ => None,
        };
        let members = members.voters.into_iter().chain(members.learners).collect();
        Ok(BuildState { is_paid, is_unique, is_as_built, members })
    }

    /// What is to be built here.
    pub(crate) fn owed(&self) -> Vec<Build> {
        self.core.lock().builds.unbuilt()
    }

    /// Whether every version at or below the build's timestamp is applied, and none will come.
    pub(crate) fn may_build(&self, build: &Build) -> bool {
        let core = self.core.lock();
        let rules = &self.common.rules;
        let is_closed = core.closed().max(core.builds.passed) >= build.at || !rules.builds_when_closed();
        let is_prepared = core.state.prepared().any(|p| p.at <= build.at) && rules.builds_await_prepared();
        is_closed && !is_prepared
    }

    /// Whether others may read the index, by the newest catalog here.
    pub(crate) fn note_owed_is_read(&self, build: &Build, may_be_read: bool) {
        let mut core = self.core.lock();
        let owed = core.builds.owed.iter_mut().filter(|owed| owed.build == *build);
        owed.for_each(|owed| owed.may_be_read = may_be_read);
    }

    /// The catalog of a time has the index no more. Whether no read can want it: until then it is
    /// owed, but holds nothing back.
    pub(crate) fn is_forgotten(&self, build: &Build, catalog_at: Timestamp) -> bool {
        let threshold = self.store.gc_threshold();
        let mut core = self.core.lock();
        let mut owed = core.builds.owed.iter_mut().filter(|owed| owed.build == *build);
        owed.all(|owed| *owed.gone.get_or_insert(catalog_at) <= threshold)
    }

    /// The entries are there, in the content of this incarnation: makes that durable. `is_unique`:
    /// no two rows had the same entry; `None`: the index is gone.
    pub(crate) fn built(&self, build: &Build, incarnation: u64, is_unique: Option<bool>) -> Result<()> {
        self.settle_built(build, incarnation, is_unique).inspect_err(|_| {
            // It is built again: that changes nothing.
            let mut core = self.core.lock();
            let owed = core.builds.owed.iter_mut().filter(|owed| owed.build == *build);
            owed.for_each(|owed| owed.is_built = false);
        })
    }

    fn settle_built(&self, build: &Build, incarnation: u64, is_unique: Option<bool>) -> Result<()> {
        {
            let gatherer = self.applying.lock();
            if self.store.incarnation() != incarnation {
                return Err(Error::unavailable(format!("a snapshot has replaced the content of group {}", self.id)));
            }
            let mark = |core: &mut Core| {
                let owed = core.builds.owed.iter_mut().filter(|owed| owed.build == *build);
                owed.for_each(|owed| owed.is_built = true);
            };
            mark(&mut self.core.lock());
            self.cut(&gatherer)?;
        }
        while self.flush()? {}
        let flushed = self.store.recovered().map(|(_, blob)| decode_flushed(&blob, self.common.rules)).transpose()?;
        if flushed.is_none_or(|(_, _, owed)| owed.contains(build)) {
            return Err(Error::unavailable(format!("what group {} has built is not durable yet", self.id)));
        }
        let mut core = self.core.lock();
        core.builds.owed.retain(|owed| owed.build != *build);
        if let Some(is_unique) = is_unique {
            core.builds.paid.insert((build.at, build.index), is_unique);
            while core.builds.paid.len() > REMEMBERED_MAX {
                core.builds.paid.pop_first();
            }
        }
        Ok(())
    }

    /// Garbage is kept above this for what is owed.
    pub(crate) fn builds_hold(&self) -> Timestamp {
        if !self.common.rules.owed_builds_hold() {
            return Timestamp::MAX;
        }
        let core = self.core.lock();
        let wanted = core.builds.owed.iter().filter(|owed| owed.gone.is_none());
        wanted.map(|owed| owed.build.at.prev()).min().unwrap_or(Timestamp::MAX)
    }

    /// `Unavailable` if this replica owes an index that a read wants: the gateway asks elsewhere.
    pub(crate) fn check_not_owed<'a>(&self, mut keys: impl Iterator<Item = &'a [u8]>) -> Result<()> {
        let core = self.core.lock();
        let is_owed = !core.builds.owed.is_empty() && keys.any(|key| core.builds.owes_key_of(key));
        match is_owed {
            true => Err(Error::unavailable(format!("the replica of group {} here still fills the index", self.id))),
            false => Ok(()),
        }
    }

    /// As [`Replica::check_not_owed`].
    pub(crate) fn check_ops_not_owed(&self, ops: &[ReadOp]) -> Result<()> {
        self.check_not_owed(ops.iter().flat_map(|op| match op {
            ReadOp::Get { keys, .. } => keys.first().map(|key| key.as_bytes()),
            ReadOp::Scan { range, .. } => Some(range.start.as_bytes()),
            ReadOp::Share { .. } | ReadOp::Reserve { .. } => None,
        }))
    }

    /// A new primary, which has applied every entry of earlier terms, waits until it has paid what
    /// others may read. `false`: it does not lead any more.
    ///
    /// Its term issues nothing at or below the last ceiling, or what it has used itself: that is
    /// closed. No other node can tell it so, since what was promised beside the log may be
    /// forgotten.
    ///
    /// An index below which a transaction is still prepared is not waited for. No replica has
    /// filled it, so readers find the entries that transactions have written to the log.
    pub(crate) async fn until_paid(&self, term: u64) -> bool {
        {
            let mut core = self.core.lock();
            core.builds.passed = match core.last_used {
                Some((last, used)) if last == term => used,
                _ => core.state.ceiling(),
            };
        }
        let owes = || {
            let core = self.core.lock();
            let can_be_paid = |owed: &&Owed| core.state.prepared().all(|p| p.at > owed.build.at);
            core.builds.owed.iter().filter(|owed| owed.may_be_read).any(|owed| can_be_paid(&owed))
        };
        while owes() {
            let role = self.raft().role();
            if role.term != term || !role.is_leader || self.is_retired() {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
        true
    }
}
