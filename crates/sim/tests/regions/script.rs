//! A cluster that a test drives step by step: statements from any region, machines that are killed
//! and come back.

use meridian_base::runtime::Runtime;
use meridian_base::{Error, NodeId, Result};
use meridian_node::Way;
use meridian_node::wire::{NodeStatus, Standing};
use meridian_sim::cluster::meridian::{Meridian, NODE_PORT, Tuning};
use meridian_sim::cluster::{Machines, Topology};
use meridian_sim::sql_wire::SimConnector;
use meridian_sim::world::{Host, SimRuntime, World};
use meridian_workload::{Client, Connector, Rows, Value};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub const US: &str = "us-east1";
pub const EU: &str = "europe-west2";
pub const ASIA: &str = "asia-northeast1";
pub const WEST: &str = "us-west1";
pub const AUSTRALIA: &str = "australia-southeast1";

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(150);

pub type Regions = Arc<Vec<(String, Vec<String>)>>;

/// Instead of a statement: nothing happens for [`PAUSE_LENGTH`].
pub const PAUSE: &str = "pause";
pub const PAUSE_LENGTH: Duration = Duration::from_secs(20);

pub struct Cluster {
    machines: Machines<Meridian>,
    clients: u32,
}

/// Clients that insert consecutive numbers, each into a table of its own key range, until they are
/// stopped.
pub struct Load {
    stop: Arc<AtomicBool>,
    /// What was acknowledged, with the simulated time of it.
    pub acknowledged: Arc<Mutex<BTreeMap<i64, Duration>>>,
}

/// What became of each run of a statement, and how long it took.
pub type Repeated = Arc<Mutex<Vec<(std::result::Result<(), String>, Duration)>>>;

/// A connection on which statements are run one by one, while other things happen.
pub struct Conversation {
    said: Arc<Mutex<VecDeque<String>>>,
    answers: Arc<Mutex<VecDeque<Result<Vec<Vec<String>>>>>>,
}

impl Conversation {
    /// Sends a statement and does not wait for its answer.
    pub fn say(&self, sql: &str) {
        self.said.lock().push_back(sql.to_string());
    }
    /// Waits for the next answer.
    pub fn hear(&self, cluster: &mut Cluster) -> Result<Vec<Vec<String>>> {
        cluster.until("an answer", |_| !self.answers.lock().is_empty());
        self.answers.lock().pop_front().expect("just seen")
    }
    pub fn ask(&self, cluster: &mut Cluster, sql: &str) -> Vec<Vec<String>> {
        self.say(sql);
        self.hear(cluster).unwrap_or_else(|e| panic!("{sql}: {e}"))
    }
}

impl Cluster {
    /// Nodes in so many regions of so many zones, one in each zone, all started.
    pub fn start(regions: usize, zones: usize, seed: u64, tuning: Tuning) -> Cluster {
        Cluster::start_with_clocks(regions, zones, seed, tuning, |_| 0)
    }

    /// The same with clocks that are off, by so many microseconds for each node.
    pub fn start_with_clocks(regions: usize, zones: usize, seed: u64, tuning: Tuning, off: impl Fn(&str) -> i64) -> Cluster {
        let topology = Topology::new(regions, zones, 0.2);
        let machines = Machines::new(World::new(false), topology, Meridian::new(tuning), seed);
        let mut cluster = Cluster { machines, clients: 0 };
        for spec in cluster.machines.topology.nodes.clone() {
            cluster.machines.add_node(&spec, off(&spec.region), 0);
        }
        let nodes: Vec<String> = cluster.machines.topology.nodes.iter().map(|n| n.name.clone()).collect();
        cluster.until("all nodes to start", |c| nodes.iter().all(|n| c.machines.host(n).has_started()));
        // Every node has heard of every other one.
        let end = cluster.elapsed() + PATIENCE;
        while cluster.sql(US, "defaultdb", "SHOW REGIONS FROM CLUSTER").len() < regions {
            assert!(cluster.elapsed() < end, "some region is not heard of");
            cluster.pass(Duration::from_millis(500));
        }
        cluster
    }

    /// The names of all nodes.
    pub fn nodes(&self) -> Vec<String> {
        self.machines.topology.nodes.iter().map(|n| n.name.clone()).collect()
    }

    pub fn elapsed(&self) -> Duration {
        self.machines.elapsed()
    }

