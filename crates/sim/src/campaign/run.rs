//! One seed, from start to verdict.
//!
//! ```text
//! start nodes ─▶ set up ─▶ work under faults ─▶ heal ─▶ workers finish ─▶ check ─▶ checkers
//! ```
//!
//! After healing the cluster has a bounded time to answer everything again; not doing so is a
//! violation too.

use super::options::{Bug, Options, WorkloadKind};
use super::report::Report;
use super::scenario::Scenario;
use crate::cluster::meridian::{Meridian, Tuning};
use crate::cluster::{FaultPlan, Faults, Machines, Software, Topology};
use crate::sql_wire::SimConnector;
use crate::world::{Host, World};
use meridian_base::limits::MAX_OFFSET_DEFAULT;
use meridian_base::parts::LargeFrom;
use meridian_base::{Error, Result};
use meridian_commit as commit;
use meridian_node::Timing;
use meridian_region::Rules;
use meridian_workload::checkers::{self, Promise};
use meridian_workload::{Context, History, RetryPolicy, Stats, Stop, Verdict, Worker, Workload, list_append};
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A healthy cluster of the largest shape is set up in a fraction of this.
const SETUP_MAX: Duration = Duration::from_secs(120);
/// After healing: an election, a lease that runs out, statements that time out, and room.
const FINISH_MAX: Duration = Duration::from_secs(90);
/// Replicas move, one after the other.
const RETIRED_MAX: Duration = Duration::from_secs(120);
/// Jobs that cannot end give up in the course of it.
const CHECK_MAX: Duration = Duration::from_secs(360);

/// One run in so many repeats [`REPEATED_SHARE`] of its messages.
const REPEATING_SEEDS: u64 = 4;
const REPEATED_SHARE: f64 = 0.05;

/// A result that a task on a simulated machine leaves for the driver.
type Slot<T> = Arc<Mutex<Option<T>>>;

/// What all clients of a run share.
struct Clients {
    workload: Arc<dyn Workload>,
    regions: Arc<Vec<(String, Vec<String>)>>,
    world: Arc<World>,
    stop: Stop,
    history: History,
    stats: Stats,
    survives_region: bool,
    seed: u64,
}

impl Clients {
    /// The context of the clients on one machine.
    fn context(&self, host: Arc<Host>) -> Context {
        Context {
            connector: Arc::new(SimConnector::new(host, self.regions.clone()).surviving_regions(self.survives_region)),
            timer: self.world.clone(),
            stop: self.stop.clone(),
            history: self.history.clone(),
            stats: self.stats.clone(),
            retry: RetryPolicy { statement_timeout: Duration::from_secs(10), retries_max: 20, ..RetryPolicy::default() },
            seed: self.seed,
        }
    }
}

