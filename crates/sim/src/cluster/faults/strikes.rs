//! Faults aimed at the middle of a protocol.
//!
//! What is drawn at random seldom falls between two steps that are milliseconds apart. A strike is
//! aimed: it picks a primary, keeps it for a while in a state in which much is begun and little
//! ends (some machines do not hear it, its disk is slow, its clock runs ahead), and may then kill
//! it in that state. Which protocol is in the middle of something then is not known here.

use super::{End, Faults};
use crate::cluster::machines::{Link, Machines, link};
use crate::cluster::software::Software;
use crate::cluster::topology::NodeSpec;
use crate::world::disk::PowerLoss;
use rand::Rng;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A strike, as a plan has it: every time at another primary.
#[derive(Clone, Debug)]
pub struct Strike {
    /// Who does not hear whom any more; the other direction goes on.
    pub deaf: Option<Deaf>,
    /// Only primaries in the first region, where GLOBAL groups have theirs.
    pub in_first_region: bool,
    /// So far its clock jumps ahead for as long as the strike lasts.
    pub ahead: Duration,
    /// Every sync takes about so long.
    pub sync_time: Option<Duration>,
    /// How long the strike lasts, in milliseconds.
    pub lasts_ms: RangeInclusive<u64>,
    /// How it ends.
    pub death: Option<Death>,
    /// After its death it is away for so long, in milliseconds.
    pub down_ms: RangeInclusive<u64>,
}

/// Who is deaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deaf {
    /// The nodes of its own region do not hear the node.
    AtHome,
    /// The nodes of other regions do not hear the node.
    Abroad,
    /// The node does not hear the nodes of other regions.
    Itself,
}

/// How a strike ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// The process dies.
    Process,
    /// The machine loses power, and with it what was not synced.
    Power,
}

impl Strike {
    /// Nothing happens, for this long.
    pub fn lasting(lasts_ms: RangeInclusive<u64>) -> Strike {
        Strike {
            deaf: None,
            in_first_region: false,
            ahead: Duration::ZERO,
            sync_time: None,
            lasts_ms,
            death: None,
            down_ms: 100..=1_000,
        }
    }
}

impl Faults {
    /// Strikes a primary in whose region all is well.
    pub(super) fn strike<S: Software>(&mut self, machines: &mut Machines<S>, strike: &Strike, now: Duration) {
        let Some(node) = self.pick_primary(machines, strike.in_first_region) else { return };
        machines.world.coverage.hit("primary struck");
        machines.host(&node.name).event("struck", 0);
        self.busy.insert(node.name.clone());
        let links = deaf_links(machines, &node, strike.deaf);
        for (a, b) in &links {
            let (own, other) = if *a == node.name { (a, b) } else { (b, a) };
            match strike.deaf {
                Some(Deaf::Itself) => machines.cut_one_way(other, own),
                _ => machines.cut_one_way(own, other),
            }
        }
        machines.busy_links.extend(links.iter().cloned());
        let host = machines.host(&node.name);
        host.jump_clock(strike.ahead.as_micros() as i64);
        if let Some(time) = strike.sync_time {
            host.set_sync_time(time / 2, time);
        }
        let lasts = Duration::from_millis(self.rng.random_range(strike.lasts_ms.clone()));
        self.ends.push((now + lasts, End::Strike { node: node.name, links, strike: strike.clone() }));
    }

    fn pick_primary<S: Software>(&mut self, machines: &Machines<S>, in_first_region: bool) -> Option<NodeSpec> {
        let nodes = &machines.topology.nodes;
        let is_meant = |n: &&NodeSpec| !in_first_region || n.region == machines.topology.regions[0];
        let is_well = |region: &str| nodes.iter().all(|n| n.region != region || !self.busy.contains(&n.name));
        let fit: Vec<&NodeSpec> =
            nodes.iter().filter(is_meant).filter(|n| is_well(&n.region) && machines.is_primary(&n.name)).collect();
        (!fit.is_empty()).then(|| fit[self.rng.random_range(0..fit.len())].clone())
    }

    pub(super) fn end_strike<S: Software>(
        &mut self,
        machines: &mut Machines<S>,
        node: String,
        links: Vec<Link>,
        strike: &Strike,
    ) {
        // It may have stopped by itself meanwhile.
        let death = strike.death.filter(|_| machines.host(&node).is_up());
        match death {
            Some(Death::Process) => machines.kill(&node),
            Some(Death::Power) => machines.cut_power(&node, PowerLoss::LoseAll),
            None => {}
        }
        // Only now, so that nothing which it said meanwhile is heard.
        self.end(machines, End::Mend { links });
        self.end(machines, End::JumpBack { node: node.clone(), micros: -(strike.ahead.as_micros() as i64) });
        self.end(machines, End::NormalDisk { node: node.clone() });
        if death.is_some() {
            self.busy.insert(node.clone());
            let down = Duration::from_millis(self.rng.random_range(strike.down_ms.clone()));
            self.ends.push((machines.elapsed() + down, End::Restart { node }));
        }
    }
}

fn deaf_links<S: Software>(machines: &Machines<S>, node: &NodeSpec, deaf: Option<Deaf>) -> Vec<Link> {
    let is_deaf = |other: &&NodeSpec| match deaf {
        Some(Deaf::AtHome) => other.region == node.region && other.name != node.name,
        Some(Deaf::Abroad | Deaf::Itself) => other.region != node.region,
        None => false,
    };
    machines.topology.nodes.iter().filter(is_deaf).map(|other| link(&node.name, &other.name)).collect()
}
