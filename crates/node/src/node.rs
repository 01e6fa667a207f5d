//! A node: founding or joining a cluster, answering other nodes, and stopping cleanly.

use crate::catalog::CatalogCache;
use crate::catalog::rows::{Meta, change_rows, meta_key, node_key, row};
use crate::catalog::steps::StepCall;
use crate::gateway::ask::Ask;
use crate::gateway::env::Env;
use crate::gateway::in_doubt;
use crate::local::lifecycle::Lifecycle;
use crate::local::room::{self, Room, RoomOptions};
use crate::local::timing::Timing;
use crate::membership::address_book;
use crate::membership::clocks;
use crate::membership::departure;
use crate::membership::departures::Departures;
use crate::membership::founding::{Hindrance, JOIN_CALL, Newcoming, Notice, starting};
use crate::membership::holdings::Holdings;
use crate::membership::identity::{self, Identity};
use crate::membership::lost::{self, refuse_member};
use crate::membership::peers::{DEAD_AFTER_DEFAULT, LIVENESS_TIMEOUT};
use crate::membership::pings;
use crate::membership::placement::{self, successor};
use crate::membership::ranges;
use crate::membership::shared::Shared;
use crate::membership::space;
use crate::membership::starting::{ensure_replica, start_groups, start_unknown};
use crate::replica::Replica;
use crate::replica::common::Common;
use crate::replica::outbox::Outbox;
use crate::schema::coordinator::SPREAD_TIMEOUT;
use crate::transport::rpc::{Echoes, Handler, Links, Place, Rpc};
use crate::transport::wire::{Joined, NodeRecord, Request, Response, Standing};
use crate::upkeep;
use futures::FutureExt;
use futures::future::BoxFuture;
use meridian_base::record::SchemaGrant;
use meridian_base::runtime::{Listener, Runtime};
use meridian_base::{Clock, CommitOutcome, Error, ErrorKind, GroupId, NodeId, Result, SchemaVersion, Timestamp, TxnId, limits};
use meridian_raft as raft;
use meridian_region::Owner;
use meridian_region::PlantedBugs;
use meridian_sql::catalog::bootstrap;
use meridian_sql::session::{self, SessionFactory};
use meridian_sql::statistics::Attention;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How a node is started.
pub struct NodeConfig {
    pub place: Place,
    /// The address that the node listens on for other nodes.
    pub listen: String,
    /// The address that other nodes are told to connect to. `None`: the one that the node listens
    /// on. They differ where the node sees another network than its peers do: in a container,
    /// behind address translation, or when it listens on every interface (`0.0.0.0`).
    pub advertise: Option<String>,
    /// Where clients connect; told to others, served by `server`.
    pub sql_addr: String,
    /// Nodes of the cluster, for a node whose directory is empty: it joins them, or founds the
    /// cluster with them (see [`crate::membership::founding`]). Without others it founds a cluster by itself.
    pub join: Vec<String>,
    /// For so long a node that founds a cluster listens first whether somebody takes it for a
    /// member of one.
    pub founding_pause: Duration,
    pub store: meridian_store::Backend,
    pub store_options: meridian_store::Options,
    pub log_options: raft::LogOptions,
    pub room: RoomOptions,
    /// Delays injected between nodes.
    pub links: Option<Links>,
    /// Calls to other nodes that arrive twice; in the simulator.
    pub echoes: Option<Echoes>,
    pub max_offset: Duration,
    /// What keeps the node from coming up, for clients.
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
            advertise: None,
            sql_addr: sql_addr.into(),
            join: Vec::new(),
            founding_pause: Duration::ZERO,
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
#[derive(Clone)]
pub struct Node {
    shared: Arc<Shared>,
    addr: String,
}

/// A node that waits for the catalog says so after this.
const CATALOG_NOTICE: Duration = Duration::from_secs(5);
/// How often a node says where it is until that is written down, or when somebody else has its
/// address.
const ANNOUNCE_PAUSE: Duration = Duration::from_millis(500);
/// How long a change of a node's record looks for the catalog's primary before whoever asked is
/// told.
const REGISTER_PATIENCE: Duration = Duration::from_secs(1);
const GC_INTERVAL_DEFAULT: Duration = Duration::from_secs(60);

impl Node {
    /// Starts a node: recovers what its directory holds, or founds or joins a cluster. Returns when
    /// it can plan statements, however long that takes.
    pub fn start(runtime: Arc<dyn Runtime>, config: NodeConfig) -> BoxFuture<'static, Result<Node>> {
        Box::pin(Node::open(runtime, config))
    }

