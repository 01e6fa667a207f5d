//! The node as SQL sees it.

use crate::catalog::steps::StepCall;
use crate::gateway::Gateway;
use crate::gateway::builds;
use crate::gateway::in_doubt;
use crate::gateway::temporary::TemporaryFile;
use crate::gateway::txn::Txn;
use crate::membership::ask::Tries;
use crate::replica::groups::Route;
use crate::replica::pod::leader::LEADER;
use crate::replica::pods::PodHosts;
use crate::transport::wire::{Changed, Request, Response, Slice, Standing};
use meridian_base::version::ClusterVersion;
use meridian_base::{DescriptorId, Error, GroupId, Result, SchemaVersion, SessionId, Timestamp, TxnId};
use meridian_pod::HostFigures;
use meridian_sql::catalog::{Catalog, CatalogChange};
use meridian_sql::env::{
    Built, Environment, GroupRow, IndexBuild, NodeLocality, PodHostRow, SessionRow, StepRow, TransactionRow, TxnOptions,
};
use meridian_sql::temporary::Temporary;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The name of threads that compute for sessions: for a short time, and often.
pub const COMPUTE_THREAD: &str = "compute";
/// How long a schema change may look for the catalog's primary.
const FIND_PATIENCE: Duration = Duration::from_secs(15);
/// How long the coordinator's node has to accept a connection.
const REACH_PATIENCE: Duration = Duration::from_secs(2);
/// How long a step may take: regions that do not answer are waited out to the end of their schema
/// lease. For as long a step whose coordinator was lost is asked about before its outcome is
/// reported as unknown (40003).
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a change that came too late waits to see what was first.
const RETRY_PATIENCE: Duration = Duration::from_secs(2);

/// How long `setval` tells a node that lives to forget what it has drawn.
const FORGET_PATIENCE: Duration = Duration::from_secs(10);

/// One try to have a step made.
enum Tried {
    Answered(Changed),
    /// No coordinator has it from this try.
    NotTaken(Error),
    /// A coordinator may have it.
    Lost(Error),
}

fn outcome_unknown(why: &str) -> Error {
    Error::unknown_outcome("the outcome of the schema change is unknown: its coordinator cannot be reached")
        .detail(why.to_string())
        .hint("Look at the schema before running it again; what has to touch rows is in SHOW JOBS.")
}

fn stale_base() -> Error {
    Error::retry("the schema was changed by somebody else meanwhile")
}

/// `sql`'s environment. Cheap to clone.
#[derive(Clone)]
pub struct Env(pub(crate) Arc<Gateway>);

impl Env {
    /// Has a step made, or learns that it never will be: see [`crate::schema::coordinator`]. One id
    /// for as long as it takes.
    async fn ask_coordinator(&self, base: SchemaVersion, change: &CatalogChange, with: &[Slice]) -> Result<Changed> {
        let shared = &self.0.shared;
        shared.check_homes_reach(change)?;
        let id = TxnId { hlc: shared.clock.tick(shared.runtime.physical_micros()), gateway: shared.me() };
        let begun = Instant::now();
        let (mut tries, mut is_again) = (Tries::for_at_most(FIND_PATIENCE), false);
        loop {
            // Of a step that may have been taken, only the catalog knows.
            if !is_again {
                shared.check_reach(GroupId::CATALOG)?;
            }
            let call = StepCall { id, from: shared.me(), base, change: change.clone(), with: with.to_vec(), is_again };
            let why = match self.try_coordinator(call, tries.made()).await {
                Tried::Answered(Changed::Unknown) => {
                    is_again = true;
                    Error::unavailable("the catalog's primary lost its place while it had the step")
                }
                Tried::Answered(Changed::NotTaken) => Error::unavailable("the catalog's primary has too much to do"),
                Tried::Answered(changed) => return Ok(changed),
                Tried::Lost(e) => {
                    is_again = true;
                    e
                }
                Tried::NotTaken(e) => e,
            };
            if !why.is_unavailable() {
                return Err(why);
            }
            if is_again && begun.elapsed() >= STEP_TIMEOUT {
                return Err(outcome_unknown(why.message()));
            }
            if !is_again && tries.are_over() {
                return Err(why);
            }
            tries.pause_and_look(&shared.groups, GroupId::CATALOG, &why).await;
        }
    }

