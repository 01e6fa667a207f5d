//! Faults that a run has a few of: what happens to a machine, a building or a clock once in years.
//!
//! They are drawn from a generator of their own, so that a run without them is what it was before
//! there were any. What each may do is in `docs/design/faults.md`; in short, nothing acknowledged
//! is lost and nothing wrong is shown, and where a disk or a region is lost for good, no more of
//! them are lost than the databases promise to survive.

use super::{End, Faults};
use crate::cluster::machines::Machines;
use crate::cluster::software::Software;
use crate::world::disk::PowerLoss;
use rand::Rng;
use std::time::Duration;

/// Which of them a run has.
#[derive(Clone, Copy, Debug)]
pub struct RareFaults {
    /// Mean time between two.
    pub every: Duration,
    /// All machines lose power at once.
    pub blackouts: bool,
    /// Machines are suspended, their clocks are not.
    pub suspensions: bool,
    /// Clocks run at different speeds, and are set right before they are farther apart than clocks
    /// may be.
    pub speeds: bool,
    /// A clock is hours off for a while.
    pub hours: bool,
    /// Once, a machine gets an empty disk.
    pub replaced_disks: bool,
    /// Once, a bit of a disk changes.
    pub bit_rot: bool,
    /// Once, a disk says that it has synced what it then loses with the power. All links are well
    /// in such a run.
    pub lying_syncs: bool,
    /// Once, a region is lost for good. Databases have to survive that.
    pub lost_regions: bool,
    /// A region survives as a whole, so a disk may be lost wherever it is.
    pub survives_region: bool,
}

impl RareFaults {
    /// None of them.
    pub const NONE: RareFaults = RareFaults {
        every: Duration::MAX,
        blackouts: false,
        suspensions: false,
        speeds: false,
        hours: false,
        replaced_disks: false,
        bit_rot: false,
        lying_syncs: false,
        lost_regions: false,
        survives_region: false,
    };
}

/// A leader's lease is a fraction of the shorter of these and much less than the longer one.
const SUSPENDED_MS: std::ops::Range<u64> = 150..5_000;
/// A disk that lies is believed for so long; everything else in its region is well meanwhile, and
/// until it has heard of what it lost.
const LIES_FOR: Duration = Duration::from_millis(1_500);
const CATCHES_UP_FOR: Duration = Duration::from_secs(4);
/// Of the rare faults, those that a run has once, where it has any.
const ONCE_SHARE: f64 = 0.5;

/// How a fault begins that a run has once.
type Once<S> = fn(&mut Faults, &mut Machines<S>, Duration);