    async fn open(runtime: Arc<dyn Runtime>, config: NodeConfig) -> Result<Node> {
        config.timing.check()?;
        let known = identity::load(&runtime)?;
        runtime.steady_clock().follow_steps_of(config.max_offset);
        clocks::continue_accepted(&runtime);
        let clock = Arc::new(Clock::new(config.max_offset));
        let catalog = CatalogCache::new(clock.clone());
        let rpc = Rpc::new(runtime.clone(), clock.clone(), config.links.clone(), config.echoes.clone());
        let listener =
            runtime.listen(&config.listen).await.map_err(|e| cannot_listen(&config.listen, "other nodes", "--listen", &e))?;
        let own_addr = listener.local_addr().map_err(|e| Error::fatal(format!("no local address: {e}")))?;
        let addr = config.advertise.clone().unwrap_or(own_addr);
        identity::check_log(&runtime, known.as_ref())?;
        room::before_start(&runtime, config.room);
        let log = raft::NodeLog::open(runtime.clone(), config.log_options.clone()).await?;
        let store = meridian_store::Store::open(config.store.clone(), config.store_options.clone())?;
        identity::check_data(&runtime, known.as_ref(), &log, &store)?;
        let departures = Departures::load(&runtime)?;
        let holdings = Holdings::load(&runtime)?;
        let held = holdings.all().difference(&departures.left()).copied().collect();
        identity::check_holdings(&runtime, held, &log, &store)?;
        let (outbox, work) = Outbox::new();
        let common = Common {
            life: Lifecycle::new(runtime.random(), rpc.tasks.clone()),
            runtime,
            clock,
            log,
            store,
            flusher: Notify::new(),
            outbox,
            room: Room::default(),
            protected: Arc::default(),
            metrics: Arc::default(),
            timing: config.timing,
            bugs: config.bugs,
            ballot_bugs: config.ballot_bugs,
        };
        let shared = Shared::new(
            Arc::new(common),
            rpc,
            catalog,
            config.place.clone(),
            addr.clone(),
            config.dead_after,
            departures,
            holdings,
        );
        let serving = Arc::downgrade(&shared);
        shared.groups.common.store.on_damage(move |e| {
            if let Some(shared) = serving.upgrade() {
                shared.fail(e);
            }
        });
        shared.spawn(crate::gateway::delivery::work_loop(shared.clone(), work));
        shared.spawn(space::keep(shared.clone(), config.room));
        let node = Node { shared, addr: addr.clone() };
        upkeep::start(&node.shared, config.gc_ttl, config.gc_interval, config.protected_for_max);
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
    async fn begin(
        &self,
        known: Option<Identity>,
        config: &NodeConfig,
        record: NodeRecord,
        listener: Box<dyn Listener>,
    ) -> Result<()> {
        let shared = &self.shared;
        let is_other = |addr: &&String| **addr != record.addr && **addr != config.listen;
        let others: Vec<String> = config.join.iter().filter(is_other).cloned().collect();
        match known {
            Some(identity) => shared.set_identity(identity),
            None => shared.begin_founding(&record.addr, others.is_empty()).await?,
        }
        // Others are answered from here on: those that have no identity either, and those that must
        // not take this node for another.
        let handler: Arc<dyn Handler> = Arc::new(NodeHandler(shared.clone()));
        shared.spawn_protocol(shared.rpc.clone().serve(listener, handler));
        shared.spawn_protocol(clocks::stop_at_step(shared.clone()));
        let mut failure = self.failure();
        let broken = async {
            let error = failure.wait_for(Option::is_some).await.ok().and_then(|error| error.clone());
            match error {
                Some(error) => error,
                None => std::future::pending().await,
            }
        };
        let started = async {
            let identity = match known {
                Some(identity) => {
                    shared.spawn(meet_members(shared.clone(), others));
                    identity
                }
                None => {
                    let (hindrance, pause) = (&config.hindrance, config.founding_pause);
                    Newcoming { shared, others, record: &record, hindrance, pause }.identity().await?
                }
            };
            self.run(identity, record.clone(), &config.hindrance).await
        };
        // A disk that fails meanwhile leaves nothing to wait for.
        tokio::select! {
            biased;
            started = started => started,
            error = broken => Err(error),
        }
    }

    async fn run(&self, identity: Identity, mut record: NodeRecord, hindrance: &Hindrance) -> Result<()> {
        let shared = &self.shared;
        record.id = identity.node;
        let mut groups: BTreeSet<GroupId> =
            shared.groups.common.log.groups().into_iter().chain(shared.groups.common.store.groups()).collect();
        groups.insert(GroupId::CATALOG);
        for left in departure::finish(shared).await? {
            groups.remove(&left);
        }
        address_book::load(&shared.runtime).iter().filter(|n| n.id != identity.node).for_each(|n| shared.rpc.learn(n));
        // The catalog first: its content tells where the other nodes are now.
        ensure_replica(shared, GroupId::CATALOG).await?;
        shared.catalog.nodes().iter().for_each(|n| shared.rpc.learn(n));
        shared.life.open();
        shared.spawn_protocol(clocks::compare(shared.clone()));
        // What a replica is depends on its group's descriptor, which may have come shortly before
        // the node stopped.
        let (known, unknown): (Vec<GroupId>, Vec<GroupId>) =
            groups.into_iter().partition(|g| *g == GroupId::CATALOG || shared.catalog.group(*g).is_some());
        for group in known {
            ensure_replica(shared, group).await?;
        }
        if !unknown.is_empty() {
            shared.spawn(start_unknown(shared.clone(), unknown));
        }
        if identity.is_founding {
            self.found_catalog(identity.cluster, &record).await?;
            identity::save(&shared.runtime, Identity { is_founding: false, ..identity }).await?;
        }
        shared.spawn(start_groups(shared.clone()));
        shared.spawn_protocol(pings::ping_loop(shared.clone()));
        shared.spawn_protocol(crate::membership::reach::detour_loop(shared.clone()));
        shared.spawn(address_book::keep(shared.clone()));
        shared.spawn(placement::placement_loop(shared.clone()));
        shared.spawn(lost::lost_loop(shared.clone()));
        shared.spawn(departure::departure_loop(shared.clone()));
        shared.spawn_protocol(crate::membership::promises::promise_loop(shared.clone()));
        shared.spawn(announce(shared.clone(), record));
        self.await_catalog(hindrance).await;
        Ok(())
    }

    /// The first node initialises the catalog's group and writes its first rows; after a crash in
    /// between, again.
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
            // It was founded before; the rows were in the log, or came from another node that leads
            // now.
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
        crate::schema::coordinator::commit_catalog(&self.shared, &replica, writes, Vec::new(), Timestamp::MIN).await?;
        Ok(())
    }

