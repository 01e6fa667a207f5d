//! What strangers say on the node port stops nobody's SQL.

use crate::script::{Cluster, EU, US};
use meridian_base::record::SchemaGrant;
use meridian_base::runtime::Runtime;
use meridian_base::version::Versions;
use meridian_base::{Clock, GroupId, NodeId, SchemaVersion, Timestamp};
use meridian_node::room::Left;
use meridian_node::rpc::{Place, Rpc};
use meridian_node::wire::{ClosedPromise, Ping, Request, Silence};
use meridian_sim::cluster::meridian::{NODE_PORT, Tuning};
use meridian_sim::world::SimRuntime;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::time::Duration;

/// Who calls nodes and is none.
fn stranger(runtime: SimRuntime) -> Arc<Rpc> {
    Rpc::new(Arc::new(runtime), Arc::new(Clock::new(Duration::from_secs(3_600))), Versions::OWN, None, None)
}

/// Something absurd.
fn draw(rng: &mut SmallRng) -> Request {
    let group = if rng.random_bool(0.5) { GroupId::CATALOG } else { GroupId(rng.random_range(0..2_000)) };
    let version = SchemaVersion(u64::MAX - rng.random_range(0..3));
    match rng.random_range(0..9) {
        0..=2 => Request::Ping(Ping {
            physical_micros: rng.random(),
            incarnation: rng.random(),
            leads: vec![(group, u64::MAX)],
            holds: (0..1_000).map(GroupId).collect(),
            certified: Some(version),
            protected: Timestamp(rng.random()),
            hears: (0..1_000).map(NodeId).collect(),
            left: Left::Nothing,
            full: vec![(group, Left::Nothing)],
            lost: (0..1_000).map(|group| (GroupId(group), Silence { micros: u64::MAX, silent: u32::MAX, of: 0 })).collect(),
            is_host: rng.random(),
        }),
        3 => Request::AwaitVersion { version },
        4 => Request::Grant {
            group,
            grant: SchemaGrant { version, bound: Timestamp::MAX, seq: u64::MAX, ..SchemaGrant::default() },
        },
        5 => Request::Join {
            node: NodeId(0),
            token: 0,
            addr: "nowhere".into(),
            sql_addr: "x".repeat(10_000),
            region: "\n".into(),
            zone: String::new(),
            is_passed_on: false,
            versions: Versions::OWN,
        },
        6 => Request::Join {
            node: NodeId(4_000),
            token: 0,
            addr: "10.9.9.9:1".into(),
            sql_addr: "10.9.9.9:2".into(),
            region: US.into(),
            zone: "a".into(),
            is_passed_on: rng.random_bool(0.5),
            versions: Versions::OWN,
        },
        7 => Request::Closed(vec![ClosedPromise { group, closed: Timestamp(rng.random()), index: 0 }]),
        _ => Request::IsMember { group },
    }
}

