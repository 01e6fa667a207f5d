//! The simulator tested on something small: a counter that keeps its value in a file.

use super::*;
use crate::cluster::machines::link;
use crate::sql_wire::{Answer, Gateway, SimConnector, SqlSession};
use crate::world::disk::PowerLoss;
use crate::world::{Host, SimRuntime, World};
use futures::future::LocalBoxFuture;
use meridian_base::runtime::Runtime;
use meridian_base::{Error, Result};
use meridian_workload::{Connector, Rows, Told, Value};
use parking_lot::Mutex;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::sync::Arc;
use std::time::Duration;

/// Adds one on every statement and answers with the sum: after a sync, or, if it is careless,
/// before.
struct Counter {
    careless: bool,
}

struct CounterNode {
    runtime: SimRuntime,
    careless: bool,
    value: Arc<Mutex<i64>>,
}

struct CounterSession {
    runtime: SimRuntime,
    careless: bool,
    value: Arc<Mutex<i64>>,
}

const FILE: &str = "value";

impl Software for Counter {
    type Gateway = CounterNode;
    fn start(&self, runtime: SimRuntime, _: NodeSpec) -> LocalBoxFuture<'static, Result<Started<CounterNode>>> {
        let careless = self.careless;
        Box::pin(async move {
            let broken = |e: std::io::Error| Error::fatal(e.to_string());
            let file = runtime.disk().open(FILE, true).map_err(broken)?;
            runtime.disk().sync_folder("").map_err(broken)?;
            let mut bytes = [0; 8];
            file.read_at(0, &mut bytes).map_err(broken)?;
            let value = Arc::new(Mutex::new(i64::from_be_bytes(bytes)));
            let gateway = Arc::new(CounterNode { runtime, careless, value });
            Ok(Started { gateway, failure: Box::pin(std::future::pending()) })
        })
    }
    fn lose_power(&self, _: &NodeSpec, _: u64) {}
    fn process_died(&self, _: &NodeSpec) {}
    fn set_full(&self, _: &NodeSpec, _: bool) {}
    fn rot(&self, _: &NodeSpec) {}
    fn replace_disk(&self, _: &NodeSpec) {}
    fn remember_disk(&self, _: &NodeSpec) {}
    fn recall_disk(&self, _: &NodeSpec) {}
    fn retire(&self, _: SimRuntime, _: NodeSpec, _: Vec<NodeSpec>) -> LocalBoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
    fn is_primary(&self, _: &NodeSpec) -> bool {
        true
    }
    fn is_spared(&self, _: &NodeSpec) -> bool {
        false
    }
}

impl Gateway for CounterNode {
    type Session = CounterSession;
    async fn shut_down(&self) {}
    async fn open(&self, _: &str) -> Result<CounterSession> {
        Ok(CounterSession { runtime: self.runtime.clone(), careless: self.careless, value: self.value.clone() })
    }
}

impl SqlSession for CounterSession {
    async fn run(&mut self, sql: &str, _: &[Value]) -> Answer {
        let broken = |e: std::io::Error| (Error::fatal(e.to_string()), Told::default());
        let value = {
            let mut value = self.value.lock();
            *value += i64::from(sql == "add");
            *value
        };
        if sql == "add" {
            let file = self.runtime.disk().open(FILE, false).map_err(broken)?;
            file.write_at(0, &value.to_be_bytes()).map_err(broken)?;
            if !self.careless {
                file.sync().await.map_err(broken)?;
            }
        }
        Ok(Rows { rows: vec![vec![Value::Int(value)]], affected: 1 })
    }
}

/// Clients add one after the other; what the last answer said goes to `acknowledged`.
async fn add_for_ever(host: Arc<Host>, regions: Arc<Vec<(String, Vec<String>)>>, acknowledged: Arc<Mutex<i64>>) {
    let connector = SimConnector::new(host, regions);
    loop {
        let Ok(Ok(mut client)) = tokio::time::timeout(Duration::from_secs(1), connector.connect("us-east1", "")).await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        while let Ok(Ok(rows)) = tokio::time::timeout(Duration::from_secs(1), client.execute("add")).await {
            *acknowledged.lock() = rows.int(0, 0).expect("a number");
        }
    }
}

struct Run {
    machines: Machines<Counter>,
    acknowledged: Arc<Mutex<i64>>,
}

impl Run {
    fn new(seed: u64, careless: bool) -> Run {
        let topology = Topology::new(1, 1, 0.5);
        let regions = Arc::new(topology.nodes_by_region());
        let spec = topology.nodes[0].clone();
        let mut machines = Machines::new(World::new(false), topology, Counter { careless }, seed);
        machines.add_node(&spec, 0, 0);
        let acknowledged = Arc::new(Mutex::new(0));
        let out = acknowledged.clone();
        machines.add_client("client", "us-east1", |host| add_for_ever(host, regions, out));
        Run { machines, acknowledged }
    }
    fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.machines.step().expect("nothing panics");
        }
    }
    fn acknowledged(&self) -> i64 {
        *self.acknowledged.lock()
    }
    fn stored(&self) -> i64 {
        let runtime = SimRuntime::new(self.machines.host("n1"));
        let file = runtime.disk().open(FILE, false).expect("there");
        let mut bytes = [0; 8];
        file.read_at(0, &mut bytes).expect("readable");
        i64::from_be_bytes(bytes)
    }
}

#[test]
fn a_killed_process_loses_nothing_and_comes_back() {
    let mut run = Run::new(1, true);
    run.run(500);
    run.machines.kill("n1");
    assert!(run.acknowledged() > 50);
    assert!(run.stored() >= run.acknowledged(), "the kernel keeps what was written");
    run.machines.restart("n1");
    let before = run.acknowledged();
    run.run(500);
    assert!(run.acknowledged() > before + 50, "clients go on");
}

