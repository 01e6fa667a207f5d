//! What goes wrong when, drawn from the seed.
//!
//! Every so often a fault is drawn and begun; each has an end of its own. What is drawn depends on
//! the state: two faults are not put on one link, and most of the time a region keeps a quorum,
//! since a cluster that is only ever dead proves little. At the end everything is healed, and the
//! cluster has to come back.

mod rare;
mod strikes;

pub use rare::RareFaults;
pub use strikes::{Deaf, Death, Strike};

use super::machines::{Link, Machines, link};
use super::software::{self, Software};
use crate::world::disk::PowerLoss;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Which faults a run has, and how many.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// Mean time between the beginnings of two faults.
    pub every: Duration,
    /// Clocks are wrong by at most this, from the start.
    pub skew_max: Duration,
    /// The clocks of the first region are ahead by that, and all others behind by as much.
    pub first_is_ahead: bool,
    /// Clocks may jump by at most this; together with the skew within `max_offset`.
    pub jump_max: Duration,
    /// Machines fail.
    pub machines: bool,
    /// Of the machines' faults, the share that are processes told to stop in good order.
    pub stops: f64,
    /// Links fail.
    pub links: bool,
    /// Disks are slow or full, or a sync fails.
    pub disks: bool,
    /// Once, a node is added to the cluster, and another one may be lost for good or
    /// decommissioned.
    pub joins: bool,
    /// Clocks jump farther than this, which is more than is allowed.
    pub beyond: Option<Duration>,
    /// Every fault is this one, and nothing is drawn.
    pub strike: Option<Strike>,
    /// Besides.
    pub rare: RareFaults,
}

impl FaultPlan {
    /// Everything, with clocks that keep within `max_offset` of each other.
    pub fn all(max_offset: Duration) -> FaultPlan {
        FaultPlan {
            every: Duration::from_millis(1_200),
            skew_max: max_offset.mul_f64(0.35),
            first_is_ahead: false,
            jump_max: max_offset.mul_f64(0.1),
            machines: true,
            stops: 0.15,
            links: true,
            disks: true,
            joins: true,
            beyond: None,
            strike: None,
            rare: RareFaults::NONE,
        }
    }
    /// Nothing fails.
    pub fn none() -> FaultPlan {
        FaultPlan {
            every: Duration::MAX,
            skew_max: Duration::ZERO,
            first_is_ahead: false,
            jump_max: Duration::ZERO,
            machines: false,
            stops: 0.0,
            links: false,
            disks: false,
            joins: false,
            beyond: None,
            strike: None,
            rare: RareFaults::NONE,
        }
    }
}

/// For how long a machine is down whose disk lied.
const LIED_DOWN: Duration = Duration::from_millis(500);
/// When a node that was added is to take the place of another one.
const RETIRES_AFTER: Duration = Duration::from_secs(1);

/// Something that will end.
#[derive(Clone, Debug)]
enum End {
    Restart {
        node: String,
    },
    Mend {
        links: Vec<Link>,
    },
    Release {
        links: Vec<Link>,
    },
    Quicken {
        links: Vec<Link>,
    },
    NormalDisk {
        node: String,
    },
    MakeRoom {
        node: String,
    },
    JumpBack {
        node: String,
        micros: i64,
    },
    Resume {
        node: String,
    },
    Speed {
        node: String,
        by_ppm: i64,
    },
    /// A disk that lied loses what it has not synced.
    Lie {
        node: String,
    },
    /// A node that nothing happened to, for the sake of another one.
    Spare {
        node: String,
    },
    Strike {
        node: String,
        links: Vec<Link>,
        strike: Strike,
    },
    /// What ends is that the node was there: it dies, and stays dead until everything is healed.
    Lose {
        node: String,
    },
    /// What ends is that the node was a member: an operator decommissions it, once `successor` has
    /// come up.
    Retire {
        node: String,
        successor: String,
    },
}

/// The faults of a run, as they go.
pub struct Faults {
    plan: FaultPlan,
    rng: SmallRng,
    next: Duration,
    ends: Vec<(Duration, End)>,
    /// Nodes with a fault of their own.
    busy: BTreeSet<String>,
    /// Set when the node that an operator takes out of the cluster is no member any more.
    retirement: Option<Arc<AtomicBool>>,
    rare_rng: SmallRng,
    next_rare: Duration,
    /// Some disk, or a node with it, was lost for good: no other one may be.
    has_lost_disk: bool,
    /// Nodes on whose disk a bit has changed.
    rotten: BTreeSet<String>,
    /// When a fault, or what it led to, last ended.
    last_end: Duration,
    /// A disk lies, or what it lost is being sent to it again.
    lied_until: Duration,
}