    async fn try_coordinator(&self, call: StepCall, attempt: u32) -> Tried {
        let shared = &self.0.shared;
        let node = match shared.groups.route(GroupId::CATALOG, attempt) {
            Some(Route::Local(_)) => {
                return match tokio::time::timeout(STEP_TIMEOUT, shared.steps.change(call)).await {
                    Ok(Ok(changed)) => Tried::Answered(changed),
                    Ok(Err(e)) => Tried::NotTaken(e),
                    Err(_) => Tried::Lost(Error::unavailable("the step takes too long")),
                };
            }
            Some(Route::Remote(node)) => node,
            None => return Tried::NotTaken(Error::not_primary(GroupId::CATALOG)),
        };
        // What was not sent was not taken.
        if let Err(e) = shared.rpc.reach(node, REACH_PATIENCE).await {
            return Tried::NotTaken(e);
        }
        let StepCall { id, from: _, base, change, with, is_again } = call;
        match shared.rpc.call(node, Request::ChangeCatalog { id, base, change, with, is_again }, STEP_TIMEOUT).await {
            Ok(Response::CatalogChanged(changed)) => Tried::Answered(changed),
            Ok(Response::NotPrimary { hint }) => Tried::NotTaken(shared.groups.not_primary_there(GroupId::CATALOG, node, hint)),
            Ok(_) => Tried::Lost(Error::unavailable("a node gave an answer of another kind")),
            Err(e) if e.is_unavailable() => Tried::Lost(e),
            Err(e) => Tried::NotTaken(e),
        }
    }

    /// The step of another gateway came first: waits for what it made, from which the change is to
    /// be derived again.
    async fn await_what_came_first(&self, base: SchemaVersion) {
        let _ = tokio::time::timeout(RETRY_PATIENCE, self.await_version(SchemaVersion(base.0 + 1), RETRY_PATIENCE)).await;
    }

    /// Waits until this node plans with a version that its own step made. The step has happened,
    /// whatever this comes to.
    async fn await_own(&self, version: SchemaVersion) -> Result<Arc<Catalog>> {
        let made = "the schema change has been made, and this node has not heard of it yet";
        self.await_version(version, STEP_TIMEOUT).await.map_err(|_| Error::unknown_outcome(made).hint("Connect to another node."))
    }