    /// The catalog's primary sends it, once there is one.
    async fn await_catalog(&self, hindrance: &Hindrance) {
        let (begun, mut notice) = (Instant::now(), Notice::default());
        while self.shared.catalog.at(self.shared.runtime.physical_micros()).version == SchemaVersion(0) {
            if let Some(behind) = clocks::say_behind(&self.shared) {
                // Until its clock gets there, or an operator moves it: nothing else is in the way.
                hindrance.send_replace(Some(behind));
            } else if begun.elapsed() > CATALOG_NOTICE {
                let waits = format!("node {} waits for the catalog, which its primary sends", self.shared.me());
                hindrance.send_replace(Some(starting(&waits)));
                notice.say(waits);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What `sql` runs against.
    pub fn env(&self) -> Env {
        Env(self.shared.clone())
    }

    /// What opens its clients' sessions.
    pub fn sessions(&self) -> Arc<dyn SessionFactory> {
        Arc::new(self.env())
    }

    /// Goes on with the schema jobs of nodes that died, and counts the rows of tables that change,
    /// beside these sessions.
    pub fn run_jobs(&self, sessions: &Arc<session::Shared>, attention: Attention) {
        self.spawn(meridian_sql::catalog::jobs::adopt(self.env(), sessions.clone()));
        self.spawn(meridian_sql::statistics::keep_up(self.env(), sessions.clone(), attention));
    }

    /// Starts a task that ends with the node.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.shared.spawn(task);
    }

    /// The node's inside, for `server`'s metrics and session registry.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The groups this node serves as primary, with their terms.
    pub fn leads(&self) -> Vec<(GroupId, u64)> {
        self.shared.groups.leads()
    }

    /// Of each group in which this node votes, how many others do, as far as it knows.
    pub fn voters_beside(&self) -> Vec<usize> {
        self.shared.groups.voters_beside()
    }

    pub fn id(&self) -> NodeId {
        self.shared.me()
    }

    /// Where other nodes connect.
    pub fn addr(&self) -> String {
        self.addr.clone()
    }

    /// The error that this node cannot live with, once there is one: its process should end with
    /// it.
    pub fn failure(&self) -> watch::Receiver<Option<Error>> {
        self.shared.life.failure()
    }

    /// Hands leadership over, flushes, and stops. What was acknowledged is durable either way.
    pub fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.hand_over_and_end())
    }