/// Runs one seed in this process.
pub fn run_seed(seed: u64, options: &Options) -> Report {
    meridian_base::invariants::look();
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut topology = match options.shape {
        Some((regions, zones)) => Topology::new(regions, zones, rng.random_range(0.0..2.0)),
        None => Topology::draw(&mut rng),
    };
    let drawn = options.workload.unwrap_or_else(|| WorkloadKind::draw(&mut rng));
    let mut kind = options.workload.or(options.provoke.or(options.bug).and_then(Bug::workload)).unwrap_or(drawn);
    let mut duration = options.duration.unwrap_or_else(|| Duration::from_secs(rng.random_range(5..20)));
    if kind == WorkloadKind::Localities && options.duration.is_none() {
        // A change of locality takes seconds.
        duration *= 3;
    }
    let mut scenario = if options.calm { Scenario::calm() } else { Scenario::draw(&mut rng) };
    let shown = options.provoke.or(options.bug);
    if shown.is_none() {
        scenario.draw_more(&mut SmallRng::seed_from_u64(!seed), options.calm, topology.regions.len());
    }
    if kind == WorkloadKind::Bank && options.workload.is_none() && scenario.is_about_shares {
        kind = WorkloadKind::Escrow;
    }
    if kind == WorkloadKind::Escrow {
        // They know no such columns.
        scenario.has_older_programs = false;
    }
    if (scenario.has_small_region && options.shape.is_none()) || options.small_region {
        topology = topology.with_a_small_region();
    }
    if let Some(bug) = shown {
        scenario.provoke(bug);
    } else if seed.is_multiple_of(REPEATING_SEEDS) && !options.calm {
        // Not drawn: the other runs stay what they were without this.
        scenario.repeated_share = REPEATED_SHARE;
    }
    if options.beyond {
        (scenario.has_global, scenario.plan.beyond) = (true, Some(MAX_OFFSET_DEFAULT));
    }
    if kind == WorkloadKind::Registers && scenario.has_global {
        // The order of GLOBAL rows in real time is promised for clocks within `max_offset`.
        scenario.plan.beyond = None;
    }
    if matches!(kind, WorkloadKind::SchemaSteps | WorkloadKind::Localities) {
        // The order of schema changes in real time is promised for clocks within `max_offset`.
        scenario.plan.beyond = None;
    }
    if matches!(kind, WorkloadKind::Registers | WorkloadKind::SchemaSteps | WorkloadKind::Localities) {
        scenario.plan.rare.hours = false;
    }
    if kind == WorkloadKind::Localities {
        // It changes what its database survives.
        (scenario.plan.rare.lost_regions, scenario.plan.rare.survives_region) = (false, false);
        // A group that moves to another region has voters in both for a while, and no vote comes
        // back across the sea within a quick election's time.
        scenario.timing = Timing::default();
    }
    let (mut rules, mut ballot_rules) = (Rules::ALL, commit::Rules::ALL);
    match options.bug {
        Some(Bug::Group(bug)) => rules = Rules::without(bug),
        Some(Bug::Ballot(bug)) => ballot_rules = commit::Rules::without(bug),
        None => {}
    }

    let world = World::new(options.trace);
    let mut report = Report { seed, workload: kind.name().to_string(), shape: topology.shape(), ..Report::default() };
    let clients = Clients {
        workload: kind.build(&mut rng, &scenario),
        regions: Arc::new(topology.nodes_by_region()),
        world: world.clone(),
        stop: Stop::new(),
        history: History::new(),
        stats: Stats::new(),
        survives_region: scenario.plan.rare.survives_region,
        seed,
    };
    let workers_per_region = rng.random_range(2..5);
    let mut older_programs = BTreeSet::new();
    if scenario.has_older_programs {
        older_programs.extend(topology.nodes.iter().map(|node| node.name.clone()));
    }
    let software = Meridian::new(Tuning {
        rules,
        ballot_rules,
        max_offset: scenario.max_offset,
        repeated_share: scenario.repeated_share,
        timing: scenario.timing,
        gc_ttl: scenario.gc_ttl,
        gc_interval: scenario.gc_interval,
        protected_for_max: scenario.protected_for_max,
        large_from: if scenario.has_large { LargeFrom::TWO_WRITES } else { LargeFrom::default() },
        older_programs: Arc::new(Mutex::new(older_programs)),
        ..Tuning::default()
    });
    // Of GLOBAL rows the order in real time is promised for clocks within `max_offset`;
    // serializability, in any case.
    let promise = match (scenario.has_global && scenario.is_beyond(), topology.regions.len()) {
        (true, 2..) => Promise::OrderOpen { keys: list_append::keys_of_region(topology.regions.len() - 1) },
        _ => Promise::Strict,
    };
    let machines = Machines::new(world.clone(), topology, software, seed);
    let mut run = Run { machines, clients, faults: None, rng, promise };
    if let Err(violation) = run.all(scenario.plan, duration, workers_per_region, &mut report) {
        report.does_not_end(violation);
    }
    run.judge(kind, options, &mut report);
    report
}