    fn step(&mut self) {
        self.machines.step().expect("nothing panics");
    }

    pub fn pass(&mut self, time: Duration) {
        let end = self.elapsed() + time;
        while self.elapsed() < end {
            self.step();
        }
    }

    fn until(&mut self, what: &str, done: impl Fn(&Cluster) -> bool) {
        let end = self.elapsed() + PATIENCE;
        while !done(self) {
            assert!(self.elapsed() < end, "waited in vain for {what}");
            if let Some((node, error)) = self.machines.take_ended().into_iter().next() {
                panic!("{node} ended: {error}");
            }
            self.step();
        }
    }

    fn regions(&self) -> Regions {
        Arc::new(self.machines.topology.nodes_by_region())
    }

    /// Runs work on a machine of its own and waits for its result.
    pub fn on_client<T, F>(&mut self, region: &str, work: impl FnOnce(Arc<Host>, Regions) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let slot: Arc<Mutex<Option<T>>> = Arc::default();
        self.spawn(region, {
            let slot = slot.clone();
            |host, regions| {
                let work = work(host, regions);
                async move {
                    let result = work.await;
                    *slot.lock() = Some(result);
                }
            }
        });
        self.until("a client", |_| slot.lock().is_some());
        let result = slot.lock().take();
        result.expect("just seen")
    }

    pub fn spawn<F>(&mut self, region: &str, work: impl FnOnce(Arc<Host>, Regions) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.clients += 1;
        let regions = self.regions();
        self.machines.add_client(&format!("client{}", self.clients), region, |host| work(host, regions));
    }

    /// Runs statements on one connection; the last one's rows, or the first error.
    pub fn try_sql(&mut self, region: &str, database: &str, sql: &str) -> Result<Vec<Vec<String>>> {
        let regions = self.regions();
        self.try_sql_of(regions, region, database, sql)
    }

    /// At this node and no other.
    pub fn try_sql_at(&mut self, node: &str, database: &str, sql: &str) -> Result<Vec<Vec<String>>> {
        let regions = self.regions();
        let (region, _) = regions.iter().find(|(_, nodes)| nodes.iter().any(|n| n == node)).expect("a node of this cluster");
        let only = vec![(region.clone(), vec![node.to_string()])];
        self.try_sql_of(Arc::new(only), region, database, sql)
    }