impl Faults {
    /// The first fault comes some time after `start`.
    pub fn new(plan: FaultPlan, rng: SmallRng, start: Duration) -> Faults {
        let rare_rng = SmallRng::seed_from_u64(rng.clone().random());
        let mut faults = Faults {
            plan,
            rng,
            next: start,
            ends: Vec::new(),
            busy: BTreeSet::new(),
            retirement: None,
            rare_rng,
            next_rare: start,
            has_lost_disk: false,
            rotten: BTreeSet::new(),
            last_end: start,
            lied_until: Duration::ZERO,
        };
        faults.schedule(start);
        faults.schedule_rare(start);
        faults
    }

    fn schedule_rare(&mut self, now: Duration) {
        let wait = -(1.0 - self.rare_rng.random::<f64>()).ln();
        let every = self.plan.rare.every.as_secs_f64();
        self.next_rare = now.saturating_add(Duration::try_from_secs_f64(every * wait).unwrap_or(Duration::MAX));
    }

    fn schedule(&mut self, now: Duration) {
        // Exponential, so that faults also come close upon each other.
        let wait = -(1.0 - self.rng.random::<f64>()).ln();
        self.next =
            now.saturating_add(Duration::try_from_secs_f64(self.plan.every.as_secs_f64() * wait).unwrap_or(Duration::MAX));
    }

    /// Begins and ends what is due. Called between two ticks.
    pub fn step<S: Software>(&mut self, machines: &mut Machines<S>) {
        let now = machines.elapsed();
        self.notice_deaths(machines, now);
        let due: Vec<End> = self.ends.extract_if(.., |(at, _)| *at <= now).map(|(_, end)| end).collect();
        for end in due {
            tracing::info!("{} ms: ends {end:?}", now.as_millis());
            self.end(machines, end);
            self.last_end = now;
        }
        let begun = self.ends.len();
        if now >= self.next {
            self.begin(machines, now);
            self.schedule(now);
        }
        if now >= self.next_rare {
            self.begin_rare(machines, now);
            self.schedule_rare(now);
        }
        for (at, end) in self.ends.iter().skip(begun) {
            tracing::info!("{} ms: begins; {} ms: {end:?}", now.as_millis(), at.as_millis());
        }
    }

    /// Ends every fault at once and begins no more.
    pub fn heal<S: Software>(&mut self, machines: &mut Machines<S>) {
        let now = machines.elapsed();
        self.notice_deaths(machines, now);
        tracing::info!("{} ms: everything is healed", now.as_millis());
        for (at, end) in std::mem::take(&mut self.ends) {
            match end {
                End::Lose { .. } | End::Retire { .. } => {}
                End::Speed { node, by_ppm } => {
                    // The clock is as far off as if it had run at the old speed until then; and
                    // nobody sets it right any more.
                    let early = at.saturating_sub(now).as_micros() as i64;
                    machines.host(&node).jump_clock(-by_ppm * early / 1_000_000);
                    self.end(machines, End::Speed { node, by_ppm });
                }
                end => self.end(machines, end),
            }
        }
        (self.next, self.next_rare) = (Duration::MAX, Duration::MAX);
    }

    /// After [`Faults::heal`]: processes that die now are a consequence of earlier faults, and are
    /// started again.
    pub fn keep_healed<S: Software>(&mut self, machines: &mut Machines<S>) {
        self.step(machines);
    }

    /// Whether an operator is still taking a node out of the cluster.
    pub fn is_retiring(&self) -> bool {
        self.retirement.as_ref().is_some_and(|is_done| !is_done.load(Ordering::Relaxed))
    }

