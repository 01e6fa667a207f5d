//! What strangers say on the node port stops nobody's SQL.

use crate::script::{Cluster, EU, US};
use meridian_base::record::SchemaGrant;
use meridian_base::runtime::Runtime;
use meridian_base::{Clock, GroupId, NodeId, SchemaVersion, Timestamp};
use meridian_node::room::Left;
use meridian_node::rpc::{Place, Rpc};
use meridian_node::wire::{ClosedPromise, Ping, Request, Silence};
use meridian_sim::cluster::meridian::{NODE_PORT, Tuning};
use meridian_sim::world::SimRuntime;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::time::Duration;

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
        },
        6 => Request::Join {
            node: NodeId(4_000),
            token: 0,
            addr: "10.9.9.9:1".into(),
            sql_addr: "10.9.9.9:2".into(),
            region: US.into(),
            zone: "a".into(),
            is_passed_on: rng.random_bool(0.5),
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
    // The last two have the cluster's number: a node that is no member, and a member that says what it cannot know.
    let cluster = c.cluster_of("n1");
    for (seed, cluster, id) in [(1, 0, NodeId(0)), (2, 0, NodeId(2)), (3, cluster, NodeId(77)), (4, cluster, NodeId(2))] {
        c.spawn(US, move |host, _| async move {
            let mut rng = SmallRng::seed_from_u64(seed);
            let rpc = Rpc::new(Arc::new(SimRuntime::new(host)), Arc::new(Clock::new(Duration::from_secs(3_600))), None, None);
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

/// A promise that no primary can have made, and one that is not the primary's, tell a replica nothing: it goes on asking who knows.
#[test]
fn a_promise_counts_if_the_primary_made_it_and_can_have() {
    const AHEAD: Duration = Duration::from_secs(2);
    let mut c = Cluster::start(3, 1, 92, Tuning::default());
    c.sql(US, "defaultdb", &format!("CREATE DATABASE d PRIMARY REGION \"{US}\" REGIONS \"{EU}\""));
    c.sql(US, "d", "CREATE TABLE t (id INT8 PRIMARY KEY, v INT8); INSERT INTO t VALUES (1, 0)");
    c.settled(US, "d");
    let cluster = c.cluster_of("n1");
    // Of the primary, an hour ahead and for ever; of a member that does not lead, within what could be.
    for (n, (id, ahead)) in [(1, Some(Duration::from_secs(3_600))), (1, None), (3, Some(AHEAD))].into_iter().enumerate() {
        c.spawn(US, move |host, _| async move {
            let runtime: Arc<dyn Runtime> = Arc::new(SimRuntime::new(host));
            let rpc = Rpc::new(runtime.clone(), Arc::new(Clock::new(Duration::from_secs(3_600))), None, None);
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