    fn try_sql_of(&mut self, regions: Regions, region: &str, database: &str, sql: &str) -> Result<Vec<Vec<String>>> {
        let (to, database, sql) = (region.to_string(), database.to_string(), sql.to_string());
        self.on_client(region, move |host, _| async move {
            let connector = SimConnector::new(host, regions);
            let mut client = connect(&connector, &to, &database).await?;
            let mut last = Rows::default();
            for statement in sql.split(';').filter(|s| !s.trim().is_empty()) {
                last = client.execute(statement.trim()).await?;
            }
            Ok(last.rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
        })
    }

    /// Asks a node the same again and again, on one connection, until that fails: what it answered.
    pub fn watch(&mut self, node: &str, database: &str, sql: &str) -> Arc<Mutex<Vec<Vec<Vec<String>>>>> {
        let regions = self.regions();
        let (region, _) = regions.iter().find(|(_, nodes)| nodes.iter().any(|n| n == node)).expect("a node of this cluster");
        let only = Arc::new(vec![(region.clone(), vec![node.to_string()])]);
        let answers: Arc<Mutex<Vec<Vec<Vec<String>>>>> = Arc::default();
        let (seen, to, database, sql) = (answers.clone(), region.clone(), database.to_string(), sql.to_string());
        self.spawn(region, move |host, _| async move {
            let connector = SimConnector::new(host, only);
            let Ok(mut client) = connect(&connector, &to, &database).await else { return };
            while let Ok(rows) = client.execute(&sql).await {
                seen.lock().push(texts(rows));
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        answers
    }

    /// Opens a connection.
    pub fn converse(&mut self, region: &str, database: &str) -> Conversation {
        const LISTENS_EVERY: Duration = Duration::from_millis(1);
        let conversation = Conversation { said: Arc::default(), answers: Arc::default() };
        let (said, answers) = (conversation.said.clone(), conversation.answers.clone());
        let (to, database) = (region.to_string(), database.to_string());
        self.spawn(region, move |host, regions| async move {
            let connector = SimConnector::new(host, regions);
            let mut client = connect(&connector, &to, &database).await.expect("a connection");
            loop {
                let Some(sql) = said.lock().pop_front() else {
                    tokio::time::sleep(LISTENS_EVERY).await;
                    continue;
                };
                let rows = client.execute(&sql).await;
                answers.lock().push_back(rows.map(texts));
            }
        });
        conversation
    }

    /// The process dies, and the machine's disk is gone. It does not start again by itself.
    pub fn lose_disk(&mut self, name: &str) {
        if self.machines.host(name).is_up() {
            self.machines.kill(name);
        }
        self.machines.replace_disk(name);
    }
    pub fn standing(&mut self, asked: &str, node: NodeId) -> Option<Standing> {
        self.status(asked).into_iter().find(|n| n.node.id == node).map(|n| n.node.standing)
    }
    /// So many bytes pass between two nodes in a second.
    pub fn narrow(&mut self, a: &str, b: &str, bytes_per_second: u64) {
        self.machines.narrow(a, b, Some(bytes_per_second));
    }
    /// Nothing passes between two nodes any more.
    pub fn cut(&mut self, a: &str, b: &str) {
        self.machines.cut(a, b);
    }
    /// Nothing passes from one node to another any more, but still back.
    pub fn cut_one_way(&mut self, from: &str, to: &str) {
        self.machines.cut_one_way(from, to);
    }
    pub fn mend(&mut self, a: &str, b: &str) {
        self.machines.mend(a, b);
    }

    /// Runs statements on two connections, one after the other: of which it is, with the statement,
    /// or [`PAUSE`]. The rows of each.
    pub fn on_two(&mut self, regions: [&str; 2], database: &str, statements: &[(usize, &str)]) -> Vec<Result<Vec<Vec<String>>>> {
        let to = regions.map(str::to_string);
        let database = database.to_string();
        let statements: Vec<(usize, String)> = statements.iter().map(|(of, sql)| (*of, sql.to_string())).collect();
        self.on_client(regions[0], move |host, regions| async move {
            let connector = SimConnector::new(host, regions);
            let mut clients = Vec::new();
            for to in &to {
                clients.push(connect(&connector, to, &database).await.expect("a connection"));
            }
            let mut answers = Vec::new();
            for (of, sql) in statements {
                if sql == PAUSE {
                    tokio::time::sleep(PAUSE_LENGTH).await;
                    continue;
                }
                let rows = |rows: Rows| rows.rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect();
                answers.push(clients[of].execute(&sql).await.map(rows));
            }
            answers
        })
    }

    /// Starts a statement and does not wait for it.
    pub fn begin_sql(&mut self, region: &str, database: &str, sql: &str) {
        let (to, database, sql) = (region.to_string(), database.to_string(), sql.to_string());
        self.spawn(region, move |host, regions| async move {
            let connector = SimConnector::new(host, regions);
            if let Ok(mut client) = connect(&connector, &to, &database).await {
                // Its node is to die under it.
                let _ = client.execute(&sql).await;
            }
        });
    }

    /// Runs a statement again and again on one connection, without waiting for it.
    pub fn repeat(&mut self, region: &str, database: &str, statement: &str, times: usize) -> Repeated {
        let ended = Repeated::default();
        let results = ended.clone();
        let world = self.machines.world.clone();
        let (to, database, statement) = (region.to_string(), database.to_string(), statement.to_string());
        self.spawn(region, move |host, regions| async move {
            let connector = SimConnector::new(host, regions);
            let mut client = connect(&connector, &to, &database).await.expect("a connection");
            for _ in 0..times {
                let began = world.micros();
                let result = client.execute(&statement).await.map(|_| ()).map_err(|e| e.sqlstate().to_string());
                results.lock().push((result, Duration::from_micros(world.micros() - began)));
            }
        });
        ended
    }

    pub fn sql(&mut self, region: &str, database: &str, sql: &str) -> Vec<Vec<String>> {
        self.try_sql(region, database, sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    /// `SHOW RANGES FROM DATABASE`, until nothing is waited for.
    pub fn settled(&mut self, region: &str, database: &str) -> Vec<Vec<String>> {
        let end = self.elapsed() + PATIENCE;
        loop {
            let rows = self.try_sql(region, "defaultdb", &format!("SHOW RANGES FROM DATABASE {database}"));
            if let Ok(rows) = &rows
                && rows.iter().all(|row| row[9] == "NULL")
            {
                return rows.clone();
            }
            assert!(self.elapsed() < end, "not settled: {rows:?}");
            self.pass(Duration::from_millis(500));
        }
    }

    /// Inserts numbers from `from` on into `table (id INT8 PRIMARY KEY)`, as fast as they are
    /// acknowledged.
    pub fn load(&mut self, region: &str, database: &str, table: &str, from: i64) -> Load {
        let load = Load { stop: Arc::default(), acknowledged: Arc::default() };
        let (stop, acknowledged) = (load.stop.clone(), load.acknowledged.clone());
        let (to, database, table) = (region.to_string(), database.to_string(), table.to_string());
        let world = self.machines.world.clone();
        self.spawn(region, move |host, regions| async move {
            let connector = SimConnector::new(host, regions);
            let mut id = from;
            while !stop.load(Ordering::Relaxed) {
                let connected = tokio::time::timeout(Duration::from_secs(2), connector.connect(&to, &database)).await;
                let Ok(Ok(mut client)) = connected else {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                };
                while !stop.load(Ordering::Relaxed) {
                    // One whose outcome is unknown is not tried again: the next number is.
                    let insert = format!("INSERT INTO {table} VALUES ({id})");
                    id += 1;
                    match tokio::time::timeout(Duration::from_secs(15), client.execute(&insert)).await {
                        Ok(Ok(_)) => {
                            acknowledged.lock().insert(id - 1, Duration::from_micros(world.micros()));
                        }
                        // Its node is gone; there are others.
                        Ok(Err(e)) if e.sqlstate() == "08006" => break,
                        Ok(Err(_)) => tokio::time::sleep(Duration::from_millis(5)).await,
                        Err(_) => break,
                    }
                }
            }
        });
        load
    }

    pub fn kill_region(&mut self, region: &str) {
        for (name, nodes) in &*self.regions() {
            if name == region {
                nodes.iter().for_each(|n| self.machines.kill(n));
            }
        }
        let _ = self.machines.take_ended();
    }

    /// Nothing passes between the nodes of a region and the others any more.
    pub fn cut_off(&mut self, region: &str) {
        self.part(&[region]);
    }

    /// Nothing passes between the nodes of these regions and the others any more.
    pub fn part(&mut self, regions: &[&str]) {
        for (a, b) in self.across(regions) {
            self.machines.cut(&a, &b);
        }
    }

    /// The opposite of [`Cluster::part`].
    pub fn join(&mut self, regions: &[&str]) {
        for (a, b) in self.across(regions) {
            self.machines.mend(&a, &b);
        }
    }

    /// Each node of these regions with each node of the others.
    fn across(&self, these: &[&str]) -> Vec<(String, String)> {
        let regions = self.regions();
        let nodes = |inside: bool| {
            let side = regions.iter().filter(move |(name, _)| these.contains(&&**name) == inside);
            side.flat_map(|(_, nodes)| nodes)
        };
        nodes(true).flat_map(|a| nodes(false).map(|b| (a.clone(), b.clone()))).collect()
    }

    pub fn restart_region(&mut self, region: &str) {
        for (name, nodes) in &*self.regions() {
            if name == region {
                nodes.iter().for_each(|n| self.machines.restart(n));
            }
        }
    }

    pub fn kill(&mut self, node: &str) {
        self.machines.kill(node);
        let _ = self.machines.take_ended();
    }

    /// A node's disk is full, or has room again.
    pub fn fill(&mut self, node: &str, full: bool) {
        self.machines.set_full(node, full);
    }

    pub fn restart(&mut self, node: &str) {
        self.machines.restart(node);
    }

    /// Adds a node to the region and zone of another one, and waits until it runs.
    pub fn grow(&mut self, beside: usize) -> String {
        let name = self.begin_to_grow(beside);
        self.until("the new node to start", |c| c.machines.host(&name).has_started());
        name
    }

    /// Adds one that may not come up.
    pub fn begin_to_grow(&mut self, beside: usize) -> String {
        self.machines.grow(beside, 0);
        self.machines.topology.nodes.last().expect("a node").name.clone()
    }

    /// The cluster as one of its nodes sees it.
    pub fn status(&mut self, of: &str) -> Vec<NodeStatus> {
        let addr = format!("{of}:{NODE_PORT}");
        let status = self.on_client(US, move |host, _| async move {
            meridian_node::status_of(&Way::plain(Arc::new(SimRuntime::new(host)), &addr)).await
        });
        status.unwrap_or_else(|e| panic!("the status of {of}: {e}"))
    }

    pub fn stand(&mut self, of: &str, node: NodeId, standing: Standing) -> Result<()> {
        let addr = format!("{of}:{NODE_PORT}");
        self.on_client(US, move |host, _| async move {
            meridian_node::stand_at(&Way::plain(Arc::new(SimRuntime::new(host)), &addr), node, standing).await
        })
    }

    /// The wall clock of a machine is set.
    pub fn jump_clock(&mut self, node: &str, by_micros: i64) {
        self.machines.host(node).jump_clock(by_micros);
    }

    /// The machine sleeps, and its clocks with it, until [`Cluster::wake`].
    pub fn sleep(&mut self, node: &str) {
        self.machines.host(node).suspend(true);
    }
    /// It goes on, and its wall clock is set right.
    pub fn wake(&mut self, node: &str) {
        self.machines.host(node).resume();
    }

    pub fn accept_clock(&mut self, of: &str) -> Result<meridian_node::Accepted> {
        let addr = format!("{of}:{NODE_PORT}");
        self.on_client(US, move |host, _| async move {
            meridian_node::accept_clock_at(&Way::plain(Arc::new(SimRuntime::new(host)), &addr)).await
        })
    }

    /// An operator at that machine wants a cluster to be founded there.
    pub fn init(&mut self, at: &str) -> Result<()> {
        let addr = format!("{at}:{NODE_PORT}");
        // With that machine's clock.
        let host = self.machines.host(at);
        self.on_client(US, move |_, _| async move {
            meridian_node::init_at(&Way::plain(Arc::new(SimRuntime::new(host)), &addr)).await
        })
    }

    pub fn has_started(&self, node: &str) -> bool {
        self.machines.host(node).has_started()
    }

    pub fn await_start(&mut self, nodes: &[String]) {
        self.until("all nodes to start", |c| nodes.iter().all(|n| c.has_started(n)));
    }

    /// Why a node's process has ended by itself, if it has.
    pub fn ended(&mut self, node: &str) -> Option<String> {
        let ended = self.machines.take_ended();
        ended.into_iter().find(|(name, _)| name == node).map(|(_, e)| e.to_string())
    }

    /// The node whose machine has this name: ids are given in the order of joining, which names do
    /// not tell.
    pub fn id_of(&mut self, name: &str) -> NodeId {
        self.id_at("n1", name)
    }
    /// As another node than the first one says.
    pub fn id_at(&mut self, asked: &str, name: &str) -> NodeId {
        let addr = format!("{name}:{NODE_PORT}");
        let is_there = |n: &NodeStatus| n.node.addr == addr || n.node.sql_addr.starts_with(&format!("{name}:"));
        // The last one of those that were ever there.
        let found = self.status(asked).into_iter().filter(is_there).max_by_key(|n| n.node.id);
        found.unwrap_or_else(|| panic!("no node {name}")).node.id
    }

    /// Waits until these nodes, and no others, say that they hold a replica of the group.
    pub fn await_holders(&mut self, of: &str, group: &str, wanted: &BTreeSet<NodeId>) {
        let end = self.elapsed() + PATIENCE;
        loop {
            let holders: BTreeSet<NodeId> = self
                .status(of)
                .into_iter()
                .filter(|n| n.holds.iter().any(|g| g.to_string() == group))
                .map(|n| n.node.id)
                .collect();
            if holders == *wanted {
                return;
            }
            assert!(self.elapsed() < end, "{group} is held by {holders:?}, not by {wanted:?}");
            self.pass(Duration::from_secs(1));
        }
    }
}

/// A connection to any node of the region that is there.
pub async fn connect(connector: &SimConnector, region: &str, database: &str) -> Result<Box<dyn Client>> {
    const ATTEMPTS: u32 = 6;
    let mut last = Error::unavailable("nobody answered");
    for _ in 0..ATTEMPTS {
        match tokio::time::timeout(Duration::from_secs(2), connector.connect(region, database)).await {
            Ok(Ok(client)) => return Ok(client),
            Ok(Err(e)) => last = e,
            Err(_) => {}
        }
    }
    Err(last)
}

impl Load {
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
    /// Everything that was acknowledged is in the table. (Its clients may go on while it is read.)
    pub fn check(&self, cluster: &mut Cluster, region: &str, database: &str, table: &str) {
        let acknowledged: Vec<i64> = self.acknowledged.lock().keys().copied().collect();
        let found: BTreeSet<i64> = cluster
            .sql(region, database, &format!("SELECT id FROM {table}"))
            .into_iter()
            .map(|row| row[0].parse().expect("a number"))
            .collect();
        let lost: Vec<_> = acknowledged.iter().filter(|id| !found.contains(id)).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
    }
    /// The longest time without an acknowledgement after `from`.
    pub fn longest_pause(&self, from: Duration) -> Duration {
        let acknowledged = self.acknowledged.lock();
        let mut times: Vec<Duration> = acknowledged.values().copied().filter(|at| *at >= from).collect();
        times.push(from);
        times.sort();
        times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
    }
    pub fn count(&self) -> usize {
        self.acknowledged.lock().len()
    }
}

fn texts(rows: Rows) -> Vec<Vec<String>> {
    rows.rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect()
}

fn text(value: Value) -> String {
    match value {
        Value::Null => "NULL".to_string(),
        Value::Text(text) => text,
        other => other.literal(),
    }
}

/// The nodes in `{n1,n4}`.
pub fn nodes_in(list: &str) -> BTreeSet<NodeId> {
    let inner = list.trim_start_matches('{').trim_end_matches('}');
    let id = |name: &str| NodeId(name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().expect("a node"));
    inner.split(',').filter(|name| !name.is_empty()).map(id).collect()
}

/// The error's state and message.
pub fn refused(result: Result<Vec<Vec<String>>>) -> (String, String) {
    let e: Error = result.expect_err("an error");
    (e.sqlstate().to_string(), e.message().to_string())
}

impl Cluster {
    /// Waits until these are the voters of a group.
    pub fn await_voters(&mut self, group: &str, wanted: &[NodeId]) {
        let wanted: BTreeSet<NodeId> = wanted.iter().copied().collect();
        let end = self.elapsed() + PATIENCE;
        loop {
            let rows = self.try_sql(US, "defaultdb", "SHOW RANGES").unwrap_or_default();
            let voters = rows.iter().find(|row| row[0] == group).map(|row| nodes_in(&row[6]));
            if voters.as_ref() == Some(&wanted) {
                return;
            }
            assert!(self.elapsed() < end, "the voters of {group} are {voters:?}, not {wanted:?}");
            self.pass(Duration::from_secs(1));
        }
    }

    /// Whether a node's process has ended by itself.
    pub fn has_ended(&mut self, node: &str) -> bool {
        self.machines.take_ended().iter().any(|(name, _)| name == node)
    }
}

impl Cluster {
    /// The number of the cluster that a node is a member of, from its disk.
    pub fn cluster_of(&self, node: &str) -> u128 {
        let file = SimRuntime::new(self.machines.host(node)).disk().open("node", false).expect("it is a member");
        let mut bytes = vec![0; file.len().expect("a length") as usize];
        file.read_at(0, &mut bytes).expect("readable");
        let text = String::from_utf8(bytes).expect("text");
        let number = text.lines().find_map(|line| line.strip_prefix("cluster ")).expect("a cluster");
        u128::from_str_radix(number, 16).expect("a number")
    }
    /// Whether a file of a node's disk holds these bytes.
    pub fn files_hold(&self, node: &str, marker: &str) -> bool {
        let runtime = SimRuntime::new(self.machines.host(node));
        let disk = runtime.disk();
        let names = ["", "log"].map(|folder| disk.list(folder).unwrap_or_default().into_iter().map(move |n| (folder, n)));
        names.into_iter().flatten().any(|(folder, name)| {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let Ok(file) = disk.open(&path, false) else { return false };
            let mut bytes = vec![0; file.len().expect("a length") as usize];
            let read = file.read_at(0, &mut bytes).expect("readable");
            bytes[..read].windows(marker.len()).any(|w| w == marker.as_bytes())
        })
    }
}
