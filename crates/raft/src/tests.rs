//! Groups of several replicas over a network in memory, on paused time.

mod disks;
mod incoming;
mod leases;
mod members;

use crate::testing::{MemoryDisk, TestRuntime};
use crate::*;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use meridian_base::{Error, GroupId, LogPosition, NodeId, Result};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const G: GroupId = GroupId(5);

/// A state machine that remembers every payload. `durable` is what survives a restart.
#[derive(Default)]
struct Recorder {
    state: Mutex<Recorded>,
    durable: Mutex<Option<Recorded>>,
    imports: Mutex<u32>,
    /// The store cannot apply entries any more.
    is_broken: AtomicBool,
    /// It cannot take snapshots any more.
    imports_nothing: AtomicBool,
}

#[derive(Clone, Default)]
struct Recorded {
    position: LogPosition,
    membership: MembershipBlob,
    payloads: Vec<Bytes>,
}

impl Recorder {
    fn payloads(&self) -> Vec<Bytes> {
        self.state.lock().payloads.clone()
    }
    /// Makes the state durable and tells how far.
    fn flush(&self) -> LogPosition {
        let state = self.state.lock().clone();
        let position = state.position;
        *self.durable.lock() = Some(state);
        position
    }
    /// What a restart finds.
    fn restart(&self) -> Arc<Recorder> {
        let durable = self.durable.lock().clone();
        Arc::new(Recorder {
            state: Mutex::new(durable.clone().unwrap_or_default()),
            durable: Mutex::new(durable),
            ..Recorder::default()
        })
    }
}

fn unless(is_broken: &AtomicBool) -> Result<()> {
    match is_broken.load(Ordering::Relaxed) {
        true => Err(Error::fatal("the store's disk is broken")),
        false => Ok(()),
    }
}

struct RecorderMachine(Arc<Recorder>);

impl StateMachine for RecorderMachine {
    fn recovered(&self) -> Option<Recovered> {
        let state = self.0.state.lock();
        (state.position.index > 0).then(|| Recovered { position: state.position, membership: state.membership.clone() })
    }
    fn apply(&self, batch: Vec<AppliedEntry>) -> Result<()> {
        unless(&self.0.is_broken)?;
        let mut state = self.0.state.lock();
        for entry in batch {
            assert_eq!(entry.position.index, state.position.index + 1, "applied in order, without gaps, once");
            assert!(entry.position.term >= state.position.term);
            state.position = entry.position;
            if let Some(membership) = entry.membership {
                state.membership = membership;
            }
            if !entry.payload.is_empty() {
                state.payloads.push(entry.payload);
            }
        }
        Ok(())
    }
    fn export(&self) -> Result<Box<dyn SnapshotSource>> {
        Ok(Box::new(Export { state: self.0.state.lock().clone(), next: 0 }))
    }
    fn import(&self, header: SnapshotHeader) -> Result<Box<dyn SnapshotSink>> {
        let state = Recorded { position: header.position, membership: header.membership, payloads: vec![] };
        Ok(Box::new(Import { into: self.0.clone(), state }))
    }
}

struct Export {
    state: Recorded,
    next: usize,
}

impl SnapshotSource for Export {
    fn header(&self) -> SnapshotHeader {
        SnapshotHeader { position: self.state.position, membership: self.state.membership.clone() }
    }
    fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        self.next += 1;
        Ok(self.state.payloads.get(self.next - 1).cloned())
    }
}

struct Import {
    into: Arc<Recorder>,
    state: Recorded,
}