    /// Waits until this node plans with `version` or a later one.
    pub async fn await_version(&self, version: SchemaVersion, patience: Duration) -> Result<Arc<Catalog>> {
        let deadline = Instant::now() + patience;
        loop {
            let catalog = self.catalog();
            if catalog.version >= version {
                return Ok(catalog);
            }
            if Instant::now() > deadline {
                return Err(Error::unavailable("this node has not heard of the new schema yet"));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Environment for Env {
    type Txn = Txn;

    fn catalog(&self) -> Arc<Catalog> {
        self.0.shared.catalog.at(|| self.0.shared.runtime.physical_micros())
    }

    async fn catalog_at(&self, at: Timestamp) -> Result<Arc<Catalog>> {
        if !self.0.shared.freshness.knows_catalog_at(at) {
            self.0.shared.catch_up().await?;
        }
        match self.0.shared.groups.replica(GroupId::CATALOG) {
            Some(replica) => self.0.shared.catalog.past(&replica.store, at),
            None => Err(Error::unavailable("this node has no copy of the catalog")),
        }
    }

    async fn catalog_since(&self, min: Timestamp) -> Result<(Arc<Catalog>, Timestamp)> {
        if !self.0.shared.freshness.is_fresh() {
            if let Some(until) = self.0.shared.freshness.catalog_known_until().filter(|until| *until >= min) {
                return Ok((self.catalog(), until));
            }
            self.0.shared.catch_up().await?;
        }
        Ok((self.catalog(), Timestamp::MAX))
    }

    fn compute<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> impl Future<Output = T> + Send {
        let gateway = self.0.clone();
        async move {
            let permit = gateway.computing.clone().acquire_owned().await.expect("nobody closes it");
            let work = move || {
                // A session that was cancelled does not wait any more, and the thread works on.
                let _permit = permit;
                work()
            };
            gateway.shared.runtime.run_io(COMPUTE_THREAD, work).await
        }
    }

    fn temporary(&self) -> Option<Arc<dyn Temporary>> {
        Some(Arc::new(TemporaryFile::new(self.0.shared.clone())))
    }

    /// It costs a few atomic loads as a rule; a node that was restarted or cut off has to hear from
    /// a primary first. 57P03 if that takes too long.
    async fn catch_up(&self) -> Result<()> {
        self.0.shared.catch_up().await
    }
    fn lapses(&self) -> u64 {
        self.0.shared.freshness.lapses()
    }

    async fn build_index(&self, group: GroupId, build: IndexBuild) -> Result<Option<Built>> {
        builds::build(&self.0.shared, group, build).await
    }
    async fn is_as_built(&self, group: GroupId, index: u32, built: Built, through: Timestamp) -> Result<bool> {
        builds::is_as_built(&self.0.shared, group, index, built, through).await
    }

    async fn transactions(&self) -> Result<Vec<TransactionRow>> {
        Ok(in_doubt::everywhere(&self.0.shared).await)
    }

    async fn resolve_transaction(&self, id: &str, commit: bool, is_unsafe: bool) -> Result<Vec<String>> {
        in_doubt::resolve(&self.0, id, commit, is_unsafe).await
    }

    async fn groups(&self) -> Result<Vec<GroupRow>> {
        let mut led = crate::membership::ranges::everywhere(&self.0.shared).await;
        let row = |id: GroupId| match led.remove(&id) {
            Some(g) => GroupRow {
                group: id,
                primary: Some(g.primary),
                voters: g.voters,
                non_voters: g.non_voters,
                waits_for: g.waits_for,
                certifies_with: g.certifies_with,
                names: g.names,
                step: g.step.map(|wait| StepRow { groups: wait.groups, left: wait.left }),
            },
            None => {
                let (voters, why) = crate::membership::ranges::without_primary(&self.0.shared, id);
                GroupRow {
                    group: id,
                    primary: None,
                    voters,
                    non_voters: Vec::new(),
                    waits_for: Some(why),
                    certifies_with: SchemaVersion::default(),
                    names: Vec::new(),
                    step: None,
                }
            }
        };
        Ok(std::iter::once(GroupId::CATALOG).chain(self.0.shared.catalog.groups().into_iter().map(|g| g.id)).map(row).collect())
    }

    fn begin(&self, options: TxnOptions) -> Txn {
        Txn::new(self.0.clone(), options)
    }

    async fn change_catalog(&self, base: SchemaVersion, change: CatalogChange) -> Result<Arc<Catalog>> {
        match self.ask_coordinator(base, &change, &[]).await {
            Ok(Changed::Done { version, .. }) => self.await_own(version).await,
            Ok(Changed::Stale) => {
                self.await_what_came_first(base).await;
                Err(stale_base())
            }
            Ok(Changed::Forgotten) => Err(outcome_unknown("it was made too long ago, if it was")),
            Ok(Changed::Refused(_) | Changed::NotTaken | Changed::Unknown) => {
                Err(Error::internal("a schema change was refused for a transaction that it did not have"))
            }
            Err(e) => Err(e),
        }
    }

    async fn change_catalog_with(&self, txn: &mut Txn, base: &Catalog, change: CatalogChange) -> Result<Result<()>> {
        let slices = txn.slices_for_step(base)?;
        match self.ask_coordinator(base.version, &change, &slices).await {
            Ok(Changed::Done { version, at }) => {
                txn.committed_with_step(&slices, at);
                self.await_own(version).await.map(|_| Ok(()))
            }
            Ok(Changed::Stale) => {
                self.await_what_came_first(base.version).await;
                Ok(Err(stale_base()))
            }
            Ok(Changed::Refused(refusals)) => Err(txn.refused_by(refusals)),
            Ok(Changed::Forgotten | Changed::NotTaken | Changed::Unknown) => Err(txn.lost_with_step()),
            Err(e) => Err(e),
        }
    }

    fn is_far(&self, groups: &[GroupId]) -> bool {
        match groups {
            [] => false,
            [group] => {
                let is_near =
                    || self.0.shared.groups.local_primary(*group).is_some() || self.0.shared.groups.is_primary_near(*group);
                !self.0.shared.catalog.is_global(*group) && !is_near()
            }
            groups => !groups.iter().all(|g| self.0.shared.catalog.is_global(*g)),
        }
    }

    fn now_micros(&self) -> u64 {
        self.0.shared.runtime.physical_micros()
    }

    fn random(&self) -> u64 {
        self.0.shared.runtime.random()
    }

    fn locality(&self) -> NodeLocality {
        let me = self.0.shared.me();
        let sql_addr = self.0.shared.catalog.nodes().into_iter().find(|n| n.id == me).map(|n| n.sql_addr).unwrap_or_default();
        NodeLocality {
            node: me,
            region: self.0.shared.peers.place.region.clone(),
            zone: self.0.shared.peers.place.zone.clone(),
            sql_addr,
            is_live: true,
        }
    }

    fn nodes(&self) -> Vec<NodeLocality> {
        let nodes = self.0.shared.catalog.nodes().into_iter().filter(|n| n.standing != Standing::Decommissioned);
        nodes
            .map(|n| NodeLocality {
                node: n.id,
                is_live: self.0.shared.peers.is_live(n.id),
                region: n.region,
                zone: n.zone,
                sql_addr: n.sql_addr,
            })
            .collect()
    }

    async fn forget_drawn(&self, sequence: DescriptorId) -> Result<()> {
        const CALL_TIMEOUT: Duration = Duration::from_secs(2);
        let shared = &self.0.shared;
        let others = shared.catalog.nodes().into_iter().map(|n| n.id).filter(|id| *id != shared.me());
        let told = others.map(|node| async move {
            let deadline = Instant::now() + FORGET_PATIENCE;
            loop {
                let e = match shared.rpc.call(node, Request::ForgetDrawn { sequence }, CALL_TIMEOUT).await {
                    Ok(_) => return Ok(()),
                    // No primary confirms the catalog to a node that has no pings. Once one does
                    // again, it has forgotten what it had drawn (`Environment::lapses`).
                    Err(_) if !shared.peers.is_live(node) => return Ok(()),
                    Err(e) => e,
                };
                if Instant::now() > deadline {
                    // The sequence is set.
                    let message = format!("node {node} may go on for a while with numbers that it has drawn of the sequence");
                    return Err(Error::unknown_outcome(message).detail(e.message().to_string()));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        futures::future::join_all(told).await.into_iter().collect()
    }

    fn sessions(&self) -> Vec<SessionRow> {
        self.0.sessions.read().as_ref().map(|s| s.list()).unwrap_or_default()
    }

    fn knows_escrow(&self) -> bool {
        self.0.shared.catalog.cluster_version() >= ClusterVersion::ESCROW
    }

    fn reload(&self) {
        let shared = self.0.shared.clone();
        let reload = async move {
            match shared.certificates.as_ref().map_or(Ok(()), |c| c.reload()) {
                Ok(()) => tracing::info!("event=certificates_reloaded"),
                Err(e) => tracing::error!("the certificates were not reloaded: {e}"),
            }
        };
        self.0.shared.runtime.spawn_io("reload", Box::pin(reload));
    }

    fn pods(&self) -> Result<Vec<PodHostRow>> {
        let row = |of: &PodHosts, figures: &HostFigures| PodHostRow {
            pod: of.pod.clone(),
            group: of.group.to_string(),
            generation: of.generation,
            host: figures.host,
            node: figures.state.node,
            leads: figures.host == LEADER,
            state: figures.state.phase.name(),
            slots: figures.slots,
            asked_for: figures.asked_for,
            ring_bytes: figures.ring_bytes,
        };
        let pods = self.0.shared.groups.pod_hosts()?;
        Ok(pods.iter().flat_map(|of| of.hosts.iter().map(move |figures| row(of, figures))).collect())
    }

    fn metrics(&self) -> Vec<(String, u64)> {
        let mut rows = self.0.shared.groups.common.metrics.rows();
        rows.push((
            "txn.regions.messages".to_string(),
            self.0.shared.rpc.far_messages.load(std::sync::atomic::Ordering::Relaxed),
        ));
        for (group, (slots, hosts)) in self.0.shared.groups.pods() {
            rows.push((format!("pod.{group}.slots"), slots as u64));
            rows.push((format!("pod.{group}.hosts"), hosts as u64));
        }
        for (name, value) in ["prepared", "votes", "outcomes"].iter().zip(self.0.shared.groups.remembered()) {
            rows.push((format!("txn.remembered.{name}"), value as u64));
        }
        let in_rounds: usize = self.0.shared.groups.all().iter().map(|replica| replica.rows_in_rounds()).sum();
        rows.push(("escrow.rows.in_rounds".to_string(), in_rounds as u64));
        rows.sort();
        rows
    }

    fn cancel(&self, session: SessionId) -> bool {
        self.0.sessions.read().as_ref().is_some_and(|s| s.cancel(session))
    }
}