struct Run<S: Software> {
    machines: Machines<S>,
    clients: Clients,
    faults: Option<Faults>,
    rng: SmallRng,
    promise: Promise,
}

impl<S: Software> Run<S> {
    fn all(&mut self, plan: FaultPlan, duration: Duration, workers_per_region: usize, report: &mut Report) -> Result<(), String> {
        self.start_nodes(&plan)?;
        self.set_up()?;
        let workers = self.start_workers(workers_per_region);
        let faults_rng = SmallRng::seed_from_u64(self.rng.random());
        self.faults = Some(Faults::new(plan, faults_rng, self.machines.elapsed()));
        let end = self.machines.elapsed() + duration;
        while self.machines.elapsed() < end {
            self.step()?;
        }
        self.faults.as_mut().expect("just set").heal(&mut self.machines);
        self.finish_something(report)?;
        self.clients.stop.stop();
        for (name, slot) in workers {
            if let Err(error) = self.wait_for(&slot, FINISH_MAX, &format!("{name} to finish after healing"))? {
                report.violate(format!("a worker on {name} could not go on: {error}"));
            }
        }
        let end = self.machines.elapsed() + RETIRED_MAX;
        while self.faults.as_ref().is_some_and(Faults::is_retiring) {
            if self.machines.elapsed() > end {
                report.does_not_end(format!("a node could not be decommissioned in {} s", RETIRED_MAX.as_secs()));
                break;
            }
            self.step()?;
        }
        let verdict = self.check()?;
        verdict.violations.iter().for_each(|violation| report.violate(violation));
        Ok(())
    }

    /// Faults may have left no moment in which anything could succeed. Then clients stay at work
    /// until something has: a run that gets nothing done has tested nothing.
    fn finish_something(&mut self, report: &mut Report) -> Result<(), String> {
        let end = self.machines.elapsed() + FINISH_MAX;
        while self.clients.stats.successes() == 0 {
            if self.machines.elapsed() > end {
                report.does_not_end(format!("no operation succeeded, not even in {} s after healing", FINISH_MAX.as_secs()));
                break;
            }
            self.step()?;
        }
        Ok(())
    }