impl SnapshotSink for Import {
    fn write(&mut self, chunk: Bytes) -> Result<()> {
        self.state.payloads.push(chunk);
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<()> {
        unless(&self.into.imports_nothing)?;
        *self.into.state.lock() = self.state.clone();
        *self.into.durable.lock() = Some(self.state);
        *self.into.imports.lock() += 1;
        Ok(())
    }
}

/// A network in memory: a millisecond each way, and cuts.
#[derive(Default)]
struct Net {
    groups: Mutex<BTreeMap<NodeId, Group>>,
    cut: Mutex<BTreeSet<NodeId>>,
    /// Every message: when, from, to, how long. For comparing runs.
    trace: Mutex<Vec<(Duration, NodeId, NodeId, usize)>>,
    /// Milliseconds that a message takes longer than usual.
    slower_ms: AtomicU64,
    started: Mutex<Option<Instant>>,
}

impl Net {
    fn cut(&self, node: u32) {
        self.cut.lock().insert(NodeId(node));
    }
    fn heal(&self) {
        self.cut.lock().clear();
    }
    fn reaches(&self, a: NodeId, b: NodeId) -> bool {
        let cut = self.cut.lock();
        !cut.contains(&a) && !cut.contains(&b)
    }
}

struct Wire {
    net: Arc<Net>,
    from: NodeId,
}

impl Transport for Wire {
    fn call(&self, to: NodeId, _group: GroupId, message: Message) -> BoxFuture<'static, Result<Bytes>> {
        let (net, from) = (self.net.clone(), self.from);
        let since = net.started.lock().map_or(Duration::ZERO, |s| s.elapsed());
        net.trace.lock().push((since, from, to, message.bytes.len()));
        async move {
            let delay = Duration::from_millis(1 + net.slower_ms.load(Ordering::Relaxed));
            sleep(delay).await;
            let group = net.groups.lock().get(&to).cloned();
            let Some(group) = group.filter(|_| net.reaches(from, to)) else {
                return Err(Error::unavailable("no way there"));
            };
            let answer = group.handle(message.bytes).await;
            sleep(delay).await;
            if net.reaches(from, to) { answer } else { Err(Error::unavailable("the answer was lost")) }
        }
        .boxed()
    }
}

struct Node {
    group: Group,
    recorder: Arc<Recorder>,
    log: NodeLog,
    disk: MemoryDisk,
}

struct Cluster {
    net: Arc<Net>,
    nodes: BTreeMap<u32, Node>,
    seed: u64,
}

fn ids(nodes: &[u32]) -> BTreeSet<NodeId> {
    nodes.iter().map(|n| NodeId(*n)).collect()
}

impl Cluster {
    /// Nodes 1 to `n`, founded as voters.
    async fn new(n: u32, seed: u64) -> Cluster {
        let mut cluster = Cluster { net: Arc::default(), nodes: BTreeMap::new(), seed };
        *cluster.net.started.lock() = Some(Instant::now());
        let all: Vec<u32> = (1..=n).collect();
        for id in &all {
            cluster.start_founder(*id, MemoryDisk::default(), Arc::default(), &all).await;
        }
        cluster
    }

    async fn start(&mut self, id: u32, disk: MemoryDisk, recorder: Arc<Recorder>) {
        self.start_founder(id, disk, recorder, &[]).await;
    }

    async fn start_founder(&mut self, id: u32, disk: MemoryDisk, recorder: Arc<Recorder>, founders: &[u32]) {
        let founders = founders.iter().map(|n| NodeId(*n)).collect();
        self.start_with(disk, recorder, GroupOptions { entries_kept: 8, founders, ..GroupOptions::new(G, NodeId(id)) }).await;
    }

    async fn start_with(&mut self, disk: MemoryDisk, recorder: Arc<Recorder>, options: GroupOptions) {
        let id = options.node.0;
        let runtime = Arc::new(TestRuntime::new(disk.clone(), self.seed * 100 + u64::from(id)));
        let layout = LogOptions { segment_bytes: 64 << 10, prepare_bytes: 4_096, ..LogOptions::default() };
        let log = NodeLog::open(runtime.clone(), layout).await.unwrap();
        let wire = Arc::new(Wire { net: self.net.clone(), from: NodeId(id) });
        let machine = Arc::new(RecorderMachine(recorder.clone()));
        let group = Group::start(options, log.clone(), machine, wire, runtime).await.unwrap();
        assert!(group.committed() >= group.applied(), "what is applied is committed");
        self.net.groups.lock().insert(NodeId(id), group.clone());
        self.nodes.insert(id, Node { group, recorder, log, disk });
    }

    /// Stops a process without warning: what it wrote but did not sync is up to the disk.
    async fn kill(&mut self, id: u32) -> (MemoryDisk, Arc<Recorder>) {
        use rand::SeedableRng;
        self.net.groups.lock().remove(&NodeId(id));
        let node = self.nodes.remove(&id).unwrap();
        let disk = node.disk.crash(&mut rand::rngs::SmallRng::seed_from_u64(self.seed));
        timeout(Duration::from_secs(20), node.group.shutdown()).await.expect("an end within 20 s");
        (disk, node.recorder.restart())
    }

    fn group(&self, id: u32) -> &Group {
        &self.nodes[&id].group
    }

