//! A node: founding or joining a cluster, answering other nodes, and stopping cleanly.

use crate::address_book;
use crate::ask::Ask;
use crate::catalog::{CatalogCache, Meta, change_rows, meta_key, node_key, row};
use crate::clocks::{self, Accepted};
use crate::ddl::{SPREAD_TIMEOUT, StepCall};
use crate::departure::{self, Departures};
use crate::env::Env;
use crate::identity::{self, Identity};
use crate::members;
use crate::outbox::Outbox;
use crate::primary::not_primary;
use crate::ranges;
use crate::replica::Replica;
use crate::room::{self, RoomOptions};
use crate::rpc::{Echoes, Handler, Links, Place, Rpc};
use crate::shared::{DEAD_AFTER_DEFAULT, Shared};
use crate::starting::{ensure_replica, start_groups, start_unknown};
use crate::timing::Timing;
use crate::wire::{Joined, NodeRecord, Request, Response, Standing};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use meridian_base::record::SchemaGrant;
use meridian_base::runtime::{Listener, Runtime};
use meridian_base::{Clock, CommitOutcome, Error, ErrorKind, GroupId, NodeId, Result, SchemaVersion, Timestamp, TxnId, limits};
use meridian_placement::Survival;
use meridian_raft as raft;
use meridian_region::Owner;
use meridian_region::PlantedBugs;
use meridian_sql::catalog::{Group, bootstrap};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How a node is started.
pub struct NodeConfig {
    pub place: Place,
    /// Where other nodes connect: listened on, and told to them.
    pub listen: String,
    /// Where clients connect; told to others, served by `server`.
    pub sql_addr: String,
    /// Nodes to ask for membership. Empty, or this node's own address first: found a new cluster, if the directory is empty.
    pub join: Vec<String>,
    pub store: meridian_store::Backend,
    pub store_options: meridian_store::Options,
    pub log_options: raft::LogOptions,
    pub room: RoomOptions,
    /// Delays injected between nodes.
    pub links: Option<Links>,
    /// Calls to other nodes that arrive twice; in the simulator.
    pub echoes: Option<Echoes>,
    pub max_offset: Duration,
    /// What keeps the node from coming up, while something does that only an operator can change.
    pub hindrance: watch::Sender<Option<Error>>,
    pub timing: Timing,
    pub gc_ttl: Duration,
    /// How often old versions are collected.
    pub gc_interval: Duration,
    /// How long an open transaction keeps old versions from being collected.
    pub protected_for_max: Duration,
    /// A node that has been silent for so long loses its replicas to others.
    pub dead_after: Duration,
    pub bugs: PlantedBugs,
    /// Rules of the commit over several groups left out; in the simulator.
    pub ballot_bugs: meridian_commit::PlantedBugs,
}

impl NodeConfig {
    /// A node with defaults, alone.
    pub fn new(place: Place, listen: &str, sql_addr: &str, store: meridian_store::Backend) -> NodeConfig {
        NodeConfig {
            place,
            listen: listen.into(),
            sql_addr: sql_addr.into(),
            join: Vec::new(),
            store,
            store_options: meridian_store::Options::default(),
            log_options: raft::LogOptions::default(),
            room: RoomOptions::default(),
            links: None,
            echoes: None,
            max_offset: limits::MAX_OFFSET_DEFAULT,
            hindrance: watch::Sender::new(None),
            timing: Timing::default(),
            gc_ttl: limits::GC_TTL_DEFAULT,
            gc_interval: GC_INTERVAL_DEFAULT,
            protected_for_max: limits::PROTECTED_FOR_MAX,
            dead_after: DEAD_AFTER_DEFAULT,
            bugs: PlantedBugs::NONE,
            ballot_bugs: meridian_commit::PlantedBugs::NONE,
        }
    }
}

/// A running node. Cheap to clone.
pub struct Node<R: Runtime> {
    shared: Arc<Shared<R>>,
    addr: String,
}

impl<R: Runtime> Clone for Node<R> {
    fn clone(&self) -> Node<R> {
        Node { shared: self.shared.clone(), addr: self.addr.clone() }
    }
}

/// How often a node that waits for somebody to let it in says so.
const JOIN_NOTICE: Duration = Duration::from_secs(3);
/// How long joining may take before the node gives up with an error.
const JOIN_PATIENCE: Duration = Duration::from_secs(30);
const JOIN_CALL: Duration = Duration::from_secs(10);
/// How long a change of a node's record looks for the catalog's primary before whoever asked is told.
const REGISTER_PATIENCE: Duration = Duration::from_secs(1);
const GC_INTERVAL_DEFAULT: Duration = Duration::from_secs(60);

