//! A node: founding or joining a cluster, answering other nodes, and stopping cleanly.

use crate::answers::NodeHandler;
use crate::catalog::CatalogCache;
use crate::catalog::rows::{Meta, NodeRow, change_rows, meta_key, node_key, row};
use crate::gateway::env::Env;
use crate::gateway::foresight;
use crate::gateway::majority;
use crate::gateway::temporary;
use crate::gateway::txn::{Protocol, Tally};
use crate::gateway::work::work_loop;
use crate::gateway::{Gateway, Sessions};
use crate::local::lifecycle::Lifecycle;
use crate::local::room::{self, Room, RoomOptions};
use crate::local::timing::Timing;
use crate::membership::address_book;
use crate::membership::certificates::{Certificates, Security};
use crate::membership::clocks;
use crate::membership::departure;
use crate::membership::directory::Directory;
use crate::membership::founding::{CLAIM_HOLDS, Hindrance, Newcoming, Notice, claimed_alone, starting};
use crate::membership::identity::{self, Identity};
use crate::membership::joining::Joining;
use crate::membership::lost::{self};
use crate::membership::peers::DEAD_AFTER_DEFAULT;
use crate::membership::peers::Peers;
use crate::membership::pings;
use crate::membership::placement::{self, successor};
use crate::membership::registering::{announce, meet_members, require_version};
use crate::membership::renewing;
use crate::membership::revoking;
use crate::membership::rotating;
use crate::membership::shared::Shared;
use crate::membership::space;
use crate::membership::starting::{ensure_replica, start_groups, start_unknown};
use crate::membership::tokens;
use crate::replica::common::Common;
use crate::replica::groups::Groups;
use crate::replica::outbox::Outbox;
use crate::replica::pod::PodConfig;
use crate::schema::coordinator::coordinate;
use crate::transport::rpc::{Echoes, Handler, Links, Place, Rpc};
use crate::transport::security::Protection;
use crate::transport::wire::{NodeRecord, Standing};
use crate::upkeep;
use futures::future::BoxFuture;
use meridian_base::parts::LargeFrom;
use meridian_base::runtime::{Listener, Runtime};
use meridian_base::version::Versions;
use meridian_base::{Clock, Error, GroupId, NodeId, Result, SchemaVersion, Timestamp, TxnId, limits};
use meridian_pki::tls::Tls;
use meridian_raft as raft;
use meridian_region::Rules;
use meridian_sql::catalog::bootstrap;
use meridian_sql::session::Attention;
use meridian_sql::session::{self, SessionFactory};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
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
    /// cluster with them (see [`crate::membership::founding`]). Without others it founds a cluster
    /// by itself.
    pub join: Vec<String>,
    /// Certificates: how nodes know each other. `None`: not at all (`--insecure`, the simulator).
    pub security: Option<Security>,
    /// The address of a socket for operators of this machine (`unix:PATH`).
    pub local: Option<String>,
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
    /// The cluster versions that this program understands; in the simulator, those of an earlier
    /// program.
    pub versions: Versions,
    pub max_offset: Duration,
    /// What keeps the node from coming up, for clients.
    pub hindrance: watch::Sender<Option<Error>>,
    pub timing: Timing,
    pub gc_ttl: Duration,
    /// How often old versions are collected.
    pub gc_interval: Duration,
    /// How long an open transaction keeps old versions from being collected.
    pub protected_for_max: Duration,
    /// Which transactions are large ones.
    pub large_from: LargeFrom,
    /// A node that has been silent for so long loses its replicas to others.
    pub dead_after: Duration,
    pub rules: Rules,
    /// Rules of the commit over several groups left out; in the simulator.
    pub ballot_rules: meridian_commit::Rules,
    /// This node is a host of a pod.
    pub pod: Option<PodConfig>,
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
            security: None,
            local: None,
            founding_pause: Duration::ZERO,
            store,
            store_options: meridian_store::Options::default(),
            log_options: raft::LogOptions::default(),
            room: RoomOptions::default(),
            links: None,
            echoes: None,
            versions: Versions::OWN,
            max_offset: limits::MAX_OFFSET_DEFAULT,
            hindrance: watch::Sender::new(None),
            timing: Timing::default(),
            gc_ttl: limits::GC_TTL_DEFAULT,
            gc_interval: GC_INTERVAL_DEFAULT,
            protected_for_max: limits::PROTECTED_FOR_MAX,
            large_from: LargeFrom::default(),
            dead_after: DEAD_AFTER_DEFAULT,
            rules: Rules::ALL,
            ballot_rules: meridian_commit::Rules::ALL,
            pod: None,
        }
    }
}