#[test]
fn a_loss_of_power_takes_what_was_acknowledged_too_early_and_nothing_else() {
    let lost = |careless: bool| {
        let mut run = Run::new(2, careless);
        run.run(700);
        run.machines.cut_power("n1", PowerLoss::LoseAll);
        run.acknowledged() - run.stored()
    };
    assert!(lost(true) > 0);
    assert!(lost(false) <= 0);
}

#[test]
fn a_strike_ends_with_the_loss_of_what_was_not_synced() {
    let lost = |careless: bool| {
        let mut run = Run::new(8, careless);
        let slow = Strike { sync_time: Some(Duration::from_millis(200)), ..Strike::lasting(100..=300) };
        let strike = Some(Strike { death: Some(Death::Power), ..slow });
        let plan = FaultPlan { every: Duration::from_millis(300), strike, ..FaultPlan::none() };
        let mut faults = Faults::new(plan, SmallRng::seed_from_u64(8), Duration::ZERO);
        let mut ticks = 0;
        while run.machines.host("n1").is_powered() {
            faults.step(&mut run.machines);
            run.machines.step().expect("nothing panics");
            ticks += 1;
            assert!(ticks < 10_000, "nothing was struck");
        }
        run.acknowledged() - run.stored()
    };
    assert!(lost(true) > 0);
    assert!(lost(false) <= 0);
}

#[test]
fn a_crash_at_an_operation_is_noticed_by_nobody_until_the_process_is_taken_down() {
    let mut run = Run::new(3, false);
    run.run(300);
    run.machines.host("n1").arm(5);
    run.run(300);
    assert!(run.machines.host("n1").is_doomed());
    let acknowledged = run.acknowledged();
    run.run(300);
    assert_eq!(run.acknowledged(), acknowledged, "a doomed process answers nobody");
    run.machines.cut_power("n1", PowerLoss::LoseAll);
    assert!(run.stored() >= acknowledged);
}

#[test]
fn a_partition_stops_clients_and_its_end_lets_them_go_on() {
    let mut run = Run::new(4, false);
    run.run(300);
    run.machines.cut("n1", "client");
    run.run(100);
    let during = run.acknowledged();
    run.run(1_000);
    assert_eq!(run.acknowledged(), during);
    run.machines.mend("n1", "client");
    run.run(1_500);
    assert!(run.acknowledged() > during);
}

#[test]
fn held_messages_are_late_and_not_lost() {
    let mut run = Run::new(5, false);
    run.run(300);
    run.machines.hold("n1", "client");
    run.run(100);
    let during = run.acknowledged();
    run.run(400);
    assert_eq!(run.acknowledged(), during);
    run.machines.release("n1", "client");
    run.run(50);
    assert!(run.acknowledged() > during, "the same stream goes on");
}

#[test]
fn a_slow_link_is_slow() {
    let mut run = Run::new(6, false);
    run.run(500);
    let usual = run.acknowledged();
    run.machines.slow("n1", "client", 20.0);
    run.run(500);
    assert!(run.acknowledged() - usual < usual / 2);
}

#[test]
fn a_full_disk_refuses_only_growth() {
    let mut run = Run::new(7, false);
    run.run(100);
    run.machines.set_full("n1", true);
    let before = run.acknowledged();
    run.run(200);
    assert!(run.acknowledged() > before, "overwriting needs no room");
    let runtime = SimRuntime::new(run.machines.host("n1"));
    let disk = runtime.disk();
    let file = disk.open("more", true).expect("a name needs no room");
    assert_eq!(file.write_at(0, b"x").expect_err("full").kind(), std::io::ErrorKind::StorageFull);
    run.machines.set_full("n1", false);
    file.write_at(0, b"x").expect("room again");
}

/// Everything at once for a while; the hash of what happened, and how much was acknowledged.
fn under_faults(seed: u64) -> ((u64, u64), i64) {
    let mut run = Run::new(seed, false);
    let mut plan = FaultPlan::all(Duration::from_millis(250));
    plan.every = Duration::from_millis(300);
    // A second server would have links of its own.
    plan.joins = false;
    let mut faults = Faults::new(plan, SmallRng::seed_from_u64(seed), Duration::ZERO);
    for _ in 0..8_000 {
        faults.step(&mut run.machines);
        run.machines.step().expect("nothing panics");
        assert!(run.machines.busy_links.iter().all(|l| *l == link("n1", "client")));
    }
    (run.machines.world.trace.sum(), run.acknowledged())
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    assert_eq!(under_faults(11), under_faults(11));
    assert_ne!(under_faults(11).0, under_faults(12).0);
}

#[test]
fn a_careful_counter_survives_every_fault() {
    for seed in 20..30 {
        let mut run = Run::new(seed, false);
        let plan = FaultPlan { every: Duration::from_millis(200), ..FaultPlan::all(Duration::from_millis(250)) };
        let mut faults = Faults::new(plan, SmallRng::seed_from_u64(seed), Duration::ZERO);
        for _ in 0..3_000 {
            faults.step(&mut run.machines);
            run.machines.step().expect("nothing panics");
        }
        assert!(run.stored() >= run.acknowledged(), "seed {seed}");
        faults.heal(&mut run.machines);
        let before = run.acknowledged();
        for _ in 0..15_000 {
            faults.keep_healed(&mut run.machines);
            run.machines.step().expect("nothing panics");
        }
        assert!(run.acknowledged() > before, "seed {seed}: it comes back");
    }
}