#[test]
fn what_strangers_claim_stops_nobody() {
    let mut c = Cluster::start(1, 3, 91, Tuning::default());
    c.pass(Duration::from_secs(5));
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY)");
    // The last two have the cluster's number: a node that is no member, and a member that says what
    // it cannot know.
    let cluster = c.cluster_of("n1");
    for (seed, cluster, id) in [(1, 0, NodeId(0)), (2, 0, NodeId(2)), (3, cluster, NodeId(77)), (4, cluster, NodeId(2))] {
        c.spawn(US, move |host, _| async move {
            let mut rng = SmallRng::seed_from_u64(seed);
            let rpc = stranger(SimRuntime::new(host));
            rpc.identify(cluster, id, Place::default(), "");
            loop {
                let to = format!("n{}:{NODE_PORT}", rng.random_range(1..4));
                let _ = rpc.call_addr(&to, draw(&mut rng), Duration::from_millis(200)).await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
    }
    for n in 0..30 {
        let began = c.elapsed();
        c.sql(US, "defaultdb", &format!("INSERT INTO t VALUES ({n})"));
        if n % 10 == 0 {
            c.sql(US, "defaultdb", &format!("CREATE TABLE made{n} (id INT8 PRIMARY KEY)"));
        }
        let took = c.elapsed() - began;
        assert!(took < Duration::from_secs(4), "statement {n} took {took:?}");
        c.pass(Duration::from_millis(300));
    }
    assert_eq!(c.sql(US, "defaultdb", "SELECT count(*) FROM t"), [["30"]]);
    assert_eq!(c.status("n1").len(), 3, "nobody has joined");
}

/// An append without entries, byte by byte (`raft/src/consensus/message.rs`): the version, the
/// form, the leader's term and node, that it was elected, two empty positions, no entry.
fn heartbeat(term: u64, leader: u32) -> Vec<u8> {
    let head = [&[1, 0][..], &term.to_le_bytes(), &leader.to_le_bytes(), &[1]].concat();
    [head, vec![0; 36]].concat()
}

/// A leader that is no node of the cluster, and one that is not the sender, are refused: no term
/// follows from them.
#[test]
fn nobody_leads_who_is_no_node() {
    let mut c = Cluster::start(1, 3, 93, Tuning::default());
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY)");
    c.pass(Duration::from_secs(5));
    let before = c.status("n1").into_iter().map(|n| n.leads).collect::<Vec<_>>();
    let cluster = c.cluster_of("n1");
    let answers: Arc<Mutex<Vec<String>>> = Arc::default();
    for (cluster, sender, leader) in [(0, 999, 999), (cluster, 999, 999), (cluster, 999, 2)] {
        let said = answers.clone();
        c.spawn(US, move |host, _| async move {
            let rpc = stranger(SimRuntime::new(host));
            rpc.identify(cluster, NodeId(sender), Place::default(), "");
            for (to, group) in (1..=3).flat_map(|to| [(to, GroupId::CATALOG), (to, GroupId(101)), (to, GroupId(104))]) {
                let message = heartbeat(5_000 + u64::from(group.0), leader).into();
                let request = Request::Raft { group, message, is_ordered: false };
                let answer = rpc.call_addr(&format!("n{to}:{NODE_PORT}"), request, Duration::from_secs(1)).await;
                said.lock().push(answer.map_or_else(|e| e.message().to_string(), |_| "answered".to_string()));
            }
        });
    }
    c.pass(Duration::from_secs(15));
    let answers = answers.lock().clone();
    assert_eq!(answers.len(), 27);
    assert!(answers.iter().any(|a| a.ends_with("is no leader")), "{answers:?}");
    assert!(answers.iter().all(|a| a != "answered"), "{answers:?}");
    assert_eq!(c.status("n1").into_iter().map(|n| n.leads).collect::<Vec<_>>(), before);
    c.sql(US, "defaultdb", "INSERT INTO t VALUES (1)");
}

/// Whoever is no member says little. A longer frame is not even decoded: the connection ends.
#[test]
fn a_large_frame_of_a_stranger_ends_its_connection() {
    let mut c = Cluster::start(1, 1, 94, Tuning::default());
    let answers: Arc<Mutex<Vec<String>>> = Arc::default();
    let said = answers.clone();
    c.spawn(US, move |host, _| async move {
        let rpc = stranger(SimRuntime::new(host));
        for bytes in [10_000, 100_000] {
            let join = Request::Join {
                node: NodeId(0),
                token: 0,
                addr: "nowhere:1".into(),
                sql_addr: "x".repeat(bytes),
                region: US.into(),
                zone: "a".into(),
                is_passed_on: false,
                versions: Versions::OWN,
            };
            let answer = rpc.call_addr(&format!("n1:{NODE_PORT}"), join, Duration::from_secs(5)).await;
            said.lock().push(answer.map_or_else(|e| e.sqlstate().to_string(), |_| "answered".to_string()));
        }
    });
    c.pass(Duration::from_secs(15));
    assert_eq!(*answers.lock(), ["22023", "57P03"]);
}

/// A promise that no primary can have made, and one that is not the primary's, tell a replica
/// nothing: it goes on asking who knows.
#[test]
fn a_promise_counts_if_the_primary_made_it_and_can_have() {
    const AHEAD: Duration = Duration::from_secs(2);
    let mut c = Cluster::start(3, 1, 92, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8); INSERT INTO t VALUES (1, 0)");
    c.settled(US, "d");
    let cluster = c.cluster_of("n1");
    // Of the primary, an hour ahead and for ever; of a member that does not lead, within what could
    // be.
    for (n, (id, ahead)) in [(1, Some(Duration::from_secs(3_600))), (1, None), (3, Some(AHEAD))].into_iter().enumerate() {
        c.spawn(US, move |host, _| async move {
            let runtime: Arc<dyn Runtime> = Arc::new(SimRuntime::new(host));
            let rpc = Rpc::new(runtime.clone(), Arc::new(Clock::new(Duration::from_secs(3_600))), Versions::OWN, None, None);
            rpc.identify(cluster, NodeId(id), Place::default(), "");
            let now = Timestamp::from_micros(runtime.physical_micros());
            let closed = ahead.map_or(Timestamp::MAX, |ahead| now.plus(ahead));
            let promises = (100..200).map(|g| ClosedPromise { group: GroupId(g), closed, index: 0 }).collect();
            let _ = rpc.call_addr(&format!("n2:{NODE_PORT}"), Request::Closed(promises), Duration::from_secs(1)).await;
        });
        c.pass(Duration::from_millis(300));
        let wanted = (n + 1).to_string();
        c.sql(US, "d", "UPDATE t SET v = v + 1");
        assert_eq!(c.sql(EU, "d", "SELECT v FROM t"), [[wanted.as_str()]], "an acknowledged write is seen");
    }
}