impl<R: Runtime> Node<R> {
    /// Starts a node: recovers what its directory holds, or founds or joins a cluster. Returns when it can plan statements.
    pub async fn start(runtime: R, config: NodeConfig) -> Result<Node<R>> {
        config.timing.check()?;
        let known = identity::load(&runtime)?;
        runtime.steady_clock().follow_steps_of(config.max_offset);
        clocks::continue_accepted(&runtime);
        let clock = Arc::new(Clock::new(config.max_offset));
        let catalog = CatalogCache::new(clock.clone());
        let rpc = Rpc::new(runtime.clone(), clock.clone(), config.links.clone(), config.echoes.clone());
        let listener = runtime.listen(&config.listen).await.map_err(|e| {
            Error::fatal(format!("cannot listen on {} for other nodes: {e}", config.listen))
                .hint("Is another process using the port? Choose one with --listen.")
        })?;
        let addr = listener.local_addr().map_err(|e| Error::fatal(format!("no local address: {e}")))?;
        identity::check_log(&runtime, known.as_ref())?;
        room::before_start(&runtime, config.room);
        let log = raft::NodeLog::open(runtime.clone(), config.log_options.clone()).await?;
        let store = meridian_store::Store::open(config.store.clone(), config.store_options.clone())?;
        identity::check_data(&runtime, known.as_ref(), &log, &store)?;
        let departures = Departures::load(&runtime)?;
        let (outbox, work) = Outbox::new();
        let shared = Shared::new(
            runtime.clone(),
            clock,
            rpc.clone(),
            catalog,
            config.place.clone(),
            log,
            store,
            config.bugs,
            config.ballot_bugs,
            config.timing,
            config.dead_after,
            departures,
            outbox,
        );
        shared.spawn(crate::outbox::work_loop(shared.clone(), work));
        shared.spawn(room::keep(shared.clone(), config.room));
        let node = Node { shared, addr: addr.clone() };
        node.start_io(config.gc_ttl, config.gc_interval, config.protected_for_max);
        let record = NodeRecord {
            id: NodeId(0),
            addr,
            sql_addr: config.sql_addr.clone(),
            region: config.place.region.clone(),
            zone: config.place.zone.clone(),
            standing: Standing::Active,
        };
        // What has begun must not outlive the attempt.
        match node.begin(known, &config, record, listener).await {
            Ok(()) => Ok(node),
            Err(error) => {
                node.end().await;
                Err(error)
            }
        }
    }

    /// Everything that may fail once there are files and tasks.
    async fn begin(&self, known: Option<Identity>, config: &NodeConfig, record: NodeRecord, listener: R::Listener) -> Result<()> {
        let identity = match known {
            Some(identity) => {
                self.shared.rpc.identify(identity.cluster, identity.node, config.place.clone());
                let others = config.join.iter().filter(|a| **a != record.addr && **a != config.listen).cloned().collect();
                self.shared.spawn(join_same_cluster(self.shared.clone(), others));
                identity
            }
            None if is_founder(&config.join, &record.addr, &config.listen) => self.found().await?,
            None => self.join(&config.join, &record).await?,
        };
        let mut failure = self.failure();
        let broken = async {
            let error = failure.wait_for(Option::is_some).await.ok().and_then(|error| error.clone());
            match error {
                Some(error) => error,
                None => std::future::pending().await,
            }
        };
        // A disk that fails meanwhile leaves nothing to wait for.
        tokio::select! {
            biased;
            started = self.run(identity, record, listener, &config.hindrance) => started,
            error = broken => Err(error),
        }
    }

    async fn found(&self) -> Result<Identity> {
        let random = |r: &R| u128::from(r.random()) << 64 | u128::from(r.random()) | 1;
        let identity = Identity { cluster: random(&self.shared.runtime), node: NodeId(1) };
        identity::save(&self.shared.runtime, identity).await?;
        Ok(identity)
    }

