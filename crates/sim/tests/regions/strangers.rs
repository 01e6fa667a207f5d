//! What strangers say on the node port stops nobody's SQL.

use crate::script::{Cluster, US};
use meridian_base::record::SchemaGrant;
use meridian_base::{Clock, GroupId, NodeId, SchemaVersion, Timestamp};
use meridian_node::room::Left;
use meridian_node::rpc::{Place, Rpc};
use meridian_node::wire::{Ping, Request, Silence};
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
    match rng.random_range(0..8) {
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
        _ => Request::IsMember { group },
    }
}

#[test]
fn what_strangers_claim_stops_nobody() {
    let mut c = Cluster::start(1, 3, 91, Tuning::default());
    c.pass(Duration::from_secs(5));
    c.sql(US, "defaultdb", "CREATE TABLE t (id INT8 PRIMARY KEY)");
    for (seed, id) in [(1, NodeId(0)), (2, NodeId(77)), (3, NodeId(2))] {
        c.spawn(US, move |host, _| async move {
            let mut rng = SmallRng::seed_from_u64(seed);
            let rpc = Rpc::new(SimRuntime::new(host), Arc::new(Clock::new(Duration::from_secs(3_600))), None, None);
            // Of no cluster: nobody refuses that.
            rpc.identify(0, id, Place::default(), "");
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
