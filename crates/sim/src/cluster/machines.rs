//! Machines and links: starting, killing, cutting, mending.

use super::software::{self, Software};
use super::topology::{NodeSpec, Topology};
use crate::world::disk::PowerLoss;
use crate::world::{Host, SimRuntime, World};
use meridian_base::Error;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Two machines, the smaller name first.
pub type Link = (String, String);

/// The link between two machines.
pub fn link(a: &str, b: &str) -> Link {
    if a < b { (a.to_string(), b.to_string()) } else { (b.to_string(), a.to_string()) }
}

/// The machines of a run, under turmoil.
pub struct Machines<S: Software> {
    pub sim: turmoil::Sim<'static>,
    pub world: Arc<World>,
    pub topology: Topology,
    software: Arc<S>,
    /// Region of every machine, clients' included.
    places: BTreeMap<String, String>,
    /// Links that some fault is on: a second one waits until it is over.
    pub busy_links: BTreeSet<Link>,
    /// Why processes ended by themselves, with the machine.
    ended: Arc<Mutex<Vec<(String, Error)>>>,
    seed: u64,
}

impl<S: Software> Machines<S> {
    /// No machine runs yet.
    pub fn new(world: Arc<World>, topology: Topology, software: S, seed: u64) -> Machines<S> {
        let epoch = std::time::UNIX_EPOCH + Duration::from_micros(crate::world::EPOCH_MICROS);
        let sim = turmoil::Builder::new()
            .rng_seed(seed)
            .epoch(epoch)
            .tick_duration(Duration::from_millis(1))
            .simulation_duration(Duration::from_secs(24 * 3600))
            .min_message_latency(Duration::from_millis(1))
            .max_message_latency(Duration::from_millis(2))
            .tcp_capacity(16_384)
            .enable_random_order()
            .build();
        Machines {
            sim,
            world,
            topology,
            software: Arc::new(software),
            places: BTreeMap::new(),
            busy_links: BTreeSet::new(),
            ended: Arc::default(),
            seed,
        }
    }

    /// Adds a node's machine and starts its process.
    pub fn add_node(&mut self, spec: &NodeSpec, clock_error_micros: i64, clock_drift_ppm: i64) {
        let host = self.world.add_host(&spec.name, self.seed);
        host.set_clock(clock_error_micros, clock_drift_ppm);
        host.mark_up();
        let (software, ended) = (self.software.clone(), self.ended.clone());
        let (runtime_host, node) = (host.clone(), spec.clone());
        self.sim.host(spec.name.as_str(), move || {
            let (software, ended) = (software.clone(), ended.clone());
            let (runtime, spec) = (SimRuntime::new(runtime_host.clone()), node.clone());
            async move {
                let name = spec.name.clone();
                let error = software::run(software, runtime, spec).await;
                ended.lock().push((name, error));
                Ok(())
            }
        });
        self.place(&spec.name, &spec.region);
    }

    /// Adds a node to the region and zone of another one.
    pub fn grow(&mut self, beside: usize, clock_error_micros: i64) {
        let name = format!("n{}", self.topology.nodes.len() + 1);
        let spec = NodeSpec { name, ..self.topology.nodes[beside].clone() };
        self.topology.nodes.push(spec.clone());
        self.add_node(&spec, clock_error_micros, 0);
    }

    /// An operator begins to take a node out of the cluster. The flag is set when it is no member
    /// any more.
    pub fn retire(&mut self, name: &str) -> Arc<AtomicBool> {
        let spec = self.spec(name);
        let others: Vec<NodeSpec> = self.topology.nodes.iter().filter(|n| n.name != name).cloned().collect();
        let (software, is_done) = (self.software.clone(), Arc::new(AtomicBool::new(false)));
        let (done, region) = (is_done.clone(), spec.region.clone());
        self.add_client("operator", &region, move |host| async move {
            software.retire(SimRuntime::new(host), spec, others).await;
            done.store(true, Ordering::Relaxed);
        });
        is_done
    }

    /// Adds a client's machine, which runs `work` once.
    pub fn add_client<F>(&mut self, name: &str, region: &str, work: impl FnOnce(Arc<Host>) -> F)
    where
        F: Future<Output = ()> + 'static,
    {
        let host = self.world.add_host(name, self.seed);
        host.mark_up();
        let work = work(host);
        self.sim.client(name, async move {
            work.await;
            Ok(())
        });
        self.place(name, region);
    }

    /// Sets the delays between a new machine and those before it.
    fn place(&mut self, name: &str, region: &str) {
        for (other, place) in self.places.clone() {
            self.set_delay(name, region, &other, &place, 1.0);
        }
        self.places.insert(name.to_string(), region.to_string());
    }

    fn set_delay(&self, a: &str, region_a: &str, b: &str, region_b: &str, factor: f64) {
        let usual = self.topology.delay(region_a, region_b).mul_f64(factor);
        self.sim.set_link_latency(a, b, usual);
        let longest = usual.mul_f64(1.0 + self.topology.jitter).max(usual + Duration::from_millis(1));
        self.sim.set_link_max_message_latency(a, b, longest);
    }

    /// Runs one tick. A panic on a machine comes out of here.
    pub fn step(&mut self) -> Result<(), String> {
        self.sim.step().map(|_| ()).map_err(|e| e.to_string())
    }

    /// True time since the start.
    pub fn elapsed(&self) -> Duration {
        self.sim.elapsed()
    }

    /// Processes that ended by themselves since the last call.
    pub fn take_ended(&mut self) -> Vec<(String, Error)> {
        std::mem::take(&mut *self.ended.lock())
    }

