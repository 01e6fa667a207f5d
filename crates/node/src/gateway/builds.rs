//! Has the replicas of a group fill a new index by themselves ([`crate::replica::builds`]), and
//! waits until every member has.
//!
//! The group's primary writes the record; then all members are asked again and again. One that does
//! not answer for long, because its node is down, is not waited for: the index is filled by
//! transactions, which reach it with the log. It pays when it is back, and changes nothing by that.

use crate::membership::ask::Ask;
use crate::membership::shared::Shared;
use crate::membership::space;
use crate::replica::Replica;
use crate::transport::wire::{BuildState, Request, Response};
use meridian_base::record::Build;
use meridian_base::version::ClusterVersion;
use meridian_base::{DescriptorId, Error, GroupId, NodeId, Result, Timestamp};
use meridian_sql::catalog::{Index, IndexState};
use meridian_sql::env::{Built, IndexBuild};
use meridian_sql::exec::IndexEntries;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long the group's primary is looked for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a member may not answer.
const SILENCE_MAX: Duration = Duration::from_secs(5);
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Members are asked this often.
const INTERVALS: [Duration; 4] =
    [Duration::from_millis(2), Duration::from_millis(5), Duration::from_millis(20), Duration::from_millis(50)];

struct Begin {
    group: GroupId,
    build: Build,
}

impl Ask for Begin {
    type Answer = (Timestamp, u64);
    const TIMEOUT: Duration = Duration::from_secs(5);
    fn request(&self) -> Request {
        Request::Build { group: self.group, build: self.build.clone() }
    }
    fn answer(response: Response) -> Option<(Timestamp, u64)> {
        if let Response::Building { at, entry } = response { Some((at, entry)) } else { None }
    }
    async fn here(&self, shared: &Arc<Shared>, replica: &Arc<Replica>) -> Result<(Timestamp, u64)> {
        begin(shared, replica, &self.build).await
    }
}

/// The primary's part: [`Request::Build`]. A request that was on its way for long must not have an
/// index filled that others read already.
pub(crate) async fn begin(shared: &Arc<Shared>, replica: &Arc<Replica>, build: &Build) -> Result<(Timestamp, u64)> {
    if shared.catalog.newest().version < build.version {
        return Err(Error::unavailable(format!("version {} of the catalog is not here yet", build.version.0)));
    }
    let table = shared.catalog.newest().table_by_id(build.table);
    match is_being_built(shared, build.table, build.index) && table.is_some_and(|table| table.primary().id == build.source) {
        true => replica.build(build).await,
        false => Err(Error::unsupported("an index that is not being built is not filled")),
    }
}

/// By the newest catalog here.
fn is_being_built(shared: &Shared, table: DescriptorId, index: u32) -> bool {
    let is_it = |i: &Index| i.id == index && matches!(i.state, IndexState::WriteOnly | IndexState::Filled);
    shared.catalog.newest().table_by_id(table).is_some_and(|table| table.indexes.iter().any(is_it))
}

pub(crate) struct Look {
    pub group: GroupId,
    pub index: u32,
    pub at: Timestamp,
    pub entry: u64,
    pub through: Option<Timestamp>,
}

impl Ask for Look {
    type Answer = BuildState;
    const TIMEOUT: Duration = CALL_TIMEOUT;
    fn request(&self) -> Request {
        let Look { group, index, at, entry, through } = *self;
        Request::BuildState { group, index, at, entry, through }
    }
    fn answer(response: Response) -> Option<BuildState> {
        if let Response::BuildState(state) = response { Some(state) } else { None }
    }
    async fn here(&self, shared: &Arc<Shared>, replica: &Arc<Replica>) -> Result<BuildState> {
        state(shared, replica, self)
    }
}

/// How far a member is: [`Request::BuildState`]. Where the disk has no room, it is not waited for.
pub(crate) fn state(shared: &Shared, replica: &Replica, look: &Look) -> Result<BuildState> {
    let state = replica.build_state(look.index, look.at, look.entry, look.through)?;
    match state.is_paid || look.through.is_some() || space::seems_to_fit(shared) {
        true => Ok(state),
        false => Err(Error::unavailable(format!("the disk of node {} has no room for another index", shared.me()))),
    }
}