    /// Takes down processes that are doomed, and has those that ended by themselves started again.
    fn notice_deaths<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        for (node, error) in machines.take_ended() {
            let is_retired = error.message().contains(software::RETIRED);
            machines.world.coverage.hit(match error.message() {
                software::STOPPED => "process stopped in good order",
                _ if is_retired => "node decommissioned",
                message if message.contains("clock differs") => "node stopped because of its clock",
                _ => "node stopped itself",
            });
            machines.host(&node).event(&format!("ended: {error}"), 0);
            tracing::info!("{node} ended: {error}");
            machines.kill(&node);
            let down = Duration::from_millis(self.rng.random_range(200..2_000));
            self.busy.insert(node.clone());
            if is_retired {
                machines.host(&node).mark_retired();
                continue;
            }
            if self.rotten.remove(&node) {
                self.replace_rotten(machines, node, now);
                continue;
            }
            self.ends.push((now + down, End::Restart { node }));
        }
        let doomed: Vec<String> = machines.topology.nodes.iter().map(|n| n.name.clone()).collect();
        for node in doomed {
            let host = machines.host(&node);
            if host.is_doomed() && host.is_up() {
                self.take_down(machines, &node);
                let down = self.down_time();
                self.ends.push((now + down, End::Restart { node }));
            }
        }
    }

    fn take_down<S: Software>(&mut self, machines: &mut Machines<S>, node: &str) {
        match self.rng.random_range(0..8) {
            0..=2 => machines.kill(node),
            3..=4 => machines.cut_power(node, PowerLoss::LoseAll),
            5 => machines.cut_power(node, PowerLoss::KeepAll),
            6 => machines.cut_power(node, PowerLoss::Tear),
            _ => machines.cut_power(node, PowerLoss::Corrupt),
        }
    }

    /// Mostly short; now and then so long that the others must go on without it for good.
    fn down_time(&mut self) -> Duration {
        match self.rng.random_bool(0.8) {
            true => Duration::from_millis(self.rng.random_range(50..3_000)),
            false => Duration::from_millis(self.rng.random_range(3_000..12_000)),
        }
    }

    fn begin<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        if let Some(strike) = self.plan.strike.clone() {
            return self.strike(machines, &strike, now);
        }
        let kind = self.rng.random_range(0..100);
        match kind {
            0..=34 if self.plan.machines => self.fail_machine(machines, now),
            35..=74 if self.plan.links => self.fail_links(machines, now),
            75..=89 if self.plan.disks => self.fail_disk(machines, now),
            // These mind no other fault.
            90..=97 if now < self.lied_until => {}
            90..=95 if !self.plan.jump_max.is_zero() => self.jump_clock(machines, now),
            96..=97 if self.plan.joins => self.join(machines, now),
            98..=99 if self.plan.beyond.is_some() => self.jump_beyond(machines, now),
            _ => {}
        }
    }

    /// A node without a fault, in a region that keeps its quorum without it (except once in a
    /// while).
    fn pick_node<S: Software>(&mut self, machines: &Machines<S>) -> Option<String> {
        let reckless = self.rng.random_bool(0.15);
        let nodes = &machines.topology.nodes;
        let quorum = |region: &str| machines.topology.zones_in(region) / 2 + 1;
        let well = |region: &str| nodes.iter().filter(|n| n.region == region && !self.busy.contains(&n.name)).count();
        let fit: Vec<String> = nodes
            .iter()
            .filter(|n| {
                !self.busy.contains(&n.name)
                    && (reckless || well(&n.region) > quorum(&n.region) || machines.topology.zones_in(&n.region) < 3)
            })
            .map(|n| n.name.clone())
            .collect();
        (!fit.is_empty()).then(|| fit[self.rng.random_range(0..fit.len())].clone())
    }

    fn fail_machine<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        let Some(node) = self.pick_node(machines) else { return };
        self.busy.insert(node.clone());
        if self.rng.random_bool(self.plan.stops) {
            // `notice_deaths` does the rest.
            machines.host(&node).stop();
            return;
        }
        if self.rng.random_bool(0.5) {
            // It dies at one of its next operations, and `notice_deaths` does the rest.
            machines.host(&node).arm(self.rng.random_range(0..400));
            return;
        }
        self.take_down(machines, &node);
        let down = self.down_time();
        self.ends.push((now + down, End::Restart { node }));
    }

    fn fail_links<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        let links = self.pick_links(machines);
        if links.is_empty() {
            return;
        }
        let lasts = now + Duration::from_millis(self.rng.random_range(100..6_000));
        let coverage = &machines.world.clone().coverage;
        match self.rng.random_range(0..6) {
            0..=1 => {
                coverage.hit("two-way partition");
                links.iter().for_each(|(a, b)| machines.cut(a, b));
                self.ends.push((lasts, End::Mend { links: links.clone() }));
            }
            2 => {
                coverage.hit("one-way partition");
                let forth = self.rng.random_bool(0.5);
                links.iter().for_each(|(a, b)| if forth { machines.cut_one_way(a, b) } else { machines.cut_one_way(b, a) });
                self.ends.push((lasts, End::Mend { links: links.clone() }));
            }
            3 => {
                coverage.hit("stalled link");
                links.iter().for_each(|(a, b)| machines.hold(a, b));
                self.ends.push((lasts, End::Release { links: links.clone() }));
            }
            4 => {
                coverage.hit("slow link");
                let factor = self.rng.random_range(2.0..30.0);
                links.iter().for_each(|(a, b)| machines.slow(a, b, factor));
                self.ends.push((lasts, End::Quicken { links: links.clone() }));
            }
            _ => {
                coverage.hit("connections reset");
                for (a, b) in &links {
                    machines.reset(a, b);
                }
                return;
            }
        }
        machines.busy_links.extend(links);
    }

    /// One link, all links of a node, or all links out of a region, without those that have a
    /// fault.
    fn pick_links<S: Software>(&mut self, machines: &Machines<S>) -> Vec<Link> {
        let names = machines.names();
        let nodes = &machines.topology.nodes;
        let node = nodes[self.rng.random_range(0..nodes.len())].clone();
        let coverage = &machines.world.coverage;
        let links: Vec<Link> = match self.rng.random_range(0..10) {
            0..=4 => {
                let others: Vec<&String> = names.iter().filter(|n| **n != node.name).collect();
                match others.is_empty() {
                    true => Vec::new(),
                    false => vec![link(&node.name, others[self.rng.random_range(0..others.len())])],
                }
            }
            5..=7 => {
                coverage.hit("node isolated");
                let others = nodes.iter().filter(|n| n.name != node.name);
                others.map(|other| link(&node.name, &other.name)).collect()
            }
            _ if machines.topology.regions.len() > 1 => {
                coverage.hit("region isolated");
                let inside = nodes.iter().filter(|n| n.region == node.region);
                let outside: Vec<&String> = nodes.iter().filter(|n| n.region != node.region).map(|n| &n.name).collect();
                inside.flat_map(|n| outside.iter().map(move |other| link(&n.name, other))).collect()
            }
            _ => Vec::new(),
        };
        links.into_iter().filter(|l| !machines.busy_links.contains(l)).collect()
    }

    fn fail_disk<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        let Some(node) = self.pick_node(machines) else { return };
        self.busy.insert(node.clone());
        let lasts = now + Duration::from_millis(self.rng.random_range(300..5_000));
        if self.rng.random_bool(0.15) {
            // The node must stop by itself: after a failed sync nobody knows what is on the disk.
            machines.host(&node).fail_next_sync();
            self.busy.remove(&node);
        } else if self.rng.random_bool(0.7) {
            machines.world.coverage.hit("slow disk");
            let slowest = Duration::from_millis(self.rng.random_range(20..600));
            machines.host(&node).set_sync_time(Duration::from_millis(5), slowest);
            self.ends.push((lasts, End::NormalDisk { node }));
        } else {
            machines.world.coverage.hit("full disk");
            machines.set_full(&node, true);
            self.ends.push((lasts, End::MakeRoom { node }));
        }
    }

    fn jump_clock<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        let nodes = &machines.topology.nodes;
        let node = nodes[self.rng.random_range(0..nodes.len())].name.clone();
        let max = self.plan.jump_max.as_micros() as i64;
        let micros = self.rng.random_range(-max..=max);
        machines.world.coverage.hit("clock jump");
        machines.host(&node).jump_clock(micros);
        // Back again after a while, so that jumps do not add up.
        let lasts = now + Duration::from_millis(self.rng.random_range(100..5_000));
        self.ends.push((lasts, End::JumpBack { node, micros: -micros }));
    }

    /// A clock that nobody may follow: its node has to notice and to stop. Later it is set right.
    fn jump_beyond<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        let Some(allowed) = self.plan.beyond.take() else { return };
        let Some(node) = self.pick_node(machines) else { return };
        let far = (allowed.as_micros() as f64 * self.rng.random_range(2.0..8.0)) as i64;
        let micros = if self.rng.random_bool(0.5) { far } else { -far };
        machines.world.coverage.hit("clock beyond max_offset");
        machines.host(&node).jump_clock(micros);
        let lasts = now + Duration::from_millis(self.rng.random_range(1_000..6_000));
        self.ends.push((lasts, End::JumpBack { node, micros: -micros }));
    }

    /// A node is added; now and then, when it has had time to join, the one beside it is lost for
    /// good or decommissioned, so that it has to take over its replicas.
    fn join<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        self.plan.joins = false;
        machines.world.coverage.hit("node added");
        let skew = self.plan.skew_max.as_micros() as i64;
        let error = self.rng.random_range(-skew..=skew);
        let beside = self.rng.random_range(0..machines.topology.nodes.len());
        machines.grow(beside, error);
        let node = machines.topology.nodes[beside].name.clone();
        let zones = machines.topology.zones_beside(&node);
        if zones >= 3 && self.rng.random_bool(0.5) {
            if std::mem::replace(&mut self.has_lost_disk, true) {
                return;
            }
            self.ends.push((now + Duration::from_millis(self.rng.random_range(500..3_000)), End::Lose { node }));
        } else if zones >= 2 && !std::mem::replace(&mut self.has_lost_disk, true) && error % 2 == 0 {
            // Not drawn: the other runs stay what they were without this.
            let successor = machines.topology.nodes.last().expect("just added").name.clone();
            self.ends.push((now + RETIRES_AFTER, End::Retire { node, successor }));
        }
    }

    fn retire<S: Software>(&mut self, machines: &mut Machines<S>, node: String, successor: String) {
        if machines.host(&successor).has_started() {
            machines.world.coverage.hit("node being decommissioned");
            self.retirement = Some(machines.retire(&node));
        } else {
            self.ends.push((machines.elapsed() + RETIRES_AFTER, End::Retire { node, successor }));
        }
    }

    fn lose<S: Software>(&mut self, machines: &mut Machines<S>, node: String) {
        if self.busy.insert(node.clone()) {
            machines.world.coverage.hit("node lost for good");
            self.take_down(machines, &node);
            self.ends.push((Duration::MAX, End::Restart { node }));
        }
    }

    /// A node may have faults again, unless it died meanwhile: then it may when it is back.
    fn spare<S: Software>(&mut self, machines: &Machines<S>, node: &str) {
        if machines.host(node).is_up() {
            self.busy.remove(node);
        }
    }

    fn end<S: Software>(&mut self, machines: &mut Machines<S>, end: End) {
        let free = |machines: &mut Machines<S>, links: &[Link]| {
            links.iter().for_each(|l| _ = machines.busy_links.remove(l));
        };
        match end {
            // It died of another fault as well, and was found to be lost before this one's end.
            End::Restart { node } if machines.host(&node).is_lost() => {}
            End::Restart { node } => {
                self.busy.remove(&node);
                machines.restart(&node);
            }
            End::Mend { links } => {
                links.iter().for_each(|(a, b)| machines.mend(a, b));
                free(machines, &links);
            }
            End::Release { links } => {
                links.iter().for_each(|(a, b)| machines.release(a, b));
                free(machines, &links);
            }
            End::Quicken { links } => {
                links.iter().for_each(|(a, b)| machines.slow(a, b, 1.0));
                free(machines, &links);
            }
            End::NormalDisk { node } => {
                self.busy.remove(&node);
                machines.host(&node).set_sync_time(Duration::from_micros(200), Duration::from_millis(2));
            }
            End::MakeRoom { node } => {
                self.busy.remove(&node);
                machines.set_full(&node, false);
            }
            End::JumpBack { node, micros } => machines.host(&node).jump_clock(micros),
            End::Lose { node } => self.lose(machines, node),
            End::Retire { node, successor } => self.retire(machines, node, successor),
            End::Resume { node } => {
                machines.host(&node).resume();
                self.spare(machines, &node);
            }
            End::Speed { node, by_ppm } => machines.host(&node).change_speed(by_ppm, machines.elapsed()),
            End::Lie { node } => {
                machines.lose_what_was_not_synced(&node);
                self.ends.push((machines.elapsed() + LIED_DOWN, End::Restart { node }));
            }
            End::Spare { node } => self.spare(machines, &node),
            End::Strike { node, links, strike } => self.end_strike(machines, node, links, &strike),
        }
    }
}