impl Faults {
    /// What a run has once comes early in it as a rule: most runs are short.
    pub(super) fn begin_rare<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        let (rare, may_lose) = (self.plan.rare, !self.has_lost_disk);
        let once: [(bool, Once<S>); 5] = [
            (rare.hours, Faults::jump_hours),
            (rare.replaced_disks && may_lose, Faults::replace_disk),
            (rare.bit_rot && may_lose, Faults::rot),
            (rare.lying_syncs && may_lose, Faults::lie),
            (rare.lost_regions && may_lose, Faults::lose_region),
        ];
        let once: Vec<Once<S>> = once.into_iter().filter_map(|(has, begin)| has.then_some(begin)).collect();
        if !once.is_empty() && self.rare_rng.random_bool(ONCE_SHARE) {
            let begin = once[self.rare_rng.random_range(0..once.len())];
            return begin(self, machines, now);
        }
        match self.rare_rng.random_range(0..100) {
            0..=10 if rare.blackouts => self.black_out(machines, now),
            11..=65 if rare.suspensions => self.suspend(machines, now),
            66..=99 if rare.speeds => self.change_speed(machines, now),
            _ => {}
        }
    }

    /// A node without a fault.
    fn pick_any<S: Software>(&mut self, machines: &Machines<S>, fits: impl Fn(&str) -> bool) -> Option<String> {
        let nodes = machines.topology.nodes.iter().map(|n| n.name.clone());
        let fit: Vec<String> = nodes.filter(|n| !self.busy.contains(n) && machines.host(n).is_up() && fits(n)).collect();
        (!fit.is_empty()).then(|| fit[self.rare_rng.random_range(0..fit.len())].clone())
    }

    /// Those that are down already stay so until their time.
    fn black_out<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        machines.world.coverage.hit("power lost everywhere");
        let nodes: Vec<String> = machines.topology.nodes.iter().map(|n| n.name.clone()).collect();
        for node in nodes.into_iter().filter(|n| !self.busy.contains(n)).collect::<Vec<_>>() {
            let loss = match self.rare_rng.random_range(0..4) {
                0..=1 => PowerLoss::LoseAll,
                2 => PowerLoss::Tear,
                _ => PowerLoss::Corrupt,
            };
            machines.cut_power(&node, loss);
            self.busy.insert(node.clone());
            let down = Duration::from_millis(self.rare_rng.random_range(100..3_000));
            self.ends.push((now + down, End::Restart { node }));
        }
    }

    fn suspend<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        // Whoever leads has most to do wrong.
        let leads = self.rare_rng.random_bool(0.7);
        let Some(node) = self.pick_any(machines, |n| !leads || machines.is_primary(n)) else { return };
        let stops_time = self.rare_rng.random_bool(0.5);
        machines.world.coverage.hit("machine suspended");
        machines.host(&node).event("suspended", 0);
        machines.host(&node).suspend(stops_time);
        self.busy.insert(node.clone());
        let lasts = Duration::from_millis(self.rare_rng.random_range(SUSPENDED_MS));
        self.ends.push((now + lasts, End::Resume { node }));
    }

    /// Faster or slower for a while, and then the other way for as long. Where clocks may be wrong
    /// by more than nodes assume, this one is.
    fn change_speed<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        let Some(node) = self.pick_any(machines, |_| true) else { return };
        let (percent, most) = match self.plan.beyond.is_some() {
            true => (self.rare_rng.random_range(10..60), Duration::from_secs(3)),
            false => (self.rare_rng.random_range(1..20), self.plan.jump_max),
        };
        let lasts = most.mul_f64(match self.plan.beyond.is_some() {
            true => 1.0,
            false => 100.0 / percent as f64,
        });
        let ppm = if self.rare_rng.random_bool(0.5) { percent * 10_000 } else { -percent * 10_000 };
        machines.world.coverage.hit("clock of another speed");
        machines.host(&node).change_speed(ppm, now);
        self.ends.push((now + lasts, End::Speed { node: node.clone(), by_ppm: -2 * ppm }));
        self.ends.push((now + 2 * lasts, End::Speed { node, by_ppm: ppm }));
    }

    /// Its node has to notice and to stop.
    fn jump_hours<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        let Some(node) = self.pick_any(machines, |n| machines.topology.zones_beside(n) >= 3) else { return };
        self.plan.rare.hours = false;
        let hours = self.rare_rng.random_range(1..48) * 3_600_000_000i64;
        let micros = if self.rare_rng.random_bool(0.5) { hours } else { -hours };
        machines.world.coverage.hit("clock hours off");
        machines.host(&node).jump_clock(micros);
        let lasts = Duration::from_millis(self.rare_rng.random_range(1_000..6_000));
        self.ends.push((now + lasts, End::JumpBack { node, micros: -micros }));
    }

    /// A node whose disk may be lost: what it has is elsewhere too, and all of its region is there
    /// to take over. (Of a whole run, one disk or region is lost.)
    fn pick_disk<S: Software>(&mut self, machines: &Machines<S>) -> Option<String> {
        let survives = self.plan.rare.survives_region;
        let fits = |n: &str| (survives || machines.topology.zones_beside(n) >= 3) && machines.is_spared(n);
        let node = self.pick_any(machines, fits)?;
        let region = machines.topology.region_of(&node);
        machines.topology.nodes.iter().all(|n| n.region != region || !self.busy.contains(&n.name)).then_some(node)
    }

    /// The machine comes back at its address with an empty disk: a new node, whoever the old one
    /// was.
    fn replace_disk<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        let Some(node) = self.pick_disk(machines) else { return };
        self.has_lost_disk = true;
        self.take_down(machines, &node);
        machines.replace_disk(&node);
        self.busy.insert(node.clone());
        let down = Duration::from_millis(self.rare_rng.random_range(100..4_000));
        self.ends.push((now + down, End::Restart { node }));
    }

    /// While the machine is off, a bit of its disk changes, or rows become unreadable. Its process
    /// must not start over that, if it reads it, and has to end when it meets such rows later.
    fn rot<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        let Some(node) = self.pick_disk(machines) else { return };
        self.has_lost_disk = true;
        machines.kill(&node);
        let down = Duration::from_millis(self.rare_rng.random_range(100..2_000));
        if self.rare_rng.random_bool(0.5) {
            machines.rot_rows(&node);
            self.rotten.insert(node.clone());
        } else if let Some(file) = machines.host(&node).rot() {
            machines.world.coverage.hit("bit rot");
            machines.host(&node).event(&format!("rot in {file}"), 0);
            self.rotten.insert(node.clone());
        }
        self.busy.insert(node.clone());
        self.ends.push((now + down, End::Restart { node }));
    }

    /// A rotten process ended by itself: an operator gives the machine another disk, or does
    /// without it.
    pub(super) fn replace_rotten<S: Software>(&mut self, machines: &mut Machines<S>, node: String, now: Duration) {
        machines.world.coverage.hit("bit rot detected");
        if self.plan.rare.replaced_disks {
            machines.replace_disk(&node);
            self.ends.push((now + Duration::from_secs(1), End::Restart { node }));
        } else {
            machines.host(&node).mark_lost();
        }
    }

    /// For a while a disk makes nothing durable and says otherwise; then the machine loses power.
    /// What it said is forgotten is with others, who are well and have been for a while: no
    /// protocol can do without both. The catalog's voters are in all regions.
    fn lie<S: Software>(&mut self, machines: &mut Machines<S>, now: Duration) {
        let is_calm = self.busy.is_empty() && self.ends.is_empty() && now >= self.last_end + CATCHES_UP_FOR;
        if self.plan.links || !is_calm {
            return;
        }
        let Some(node) = self.pick_disk(machines) else { return };
        self.has_lost_disk = true;
        self.lied_until = now + LIES_FOR + CATCHES_UP_FOR;
        machines.lie_about_syncs(&node);
        let others = machines.topology.nodes.iter().map(|n| n.name.clone()).filter(|n| *n != node);
        for other in others {
            self.busy.insert(other.clone());
            self.ends.push((self.lied_until, End::Spare { node: other }));
        }
        self.busy.insert(node.clone());
        self.ends.push((now + LIES_FOR, End::Lie { node }));
    }

    /// Nothing of it comes back.
    fn lose_region<S: Software>(&mut self, machines: &mut Machines<S>, _now: Duration) {
        let regions = &machines.topology.regions;
        let region = regions[self.rare_rng.random_range(0..regions.len())].clone();
        let nodes = machines.topology.nodes.iter().filter(|n| n.region == region).map(|n| n.name.clone());
        let nodes: Vec<String> = nodes.collect();
        if nodes.iter().any(|n| machines.host(n).is_up() && !machines.is_spared(n)) {
            return;
        }
        self.has_lost_disk = true;
        machines.world.coverage.hit("region lost for good");
        for node in nodes {
            if machines.host(&node).is_up() {
                machines.cut_power(&node, PowerLoss::LoseAll);
            }
            machines.host(&node).mark_lost();
            self.ends
                .retain(|(_, end)| !matches!(end, End::Restart { node: gone } | End::Resume { node: gone } if *gone == node));
            self.busy.insert(node);
        }
    }
}