/// A running node. Cheap to clone.
#[derive(Clone)]
pub struct Node {
    shared: Arc<Shared>,
    gateway: Arc<Gateway>,
    addr: String,
}

/// A node that waits for the catalog says so after this.
const CATALOG_NOTICE: Duration = Duration::from_secs(5);
const GC_INTERVAL_DEFAULT: Duration = Duration::from_secs(60);

impl Node {
    /// Starts a node: recovers what its directory holds, or founds or joins a cluster. Returns when
    /// it can plan statements, however long that takes.
    pub fn start(runtime: Arc<dyn Runtime>, config: NodeConfig) -> BoxFuture<'static, Result<Node>> {
        // It reads files and syncs some of them.
        Box::pin(async move { runtime.run_io_steps("start-node", Node::open(runtime.clone(), config)).await })
    }

    async fn open(runtime: Arc<dyn Runtime>, mut config: NodeConfig) -> Result<Node> {
        config.timing.check()?;
        let known = identity::load(&runtime)?;
        runtime.steady_clock().follow_steps_of(config.max_offset);
        clocks::continue_accepted(&runtime);
        let clock = Arc::new(Clock::new(config.max_offset));
        let catalog = CatalogCache::new(clock.clone(), config.versions);
        let certificates = config.security.as_ref().map(Certificates::new).map(Arc::new);
        let protection = certificates.as_ref().map_or(Protection::None, |c| Protection::Node(c.keys.clone()));
        let (links, echoes) = (config.links.clone(), config.echoes.clone());
        let rpc = Rpc::protected(runtime.clone(), clock.clone(), config.versions, links, echoes, protection);
        let listener =
            runtime.listen(&config.listen).await.map_err(|e| cannot_listen(&config.listen, "other nodes", "--listen", &e))?;
        let own_addr = listener.local_addr().map_err(|e| Error::fatal(format!("no local address: {e}")))?;
        let addr = config.advertise.clone().unwrap_or(own_addr);
        identity::check_log(&runtime, known.as_ref())?;
        room::before_start(&runtime, config.room);
        temporary::remove_all(&runtime);
        let log = raft::NodeLog::open(runtime.clone(), config.log_options.clone()).await?;
        let store = meridian_store::Store::open(config.store.clone(), config.store_options.clone())?;
        identity::check_data(&runtime, known.as_ref(), &log, &store)?;
        let directory = Directory::load(&runtime)?;
        identity::check_holdings(&runtime, directory.held(), &log, &store)?;
        let (outbox, work) = Outbox::new();
        let common = Common {
            life: Lifecycle::new(runtime.random(), rpc.tasks.clone()),
            runtime,
            clock,
            log,
            store,
            flusher: Notify::new(),
            builder: Notify::new(),
            outbox,
            room: Room::default(),
            farthest_micros: Default::default(),
            protected: Arc::default(),
            metrics: Arc::default(),
            timing: config.timing,
            rules: config.rules,
            ballot_rules: config.ballot_rules,
            large_from: config.large_from,
            writes_parts: AtomicBool::new(false),
            brought: Default::default(),
            pod: Default::default(),
            pod_config: parking_lot::Mutex::new(config.pod.take()),
        };
        let peers = Peers::new(common.life.clone(), rpc.clone(), config.place.clone(), addr.clone(), config.dead_after);
        let groups = Groups::new(Arc::new(common), rpc.clone(), catalog.clone(), config.place.region.clone());
        let shared = Shared::new(rpc, catalog, groups, peers, directory, certificates);
        let serving = Arc::downgrade(&shared);
        shared.groups.common.store.on_damage(move |e| {
            if let Some(shared) = serving.upgrade() {
                shared.fail(e);
            }
        });
        let gateway = Gateway::new(shared.clone());
        shared.spawn(work_loop(gateway.clone(), work));
        shared.spawn(foresight::keep(gateway.clone()));
        shared.spawn(majority::keep(shared.clone()));
        shared.spawn(space::keep(shared.clone(), config.room));
        let node = Node { shared, gateway, addr: addr.clone() };
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
        match (known, &shared.certificates) {
            (Some(identity), certificates) => {
                if let Some(certificates) = certificates {
                    certificates.installed(&shared.runtime, identity).await?;
                }
                shared.set_identity(identity);
            }
            (None, None) => shared.begin_founding(&record.addr, others.is_empty()).await?,
            // It answers nobody before it has a certificate.
            (None, Some(_)) => {}
        }
        // Others are answered from here on: those that have no identity either, and those that must
        // not take this node for another.
        let handler: Arc<dyn Handler> = Arc::new(NodeHandler(self.gateway.clone()));
        shared.spawn_protocol(shared.rpc.clone().serve(listener, handler.clone()));
        self.serve_local(config, handler).await;
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
                None if shared.certificates.is_some() => self.secure_identity(others, &record, config).await?,
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

    /// Serves operators of this machine. A node without that does all it is there for.
    async fn serve_local(&self, config: &NodeConfig, handler: Arc<dyn Handler>) {
        let Some(addr) = &config.local else { return };
        match self.shared.runtime.listen(addr).await {
            Ok(listener) => self.shared.spawn(self.shared.rpc.clone().serve_local(listener, handler)),
            Err(e) => tracing::warn!("operators of this machine cannot connect at {addr}: {e}"),
        }
    }

    /// The identity of a new node of a secure cluster: the founder's, or one that it joins for.
    async fn secure_identity(&self, others: Vec<String>, record: &NodeRecord, config: &NodeConfig) -> Result<Identity> {
        let shared = &self.shared;
        let certificates = shared.certificates.as_ref().expect("asked before");
        if !others.is_empty() || certificates.token.is_some() {
            return Joining { shared, certificates, others, record, hindrance: &config.hindrance }.identity().await;
        }
        let (runtime, of_node) = (shared.runtime.clone(), record.clone());
        let founding = certificates.at_files(&shared.runtime, move |c| {
            let had_certificate = c.named()?.is_some();
            let identity = c.found(&runtime, &of_node)?;
            c.install(&runtime, identity)?;
            Ok::<_, Error>((identity, had_certificate))
        });
        let (identity, had_certificate) = founding.await?;
        if had_certificate {
            // It may have had a data directory, too, and a cluster that counts on it.
            tokio::time::sleep(config.founding_pause).await;
            shared.rpc.claimed(CLAIM_HOLDS).map_or(Ok(()), |claim| Err(claimed_alone(&claim)))?;
        }
        identity::save(&shared.runtime, identity).await?;
        shared.set_identity(identity);
        tracing::info!("founded cluster {:032x}", identity.cluster);
        Ok(identity)
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
        address_book::load(&shared.runtime).await.iter().filter(|n| n.id != identity.node).for_each(|n| shared.rpc.learn(n));
        // The catalog first: its content tells where the other nodes are now.
        let of_catalog = ensure_replica(shared, GroupId::CATALOG).await?;
        shared.spawn(coordinate(self.gateway.clone(), of_catalog));
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
        }
        if identity.is_founding || identity::is_older(&shared.runtime)? {
            // In the present format: programs from before are refused from here on.
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
        shared.spawn_protocol(require_version(shared.clone()));
        shared.spawn_protocol(revoking::watch(shared.clone()));
        shared.spawn(renewing::keep(shared.clone(), record.clone()));
        shared.spawn(rotating::keep(shared.clone(), record.clone()));
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
        let versions = self.shared.rpc.versions();
        let meta =
            Meta { cluster, version: SchemaVersion(0), next_id: 0, next_node: 2, seen: None, cluster_version: versions.newest };
        let (_, mut writes) = change_rows(TxnId::default(), &meta, Default::default(), &bootstrap::first_change(&record.region))?;
        writes.push(row(node_key(record.id), &NodeRow { record: record.clone(), versions })?);
        crate::schema::coordinator::commit_catalog(&self.shared, &replica, writes, Vec::new(), Timestamp::MIN).await?;
        Ok(())
    }

    /// The catalog's primary sends it, once there is one.
    async fn await_catalog(&self, hindrance: &Hindrance) {
        let (begun, mut notice) = (Instant::now(), Notice::default());
        while self.shared.catalog.at(|| self.shared.runtime.physical_micros()).version == SchemaVersion(0) {
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
        Env(self.gateway.clone())
    }

    /// What opens its clients' sessions.
    pub fn sessions(&self) -> Arc<dyn SessionFactory> {
        Arc::new(self.env())
    }

    /// Goes on with the schema jobs of nodes that died, and counts the rows of tables that change,
    /// beside these sessions.
    pub fn run_jobs(&self, sessions: &Arc<session::Shared>, attention: Attention) {
        self.spawn(session::adopt(self.env(), sessions.clone()));
        self.spawn(session::keep_up(self.env(), sessions.clone(), attention));
    }

    /// Starts a task that ends with the node.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.shared.spawn(task);
    }

    /// Takes the registry of this node's client sessions.
    pub fn set_sessions(&self, sessions: Arc<dyn Sessions>) {
        *self.gateway.sessions.write() = Some(sessions);
    }

    /// Chooses how transactions read and commit over several regions, for a bench. Every node of
    /// the cluster has to be told, while there are no transactions.
    pub fn use_protocol(&self, protocol: Protocol) {
        self.gateway.use_protocol(protocol);
    }

    /// What this gateway counted since the last call, of transactions that touched other regions.
    pub fn take_tally(&self) -> Tally {
        self.gateway.take_tally()
    }

    /// The groups this node serves as primary, with their terms.
    pub fn leads(&self) -> Vec<(GroupId, u64)> {
        self.shared.groups.leads()
    }

    /// Of each group in which this node votes, how many others do, as far as it knows.
    pub fn voters_beside(&self) -> Vec<usize> {
        self.shared.groups.voters_beside()
    }

    /// A token that lets one new node in, and is good for so long; it is secret.
    pub fn create_token(&self, life_secs: u64) -> BoxFuture<'_, Result<String>> {
        Box::pin(async move { Ok(tokens::create(&self.shared, life_secs).await?.0) })
    }

    /// The identity that a data directory says; `None`: it is empty.
    pub fn identity_in(runtime: &Arc<dyn Runtime>) -> Result<Option<(u128, NodeId)>> {
        Ok(identity::load(runtime)?.map(|identity| (identity.cluster, identity.node)))
    }

    /// What its connections are protected with; `None`: nothing (`--insecure`).
    pub fn tls(&self) -> Option<Arc<Tls>> {
        self.shared.certificates.as_ref()?.keys.tls()
    }

    /// Takes the files of the certificate directory from now on; after an error everything is as
    /// before.
    pub fn reload_certificates(&self) -> Result<()> {
        let reload = self.shared.certificates.as_ref().map_or(Ok(()), |c| c.reload());
        reload.map_err(|e| Error::sql("F0000", e.to_string()))
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
            if let Err(e) = replica.flush_now().await {
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