    /// Starts all nodes and waits until each has joined.
    fn start_nodes(&mut self, plan: &FaultPlan) -> Result<(), String> {
        let skew = plan.skew_max.as_micros() as i64;
        for spec in self.machines.topology.nodes.clone() {
            let mut error = self.rng.random_range(-skew..=skew);
            if plan.first_is_ahead {
                error = if spec.region == self.machines.topology.regions[0] { skew } else { -skew };
            }
            let drift = if skew == 0 { 0 } else { self.rng.random_range(-100..=100) };
            self.machines.add_node(&spec, error, drift);
        }
        let nodes = self.machines.topology.nodes.clone();
        while !nodes.iter().all(|node| self.machines.host(&node.name).has_started()) {
            if let Some((node, error)) = self.machines.take_ended().into_iter().next() {
                return Err(format!("{node} did not start: {error}"));
            }
            if self.machines.elapsed() > SETUP_MAX {
                return Err(format!("the cluster did not start in {} s", SETUP_MAX.as_secs()));
            }
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        if let Some(faults) = &mut self.faults {
            faults.step(&mut self.machines);
        }
        self.machines.step()
    }

    /// Runs until a task has left its result.
    fn wait_for<T>(&mut self, slot: &Slot<T>, at_most: Duration, what: &str) -> Result<T, String> {
        let end = self.machines.elapsed() + at_most;
        loop {
            if let Some(result) = slot.lock().take() {
                return Ok(result);
            }
            if self.machines.elapsed() > end {
                let last = self.clients.stats.last_error().map(|e| format!("; the last error was {e}")).unwrap_or_default();
                return Err(format!("waited {} s for {what} in vain{last}", at_most.as_secs()));
            }
            if self.faults.is_none()
                && let Some((node, error)) = self.machines.take_ended().into_iter().next()
            {
                return Err(format!("{node} ended although nothing had failed: {error}"));
            }
            self.step()?;
        }
    }

    fn set_up(&mut self) -> Result<(), String> {
        let slot: Slot<Result<()>> = Arc::default();
        let (out, workload, region) = (slot.clone(), self.clients.workload.clone(), self.machines.topology.regions[0].clone());
        let clients = &self.clients;
        self.machines.add_client("setup", &region, |host| {
            let context = clients.context(host);
            async move {
                let done = workload.setup(&context, &|_| ()).await;
                *out.lock() = Some(done);
            }
        });
        self.wait_for(&slot, SETUP_MAX, "the workload's setup")?.map_err(|e| format!("the setup failed: {e}"))
    }

    /// A machine with workers in every region.
    fn start_workers(&mut self, per_region: usize) -> Vec<(String, Slot<Result<()>>)> {
        let mut started = Vec::new();
        for (index, region) in self.machines.topology.regions.clone().into_iter().enumerate() {
            let slot: Slot<Result<()>> = Arc::default();
            let name = format!("clients-{region}");
            let (out, workload) = (slot.clone(), self.clients.workload.clone());
            let clients = &self.clients;
            let first = (index * per_region) as u32;
            self.machines.add_client(&name, &region.clone(), |host| {
                let context = clients.context(host);
                async move {
                    let workers = (first..first + per_region as u32).map(|id| {
                        let (workload, context, region) = (workload.clone(), context.clone(), region.clone());
                        tokio::spawn(async move { workload.worker(&context, Worker { id, region }).await })
                    });
                    let ended = futures::future::join_all(workers).await;
                    let failed = |e: tokio::task::JoinError| Err(Error::internal(format!("a worker panicked: {e}")));
                    let results = ended.into_iter().map(|joined| joined.unwrap_or_else(failed));
                    *out.lock() = Some(results.collect::<Result<()>>());
                }
            });
            started.push((name, slot));
        }
        started
    }

    fn check(&mut self) -> Result<Verdict, String> {
        let slot: Slot<Result<Verdict>> = Arc::default();
        let (out, workload, region) = (slot.clone(), self.clients.workload.clone(), self.machines.topology.regions[0].clone());
        let clients = &self.clients;
        self.machines.add_client("checker", &region, |host| {
            let context = clients.context(host);
            async move {
                let checked = context.verdict(&*workload).await;
                *out.lock() = Some(checked);
            }
        });
        self.wait_for(&slot, CHECK_MAX, "the final check")?.map_err(|e| format!("the final check failed: {e}"))
    }

    /// What the checkers say about the history, and the sums of the run.
    fn judge(&mut self, kind: WorkloadKind, options: &Options, report: &mut Report) {
        let records = self.clients.history.records();
        let anomalies = match kind {
            WorkloadKind::ListAppend => checkers::list_append::check(&records, &self.promise),
            WorkloadKind::Registers => checkers::linearizability::check(&records),
            _ => Vec::new(),
        };
        anomalies.iter().for_each(|anomaly| report.violate(anomaly));
        if let Some(path) = &options.history
            && let Err(error) = write_history(path, &records)
        {
            report.violate(format!("cannot write the history to {path}: {error}"));
        }
        for (_, stats) in self.clients.stats.snapshot() {
            report.succeeded += stats.latency.count();
            report.failed += stats.failures;
            report.unknown += stats.unknown;
        }
        if report.unknown > 0 {
            self.machines.world.coverage.hit("outcome unknown to a client");
        }
        for (what, count) in self.clients.stats.happened() {
            self.machines.world.coverage.add(what, count);
        }
        report.seconds = self.machines.elapsed().as_secs();
        report.coverage = self.machines.world.coverage.counts();
        (report.trace, report.events) = self.machines.world.trace.sum();
    }
}

fn write_history(path: &str, records: &[meridian_workload::Record]) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    meridian_workload::history::write_lines(records, &mut out)?;
    std::io::Write::flush(&mut out)
}