    async fn join(&self, addrs: &[String], record: &NodeRecord) -> Result<Identity> {
        self.shared.rpc.identify(0, NodeId(0), Place::default());
        let deadline = Instant::now() + JOIN_PATIENCE;
        let mut next_notice = Instant::now() + JOIN_NOTICE;
        loop {
            let mut last = None;
            for addr in addrs.iter().filter(|a| **a != record.addr) {
                let ask = Request::Join {
                    node: NodeId(0),
                    addr: record.addr.clone(),
                    sql_addr: record.sql_addr.clone(),
                    region: record.region.clone(),
                    zone: record.zone.clone(),
                    is_passed_on: false,
                };
                match self.shared.rpc.call_addr(addr, ask, JOIN_CALL).await {
                    Ok(Response::Joined(joined)) => {
                        let identity = Identity { cluster: joined.cluster, node: joined.node };
                        identity::save(&self.shared.runtime, identity).await?;
                        self.shared.id.store(joined.node.0, Ordering::Relaxed);
                        joined.nodes.iter().for_each(|n| self.shared.rpc.learn(n));
                        address_book::save(&self.shared.runtime, &joined.nodes).await;
                        return Ok(identity);
                    }
                    Ok(_) => last = Some(Error::unavailable(format!("node at {addr} is not ready"))),
                    Err(e) => last = Some(e),
                }
            }
            let last = last.unwrap_or_else(|| Error::fatal("--join names no other node"));
            if Instant::now() > next_notice {
                tracing::info!("joining the cluster takes long: {last}");
                next_notice = Instant::now() + JOIN_NOTICE;
            }
            if Instant::now() > deadline || last.kind() == ErrorKind::Fatal {
                return Err(Error::fatal("cannot join the cluster").detail(last.to_string()));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn run(
        &self,
        identity: Identity,
        mut record: NodeRecord,
        listener: R::Listener,
        hindrance: &watch::Sender<Option<Error>>,
    ) -> Result<()> {
        let shared = &self.shared;
        record.id = identity.node;
        shared.id.store(identity.node.0, Ordering::Relaxed);
        shared.rpc.identify(identity.cluster, identity.node, shared.place.clone());
        let handler: Arc<dyn Handler> = Arc::new(NodeHandler(shared.clone()));
        let mut groups: BTreeSet<GroupId> = shared.log.groups().into_iter().chain(shared.store.groups()).collect();
        groups.insert(GroupId::CATALOG);
        for left in departure::finish(shared).await? {
            groups.remove(&left);
        }
        address_book::load(&shared.runtime).iter().filter(|n| n.id != identity.node).for_each(|n| shared.rpc.learn(n));
        // The catalog first: its content tells where the other nodes are now.
        ensure_replica(shared, GroupId::CATALOG).await?;
        shared.catalog.nodes().iter().for_each(|n| shared.rpc.learn(n));
        shared.spawn_protocol(clocks::compare(shared.clone()));
        shared.spawn_protocol(shared.rpc.clone().serve(listener, handler));
        // What a replica is depends on its group's descriptor, which may have come shortly before the node stopped.
        let (known, unknown): (Vec<GroupId>, Vec<GroupId>) =
            groups.into_iter().partition(|g| *g == GroupId::CATALOG || shared.catalog.group(*g).is_some());
        for group in known {
            ensure_replica(shared, group).await?;
        }
        if !unknown.is_empty() {
            shared.spawn(start_unknown(shared.clone(), unknown));
        }
        if identity.node == NodeId(1) {
            self.found_catalog(identity.cluster, &record).await?;
        }
        shared.spawn(start_groups(shared.clone()));
        shared.spawn_protocol(members::ping_loop(shared.clone()));
        shared.spawn_protocol(crate::reach::detour_loop(shared.clone()));
        shared.spawn(address_book::keep(shared.clone()));
        shared.spawn(members::placement_loop(shared.clone()));
        shared.spawn(departure::departure_loop(shared.clone()));
        shared.spawn_protocol(crate::closed::promise_loop(shared.clone()));
        self.await_catalog(hindrance).await?;
        shared.spawn(keep_record(shared.clone(), record));
        Ok(())
    }

    /// The first node initialises the catalog's group and writes its first rows; after a crash in between, again.
    async fn found_catalog(&self, cluster: u128, record: &NodeRecord) -> Result<()> {
        if self.shared.catalog.newest().version > SchemaVersion(0) {
            return Ok(());
        }
        let replica = ensure_replica(&self.shared, GroupId::CATALOG).await?;
        replica.raft().initialize().await?;
        let mut serving = replica.watch_serving();
        let mut catalog = self.shared.catalog.watch();
        while !*serving.borrow_and_update() {
            tokio::select! {
                biased;
                changed = serving.changed() => changed.map_err(|_| Error::fatal("the catalog's replica stopped"))?,
                _ = catalog.changed() => {}
            }
            // It was founded before; the rows were in the log, or came from another node that leads now.
            if self.shared.catalog.newest().version > SchemaVersion(0) {
                return Ok(());
            }
        }
        if replica.store.newest(meta_key().as_bytes())?.is_some() {
            return Ok(());
        }
        let meta = Meta { cluster, version: SchemaVersion(0), next_id: 0, next_node: 2, seen: None };
        let (_, mut writes) = change_rows(TxnId::default(), &meta, Default::default(), &bootstrap::first_change(&record.region))?;
        writes.push(row(node_key(record.id), record)?);
        crate::ddl::commit_catalog(&self.shared, &replica, writes, Vec::new(), Timestamp::MIN).await?;
        Ok(())
    }

    async fn await_catalog(&self, hindrance: &watch::Sender<Option<Error>>) -> Result<()> {
        let mut deadline = Instant::now() + JOIN_PATIENCE;
        while self.env().0.catalog.at(self.shared.runtime.physical_micros()).version == SchemaVersion(0) {
            if let Some(e) = &*self.shared.failure.borrow() {
                return Err(e.clone());
            }
            if let Some(behind) = clocks::say_behind(&self.shared) {
                // Until its clock gets there, or an operator moves it: nothing else is in the way.
                deadline = Instant::now() + JOIN_PATIENCE;
                hindrance.send_replace(Some(behind));
            }
            if Instant::now() > deadline {
                return Err(Error::fatal("the catalog did not reach this node in time"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Flushing and garbage collection, on a thread of their own.
    fn start_io(&self, gc_ttl: Duration, gc_interval: Duration, protected_for_max: Duration) {
        let shared = self.shared.clone();
        self.shared.runtime.spawn_io("flush", async move {
            let mut collected = shared.runtime.physical_micros();
            loop {
                shared.flusher.notified().await;
                if *shared.stopping.borrow() {
                    return;
                }
                let now = shared.runtime.physical_micros();
                let is_gc_due = now.saturating_sub(collected) >= gc_interval.as_micros() as u64;
                if !room::may_flush(&shared) {
                    continue;
                }
                if is_gc_due {
                    collected = now;
                }
                for replica in shared.all_replicas() {
                    let mut done = replica.flush().map(|_| ());
                    if done.is_ok() && is_gc_due {
                        let settled = replica.settled();
                        let kept_from = crate::protected::garbage_clock(&shared, protected_for_max).minus(gc_ttl);
                        done = replica.store.collect_garbage(kept_from.min(settled));
                    }
                    if let Err(e) = done
                        && !replica.is_retired()
                    {
                        replica.fail(e);
                        return;
                    }
                }
            }
        });
        let shared = self.shared.clone();
        self.shared.spawn(async move {
            let mut log_failure = shared.log.failure();
            loop {
                tokio::select! {
                    biased;
                    changed = log_failure.changed() => {
                        if changed.is_err() {
                            return;
                        }
                        if let Some(e) = log_failure.borrow_and_update().clone() {
                            shared.failure.send_if_modified(|f| f.is_none().then(|| *f = Some(e)).is_some());
                        }
                    }
                    () = tokio::time::sleep(gc_interval) => shared.flusher.notify_one(),
                }
            }
        });
    }

    /// What `sql` runs against.
    pub fn env(&self) -> Env<R> {
        Env(self.shared.clone())
    }

    /// Starts a task that ends with the node.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.shared.spawn(task);
    }

    /// The node's inside, for `server`'s metrics and session registry.
    pub fn shared(&self) -> &Arc<Shared<R>> {
        &self.shared
    }

    pub fn id(&self) -> NodeId {
        self.shared.me()
    }

    /// Where other nodes connect.
    pub fn addr(&self) -> String {
        self.addr.clone()
    }

    /// The error that this node cannot live with, once there is one: its process should end with it.
    pub fn failure(&self) -> watch::Receiver<Option<Error>> {
        self.shared.failure.subscribe()
    }

    /// Hands leadership over, flushes, and stops. What was acknowledged is durable either way.
    pub async fn shutdown(&self) {
        for replica in self.shared.all_replicas() {
            if !replica.is_serving() {
                continue;
            }
            match successor(&self.shared, &replica) {
                Some(to) => {
                    if let Err(e) = replica.transfer(to).await {
                        tracing::info!("{}: leadership was not handed over: {e}", replica.id);
                    }
                }
                None => replica.give_up().await,
            }
        }
        for replica in self.shared.all_replicas() {
            replica.raft().shutdown().await;
            if let Err(e) = replica.flush_all() {
                tracing::warn!("{}: not flushed: {e}", replica.id);
            }
        }
        self.end().await;
    }

    /// Ends what runs in the background and lets go of the files, which are free when the last session's task and the node itself are
    /// dropped.
    async fn end(&self) {
        for replica in self.shared.all_replicas() {
            replica.raft().shutdown().await;
        }
        self.shared.log.close().await;
        self.shared.stopping.send_replace(true);
        self.shared.flusher.notify_one();
        self.shared.rpc.tasks.stop().await;
        self.shared.rpc.disconnect();
        self.shared.replicas.write().clear();
    }
}

/// Whether the voters of a group are in several regions.
pub(crate) fn is_across_regions(group: &Group) -> bool {
    group.survival == Survival::Region
}

/// The live voter that is furthest, in this region if there is one.
pub(crate) fn successor<R: Runtime>(shared: &Shared<R>, replica: &Replica<R>) -> Option<NodeId> {
    let voters = replica.raft().members().voters;
    let progress = replica.raft().progress();
    let nodes = shared.catalog.nodes();
    let region = |n: NodeId| nodes.iter().find(|r| r.id == n).is_some_and(|r| r.region == shared.place.region);
    let others = voters.into_iter().filter(|n| *n != shared.me() && shared.is_live(*n));
    others.max_by_key(|n| (region(*n), progress.get(n).and_then(|p| p.matched), std::cmp::Reverse(*n)))
}

/// A directory of one cluster that is told to join another: a mistake that the node says and ends with, instead of serving.
async fn join_same_cluster<R: Runtime>(shared: Arc<Shared<R>>, addrs: Vec<String>) {
    for addr in addrs {
        let ping = members::own_ping(&shared);
        let answer = shared.rpc.call_addr(&addr, Request::Ping(ping), JOIN_CALL).await;
        // One that is down says nothing, and need not.
        if let Err(e) = answer
            && e.kind() == ErrorKind::Fatal
        {
            let e = Error::fatal(format!("the node at {addr} refuses this one"))
                .detail(e.message())
                .hint("Choose the --data-dir of that cluster, or leave --join out.");
            shared.failure.send_if_modified(|f| f.is_none().then(|| *f = Some(e)).is_some());
            return;
        }
    }
}

fn is_founder(join: &[String], addr: &str, listen: &str) -> bool {
    join.first().is_none_or(|first| first == addr || first == listen)
}

/// Tells the catalog when this node's addresses are not what it says.
///
/// A node that is started again is not drained any more; one that is being decommissioned stays what it is.
async fn keep_record<R: Runtime>(shared: Arc<Shared<R>>, mut record: NodeRecord) {
    loop {
        let known = shared.catalog.nodes().into_iter().find(|n| n.id == record.id);
        record.standing = match known.as_ref().map(|k| k.standing) {
            None | Some(Standing::Draining) => Standing::Active,
            Some(other) => other,
        };
        if known.as_ref() == Some(&record) {
            return;
        }
        if let Err(e) = register(&shared, record.clone(), false).await {
            tracing::info!("this node's addresses are not registered yet: {e}");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Registers a node with the catalog's primary, wherever that is.
async fn register<R: Runtime>(shared: &Arc<Shared<R>>, record: NodeRecord, is_passed_on: bool) -> Result<NodeId> {
    shared.call_primary(GroupId::CATALOG, REGISTER_PATIENCE, &Registration { record, is_passed_on }).await
}

struct Registration {
    record: NodeRecord,
    is_passed_on: bool,
}

impl<R: Runtime> Ask<R> for Registration {
    type Answer = NodeId;
    const TIMEOUT: Duration = JOIN_CALL;
    fn request(&self) -> Request {
        let NodeRecord { id: node, addr, sql_addr, region, zone, standing: _ } = self.record.clone();
        Request::Join { node, addr, sql_addr, region, zone, is_passed_on: true }
    }
    fn answer(response: Response) -> Option<NodeId> {
        if let Response::Joined(joined) = response { Some(joined.node) } else { None }
    }
    async fn here(&self, shared: &Arc<Shared<R>>, _: &Arc<Replica<R>>) -> Result<NodeId> {
        shared.ddl.ask(|reply| crate::ddl::Job::Register { record: self.record.clone(), reply }).await
    }
    fn may_travel(&self) -> bool {
        !self.is_passed_on
    }
}

/// 55000 if a group counts on a node, or may: it stops when it is no member of the cluster any more, and what it alone holds would be
/// lost. It gets no more replicas once it is being decommissioned.
async fn refuse_member<R: Runtime>(shared: &Arc<Shared<R>>, node: NodeId) -> Result<()> {
    let refused = |why: String| Err(Error::sql("55000", format!("node {node} cannot leave the cluster yet: {why}")));
    let groups = ranges::everywhere(shared).await;
    for group in shared.catalog.groups() {
        match groups.get(&group.id) {
            None => return refused(format!("no primary answers for group {}, which it may hold a replica of", group.id)),
            Some(status) if status.has(node) => return refused(format!("group {} has a replica there", group.id)),
            Some(_) => {}
        }
    }
    match groups.get(&GroupId::CATALOG) {
        Some(status) if !status.voters.contains(&node) => Ok(()),
        Some(_) => refused("it votes for the catalog".to_string()),
        None => Err(not_primary(GroupId::CATALOG)),
    }
}

/// Writes down what the operator wants of a node, wherever the catalog's primary is.
async fn stand<R: Runtime>(shared: &Arc<Shared<R>>, node: NodeId, standing: Standing, is_passed_on: bool) -> Result<()> {
    shared.call_primary(GroupId::CATALOG, REGISTER_PATIENCE, &Stand { node, standing, is_passed_on }).await
}

struct Stand {
    node: NodeId,
    standing: Standing,
    is_passed_on: bool,
}

impl<R: Runtime> Ask<R> for Stand {
    type Answer = ();
    const TIMEOUT: Duration = JOIN_CALL;
    fn request(&self) -> Request {
        Request::Stand { node: self.node, standing: self.standing, is_passed_on: true }
    }
    fn answer(response: Response) -> Option<()> {
        if let Response::Done = response { Some(()) } else { None }
    }
    async fn here(&self, shared: &Arc<Shared<R>>, _: &Arc<Replica<R>>) -> Result<()> {
        let (node, standing) = (self.node, self.standing);
        if standing == Standing::Decommissioned {
            refuse_member(shared, node).await?;
        }
        shared.ddl.ask(|reply| crate::ddl::Job::Stand { node, standing, reply }).await
    }
    fn may_travel(&self) -> bool {
        !self.is_passed_on
    }
}

pub(crate) struct RaftTransport<R: Runtime>(pub(crate) Arc<Rpc<R>>);

impl<R: Runtime> raft::Transport for RaftTransport<R> {
    fn call(&self, to: NodeId, group: GroupId, message: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        let rpc = self.0.clone();
        async move {
            match rpc.call(to, Request::Raft { group, message }, Duration::from_secs(10)).await? {
                Response::Raft(answer) => Ok(answer),
                _ => Err(Error::internal("a node gave an answer of another kind")),
            }
        }
        .boxed()
    }
}

/// Answers other nodes.
struct NodeHandler<R: Runtime>(Arc<Shared<R>>);

impl<R: Runtime> Handler for NodeHandler<R> {
    fn handle(&self, from: NodeId, request: Request) -> BoxFuture<'static, Response> {
        let shared = self.0.clone();
        async move {
            match answer(&shared, from, request).await {
                Ok((response, _)) => response,
                Err((e, Some(group))) if e.kind() == ErrorKind::NotPrimary => {
                    Response::NotPrimary { hint: shared.replica(group).and_then(|r| r.raft().role().leader) }
                }
                Err((e, _)) => Response::Error(e),
            }
        }
        .boxed()
    }
}

type Answer = std::result::Result<(Response, Option<GroupId>), (Error, Option<GroupId>)>;

async fn answer<R: Runtime>(shared: &Arc<Shared<R>>, from: NodeId, request: Request) -> Answer {
    // Only members connect with an id, and they pass on what members have sent them.
    let (from, request) = match request {
        Request::Relayed { from: sender, request } if from != NodeId(0) && request.may_be_relayed() => (sender, *request),
        request => (from, request),
    };
    let about = match &request {
        Request::Raft { group, .. }
        | Request::Read { group, .. }
        | Request::Commit { group, .. }
        | Request::Release { group, .. }
        | Request::ReleaseKeys { group, .. }
        | Request::Grant { group, .. }
        | Request::ReadReplica { group, .. }
        | Request::ReadPast { group, .. }
        | Request::ReadGlobal { group, .. }
        | Request::Holds { group, .. }
        | Request::Check { group, .. }
        | Request::IsMember { group }
        | Request::AheadOf { group, .. }
        | Request::Ballot { group: Some(group), .. } => Some(*group),
        Request::ChangeCatalog { .. } | Request::Join { .. } | Request::Stand { .. } => Some(GroupId::CATALOG),
        Request::Ping(_)
        | Request::Status
        | Request::Transactions
        | Request::Groups
        | Request::AwaitVersion { .. }
        | Request::Closed(_)
        | Request::Settled(_)
        | Request::Reserved { .. }
        | Request::WaitsOf(_)
        | Request::Clock
        | Request::AdvanceClock { .. }
        | Request::ForgetDrawn { .. }
        | Request::Relay { .. }
        | Request::Relayed { .. }
        | Request::Ballot { group: None, .. } => None,
    };
    answer_about(shared, from, request).await.map(|r| (r, about)).map_err(|e| (e, about))
}

async fn answer_about<R: Runtime>(shared: &Arc<Shared<R>>, from: NodeId, request: Request) -> Result<Response> {
    let primary = |group: GroupId| shared.replica(group).ok_or_else(|| not_primary(group));
    let own = |owner: Owner| Owner { gateway: from, ..owner };
    if !is_for_strangers(&request) && !shared.rpc.knows(from) && from != shared.me() {
        return Err(Error::unavailable(format!("node {from} is not known here")));
    }
    match request {
        Request::Raft { group, message } => {
            if from == NodeId(0) {
                return Err(Error::unavailable("only members take part in the consensus protocol"));
            }
            let replica = shared.addressed(group, &message).await?;
            Ok(Response::Raft(replica.raft().handle(message).await?))
        }
        Request::Read { group, mut view, ops } => Ok(Response::Read(primary(group)?.read(from, &mut view, &ops).await?)),
        Request::Commit { group, owner, request } => {
            let replica = primary(group)?;
            let outcome = shared.commit_at(&replica, &request).await?;
            let fresh = match &outcome {
                CommitOutcome::Conflict(_) => replica.out_of_date(&request.reads)?,
                _ => Vec::new(),
            };
            replica.release_locks(own(owner));
            Ok(Response::Commit(outcome, fresh))
        }
        Request::ReadReplica { group, view, ops } => Ok(Response::ReadReplica(primary(group)?.read_closed(&view, &ops)?)),
        Request::ReadPast { group, at, patience, ops } => {
            Ok(Response::ReadPast(primary(group)?.read_past(at, patience, &ops).await?))
        }
        Request::ReadGlobal { group, view, patience, ops } => {
            Ok(Response::ReadReplica(primary(group)?.read_global(&view, patience, &ops).await?))
        }
        Request::Holds { group, entries, needed, patience } => {
            Ok(Response::Holds(primary(group)?.holds(&entries, needed, patience).await?))
        }
        Request::Settled(groups) => {
            Ok(Response::Settled(groups.iter().map(|g| shared.replica(*g).map(|replica| replica.settled())).collect()))
        }
        Request::Closed(promises) => {
            for promise in &promises {
                if let Some(replica) = shared.replica(promise.group) {
                    replica.promised(promise);
                }
            }
            Ok(Response::Done)
        }
        Request::Check { group, entries, schema, at } => {
            Ok(Response::Checked(primary(group)?.check(&entries, &schema, at).await?))
        }
        Request::Ballot { group: Some(group), message } => {
            primary(group)?.ballot(message)?;
            Ok(Response::Done)
        }
        Request::Ballot { group: None, message } => {
            crate::txn::voted(shared, message);
            Ok(Response::Done)
        }
        Request::Reserved { id, from, at, found } => {
            crate::txn::reserved(shared, id, from, at, found);
            Ok(Response::Done)
        }
        Request::Release { group, owner } => {
            primary(group)?.release_locks(own(owner));
            Ok(Response::Done)
        }
        Request::ForgetDrawn { sequence } => {
            shared.sessions.read().iter().for_each(|sessions| sessions.forget_drawn(sequence));
            Ok(Response::Done)
        }
        Request::ReleaseKeys { group, owner, keys } => {
            primary(group)?.release_keys(own(owner), &keys);
            Ok(Response::Done)
        }
        Request::AheadOf { group, waiter } => Ok(Response::Owners(primary(group)?.ahead_of(waiter)?)),
        Request::WaitsOf(owners) => Ok(Response::WaitsOf(shared.waiting.of(&owners))),
        Request::Ping(ping) => {
            members::hear(shared, from, ping, None);
            Ok(Response::Pong(members::own_ping(shared)))
        }
        Request::ChangeCatalog { id, base, change, with, is_again } => {
            let call = StepCall { id, from, base, change, with, is_again };
            shared.ddl.change(call).await.map(Response::CatalogChanged)
        }
        Request::AwaitVersion { version } => {
            if !shared.may_be_a_version(version) {
                return Err(Error::unavailable("there cannot be such a version"));
            }
            Env(shared.clone()).await_version(version, SPREAD_TIMEOUT).await?;
            Ok(Response::Done)
        }
        Request::Grant { group, grant } => {
            let replica = primary(group)?;
            check_grant(shared, &replica, &grant)?;
            Ok(Response::Granted { bound: replica.grant(grant).await? })
        }
        Request::Join { node, addr, sql_addr, region, zone, is_passed_on } => {
            let record = NodeRecord { id: node, addr, sql_addr, region, zone, standing: Standing::Active };
            check_record(shared, &record)?;
            let node = register(shared, record, is_passed_on).await?;
            Ok(Response::Joined(Joined { cluster: shared.catalog.cluster(), node, nodes: shared.catalog.nodes() }))
        }
        Request::Relay { to, patience, request } => shared.relay(from, to, patience, *request).await,
        Request::Relayed { .. } => Err(Error::unavailable("only members pass requests on, and only once")),
        Request::Status => {
            let mut status = shared.status(&ranges::everywhere(shared).await);
            clocks::add_reports(shared, &mut status).await;
            Ok(Response::Status(status))
        }
        Request::Clock => Ok(Response::Clock(clocks::report(shared))),
        Request::AdvanceClock { by } => {
            clocks::advance(shared, by).await?;
            Ok(Response::Done)
        }
        Request::Transactions => Ok(Response::Transactions(shared.transactions())),
        Request::Groups => Ok(Response::Groups(ranges::led_here(shared))),
        Request::IsMember { group } => Ok(Response::IsMember(shared.is_member(group, from)?)),
        Request::Stand { node, standing, is_passed_on } => {
            stand(shared, node, standing, is_passed_on).await?;
            Ok(Response::Done)
        }
    }
}

/// Whether a node that nobody knows may ask this: one that joins, an operator's command, and a voter of a group that has heard of a new
/// node before the catalog's copy here has.
fn is_for_strangers(request: &Request) -> bool {
    matches!(
        request,
        Request::Raft { .. }
            | Request::Join { .. }
            | Request::Ping(_)
            | Request::Status
            | Request::Stand { .. }
            | Request::Transactions
            | Request::Groups
            | Request::Clock
            | Request::AdvanceClock { .. }
    )
}

/// A grant that the catalog cannot have made would outlast every other one: the group would keep it for ever.
fn check_grant<R: Runtime>(shared: &Shared<R>, replica: &Replica<R>, grant: &SchemaGrant) -> Result<()> {
    const SEQ_AHEAD_MAX: u64 = 1 << 36;
    let last = replica.core.lock().state.grant().seq;
    let now = Timestamp::from_micros(shared.runtime.physical_micros());
    let is_absurd = !shared.may_be_a_version(grant.version)
        || grant.seq.saturating_sub(last) > SEQ_AHEAD_MAX
        || grant.bound.since(now) > limits::SCHEMA_LEASE * 2;
    if is_absurd { Err(Error::unavailable("the catalog cannot have granted that")) } else { Ok(()) }
}

/// 22023 if what a node says of itself cannot be true; 53300 if the cluster has as many nodes as it may.
fn check_record<R: Runtime>(shared: &Shared<R>, record: &NodeRecord) -> Result<()> {
    let absurd = |what: &str, value: &str| {
        let shown: String = value.chars().take(64).collect();
        Err(Error::sql("22023", format!("a node cannot join with {what} {shown:?}")))
    };
    for (what, name) in [("region", &record.region), ("zone", &record.zone)] {
        if name.is_empty() || name.len() > limits::PLACE_BYTES_MAX || name.chars().any(char::is_control) {
            return absurd(what, name);
        }
    }
    for (what, addr) in [("address", &record.addr), ("SQL address", &record.sql_addr)] {
        let is_addr = addr.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        let is_plain = !addr.chars().any(|c| c.is_control() || c.is_whitespace());
        if !is_addr || !is_plain || addr.len() > limits::PLACE_BYTES_MAX {
            return absurd(what, addr);
        }
    }
    if record.id == NodeId(0) && shared.catalog.nodes().len() >= limits::NODES_MAX {
        return Err(Error::sql("53300", format!("the cluster has {} nodes, and may have no more", limits::NODES_MAX)));
    }
    if record.id != NodeId(0) && !shared.catalog.nodes().iter().any(|n| n.id == record.id) {
        return Err(Error::unavailable(format!("node {} is not known here", record.id)));
    }
    Ok(())
}

/// Asks a node of any cluster for its cluster's status: for command lines, which are members of nothing.
pub async fn status_of<R: Runtime>(runtime: R, addr: &str) -> Result<Vec<crate::wire::NodeStatus>> {
    match stranger(runtime).call_addr(addr, Request::Status, Duration::from_secs(5)).await? {
        Response::Status(nodes) => Ok(nodes),
        _ => Err(Error::internal("a node gave an answer of another kind")),
    }
}

/// Asks a node of a cluster to write down what the operator wants of one of its nodes.
pub async fn stand_at<R: Runtime>(runtime: R, addr: &str, node: NodeId, standing: Standing) -> Result<()> {
    match stranger(runtime).call_addr(addr, Request::Stand { node, standing, is_passed_on: false }, JOIN_PATIENCE).await? {
        Response::Done => Ok(()),
        _ => Err(Error::internal("a node gave an answer of another kind")),
    }
}

/// Moves the clocks of a cluster ahead to where its groups' promises end (see [`crate::clocks`]). Asks a node for the others.
pub async fn accept_clock_at<R: Runtime>(runtime: R, addr: &str) -> Result<Accepted> {
    let nodes = status_of(runtime.clone(), addr).await?;
    clocks::accept(&stranger(runtime), &nodes).await
}

/// Calls of whoever is a member of nothing, and follows no clock.
fn stranger<R: Runtime>(runtime: R) -> Arc<Rpc<R>> {
    const ANY: Duration = Duration::from_secs(100 * 365 * 86_400);
    Rpc::new(runtime, Arc::new(Clock::new(ANY)), None, None)
}