    async fn hand_over_and_end(&self) {
        for replica in self.shared.groups.all() {
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
        for replica in self.shared.groups.all() {
            replica.raft().shutdown().await;
            if let Err(e) = replica.flush_all() {
                tracing::warn!("{}: not flushed: {e}", replica.id);
            }
        }
        self.end().await;
    }

    /// Ends what runs in the background and lets go of the files, which are free when the last
    /// session's task and the node itself are dropped.
    async fn end(&self) {
        for replica in self.shared.groups.all() {
            replica.raft().shutdown().await;
        }
        self.shared.groups.common.log.close().await;
        self.shared.life.stop();
        self.shared.groups.common.flusher.notify_one();
        self.shared.rpc.tasks.stop().await;
        self.shared.rpc.disconnect();
        self.shared.groups.clear();
    }
}

/// Looks who answers at the addresses in `--join`, until the catalog is known to be the newest: it
/// says where all nodes are. A directory of one cluster that is told to join another is a mistake
/// that the node says and ends with, instead of serving.
async fn meet_members(shared: Arc<Shared>, addrs: Vec<String>) {
    loop {
        for addr in &addrs {
            match shared.rpc.who_is_at(addr).await {
                Ok(node) => shared.rpc.find(node, addr).await,
                Err(e) if e.kind() == ErrorKind::Fatal => {
                    let e = Error::fatal(format!("the node at {addr} refuses this one"))
                        .detail(e.message())
                        .hint("Choose the --data-dir of that cluster, or leave --join out.");
                    shared.fail(e);
                    return;
                }
                // One that is down says nothing, and need not.
                Err(_) => {}
            }
        }
        if shared.freshness.is_fresh() || addrs.is_empty() {
            return;
        }
        tokio::time::sleep(ANNOUNCE_PAUSE).await;
    }
}

/// Tells the catalog's primary that this node runs, and where; again when the catalog says that
/// somebody else has its address.
///
/// A node that is started again is not drained any more, nor lost; one that is being decommissioned
/// stays what it is.
async fn announce(shared: Arc<Shared>, record: NodeRecord) {
    let mut changed = shared.catalog.watch();
    let mut notice = Notice::default();
    loop {
        let told = match register(&shared, record.clone(), 0, false).await {
            Err(e) if e.is_unavailable() => announce_through(&shared, &record).await,
            told => told.map(|_| ()),
        };
        match told {
            Ok(()) => {}
            // Whoever says so knows better: this node has no part in the cluster, or cannot be
            // where it is.
            Err(e) if is_final(&e) => {
                shared.fail(e);
                return;
            }
            Err(e) => {
                // Some errors count the time.
                let what = e.to_string().replace(|c: char| c.is_ascii_digit(), "");
                notice.say_of(what, format!("node {} is not registered at {} yet: {e}", record.id, record.addr));
                tokio::time::sleep(ANNOUNCE_PAUSE).await;
                continue;
            }
        }
        let is_lost = |shared: &Shared| shared.catalog.nodes().iter().any(|n| n.id == record.id && n.standing == Standing::Lost);
        loop {
            changed.borrow_and_update();
            if is_lost(&shared) {
                break;
            }
            if changed.changed().await.is_err() {
                return;
            }
        }
        tokio::time::sleep(LIVENESS_TIMEOUT).await;
    }
}

/// Tells it through any node whose address is known: this one may know nothing else, and nobody may
/// tell it the catalog any more.
async fn announce_through(shared: &Arc<Shared>, record: &NodeRecord) -> Result<()> {
    let mut known = shared.catalog.nodes();
    known.extend(address_book::load(&shared.runtime));
    let addrs: BTreeSet<String> = known.into_iter().map(|n| n.addr).filter(|addr| *addr != record.addr).collect();
    let mut last = Error::unavailable("no other node is known");
    for addr in addrs {
        let NodeRecord { id: node, addr: own, sql_addr, region, zone, standing: _ } = record.clone();
        let ask = Request::Join { node, token: 0, addr: own, sql_addr, region, zone, is_passed_on: false };
        match shared.rpc.call_addr(&addr, ask, JOIN_CALL).await {
            Ok(Response::Joined(_)) => return Ok(()),
            Ok(_) => {}
            Err(e) if is_final(&e) => return Err(e),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Whether a member was told something that will not change. A stranger at another member's address
/// has nothing to say.
fn is_final(e: &Error) -> bool {
    e.kind() == ErrorKind::Fatal && e.sqlstate() != "08004"
}

/// Registers a node with the catalog's primary, wherever that is.
async fn register(shared: &Arc<Shared>, record: NodeRecord, token: u128, is_passed_on: bool) -> Result<NodeId> {
    shared.call_primary(GroupId::CATALOG, REGISTER_PATIENCE, &Registration { record, token, is_passed_on }).await
}

struct Registration {
    record: NodeRecord,
    /// See [`Request::Join`].
    token: u128,
    is_passed_on: bool,
}

impl Ask for Registration {
    type Answer = NodeId;
    const TIMEOUT: Duration = JOIN_CALL;
    fn request(&self) -> Request {
        let NodeRecord { id: node, addr, sql_addr, region, zone, standing: _ } = self.record.clone();
        Request::Join { node, token: self.token, addr, sql_addr, region, zone, is_passed_on: true }
    }
    fn answer(response: Response) -> Option<NodeId> {
        if let Response::Joined(joined) = response { Some(joined.node) } else { None }
    }
    async fn here(&self, shared: &Arc<Shared>, _: &Arc<Replica>) -> Result<NodeId> {
        refuse_taken_address(shared, &self.record).await?;
        let (record, token) = (self.record.clone(), self.token);
        shared.steps.ask(|reply| crate::catalog::steps::Job::Register { record, token, reply }).await
    }
    fn may_travel(&self) -> bool {
        !self.is_passed_on
    }
}

/// An address that a node of the cluster has and answers at is nobody else's: whoever says that it
/// is there listens in another network, or on its own machine only. A node that does not answer at
/// its address any more has lost it.
async fn refuse_taken_address(shared: &Arc<Shared>, record: &NodeRecord) -> Result<()> {
    for other in shared.catalog.nodes().into_iter().filter(|n| n.id != record.id && n.addr == record.addr) {
        let has_it = !matches!(other.standing, Standing::Decommissioned | Standing::Lost);
        let answers_there = match other.id == shared.me() {
            true => shared.peers.addr == other.addr,
            false => shared.rpc.is_at(other.id, &other.addr).await,
        };
        if has_it && answers_there {
            return Err(Error::fatal(format!("the address {} is that of node {}, which answers there", other.addr, other.id))
                .hint("Start this node with an address in --advertise that the others reach it at."));
        }
    }
    Ok(())
}

/// Writes down what the operator wants of a node, wherever the catalog's primary is.
async fn stand(shared: &Arc<Shared>, node: NodeId, standing: Standing, is_passed_on: bool) -> Result<()> {
    shared.call_primary(GroupId::CATALOG, REGISTER_PATIENCE, &Stand { node, standing, is_passed_on }).await
}

struct Stand {
    node: NodeId,
    standing: Standing,
    is_passed_on: bool,
}

impl Ask for Stand {
    type Answer = ();
    const TIMEOUT: Duration = JOIN_CALL;
    fn request(&self) -> Request {
        Request::Stand { node: self.node, standing: self.standing, is_passed_on: true }
    }
    fn answer(response: Response) -> Option<()> {
        if let Response::Done = response { Some(()) } else { None }
    }
    async fn here(&self, shared: &Arc<Shared>, _: &Arc<Replica>) -> Result<()> {
        let (node, standing) = (self.node, self.standing);
        if standing == Standing::Decommissioned {
            refuse_member(shared, node).await?;
        }
        shared.steps.ask(|reply| crate::catalog::steps::Job::Stand { node, standing, reply }).await
    }
    fn may_travel(&self) -> bool {
        !self.is_passed_on
    }
}

/// Answers other nodes.
struct NodeHandler(Arc<Shared>);

impl Handler for NodeHandler {
    fn handle(&self, from: NodeId, request: Request) -> BoxFuture<'static, Response> {
        let shared = self.0.clone();
        async move {
            match answer(&shared, from, request).await {
                Ok((response, _)) => response,
                Err((e, Some(group))) if e.kind() == ErrorKind::NotPrimary => {
                    Response::NotPrimary { hint: shared.groups.replica(group).and_then(|r| r.raft().role().leader) }
                }
                Err((e, _)) => Response::Error(e),
            }
        }
        .boxed()
    }
}

type Answer = std::result::Result<(Response, Option<GroupId>), (Error, Option<GroupId>)>;

async fn answer(shared: &Arc<Shared>, from: NodeId, request: Request) -> Answer {
    // Only members connect with an id, and they pass on what members have sent them.
    let (from, request) = match request {
        Request::Relayed { from: sender, request } if from != NodeId(0) => (sender, request.open().map_err(|e| (e, None))?),
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
        | Request::EndInDoubt { group, .. }
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
        | Request::Knows(_)
        | Request::Ballot { group: None, .. } => None,
        Request::Muster { .. } | Request::Init => None,
    };
    answer_about(shared, from, request).await.map(|r| (r, about)).map_err(|e| (e, about))
}

async fn answer_about(shared: &Arc<Shared>, from: NodeId, request: Request) -> Result<Response> {
    let primary = |group: GroupId| shared.groups.replica(group).ok_or_else(|| Error::not_primary(group));
    let own = |owner: Owner| Owner { gateway: from, ..owner };
    let is_open = shared.life.is_open();
    if !is_for_strangers(&request) && !shared.rpc.knows(from) && from != shared.me() {
        return Err(Error::unavailable(format!("node {from} is not known here")));
    }
    match request {
        Request::Muster { from, ask } => Ok(Response::Mustered(shared.mustered(&from, ask).await?)),
        Request::Init => {
            shared.init().await?;
            Ok(Response::Done)
        }
        _ if !is_open => Err(not_open(shared)),
        Request::Raft { group, message, .. } => {
            if from == NodeId(0) {
                return Err(Error::unavailable("only members take part in the consensus protocol"));
            }
            let replica = shared.addressed(group, from, &message).await?;
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
            Ok(Response::Settled(groups.iter().map(|g| shared.groups.replica(*g).map(|replica| replica.settled())).collect()))
        }
        Request::Closed(promises) => {
            for promise in &promises {
                if let Some(replica) = shared.groups.replica(promise.group) {
                    replica.promised(from, promise);
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
            crate::gateway::txn::voted(shared, message);
            Ok(Response::Done)
        }
        Request::Reserved { id, from, at, found } => {
            crate::gateway::txn::reserved(shared, id, from, at, found);
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
            pings::hear(shared, from, ping, None);
            Ok(Response::Pong(pings::own_ping(shared)))
        }
        Request::ChangeCatalog { id, base, change, with, is_again } => {
            let call = StepCall { id, from, base, change, with, is_again };
            shared.steps.change(call).await.map(Response::CatalogChanged)
        }
        Request::AwaitVersion { version } => {
            if !shared.freshness.may_be_a_version(version) {
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
        Request::Join { node, token, addr, sql_addr, region, zone, is_passed_on } => {
            let record = NodeRecord { id: node, addr, sql_addr, region, zone, standing: Standing::Active };
            check_record(shared, &record)?;
            let node = register(shared, record, token, is_passed_on).await?;
            // What a member is of it knows before it has the catalog: it may have joined just now,
            // and passes this on.
            Ok(Response::Joined(Joined { cluster: shared.rpc.cluster(), node, nodes: shared.catalog.nodes() }))
        }
        Request::Relay { to, patience, request } => shared.peers.relay(from, to, patience, request).await,
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
        Request::Transactions => Ok(Response::Transactions(shared.groups.transactions())),
        Request::Groups => Ok(Response::Groups(ranges::led_here(shared))),
        Request::IsMember { group } => Ok(Response::IsMember(shared.groups.is_member(group, from)?)),
        Request::Knows(id) => Ok(Response::Knows(in_doubt::known_here(shared, id))),
        Request::EndInDoubt { group, id, at } => Ok(Response::Ended(primary(group)?.end_in_doubt(id, at).await?)),
        Request::Stand { node, standing, is_passed_on } => {
            stand(shared, node, standing, is_passed_on).await?;
            Ok(Response::Done)
        }
    }
}

/// Whether a node that nobody knows may ask this: one that joins, an operator's command, and a
/// voter of a group that has heard of a new node before the catalog's copy here has.
fn is_for_strangers(request: &Request) -> bool {
    matches!(
        request,
        Request::Raft { .. }
            | Request::Join { .. }
            | Request::Muster { .. }
            | Request::Init
            | Request::Ping(_)
            | Request::Status
            | Request::Stand { .. }
            | Request::Transactions
            | Request::Groups
            | Request::Clock
            | Request::AdvanceClock { .. }
    )
}

/// A grant that the catalog cannot have made would outlast every other one: the group would keep it
/// for ever.
fn check_grant(shared: &Shared, replica: &Replica, grant: &SchemaGrant) -> Result<()> {
    const SEQ_AHEAD_MAX: u64 = 1 << 36;
    let last = replica.core.lock().state.grant().seq;
    let now = Timestamp::from_micros(shared.runtime.physical_micros());
    let is_absurd = !shared.freshness.may_be_a_version(grant.version)
        || grant.seq.saturating_sub(last) > SEQ_AHEAD_MAX
        || grant.bound.since(now) > limits::SCHEMA_LEASE * 2;
    if is_absurd { Err(Error::unavailable("the catalog cannot have granted that")) } else { Ok(()) }
}

/// 22023 if what a node says of itself cannot be true; 53300 if the cluster has as many nodes as it
/// may.
fn check_record(shared: &Shared, record: &NodeRecord) -> Result<()> {
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
    let members = shared.catalog.nodes().iter().filter(|n| n.standing != Standing::Decommissioned).count();
    if record.id == NodeId(0) && members >= limits::NODES_MAX {
        return Err(Error::sql("53300", format!("the cluster has {} nodes, and may have no more", limits::NODES_MAX)));
    }
    if record.id != NodeId(0) && !shared.catalog.nodes().iter().any(|n| n.id == record.id) {
        return Err(Error::unavailable(format!("node {} is not known here", record.id)));
    }
    Ok(())
}

/// The answer of a process that does not know who it is yet, or has not read what it knows.
fn not_open(shared: &Shared) -> Error {
    match shared.me() {
        NodeId(0) => Error::unavailable(format!("the process at {} is not a member of a cluster yet", shared.peers.addr))
            .hint("Its log says what it waits for."),
        node => Error::unavailable(format!("node {node} is starting")),
    }
}

/// Why an address cannot be listened on, for `option` of the command line.
pub fn cannot_listen(addr: &str, whom: &str, option: &str, e: &std::io::Error) -> Error {
    let hint = match e.kind() {
        std::io::ErrorKind::AddrInUse => format!("Another process uses the port. Choose one with {option}."),
        std::io::ErrorKind::AddrNotAvailable => format!("{option} takes an address of this machine."),
        std::io::ErrorKind::PermissionDenied => format!("The system keeps the port to itself. Choose one with {option}."),
        _ => format!("{option} takes HOST:PORT, where HOST is a name or an address of this machine."),
    };
    Error::fatal(format!("cannot listen on {addr} for {whom}")).detail(e.to_string()).hint(hint)
}