    /// Waits until one of the nodes leads and the others know.
    async fn leader(&self) -> u32 {
        let agreed = async {
            loop {
                let cut = self.net.cut.lock().clone();
                let roles: Vec<Role> =
                    self.nodes.iter().filter(|(n, _)| !cut.contains(&NodeId(**n))).map(|(_, n)| n.group.role()).collect();
                let leader = roles[0].leader;
                if let Some(leader) = leader
                    && !cut.contains(&leader)
                    && roles.iter().all(|r| r.leader == Some(leader) && r.term == roles[0].term)
                    && self.nodes.get(&leader.0).is_some_and(|n| n.group.role().is_leader)
                {
                    return leader.0;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), agreed).await.expect("a leader within 30 s")
    }

    async fn propose(&self, at: u32, payload: &str) -> Result<LogPosition, ProposeError> {
        let ticket = self.group(at).propose(Bytes::from(payload.to_string()))?;
        let state = || {
            let states = self.nodes.iter().map(|(n, x)| (*n, x.group.role(), x.group.last_position(), x.group.committed()));
            format!("{payload:?} at {at} within 20 s: {:?}", states.collect::<Vec<_>>())
        };
        timeout(Duration::from_secs(20), ticket).await.unwrap_or_else(|_| panic!("{}", state()))
    }

    /// Waits until a node has applied `position`.
    async fn applied(&self, id: u32, position: LogPosition) {
        let reached = async {
            while self.group(id).applied() < position {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), reached).await.expect("applied within 30 s");
    }
}

async fn change(cluster: &Cluster, leader: u32, voters: &[u32], learners: &[u32]) {
    let nobody = ids(&[]);
    let change = cluster.group(leader).change_members(ids(voters), ids(learners), &nobody);
    timeout(Duration::from_secs(30), change).await.expect("changed within 30 s").unwrap();
}

fn texts(recorder: &Recorder) -> Vec<String> {
    recorder.payloads().iter().map(|p| String::from_utf8(p.to_vec()).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_single_voter_leads_at_once_and_recovers_what_was_acknowledged() {
    let mut cluster = Cluster::new(1, 1).await;
    assert_eq!(cluster.leader().await, 1);
    assert!(cluster.group(1).lease_valid());
    let tickets: Vec<_> = (0..50).map(|i| cluster.group(1).propose(Bytes::from(format!("{i}"))).unwrap()).collect();
    let mut last = LogPosition::default();
    for ticket in tickets {
        let position = ticket.await.unwrap();
        assert!(position > last, "in the order of the calls");
        last = position;
    }
    let expected: Vec<String> = (0..50).map(|i| i.to_string()).collect();
    assert_eq!(texts(&cluster.nodes[&1].recorder), expected);

    let (disk, recorder) = cluster.kill(1).await;
    cluster.start(1, disk, recorder).await;
    cluster.leader().await;
    cluster.applied(1, last).await;
    assert_eq!(texts(&cluster.nodes[&1].recorder), expected);
}

#[tokio::test(start_paused = true)]
async fn the_death_of_the_leader_loses_nothing_acknowledged() {
    let mut cluster = Cluster::new(3, 2).await;
    let mut acknowledged = vec![];
    for round in 0..4 {
        let leader = cluster.leader().await;
        for i in 0..10 {
            let text = format!("{round}.{i}");
            cluster.propose(leader, &text).await.unwrap();
            acknowledged.push(text);
        }
        let (disk, recorder) = cluster.kill(leader).await;
        let died = Instant::now();
        let next = cluster.leader().await;
        assert_ne!(next, leader);
        assert!(died.elapsed() < Duration::from_secs(3), "{:?}", died.elapsed());
        let position = cluster.propose(next, &format!("{round}.after")).await.unwrap();
        acknowledged.push(format!("{round}.after"));
        cluster.start(leader, disk, recorder).await;
        cluster.applied(leader, position).await;
        for node in cluster.nodes.values() {
            node.recorder.flush();
        }
    }
    sleep(Duration::from_secs(1)).await;
    for node in cluster.nodes.values() {
        assert_eq!(texts(&node.recorder), acknowledged);
    }
}

/// A vote, or the first entries, may be all that the others ever hear of the founder that was to
/// lead first.
#[tokio::test(start_paused = true)]
async fn a_group_is_founded_whenever_one_of_its_founders_dies() {
    for millis in 0..12 {
        let mut cluster = Cluster::new(3, 20 + millis).await;
        sleep(Duration::from_millis(millis)).await;
        let (disk, recorder) = cluster.kill(1).await;
        let died = Instant::now();
        let leader = cluster.leader().await;
        assert!(died.elapsed() < Duration::from_secs(4), "{:?}", died.elapsed());
        let position = cluster.propose(leader, "founded").await.unwrap();
        cluster.start_founder(1, disk, recorder, &[1, 2, 3]).await;
        cluster.applied(1, position).await;
        assert_eq!(cluster.group(leader).members().voters, ids(&[1, 2, 3]));
    }
}

/// The first of the founders stands for election at once, and nobody else does; nor does it, once
/// it has voted.
#[tokio::test(start_paused = true)]
async fn a_new_group_is_led_at_once_by_the_first_of_its_founders() {
    for seed in 0..5 {
        let mut cluster = Cluster::new(3, 50 + seed).await;
        let began = Instant::now();
        assert_eq!(cluster.leader().await, 1);
        // An election that a timeout begins takes longer.
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        let term = cluster.group(1).role().term;
        let (disk, recorder) = cluster.kill(1).await;
        for id in 1..=3 {
            cluster.net.cut(id);
        }
        cluster.start_founder(1, disk, recorder, &[1, 2, 3]).await;
        // It may have promised the leader of its term not to vote, not even for itself.
        sleep(Duration::from_millis(500)).await;
        assert_eq!(cluster.group(1).role().term, term);
    }
    let mut cluster = Cluster::new(1, 56).await;
    cluster.leader().await;
    let (disk, recorder) = cluster.kill(1).await;
    let began = Instant::now();
    cluster.start(1, disk, recorder).await;
    cluster.leader().await;
    assert!(began.elapsed() < Duration::from_millis(200), "nobody else can lead");
}

#[tokio::test(start_paused = true)]
async fn only_founders_begin_a_log() {
    let mut cluster = Cluster { net: Arc::default(), nodes: BTreeMap::new(), seed: 57 };
    cluster.start_founder(4, MemoryDisk::default(), Arc::default(), &[1, 2, 3]).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(cluster.group(4).last_position(), LogPosition::default());
    assert!(!cluster.group(4).is_initialized());
    cluster.start_founder(1, MemoryDisk::default(), Arc::default(), &[1, 2, 3]).await;
    assert!(cluster.group(1).is_initialized());
    // By itself, when it is told to.
    cluster.start(5, MemoryDisk::default(), Arc::default()).await;
    assert!(!cluster.group(5).is_initialized());
    for _ in 0..2 {
        cluster.group(5).initialize().await.unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    assert!(cluster.group(5).is_initialized() && cluster.group(5).role().is_leader);
    assert_eq!(cluster.group(5).members().voters, ids(&[5]));
}

/// A replica reports itself as the leader only after a majority has acknowledged its leadership.
#[tokio::test(start_paused = true)]
async fn who_names_itself_leads() {
    let cluster = Cluster::new(3, 66).await;
    let mut seen = BTreeSet::new();
    for _ in 0..1_000 {
        for (id, node) in &cluster.nodes {
            let role = node.group.role();
            assert_eq!(role.leader == Some(NodeId(*id)), role.is_leader, "{role:?}");
            seen.insert((*id, role.term, role.is_leader));
        }
        sleep(Duration::from_micros(500)).await;
    }
    assert!(seen.iter().any(|(_, _, is_leader)| *is_leader));
}

/// Nothing of a stopped replica keeps the node's log, or its disk, in use.
#[tokio::test(start_paused = true)]
async fn a_replica_that_is_stopped_lets_go_of_everything() {
    let mut cluster = Cluster::new(1, 67).await;
    cluster.leader().await;
    cluster.net.groups.lock().clear();
    let Node { group, recorder, log, disk } = cluster.nodes.remove(&1).unwrap();
    group.shutdown().await;
    drop((group, log));
    sleep(Duration::from_secs(1)).await;
    assert_eq!((disk.users(), Arc::strong_count(&recorder)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_stopped_leads_nothing_and_has_no_lease() {
    let cluster = Cluster::new(1, 60).await;
    cluster.leader().await;
    let group = cluster.group(1);
    assert!(group.lease_valid());
    let node = &cluster.nodes[&1];
    node.disk.set_capacity(node.disk.bytes());
    let waits = group.propose(Bytes::from("x".repeat(10_000))).unwrap();
    let watched = group.watch_role();
    group.shutdown().await;
    assert!(!group.lease_valid() && !group.role().is_leader && !watched.borrow().is_leader);
    assert_eq!(waits.await, Err(ProposeError::Stopped));
}

/// A store that cannot be written to any more ends its replica: it leads nothing, and says why.
#[tokio::test(start_paused = true)]
async fn a_replica_whose_store_fails_leads_nothing_and_says_why() {
    let cluster = Cluster::new(1, 61).await;
    cluster.leader().await;
    cluster.propose(1, "a").await.unwrap();
    assert_eq!(cluster.group(1).failure().map(|e| e.message().to_string()), None);
    cluster.nodes[&1].recorder.is_broken.store(true, Ordering::Relaxed);
    assert_eq!(cluster.propose(1, "b").await, Err(ProposeError::Stopped));
    sleep(Duration::from_secs(1)).await;
    let group = cluster.group(1);
    assert!(group.committed() > group.applied(), "the log has it, whatever the store does");
    assert_eq!(group.failure().unwrap().message(), "the store's disk is broken");
    assert!(!group.role().is_leader && !group.lease_valid());
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_takes_proposals_and_names_itself() {
    let cluster = Cluster::new(3, 3).await;
    let leader = cluster.leader().await;
    let follower = if leader == 1 { 2 } else { 1 };
    let refused = cluster.propose(follower, "x").await;
    assert_eq!(refused, Err(ProposeError::NotLeader { hint: Some(NodeId(leader)) }));
}

#[tokio::test(start_paused = true)]
async fn a_leader_cut_off_loses_its_lease_before_another_one_leads() {
    let cluster = Cluster::new(3, 4).await;
    let leader = cluster.leader().await;
    cluster.propose(leader, "before").await.unwrap();
    assert!(cluster.group(leader).lease_valid());
    cluster.net.cut(leader);
    let stuck = cluster.group(leader).propose(Bytes::from("stuck")).unwrap();
    let new = loop {
        let other = cluster.nodes.iter().find(|(n, node)| **n != leader && node.group.role().is_leader);
        if let Some((n, _)) = other {
            break *n;
        }
        sleep(Duration::from_millis(1)).await;
    };
    assert!(!cluster.group(leader).lease_valid(), "two leases at once");
    cluster.propose(new, "after").await.unwrap();
    // Those who wait are told even while it is still cut off.
    let outcome = timeout(Duration::from_secs(3), stuck).await.expect("it is told");
    assert_eq!(outcome, Err(ProposeError::Dropped));
    cluster.net.heal();
    let position = cluster.propose(new, "end").await.unwrap();
    cluster.applied(leader, position).await;
    for node in cluster.nodes.values() {
        cluster.applied(node.group.role().leader.unwrap().0, position).await;
    }
    assert_eq!(texts(&cluster.nodes[&leader].recorder), ["before", "after", "end"]);
}

/// A machine without time to spare: no heartbeat is answered before the next one.
#[tokio::test(start_paused = true)]
async fn an_idle_leader_keeps_its_lease_when_answers_take_longer_than_a_heartbeat() {
    let cluster = Cluster::new(3, 9).await;
    let leader = cluster.leader().await;
    cluster.propose(leader, "before").await.unwrap();
    cluster.net.slower_ms.store(75, Ordering::Relaxed);
    sleep(Duration::from_secs(1)).await;
    for _ in 0..200 {
        sleep(Duration::from_millis(10)).await;
        assert!(cluster.group(leader).lease_valid(), "no lease");
    }
    assert_eq!(cluster.leader().await, leader);
}

/// A run with an election, a cut and a restart, as seen on the wire.
fn wire_trace(seed: u64) -> Vec<(Duration, NodeId, NodeId, usize)> {
    let rng = tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes());
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).rng_seed(rng).build().unwrap();
    runtime.block_on(async {
        let mut cluster = Cluster::new(3, seed).await;
        let leader = cluster.leader().await;
        cluster.propose(leader, "one").await.unwrap();
        cluster.net.cut(leader);
        let next = cluster.leader().await;
        cluster.propose(next, "two").await.unwrap();
        cluster.net.heal();
        let (disk, recorder) = cluster.kill(next).await;
        cluster.start(next, disk, recorder).await;
        let last = cluster.leader().await;
        cluster.propose(last, "three").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let trace = cluster.net.trace.lock().clone();
        for id in [1, 2, 3] {
            cluster.kill(id).await;
        }
        trace
    })
}

#[test]
fn the_same_seed_gives_the_same_messages_at_the_same_times() {
    let first = wire_trace(11);
    assert!(first.len() > 50);
    assert_eq!(first, wire_trace(11));
    assert_ne!(first, wire_trace(12), "another seed gives other elections");
}