    /// A machine by name.
    pub fn host(&self, name: &str) -> Arc<Host> {
        self.world.host(name).expect("a machine of this run")
    }

    /// Whether a node serves as a primary now.
    pub fn is_primary(&self, name: &str) -> bool {
        self.host(name).has_started() && self.software.is_primary(&self.spec(name))
    }

    /// Whether the disk of a node may be lost now.
    pub fn is_spared(&self, name: &str) -> bool {
        self.host(name).has_started() && self.software.is_spared(&self.spec(name))
    }

    fn spec(&self, name: &str) -> NodeSpec {
        self.topology.nodes.iter().find(|n| n.name == name).expect("a node of this run").clone()
    }

    /// The process dies; the machine goes on, and the kernel closes its connections.
    pub fn kill(&mut self, name: &str) {
        self.host(name).mark_down(true);
        self.sim.crash(name);
        self.software.process_died(&self.spec(name));
        self.world.coverage.hit("process killed");
    }

    /// The machine goes dark: nothing is closed, and what was not synced is lost.
    pub fn cut_power(&mut self, name: &str, loss: PowerLoss) {
        let host = self.host(name);
        host.mark_down(false);
        let others: Vec<String> = self.places.keys().filter(|other| *other != name).cloned().collect();
        let free: Vec<&String> = others.iter().filter(|other| !self.busy_links.contains(&link(name, other))).collect();
        for other in &free {
            self.sim.partition(name, other.as_str());
        }
        self.sim.crash(name);
        for other in &free {
            self.sim.repair(name, other.as_str());
        }
        host.lose_power(loss);
        self.software.lose_power(&self.spec(name), if loss == PowerLoss::LoseAll { 0 } else { host.random() });
        self.world.coverage.hit("power lost");
        match loss {
            PowerLoss::Tear => self.world.coverage.hit("writes torn"),
            PowerLoss::Corrupt => self.world.coverage.hit("tail corrupted"),
            PowerLoss::LoseAll => self.world.coverage.hit("unsynced writes lost"),
            PowerLoss::KeepAll => {}
        }
    }

    /// Bits of the rows on the disk of a machine that is off have changed.
    pub fn rot_rows(&mut self, name: &str) {
        self.host(name).event("rot in rows", 0);
        self.software.rot(&self.spec(name));
        self.world.coverage.hit("bit rot in rows");
    }

    /// A machine that is off gets an empty disk.
    pub fn replace_disk(&mut self, name: &str) {
        self.host(name).event("disk replaced", 0);
        self.host(name).replace_disk();
        self.software.replace_disk(&self.spec(name));
        self.world.coverage.hit("disk replaced");
    }

    /// From now on the machine's disk makes nothing durable and says that it does.
    pub fn lie_about_syncs(&mut self, name: &str) {
        self.host(name).event("lies", 0);
        self.host(name).lie_about_syncs(true);
        self.software.remember_disk(&self.spec(name));
    }

    /// The machine goes dark, and its disk is as it was when it began to lie.
    pub fn lose_what_was_not_synced(&mut self, name: &str) {
        self.cut_power(name, PowerLoss::LoseAll);
        self.host(name).lie_about_syncs(false);
        self.software.recall_disk(&self.spec(name));
        self.world.coverage.hit("synced writes lost");
    }

    /// A process is started on the machine again.
    pub fn restart(&mut self, name: &str) {
        // Peers that never heard of the loss of power learn of it now, as by the first segment that
        // the new kernel refuses.
        for other in self.places.keys().filter(|other| *other != name).cloned().collect::<Vec<_>>() {
            self.reset(name, &other);
        }
        self.host(name).mark_up();
        self.sim.bounce(name);
        self.world.coverage.hit("restart");
    }

    /// Messages between two machines are dropped.
    pub fn cut(&mut self, a: &str, b: &str) {
        self.sim.partition(a, b);
    }
    /// Messages from one machine to another are dropped, not those back.
    pub fn cut_one_way(&mut self, from: &str, to: &str) {
        self.sim.partition_oneway(from, to);
    }
    /// Messages flow again; streams from before are reset.
    pub fn mend(&mut self, a: &str, b: &str) {
        self.sim.repair(a, b);
        self.reset(a, b);
    }
    /// Messages are kept back.
    pub fn hold(&mut self, a: &str, b: &str) {
        self.sim.hold(a, b);
    }
    /// They are delivered.
    pub fn release(&mut self, a: &str, b: &str) {
        self.sim.release(a, b);
    }
    /// The link is slower by a factor, or usual again with 1.
    pub fn slow(&mut self, a: &str, b: &str, factor: f64) {
        let region = |name: &str| self.places[name].clone();
        self.set_delay(a, &region(a), b, &region(b), factor);
    }
    /// So many bytes pass between two machines in a second, each way; `None`: any number.
    pub fn narrow(&mut self, a: &str, b: &str, bytes_per_second: Option<u64>) {
        let (a, b) = (self.sim.lookup(a), self.sim.lookup(b));
        self.world.net.set_speed(a, b, bytes_per_second);
        self.world.net.set_speed(b, a, bytes_per_second);
    }
    /// Streams between two machines are reset.
    pub fn reset(&mut self, a: &str, b: &str) -> usize {
        self.world.net.reset_between(self.sim.lookup(a), self.sim.lookup(b))
    }
    /// The disk is full, or has room again.
    pub fn set_full(&mut self, name: &str, full: bool) {
        let host = self.host(name);
        if full {
            host.fill_disk()
        } else {
            host.make_room()
        }
        self.software.set_full(&self.spec(name), full);
    }
    /// All machines of nodes and clients.
    pub fn names(&self) -> Vec<String> {
        self.places.keys().cloned().collect()
    }
}