/// See [`meridian_sql::env::Environment::build_index`].
pub(crate) async fn build(shared: &Arc<Shared>, group: GroupId, asked: IndexBuild) -> Result<Option<Built>> {
    let is_known = shared.catalog.cluster_version() >= ClusterVersion::ESCROW;
    let IndexBuild { table, index, source, version, above } = asked;
    if !is_known || !matches!(IndexEntries::new(&shared.catalog.newest(), table, index), Ok(Some(_))) {
        return Ok(None);
    }
    let begin = Begin { group, build: Build { table, index, source, version, at: above } };
    let (at, entry) = match shared.call_primary(group, PATIENCE, &begin).await {
        Ok(begun) => begun,
        Err(e) => return not_begun(e),
    };
    let look = Look { group, index, at, entry, through: None };
    let mut intervals = INTERVALS.into_iter().chain(std::iter::repeat(INTERVALS[INTERVALS.len() - 1]));
    let mut heard: BTreeMap<NodeId, Instant> = BTreeMap::new();
    let mut paid: BTreeSet<NodeId> = BTreeSet::new();
    let mut found = Vec::new();
    loop {
        let of_primary = match shared.call_primary(group, PATIENCE, &look).await {
            Err(e) if e.is_unavailable() => return Ok(None),
            of_primary => of_primary?,
        };
        let now = Instant::now();
        let asked = of_primary
            .members
            .iter()
            .filter(|node| !paid.contains(*node))
            .map(|node| async { (*node, ask_member(shared, *node, &look).await) });
        for (node, answer) in futures::future::join_all(asked).await {
            let last = *heard.entry(node).or_insert(now);
            match answer {
                Ok(state) => {
                    heard.insert(node, Instant::now());
                    if state.is_paid {
                        paid.insert(node);
                        found.extend(state.is_unique);
                    }
                }
                // One that is down from the beginning is not waited for.
                Err(_) if last.elapsed() < SILENCE_MAX && (node == shared.me() || shared.peers.is_live(node)) => {}
                Err(e) => {
                    tracing::info!("{node} does not say whether it has filled index {index} of group {group}: {e}");
                    return Ok(None);
                }
            }
        }
        // It was dropped, or its job taken back: some will never fill it.
        if !is_being_built(shared, table, index) {
            return Ok(None);
        }
        if of_primary.is_paid && of_primary.members.iter().all(|node| paid.contains(node)) {
            // All members find the same. After restarts, none may remember what it found: then all
            // rows are checked.
            let is_unique = !found.is_empty() && found.iter().all(|unique| *unique);
            return Ok(Some(Built { at, is_unique }));
        }
        tokio::time::sleep(intervals.next().unwrap_or_default()).await;
    }
}

fn not_begun(e: Error) -> Result<Option<Built>> {
    match e.sqlstate() == "0A000" {
        true => Ok(None),
        false => Err(e),
    }
}

async fn ask_member(shared: &Arc<Shared>, node: NodeId, look: &Look) -> Result<BuildState> {
    if node == shared.me() {
        let replica = shared.groups.replica(look.group).ok_or_else(|| Error::not_primary(look.group))?;
        return look.here(shared, &replica).await;
    }
    let response = shared.rpc.call(node, look.request(), CALL_TIMEOUT).await?;
    Look::answer(response).ok_or_else(|| Error::unavailable("the node has no replica"))
}

/// See [`meridian_sql::env::Environment::is_as_built`].
pub(crate) async fn is_as_built(
    shared: &Arc<Shared>,
    group: GroupId,
    index: u32,
    built: Built,
    through: Timestamp,
) -> Result<bool> {
    let look = Look { group, index, at: built.at, entry: 0, through: Some(through) };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match shared.call_primary(group, PATIENCE, &look).await?.is_as_built {
            Some(is_as_built) => return Ok(is_as_built),
            None if Instant::now() >= deadline => return Ok(false),
            None => tokio::time::sleep(INTERVALS[1]).await,
        }
    }
}
